//! Processes that an experiment starts: this program once more, each with a part of its own.

use std::fmt::Display;
use std::fs;
use std::io::{self, BufRead as _, BufReader, PipeReader, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;

use laxity::command::{CpuSet, Held, Policy, ProcessGroup, RunningCommand};
use laxity::now;
use laxity::observe::Disturbances;
use laxity_lab::bench::{Runner, Said};
use laxity_model::{
    Context, Host as _, HostError, Instant, Placement, ProcessorId, Program, Service, Step, Usage,
    Whereabouts,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// FIFO priority of whoever is real-time.
pub(crate) const PRIORITY: u8 = 80;

/// A process, and what it says.
pub(crate) struct Peer {
    name: String,
    says: BufReader<PipeReader>,
    process: RunningCommand,
}

/// What failed of what.
pub(crate) fn failed<E: Display>(what: &str) -> impl Fn(E) -> HostError + '_ {
    move |error| HostError::Failed(format!("{what}: {error}"))
}

impl Peer {
    /// Starts one that does a part of an experiment, and has this as its standard input. It is scheduled so on one processor, by the kernel's number; `None`: as this process is.
    pub(crate) fn start(
        (experiment, part): (&str, &impl Serialize),
        name: &str,
        input: impl Into<OwnedFd>,
        place: Option<(Policy, usize)>,
    ) -> Result<Self, HostError> {
        let words = serde_json::to_string(part);
        let words = words.map_err(|error| HostError::Failed(error.to_string()))?;
        let mut command = Command::new(std::env::current_exe().map_err(failed(name))?);
        command.args(["peer", experiment, &words]);
        Self::of(command, name, input, place)
    }

    /// The same of any program.
    pub(crate) fn of(
        mut command: Command,
        name: &str,
        input: impl Into<OwnedFd>,
        place: Option<(Policy, usize)>,
    ) -> Result<Self, HostError> {
        let (says, out) = io::pipe().map_err(failed(name))?;
        command.stdin(input.into()).stdout(out);
        let place = |held: &Held| match place {
            Some((policy, processor)) => held.schedule(policy, &CpuSet::single(processor)),
            None => Ok(()),
        };
        let process = RunningCommand::start(command, ProcessGroup::Own, place);
        let process = process.map_err(|error| HostError::Failed(format!("{name}: {error}")))?;
        Ok(Self {
            says: BufReader::new(says),
            process,
            name: name.to_owned(),
        })
    }

    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.process.id().0.cast_unsigned()
    }

    /// The next line that it says.
    pub(crate) fn line(&mut self) -> Result<String, HostError> {
        let mut line = String::new();
        let read = self.says.read_line(&mut line);
        match read.map_err(failed(&self.name))? {
            0 => Err(HostError::Failed(format!(
                "{} ended before its time, and said why",
                self.name
            ))),
            _ => Ok(line),
        }
    }

    /// All further lines to the one by which it ends well, which is left out.
    pub(crate) fn lines_to(&mut self, last: &str) -> Result<Vec<String>, HostError> {
        let mut lines = Vec::new();
        loop {
            let line = self.line()?;
            if line.trim_end() == last {
                return Ok(lines);
            }
            lines.push(line);
        }
    }

    /// It has not ended, or it has ended well.
    pub(crate) fn is_well(&mut self) -> Result<(), HostError> {
        let ended = self.process.ended().map_err(failed(&self.name))?;
        let ill = ended.filter(|ended| !ended.status.success());
        ill.map_or(Ok(()), |ended| Err(failed(&self.name)(ended.status)))
    }

    /// What has become of it.
    pub(crate) fn told<T: DeserializeOwned>(mut self) -> Result<T, HostError> {
        let line = self.line()?;
        serde_json::from_str(&line).map_err(|error| HostError::Failed(error.to_string()))
    }
}

/// What a process says to whoever started it: a line.
pub(crate) fn say(what: &str) -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(out, "{what}")?;
    out.flush()
}

/// What a process says at its end.
pub(crate) fn tell(what: &impl Serialize) -> io::Result<()> {
    say(&serde_json::to_string(what)?)
}

