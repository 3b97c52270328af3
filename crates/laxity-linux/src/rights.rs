//! What this process may do, found by trying it; and how a live test says that it cannot run here.

use crate::sched::{self, Policy, Restore, Tid};
use laxity_model::{Service, Span};

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
        Right::Deadline => try_policy(
            own,
            Policy::Deadline {
                runtime: Service::from_micros(10),
                deadline: Span::from_millis(10),
                period: Span::from_millis(10),
            },
        ),
        Right::Freezer => crate::confine::Freezer::create("probe")
            .err()
            .map(|error| error.to_string()),
        Right::FairQuota => crate::confine::FairQuota::create("probe")
            .err()
            .map(|error| error.to_string()),
        Right::Processors(wanted) => {
            let found = sched::affinity(own).map_or(0, |set| set.iter().count());
            (found < wanted).then(|| format!("{wanted} processors are needed, {found} may be used"))
        }
    }
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

/// For live tests: whether the right is there. Where it is not, says so on standard error, or panics where the environment
/// variable `LAXITY_REQUIRE_LIVE` is `1`, so that a check that must run live never passes by being skipped.
///
/// # Panics
///
/// As said.
#[must_use]
pub fn require(right: Right) -> bool {
    let Some(reason) = missing(right) else {
        return true;
    };
    let required = std::env::var("LAXITY_REQUIRE_LIVE").is_ok_and(|value| value == "1");
    assert!(!required, "a live test cannot run here: {reason}");
    eprintln!("skipped: {reason}");
    false
}
