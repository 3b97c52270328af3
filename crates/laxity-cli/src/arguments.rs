//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use laxity_lab::scenario::MOST_PROCESSORS;

use crate::colour::Colour;
use crate::enforcer::Enforcer;
use crate::experiments::Experiment;
use crate::on::On;
use crate::outputs::Json;

/// Predictable execution for soft real-time work on ordinary Linux.
#[derive(Parser, Debug)]
#[command(name = "laxity", version, about, after_help = EXIT_CODES, propagate_version = true)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Whether verdicts and messages have colour.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t)]
    pub(crate) color: Colour,
}

const EXIT_CODES: &str = "\
Exit codes: 0 contract met, or all as expected; 1 error, also a scenario's command that failed; 2 contract violated; 3 admission refused; \
4 cannot run here; 5 inconclusive; 64 usage.

Examples:
  laxity run scenarios/soft-modem.toml                 run, judge, report
  laxity run --on twin scenarios/soft-modem.toml       the same in virtual time
  laxity plan scenarios/soft-modem.toml                only: what would be admitted, and by whom
  laxity exec --reserve 2ms/8ms -- ./mydevice          a program of yours, with a reservation
  laxity doctor                                        what this machine can do, and the remedy for what it cannot";

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run a scenario, judge it, and report.
    #[command(after_help = RUN_EXAMPLES)]
    Run(Run),
    /// Say what of a scenario would be admitted here, by whom and why; run nothing.
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(Plan),
    /// Run a command, or adopt a program that runs, with a reservation or a scheduling policy.
    #[command(after_help = crate::exec::HELP)]
    Exec(Box<crate::exec::Exec>),
    /// Say what this machine can do, and the remedy for what it cannot.
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(Doctor),
    /// Measure what this machine costs (switches, wake-ups, ticks, budgets, slots), for predictions by a twin of it.
    #[command(after_help = CALIBRATE_EXAMPLES)]
    Calibrate(Calibrate),
    /// Experiments that need no scenario; without a name, list them.
    #[command(after_help = LAB_EXAMPLES)]
    Lab(Lab),
    /// Coordinators of upcalls: serve one, or list who has what of a processor.
    #[command(after_help = UPCALLS_EXAMPLES)]
    Upcalls {
        /// Which.
        #[command(subcommand)]
        what: crate::upcalls::Upcalls,
    },
    /// Network interfaces: what comes through them, recorded, and sent again.
    #[command(after_help = crate::net::HELP)]
    Net {
        /// Which.
        #[command(subcommand)]
        what: crate::net::Net,
    },
    /// Real-time channels: a host's node, its key, and which rate and burst cover a flow that was recorded.
    #[command(after_help = crate::channel::HELP)]
    Channel {
        /// Which.
        #[command(subcommand)]
        what: crate::channel::Channel,
    },
    /// Explain every key of a scenario, as a page of Markdown.
    Keys {
        /// Of a network of hosts (network.toml) instead.
        #[arg(long)]
        network: bool,
    },
    /// Write the manual pages of all commands, as `man` reads them.
    #[command(after_help = MAN_EXAMPLES)]
    Man {
        /// Where to; it is made if it is not there.
        directory: PathBuf,
    },
    /// A process of an experiment, which starts it.
    #[command(hide = true)]
    Peer {
        /// Which.
        experiment: String,
        /// What it is to do.
        part: String,
    },
}

const RUN_EXAMPLES: &str = "\
Examples:
  laxity run scenarios/soft-modem.toml                      a minute; the report is in laxity-report.html
  laxity run --variant reserved-slots --variant none s.toml only these (controls are needed for ratios)
  laxity run --on linux --json=result.json s.toml           for CI: exits 4 instead of falling back to the twin
  laxity run --full s.toml                                  the study's phases and 200,000 bytes, five times";

const PLAN_EXAMPLES: &str = "\
A task set is a workload of rt-app (.json), or CSV with a header of these columns; times end in
_ns, _us, _ms or _s, and only cost and period are needed:
  name,cost_us,period_us,deadline_us,jitter_us,region_us,last_region_us,priority,processor
