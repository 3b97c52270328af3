//! Messages about channels. Each may come twice, and late: a receiver does what it says once.

use zerocopy::network_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::super::data::{ChannelId, ChannelLayout};
use super::super::layout::Malformed;
use super::layout::{Reader, Sink};
use super::reason::{Cause, CauseLayout, Refusal, RefusalLayout};

/// The longest route, in hosts.
pub const MOST_HOSTS: usize = 16;

/// The longest name of a channel, in bytes.
pub const MOST_NAME: usize = 64;

/// How many channels one [`List`] names at the most.
pub const LISTED: usize = 64;

/// A channel, for ever: no other one has had or will have this name.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
)]
#[repr(C)]
pub struct Name {
    /// The host that sends.
    pub origin: U32,
    /// That host's incarnation when the channel was opened.
    pub generation: U32,
    /// Counted from 0 in that.
    pub number: U32,
}

/// What is reserved for a channel at one hop.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
)]
#[repr(C)]
pub struct Hold {
    /// Whose it is.
    pub channel: Name,
    /// 0 as it was opened, and one more with each change.
    pub version: U32,
}

/// What a channel is to carry.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Spec {
    /// So many messages, not 0, ...
    pub amount: U32,
    /// ... in each period of so many nanoseconds, not 0.
    pub period: U64,
    /// So many of them at once, not 0.
    pub burst: U32,
    /// Bytes of the largest one.
    pub size: U32,
    /// 1, where a message that is late is discarded by the first hop that knows; 0, where it is delivered.
    pub discard: U32,
}

/// What a set of channels comes to, in whatever order.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Digest {
    /// How many.
    pub count: U64,
    /// Of a number that follows from the name of each, modulo 2⁶⁴.
    pub sum: U64,
}

/// OPEN, and CHANGE where the hold's version is more than 0: reserve the smallest delay, and say the same to the next hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Open<'a> {
    /// What is opened or changed.
    pub hold: Hold,
    /// What it is to carry.
    pub spec: Spec,
    /// Within so many nanoseconds of a message's logical arrival it is to be there.
    pub within: u64,
    /// Nanoseconds of propagation on the links so far.
    pub propagation: u64,
    /// All hosts of the route, the origin first: two at least.
    pub route: &'a [U32],
    /// The smallest delay of each host so far, in nanoseconds: so their number is the place in the route of who receives this.
    pub least: &'a [U64],
    /// The channel's name, as who listens to it knows it.
    pub name: &'a str,
}

/// AGREE, and CONFIRM on its way back: all hops have reserved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Confirm<'a> {
    /// What was opened or changed.
    pub hold: Hold,
    /// By which number who says it will know the channel's data frames.
    pub label: ChannelId,
    /// Nanoseconds of propagation on all links.
    pub propagation: u64,
    /// Each host's delay in nanoseconds, of those that this has passed; of the others the most that they may take. One at least.
    pub delays: &'a [U64],
}

/// The channels that go over this link away from who says so, one by one, where summaries differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct List<'a> {
    /// In rising order, each once.
    pub channels: &'a [Name],
    /// Whether the list ends with these.
    pub last: bool,
}

