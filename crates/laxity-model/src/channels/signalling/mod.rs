//! Signalling: how a channel is opened, changed and ended hop by hop, and how everybody on its way is told when somebody there dies.
//!
//! OPEN goes from host to host along the route, and each reserves the smallest delay that it has. Where all have, and their sum and the links' propagation are within the bound, the far end's application agrees or refuses; CONFIRM spreads what is left of the bound on the way back. So the
//! origin knows the bound of each hop, whose sum with the propagation is no more than the one that was asked for. A refusal goes back the same way, and names the hop and what is short. A change is opened beside what is there, so that a refused one changes nothing; TEAR ends a channel.
//!
//! * [`message`]: what is said.
//! * [`labels`]: by which numbers hops know the data frames of their channels.
//! * [`link`]: one end of a link: said once, in order, or the other end is lost. Whatever the wire does, the rest sees nothing of it.
//! * [`seam`]: what admission is asked.
//! * [`node`]: one host's.
//! * [`soft`]: what is not confirmed again and again is gone.

mod ending;
pub mod labels;
pub mod link;
pub mod message;
pub mod node;
mod passing;
pub mod seam;
pub mod soft;
mod steady;
mod waking;

use derive_more::Display;

pub use labels::Label;
pub use link::{Broke, Frame, Session};
pub use message::{Cause, ChannelId, Confirm, Hold, HostId, List, Message, Open, Refusal, Summary};
pub use node::{Effect, Listed, Node, NotNow};
pub use seam::{Admits, Delays, Place, Reserved};
pub use soft::Digest;

use crate::Span;

/// A link of a node: its place in the list that the node was made with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Display)]
pub struct LinkId(pub u16);

impl LinkId {
    /// As an index into a table with one entry a link.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// In which times a node does what it does. All nodes of a network have the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    /// From one heartbeat to the next.
    pub heartbeat: Span,
    /// Of whom nothing is heard for so long is lost: more than three heartbeats, and less than the 250 ms in which both ends are told, with the way there.
    pub silent: Span,
    /// What is not known to have arrived is said again after so long: more than a round trip.
    pub resend: Span,
    /// So often, and then the other end is lost.
    pub tries: u32,
    /// A node that is called so much after it asked for has stood still itself.
    pub tolerance: Span,
    /// From one summary of a link's channels to the next.
    pub refresh: Span,
    /// How long the far end's application may take to answer.
    pub answer: Span,
    /// How long a channel's origin waits for what it asked: more than that answer takes, and its ways.
    pub patience: Span,
    /// Where so many messages are still to be heard at the other end of a link, no channel more is opened over it.
    pub backlog: usize,
    /// So many channels go through a node at once, and no more.
    pub channels: u32,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            heartbeat: Span::from_millis(50),
            silent: Span::from_millis(175),
            resend: Span::from_millis(10),
            tries: 16,
            tolerance: Span::from_millis(25),
            refresh: Span::from_millis(500),
            answer: Span::from_secs(1),
            patience: Span::from_secs(3),
            backlog: 1_024,
            channels: 1 << 20,
        }
    }
}
