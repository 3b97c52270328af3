//! How an activity becomes more urgent for a while: who may, how far, from when, and when that is over.
//!
//! A *raise* says how urgent an activity is from an instant on. It is what a packet's arrival does to whoever takes the packet (the network interface paper's §5): critical at once, or
//! workahead until its time comes, which is promoted then. So it is:
//!
//! * of one *turn*: of the one that the activity is at, or, where it waits, of the next. When the activity waits again, or ends, it is what it was placed as, and what was arranged for later
//!   never happens. One that does not wait between two packets says itself how urgent it is with the next.
//! * the last word: what was arranged for later and has not happened yet is replaced, by a raise to less, too.
//! * never above what was declared for the activity, which is what admission counts it as: a raise to more is one to that. Down it may go as far as it likes.
//!
//! [`Raises`] decides so of threads. What is on an executor has deadlines, of which its [`Handlers`](crate::executor::Handlers) decide the same way: they are told through a port.

use alloc::vec::Vec;

use super::Rank;
use crate::{ActivityId, Instant, PortId, Priority, Span};

/// How urgent an activity may become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Highest {
    /// A thread of one of the 32 priorities: it may have this one.
    Priority(Priority),
    /// One on an executor that goes by deadlines: its jobs may be due so soon after their release.
    Deadline(Span),
}

/// What a host does when somebody is raised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Nothing yet, or nothing that is not so already.
    Nothing,
    /// The thread has this priority from now on.
    Becomes(Priority),
    /// This goes into the port, by which the activity's executor is told.
    Tell(PortId, [u64; 2]),
}

/// Why nobody was raised.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotRaised {
    /// The program declares nothing of the kind.
    #[error("which is not declared to be raised")]
    Undeclared,
    /// A thread has a priority, and what is on an executor a deadline.
    #[error("by a priority where it has deadlines, or by a deadline where it has a priority")]
    OtherKind,
}

/// A raise as an executor is told of it: the deadline, and from when on.
pub(crate) fn told(deadline: Instant, at: Instant) -> [u64; 2] {
    [deadline.as_nanos(), at.as_nanos()]
}

/// The same read.
pub(crate) fn heard([deadline, at]: [u64; 2]) -> (Instant, Instant) {
    (Instant::from_nanos(deadline), Instant::from_nanos(at))
}

/// A thread that may be raised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Thread {
    own: Priority,
    highest: Priority,
    /// What it has now.
    rank: Priority,
    /// What it will have, and from when.
    later: Option<(Instant, Priority)>,
}

impl Thread {
    pub(crate) const fn new(own: Priority, highest: Priority) -> Self {
        Self {
            own,
            highest,
            rank: own,
            later: None,
        }
    }

    /// It has this from now on; `None` if it has already.
    fn becomes(&mut self, rank: Priority) -> Option<Priority> {
        (core::mem::replace(&mut self.rank, rank) != rank).then_some(rank)
    }
}

/// What may be raised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Raisable {
    Thread(Thread),
    /// Its executor is told through this port.
    Handler(PortId),
}

/// How urgent those are that may be raised. Hosts carry out what it says; it allocates nothing once it is made, and costs O(activities that may be raised).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Raises(Vec<(ActivityId, Raisable)>);

impl Raises {
    pub(crate) fn new(all: impl Iterator<Item = (ActivityId, Raisable)>) -> Self {
        Self(all.collect())
    }

    /// Whether nobody may be raised.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many may be.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether a thread may be.
    pub fn has_threads(&self) -> bool {
        self.threads().next().is_some()
    }

    /// The highest priority that a thread may have; `None` if it may not be raised.
    pub fn highest(&self, who: ActivityId) -> Option<Priority> {
        let mut threads = self.threads();
        threads.find_map(|(id, thread)| (id == who).then_some(thread.highest))
    }

    /// From `at` on, or now if that is past, somebody is so urgent.
    ///
    /// # Errors
    ///
    /// He may not be raised, or not like this; then nothing has changed.
    pub fn raise(
        &mut self,
        who: ActivityId,
        rank: Rank,
        at: Instant,
        now: Instant,
    ) -> Result<Effect, NotRaised> {
        let mut all = self.0.iter_mut();
        let (_, entry) = all
            .find(|(id, _)| *id == who)
            .ok_or(NotRaised::Undeclared)?;
        match (entry, rank) {
            (Raisable::Handler(port), Rank::Deadline(due)) => {
                Ok(Effect::Tell(*port, told(due, at)))
            }
            (Raisable::Thread(thread), Rank::Priority(priority)) => {
                let rank = priority.min(thread.highest);
                thread.later = (at > now).then_some((at, rank));
                let becomes = match thread.later {
                    Some(_) => None,
                    None => thread.becomes(rank),
                };
                Ok(becomes.map_or(Effect::Nothing, Effect::Becomes))
            }
            _ => Err(NotRaised::OtherKind),
        }
    }

    /// A thread waits, or has ended: what it is from then on, where it was something else.
    pub fn over(&mut self, who: ActivityId) -> Option<Priority> {
        let mut threads = self.threads_mut();
        let thread = threads.find_map(|(id, thread)| (id == who).then_some(thread))?;
        thread.later = None;
        thread.becomes(thread.own)
    }

