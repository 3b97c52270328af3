//! Who was admitted to a resource, in the order in which they go.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::resource::Member;
use crate::channels::signalling::ChannelId;
use crate::policy::multiclass::By;
use crate::{Service, Span};

/// By delay, or by priority, the highest first. By delay one comes and goes in O(log n), by priority in O(n).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Members {
    by: By,
    /// By delay, or by number among the priorities.
    ordered: BTreeMap<(u64, ChannelId), Member>,
    /// The first part of each one's key.
    keys: BTreeMap<ChannelId, u64>,
    /// How many have a region of so long.
    regions: BTreeMap<Service, usize>,
}

impl Members {
    pub(super) const fn new(by: By) -> Self {
        Self {
            by,
            ordered: BTreeMap::new(),
            keys: BTreeMap::new(),
            regions: BTreeMap::new(),
        }
    }

    pub(super) const fn by(&self) -> By {
        self.by
    }

    pub(super) fn get(&self, channel: ChannelId) -> Option<&Member> {
        let key = *self.keys.get(&channel)?;
        self.ordered.get(&(key, channel))
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Member> + ExactSizeIterator {
        self.ordered.values()
    }

    /// The longest of all regions; zero where there are none.
    pub(super) fn longest_region(&self) -> Service {
        let longest = self.regions.last_key_value();
        longest.map_or(Service::ZERO, |(region, _)| *region)
    }

    /// The longest region of those whose delay is more than this. By delay, O(1) as a rule.
    pub(super) fn longest_region_behind(&self, delay: Span) -> Service {
        let most = self.longest_region();
        let mut longest = Service::ZERO;
        let behind = self.iter().rev().take_while(|one| one.delay > delay);
        for one in behind {
            longest = longest.max(one.region());
            if longest == most {
                break;
            }
        }
        longest
    }

    /// One that is not there; by priority at this place.
    pub(super) fn insert(&mut self, place: usize, member: Member) {
        *self.regions.entry(member.region()).or_default() += 1;
        match self.by {
            By::Deadline => self.keep(member.delay.as_nanos(), member),
            By::Priority => {
                let mut all: Vec<Member> = self.iter().copied().collect();
                all.insert(place, member);
                self.number(all);
            }
        }
    }

    /// One goes, and tells its place by priority; by delay that is none.
    pub(super) fn remove(&mut self, channel: ChannelId) -> Option<(usize, Member)> {
        let key = self.keys.remove(&channel)?;
        let member = self.ordered.remove(&(key, channel))?;
        if let Some(count) = self.regions.get_mut(&member.region()) {
            *count -= 1;
            if *count == 0 {
                self.regions.remove(&member.region());
            }
        }
        match self.by {
            By::Deadline => Some((0, member)),
            By::Priority => {
                self.number(self.iter().copied().collect());
                Some((key as usize, member))
            }
        }
    }

    fn number(&mut self, all: Vec<Member>) {
        self.ordered.clear();
        for (key, member) in (0_u64..).zip(all) {
            self.keep(key, member);
        }
    }

    fn keep(&mut self, key: u64, member: Member) {
        self.keys.insert(member.channel, key);
        self.ordered.insert((key, member.channel), member);
    }
}
