//! Emulated interfaces: a wire with an interface at each end, and a device that only takes time. Both do the same for the same seed and
//! the same instants.

mod departures;
mod null;
mod wire;

pub use laxity_model::nif::wire::Faults;
pub use null::Null;
pub use wire::{End, Wire};
