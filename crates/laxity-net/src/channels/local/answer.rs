//! What a node says.

use laxity_model::Span;
use laxity_model::channels::asked::{Name, Shortage};
use laxity_model::channels::ring::Shape;
use laxity_model::channels::signalling::message::MOST_HOSTS;
use laxity_model::channels::signalling::{Cause, ChannelId, HostId, Refusal};
use zerocopy::network_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::super::frame::{CauseLayout, Malformed, Reader, RefusalLayout, SpecLayout};
use super::{ANY, APPLICATIONS, NONE, OF_NODE, Put, among, name, parse, put_name, written};
use laxity_model::channels::admission::Traffic;

/// The longest reason why a channel is not enforced, in bytes; what is over is cut off.
pub const MOST_REASON: usize = 256;

/// What a node says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// To who said hello.
    Welcome {
        /// Which host of the network this is.
        host: HostId,
    },
    /// A channel is there, or is now as its change asked.
    Granted {
        /// Which.
        number: u32,
        /// How.
        granted: Granted,
    },
    /// A channel is not there, or is as it was; or a name is not listened to.
    Refused {
        /// Which; 0 where what was said is no message, so that nobody knows.
        number: u32,
        /// Why.
        why: Refused,
    },
    /// A channel comes to a name that is listened to.
    Incoming {
        /// By which the node knows it, from [`NODES`](super::NODES) on.
        number: u32,
        /// To which.
        name: Name,
        /// Where it begins.
        from: HostId,
        /// What it may send.
        traffic: Traffic,
        /// Whether what is late is discarded by the first hop that knows.
        discard: bool,
    },
    /// A name is listened to from now on.
    Listens {
        /// By whom.
        number: u32,
    },
    /// A channel is no more.
    Ended {
        /// Which.
        number: u32,
        /// Why.
        cause: Cause,
    },
}

/// What a channel was granted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Granted {
    /// By which all hosts know it.
    pub channel: ChannelId,
    /// Of the ring by which messages go from now on: its descriptors come along, the memory first. `None`: of the one that is there.
    pub ring: Option<Shape>,
    /// Of all links together.
    pub propagation: Span,
    /// Each host, from where it begins to where it ends; none of a channel that ends here.
    pub hops: Vec<Hop>,
    /// Whether that is enforced.
    pub grade: Grade,
}

/// What one host takes of the bound.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Hop {
    /// Which.
    pub host: HostId,
    /// At most so long.
    pub delay: Span,
}

/// Whether what is granted is enforced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Grade {
    /// It is.
    Enforced,
    /// Not, and why.
    Unenforced(String),
}

/// Why something is not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// By a host of the way, its own among them.
    Host(Refusal<Shortage>),
    /// The user may not.
    Forbidden,
    /// The network's file has no channel of this name that begins here.
    Unnamed,
    /// Somebody listens to this name already.
    Listened,
    /// The number is that of something else, or of nothing.
    Number,
    /// What was said is no message of version 1.
    Garbled,
}

const WELCOME: u8 = 129;
const GRANTED: u8 = 130;
const REFUSED: u8 = 131;
const INCOMING: u8 = 132;
const ENDED: u8 = 133;
const LISTENS: u8 = 134;

