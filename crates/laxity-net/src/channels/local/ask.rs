//! What an application says.

use core::num::NonZeroU32;

use laxity_model::Span;
use laxity_model::channels::admission::Traffic;
use laxity_model::channels::asked::Name;
use laxity_model::channels::signalling::HostId;
use laxity_model::channels::source::Excess;
use zerocopy::network_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::super::frame::{Malformed, Reader, SpecLayout};
use super::{ANY, APPLICATIONS, NONE, OF_NODE, Put, among, name, parse, put_name, written};

/// What is asked for a channel that stands in no file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spec {
    /// Where it is to end.
    pub to: HostId,
    /// What it may send.
    pub traffic: Traffic,
    /// Whether what is late is discarded by the first hop that knows.
    pub discard: bool,
    /// The bound that is asked for.
    pub within: Span,
    /// What becomes of what is too much.
    pub over: Excess,
}

/// How an application takes a channel that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Takes {
    /// Bytes of the largest message.
    pub largest: NonZeroU32,
    /// So many messages may wait for it.
    pub room: NonZeroU32,
    /// How long after it was due a message is given up that is not complete.
    pub patience: Span,
}

/// What an application says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ask {
    /// It speaks this version. The first that is said, and answered by [`Welcome`](super::Answer::Welcome).
    Hello,
    /// A channel is to be opened, which has this number from now on: [`Granted`](super::Answer::Granted) or [`Refused`](super::Answer::Refused).
    Open {
        /// By which it is known here: less than [`NODES`](super::NODES), and not 0.
        number: u32,
        /// Who listens to this name gets it.
        name: Name,
        /// What it is to be; `None`: as it stands in the network's file.
        spec: Option<Spec>,
    },
    /// One that it opened is to carry something else from now on, or within another bound: as of `Open`, and what it had is kept where that is refused.
    Change {
        /// Which.
        number: u32,
        /// What it is to be. Where it ends stays as it was, and what becomes of what is late or too much.
        spec: Spec,
    },
    /// A channel is to be closed, or a name is not to be listened to any more: [`Ended`](super::Answer::Ended).
    Close {
        /// Which.
        number: u32,
    },
    /// It listens to a name: [`Listens`](super::Answer::Listens) or [`Refused`](super::Answer::Refused), and from then on told of each channel that comes, by [`Incoming`](super::Answer::Incoming).
    Listen {
        /// As of `Open`.
        number: u32,
        /// To which.
        name: Name,
    },
    /// It takes a channel that came: [`Granted`](super::Answer::Granted), with the ring by which its messages come.
    Agree {
        /// By which the node knows it.
        number: u32,
        /// How.
        takes: Takes,
    },
    /// It does not.
    Decline {
        /// By which the node knows it.
        number: u32,
        /// What is told to who opens it.
        why: u32,
    },
}

const HELLO: u8 = 1;
const OPEN: u8 = 2;
const OPEN_NAMED: u8 = 3;
const CHANGE: u8 = 4;
const CLOSE: u8 = 5;
const LISTEN: u8 = 6;
const AGREE: u8 = 7;
const DECLINE: u8 = 8;

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct AskedLayout {
    to: U32,
    spec: SpecLayout,
    within: U64,
    over: U32,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct TakesLayout {
    largest: U32,
    room: U32,
    patience: U64,
}

const EXCESS: [Excess; 5] = [
    Excess::Shape,
    Excess::Block,
    Excess::Demote,
    Excess::DropNewest,
    Excess::DropOldest,
];

fn spec(reader: &mut Reader<'_>) -> Result<Spec, Malformed> {
    let layout: &AskedLayout = reader.take()?;
    let (traffic, discard) = layout.spec.spec()?;
    let over = layout.over.get().checked_sub(1);
    let over = over.and_then(|over| EXCESS.get(over as usize));
    Ok(Spec {
        to: HostId(layout.to.get()),
        traffic,
        discard,
        within: Span::from_nanos(layout.within.get()),
        over: *over.ok_or(Malformed::Field("what becomes of what is too much"))?,
    })
}

fn takes(reader: &mut Reader<'_>) -> Result<Takes, Malformed> {
    let layout: &TakesLayout = reader.take()?;
    let some = |number: U32| NonZeroU32::new(number.get()).ok_or(Malformed::Field("no room"));
    Ok(Takes {
        largest: some(layout.largest)?,
        room: some(layout.room)?,
        patience: Span::from_nanos(layout.patience.get()),
    })
}

fn put_takes(takes: &Takes, into: &mut dyn Put) {
    let layout = TakesLayout {
        largest: takes.largest.get().into(),
        room: takes.room.get().into(),
        patience: takes.patience.as_nanos().into(),
    };
    into.bytes(layout.as_bytes());
}

fn put_spec(spec: &Spec, into: &mut dyn Put) {
    let over = match spec.over {
        Excess::Shape => 1,
        Excess::Block => 2,
        Excess::Demote => 3,
        Excess::DropNewest => 4,
        Excess::DropOldest => 5,
    };
    let layout = AskedLayout {
        to: spec.to.0.into(),
        spec: SpecLayout::new(&spec.traffic, spec.discard),
        within: spec.within.as_nanos().into(),
        over: U32::new(over),
    };
    into.bytes(layout.as_bytes());
}

impl Ask {
    /// What these bytes say: one message, whole.
    ///
    /// # Errors
    ///
    /// Why they are none; [`Malformed::Version`] where another version is spoken.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let (kind, number, mut reader) = parse(bytes)?;
        let own = || among(number, &APPLICATIONS);
        let ask = match kind {
            HELLO => among(number, &NONE).map(|_| Self::Hello)?,
            OPEN => Self::Open {
                number: own()?,
                spec: Some(spec(&mut reader)?),
                name: name(&mut reader)?,
            },
            OPEN_NAMED => Self::Open {
                number: own()?,
                spec: None,
                name: name(&mut reader)?,
            },
            CHANGE => Self::Change {
                number: own()?,
                spec: spec(&mut reader)?,
            },
            CLOSE => Self::Close {
                number: among(number, &ANY)?,
            },
            LISTEN => Self::Listen {
                number: own()?,
                name: name(&mut reader)?,
            },
            AGREE => Self::Agree {
                number: among(number, &OF_NODE)?,
                takes: takes(&mut reader)?,
            },
            DECLINE => {
                let why: &U32 = reader.take()?;
                Self::Decline {
                    number: among(number, &OF_NODE)?,
                    why: why.get(),
                }
            }
            _ => return Err(Malformed::Kind(kind.into())),
        };
        reader.end()?;
        Ok(ask)
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Hello => written(HELLO, 0, |_| ()),
            Self::Open { number, name, spec } => match spec {
                Some(spec) => written(OPEN, *number, |into| {
                    put_spec(spec, into);
                    put_name(name, into);
                }),
                None => written(OPEN_NAMED, *number, |into| put_name(name, into)),
            },
            Self::Change { number, spec } => written(CHANGE, *number, |into| put_spec(spec, into)),
            Self::Close { number } => written(CLOSE, *number, |_| ()),
            Self::Listen { number, name } => written(LISTEN, *number, |into| put_name(name, into)),
            Self::Agree { number, takes } => written(AGREE, *number, |into| put_takes(takes, into)),
            Self::Decline { number, why } => written(DECLINE, *number, |into| {
                into.bytes(U32::new(*why).as_bytes());
            }),
        }
    }
}
