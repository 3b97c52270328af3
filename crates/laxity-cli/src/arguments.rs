//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Predictable execution for soft real-time work on ordinary Linux.
#[derive(Parser, Debug)]
#[command(name = "laxity", version, about, after_help = EXIT_CODES, propagate_version = true)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 contract met, or all as expected; 1 error; 2 contract violated; 3 admission refused; \
4 cannot run here; 5 inconclusive; 64 usage.

Examples:
  laxity run scenarios/soft-modem.toml                 run, judge, report
  laxity run --on twin scenarios/soft-modem.toml       the same in virtual time
  laxity plan scenarios/soft-modem.toml                only: what would be admitted, and by whom
  laxity doctor                                        what this machine can do, and the remedy for what it cannot";

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run a scenario, judge it, and report.
    #[command(after_help = RUN_EXAMPLES)]
    Run(Run),
    /// Say what of a scenario would be admitted here, by whom and why; run nothing.
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(Plan),
    /// Say what this machine can do, and the remedy for what it cannot.
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(Doctor),
}

const RUN_EXAMPLES: &str = "\
Examples:
  laxity run scenarios/soft-modem.toml                      a minute and a half; the report is in laxity-report.html
  laxity run --variant reserved-slots --variant none s.toml only these (controls are needed for ratios)
  laxity run --on linux --json=result.json s.toml           for CI: exits 4 instead of falling back to the twin
  laxity run --full s.toml                                  the study's phases and 200,000 bytes, five times";

const PLAN_EXAMPLES: &str = "\
Examples:
  laxity plan scenarios/soft-modem.toml
  laxity plan --on twin --json=- s.toml";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  laxity doctor
  laxity doctor --json=-";

/// Which host runs a scenario.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum On {
    /// Linux where the rights are there, else the twin, saying so first.
    #[default]
    Auto,
    /// Linux, or exit code 4.
    Linux,
    /// The virtual-time twin.
    Twin,
}

/// What `run` takes.
#[derive(Args, Debug)]
pub(crate) struct Run {
    /// The scenario file.
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
    /// Threads for the twin; 0: one a processor.
    #[arg(long, default_value_t = 0)]
    pub(crate) threads: usize,
    /// Write the results as JSON; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
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
    /// The scenario file.
    pub(crate) scenario: PathBuf,
    /// For which host.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) on: On,
    /// Write the plan as JSON; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// What `doctor` takes.
#[derive(Args, Debug)]
pub(crate) struct Doctor {
    /// Write the findings as JSON; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}
