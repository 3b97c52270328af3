//! What is seen of a holder from one look to the next.

use crate::{Instant, Service, Span};

/// How a reservation is held, by which what is seen of it means this or that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Held {
    /// By `SCHED_DEADLINE`: nothing outside it.
    ByKernel,
    /// In slots, and outside them as others do.
    BySlots,
    /// In slots only.
    Confined,
}

/// What was seen of a holder since the look before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// When.
    pub at: Instant,
    /// The processor time that it received.
    pub service: Service,
    /// For how long it was kept from the processor though it wanted it: all waits that ended since the look before.
    pub kept_from: Span,
    /// No single one of them was longer.
    pub longest: Span,
    /// Several threads share it, of which more than one ran, or waited, since it was last seen to run: while one waited another may have run.
    pub several: bool,
    /// Whether it had the processor.
    pub turn: Turn,
    /// A thread of it has ended since the look before: what that had nobody saw.
    pub ended: bool,
    /// Whoever looks was stopped since the look before, by somebody who may have taken the processor meanwhile.
    pub unwatched: bool,
}

/// Whether a holder has had the processor since the look before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// It came to it, or was on it.
    Ran,
    /// It did not: it may have slept, or wait still. The next look tells.
    No,
    /// It did not, and wants it: it waits still.
    Wants,
    /// It did not, and does not want it: it has slept since it ran last.
    Asleep,
    /// It did not, and cannot ask for it: a signal, or a debugger, stopped it.
    Stopped,
    /// It has ended. Until somebody runs in its place there is nothing to see.
    Gone,
}

/// A stretch from one moment at which a holder was seen to have run to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// When it began.
    pub from: Instant,
    /// When it ended.
    pub to: Instant,
    /// The longest for which the holder was kept from the processor in it though it wanted it.
    pub gap: Span,
}
