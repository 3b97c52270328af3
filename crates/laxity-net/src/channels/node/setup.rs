//! What a node is made of, and what its applications ask.

use core::num::NonZeroU32;
use std::sync::Arc;

use laxity_model::Span;
use laxity_model::channels::admission::{Lack, TrafficError};
use laxity_model::channels::asked::Asked;
use laxity_model::channels::handler::{Costs, Looks};
use laxity_model::channels::signalling::node::Neighbour;
use laxity_model::channels::signalling::{HostId, LinkId, Terms};
use laxity_model::channels::source::Excess;
use laxity_model::nif::urgency::StatedError;
use laxity_model::policy::multiclass::{By, Early};

use super::super::frame::SIGNAL_PAYLOAD;
use super::super::session::{Budget, Peer};

/// What a node is, beside its links.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Which host.
    pub host: HostId,
    /// More than in any life of it before.
    pub incarnation: u32,
    /// In which times it does what it does; how many channels there may be at once is said by `channels` instead.
    pub terms: Terms,
    /// So many channels at once that begin, pass or end here.
    pub channels: u32,
    /// So many packets of best effort each of them may have at each of its hops, beside what keeps its promise; 0: there is none here, and what comes is dropped.
    pub best_effort: u32,
    /// What is spent on handshakes, all neighbours together.
    pub budget: Budget,
    /// Who gives handlers the processor.
    pub handlers: Handlers,
    /// When handlers look, and what their work takes, which they tell [whoever calls them](Handlers::Called).
    pub looks: Looks,
    /// See `looks`.
    pub costs: Costs,
}

/// Who gives handlers the processor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Handlers {
    /// Whoever calls the node, at once.
    #[default]
    AtOnce,
    /// The caller, when [told](super::Event::Handler), by [`Node::handle`](super::Node::handle).
    Called,
}

/// A link of a node.
pub struct Link {
    /// Who is there, and how long a frame's last bit is on its way.
    pub neighbour: Neighbour,
    /// Whether frames are sealed.
    pub trust: Trust,
    /// q: so many frames may have been handed over and not have left, at least 1.
    pub reach: usize,
    /// When a packet goes that is early: as the admission of all hosts takes it.
    pub early: Early,
    /// In which order those go that are current.
    pub by: By,
    /// In bits a second; 0: a frame takes no time, or it is not known how much.
    pub rate: u64,
    /// H: what a data frame has beside its payload on this link, in bytes.
    pub overhead: u32,
    /// So much longer than others a frame may take from the neighbour to here that no host sees, as in a switch or a kernel's queue.
    pub unseen: Span,
}

/// Whom a host believes on a link.
pub enum Trust {
    /// Frames are sealed, with this end of the sessions with the neighbour.
    Sealed(Box<Peer>),
    /// Frames have a checksum.
    Checked,
}

/// A node cannot be made so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SetupError {
    /// A link does not carry its own signals.
    #[error("link {0}: no room for its signals: {1}")]
    Signals(LinkId, #[source] Lack),
    /// A frame's payload holds no signal.
    #[error("frames have less than {SIGNAL_PAYLOAD} bytes, and no room for signals")]
    Small,
    /// Something is to be said again at once.
    #[error("in these terms nothing can be said: {0}")]
    Terms(#[source] TrafficError),
    /// Signals take longer than can be reckoned with.
    #[error("signals of links: {0}")]
    Stated(#[source] StatedError),
    /// More links than have numbers, or more packets.
    #[error("more links, channels or buffers than a node can have")]
    TooMany,
}

/// How an application sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sends {
    /// What becomes of a message with which it breaks its promise.
    pub excess: Excess,
    /// How many messages may wait, of the stated size.
    pub room: NonZeroU32,
    /// Bytes of the largest message that the far end takes, which may be more than is stated.
    pub largest: u32,
    /// Whether what keeps the promise is due; else all goes as best effort, and nothing is promised of it.
    pub is_due: bool,
}

/// How an application listens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listens {
    /// So many messages of each lane may wait for the application, or be with it, beside those that are on their way in.
    pub room: NonZeroU32,
    /// Bytes of the largest message that it takes, if that is more than is stated.
    pub largest: u32,
    /// How long after it was due a message is given up that is not complete.
    pub patience: Span,
    /// What all links on the way together may take of a frame that no host sees, where clocks do not tell; [`Span::MAX`]: not known.
    pub unseen: Span,
}

/// A channel that is to be opened.
#[derive(Clone, Debug)]
pub struct Opening {
    /// What it is to carry, and to whom.
    pub asked: Asked,
    /// All hosts, this one first.
    pub route: Arc<[HostId]>,
    /// From a message's logical arrival here until it is there.
    pub within: Span,
    /// How it is sent.
    pub sends: Sends,
}
