//! The two clients of the paper's protocol stack (§3.2), and one whose packets are due (§5). All only queue what arrives: what is done
//! with it is for the threads that take it, at their own priority, and not for the driver's.

pub mod due;
pub mod early;
pub mod group;
pub mod late;
mod queue;

pub use queue::{NoPacket, Queue};
