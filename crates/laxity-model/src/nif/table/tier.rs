//! The conditions of one mask, by their values.

use alloc::vec::Vec;

use hashbrown::HashTable;

use crate::base::random::SplitMix64;
use crate::nif::frame::{WORDS, Words};

/// All conditions of one mask.
#[derive(Debug)]
pub(super) struct Tier<O> {
    pub(super) mask: Words,
    entries: HashTable<Entry<O>>,
    /// For each mask that this one has in common with another of which it is neither part nor whole.
    pub(super) counts: Vec<Counts>,
}

#[derive(Debug)]
pub(super) struct Entry<O> {
    pub(super) value: Words,
    /// The most specific filter that has it, and whose that is.
    pub(super) place: u32,
    pub(super) owner: O,
}

impl<O> Tier<O> {
    /// Without conditions.
    pub(super) fn new(mask: Words, counts: Vec<Counts>) -> Self {
        Self {
            mask,
            entries: HashTable::new(),
            counts,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    #[inline]
    pub(super) fn find(&self, hasher: &Hasher, value: Words) -> Option<&Entry<O>> {
        let hash = hasher.hash(&value);
        self.entries.find(hash, |entry| entry.value.is(&value))
    }

    /// Whether it has this value, and first by the filter at a place.
    pub(super) fn leads(&self, hasher: &Hasher, value: &Words, place: u32) -> bool {
        let entry = self.find(hasher, *value);
        entry.is_some_and(|entry| entry.place == place)
    }

    pub(super) fn find_mut(&mut self, hasher: &Hasher, value: &Words) -> Option<&mut Entry<O>> {
        let hash = hasher.hash(value);
        self.entries.find_mut(hash, |entry| entry.value == *value)
    }

    pub(super) fn add(&mut self, hasher: &Hasher, entry: Entry<O>) {
        for counts in &mut self.counts {
            counts.add(hasher, &entry.value);
        }
        let hash = hasher.hash(&entry.value);
        self.entries
            .insert_unique(hash, entry, |entry| hasher.hash(&entry.value));
    }

    pub(super) fn take(&mut self, hasher: &Hasher, value: &Words) {
        for counts in &mut self.counts {
            counts.take(hasher, value);
        }
        let hash = hasher.hash(value);
        if let Ok(entry) = self.entries.find_entry(hash, |entry| entry.value == *value) {
            entry.remove();
        }
    }
}

/// How many conditions of a tier have each value under a mask that is part of the tier's.
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) mask: Words,
    counts: HashTable<(Words, usize)>,
}

impl Counts {
    pub(super) fn new(mask: Words) -> Self {
        let counts = HashTable::new();
        Self { mask, counts }
    }

    pub(super) fn has(&self, hasher: &Hasher, value: &Words) -> bool {
        let hash = hasher.hash(value);
        self.counts.find(hash, |(held, _)| held == value).is_some()
    }

    pub(super) fn add(&mut self, hasher: &Hasher, value: &Words) {
        let value = value.and(&self.mask);
        let entry = self.counts.entry(
            hasher.hash(&value),
            |(held, _)| *held == value,
            |(held, _)| hasher.hash(held),
        );
        entry.or_insert((value, 0)).get_mut().1 += 1;
    }

    pub(super) fn take(&mut self, hasher: &Hasher, value: &Words) {
        let value = value.and(&self.mask);
        let held = |(held, _): &(Words, usize)| *held == value;
        if let Ok(mut entry) = self.counts.find_entry(hasher.hash(&value), held) {
            entry.get_mut().1 -= 1;
            if entry.get().1 == 0 {
                entry.remove();
            }
        }
    }
}

/// Products of pairs of words, each with a secret of its own: who does not know the secrets cannot make many keys of one hash.
#[derive(Debug)]
pub(super) struct Hasher([u64; WORDS + 1]);

impl Hasher {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        Self([(); WORDS + 1].map(|()| random.draw()))
    }

    #[inline]
    const fn hash(&self, words: &Words) -> u64 {
        let (Words([a, b, c, d, e, f, g]), Self(s)) = (words, self);
        folded(*a ^ s[0], *b ^ s[1])
            ^ folded(*c ^ s[2], *d ^ s[3])
            ^ folded(*e ^ s[4], *f ^ s[5])
            ^ folded(*g ^ s[6], s[7])
    }
}

/// Both halves of a product, as one.
#[inline]
const fn folded(one: u64, other: u64) -> u64 {
    let product = one as u128 * other as u128;
    (product >> 64) as u64 ^ product as u64
}
