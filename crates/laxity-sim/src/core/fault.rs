//! What a program can do wrong while it runs.

use laxity_model::policy::raise::NotRaised;
use laxity_model::{ActivityId, HostError};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    NoSuchPort(u32),
    NoSuchActivity(u16),
    NoSuchMark(u16),
    DeferredWaitsForTime,
    NoReservation,
    NotConstrained,
    NotRaised(ActivityId, NotRaised),
    /// What the body says itself.
    Body(&'static str),
    Livelock {
        steps: u32,
        at_ns: u64,
    },
}

impl Fault {
    pub(crate) fn by(self, name: &str) -> HostError {
        HostError::BadProgram(match self {
            Self::NoSuchPort(port) => {
                format!("`{name}` uses port {port}, which the program does not have")
            }
            Self::NoSuchActivity(activity) => format!(
                "`{name}` records something of activity {activity}, which the program does not have"
            ),
            Self::Body(what) => format!("`{name}`: {what}"),
            Self::NoSuchMark(mark) => {
                format!("`{name}` records mark {mark}, which the program does not name")
            }
            Self::DeferredWaitsForTime => {
                format!(
                    "`{name}` is a deferred call and waits for time: it may wait on semaphores only"
                )
            }
            Self::NoReservation => {
                format!("`{name}` begins, changes or ends a reservation but declares none")
            }
            Self::NotConstrained => format!(
                "`{name}` asks for a time constraint, but has no reservation by slots and is not declared to ask"
            ),
            Self::NotRaised(activity, why) => {
                format!("`{name}` raises activity {activity}, {why}")
            }
            Self::Livelock { steps, at_ns } => format!(
                "time stands still: {steps} steps at {at_ns} ns, the last by `{name}`: a body that neither waits nor charges time runs for ever"
            ),
        })
    }
}
