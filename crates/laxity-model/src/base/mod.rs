//! What everything else is said in: units in types, names of things, events and the ring they go through, histograms, numbers from a seed.

pub mod event;
pub mod histogram;
pub mod ids;
pub mod random;
pub mod ring;
pub mod time;
