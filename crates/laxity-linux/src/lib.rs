//! The live host: Linux's own schedulers, and a dispatcher that executes a table of time slots. The only home of system calls.
#![allow(unsafe_code)]

pub mod calibrate;
pub mod doctor;
pub mod enforce;
pub mod host;
pub mod net;
pub mod os;
mod run;

pub use enforce::deadline::ThreadReservation;
pub use host::{LiveConfig, LiveHost};
pub use os::event_log::{EventLog, EventReader};