/// What is said of channels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// Towards the far end.
    Open(Open<'a>),
    /// Towards the origin.
    Confirm(Confirm<'a>),
    /// Towards the origin: it is not to be, and why.
    Refuse(Hold, Refusal),
    /// Towards the far end: nobody sends as before this version any more.
    Settle(Hold),
    /// TEAR, towards the far end: the channel has ended.
    Tear(Name, Cause),
    /// The same towards the origin.
    Ended(Name, Cause),
    /// REFRESH: a digest of all channels that go over this link away from who says so, where so many messages of the other end had been heard.
    Summary {
        /// Of all of them.
        digest: Digest,
        /// So many had been heard.
        heard: u64,
    },
    /// The last summary differs from what is known here.
    Differs,
    /// The answer to that.
    List(List<'a>),
}

const OPEN: u16 = 16;
const CONFIRM: u16 = 17;
const REFUSE: u16 = 18;
const SETTLE: u16 = 19;
const TEAR: u16 = 20;
const ENDED: u16 = 21;
const SUMMARY: u16 = 22;
const DIFFERS: u16 = 23;
const LIST: u16 = 24;
const LAST: u16 = 25;

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct OpenLayout {
    hold: Hold,
    spec: Spec,
    within: U64,
    propagation: U64,
    hosts: U16,
    hops: U16,
    name: U32,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct ConfirmLayout {
    hold: Hold,
    label: ChannelLayout,
    propagation: U64,
    hops: U32,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct SummaryLayout {
    digest: Digest,
    heard: U64,
}

impl<'a> Open<'a> {
    fn parse(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let layout: &OpenLayout = reader.take()?;
        let spec = layout.spec;
        if spec.amount == 0 || spec.period == 0 || spec.burst == 0 {
            return Err(Malformed::Field("a rate or a burst of nothing"));
        }
        if spec.discard > 1 {
            return Err(Malformed::Field("what becomes of what is late"));
        }
        let (hosts, hops) = (layout.hosts.get(), layout.hops.get());
        if hosts < 2 || hops >= hosts {
            return Err(Malformed::Field("the length of a route"));
        }
        let route = reader.list(hosts.into(), MOST_HOSTS)?;
        let least = reader.list(hops.into(), MOST_HOSTS)?;
        let name = reader.list(layout.name.get(), MOST_NAME)?;
        let name = core::str::from_utf8(name)
            .ok()
            .filter(|name| !name.is_empty());
        Ok(Self {
            hold: layout.hold,
            spec,
            within: layout.within.get(),
            propagation: layout.propagation.get(),
            route,
            least,
            name: name.ok_or(Malformed::Field("a channel's name"))?,
        })
    }

    fn put(&self, sink: &mut impl Sink) {
        sink.put(&OpenLayout {
            hold: self.hold,
            spec: self.spec,
            within: self.within.into(),
            propagation: self.propagation.into(),
            hosts: (self.route.len() as u16).into(),
            hops: (self.least.len() as u16).into(),
            name: (self.name.len() as u32).into(),
        });
        sink.put(self.route);
        sink.put(self.least);
        sink.put(self.name);
    }
}

impl<'a> Confirm<'a> {
    fn parse(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let layout: &ConfirmLayout = reader.take()?;
        let delays = reader.list(layout.hops.get(), MOST_HOSTS)?;
        if delays.is_empty() {
            return Err(Malformed::Field("a route of no hops"));
        }
        Ok(Self {
            hold: layout.hold,
            label: layout.label.into(),
            propagation: layout.propagation.get(),
            delays,
        })
    }

    fn put(&self, sink: &mut impl Sink) {
        sink.put(&ConfirmLayout {
            hold: self.hold,
            label: self.label.into(),
            propagation: self.propagation.into(),
            hops: (self.delays.len() as u32).into(),
        });
        sink.put(self.delays);
    }
}

impl<'a> List<'a> {
    fn parse(reader: &mut Reader<'a>, last: bool) -> Result<Self, Malformed> {
        let count: &U32 = reader.take()?;
        let channels: &[Name] = reader.list(count.get(), LISTED)?;
        if !channels.is_sorted_by(|one, next| one < next) {
            return Err(Malformed::Field("the order of a list"));
        }
        Ok(Self { channels, last })
    }
}

impl<'a> Message<'a> {
    /// As a number: what is on the wire.
    pub(super) const fn kind(&self) -> u16 {
        match self {
            Self::Open(_) => OPEN,
            Self::Confirm(_) => CONFIRM,
            Self::Refuse(..) => REFUSE,
            Self::Settle(_) => SETTLE,
            Self::Tear(..) => TEAR,
            Self::Ended(..) => ENDED,
            Self::Summary { .. } => SUMMARY,
            Self::Differs => DIFFERS,
            Self::List(List { last: false, .. }) => LIST,
            Self::List(List { last: true, .. }) => LAST,
        }
    }

    pub(super) fn parse(kind: u16, reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let message = match kind {
            OPEN => Self::Open(Open::parse(reader)?),
            CONFIRM => Self::Confirm(Confirm::parse(reader)?),
            REFUSE => {
                let hold: &Hold = reader.take()?;
                let why: &RefusalLayout = reader.take()?;
                Self::Refuse(*hold, why.refusal()?)
            }
            SETTLE => Self::Settle(*reader.take()?),
            TEAR | ENDED => {
                let name: &Name = reader.take()?;
                let cause: &CauseLayout = reader.take()?;
                let cause = cause.cause()?;
                if kind == TEAR {
                    Self::Tear(*name, cause)
                } else {
                    Self::Ended(*name, cause)
                }
            }
            SUMMARY => {
                let layout: &SummaryLayout = reader.take()?;
                Self::Summary {
                    digest: layout.digest,
                    heard: layout.heard.get(),
                }
            }
            DIFFERS => Self::Differs,
            LIST | LAST => Self::List(List::parse(reader, kind == LAST)?),
            _ => return Err(Malformed::Kind(kind.into())),
        };
        Ok(message)
    }

    pub(super) fn put(&self, sink: &mut impl Sink) {
        match self {
            Self::Open(open) => open.put(sink),
            Self::Confirm(confirm) => confirm.put(sink),
            Self::Refuse(hold, why) => {
                sink.put(hold);
                sink.put(&RefusalLayout::from(*why));
            }
            Self::Settle(hold) => sink.put(hold),
            Self::Tear(name, cause) | Self::Ended(name, cause) => {
                sink.put(name);
                sink.put(&CauseLayout::from(*cause));
            }
            Self::Summary { digest, heard } => sink.put(&SummaryLayout {
                digest: *digest,
                heard: (*heard).into(),
            }),
            Self::Differs => {}
            Self::List(list) => {
                sink.put(&U32::new(list.channels.len() as u32));
                sink.put(list.channels);
            }
        }
    }
}
