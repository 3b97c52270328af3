//! What the kernel offers, a module for each part of it: scheduling, clocks, waiting, signals, memory, `/proc`, and the rights to them.

pub mod clock;
pub mod event_log;
pub mod futex;
pub mod memory;
pub mod proc;
pub mod rights;
pub mod sched;
pub mod signals;
pub mod usage;
