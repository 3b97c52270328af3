//! Whose a packet is: the owner of the most specific filter that it matches.
//!
//! Tuple space search (Srinivasan, Suri, Varghese, "Packet classification using tuple space search", SIGCOMM 1999): all conditions with
//! the same mask are in one hash table, a *tier*. A packet is looked up in each tier under its mask, from the mask of most bits to that of
//! fewest.
//!
//! Of two conditions that a packet meets that one has it
//!
//! * that is *more specific*: its mask has all bits of the other's and more;
//! * else that of the *narrower* filter: each of whose conditions is [within](Condition::is_within) one of the other's, and not the other
//!   way round, as `ip` beside `ip or arp`, or `host 10.0.0.1` beside `net 10.0.0.0/8`. Since tiers are searched in their order, this counts
//!   only if the narrower filter has both conditions, or its own has the mask of more bits.
//!
//! Where a packet may meet a condition of each of two filters, and neither has it by that, they overlap *ambiguously*, and the second one is
//! refused (`src port 53` beside `port 53` is). So whichever condition is found first, in the order of tiers, belongs to the filter that has the packet, and
//! the search ends there.
//!
//! Costs. A look-up is a hash and a probe for each distinct mask, until one is found: what counts is how many *kinds* of filters there
//! are, not how many filters. Two masks of which neither has all bits of the other are compared by what both look at: each tier
//! keeps a count of its conditions by their value there, so that a registration costs as many hashes as there are tiers, for each of its
//! conditions, however many filters there are. A mask that was in no table yet costs a pass over all filters, as does naming whom a
//! refused one overlaps. A registration took 0.1 µs, and so can be done between two packets; a tier that grows moves all its
//! entries, in [`Table::insert`] and never in a look-up: 0.4 ms at 14,336, some 10 ms at 114,688. What a driver's ring holds for so long costs no packet.

mod tier;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;

use super::filter::{Condition, Filter};
use super::frame::{Key, Words};
use tier::{Counts, Entry, Hasher, Tier};

/// Filters and who owns what matches them.
#[derive(Debug)]
pub struct Table<O> {
    hasher: Hasher,
    /// From the mask of most bits to that of fewest.
    tiers: Vec<Tier<O>>,
    /// By their places; a place that was left is used again.
    filters: Vec<Option<(Filter, O)>>,
    free: Vec<u32>,
    /// Of conditions that several filters have: the places of those but the most specific one, each within the next.
    others: BTreeMap<Condition, Vec<u32>>,
}

/// A filter in a table. Whoever has it can remove the filter, once.
#[derive(Debug)]
#[must_use = "only with this can the filter be removed again"]
pub struct Registration {
    place: u32,
}

/// A filter is not taken beside another one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Overlap<O> {
    /// Why not.
    pub why: Clash,
    /// The one that was to be taken.
    pub asked: Filter,
    /// The one that was taken before.
    pub held: Filter,
    /// Whose that is.
    pub owner: O,
}

/// Why two filters cannot be there at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clash {
    /// They overlap, and neither is more specific.
    Ambiguous,
    /// The one that was asked for is more specific than one whose packets the interface finds itself, and gives to that one.
    NarrowerThanFound,
    /// The interface is to find the packets of the one that was asked for, of which the other has some.
    FoundBesideNarrower,
}

