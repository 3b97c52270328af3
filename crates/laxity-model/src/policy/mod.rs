//! Who runs next: the policies, as state machines that take `now` and return effects.
//!
//! * [`Policy`]: what all of them are to their caller.
//! * [`Rank`]: how urgent somebody is, in whichever of them.
//! * [`bands`]: priority bands with quanta and boosts, as the modem study's host has them.
//! * [`classes`]: the run queue of a Linux processor, real-time classes above the fair class.
//! * [`fair`]: earliest eligible virtual deadline first, the fair class of Linux.
//! * [`deadline`]: constant bandwidth servers, and who of their holders has a processor.
//! * [`slots`]: tables of time slots, and their planner.
//! * [`three_classes`]: current by deadline, best effort, early by logical arrival: channels on a processor and on a link.
//! * [`raise`]: who may become more urgent for a while, how far, and for how long.
//! * [`queue`]: the queues that policies and machines are made of.

pub mod bands;
pub mod classes;
pub mod deadline;
pub mod fair;
pub mod queue;
pub mod raise;
pub mod slots;
pub mod three_classes;

use crate::{Instant, Priority};

/// How urgent an activity becomes, or is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rank {
    /// By priority, as threads are.
    Priority(Priority),
    /// By when it is due, as handlers of an executor are that goes by deadlines.
    Deadline(Instant),
}

/// Who is to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// Who; `None`: nobody is ready.
    pub who: Option<u32>,
    /// When [`Policy::decide`] must be asked again at the latest, although nothing else happens; [`Instant::MAX`] if nothing changes by
    /// itself.
    pub until: Instant,
}

/// Decides who of those that are ready has the processor, and until when.
///
/// The caller numbers those who compete from 0 and tells what happens and when. A policy reads no clock and does nothing by itself; time
/// must not go backwards from one call to the next. [`pause`](Self::pause) and every change may leave what was decided before untrue:
/// the next [`decide`](Self::decide) tells.
pub trait Policy {
    /// What the policy must know of somebody who becomes ready.
    type Entry;

    /// Somebody who was not ready is.
    fn enter(&mut self, who: u32, entry: Self::Entry, now: Instant);

    /// Somebody is no longer ready. Nothing happens if he was not.
    fn leave(&mut self, who: u32, now: Instant);

    /// The one that runs lets others go first that the policy puts before it: its equals, but where what is left of a job has its turn.
    fn yield_now(&mut self, who: u32, now: Instant);

    /// Something above all of them takes the processor, until [`decide`](Self::decide) is asked again.
    fn pause(&mut self, now: Instant);

    /// From `at` on, which is now, somebody is so urgent, ready or not: [`raise::Raises`] says when that is, and when it is over. A rank that the policy does
    /// not go by changes nothing.
    fn raise(&mut self, who: u32, rank: Rank, at: Instant) {
        let _ = (who, rank, at);
    }

    /// Who runs from now on.
    fn decide(&mut self, now: Instant) -> Decision;
}
