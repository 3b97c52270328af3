//! A driver and its clients' threads as bodies of a program, so that the same framework runs in virtual time.
//!
//! * [`Handler`] is the driver at interrupt level: each interrupt is one or more [polls](crate::Driver::poll).
//! * [`Signalling`] is any client that queues, which also wakes the activity that takes from its queue.
//! * [`Through`] is how clients there wake and [raise](laxity_model::policy::raise) others of the program.
//! * [`Shepherd`] is such a thread (Liao, Tan, Campbell 1996, §3.2): it takes one packet after the other from its [`Source`], works on it, and hands it on.
//! * [`Crew`] is a client with all of its threads.
//!
//! What a packet costs in virtual time is said by [`Work`]. Live it takes its own time.

mod crew;
mod handler;
mod shepherd;
mod source;

pub use crew::{Crew, Installed};
pub use handler::{Handler, Interrupt, Through};
use laxity_model::Service;
pub use shepherd::{Shepherd, Signalling};
pub use source::Source;

/// What packets cost whoever works on them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Work {
    /// Each packet.
    pub packet: Service,
    /// And 1,024 bytes of it.
    pub kilobyte: Service,
    /// Whether that is burnt, live too; else it is charged, for work that is really done.
    pub is_burnt: bool,
}

impl Work {
    /// What a packet of so many bytes costs, to the nanosecond below.
    #[must_use]
    pub fn of(self, bytes: usize) -> Service {
        let copied = u128::from(self.kilobyte.as_nanos()) * bytes as u128 / 1_024;
        let copied = Service::from_nanos(copied.try_into().unwrap_or(u64::MAX));
        self.packet.checked_add(copied).unwrap_or(Service::MAX)
    }
}
