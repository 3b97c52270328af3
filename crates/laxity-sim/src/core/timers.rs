//! At most one timer for each activity, in one sorted list: the earliest is known at once, and nothing stale ever lies about. Setting one
//! moves what is earlier, of which there are few; where there are more, its place is searched by halves. That beats trees and heaps for as
//! many activities as programs have.

use laxity_model::Instant;

#[derive(Clone, Copy, Debug)]
struct Timer {
    at: Instant,
    who: u32,
}

/// So many of the earliest are looked at one by one.
const NEAR: usize = 16;

#[derive(Debug)]
pub(crate) struct Timers {
    /// The earliest last; among equal times, the one set first last.
    sorted: Vec<Timer>,
    /// When the earliest is due.
    next: Instant,
}

impl Timers {
    pub(crate) fn new(activities: usize) -> Self {
        Self {
            sorted: Vec::with_capacity(activities),
            next: Instant::MAX,
        }
    }

    /// Sets the timer of an activity that has none.
    #[inline(always)]
    pub(crate) fn set(&mut self, who: u32, at: Instant) {
        debug_assert!(self.sorted.iter().all(|timer| timer.who != who));
        self.next = self.next.min(at);
        let timer = Timer { at, who };
        if let Some(far) = self.sorted.len().checked_sub(NEAR)
            && self.sorted[far].at <= at
        {
            return self.insert_far(timer, far);
        }
        self.sorted.push(timer);
        let mut slots = self.sorted.iter_mut().rev();
        let Some(mut place) = slots.next() else {
            return;
        };
        for earlier in slots {
            if earlier.at > at {
                break;
            }
            *place = *earlier;
            place = earlier;
        }
        *place = timer;
    }

    #[inline(never)]
    fn insert_far(&mut self, timer: Timer, far: usize) {
        let place = self.sorted[..far].partition_point(|other| other.at > timer.at);
        self.sorted.insert(place, timer);
    }

    /// Clears the activity's timer, if it has one.
    pub(crate) fn clear(&mut self, who: u32) {
        self.sorted.retain(|timer| timer.who != who);
        self.look();
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
        let Some(Timer { who, .. }) = self.sorted.pop() else {
            std::hint::cold_path();
            return None;
        };
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
                        timers.clear(who);
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
