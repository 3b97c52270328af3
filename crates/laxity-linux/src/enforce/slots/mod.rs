//! The enforcer in user space: a dispatcher thread on each processor with time slots carries out the model's slot table.
//!
//! It outranks everything but the witness, sits on the slots' own processor (a switch from another costs an interrupt between
//! processors and twice the jitter), and decides nothing: when to wake, spin and switch is
//! [`laxity_model::enforce::Dispatcher`]'s business.

pub mod calibrate;
mod desk;
mod dispatcher;
mod gate;
mod inherit;
mod seat;

use laxity_model::Span;

pub(crate) use desk::Desk;
pub(crate) use dispatcher::{Dispatched, DispatcherStart, spawn};
pub(crate) use gate::ParkSignal;
pub(crate) use seat::{Bell, Seat};

/// How far before a slot the dispatcher wakes; the rest of the time to the edge it spins.
pub const EARLY: Span = Span::from_micros(40);
/// Where in a millisecond of the run its slot tables begin. The witness and most periodic threads wake at whole milliseconds; a
/// slot of 0.1 ms that began there too would lose a tenth to them.
pub(crate) const PHASE: Span = Span::from_micros(250);
/// What admission charges for a slot beside its length.
pub const CHARGE_PER_SLOT: Span = Span::from_micros(50);
/// The shortest slot that can be kept.
pub const SHORTEST_SLOT: Span = Span::from_micros(50);
/// Real-time threads and slots may take this much of a processor together: above it the kernel's server for ordinary threads
/// steps in, and gaps of 50 ms appear.
pub const MOST_SHARE_PPM: u32 = 940_000;

/// What switching costs on this machine, measured before a run and compensated in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timing {
    /// From the decision to give a slot until its holder runs, and what the slot loses where a hypervisor raises the timer of its
    /// end early. The dispatcher decides this much before the edge.
    pub entering: Span,
    /// From a slot's end on the timer until its holder has lost the processor. The timer is set this much before the edge.
    pub leaving: Span,
}

/// What one dispatcher did in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotReport {
    /// The processor, by the kernel's number.
    pub cpu: usize,
    /// Slots given.
    pub slots: u64,
    /// Processor time the dispatcher took for them.
    pub spent: laxity_model::Service,
    /// What was compensated.
    pub timing: Timing,
}
