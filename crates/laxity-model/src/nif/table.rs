//! Whose a packet is: the owner of the most specific filter that it matches.
//!
//! Tuple space search (Srinivasan, Suri, Varghese, "Packet classification using tuple space search", SIGCOMM 1999): all conditions with
//! the same mask are in one hash table, a *tier*. A packet is looked up in each tier under its mask, from the mask of most bits to that of
//! fewest.
//!
//! A condition is *more specific* than another if its mask has all bits of the other's and more, and they agree on the other's. Two
//! filters *overlap ambiguously* if a packet may meet a condition of each, and neither of these two conditions is more specific: such a filter is
//! refused. So all conditions in a table that one packet meets are in one line, but for those of one and the same filter; the first that is found
//! is the most specific one, and the search ends there.
//!
//! Costs. A look-up is a hash and a probe for each distinct mask, until one is found: what counts is how many *kinds* of filters there
//! are, not how many filters. Two masks of which neither has all bits of the other are compared by what both look at: each tier
//! keeps a count of its conditions by their value there, so that a registration costs as many hashes as there are tiers, for each of its
//! conditions, however many filters there are. A mask that was in no table yet costs a pass over all filters, as does naming whom a
//! refused one overlaps. A tier that grows moves its entries: in [`Table::insert`], never in a look-up; some 2 ms at 100,000.

use alloc::vec::Vec;
use core::fmt;

use hashbrown::HashTable;

use super::filter::{Condition, Filter};
use super::frame::{Key, WORDS, Words};
use crate::base::random::SplitMix64;

/// Filters and who owns what matches them.
#[derive(Debug)]
pub struct Table<O> {
    hasher: Hasher,
    /// From the mask of most bits to that of fewest.
    tiers: Vec<Tier<O>>,
    /// By their places; a place that was left is used again.
    filters: Vec<Option<(Filter, O)>>,
    free: Vec<usize>,
}

/// A filter in a table. Whoever has it can remove the filter, once.
#[derive(Debug)]
#[must_use = "only with this can the filter be removed again"]
pub struct Registration {
    place: usize,
}

/// A filter is not taken: another one overlaps it, and neither is more specific.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Overlap<O> {
    /// The one that was to be taken.
    pub asked: Filter,
    /// The one that was taken before.
    pub held: Filter,
    /// Whose that is.
    pub owner: O,
}

impl<O> fmt::Display for Overlap<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, held, .. } = self;
        write!(
            f,
            "`{asked}` and `{held}`, which is registered, may both match one packet, and neither is more specific"
        )
    }
}

impl<O: fmt::Debug> core::error::Error for Overlap<O> {}

impl<O: Copy> Table<O> {
    /// Without filters. The seed, which no sender of packets should know, makes hashes that cannot be foreseen; nothing else depends on it.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            hasher: Hasher::new(seed),
            tiers: Vec::new(),
            filters: Vec::new(),
            free: Vec::new(),
        }
    }

    /// The owner of the most specific filter that the packet matches. A hash and a probe for each distinct mask, until one is found.
    #[inline]
    #[must_use]
    pub fn find(&self, key: &Key) -> Option<O> {
        self.tiers
            .iter()
            .find_map(|tier| tier.find(&self.hasher, key.words().and(&tier.mask)))
            .map(|entry| entry.owner)
    }

    /// Takes a filter.
    ///
    /// # Errors
    ///
    /// One that was taken before overlaps it ambiguously, whoever owns that: what one owner wants of both is written as one filter, with `or`.
    /// Nothing has changed.
    pub fn insert(&mut self, filter: Filter, owner: O) -> Result<Registration, Overlap<O>> {
        if let Some((held, owner)) = self.rival(&filter) {
            return Err(Overlap {
                asked: filter,
                held: held.clone(),
                owner: *owner,
            });
        }
        let place = self.free.pop().unwrap_or(self.filters.len());
        // All tiers are there, and count, before the first condition comes.
        for condition in filter.alternatives() {
            self.make_tier(condition.mask());
        }
        for condition in filter.alternatives() {
            if let Some(tier) = tier_of(&mut self.tiers, condition.mask()) {
                tier.add(&self.hasher, *condition.value(), owner);
            }
        }
        if place == self.filters.len() {
            self.filters.push(None);
        }
        self.filters[place] = Some((filter, owner));
        Ok(Registration { place })
    }

    /// Gives a filter back, and whose it was. What it matched is from now on the next more general one's. `None` if it was never in this table.
    pub fn remove(&mut self, registration: Registration) -> Option<(Filter, O)> {
        let Registration { place } = registration;
        let (filter, owner) = self.filters.get_mut(place)?.take()?;
        self.free.push(place);
        for condition in filter.alternatives() {
            if let Some(tier) = tier_of(&mut self.tiers, condition.mask()) {
                tier.take(&self.hasher, condition.value());
            }
        }
        let before = self.tiers.len();
        self.tiers.retain(|tier| !tier.entries.is_empty());
        if self.tiers.len() < before {
            self.forget_counts();
        }
        Some((filter, owner))
    }

    /// How many filters there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.filters.len() - self.free.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many distinct masks there are: the most probes of a look-up.
    #[must_use]
    pub fn masks(&self) -> usize {
        self.tiers.len()
    }

    /// Of all filters that overlap this one ambiguously, the one at the lowest place.
    fn rival(&self, filter: &Filter) -> Option<&(Filter, O)> {
        let all = filter.alternatives();
        if !all.iter().any(|asked| self.may_overlap(asked)) {
            return None;
        }
        let overlaps = |held: &&(Filter, O)| {
            let held = held.0.alternatives();
            all.iter()
                .any(|one| held.iter().any(|other| is_ambiguous(one, other)))
        };
        self.filters.iter().flatten().find(overlaps)
    }

    /// Whether one that is held overlaps this condition ambiguously; perhaps, too, where a tier has no counts for it yet.
    fn may_overlap(&self, asked: &Condition) -> bool {
        self.tiers.iter().any(|tier| {
            if tier.mask == *asked.mask() {
                return tier.find(&self.hasher, *asked.value()).is_some();
            }
            let Some(common) = common(&tier.mask, asked.mask()) else {
                return false;
            };
            let counts = tier.counts.iter().find(|counts| counts.mask == common);
            counts.is_none_or(|counts| counts.has(&self.hasher, &asked.value().and(&common)))
        })
    }

    /// Makes a mask's tier, if there is none yet.
    fn make_tier(&mut self, mask: &Words) {
        if tier_of(&mut self.tiers, mask).is_some() {
            return;
        }
        for tier in &mut self.tiers {
            if let Some(common) = common(&tier.mask, mask)
                && !tier.counts.iter().any(|counts| counts.mask == common)
            {
                let mut counts = Counts::new(common);
                let held = self.filters.iter().flatten();
                held.flat_map(|(filter, _)| filter.alternatives())
                    .filter(|condition| *condition.mask() == tier.mask)
                    .for_each(|condition| counts.add(&self.hasher, condition.value()));
                tier.counts.push(counts);
            }
        }
        let mut counts: Vec<Counts> = Vec::new();
        for common in self.tiers.iter().filter_map(|tier| common(&tier.mask, mask)) {
            if !counts.iter().any(|counts| counts.mask == common) {
                counts.push(Counts::new(common));
            }
        }
        let more = |tier: &Tier<O>| tier.mask.count_ones() >= mask.count_ones();
        let at = self.tiers.partition_point(more);
        self.tiers.insert(
            at,
            Tier {
                mask: *mask,
                entries: HashTable::new(),
                counts,
            },
        );
    }

    /// Drops the counts that were kept for tiers that are gone.
    fn forget_counts(&mut self) {
        let masks: Vec<Words> = self.tiers.iter().map(|tier| tier.mask).collect();
        for tier in &mut self.tiers {
            let mask = tier.mask;
            let is_needed = |counts: &Counts| {
                let mut needed = masks.iter().filter_map(|other| common(&mask, other));
                needed.any(|common| common == counts.mask)
            };
            tier.counts.retain(is_needed);
        }
    }
}

