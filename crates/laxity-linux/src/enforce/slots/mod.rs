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

use laxity_model::Service;
use laxity_model::enforce::Switching;

pub(crate) use binding::{Program, SlotBinding};
pub(crate) use change_queue::ChangeQueue;
pub(crate) use dispatcher::{Dispatched, DispatcherStart, Pace, spawn};
pub(crate) use doorbell::Doorbell;
pub(crate) use inherit::Inheriting;
pub(crate) use park::ParkSignal;

/// What one dispatcher did in a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotReport {
    /// The processor, by the kernel's number.
    pub cpu: usize,
    /// Slots given.
    pub slots: u64,
    /// Processor time the dispatcher took for them.
    pub spent: Service,
    /// What switching cost in the end, as far as it was seen, for each owner of the table's slots.
    pub followed: Vec<Switching>,
}
