//! What `laxity exec` takes, and what is asked for by it.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use laxity::command::{CpuSet, Policy, look_for};
use laxity::hold::{Choice, Confinement, HoldRequest, ProgramRequest, Tid};
use laxity::{Outside, Reservation};
use laxity_lab::plain;
use laxity_lab::scenario::units;
use laxity_model::analysis::devices::Open;
use laxity_model::analysis::multiprocessor::DeadlineRequest;
use laxity_model::{Service, Span};
use rustix::process::getpriority_process;

use super::measured::{AUTO_PERIOD, measured_with};
use crate::enforcer::Enforcer;
use crate::outputs::Json;

pub(crate) const HELP: &str = "\
With --enforcer slots the program has X in every window of Y on one processor, its threads together; outside its
slots it competes as before, or is kept from running (--confine):
  quota    leaks up to 0.1 % of a processor, in bursts; a thread that the program starts waits until it is found, for
           20 ms and until the next slot at the most: for programs that start some while they work freeze is better
  freeze   nothing runs; a call that cannot be restarted (epoll_wait, ...) returns EINTR to the program
With --enforcer deadline each thread has a reservation of its own by SCHED_DEADLINE, and nothing outside it.

With --reserve auto/Y the program has half of each Y while 1,000 periods are measured, and what others leave; then
the most that it received in one of them and a quarter more; where nothing is found, the verdict is inconclusive.
It is measured in slots also for --enforcer deadline: each thread then has what all of them took together.
Of a program that laxity starts the first 100 periods are left out of that.

Standard output is the program's, so --json needs a file there. What it received is said on standard error when it
has ended. By deadline it is known whether the machine stood still only with --judge or --contract: for these a
witness on each processor looks.

Exit codes: the program's own, or the signal that ended it; 125 laxity failed, or refused; 126 the command cannot
be executed; 127 there is no such command. --status-json tells whose it is. With --judge or --contract, of a
program that exits 0: 0 met, 2 violated, 5 inconclusive. Of one that is adopted its parent alone is told how it
ended: 0, or the verdict. Signals sent to laxity go on to the program; what the terminal's keys send, both get.

A contract is a file of limits on service_gap (the largest), short_periods, overruns:
  limits = [{ quantity = \"service_gap\", at_most = \"7ms\" }, { quantity = \"overruns\", at_most = 3 }]
By deadline, periods of less than 20 ms are seen several at a time: then short_stretches takes the place of
short_periods, and nothing is known of single periods, nor of overruns.
A program that sleeps through every period that is seen gives nothing to judge: inconclusive.

Examples:
  laxity exec --reserve 2ms/8ms -- ./mydevice
  laxity exec --reserve 1ms/10ms --confine quota --processor 1 --json=result.json -- sox in.wav -d
  laxity exec --reserve 1ms/4ms --enforcer deadline --threads audio -- ./player
  laxity exec --reserve auto/10ms -- ./mydevice        as much as it turns out to take
  laxity exec --reserve 2ms/8ms --pid 4711             until it ends, or Ctrl-C
  laxity exec --reserve 2ms/8ms --judge -- ./selftest  for CI: 0, 2 or 5 if it exits 0
  laxity exec --reserve 2ms/8ms --contract gap.toml -- ./selftest  by the limits in gap.toml
  laxity exec -f 50 -a 1 -- ./mydevice                 a policy, as chrt and taskset";

/// What the kernel may call a process or a thread: a `pid_t` that is more than zero.
const NUMBERS: RangeInclusive<i64> = 1..=0x7fff_ffff;
/// It keeps so many bytes of a thread's name, so that nobody with a longer one ever comes.
const LONGEST_NAME: usize = 15;

/// What `exec` takes.
#[derive(Args, Debug)]
pub(crate) struct Exec {
    /// The reservation, such as 2ms/8ms; with auto/8ms, or auto, X is found by what the program takes.
    #[arg(long, value_name = "X/Y", value_parser = reservation)]
    pub(crate) reserve: Option<Reserve>,
    /// Who enforces it; slots, unless this says otherwise.
    #[arg(long, value_enum)]
    pub(crate) enforcer: Option<Enforcer>,
    /// The processor, by the kernel's number; with a policy also several, such as 0-3,5. Without it, of slots the first that is free.
    #[arg(long, short = 'a', value_name = "N", value_parser = processors)]
    pub(crate) processor: Option<CpuSet>,
    /// Keep the program from running outside its slots.
    #[arg(long, value_enum, requires = "reserve")]
    pub(crate) confine: Option<Confine>,
    /// Only threads of these names, which are awaited in a program that laxity starts; `all` are all, as without it.
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        value_parser = thread_name
    )]
    pub(crate) threads: Option<Vec<String>>,
    /// Who holds it too of those that come later; what the program starts, unless this says otherwise.
    #[arg(long, value_enum)]
    pub(crate) follow: Option<Follow>,
    /// Adopt the program with this process, which runs already.
    #[arg(long, value_name = "PID", conflicts_with_all = ["tid", "command"], requires = "reserve", value_parser = clap::value_parser!(u32).range(NUMBERS))]
    pub(crate) pid: Option<u32>,
    /// Adopt one thread, until it ends.
    #[arg(long, value_name = "TID", conflicts_with = "command", requires = "reserve", value_parser = clap::value_parser!(u32).range(NUMBERS))]
    pub(crate) tid: Option<u32>,
    #[command(flatten)]
    pub(crate) policy: PolicyOptions,
    #[command(flatten)]
    pub(crate) json: Json,
    /// Write it as a page.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Judge it by the contract in this file.
    #[arg(long, value_name = "FILE", requires = "reserve")]
    pub(crate) contract: Option<PathBuf>,
    /// Judge it: 98 % of the periods as reserved, unless a contract says otherwise.
    #[arg(long, requires = "reserve")]
    pub(crate) judge: bool,
    /// Write whose the exit code is, and why, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) status_json: Option<PathBuf>,
    /// Say nothing at the end.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// The command and its arguments.
    #[arg(last = true, value_name = "CMD", required_unless_present_any = ["pid", "tid"])]
    pub(crate) command: Vec<OsString>,
}

