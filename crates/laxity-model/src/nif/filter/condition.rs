//! What all packets of one kind have in common: a value under a mask.

use crate::nif::frame::{Field, Key, Words};

/// The packets whose key has a value under a mask.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Condition {
    mask: Words,
    value: Words,
}

impl Condition {
    /// Every packet meets it.
    pub(super) const ALL: Self = Self {
        mask: Words([0; crate::nif::frame::WORDS]),
        value: Words([0; crate::nif::frame::WORDS]),
    };

    /// Which bits of a key it looks at.
    #[must_use]
    pub const fn mask(&self) -> &Words {
        &self.mask
    }

    /// What these bits are; all others are zero.
    #[must_use]
    pub const fn value(&self) -> &Words {
        &self.value
    }

    /// That, and a field's value. For fields that it does not look at yet.
    #[must_use]
    pub(super) fn with(self, field: Field, value: u64) -> Self {
        let mut words = Words::default();
        field.put(&mut words, value);
        self.with_bits(field.mask(), words)
    }

    /// That, and a value under a mask. For bits that it does not look at yet.
    #[must_use]
    pub(super) fn with_bits(self, mask: Words, value: Words) -> Self {
        Self {
            mask: self.mask.or(&mask),
            value: self.value.or(&value.and(&mask)),
        }
    }

    /// The packets that meet both; `None` if none can.
    pub(super) fn and(&self, other: &Self) -> Option<Self> {
        self.meets(other)
            .then(|| self.with_bits(other.mask, other.value))
    }

    /// Whether a packet may meet both: they agree on all bits that both look at.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        self.value.and(&other.mask) == other.value.and(&self.mask)
    }

    /// Whether it says all that the other says, and so every packet that meets it meets the other.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        self.mask.contains(&other.mask) && self.value.and(&other.mask) == other.value
    }

    /// Whether a packet meets it.
    #[inline]
    #[must_use]
    pub fn matches(&self, key: &Key) -> bool {
        key.words().and(&self.mask) == self.value
    }
}
