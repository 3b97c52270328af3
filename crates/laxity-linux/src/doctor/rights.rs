//! What this process may do, found by trying it; and how a live test says that it cannot run here.

use std::error::Error;
use std::fs::File;

use crate::doctor::{self, Machine, Operation};
use crate::enforce::confine::{FairQuota, Freezer};
use crate::os::life;
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
    /// A descriptor that tells of the end of a single thread (Linux 6.9).
    ThreadPidfd,
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
        Right::ThreadPidfd => life::can_watch().map_err(Into::into),
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
    let turn = turn();
    let Some(reason) = rights.iter().find_map(|right| missing(*right)) else {
        return Some(turn);
    };
    lacks(&reason);
    None
}

/// Waits until no other live test runs on this machine, by a lock on a file that all users' tests share. Where that cannot be had, tests
/// may disturb each other, but still run.
pub fn turn() -> LiveTest {
    let path = std::env::temp_dir().join("laxity-live-test.lock");
    // Another user may have made it: then it can be read only, which is enough.
    let file = File::open(&path).or_else(|_| File::create(&path));
    let locked = |file: File| file.lock().map(|()| file);
    LiveTest {
        _lock: file.and_then(locked).ok(),
    }
}

/// Says that the calling test is skipped, and why.
///
/// # Panics
///
/// Where the environment variable `LAXITY_REQUIRE_LIVE` is `1`.
pub fn lacks(reason: &str) {
    let required = std::env::var("LAXITY_REQUIRE_LIVE").is_ok_and(|value| value == "1");
    assert!(!required, "LAXITY_REQUIRE_LIVE=1, and {reason}");
    skip(reason);
}

/// Says that the calling test is skipped, and why, even where live tests are required: for what no right of the tester can cure.
pub fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}
