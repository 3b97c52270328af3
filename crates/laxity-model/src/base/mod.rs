//! What everything else is said in: units in types, names of things, clocks that need not be right, events and the ring they go through, ports and
//! the queue that threads share, histograms, numbers from a seed, common divisors, medians, texts of others.

pub mod arrivals;
pub(crate) mod atomic;
pub mod bell;
pub mod clock;
pub mod event;
pub mod histogram;
pub mod ids;
pub mod number;
pub mod plain;
pub mod port;
pub mod random;
pub mod ready;
pub mod ring;
pub mod stack;
pub mod time;