Of priorities the larger is the more urgent; without any, tasks are ranked by their deadlines.

Exit codes: 0 admitted; 3 refused; 5 unknown: the file or the tests do not tell enough; 1 error; 4 cannot run here;
64 usage, or a file that is wrong. Of a task set, admitted is that all deadlines are met; where some of its tasks are
timesharing, those of the real-time tasks, and that of the others none is surely late; where all are, that they would be
met in real time, which promises nothing to any of them as they are. Of a scenario it is that all it
reserves is granted, so 0 also where it reserves nothing: which deadlines can be missed stands in each headline. Of a network of
hosts it is that each of its channels is granted by all hosts and links on its way.

Examples:
  laxity plan scenarios/soft-modem.toml
  laxity plan --on twin --json s.toml
  laxity plan docs/network.toml                              the channels of a network of hosts, hop by hop
  laxity plan --machine none s.toml                          without what was measured of this machine
  laxity plan scenarios/upcalls-12.csv                       bounds, margins, the twin
  laxity plan --scheduler edf --supply 8ms/10ms tasks.csv    in a reservation
  laxity plan --processors 2 scenarios/rt-app.json           partitionings, global EDF, the kernel's admission";

const MAN_EXAMPLES: &str = "\
Examples:
  laxity man ~/.local/share/man/man1      then `man laxity-net-capture`
  laxity man . && man ./laxity-exec.1";

const LAB_EXAMPLES: &str = "\
Examples:
  laxity lab                              what there is, with the figures of each
  laxity lab modem --on twin              every figure and table of the soft-modem study, in virtual time
  laxity lab acceptance                   how many random task sets each schedulability test accepts
  laxity lab channels flagship --on linux laxity's nodes, UDP and TCP beside best effort";

const UPCALLS_EXAMPLES: &str = "\
A program whose executor is coordinated starts a coordinator by itself where there is none; whoever wants other terms starts it
before. It ends when nobody has been there for some seconds.

Examples:
  laxity upcalls list                                        who has a seat where, and how much of the processor
  laxity upcalls list --processor 1 --json
  laxity upcalls serve --processor 1 --linger 60s            in the foreground; exits 0 where another serves already
  laxity upcalls serve --processor 1 --everyone --directory /run/laxity --share 20% --quota 1000=50%";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  laxity doctor
  laxity doctor --json";

const CALIBRATE_EXAMPLES: &str = "\
Takes half a minute. The machine should have nothing else to do; what was disturbed is counted and left out.

Exit codes: 0 measured; 1 error, or stopped; 4 cannot run here; 5 too disturbed; 64 usage.

Examples:
  laxity calibrate                                 into ~/.config/laxity/machine.toml
  laxity calibrate --processor 0 --output m.toml
  laxity calibrate --quick --output=- --quiet";

/// What `run` takes.
#[derive(Args, Debug)]
pub(crate) struct Run {
    /// The scenario file; `-` is standard input.
    pub(crate) scenario: PathBuf,
    /// Which host.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) on: On,
    /// The study's phases and its file, several times; takes about an hour live.
    #[arg(long)]
    pub(crate) full: bool,
    /// Only this variant; may be given several times.
    #[arg(long = "variant", value_name = "NAME")]
    pub(crate) variants: Vec<String>,
    /// Another seed than the scenario's.
    #[arg(long)]
    pub(crate) seed: Option<u32>,
    /// Execute the scenario's commands, on Linux, without asking; `laxity plan` lists them.
    #[arg(long)]
    pub(crate) allow_commands: bool,
    /// Threads for the twin; 0: one a processor.
    #[arg(long, default_value_t = 0)]
    pub(crate) threads: usize,
    /// A machine file, for what packets take of an interface that does not state it; without it, on Linux where `laxity calibrate` leaves it; `none`: no file. Scenarios with a network only.
    #[arg(long, value_name = "FILE|none")]
    pub(crate) machine: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) json: Json,
    /// Where the HTML report goes.
    #[arg(long, value_name = "FILE", default_value = "laxity-report.html")]
    pub(crate) html: PathBuf,
    /// Where the trace goes; ui.perfetto.dev opens it.
    #[arg(long, value_name = "FILE", default_value = "laxity-trace.pftrace")]
    pub(crate) trace: PathBuf,
    /// Also write what a reader of the trace must find in it, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace_summary: Option<PathBuf>,
    /// No progress, no table: only files, errors and the exit code.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// What `plan` takes.
