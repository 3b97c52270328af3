//! What is recorded of a run: one record of 32 bytes an event, the same in both hosts.

use crate::{ActivityId, Instant, ProcessorId};

/// An event of the application's own; its name stands in [`Program::marks`](crate::program::Program::marks).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Mark(pub u16);

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EventKind {
    /// The activity became ready. `args`, in nanoseconds: when it was meant to (equal to the time where nothing was meant); and, live, where a thread
    /// tells of it only once it runs again, since when it could have run (0: since the event).
    Wake,
    /// It got the processor (twin) or saw itself running after a wait (live).
    Dispatch,
    /// It lost the processor while it still had work (twin only).
    Preempt,
    /// It gave the processor up to wait.
    Block,
    /// It ended.
    Finish,
    /// An interrupt handler began. `args[0]`: when the device raised it, in nanoseconds.
    InterruptEnter,
    /// An interrupt handler returned. `args[0]`: the processor time it took, in nanoseconds.
    InterruptExit,
    /// A deferred procedure call began. `args[0]`: when it was queued, in nanoseconds.
    DeferredEnter,
    /// A deferred procedure call returned. `args`: the processor time it took, in nanoseconds; how often it was queued again while it ran, and
    /// served that too.
    DeferredExit,
    /// A semaphore was signalled. `args[0]`: its number.
    Signal,
    /// A time slot of the activity began. `args[0]`: when the table says, in nanoseconds.
    SlotBegin,
    /// A time slot of the activity ended. `args[0]`: when the table says, in nanoseconds.
    SlotEnd,
    /// The activity's reservation began to be enforced. `args`: service and period in nanoseconds.
    ReservationBegin,
    /// The activity's reservation was given back.
    ReservationEnd,
    /// The witness woke late, for the machine itself stood still. `args`: when it should have and when it did, in nanoseconds.
    Disturbed,
    /// The activity was granted another reservation. `args`: service and period in nanoseconds. What it held before it holds until the
    /// instant that the [`Self::ReservationFrom`] after this one tells.
    ReservationChange,
    /// The activity was granted a time constraint. `args`: its start and its deadline, in nanoseconds.
    ConstraintBegin,
    /// The activity ended its time constraint. `args[0]`: the deadline, in nanoseconds.
    ConstraintEnd,
    /// What the activity asked for was refused.
    Refused,
    /// From when the reservation of the [`Self::ReservationChange`] just before holds, recorded with it. `args[0]`: that instant, in
    /// nanoseconds; mostly later than the event.
    ReservationFrom,
    /// The witness woke late, and was runnable: somebody held its processor, or nobody can tell that. `args`: when it should have and when it
    /// did, in nanoseconds.
    Held,
    /// The witness woke late, and had been stopped while it waited: by a signal, a debugger or a frozen control group, and all of its process with it.
    /// `args`: when it should have woken and when it did, in nanoseconds.
    Stopped,
    /// The processor was far slower than usual, as the witness saw it, which is as little anybody's doing as where it stands still. `args`: from when to when, in nanoseconds.
    Crawled,
    /// A packet was taken from its interface, by the activity that is the driver. `args`: when it arrived, in nanoseconds; its bytes, and above 32 bits
    /// [who says when](crate::nif::link::Stamp::code).
    Arrive,
    /// A packet's client had given no empty buffer for it. `args`: the client's number at its driver, and the packet's bytes.
    NoBuffer,
    /// A packet's client was called with it, and has returned. `args`: the client's number at its driver, and the packet's bytes.
    Receive,
    /// The activity took a packet from its client's queue. `args`: when it arrived, in nanoseconds, and its bytes.
    Deliver,
    /// A frame was handed to its interface. `args`: its client's number at the driver, and its tag.
    Transmit,
    /// A frame has left its interface. `args`: as of [`Self::Transmit`].
    Complete,
    /// An event of the application's own.
    Mark(Mark),
}

/// Application marks are stored above this code.
const MARK_BASE: u16 = 0x8000;

/// All kinds but marks, at the place of their code.
const KINDS: [EventKind; 29] = [
    EventKind::Wake,
    EventKind::Dispatch,
    EventKind::Preempt,
    EventKind::Block,
    EventKind::Finish,
    EventKind::InterruptEnter,
    EventKind::InterruptExit,
    EventKind::DeferredEnter,
    EventKind::DeferredExit,
    EventKind::Signal,
    EventKind::SlotBegin,
    EventKind::SlotEnd,
    EventKind::ReservationBegin,
    EventKind::ReservationEnd,
    EventKind::Disturbed,
    EventKind::ReservationChange,
    EventKind::ConstraintBegin,
    EventKind::ConstraintEnd,
    EventKind::Refused,
    EventKind::ReservationFrom,
    EventKind::Held,
    EventKind::Stopped,
    EventKind::Crawled,
    EventKind::Arrive,
    EventKind::NoBuffer,
    EventKind::Receive,
    EventKind::Deliver,
    EventKind::Transmit,
    EventKind::Complete,
];

impl EventKind {
    /// The number this kind has in a stored record. Marks must be below 0x8000.
    pub fn code(self) -> u16 {
        match self {
            Self::Mark(Mark(n)) => MARK_BASE | n,
            kind => KINDS
                .iter()
                .position(|k| *k == kind)
                .map_or(u16::MAX, |i| i as u16),
        }
    }

    /// The kind with this number, if there is one.
    #[must_use]
    pub fn from_code(code: u16) -> Option<Self> {
        if code >= MARK_BASE {
            Some(Self::Mark(Mark(code - MARK_BASE)))
        } else {
            KINDS.get(usize::from(code)).copied()
        }
    }
}

/// One event: 32 bytes in memory and on disk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Event {
    /// When.
    pub at: Instant,
    /// What.
    pub kind: EventKind,
    /// Where.
    pub processor: ProcessorId,
    /// Who.
    pub activity: ActivityId,
    /// Two numbers whose meaning the kind tells.
    pub args: [u64; 2],
}

impl Event {
    /// As the four words that are stored: time; code, processor and activity; the two arguments.
    pub fn to_words(self) -> [u64; 4] {
        let head = u64::from(self.kind.code())
            | u64::from(self.processor.0) << 16
            | u64::from(self.activity.0) << 32;
        [self.at.as_nanos(), head, self.args[0], self.args[1]]
    }

    /// Back from the stored words; `None` for a code that is no kind.
    #[must_use]
    pub fn from_words(words: [u64; 4]) -> Option<Self> {
        let [at, head, first, second] = words;
        Some(Self {
            at: Instant::from_nanos(at),
            kind: EventKind::from_code(head as u16)?,
            processor: ProcessorId((head >> 16) as u16),
            activity: ActivityId((head >> 32) as u16),
            args: [first, second],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_survives_storage() {
        let marks = [EventKind::Mark(Mark(0)), EventKind::Mark(Mark(0x7fff))];
        for kind in KINDS.into_iter().chain(marks) {
            let event = Event {
                at: Instant::from_nanos(7),
                kind,
                processor: ProcessorId(3),
                activity: ActivityId(65_535),
                args: [1, u64::MAX],
            };
            assert_eq!(Event::from_words(event.to_words()), Some(event));
        }
        assert_eq!(EventKind::from_code(KINDS.len() as u16), None);
    }
}
