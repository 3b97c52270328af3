//! Who may have how much of a processor on which executors of several processes [take turns](super::together): a *coordinator* has all upcalls of all of them in one set, admits
//! by it, and says who has which seat.
//!
//! [`Registry`] decides; [`Ask`] and [`Answer`] are what a process and its coordinator say to each other. A process always asks for all that it is to have, so that what
//! it says to a coordinator that it has lost and to the next one is the same.

mod message;
mod registry;

use alloc::string::String;

use crate::executor::linked::Linked;

pub use message::{Answer, Ask, Bottleneck, Garbled, MOST_BYTES, Presence, Told};
pub use registry::{MOST_ITEMS, Registry, Terms, Who, share_ppm};

/// One of those who take turns, and what it is to admission: charged with what its executor adds to its calls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Item {
    /// For messages and lists.
    pub name: String,
    /// What it asks for; [`after`](Linked::after) is an index among those of its process.
    pub linked: Linked,
}
