//! At most one timer for each activity, in a tournament tree: the earliest is known at once, setting and clearing one plays the
//! matches on its way to the root, and nothing stale ever lies about.

use laxity_model::Instant;

/// When (64 bits), in which order set (40), for whom (24): one number, so that one comparison orders two timers.
type Entry = u128;

const UNSET: Entry = Entry::MAX;
const WHO: u32 = (1 << 24) - 1;

#[derive(Debug)]
pub(crate) struct Timers {
    /// A power of two. Leaf `i` is at `leaves + i`; a node's children are at twice its place; the winner is at 1.
    leaves: usize,
    nodes: Vec<Entry>,
    order: u64,
}

impl Timers {
    pub(crate) fn new(activities: usize) -> Self {
        let leaves = activities.next_power_of_two().max(2);
        Self {
            leaves,
            nodes: vec![UNSET; 2 * leaves],
            order: 0,
        }
    }

    /// Sets the activity's timer, in place of the one it had.
    #[inline]
    pub(crate) fn set(&mut self, who: u32, at: Instant) {
        // 2^40 settings at 20 million a second last 15 hours of machine time.
        self.order += 1;
        let entry = u128::from(at.as_nanos()) << 64 | u128::from(self.order << 24 | u64::from(who));
        self.place(who, entry);
    }

    /// Clears the activity's timer, if it has one.
    pub(crate) fn clear(&mut self, who: u32) {
        self.place(who, UNSET);
    }

    /// When the earliest timer is due; [`Instant::MAX`] if there is none.
    pub(crate) fn next(&self) -> Instant {
        Instant::from_nanos((self.nodes[1] >> 64) as u64)
    }

    /// Takes the earliest timer if it is due by now. Among equal times, the one set first.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<u32> {
        // Unset timers stand at the end of time, where no run gets.
        if self.next() > now {
            return None;
        }
        let who = self.nodes[1] as u32 & WHO;
        self.clear(who);
        Some(who)
    }

    fn place(&mut self, who: u32, entry: Entry) {
        let mut node = self.leaves + who as usize;
        self.nodes[node] = entry;
        let mut winner = entry;
        while node > 1 {
            winner = earlier(winner, self.nodes[node ^ 1]);
            node >>= 1;
            self.nodes[node] = winner;
        }
    }
}

/// The minimum, without a branch: who wins a match is as good as random, and `min` compiles to a jump here.
#[inline]
fn earlier(a: Entry, b: Entry) -> Entry {
    let b_wins = Entry::from(b < a).wrapping_neg();
    a ^ ((a ^ b) & b_wins)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain list that is searched.
        #[test]
        fn the_tree_is_a_sorted_list(
            activities in 1..40_u32,
            ops in prop::collection::vec((any::<u32>(), 0..50_u64, 0..4_u8), 0..200),
        ) {
            let mut tree = Timers::new(activities as usize);
            let mut list: Vec<(u64, usize, u32)> = Vec::new();
            for (order, (who, at, op)) in ops.into_iter().enumerate() {
                let who = who % activities;
                match op {
                    0 | 1 => {
                        tree.set(who, Instant::from_nanos(at));
                        list.retain(|timer| timer.2 != who);
                        list.push((at, order, who));
                    }
                    2 => {
                        tree.clear(who);
                        list.retain(|timer| timer.2 != who);
                    }
                    _ => {
                        let due = list.iter().copied().filter(|t| t.0 <= at).min();
                        prop_assert_eq!(tree.pop_due(Instant::from_nanos(at)), due.map(|t| t.2));
                        list.retain(|timer| Some(*timer) != due);
                    }
                }
                let next = list.iter().min().map_or(u64::MAX, |timer| timer.0);
                prop_assert_eq!(tree.next().as_nanos(), next);
            }
        }
    }
}