/// The host watches its processor until then, where processes have it: what halted them.
pub(crate) fn watch(host: &mut Runner<'_>, until: Instant) -> Result<Disturbances, HostError> {
    let Runner::Live(live, said) = host else {
        return Err(HostError::BadProgram("the twin has no processes".into()));
    };
    let mut program = Program::new(1);
    let rest = move |context: &mut dyn Context| match context.now() < until {
        true => Step::SleepUntil(until),
        false => Step::Finish,
    };
    program.add("processes", ProcessorId(0), Placement::External, rest);
    let mut record = live.admit_and_run(program, until.saturating_since(now()))?;
    // It takes for strangers whoever is real-time here, which is they.
    record.notices.clear();
    record.outranked.clear();
    **said = std::mem::take(*said).and(&Said::of(&record));
    // They are not in its program.
    Ok(Disturbances::of_who_ran(&record, [Whereabouts::Anywhere]))
}

/// What threads have used, by the kernel's own count.
#[derive(Clone, Copy, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Used {
    pub(crate) switches: u64,
    service_ns: u64,
}

impl<'a, I: Iterator<Item = &'a Usage>> From<I> for Used {
    fn from(all: I) -> Self {
        let each = all.map(|one| Self {
            switches: one.voluntary_switches + one.involuntary_switches,
            service_ns: one.service.as_nanos(),
        });
        each.sum()
    }
}

impl std::iter::Sum for Used {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            switches: sum.switches + one.switches,
            service_ns: sum.service_ns + one.service_ns,
        })
    }
}

impl Used {
    /// Of the calling thread, since it began.
    pub(crate) fn by_caller() -> io::Result<Self> {
        Self::by(Path::new("/proc/thread-self"))
    }

    /// Of those threads of this process that have such a name, since they began; of none it is an error.
    pub(crate) fn by_named(names: &[&str]) -> io::Result<Self> {
        let mut all = Vec::new();
        for thread in fs::read_dir("/proc/self/task")? {
            let thread = thread?.path();
            if names.contains(&fs::read_to_string(thread.join("comm"))?.trim_end()) {
                all.push(Self::by(&thread)?);
            }
        }
        match all.is_empty() {
            true => Err(io::ErrorKind::NotFound.into()),
            false => Ok(all.into_iter().sum()),
        }
    }

    /// Of a thread of which the kernel tells here.
    fn by(thread: &Path) -> io::Result<Self> {
        let [status, account] =
            ["status", "schedstat"].map(|file| fs::read_to_string(thread.join(file)));
        let used = Self::told(&status?, &account?);
        used.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// By what these files of the kernel say.
    fn told(status: &str, account: &str) -> Option<Self> {
        let count = |key: &str| {
            let mut lines = status.lines();
            let count = lines.find_map(|line| line.strip_prefix(key))?;
            count.trim().parse::<u64>().ok()
        };
        let [voluntary, others] =
            ["voluntary", "nonvoluntary"].map(|kind| count(&format!("{kind}_ctxt_switches:")));
        Some(Self {
            switches: voluntary? + others?,
            service_ns: account.split_whitespace().next()?.parse().ok()?,
        })
    }

    /// Since then.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            switches: self.switches - before.switches,
            service_ns: self.service_ns - before.service_ns,
        }
    }

    pub(crate) fn service(self) -> Service {
        Service::from_nanos(self.service_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_does_not_tell_of_a_thread_is_not_nothing() {
        let status = "voluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t4\n";
        let used = Used::told(status, "5000 6 7").expect("all is there");
        assert_eq!((used.switches, used.service_ns), (7, 5_000));
        for status in [
            "",
            "voluntary_ctxt_switches:\t3\n",
            "nonvoluntary_ctxt_switches:\t4\n",
            "voluntary_ctxt_switches:\tx\nnonvoluntary_ctxt_switches:\t4\n",
        ] {
            assert!(Used::told(status, "5000 6 7").is_none(), "{status}");
        }
        assert!(Used::told(status, "").is_none());
    }

    #[test]
    fn threads_that_are_not_there_have_not_used_nothing() {
        let used = Used::by_named(&["there is none"]).map_err(|error| error.kind());
        assert!(matches!(used, Err(io::ErrorKind::NotFound)), "{used:?}");
    }
}
