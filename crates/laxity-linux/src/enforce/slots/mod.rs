//! The enforcer in user space: a dispatcher thread on each processor with time slots carries out the model's slot table.
//!
//! It outranks everything but the witness, sits on the slots' own processor (a switch from another costs an interrupt between
//! processors and twice the jitter), and decides nothing: when to wake, spin and switch is
//! [`laxity_model::enforce::Dispatcher`]'s business.

mod binding;
pub(crate) mod calibrate;
mod change_queue;
mod dispatcher;
mod doorbell;
mod inherit;
mod park;

use laxity_model::{Service, Span};

pub(crate) use binding::SlotBinding;
pub(crate) use change_queue::ChangeQueue;
pub(crate) use dispatcher::{Dispatched, DispatcherStart, spawn};
pub(crate) use doorbell::Doorbell;
pub(crate) use park::ParkSignal;

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
    pub spent: Service,
    /// What was compensated.
    pub timing: Timing,
}