#[derive(Args, Debug)]
pub(crate) struct Plan {
    /// The scenario (TOML), a network of hosts (network.toml), or a task set: CSV, or rt-app's JSON; `-` is standard input.
    pub(crate) file: PathBuf,
    /// For which host; scenarios only.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) on: On,
    /// Do not look in the twin how long things take.
    #[arg(long)]
    pub(crate) no_observe: bool,
    /// What this machine costs, for bounds on Linux, and, in the twin too, for what packets take of an interface that does not state it; without it, on Linux where `laxity calibrate` leaves it; `none`: no file; `-` is standard input. Of a network it is taken for every host. Scenarios and networks only.
    #[arg(long, value_name = "FILE|none")]
    pub(crate) machine: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) json: Json,
    /// Who schedules a task set.
    #[arg(long, value_enum, help_heading = "Task sets")]
    pub(crate) scheduler: Option<Scheduler>,
    /// The reservation that a task set runs in on each processor, such as 2ms/8ms; without it, the whole processor.
    #[arg(long, value_name = "X/Y", help_heading = "Task sets")]
    pub(crate) supply: Option<String>,
    /// Who enforces that reservation.
    #[arg(long, value_enum, requires = "supply", help_heading = "Task sets")]
    pub(crate) enforcer: Option<Enforcer>,
    /// How often the kernel looks at the budgets of deadline reservations, such as 4ms; without it, at once.
    #[arg(
        long,
        value_name = "SPAN",
        requires = "enforcer",
        help_heading = "Task sets"
    )]
    pub(crate) tick: Option<String>,
    /// How many processors a task set has; without it, as many as it names.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(MOST_PROCESSORS)), help_heading = "Task sets")]
    pub(crate) processors: Option<u16>,
}

/// Who schedules a task set.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scheduler {
    /// As the file says; else the first that admits it of: priorities by deadline, best priorities, EDF.
    Auto,
    /// Fixed priorities: the file's; else the first that admits it of: priorities by deadline, best priorities.
    Fp,
    /// Earliest deadline first.
    Edf,
    /// Rate monotonic with delayed preemption, as an executor of that policy admits a set.
    Rmdp,
}

/// What `doctor` takes.
#[derive(Args, Debug)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) json: Json,
}

/// What `calibrate` takes.
#[derive(Args, Debug)]
pub(crate) struct Calibrate {
    /// The processor to measure on, by the kernel's number; without it, the last that may be used.
    #[arg(long, short = 'a', value_name = "N")]
    pub(crate) processor: Option<usize>,
    /// The FIFO priority of what is measured: threads above it that may run on the processor disturb.
    #[arg(long, short, value_name = "N", default_value_t = laxity::calibrate::PRIORITY)]
    pub(crate) priority: u8,
    /// A tenth of the samples, in a few seconds: for a first look.
    #[arg(long)]
    pub(crate) quick: bool,
    /// The machine file; without it, laxity/machine.toml in $XDG_CONFIG_HOME or ~/.config; `-` is standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) json: Json,
    /// Write a page with the distribution of each cost.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// No progress, no table: only files, errors and the exit code.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// What `lab` takes.
#[derive(Args, Debug)]
pub(crate) struct Lab {
    /// Which one.
    #[command(subcommand)]
    pub(crate) experiment: Option<Experiment>,
}
