//! The decisions of laxity, and nothing else: no I/O, no clock, no thread, no `unsafe`, no floating point.
//!
//! * [`base`]: units in types, names of things, events and the ring they go through, histograms.
//! * [`request`]: what may be asked for, and what is granted.
//! * [`policy`]: who runs next, as state machines that take `now` and return effects.
//! * [`executor`]: turns inside one thread, by a policy with its schedulability test.
//! * [`program`]: what a host runs.
//! * [`admission`]: yes or no before anything runs and while it runs, with the reason and the nearest request that fits.
//! * [`enforce`]: how what was admitted is carried out; what a host must do, and what it hands back.
//! * [`analysis`]: schedulability of task sets on supplies of every kind.
//! * [`verify`]: what timeliness means, the verdict with its reasons, who made a job late, and what a reservation delivered.
//! * [`adaptive`]: reservations that follow the load.
//! * [`nif`]: whose a packet is, whether it is kept, what is sent next.
//! * [`channels`]: flows of messages with bounds: policed, in three classes, in packets.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

pub mod adaptive;
pub mod admission;
pub mod analysis;
pub mod base;
pub mod channels;
pub mod enforce;
pub mod executor;
pub mod nif;
pub mod policy;
pub mod program;
pub mod request;
pub mod verify;

pub use base::event::{Event, EventKind, Mark};
pub use base::ids::{
    ActivityId, ExecutorId, InterruptLevel, PortId, Priority, ProcessorId, SemaphoreId,
};
pub use base::time::{Instant, Service, Span};
pub use enforce::host::{Host, RunEnd, RunRecord, Usage};
pub use enforce::{Disturbance, Disturbances, Stretches, Whereabouts};
pub use policy::classes::Scheduling;
pub use program::{Activity, Body, Context, HostError, Placement, Program, Step};
pub use request::{
    Enforcer, Grade, Grant, Outside, Refused, Reservation, ReservationError, ReservationRequest,
    TimeConstraint, TimeConstraintError,
};
