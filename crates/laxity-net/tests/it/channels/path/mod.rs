//! The data path of hosts: from messages to messages, over links that do what links do.

mod bounds;
mod far;
mod faults;
mod flood;
mod hops;
mod sums;
pub(super) mod world;