/// Behind it the delays, the hosts and the reason.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct GrantedLayout {
    origin: U32,
    generation: U32,
    channel: U32,
    buffers: U32,
    bytes: U32,
    propagation: U64,
    hops: U32,
    /// 0: it is enforced.
    reason: U32,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct HopLayout {
    host: U32,
    delay: U64,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct IncomingLayout {
    from: U32,
    spec: SpecLayout,
}

const HOST: u32 = 1;
/// The other reasons, from 2 on.
const OTHERS: [Refused; 5] = [
    Refused::Forbidden,
    Refused::Unnamed,
    Refused::Listened,
    Refused::Number,
    Refused::Garbled,
];

fn granted(reader: &mut Reader<'_>) -> Result<Granted, Malformed> {
    let layout: &GrantedLayout = reader.take()?;
    let ring = match (layout.buffers.get(), layout.bytes.get()) {
        (0, 0) => None,
        (buffers, bytes) => {
            let shape = Shape::new(buffers, bytes);
            Some(shape.map_err(|_| Malformed::Field("what a ring has"))?)
        }
    };
    let hops: &[HopLayout] = reader.list(layout.hops.get(), ..=MOST_HOSTS)?;
    let reason: &[u8] = reader.list(layout.reason.get(), ..=MOST_REASON)?;
    let reason = core::str::from_utf8(reason);
    let reason = reason.map_err(|_| Malformed::Field("why it is not enforced"))?;
    let hop = |layout: &HopLayout| Hop {
        host: HostId(layout.host.get()),
        delay: Span::from_nanos(layout.delay.get()),
    };
    Ok(Granted {
        channel: ChannelId {
            origin: HostId(layout.origin.get()),
            generation: layout.generation.get(),
            number: layout.channel.get(),
        },
        ring,
        propagation: Span::from_nanos(layout.propagation.get()),
        hops: hops.iter().map(hop).collect(),
        grade: match reason {
            "" => Grade::Enforced,
            reason => Grade::Unenforced(reason.to_owned()),
        },
    })
}

fn put_granted(granted: &Granted, into: &mut dyn Put) {
    let reason = match &granted.grade {
        Grade::Enforced => "",
        Grade::Unenforced(reason) if reason.is_empty() => "no reason is told",
        Grade::Unenforced(reason) => &reason[..reason.floor_char_boundary(MOST_REASON)],
    };
    let hops = &granted.hops[..granted.hops.len().min(MOST_HOSTS)];
    let layout = GrantedLayout {
        origin: granted.channel.origin.0.into(),
        generation: granted.channel.generation.into(),
        channel: granted.channel.number.into(),
        buffers: granted.ring.map_or(0, Shape::buffers).into(),
        bytes: granted.ring.map_or(0, Shape::bytes).into(),
        propagation: granted.propagation.as_nanos().into(),
        hops: (hops.len() as u32).into(),
        reason: (reason.len() as u32).into(),
    };
    into.bytes(layout.as_bytes());
    for hop in hops {
        let layout = HopLayout {
            host: hop.host.0.into(),
            delay: hop.delay.as_nanos().into(),
        };
        into.bytes(layout.as_bytes());
    }
    into.bytes(reason.as_bytes());
}

fn refused(reader: &mut Reader<'_>) -> Result<Refused, Malformed> {
    let kind: &U32 = reader.take()?;
    if kind.get() == HOST {
        let why: &RefusalLayout = reader.take()?;
        return why.refusal().map(Refused::Host);
    }
    let place = kind.get().checked_sub(HOST + 1);
    let other = place.and_then(|place| OTHERS.get(place as usize));
    other.copied().ok_or(Malformed::Field("why it is refused"))
}

fn put_refused(why: Refused, into: &mut dyn Put) {
    let kind = match why {
        Refused::Host(_) => HOST,
        Refused::Forbidden => 2,
        Refused::Unnamed => 3,
        Refused::Listened => 4,
        Refused::Number => 5,
        Refused::Garbled => 6,
    };
    into.bytes(U32::new(kind).as_bytes());
    if let Refused::Host(refusal) = why {
        into.bytes(RefusalLayout::from(refusal).as_bytes());
    }
}

fn incoming(number: u32, reader: &mut Reader<'_>) -> Result<Answer, Malformed> {
    let layout: &IncomingLayout = reader.take()?;
    let (traffic, discard) = layout.spec.spec()?;
    Ok(Answer::Incoming {
        number: among(number, &OF_NODE)?,
        name: name(reader)?,
        from: HostId(layout.from.get()),
        traffic,
        discard,
    })
}

impl Answer {
    /// What these bytes say: one message, whole.
    ///
    /// # Errors
    ///
    /// Why they are none; [`Malformed::Version`] where another version is spoken.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let (kind, number, mut reader) = parse(bytes)?;
        let answer = match kind {
            WELCOME => {
                among(number, &NONE)?;
                let host: &U32 = reader.take()?;
                let host = HostId(host.get());
                Self::Welcome { host }
            }
            GRANTED => Self::Granted {
                number: among(number, &ANY)?,
                granted: granted(&mut reader)?,
            },
            REFUSED => {
                let why = refused(&mut reader)?;
                let numbers = match why {
                    Refused::Garbled => NONE,
                    _ => ANY,
                };
                Self::Refused {
                    number: among(number, &numbers)?,
                    why,
                }
            }
            INCOMING => incoming(number, &mut reader)?,
            ENDED => {
                let cause: &CauseLayout = reader.take()?;
                Self::Ended {
                    number: among(number, &ANY)?,
                    cause: cause.cause()?,
                }
            }
            LISTENS => Self::Listens {
                number: among(number, &APPLICATIONS)?,
            },
            _ => return Err(Malformed::Kind(kind.into())),
        };
        reader.end()?;
        Ok(answer)
    }

    /// Its bytes. A reason that is too long is cut off, and so are hosts beyond [`MOST_HOSTS`], which no route has.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Welcome { host } => written(WELCOME, 0, |into| {
                into.bytes(U32::new(host.0).as_bytes());
            }),
            Self::Granted { number, granted } => {
                written(GRANTED, *number, |into| put_granted(granted, into))
            }
            Self::Refused { number, why } => {
                written(REFUSED, *number, |into| put_refused(*why, into))
            }
            Self::Incoming {
                number,
                name,
                from,
                traffic,
                discard,
            } => written(INCOMING, *number, |into| {
                let layout = IncomingLayout {
                    from: from.0.into(),
                    spec: SpecLayout::new(traffic, *discard),
                };
                into.bytes(layout.as_bytes());
                put_name(name, into);
            }),
            Self::Listens { number } => written(LISTENS, *number, |_| ()),
            Self::Ended { number, cause } => written(ENDED, *number, |into| {
                into.bytes(CauseLayout::from(*cause).as_bytes());
            }),
        }
    }

    /// How many descriptors come along with it.
    #[must_use]
    pub const fn descriptors(&self) -> usize {
        match self {
            Self::Granted { granted, .. } if granted.ring.is_some() => 2,
            _ => 0,
        }
    }
}
