//! What this process may do, found by trying it; and how a live test says that it cannot run here.

use std::fs::{File, OpenOptions};
use std::io;

use laxity_model::{Service, Span};

use crate::doctor::{self, DeadlineParameters, Machine, Operation};
use crate::os::sched::{self, Policy, Restore, Tid};

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
#[must_use]
pub fn missing(right: Right) -> Option<String> {
    let own = Tid::current();
    match right {
        Right::RealTime => try_policy(own, Policy::Fifo(99)),
        Right::Deadline => foreseen_refusal(),
        Right::Freezer => crate::enforce::confine::Freezer::create("probe")
            .err()
            .map(|error| error.to_string()),
        Right::FairQuota => crate::enforce::confine::FairQuota::create("probe", 10_000)
            .err()
            .map(|error| error.to_string()),
        Right::Processors(wanted) => {
            let found = sched::affinity(own).map_or(0, |set| set.iter().count());
            (found < wanted).then(|| format!("{wanted} processors are needed, {found} may be used"))
        }
    }
}

/// What would stand against any reservation by `SCHED_DEADLINE`, however small. Not tried: a trial would hold bandwidth until its
/// zero-lag time.
fn foreseen_refusal() -> Option<String> {
    let smallest = Operation::SetDeadline(DeadlineParameters {
        runtime: Service::from_micros(10),
        deadline: Span::from_millis(10),
        period: Span::from_millis(10),
    });
    let diagnosis = doctor::foresee(&smallest, &Machine::probe())?;
    // That others hold all bandwidth now is no missing right.
    (diagnosis.errno() != Some(libc::EBUSY)).then_some(diagnosis.what)
}

fn try_policy(own: Tid, policy: Policy) -> Option<String> {
    let _restore = match Restore::of(own) {
        Ok(restore) => restore,
        Err(error) => return Some(error.to_string()),
    };
    sched::set_policy(own, policy)
        .err()
        .map(|error| error.to_string())
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
#[must_use]
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