/// Policies, by the names that chrt gives them.
#[derive(Args, Debug)]
#[group(conflicts_with = "reserve")]
pub(crate) struct PolicyOptions {
    /// SCHED_FIFO of this priority.
    #[arg(long, short, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99), help_heading = "Policies")]
    pub(crate) fifo: Option<u8>,
    /// SCHED_RR of this priority.
    #[arg(long, short, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99), conflicts_with = "fifo", help_heading = "Policies")]
    pub(crate) rr: Option<u8>,
    /// SCHED_OTHER, with the nice value that laxity is called with.
    #[arg(long, short, conflicts_with_all = ["fifo", "rr"], help_heading = "Policies")]
    pub(crate) other: bool,
    /// SCHED_BATCH, with the nice value that laxity is called with, or --nice.
    #[arg(long, short, conflicts_with_all = ["fifo", "rr", "other"], help_heading = "Policies")]
    pub(crate) batch: bool,
    /// SCHED_IDLE.
    #[arg(long, short, conflicts_with_all = ["fifo", "rr", "other", "batch", "nice"], help_heading = "Policies")]
    pub(crate) idle: bool,
    /// SCHED_OTHER with this nice value.
    #[arg(long, short, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(i8).range(-20..=19), conflicts_with_all = ["fifo", "rr"], help_heading = "Policies")]
    pub(crate) nice: Option<i8>,
    /// SCHED_DEADLINE, with -T and -P: --reserve by --enforcer deadline.
    #[arg(long, short, requires_all = ["sched_runtime", "sched_period"], conflicts_with_all = ["fifo", "rr", "other", "batch", "idle", "nice"], help_heading = "Policies")]
    pub(crate) deadline: bool,
    /// X: in nanoseconds, or with a unit.
    #[arg(long, short = 'T', value_name = "X", requires = "deadline", value_parser = nanoseconds, help_heading = "Policies")]
    pub(crate) sched_runtime: Option<u64>,
    /// A deadline before Y, in nanoseconds, or with a unit: a policy of the first thread, of which nothing is told at the end.
    #[arg(long, short = 'D', value_name = "D", requires = "deadline", value_parser = nanoseconds, help_heading = "Policies")]
    pub(crate) sched_deadline: Option<u64>,
    /// Y, and the deadline where none is named: in nanoseconds, or with a unit.
    #[arg(long, short = 'P', value_name = "Y", requires = "deadline", value_parser = nanoseconds, help_heading = "Policies")]
    pub(crate) sched_period: Option<u64>,
}

/// How a program is kept from running outside its slots.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Confine {
    /// By a quota of the fair class.
    Quota,
    /// By the freezer of cgroup v2.
    Freeze,
}

/// What a reservation holds for beside what is there when it begins.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Follow {
    /// Nothing.
    None,
    /// Threads that start later.
    Threads,
    /// These, and the processes that it starts.
    Children,
}

