//! Soft state: what a neighbour does not confirm again and again is gone.
//!
//! Who is before says in one summary a link which channels go over it: their number, and a sum over their names. Who is behind has the same sum, as both change it at the same place of what is said; where it differs, the list is said. What was not in three of them ends, and
//! so does all where three summaries have not come.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::{ChannelId, List, Summary, Terms};
use crate::Instant;
use crate::base::random::scrambled;

/// So many refreshes may be missed.
pub const REFRESHES: u8 = 3;

/// A list may name so many more than are here.
const MANY: u64 = 4_096;

/// A set of channels in short: two that differ have the same with a chance of 2⁻⁶⁴.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Digest {
    /// How many.
    pub count: u64,
    /// Of a number that follows from the name of each, modulo 2⁶⁴.
    pub sum: u64,
}

impl Digest {
    fn of(channel: ChannelId) -> u64 {
        let ChannelId {
            origin,
            generation,
            number,
        } = channel;
        let instance = u64::from(generation) << 32 | u64::from(number);
        scrambled(scrambled(u64::from(origin.0)) ^ instance)
    }

    /// One more.
    pub fn add(&mut self, channel: ChannelId) {
        self.count = self.count.wrapping_add(1);
        self.sum = self.sum.wrapping_add(Self::of(channel));
    }

    /// One less.
    pub fn remove(&mut self, channel: ChannelId) {
        self.count = self.count.wrapping_sub(1);
        self.sum = self.sum.wrapping_sub(Self::of(channel));
    }
}

/// What one link has of it.
#[derive(Clone, Debug)]
pub(super) struct Soft {
    /// Channels that go away from here: we are before.
    pub(super) away: Digest,
    /// Channels that come from there: we are behind.
    pub(super) coming: Digest,
    /// Of these we have said that they have ended, in the message of that number, which who is before may not have heard yet.
    leaving: BTreeMap<ChannelId, u64>,
    /// Who is before has confirmed them last.
    confirmed: Instant,
    /// These were not in the last lists.
    missed: BTreeMap<ChannelId, u8>,
    /// What has come of a list.
    listed: BTreeSet<ChannelId>,
    /// The next summary is due.
    due: Instant,
    /// So many summaries of who is before were not what is here.
    pub(super) differed: u64,
}

/// What becomes of what a list does not agree with.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// They were missed too often.
    pub(super) ends: Vec<ChannelId>,
    /// They are said to come from there, and are not known here.
    pub(super) unknown: Vec<ChannelId>,
}

impl Soft {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            away: Digest::default(),
            coming: Digest::default(),
            leaving: BTreeMap::new(),
            confirmed: now,
            missed: BTreeMap::new(),
            listed: BTreeSet::new(),
            due: now,
            differed: 0,
        }
    }

    /// The link is up.
    pub(super) fn begins(&mut self, now: Instant, terms: &Terms) {
        *self = Self {
            due: now + terms.refresh,
            differed: self.differed,
            ..Self::new(now)
        };
    }

    /// A channel comes from there.
    pub(super) fn comes(&mut self, channel: ChannelId, now: Instant) {
        if self.coming.count == 0 {
            self.confirmed = now;
        }
        self.coming.add(channel);
    }

    /// It was said in that message that a channel that came from there has ended, or never began. Who is before leaves it out as soon as that was said once: also where its change comes after that, and is refused.
    pub(super) fn leaves(&mut self, number: u64, channel: ChannelId) {
        self.leaving.entry(channel).or_insert(number);
    }

    /// Who is before has ended it by itself, and leaves it out whatever it has heard.
    pub(super) fn torn(&mut self, channel: ChannelId) {
        self.leaving.remove(&channel);
    }

    /// Whether the summary is due now.
    pub(super) fn is_due(&mut self, now: Instant, terms: &Terms) -> bool {
        let is_due = self.due <= now;
        if is_due {
            self.due = now + terms.refresh;
        }
        is_due
    }

    /// A summary of what comes from there: whether it is what we have.
    pub(super) fn hears(&mut self, summary: Summary, now: Instant) -> bool {
        self.leaving.retain(|_, number| *number >= summary.heard);
        let mut expected = self.coming;
        for channel in self.leaving.keys() {
            expected.add(*channel);
        }
        let agrees = expected == summary.digest;
        if agrees {
            self.confirmed = now;
            self.missed.clear();
        } else {
            self.differed = self.differed.saturating_add(1);
        }
        agrees
    }

    /// A part of a list of what comes from there, of which these are here.
    pub(super) fn lists(
        &mut self,
        list: List,
        here: impl FnOnce() -> Vec<ChannelId>,
        now: Instant,
    ) -> Settled {
        // Who is before cannot have many more than we have, and cannot make us keep them.
        if self.listed.len() as u64 <= self.coming.count + MANY {
            self.listed.extend(list.channels);
        }
        let mut settled = Settled::default();
        if !list.last {
            return settled;
        }
        self.confirmed = now;
        let mut listed = core::mem::take(&mut self.listed);
        for channel in self.leaving.keys() {
            listed.remove(channel);
        }
        let before = core::mem::take(&mut self.missed);
        for channel in here() {
            if listed.remove(&channel) {
                continue;
            }
            let missed = before.get(&channel).map_or(1, |missed| missed + 1);
            if missed < REFRESHES {
                self.missed.insert(channel, missed);
            } else {
                settled.ends.push(channel);
            }
        }
        settled.unknown.extend(listed);
        settled
    }

    /// Whether all that come from there have been missed too often by now.
    pub(super) fn is_over(&self, now: Instant, terms: &Terms) -> bool {
        self.over_at(terms) <= now
    }

    fn over_at(&self, terms: &Terms) -> Instant {
        if self.coming.count == 0 {
            return Instant::MAX;
        }
        // Half a period is for the way of the last one.
        let longest = terms.refresh * u64::from(REFRESHES) + terms.refresh / 2;
        self.confirmed.checked_add(longest).unwrap_or(Instant::MAX)
    }

    /// When something is due.
    pub(super) fn next(&self, terms: &Terms) -> Instant {
        self.due.min(self.over_at(terms))
    }
}
