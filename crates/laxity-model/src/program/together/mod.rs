//! Executors of several processes that take turns on one processor, in one order of all their handlers.
//!
//! Gopalakrishnan, Parulkar, "Real-time Upcalls: A Mechanism to Provide Real-time Processing Guarantees", WUCS-95-06, 1995, §6.
//!
//! They share a [`Region`] of memory. Each has a *seat* there, with a row for each of its handlers: how urgent its jobs are, and when the next is released. One of
//! them has the *baton*, and only it calls handlers. It looks at the rows of all others ([`Member`]) and hands the baton straight to who goes first; where nobody
//! has anything to do it rests with the one who has the earliest release. Who gets something to do meanwhile without having the baton says so ([`Region::call`]),
//! and takes it where it rests.
//!
//! A *sentinel* runs when nobody else does: a holder that is at work then is blocked, stopped or dead, and the baton is taken from it ([`Sentinel`]). A *watchdog* sees
//! who does not come back from a handler, and takes its seat away ([`Watchdog`]).
//!
//! Everything here is decided by integers that another process may have forged: indices are checked, and whatever is read, every function returns.

mod guard;
mod member;
mod region;
mod standing;

pub use guard::{Occupant, Sentinel, Vigil, Watchdog, Watched, detection, limit};
pub use member::{Act, Member};
pub(super) use region::CONTROL;
pub use region::{ROWS, Region, SEATS, Terms, Turn};
pub use standing::Standing;

use crate::Instant;
use crate::executor::Claim;

/// What is seen of the others beside a running job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// One of them has a job that goes before it, or the baton is gone.
    pub goes_first: bool,
    /// Until when no job that goes before it is released, but by a call.
    pub until: Instant,
}

/// The other processes whose handlers take turns with those of an executor.
pub trait Others {
    /// Whether anything may have changed since they were [heard](Self::hear). One relaxed load.
    fn is_called(&self) -> bool;

    /// Changes so far are known: to be asked before anything is looked at.
    fn hear(&mut self);

    /// What there is beside a running job.
    fn look(&mut self, now: Instant, running: Claim) -> Seen;

    /// Whether one of these own jobs is to run now; where not, the own claims are [published](Self::publish), and the executor waits.
    fn is_turn(&mut self, now: Instant, own: &mut dyn Iterator<Item = Claim>) -> bool;

    /// The own claims, for the others to read while they have the baton.
    fn publish(&mut self, now: Instant, own: &mut dyn Iterator<Item = Claim>);

    /// A stretch of work without a look begins.
    fn begins(&mut self, now: Instant);
}
