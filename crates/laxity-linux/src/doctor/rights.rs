//! What this process may do, found by trying it; and how a live test says that it cannot run here.

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io;

use crate::doctor::{self, Machine, Operation};
use crate::enforce::confine::{FairQuota, Freezer};
use crate::os::sched::{self, Policy, Restore, SchedError, Tid};

/// Something a live run needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Right {
    /// `SCHED_FIFO` up to priority 99.
    RealTime,
    /// `SCHED_DEADLINE`.
    Deadline,
    /// A cgroup v2 hierarchy in which groups may be made.
    Freezer,
    /// A group with the fair class's bandwidth control.
    FairQuota,
    /// At least this many processors to run on.
    Processors(usize),
}

/// Why the right is missing; `None` where it is there. Tries it on the calling thread, and restores that.
pub fn missing(right: Right) -> Option<String> {
    let refused: Result<(), Box<dyn Error>> = match right {
        Right::RealTime => try_fifo().map_err(Into::into),
        Right::Deadline => may_reserve().map_err(Into::into),
        Right::Freezer => Freezer::create("probe").map(drop).map_err(Into::into),
        Right::FairQuota => FairQuota::create("probe", 10_000)
            .map(drop)
            .map_err(Into::into),
        Right::Processors(wanted) => {
            let found = sched::affinity(Tid::current()).map_or(0, |set| set.len());
            let enough = (found >= wanted).then_some(());
            enough.ok_or_else(|| {
                format!("{wanted} processors are needed, {found} may be used").into()
            })
        }
    };
    refused.err().map(|error| error.to_string())
}

/// What would stand against any reservation by `SCHED_DEADLINE`, however small. Not tried: a trial would hold bandwidth until its
/// zero-lag time.
fn may_reserve() -> Result<(), String> {
    match doctor::foresee(&Operation::SMALLEST_RESERVATION, &Machine::probe()) {
        // That others hold all bandwidth now is no missing right.
        Some(why) if why.errno() != Some(libc::EBUSY) => Err(why.what),
        _ => Ok(()),
    }
}

fn try_fifo() -> Result<(), SchedError> {
    let _restore = Restore::of(Tid::current())?;
    sched::set_policy(Tid::current(), Policy::Fifo(99))
}

/// Held by a live test: no other live test of any process runs meanwhile, since each would disturb what the other counts on
/// (bandwidth, ranks, processors).
#[derive(Debug)]
pub struct LiveTest {
    _lock: Option<File>,
}

/// For live tests: waits for its turn and returns a guard if all rights are there. Where one is not, says so on standard error
/// and returns `None`; or panics where the environment variable `LAXITY_REQUIRE_LIVE` is `1`, so that a check that must run live
/// never passes by being skipped.
///
/// # Panics
///
/// As said.
pub fn require(rights: &[Right]) -> Option<LiveTest> {
    let turn = LiveTest {
        _lock: take_turn().ok(),
    };
    let Some(reason) = rights.iter().find_map(|right| missing(*right)) else {
        return Some(turn);
    };
    let required = std::env::var("LAXITY_REQUIRE_LIVE").is_ok_and(|value| value == "1");
    assert!(!required, "a live test cannot run here: {reason}");
    eprintln!("skipped: {reason}");
    None
}

/// A lock on a file that all users' tests share. Where it cannot be had, tests may disturb each other, but still run.
fn take_turn() -> io::Result<File> {
    let path = std::env::temp_dir().join("laxity-live-test.lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)?;
    file.lock()?;
    Ok(file)
}
