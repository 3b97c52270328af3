//! Labels: short numbers by which a hop knows the data frames of its channels.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// A channel in the data frames that a hop receives, as that hop numbers its own. A place that is used again has another generation, so that a frame which comes late is not taken for one of the next channel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Label {
    /// Its place among those of the hop.
    pub index: u32,
    /// How often that place was given before.
    pub generation: u32,
}

/// The labels of one host: the smallest place that is free is given first.
///
/// O(log n) to give and to take back one of n that were ever given at once.
#[derive(Clone, Debug)]
pub(super) struct Labels {
    /// How often each place was given before it was the last time, or will have been the next time.
    generations: Vec<u32>,
    free: BTreeSet<u32>,
    /// Places that have no generation left.
    spent: u32,
    most: u32,
}

impl Labels {
    /// At most so many at once.
    pub(super) const fn new(most: u32) -> Self {
        Self {
            generations: Vec::new(),
            free: BTreeSet::new(),
            spent: 0,
            most,
        }
    }

    /// One that nobody has had; `None`, if all are given.
    pub(super) fn give(&mut self) -> Option<Label> {
        if let Some(index) = self.free.pop_first() {
            let generation = self.generations[index as usize];
            return Some(Label { index, generation });
        }
        let index = self.generations.len() as u32;
        (index < self.most).then(|| {
            self.generations.push(0);
            let generation = 0;
            Label { index, generation }
        })
    }

    /// Its channel is no more.
    pub(super) fn take_back(&mut self, label: Label) {
        match label.generation.checked_add(1) {
            Some(next) => {
                self.generations[label.index as usize] = next;
                self.free.insert(label.index);
            }
            None => self.spent += 1,
        }
    }

    /// Whether these are all that are given, each once.
    pub(super) fn agrees(&self, given: impl Iterator<Item = Label>) -> bool {
        let mut places = BTreeSet::new();
        let mut all = given;
        let is_given = |label: &Label| {
            let generation = self.generations.get(label.index as usize);
            generation == Some(&label.generation) && !self.free.contains(&label.index)
        };
        all.all(|label| is_given(&label) && places.insert(label.index))
            && places.len() + self.free.len() + self.spent as usize == self.generations.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::SplitMix64;

    #[test]
    fn the_smallest_free_place_is_given_and_no_label_twice() {
        let most = 20;
        let mut labels = Labels::new(most);
        let mut random = SplitMix64::new(1);
        let (mut given, mut ever) = (Vec::new(), BTreeSet::new());
        for _ in 0..10_000 {
            if random.draw().is_multiple_of(2) {
                let places: BTreeSet<u32> = given.iter().map(|label: &Label| label.index).collect();
                let free = (0..most).find(|place| !places.contains(place));
                let label = labels.give();
                assert_eq!(label.map(|label| label.index), free);
                assert!(label.is_none_or(|label| ever.insert(label)));
                given.extend(label);
            } else if !given.is_empty() {
                let place = random.draw() as usize % given.len();
                labels.take_back(given.swap_remove(place));
            }
            assert!(labels.agrees(given.iter().copied()));
        }
        assert!(given.pop().is_some());
        assert!(!labels.agrees(given.iter().copied()));
    }

    #[test]
    fn a_place_that_has_no_generation_left_is_given_to_nobody() {
        let mut labels = Labels::new(2);
        let first = labels.give().expect("all are free");
        labels.take_back(Label {
            generation: u32::MAX - 1,
            ..first
        });
        let last = labels.give().expect("one is left");
        assert_eq!(last.generation, u32::MAX);
        labels.take_back(last);
        let other = labels.give().expect("another place is free");
        assert_eq!(other.index, 1);
        assert_eq!(labels.give(), None);
        assert!(labels.agrees([other].into_iter()));
    }
}