fn tier_of<'t, O>(tiers: &'t mut [Tier<O>], mask: &Words) -> Option<&'t mut Tier<O>> {
    tiers.iter_mut().find(|tier| tier.mask == *mask)
}

/// Whether a packet may meet both, and neither is more specific.
fn is_ambiguous(one: &Condition, other: &Condition) -> bool {
    if one.mask() == other.mask() {
        return one == other;
    }
    common(one.mask(), other.mask()).is_some() && one.meets(other)
}

/// What two masks both look at, if each looks at something more.
fn common(one: &Words, other: &Words) -> Option<Words> {
    let both = one.and(other);
    (both != *one && both != *other).then_some(both)
}

/// All conditions of one mask.
#[derive(Debug)]
struct Tier<O> {
    mask: Words,
    entries: HashTable<Entry<O>>,
    /// For each mask that this one has in common with another of which it is neither part nor whole.
    counts: Vec<Counts>,
}

#[derive(Debug)]
struct Entry<O> {
    value: Words,
    owner: O,
}

impl<O> Tier<O> {
    #[inline]
    fn find(&self, hasher: &Hasher, value: Words) -> Option<&Entry<O>> {
        let hash = hasher.hash(&value);
        self.entries.find(hash, |entry| entry.value == value)
    }

    fn add(&mut self, hasher: &Hasher, value: Words, owner: O) {
        for counts in &mut self.counts {
            counts.add(hasher, &value);
        }
        let entry = Entry { value, owner };
        let hash = hasher.hash(&value);
        self.entries
            .insert_unique(hash, entry, |entry| hasher.hash(&entry.value));
    }

    fn take(&mut self, hasher: &Hasher, value: &Words) {
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
struct Counts {
    mask: Words,
    counts: HashTable<(Words, usize)>,
}

impl Counts {
    fn new(mask: Words) -> Self {
        let counts = HashTable::new();
        Self { mask, counts }
    }

    fn has(&self, hasher: &Hasher, value: &Words) -> bool {
        let hash = hasher.hash(value);
        self.counts.find(hash, |(held, _)| held == value).is_some()
    }

    fn add(&mut self, hasher: &Hasher, value: &Words) {
        let value = value.and(&self.mask);
        let entry = self.counts.entry(
            hasher.hash(&value),
            |(held, _)| *held == value,
            |(held, _)| hasher.hash(held),
        );
        entry.or_insert((value, 0)).get_mut().1 += 1;
    }

    fn take(&mut self, hasher: &Hasher, value: &Words) {
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
struct Hasher([u64; WORDS + 1]);

impl Hasher {
    fn new(seed: u64) -> Self {
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