/// How much is to be reserved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reserve {
    Given(Reservation),
    /// As much every so much as it turns out to take.
    Every(Span),
}

/// What is asked for.
pub(crate) enum Asked {
    /// `is_open`: X is, and what is named is for the time in which it is measured.
    Reservation {
        request: ProgramRequest,
        is_open: bool,
    },
    /// Or only that it runs on these processors, as whatever it is.
    Policy(Option<Policy>, Option<CpuSet>),
}

impl Exec {
    /// What is asked for; or what is wrong with it, for which there is no single option.
    pub(crate) fn asked(&self) -> Result<Asked, String> {
        let by_names = self.policy.of_deadline()?;
        if let Some((x, y)) = by_names
            && let Some(deadline) = self.policy.sched_deadline.filter(|at| *at != y)
        {
            let asked = self.only(Some(Policy::Deadline(DeadlineRequest {
                runtime: Service::from_nanos(x),
                deadline: Span::from_nanos(deadline),
                period: Span::from_nanos(y),
            })))?;
            return self.keeps_to_no_processor().map(|()| asked);
        }
        let named = by_names.map(|(x, y)| {
            Reservation::new(Service::from_nanos(x), Span::from_nanos(y))
                .map_err(|error| error.to_string())
        });
        let enforcer = match (named.is_some(), self.enforcer) {
            (true, Some(Enforcer::Slots)) => {
                return Err("--enforcer slots gives no SCHED_DEADLINE: name what is to be in slots with --reserve X/Y, in place of --deadline".to_owned());
            }
            (true, _) | (false, Some(Enforcer::Deadline)) => laxity::Enforcer::Deadline,
            (false, Some(Enforcer::Slots) | None) => laxity::Enforcer::Slots,
        };
        let named = named.transpose()?.map(Reserve::Given);
        let Some(reserve) = self.reserve.or(named) else {
            return self.asked_policy();
        };
        if enforcer == laxity::Enforcer::Deadline {
            self.keeps_to_no_processor()?;
        }
        let mut processors = self.processor.iter().flat_map(CpuSet::iter);
        let processor = processors.next();
        if processors.next().is_some() {
            return Err("slots are on one processor: name one with --processor".to_owned());
        }
        let reservation = match reserve {
            Reserve::Given(reservation) => reservation,
            Reserve::Every(period) => measured_with(period)?,
        };
        let request = ProgramRequest {
            hold: HoldRequest {
                name: self.name(),
                reservation,
                enforcer,
                outside: Outside::AsPlaced,
                processor,
            },
            choice: self.choice()?,
            confinement: self.confine.map(|confine| match confine {
                Confine::Quota => Confinement::Quota,
                Confine::Freeze => Confinement::Freeze,
            }),
            witnessed: self.judge || self.contract.is_some(),
        };
        Ok(Asked::Reservation {
            request,
            is_open: matches!(reserve, Reserve::Every(_)),
        })
    }

    /// By `SCHED_DEADLINE` there is none, and nothing outside it.
    fn keeps_to_no_processor(&self) -> Result<(), String> {
        let only_slots = [
            ("--processor", self.processor.is_some()),
            ("--confine", self.confine.is_some()),
        ];
        match given(&only_slots) {
            Some(option) => Err(format!(
                "{option} is for --enforcer slots: the kernel gives SCHED_DEADLINE on every processor, and nothing outside it"
            )),
            None => Ok(()),
        }
    }

    /// A policy, which is the whole program's own: nobody holds a part of it to that, or looks at what it delivers.
    fn only(&self, policy: Option<Policy>) -> Result<Asked, String> {
        let of_a_reservation = [
            ("--enforcer", self.enforcer.is_some()),
            ("--confine", self.confine.is_some()),
            ("--threads", self.threads.is_some()),
            ("--follow", self.follow.is_some()),
            ("--contract", self.contract.is_some()),
            ("--judge", self.judge),
            ("--json", self.json.path().is_some()),
            ("--html", self.html.is_some()),
        ];
        match given(&of_a_reservation) {
            Some(option) => Err(format!(
                "{option} is for a reservation: ask for one, with --reserve X/Y, in place of a policy"
            )),
            None => Ok(Asked::Policy(policy, self.processor.clone())),
        }
    }

