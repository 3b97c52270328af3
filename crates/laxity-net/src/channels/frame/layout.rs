//! What every frame begins with.

use core::num::NonZeroU32;

use zerocopy::network_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The version of all that is said here. A frame of another one is refused.
pub const VERSION: u8 = 1;

/// Bytes of the header.
pub const HEADER: usize = size_of::<HeaderLayout>();

/// Bytes of a data frame's own header, behind that.
pub const DATA: usize = size_of::<super::data::DataLayout>();

/// Bytes of the trailer of a sealed frame.
pub const TAG: usize = 16;

/// Bytes of the trailer of a frame that is not sealed.
pub const CHECKSUM: usize = 4;

/// No frame is longer, in bytes: what a jumbo frame of Ethernet holds.
pub const LONGEST: usize = 9_000;

/// What a frame is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Kind {
    /// A part of a message of a channel.
    Data = 1,
    /// Nodes about channels and about each other.
    Signal = 2,
    /// The first message of a handshake.
    First = 3,
    /// Its answer.
    Answer = 4,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Data, Self::Signal, Self::First, Self::Answer];

    /// How many bytes of a sealed frame are authenticated, and sent in clear: the header, and of data the channel, so that a frame is its channel's before it is opened.
    #[must_use]
    pub const fn in_clear(self) -> usize {
        match self {
            Self::Data => HEADER + size_of::<super::data::LabelLayout>(),
            Self::Signal | Self::First | Self::Answer => HEADER,
        }
    }
}

/// Why bytes are no frame of ours.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum Malformed {
    /// They end too early.
    #[error("too short for what it says it is")]
    Short,
    /// There are more than it says, or than there may be.
    #[error("longer than it says, or than any frame")]
    Long,
    /// Another version.
    #[error("version {0} is not spoken here")]
    Version(u8),
    /// No kind of frame, or none of message.
    #[error("there is no kind {0}")]
    Kind(u32),
    /// What is not sealed has a checksum, and not this one.
    #[error("wrong checksum")]
    Checksum,
    /// A field has a value that it cannot have.
    #[error("{0} cannot be so")]
    Field(&'static str),
}

/// There is not so much room for the frame, or it would be longer than any.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("no room for a frame of {needed} bytes")]
pub struct NoRoom {
    /// How long it would be.
    pub needed: usize,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct HeaderLayout {
    version: u8,
    kind: u8,
    length: U16,
    session: U32,
    counter: U64,
}

/// What a frame's header says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Header {
    /// What it is for.
    pub kind: Kind,
    /// The session that it is sealed for, by its receiver's number; `None`: it is not sealed.
    pub session: Option<NonZeroU32>,
    /// How many the session had sealed before it on its side; 0 where it is not sealed.
    pub counter: u64,
}

impl Header {
    /// Bytes of its trailer.
    #[must_use]
    pub const fn trailer(&self) -> usize {
        match self.session {
            Some(_) => TAG,
            None => CHECKSUM,
        }
    }
}

/// Bytes whose header is that of a frame, and of which there are as many as it says. Nothing else of it is believed yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame<'a> {
    /// What the header says.
    pub header: Header,
    bytes: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Of a datagram: all of it is the frame. O(1).
    ///
    /// # Errors
    ///
    /// Why it is none.
    pub fn of_datagram(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let frame = Self::of_padded(bytes)?;
        if frame.bytes.len() < bytes.len() {
            return Err(Malformed::Long);
        }
        Ok(frame)
    }

    /// Of what a link may have padded at its end, as Ethernet does with what is short: the frame is as long as it says. O(1).
    ///
    /// # Errors
    ///
    /// Why it is none.
    pub fn of_padded(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (layout, _) = HeaderLayout::ref_from_prefix(bytes).map_err(|_| Malformed::Short)?;
        if layout.version != VERSION {
            return Err(Malformed::Version(layout.version));
        }
        let is_meant = |kind: &Kind| *kind as u8 == layout.kind;
        let kind = Kind::ALL.into_iter().find(is_meant);
        let kind = kind.ok_or(Malformed::Kind(layout.kind.into()))?;
        let header = Header {
            kind,
            session: NonZeroU32::new(layout.session.get()),
            counter: layout.counter.get(),
        };
        if header.session.is_none() && header.counter != 0 {
            return Err(Malformed::Field("a counter without a session"));
        }
        let length = usize::from(layout.length.get());
        if length > LONGEST {
            return Err(Malformed::Long);
        }
        if length < kind.in_clear() + header.trailer() || bytes.len() < length {
            return Err(Malformed::Short);
        }
        let bytes = &bytes[..length];
        Ok(Self { header, bytes })
    }

    /// All of it.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What is between header and trailer.
    pub(super) fn body(&self) -> &'a [u8] {
        &self.bytes[HEADER..self.bytes.len() - self.header.trailer()]
    }
}

/// Writes the header of a frame with a body of so many bytes, and hands out the room for body and trailer.
///
/// # Errors
///
/// There is no room for all of it.
pub(crate) fn begin(header: Header, body: usize, out: &mut [u8]) -> Result<&mut [u8], NoRoom> {
    let needed = HEADER + body + header.trailer();
    let length = u16::try_from(needed).ok().filter(|_| needed <= LONGEST);
    let (Some(length), Some(out)) = (length, out.get_mut(..needed)) else {
        return Err(NoRoom { needed });
    };
    let layout = HeaderLayout {
        version: VERSION,
        kind: header.kind as u8,
        length: length.into(),
        session: header.session.map_or(0, NonZeroU32::get).into(),
        counter: header.counter.into(),
    };
    let (place, rest) = out.split_at_mut(HEADER);
    place.copy_from_slice(layout.as_bytes());
    Ok(rest)
}
