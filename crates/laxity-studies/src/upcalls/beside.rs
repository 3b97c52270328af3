//! What runs beside upcalls, as an ordinary program on their processor.

use std::fmt::Display;
use std::process::{Command, Stdio};

use laxity::command::{CpuSet, Held, ProcessGroup, RunningCommand, look_for};
use laxity_lab::bench::Runner;
use laxity_model::{HostError, Scheduling};

/// A background load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Load {
    /// Nothing of ours.
    None,
    /// A C compiler on functions that are generated, again and again.
    Compile,
    /// A search for primes by trial division.
    Primes,
    /// A program of the distribution that takes much memory: a compressor on random bytes.
    Heavy,
}

impl Load {
    /// All that may run beside.
    pub const ALL: [Self; 4] = [Self::None, Self::Compile, Self::Primes, Self::Heavy];

    /// What it is called in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "nothing",
            Self::Compile => "a compile",
            Self::Primes => "a search for primes",
            Self::Heavy => "a compressor",
        }
    }

    /// The program that it needs.
    const fn program(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Compile => Some("cc"),
            Self::Primes => Some("sh"),
            Self::Heavy => Some("xz"),
        }
    }

    const fn script(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Compile => COMPILE,
            Self::Primes => PRIMES,
            Self::Heavy => "while :; do head -c 32000000 /dev/urandom | xz -6 -T1 >/dev/null; done",
        }
    }

    /// Whether this machine has what it needs.
    pub fn is_there(self) -> bool {
        self.program()
            .is_none_or(|program| look_for(program.as_ref()).is_ok())
    }

    /// Starts it on the first processor of programs; it ends, with all that it started, at the latest when what this returns is dropped. Nothing in the twin.
    ///
    /// # Errors
    ///
    /// [`HostError::Failed`] if it cannot be started.
    pub fn start(self, host: &Runner<'_>) -> Result<Option<Running>, HostError> {
        let Runner::Live(live, _) = host else {
            return Ok(None);
        };
        if self == Self::None {
            return Ok(None);
        }
        let on = CpuSet::single(live.config().processors[0]);
        let mut command = Command::new("sh");
        command
            .args(["-c", self.script()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let place = |held: &Held| held.schedule(Scheduling::Fair { nice: 0 }, &on);
        let running = RunningCommand::start(command, ProcessGroup::Own, place);
        let command = running.map_err(|error| self.failed(&error))?;
        Ok(Some(Running {
            load: self,
            command,
        }))
    }

    fn failed(self, why: &dyn Display) -> HostError {
        HostError::Failed(format!("{}: {why}", self.name()))
    }
}

/// A load that runs.
#[derive(Debug)]
pub struct Running {
    load: Load,
    command: RunningCommand,
}

impl Running {
    /// Ends it.
    ///
    /// # Errors
    ///
    /// [`HostError::Failed`]: it had ended by itself, and so there was no load; or not all of it can be ended.
    pub fn end(self) -> Result<(), HostError> {
        let end = self.command.end();
        let end = end.map_err(|error| self.load.failed(&error))?;
        match end.by_itself {
            Some(_) => Err(self.load.failed(&"ended by itself")),
            None => Ok(()),
        }
    }
}

const COMPILE: &str = "\
while :; do
  i=0
  while [ $i -lt 400 ]; do
    echo \"double f$i(double *a, int n) { double s = $i; for (int k = 0; k < n; k++) s += a[k] * a[n - k] + s / (k + $i + 1); return s; }\"
    i=$((i + 1))
  done | cc -O3 -x c -c - -o /dev/null
done";

const PRIMES: &str = "\
n=1000003
while :; do
  d=3
  while [ $((d * d)) -le $n ] && [ $((n % d)) -ne 0 ]; do d=$((d + 2)); done
  n=$((n + 2))
done";