impl<O> fmt::Display for Overlap<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, held, .. } = self;
        match self.why {
            Clash::Ambiguous => write!(
                f,
                "`{asked}` and `{held}`, which is registered, may both match one packet, and neither is more specific"
            ),
            Clash::NarrowerThanFound => write!(
                f,
                "`{asked}` is more specific than `{held}`, all of whose packets the interface finds before anybody looks for others"
            ),
            Clash::FoundBesideNarrower => write!(
                f,
                "the interface cannot find the packets of `{asked}`, as `{held}`, which is registered, is more specific"
            ),
        }
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
            others: BTreeMap::new(),
        }
    }

    /// The owner of the most specific filter that the packet matches. A hash and a probe for each distinct mask, until one is found.
    // Always: a key that was just parsed stays in registers.
    #[inline(always)]
    #[must_use]
    pub fn find(&self, key: &Key) -> Option<O> {
        // A loop, since `find_map` is not inlined.
        for tier in &self.tiers {
            if let Some(entry) = tier.find(&self.hasher, key.words().and(&tier.mask)) {
                return Some(entry.owner);
            }
        }
        None
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
                why: Clash::Ambiguous,
                asked: filter,
                held: held.clone(),
                owner: *owner,
            });
        }
        let place = self.place();
        // All tiers are there, and count, before the first condition comes.
        for condition in filter.alternatives() {
            self.make_tier(condition.mask());
        }
        let all = filter.alternatives().to_vec();
        self.filters[place as usize] = Some((filter, owner));
        for condition in all {
            self.hold(condition, place, owner);
        }
        Ok(Registration { place })
    }

    /// A place for one more filter.
    fn place(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.filters.push(None);
            u32::try_from(self.filters.len() - 1).expect("memory ends before 2³² filters")
        })
    }

    /// Whether the filter at a place is within the one at the other.
    fn is_within(&self, one: u32, other: u32) -> bool {
        let at = |place: u32| self.filters.get(place as usize)?.as_ref();
        let both = at(one).zip(at(other));
        both.is_some_and(|((one, _), (other, _))| is_within(one, other))
    }

    /// Puts a condition of the filter at a place, which is nested with all that have it.
    fn hold(&mut self, condition: Condition, place: u32, owner: O) {
        let value = *condition.value();
        let Some(tier) = tier_of(&mut self.tiers, condition.mask()) else {
            return;
        };
        let Some(entry) = tier.find_mut(&self.hasher, &value) else {
            tier.add(
                &self.hasher,
                Entry {
                    value,
                    place,
                    owner,
                },
            );
            return;
        };
        let first = entry.place;
        let mut others = self.others.remove(&condition).unwrap_or_default();
        others.insert(0, first);
        let at = others.partition_point(|other| self.is_within(*other, place));
        others.insert(at, place);
        self.lead(condition, others);
    }

    /// Makes the first of these the one that has a condition, and keeps the rest.
    fn lead(&mut self, condition: Condition, mut all: Vec<u32>) {
        let first = all.remove(0);
        let owner = self.filters.get(first as usize).and_then(Option::as_ref);
        let tier = tier_of(&mut self.tiers, condition.mask());
        let entry = tier.and_then(|tier| tier.find_mut(&self.hasher, condition.value()));
        if let Some((entry, (_, owner))) = entry.zip(owner) {
            (entry.place, entry.owner) = (first, *owner);
        }
        if !all.is_empty() {
            self.others.insert(condition, all);
        }
    }

    /// Takes a condition from the filter at a place.
    fn leave(&mut self, condition: Condition, place: u32) {
        let Some(tier) = tier_of(&mut self.tiers, condition.mask()) else {
            return;
        };
        let Some(mut all) = self.others.remove(&condition) else {
            tier.take(&self.hasher, condition.value());
            return;
        };
        if let Some(entry) = tier.find_mut(&self.hasher, condition.value()) {
            all.insert(0, entry.place);
        }
        all.retain(|other| *other != place);
        self.lead(condition, all);
    }

    /// Gives a filter back, and whose it was. What it matched is from now on the next more general one's. `None` if it was never in this table.
    pub fn remove(&mut self, Registration { place }: Registration) -> Option<(Filter, O)> {
        let (filter, owner) = self.filters.get_mut(place as usize)?.take()?;
        self.free.push(place);
        for condition in filter.alternatives() {
            self.leave(*condition, place);
        }
        let before = self.tiers.len();
        self.tiers.retain(|tier| !tier.is_empty());
        if self.tiers.len() < before {
            self.forget_counts();
        }
        Some((filter, owner))
    }

    /// Those that there are, and whose.
    pub(super) fn filters(&self) -> impl Iterator<Item = &(Filter, O)> {
        self.filters.iter().flatten()
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
        let held = self.filters.iter().flatten();
        held.into_iter()
            .find(|(held, _)| is_ambiguous(filter, held))
    }

    /// Whether one that is held may overlap this condition ambiguously: one that does is never missed.
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
                // Each condition once, with its most specific filter.
                for (place, (filter, _)) in (0..).zip(&self.filters).filter_map(held) {
                    let all = filter.alternatives().iter().map(Condition::value);
                    let leads = |value: &&Words| tier.leads(&self.hasher, value, place);
                    all.filter(leads)
                        .for_each(|value| counts.add(&self.hasher, value));
                }
                tier.counts.push(counts);
            }
        }
        let mut counts: Vec<Counts> = Vec::new();
        for common in self
            .tiers
            .iter()
            .filter_map(|tier| common(&tier.mask, mask))
        {
            if !counts.iter().any(|counts| counts.mask == common) {
                counts.push(Counts::new(common));
            }
        }
        let more = |tier: &Tier<O>| tier.mask.count_ones() >= mask.count_ones();
        let at = self.tiers.partition_point(more);
        self.tiers.insert(at, Tier::new(*mask, counts));
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

fn held<T>((place, filter): (u32, &Option<T>)) -> Option<(u32, &T)> {
    Some((place, filter.as_ref()?))
}

fn tier_of<'t, O>(tiers: &'t mut [Tier<O>], mask: &Words) -> Option<&'t mut Tier<O>> {
    tiers.iter_mut().find(|tier| tier.mask == *mask)
}

/// Whether a packet may meet a condition of each, and neither filter has it.
fn is_ambiguous(one: &Filter, other: &Filter) -> bool {
    match (is_within(one, other), is_within(other, one)) {
        (true, false) => may_both_have(one, other, true),
        (false, true) => may_both_have(other, one, true),
        _ => may_both_have(one, other, false),
    }
}

/// The same, where it is known whether the first is the narrower one.
fn may_both_have(first: &Filter, second: &Filter, is_narrower: bool) -> bool {
    let overlaps = |one: &Condition, other: &Condition| {
        let is_nested = one != other && (one.is_within(other) || other.is_within(one));
        let is_found = || {
            one.mask().count_ones() > other.mask().count_ones()
                || first.alternatives().contains(other)
        };
        one.meets(other) && !is_nested && !(is_narrower && is_found())
    };
    let all = first.alternatives().iter();
    all.into_iter().any(|one| {
        second
            .alternatives()
            .iter()
            .any(|other| overlaps(one, other))
    })
}

/// Whether one filter has packets that the other one wants, too, as it is more specific. Of filters that are held together.
pub(super) fn takes_from(one: &Filter, other: &Filter) -> bool {
    let all = one.alternatives().iter();
    all.into_iter().any(|one| {
        let mut others = other.alternatives().iter();
        others.any(|other| one != other && one.is_within(other))
    })
}

/// Whether every packet that one filter wants is wanted by the other, as far as single conditions tell.
fn is_within(one: &Filter, other: &Filter) -> bool {
    let all = one.alternatives().iter();
    all.into_iter().all(|one| {
        other
            .alternatives()
            .iter()
            .any(|other| one.is_within(other))
    })
}

/// What two masks both look at, if each looks at something more.
fn common(one: &Words, other: &Words) -> Option<Words> {
    let both = one.and(other);
    (both != *one && both != *other).then_some(both)
}
