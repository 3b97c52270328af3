//! What can go wrong with channels.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use laxity_linux::host::alone::StartError;
use laxity_linux::host::ring::RingError;
use laxity_linux::net::OpenError;
use laxity_model::analysis::Overflow;
use laxity_model::channels::asked::{NameError, Shortage};
use laxity_model::channels::ring::ShapeError;
use laxity_model::channels::signalling::{Cause, NotNow, Refusal};
use laxity_model::nif::link::LinkError;
use laxity_net::channels::node::SetupError;
use laxity_net::channels::session::Same;
use laxity_net::questions::NoAnswer;

/// What was asked of a node is not so.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel knows no way to a neighbour.
    #[error("no way to {0}: {1}")]
    NoWay(SocketAddr, #[source] io::Error),
    /// The socket to a neighbour cannot be opened, and what mends that.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The socket to a neighbour does not do what it was asked to do.
    #[error("the link to {0}: {1}")]
    Link(SocketAddr, #[source] LinkError),
    /// The way to a neighbour carries no frames of useful length: so many bytes.
    #[error(
        "packets to {0} have at most {1} bytes behind their headers, in which no frame of this network fits: let the interface carry longer ones, or say a shorter `mtu` of the link to all hosts"
    )]
    NoFrames(SocketAddr, usize),
    /// A neighbour has this host's own key.
    #[error("the neighbour at {0}: {1}")]
    Same(SocketAddr, #[source] Same),
    /// A node cannot be made so.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// What is stated does not fit the numbers that admission reckons with.
    #[error(transparent)]
    Overflow(#[from] Overflow),
    /// A node has a neighbour at least.
    #[error("a node without a neighbour")]
    Alone,
    /// There is no thread for the node.
    #[error("the node has no thread: {0}")]
    Start(#[from] StartError),
    /// The kernel has no descriptors left.
    #[error("the node cannot be woken: {0}")]
    NoDescriptors(#[from] io::Error),
    /// The node has ended.
    #[error("the node has ended")]
    Ended,
    /// There is no memory for a channel's messages.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// Messages, or as many of them, that no ring holds.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// It is no name of a channel.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The channel is not opened, or not changed; why, and what would fit.
    #[error("refused: {0:?}")]
    Refused(Refusal<Shortage>),
    /// There is no such channel, or it is being changed.
    #[error(transparent)]
    NotNow(#[from] NotNow),
    /// What came of a channel's messages only a node of the same process tells.
    #[error("a node of another process does not tell what came of a channel's messages")]
    NoCounts,
    /// Somebody listens to this name already.
    #[error("somebody listens to this name already")]
    Taken,
    /// The network's file does not let this user do that.
    #[error("this user may not, as the network's file has it ([users.*])")]
    Forbidden,
    /// The network's file has no channel of this name that begins at this host.
    #[error("the network's file has no channel of this name that begins at this host")]
    Unnamed,
    /// No node is reached by the socket.
    #[error("no node is reached at {path}: {1}", path = .0.display())]
    Unreached(PathBuf, #[source] io::Error),
    /// A node says what this side does not understand, or the other way round: they are of different versions.
    #[error("the node and this program do not understand each other")]
    Strange,
    /// The channel has ended.
    #[error("the channel has ended: {0:?}")]
    Over(Cause),
    /// Nobody may tell any more why, as the node has ended, or the other side has broken the ring.
    #[error("the channel's ring is broken")]
    Broken,
}

impl From<NoAnswer> for Error {
    fn from(_: NoAnswer) -> Self {
        Self::Ended
    }
}
