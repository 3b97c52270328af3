//! The live host: Linux's own schedulers, and a dispatcher that executes a table of time slots. The only home of system calls.
#![allow(unsafe_code)]

pub mod calibrate;
pub mod clock;
pub mod command;
pub mod confine;
pub mod deadline;
pub mod doctor;
pub mod event_log;
pub mod futex;
pub mod guardian;
mod holding;
pub mod host;
pub mod memory;
pub mod proc;
pub mod rights;
pub mod sched;
pub mod signals;
pub mod slots;
mod supply;
pub mod usage;
pub mod witness;

pub use deadline::ThreadReservation;
pub use event_log::{EventLog, EventReader};
pub use host::{LiveConfig, LiveHost};
pub use supply::supply;
pub use witness::WitnessConfig;