    /// What a thread is now, where that is not what it was placed as.
    pub fn raised(&self, who: ActivityId) -> Option<Priority> {
        let mut threads = self.threads();
        let thread = threads.find_map(|(id, thread)| (id == who).then_some(thread))?;
        (thread.rank != thread.own).then_some(thread.rank)
    }

    /// When the next of those is something else for whom that was arranged; [`Instant::MAX`] if there is none.
    pub fn next(&self) -> Instant {
        let instants = self.threads().filter_map(|(_, thread)| thread.later);
        let next = instants.map(|(at, _)| at).min();
        next.unwrap_or(Instant::MAX)
    }

    /// One for whom the time has come, the one whose time came first, and what he has from now on; to be asked until there is none.
    pub fn pass(&mut self, now: Instant) -> Option<(ActivityId, Priority)> {
        loop {
            let next = self.next();
            if next > now || next == Instant::MAX {
                return None;
            }
            let mut threads = self.threads_mut();
            let is_next = |thread: &Thread| thread.later.is_some_and(|(at, _)| at == next);
            let (who, thread) = threads.find(|(_, thread)| is_next(thread))?;
            let (_, rank) = thread.later.take()?;
            if let Some(rank) = thread.becomes(rank) {
                return Some((who, rank));
            }
        }
    }

    fn threads(&self) -> impl Iterator<Item = (ActivityId, &Thread)> {
        self.0.iter().filter_map(|(who, entry)| match entry {
            Raisable::Thread(thread) => Some((*who, thread)),
            Raisable::Handler(_) => None,
        })
    }

    fn threads_mut(&mut self) -> impl Iterator<Item = (ActivityId, &mut Thread)> {
        self.0.iter_mut().filter_map(|(who, entry)| match entry {
            Raisable::Thread(thread) => Some((*who, thread)),
            Raisable::Handler(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHO: ActivityId = ActivityId(3);
    const PORT: PortId = PortId(7);

    fn level(level: u8) -> Priority {
        Priority::new(level).expect("there are 32")
    }

    fn to(priority: u8) -> Rank {
        Rank::Priority(level(priority))
    }

    /// A thread of priority 20 that may have 24, and a handler.
    fn raises() -> Raises {
        let thread = Raisable::Thread(Thread::new(level(20), level(24)));
        let handler = Raisable::Handler(PORT);
        Raises::new([(WHO, thread), (ActivityId(4), handler)].into_iter())
    }

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn a_raise_is_at_once_or_when_its_time_has_come_and_over_with_the_turn() {
        let mut all = raises();
        let becomes = |priority| Ok(Effect::Becomes(level(priority)));
        assert_eq!(all.raise(WHO, to(22), ms(5), ms(5)), becomes(22));
        assert_eq!(all.raise(WHO, to(22), ms(1), ms(5)), Ok(Effect::Nothing));
        assert_eq!(all.raise(WHO, to(24), ms(9), ms(5)), Ok(Effect::Nothing));
        assert_eq!((all.raised(WHO), all.next()), (Some(level(22)), ms(9)));
        assert_eq!(all.pass(ms(9) - Span::from_nanos(1)), None);
        assert_eq!(all.pass(ms(9)), Some((WHO, level(24))));
        assert_eq!((all.pass(ms(9)), all.next()), (None, Instant::MAX));
        assert_eq!(all.over(WHO), Some(level(20)));
        assert_eq!((all.over(WHO), all.raised(WHO)), (None, None));
    }

    #[test]
    fn the_last_word_holds_and_nothing_that_was_arranged_outlives_the_turn() {
        let mut all = raises();
        all.raise(WHO, to(24), ms(9), ms(5)).unwrap();
        all.raise(WHO, to(22), ms(8), ms(5)).unwrap();
        assert_eq!(all.next(), ms(8));
        // Down is a raise too, and takes away what was arranged.
        let lower = all.raise(WHO, to(18), ms(5), ms(5));
        assert_eq!(lower, Ok(Effect::Becomes(level(18))));
        assert_eq!(all.next(), Instant::MAX);
        all.raise(WHO, to(24), ms(9), ms(5)).unwrap();
        assert_eq!(all.over(WHO), Some(level(20)));
        assert_eq!((all.next(), all.pass(ms(20))), (Instant::MAX, None));
    }

    #[test]
    fn nobody_is_raised_above_what_was_declared_or_without_it() {
        let mut all = raises();
        let above = all.raise(WHO, to(31), ms(5), ms(5));
        assert_eq!(above, Ok(Effect::Becomes(level(24))));
        let undeclared = all.raise(ActivityId(5), to(22), ms(5), ms(5));
        assert_eq!(undeclared, Err(NotRaised::Undeclared));
        let other = all.raise(WHO, Rank::Deadline(ms(9)), ms(5), ms(5));
        assert_eq!(other, Err(NotRaised::OtherKind));
        let handler = ActivityId(4);
        let other = all.raise(handler, to(22), ms(5), ms(5));
        assert_eq!(other, Err(NotRaised::OtherKind));
        let tell = all.raise(handler, Rank::Deadline(ms(9)), ms(5), ms(5));
        assert_eq!(tell, Ok(Effect::Tell(PORT, told(ms(9), ms(5)))));
        assert_eq!(heard(told(ms(9), ms(5))), (ms(9), ms(5)));
    }
}