    fn asked_policy(&self) -> Result<Asked, String> {
        let policy = &self.policy;
        let nice = || match policy.nice {
            Some(nice) => Ok(nice.into()),
            // As it would have from who calls us.
            None => getpriority_process(None).map_err(|error| {
                format!("the present nice value is not known: {error}: name one with --nice")
            }),
        };
        let asked = match (policy.fifo, policy.rr) {
            (Some(priority), _) => Some(Policy::Fifo(priority)),
            (_, Some(priority)) => Some(Policy::RoundRobin(priority)),
            _ if policy.idle => Some(Policy::Idle),
            _ if policy.batch => Some(Policy::Batch { nice: nice()? }),
            _ if policy.other || policy.nice.is_some() => Some(Policy::Other { nice: nice()? }),
            _ if self.processor.is_some() => None,
            _ => return Err("name what it is to have: --reserve X/Y, or a policy".to_owned()),
        };
        self.only(asked)
    }

    fn choice(&self) -> Result<Choice, String> {
        let follow = match (self.tid, self.follow) {
            (None, follow) => follow.unwrap_or(Follow::Children),
            (Some(_), None | Some(Follow::None)) => Follow::None,
            (Some(_), Some(Follow::Threads | Follow::Children)) => {
                return Err(
                    "--follow is for a program: adopt it whole, with --pid in place of --tid"
                        .to_owned(),
                );
            }
        };
        let mut names = self.threads.clone().unwrap_or_default();
        if names.iter().any(|name| name == "all") {
            names.clear();
        }
        Ok(Choice {
            names,
            only: self.tid.map(|tid| Tid(tid.cast_signed())),
            new_threads: follow != Follow::None,
            children: follow == Follow::Children,
        })
    }

    /// The file that is executed, or was, if that can be found.
    pub(crate) fn executable(&self) -> Option<PathBuf> {
        if let Some(program) = self.command.first() {
            return look_for(program).ok();
        }
        let number = self.pid.or(self.tid)?;
        Some(format!("/proc/{number}/exe").into())
    }

    /// The program, for people: as part of a line.
    pub(crate) fn name(&self) -> String {
        match (self.command.first(), self.pid, self.tid) {
            (Some(program), ..) => plain(&program.to_string_lossy()).into_owned(),
            (None, Some(pid), _) => format!("process {pid}"),
            (None, None, Some(tid)) => format!("thread {tid}"),
            (None, None, None) => String::new(),
        }
    }
}

impl PolicyOptions {
    /// X and Y of `SCHED_DEADLINE`, if that is asked for.
    fn of_deadline(&self) -> Result<Option<(u64, u64)>, String> {
        let of_deadline = [
            ("--sched-runtime", self.sched_runtime.is_some()),
            ("--sched-deadline", self.sched_deadline.is_some()),
            ("--sched-period", self.sched_period.is_some()),
        ];
        match given(&of_deadline) {
            // Beside another policy clap lets it pass that `--deadline` is missing, since that may not be there.
            Some(option) if !self.deadline => Err(format!(
                "{option} is for --deadline: name that in place of another policy"
            )),
            _ => Ok(self.sched_runtime.zip(self.sched_period)),
        }
    }
}

/// The first of these options that was given.
fn given<'a>(options: &[(&'a str, bool)]) -> Option<&'a str> {
    let given = options.iter().find(|(_, is_given)| *is_given);
    given.map(|(option, _)| *option)
}

fn reservation(text: &str) -> Result<Reserve, String> {
    if text == "auto" {
        return Ok(Reserve::Every(AUTO_PERIOD));
    }
    match units::asked(text).map_err(|error| error.to_string())? {
        units::Asked::Given(reservation) => Ok(Reserve::Given(reservation)),
        units::Asked::Open(Open::Service(period)) => Ok(Reserve::Every(period)),
        units::Asked::Open(_) => {
            Err("of a program only X can be measured: write auto/8ms".to_owned())
        }
    }
}

fn processors(text: &str) -> Result<CpuSet, String> {
    let set = CpuSet::parse(text).filter(|set| !set.is_empty());
    set.ok_or_else(|| "write a number, or several such as 0-3,5".to_owned())
}

fn thread_name(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("no thread has an empty name: write one, or several with a comma between two, such as worker,io".to_owned());
    }
    if text.len() > LONGEST_NAME {
        return Err(format!(
            "no thread has a name of more than {LONGEST_NAME} bytes: the kernel cuts it there, and `ps -eLo comm` shows what is left"
        ));
    }
    Ok(text.to_owned())
}

fn nanoseconds(text: &str) -> Result<u64, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let span = units::span(text).map_err(|error| error.to_string())?;
    Ok(span.as_nanos())
}

#[cfg(test)]
mod tests;
