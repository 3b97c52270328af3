//! A part of a channel's message.

use core::num::{NonZeroU16, NonZeroU32};

use laxity_model::channels::clocks::Place;
use laxity_model::channels::reassembly::Fragment;
use laxity_model::channels::signalling::Label;
use laxity_model::{Instant, Span};
use zerocopy::network_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::layout::Malformed;

/// A part of a message, with what whoever forwards or receives it has to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Data<'a> {
    /// Whose message it is, by who receives the frame.
    pub channel: Label,
    /// Which message of the channel, counted by its sender from 0; best effort by itself.
    pub message: u64,
    /// Which part of it, from 0: less than `parts`.
    pub part: u16,
    /// How many parts it has.
    pub parts: NonZeroU16,
    /// By how many nanoseconds it left before it was due at the hop that it leaves: ℓ + d − departure. Less than nothing, if it was late. Of best effort, which is never due, 0.
    pub earliness: i64,
    /// When it left, and what is known of how early it was; nothing of best effort.
    pub left: Left,
    /// It broke its sender's promise, and goes as best effort.
    pub best_effort: bool,
    /// What of the message is in it; of a message of several parts something.
    pub payload: &'a [u8],
}

/// When a frame left a host, and what that host knew of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Left {
    /// When its last bit left, by the clock of who sent it.
    pub at: Instant,
    /// So much less early it may have been than it says; [`Span::MAX`]: not known. What is no less than 2³² − 1 ns is not known either.
    pub error: Span,
    /// The first of hosts and links on its way that made it late, as far as is known.
    pub late: Option<Place>,
}

impl Left {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self {
        at: Instant::ZERO,
        error: Span::MAX,
        late: None,
    };
}

impl Default for Left {
    fn default() -> Self {
        Self::UNKNOWN
    }
}

impl Data<'_> {
    /// As the bookkeeping of messages has it.
    #[must_use]
    pub fn fragment(&self) -> Fragment {
        Fragment {
            message: self.message,
            part: self.part.into(),
            parts: NonZeroU32::from(self.parts),
        }
    }
}

const BEST_EFFORT: u16 = 1;

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct LabelLayout {
    index: U32,
    generation: U32,
}

impl From<Label> for LabelLayout {
    fn from(label: Label) -> Self {
        Self {
            index: label.index.into(),
            generation: label.generation.into(),
        }
    }
}

impl From<LabelLayout> for Label {
    fn from(layout: LabelLayout) -> Self {
        Self {
            index: layout.index.get(),
            generation: layout.generation.get(),
        }
    }
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct DataLayout {
    channel: LabelLayout,
    message: U64,
    part: U16,
    parts: U16,
    flags: U16,
    late: LateLayout,
    earliness: I64,
    left: U64,
    error: U32,
}

/// Who made a message late: 0 nobody, 1 a host, 2 a link; and which of them.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct LateLayout {
    kind: u8,
    number: u8,
}

impl LateLayout {
    const fn new(late: Option<Place>) -> Self {
        let (kind, number) = match late {
            None => (0, 0),
            Some(Place::Host(number)) => (1, number),
            Some(Place::Link(number)) => (2, number),
        };
        Self { kind, number }
    }

    const fn place(self) -> Result<Option<Place>, Malformed> {
        match (self.kind, self.number) {
            (0, 0) => Ok(None),
            (1, number) => Ok(Some(Place::Host(number))),
            (2, number) => Ok(Some(Place::Link(number))),
            _ => Err(Malformed::Field("who made it late")),
        }
    }
}

/// What is more is not known.
const MOST_ERROR: u32 = u32::MAX;

fn error(error: Span) -> u32 {
    u32::try_from(error.as_nanos()).unwrap_or(MOST_ERROR)
}

impl<'a> Data<'a> {
    pub(super) fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        let (layout, payload) = DataLayout::ref_from_prefix(body).map_err(|_| Malformed::Short)?;
        let (part, parts) = (layout.part.get(), layout.parts.get());
        let parts = NonZeroU16::new(parts).ok_or(Malformed::Field("a message of no parts"))?;
        let flags = layout.flags.get();
        let data = Self {
            channel: layout.channel.into(),
            message: layout.message.get(),
            part,
            parts,
            earliness: layout.earliness.get(),
            left: Left {
                at: Instant::from_nanos(layout.left.get()),
                error: match layout.error.get() {
                    MOST_ERROR => Span::MAX,
                    error => Span::from_nanos(error.into()),
                },
                late: layout.late.place()?,
            },
            best_effort: flags & BEST_EFFORT != 0,
            payload,
        };
        if part >= parts.get() {
            return Err(Malformed::Field("a part that its message has not"));
        }
        if parts.get() > 1 && payload.is_empty() {
            return Err(Malformed::Field("an empty part of several"));
        }
        if flags & !BEST_EFFORT != 0 {
            return Err(Malformed::Field("a flag"));
        }
        if data.best_effort && (data.earliness, data.left) != (0, Left::UNKNOWN) {
            return Err(Malformed::Field("the earliness of best effort"));
        }
        Ok(data)
    }

    pub(super) fn length(&self) -> usize {
        size_of::<DataLayout>() + self.payload.len()
    }

    /// Into as many bytes as its length.
    pub(super) fn write(&self, out: &mut [u8]) {
        let layout = DataLayout {
            channel: self.channel.into(),
            message: self.message.into(),
            part: self.part.into(),
            parts: self.parts.get().into(),
            flags: u16::from(self.best_effort).into(),
            late: LateLayout::new(self.left.late),
            earliness: self.earliness.into(),
            left: self.left.at.as_nanos().into(),
            error: error(self.left.error).into(),
        };
        let (head, payload) = out.split_at_mut(size_of::<DataLayout>());
        head.copy_from_slice(layout.as_bytes());
        payload.copy_from_slice(self.payload);
    }
}
