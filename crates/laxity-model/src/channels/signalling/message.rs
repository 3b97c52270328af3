//! What neighbours say of channels.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use derive_more::Display;

use super::{Label, LinkId};
use crate::Span;

/// A host of the network.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Display)]
pub struct HostId(pub u32);

/// A channel, for ever: no other one has had or will have this name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Display)]
#[display("{origin}/{generation}/{number}")]
pub struct ChannelId {
    /// The host that sends.
    pub origin: HostId,
    /// That host's incarnation when the channel was opened.
    pub generation: u32,
    /// Counted from 0 in that incarnation.
    pub number: u32,
}

impl ChannelId {
    /// By which a host knows what signalling itself has of a link, out or in ([`Signals`](crate::channels::admission::Signals)). Nobody opens it, and nobody else hears of it: of no host this is the number.
    #[must_use]
    pub const fn of_signals(link: LinkId, is_in: bool) -> Self {
        Self {
            origin: NOBODY,
            generation: 0,
            number: 2 * link.0 as u32 + is_in as u32,
        }
    }

    /// Whether it is one of those.
    #[must_use]
    pub const fn is_of_signals(&self) -> bool {
        self.origin.0 == NOBODY.0
    }
}

/// No host.
const NOBODY: HostId = HostId(u32::MAX);

/// What is reserved for a channel at one hop: a change has a reservation of its own until it is settled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Hold {
    /// Whose it is.
    pub channel: ChannelId,
    /// 0 as it was opened, and one more with each change.
    pub version: u32,
}

/// The longest route, in hosts: with more a message is not sure to fit one frame.
pub const MOST_HOSTS: usize = 16;

/// No bound is longer.
pub const LONGEST: Span = Span::from_secs(3_600);

/// How many channels are named in one [`List`].
pub const LISTED: usize = 64;

/// Reserve the smallest delay, and say the same to the next hop; of a channel that is there, beside what it has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Open<S> {
    /// What is opened or changed.
    pub hold: Hold,
    /// All hosts, the origin first.
    pub route: Arc<[HostId]>,
    /// What the channel is to carry.
    pub asked: S,
    /// From a message's logical arrival at the origin until it is there: the bound that is asked for.
    pub within: Span,
    /// Of the links so far.
    pub propagation: Span,
    /// The smallest delays of the hops so far. So their number is the place of who receives this in the route.
    pub least: Vec<Span>,
}

/// All hops have reserved, and the far end agrees. It goes back to the origin, and each hop grows to its share of what is left of the bound.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Confirm {
    /// What was opened or changed.
    pub hold: Hold,
    /// By which who says this knows the channel's data frames: the same for as long as the channel is there. Another one with a change ends it.
    pub label: Label,
    /// Each hop's delay, of those that this has passed; for the others the most that they may take.
    pub delays: Vec<Span>,
    /// Of all links.
    pub propagation: Span,
}

/// All channels that go over this link away from who says so, at this point of what is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Summary {
    /// Of these.
    pub digest: super::Digest,
    /// So many messages of who is told this had been heard before.
    pub heard: u64,
}

/// The same one by one, where summaries differ. Several make one list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct List {
    /// At most [`LISTED`].
    pub channels: Vec<ChannelId>,
    /// Whether the list ends with these.
    pub last: bool,
}

/// What a node says to its neighbour. `S` is what a channel is to carry, `R` what a hop is short of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message<S, R> {
    /// Towards the far end.
    Open(Box<Open<S>>),
    /// Towards the origin.
    Confirm(Box<Confirm>),
    /// Towards the origin: it is not opened, or not changed.
    Refuse(Hold, Box<Refusal<R>>),
    /// Towards the far end: nobody sends any more as before this version.
    Settle(Hold),
    /// Towards the far end: the channel has ended.
    Tear(ChannelId, Cause),
    /// Towards the origin: the same.
    Ended(ChannelId, Cause),
    /// Towards the far ends.
    Summary(Summary),
    /// The last summary differs from what is here.
    Differs,
    /// The answer to that.
    List(List),
}

/// Why a channel was not opened or changed: where, what is short, and how much is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal<R> {
    /// Admission at this host.
    Short {
        /// Which hop.
        at: HostId,
        /// The resource and the amount.
        short: R,
    },
    /// The smallest delays up to this host, and the links between, are more than the bound that was asked for.
    Time {
        /// Which hop.
        at: HostId,
        /// By so much.
        lacks: Span,
    },
    /// This host has no link to the next one, or it is down.
    NoLink {
        /// Which hop.
        at: HostId,
        /// The next host of the route.
        to: HostId,
    },
    /// So much is to be said on the next link already, or so many channels go through, that nothing more is taken on.
    Busy {
        /// Which hop.
        at: HostId,
    },
    /// What was asked is none: a route with a host twice or with too many, a bound of more than [`LONGEST`], another host's channel, or a change of something that is not there.
    Nonsense {
        /// Who says so.
        at: HostId,
    },
    /// The far end does not want it; the number is its application's.
    Declined(u32),
    /// The channel ended before it was open.
    Ended(Cause),
}

/// Why a channel has ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Cause {
    /// This host's application wanted it so.
    Closed(HostId),
    /// This host's application has died.
    Died(HostId),
    /// A node or the link to it has died, or it stood still.
    Lost {
        /// Who noticed.
        by: HostId,
        /// Of whom nothing was heard.
        silent: HostId,
    },
    /// This node has begun anew, and knows nothing of what was before.
    Restarted(HostId),
    /// An application or a hop behind this host did not answer in time.
    Unanswered(HostId),
    /// Who is before this host has not confirmed the channel in three refreshes.
    Unrefreshed(HostId),
    /// This host does not know it.
    Unknown(HostId),
    /// This host was told what cannot be.
    Nonsense(HostId),
}
