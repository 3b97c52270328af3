//! Admission of channels: what each takes of the processors, links and buffers on its way, and whether it is granted.
//!
//! * [`Traffic`]: what a channel may send.
//! * [`Costs`]: what a message of it takes of a processor or a link.

mod costs;
mod traffic;

pub use costs::{Costs, LinkCosts, Need, ProcessorCosts, packets};
pub use traffic::{Traffic, TrafficError};
