//! At most one timer for each activity, in one sorted list: the earliest is known at once, and nothing stale ever lies about. Setting one
//! searches by halves and moves what is earlier, which beats trees and heaps for as many activities as programs have.

use laxity_model::Instant;

#[derive(Clone, Copy, Debug)]
struct Timer {
    at: Instant,
    who: u32,
}

#[derive(Debug)]
pub(crate) struct Timers {
    /// The earliest last; among equal times, the one set first last.
    sorted: Vec<Timer>,
    /// Whether each activity has one.
    is_set: Vec<bool>,
    /// When the earliest is due.
    next: Instant,
}

impl Timers {
    pub(crate) fn new(activities: usize) -> Self {
        Self {
            sorted: Vec::with_capacity(activities),
            is_set: vec![false; activities],
            next: Instant::MAX,
        }
    }

    /// Sets the activity's timer, in place of the one it had.
    #[inline]
    pub(crate) fn set(&mut self, who: u32, at: Instant) {
        self.clear(who);
        self.is_set[who as usize] = true;
        let place = self.sorted.partition_point(|other| other.at > at);
        self.sorted.insert(place, Timer { at, who });
        self.next = self.next.min(at);
    }

    /// Clears the activity's timer, if it has one.
    #[inline]
    pub(crate) fn clear(&mut self, who: u32) {
        if std::mem::take(&mut self.is_set[who as usize]) {
            self.sorted.retain(|timer| timer.who != who);
            self.look();
        }
    }

    /// When the earliest timer is due; [`Instant::MAX`] if there is none.
    #[inline]
    pub(crate) const fn next(&self) -> Instant {
        self.next
    }

    /// Takes the earliest timer if it is due by now. Among equal times, the one set first.
    #[inline]
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<u32> {
        if self.next > now {
            return None;
        }
        let who = self.sorted.pop()?.who;
        self.is_set[who as usize] = false;
        self.look();
        Some(who)
    }

    #[inline]
    fn look(&mut self) {
        self.next = self.sorted.last().map_or(Instant::MAX, |timer| timer.at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain list that is searched.
        #[test]
        fn the_list_is_searched_right(
            activities in 1..40_u32,
            ops in prop::collection::vec((any::<u32>(), 0..50_u64, 0..4_u8), 0..200),
        ) {
            let mut timers = Timers::new(activities as usize);
            let mut list: Vec<(u64, usize, u32)> = Vec::new();
            for (order, (who, at, op)) in ops.into_iter().enumerate() {
                let who = who % activities;
                match op {
                    0 | 1 => {
                        timers.set(who, Instant::from_nanos(at));
                        list.retain(|timer| timer.2 != who);
                        list.push((at, order, who));
                    }
                    2 => {
                        timers.clear(who);
                        list.retain(|timer| timer.2 != who);
                    }
                    _ => {
                        let due = list.iter().copied().filter(|t| t.0 <= at).min();
                        prop_assert_eq!(timers.pop_due(Instant::from_nanos(at)), due.map(|t| t.2));
                        list.retain(|timer| Some(*timer) != due);
                    }
                }
                let next = list.iter().min().map_or(u64::MAX, |timer| timer.0);
                prop_assert_eq!(timers.next().as_nanos(), next);
            }
        }
    }
}
