//! What a live node is made of, and what applications ask of it.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

use laxity_linux::net::egress::Own;
use laxity_model::Span;
use laxity_model::channels::admission::{LinkCosts, ProcessorCosts, Traffic, TrafficError};
use laxity_model::channels::asked::Name;
use laxity_model::channels::signalling::HostId;
use laxity_model::channels::source::Excess;
use laxity_net::channels::session::{Identity, PublicKey};

/// A host's node.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Which host of the network.
    pub host: HostId,
    /// By which others know that it is this one.
    pub identity: Arc<Identity>,
    /// The hosts at the other ends of its links, one at least.
    pub neighbours: Vec<Neighbour>,
    /// What its processor takes for messages and packets.
    pub costs: ProcessorCosts,
    /// S: so many bytes of a message are in a packet, the same at all hosts of a network, as none cuts what passes; `None`: as many as fit the narrowest of its own links.
    pub payload: Option<NonZeroU32>,
    /// So many channels at once that begin, pass or end here.
    pub channels: u32,
    /// So many buffers for packets of channels, of all of them together.
    pub buffers: u64,
    /// And so many packets of best effort of each channel.
    pub best_effort: u32,
    /// So long before its logical arrival a message may leave each host: who sends a little late once, at just the rate that he stated, is not late from then on. The same at all hosts.
    pub horizon: Span,
    /// The FIFO priority of its thread, 1 to 99.
    pub priority: u8,
    /// Its processor, by the kernel's number; else wherever the kernel lets it run.
    pub processor: Option<usize>,
}

impl Setup {
    /// The horizon of all nodes that state no other.
    pub const HORIZON: Span = Span::from_millis(20);

    /// A node with these neighbours, and with costs that are assumed: what a processor of some 3 GHz takes at the most that is busy with others.
    #[must_use]
    pub const fn new(host: HostId, identity: Arc<Identity>, neighbours: Vec<Neighbour>) -> Self {
        Self {
            host,
            identity,
            neighbours,
            costs: ProcessorCosts::ASSUMED,
            payload: None,
            channels: 256,
            buffers: 1 << 14,
            best_effort: 32,
            horizon: Self::HORIZON,
            priority: laxity_model::enforce::ranks::CHANNELS,
            processor: None,
        }
    }
}

/// The host at the other end of a link.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// Which host of the network.
    pub host: HostId,
    /// This host's address on the link, with the port.
    pub local: SocketAddr,
    /// Its own, with the port.
    pub at: SocketAddr,
    /// By which it is known to be that host.
    pub key: PublicKey,
    /// Whether frames are sealed; else they have a checksum.
    pub seal: bool,
    /// What the link carries, in bits a second.
    pub rate: NonZeroU64,
    /// What each frame takes of it beside its own bytes.
    pub overhead: u16,
    /// How long the last bit of a frame is on its way.
    pub propagation: Span,
    /// So much longer a frame may take that no host sees, beside what waits in the neighbour's kernel, which follows from the rate: in a switch, and until a processor is there that takes it in. A relay takes frames for excess that come closer than is stated by more than that, and drops them: so it is no less than what the next host may be late by.
    pub unseen: Span,
    /// Whether it is owned.
    pub own: Own,
    /// Whether nothing behind this host is slower than that rate, as on a pair of virtual interfaces; else the wire or the port of a switch is just that.
    pub is_shaped: bool,
}

impl Neighbour {
    /// What the link takes for frames.
    pub(super) const fn costs(&self, headers: u32, reach: u32, best_effort: u32) -> LinkCosts {
        LinkCosts {
            rate: self.rate,
            overhead: headers + self.overhead as u32,
            queued: reach,
            best_effort,
        }
    }
}

/// A channel that is to be opened.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Whoever listens to this name gets it.
    pub name: Name,
    /// The hosts on the way behind this one, the far end last.
    pub over: Vec<HostId>,
    /// What it is to carry.
    pub traffic: Traffic,
    /// From a message's logical arrival until it is there.
    pub within: Span,
    /// What becomes of messages that come too fast.
    pub excess: Excess,
    /// Whether messages that keep to the traffic are due within that; else all go as best effort, as many as there is room for, and nothing is promised of them, though the traffic is reserved all the same.
    pub is_due: bool,
    /// Whether what is late is let go of by the first hop that knows, and not delivered.
    pub discard: bool,
    /// How many messages may wait to be sent, beside as many as may come at once.
    pub room: u32,
}

impl Spec {
    /// How many messages may wait where nothing else is said.
    pub(super) const ROOM: u32 = 16;

    /// Messages that come too fast are shaped, up to 16 of them; what is late is delivered.
    #[must_use]
    pub const fn new(name: Name, over: Vec<HostId>, traffic: Traffic, within: Span) -> Self {
        Self {
            name,
            over,
            traffic,
            within,
            excess: Excess::Shape,
            is_due: true,
            discard: false,
            room: Self::ROOM,
        }
    }

    /// Messages of so many bytes, of which nothing is promised: they have what others leave, and who sends waits where that is less. What is reserved of all hosts and links is one message in a second.
    ///
    /// # Errors
    ///
    /// [`TrafficError::Nothing`]: a message has a byte at least.
    pub fn best_effort(name: Name, over: Vec<HostId>, largest: u32) -> Result<Self, TrafficError> {
        let second = Span::from_secs(1);
        let traffic = Traffic::new(largest, (1, second), 1)?;
        Ok(Self {
            excess: Excess::Block,
            is_due: false,
            ..Self::new(name, over, traffic, second)
        })
    }
}

/// How an application listens to a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listens {
    /// Bytes of the largest message; channels with larger ones are declined.
    pub largest: NonZeroU32,
    /// So many messages of each channel may wait for the application.
    pub room: NonZeroU32,
    /// So many channels may wait to be accepted.
    pub backlog: u32,
    /// How long after it was due a message is given up that is not complete.
    pub patience: Span,
}

impl Listens {
    /// 16 messages of so many bytes, of 4 channels; what is not complete is given up after 50 ms.
    #[must_use]
    pub const fn to(largest: NonZeroU32) -> Self {
        Self {
            largest,
            room: NonZeroU32::new(16).expect("it is not 0"),
            backlog: 4,
            patience: Span::from_millis(50),
        }
    }
}
