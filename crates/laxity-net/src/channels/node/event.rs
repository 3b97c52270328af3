//! What a node tells.

use laxity_model::Span;
use laxity_model::channels::asked::{Asked, Shortage};
use laxity_model::channels::signalling::{Broke, Cause, ChannelId, Hold, LinkId, Refusal};

use super::super::path::{self, Label, Lane};
use laxity_model::Instant;

/// What an application, or the caller, is told. An end of a channel is named by its label at this host, which is no other channel's before or after.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event<B> {
    /// At the origin, once for an opening and for each change: it is granted.
    Opened {
        /// Which version: 0 as it was opened.
        hold: Hold,
        /// By which messages are [sent](super::Node::send): the same for as long as the channel is there.
        end: Label,
        /// The bound of each host on the way, the origin first.
        bounds: Vec<Span>,
        /// Of all links between, and no bound is longer than it with all of these.
        propagation: Span,
    },
    /// At the origin, once: it is not opened, or it is not changed and stays as it was; why, and what would fit.
    Refused(Hold, Refusal<Shortage>),
    /// At the far end: whoever listens to this name is to [answer](super::Node::answer). A version above 0 changes what is there.
    Asked(Hold, Asked),
    /// At the far end: frames of the channel are taken in, or as it was changed. Messages are [received](super::Node::receive) by this end.
    Listening {
        /// Which version.
        hold: Hold,
        /// The same for as long as the channel is there.
        end: Label,
    },
    /// At either end, once: a channel has ended, and by whom. Its end is nobody's any more; what was not received is gone.
    Ended(ChannelId, Cause),
    /// These bytes are whoever's sent them again: all of the message has left, or is given up.
    Back(B),
    /// Whoever was told to wait until a message has left this channel's queue may send his again.
    Room(Label),
    /// A message is complete at this end, and waits to be [received](super::Node::receive).
    Received(Label),
    /// A message of this end was late, or messages were lost.
    Missed(Label, path::Event),
    /// With [`Handlers::Called`](super::Handlers::Called): this handler has something to do.
    Handler(Handler),
    /// The neighbour is there.
    Up(LinkId),
    /// It is not any more.
    Down(LinkId, Broke),
}

/// What comes of messages that were sent.
pub(super) enum Sent<B> {
    Back(B),
    Room(Label),
}

impl<B> From<Sent<B>> for Event<B> {
    fn from(sent: Sent<B>) -> Self {
        match sent {
            Sent::Back(buffer) => Self::Back(buffer),
            Sent::Room(end) => Self::Room(end),
        }
    }
}

/// The handler of a lane of a channel that begins here.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Handler {
    /// The channel's end.
    pub end: Label,
    /// Which of its lanes.
    pub lane: Lane,
}

/// What a link that has room was told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Filled {
    /// A frame was handed over; there may be another one.
    Handed,
    /// It was not taken, as the link has no room after all: it goes first when there is.
    NoRoom,
    /// All that wait are early. The node wants to be woken then, so this need not be kept.
    NotBefore(Instant),
    /// None waits, or as many were handed over and have not left as may be.
    Nothing,
}

/// No such end of a channel is open at this host; the message comes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no such end of a channel is open at this host")]
pub struct NotOpen<B>(pub B);
