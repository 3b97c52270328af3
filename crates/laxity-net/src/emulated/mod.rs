//! Emulated interfaces: a wire with an interface at each end, a device that only takes time, and what goes wrong in front of an interface that is there; and [`hosts`] with nodes of channels, in one calendar. All do the same for the same seed and
//! the same instants.

mod faulty;
pub mod hosts;
mod leaving;
mod null;
mod wire;

pub use faulty::{Again, Faulty};
pub use laxity_model::nif::wire::Faults;
pub use null::Null;
pub use wire::{End, Wire};
