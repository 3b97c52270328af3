//! A part of a channel's message.

use core::num::{NonZeroU16, NonZeroU32};

use laxity_model::channels::reassembly::Fragment;
use laxity_model::channels::signalling::Label;
use zerocopy::network_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::layout::Malformed;

/// A part of a message, with what whoever forwards or receives it has to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Data<'a> {
    /// Whose message it is, by who receives the frame.
    pub channel: Label,
    /// Which message of the channel, counted by its sender from 0.
    pub message: u64,
    /// Which part of it, from 0: less than `parts`.
    pub part: u16,
    /// How many parts it has.
    pub parts: NonZeroU16,
    /// By how many nanoseconds it left before it was due at the hop that it leaves: ℓ + d − departure. Less than nothing, if it was late. Of best effort, which is never due, 0.
    pub earliness: i64,
    /// It broke its sender's promise, and goes as best effort.
    pub best_effort: bool,
    /// What of the message is in it; of a message of several parts something.
    pub payload: &'a [u8],
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

const BEST_EFFORT: u32 = 1;

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
    flags: U32,
    earliness: I64,
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
        if data.best_effort && data.earliness != 0 {
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
            flags: u32::from(self.best_effort).into(),
            earliness: self.earliness.into(),
        };
        let (head, payload) = out.split_at_mut(size_of::<DataLayout>());
        head.copy_from_slice(layout.as_bytes());
        payload.copy_from_slice(self.payload);
    }
}
