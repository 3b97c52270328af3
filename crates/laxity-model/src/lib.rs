//! The decisions of laxity, and nothing else: no I/O, no clock, no thread, no `unsafe`, no floating point.
//!
//! * [`time`], [`ids`]: units in types.
//! * [`reservation`]: what may be asked for and what is granted.
//! * [`program`]: what a host runs; [`host`]: what a host must do and what it hands back.
//! * [`event`], [`ring`]: what is recorded, and where it is kept while it is recorded.
//! * [`slots`], [`bands`]: the policies, as state machines that take `now` and return effects.
//! * [`admission`]: yes or no before anything runs, with the reason and the nearest request that fits.
//! * `conformance` (with the feature of that name): what every host must do alike, as cases for its tests.
//! * [`analysis`]: schedulability of task sets on supplies of every kind.
//! * [`attribution`]: who made a job late, from the events of a run.
//! * [`adaptive`]: reservations that follow the load.
//! * [`histogram`]: many measurements in little memory.
//! * [`contract`]: what timeliness means, and the verdict with its reasons.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

pub mod adaptive;
pub mod admission;
pub mod analysis;
pub mod attribution;
pub mod bands;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod constraint;
pub mod contract;
pub mod event;
pub mod histogram;
pub mod host;
pub mod ids;
pub mod machine;
pub mod program;
pub mod reservation;
pub mod ring;
pub mod slots;
pub mod time;

pub use constraint::{Refused, TimeConstraint, TimeConstraintError};
pub use event::{Event, EventKind, Mark};
pub use host::{Disturbance, Host, HostError, RunEnd, RunRecord, Usage};
pub use ids::{ActivityId, InterruptLevel, Priority, ProcessorId, SemaphoreId};
pub use program::{Activity, Body, Context, Placement, Program, Step};
pub use reservation::{
    Enforcer, Grade, Grant, Outside, Reservation, ReservationError, ReservationRequest,
};
pub use time::{Instant, Service, Span};

/// The pages in `docs/` whose examples are this crate's: run with its own.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/which-test.md")]
struct Pages;
