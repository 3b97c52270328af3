//! The limits on real-time work, read no oftener than they are written.
//!
//! Since Linux 6.17 whoever reads `sched_rt_runtime_us` or `sched_rt_period_us` has the kernel make its scheduling domains anew, and reckon
//! its deadline bandwidth from the threads that it finds then: what a thread that has just ended still holds is missing, and is taken off once
//! more at its zero-lag time. Then nothing at all is admitted, until the next reading.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::process;
use std::sync::{Mutex, PoisonError};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

use laxity_model::Span;
use laxity_model::analysis::multiprocessor::KernelLimits;

use super::fact::{Fact, number, read_as};

const RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const PERIOD: &str = "/proc/sys/kernel/sched_rt_period_us";
const SHORTEST: &str = "/proc/sys/kernel/sched_deadline_period_min_us";
const LONGEST: &str = "/proc/sys/kernel/sched_deadline_period_max_us";

/// The limit on all real-time work together, and the kernel's bounds on deadline periods.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Throttling {
    /// `sched_rt_runtime_us`: the real-time work in each period, in microseconds; `None` without a limit (−1).
    pub runtime_us: Fact<Option<u64>>,
    /// `sched_rt_period_us`.
    pub period_us: Fact<u64>,
    /// The shortest period of a deadline thread.
    pub deadline_period_min: Fact<Span>,
    /// The longest period of a deadline thread.
    pub deadline_period_max: Fact<Span>,
}

impl Throttling {
    /// Why a yes of this kernel is no promise: without a limit on real-time work it admits everything.
    pub(crate) fn admits_all(&self) -> Option<String> {
        match &self.runtime_us {
            Ok(Some(_)) => None,
            Ok(None) => Some(KernelLimits::UNLIMITED.to_owned()),
            Err(unknown) => Some(format!(
                "whether the kernel admits reservations by what it has is not known: {unknown}"
            )),
        }
    }
}

/// What was read, and how a write after it shows.
struct Kept {
    /// A child shares the descriptor, and would take its parent's news.
    process: u32,
    writes: OwnedFd,
    /// While they are open, whoever else opens the files has the same ones, whose writes are told.
    _open: Vec<File>,
    throttling: Throttling,
}

static KEPT: Mutex<Option<Kept>> = Mutex::new(None);

impl Kept {
    /// What is read now; `None` where writes to it cannot be told.
    fn read() -> Option<Self> {
        let writes = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        let watched = |file| {
            let open = File::open(file).ok()?;
            inotify::add_watch(&writes, file, WatchFlags::MODIFY).ok()?;
            Some(open)
        };
        let open = [RUNTIME, PERIOD, SHORTEST, LONGEST]
            .into_iter()
            .map(watched);
        let open = open.collect::<Option<_>>()?;
        Some(Self {
            process: process::id(),
            writes,
            _open: open,
            // Not before writes are told.
            throttling: read(),
        })
    }

    fn holds(&self) -> bool {
        let mut events = [0; 1024];
        let written = rustix::io::read(&self.writes, &mut events);
        self.process == process::id() && written == Err(rustix::io::Errno::AGAIN)
    }
}

/// The limits on real-time work, as they are now: as this process read them, if nobody wrote to them since by this mount of `/proc`.
pub(crate) fn throttling() -> Throttling {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if !kept.as_ref().is_some_and(Kept::holds) {
        *kept = Kept::read();
    }
    kept.as_ref()
        .map_or_else(read, |kept| kept.throttling.clone())
}

/// Has the kernel reckon its deadline bandwidth anew, from the threads that there are: what was taken off twice is there again.
pub(crate) fn have_reckoned_anew() {
    // Where it cannot be read nothing was reckoned wrong by reading.
    let _ = fs::read(RUNTIME);
}

/// So many microseconds.
pub(crate) fn span_of_micros(micros: u64) -> Span {
    Span::from_nanos(micros.saturating_mul(1_000))
}

fn read() -> Throttling {
    Throttling {
        runtime_us: read_as(RUNTIME, |text| {
            let runtime: i64 = text.parse().ok()?;
            Some(u64::try_from(runtime).ok())
        }),
        period_us: number(PERIOD),
        deadline_period_min: number(SHORTEST).map(span_of_micros),
        deadline_period_max: number(LONGEST).map(span_of_micros),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::rights::{Right, lacks, require};

    #[test]
    fn what_was_read_holds_until_it_is_written() {
        let Some(_live) = require(&[Right::RealTime]) else {
            return;
        };
        let kept = Kept::read().unwrap();
        let text = fs::read(RUNTIME).unwrap();
        assert!(kept.holds());
        if let Err(error) = fs::write(RUNTIME, &text) {
            return lacks(&format!("writing {RUNTIME}: {error}"));
        }
        assert!(!kept.holds());
        assert_eq!(Kept::read().unwrap().throttling, throttling());
    }
}
