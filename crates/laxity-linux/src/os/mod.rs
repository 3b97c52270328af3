//! What the kernel offers, a module for each part of it: scheduling, clocks, waiting, descriptors, signals, memory, and `/proc`.

pub(crate) mod census;
pub mod cgroup;
pub mod children;
pub mod claim;
pub mod clock;
pub mod cpuset;
pub(crate) mod descriptor;
pub mod event_log;
pub mod fact;
pub mod fork;
pub(crate) mod futex;
pub mod idle;
pub(crate) mod life;
pub mod limits;
pub mod memory;
pub mod open_files;
pub mod proc;
pub(crate) mod route;
pub(crate) mod rseq;
pub mod sched;
pub mod schedstat;
pub(crate) mod shared;
pub mod signals;
pub(crate) mod slot_lock;
pub mod stderr;
pub mod usage;
