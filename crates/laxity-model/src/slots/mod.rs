//! Time slots: a cyclic table, computed once, that keeps *X in every window of length Y* for each of its reservations
//! (the precomputed schedule of Rialto; Jones, Saroiu §2.3, §5.4).
//!
//! * [`plan`]: finds a table, or says what is missing and which requests near by would fit ([`Refusal`]).
//! * [`Dispatcher`]: carries a table out.
//! * [`oracle`]: what a table really gives, by brute force.

mod arrange;
mod dispatcher;
mod nearest;
pub mod oracle;
mod place;
mod plan;
mod refusal;

use alloc::vec::Vec;

pub use dispatcher::{Command, Dispatcher};
pub use plan::{MAX_ENTRIES, PlanCosts, plan};
pub(crate) use refusal::Share;
pub use refusal::{Change, Nearest, Refusal, Shortage};

use crate::{Instant, Service, Span};

/// A stretch of the cycle that belongs to one reservation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// Where it begins, from the start of the cycle.
    pub start: Span,
    /// How long it is; more than zero.
    pub length: Span,
    /// Whose it is: the reservation's place in the list the table was made from.
    pub owner: usize,
}

/// A cyclic schedule of one processor: slots in order, not overlapping, within the cycle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotTable {
    cycle: Span,
    slots: Vec<Slot>,
}

/// Who has the processor at an instant by the table, and until when that holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Occupancy {
    /// The reservation whose slot it is; `None` between slots.
    pub owner: Option<usize>,
    /// The next edge: the first instant after which this may no longer hold.
    pub until: Instant,
}

impl SlotTable {
    /// A table from its parts; `None` unless the slots are in order, do not overlap, and end within the cycle.
    #[must_use]
    pub fn new(cycle: Span, slots: Vec<Slot>) -> Option<Self> {
        let mut free_from = Span::ZERO;
        for slot in &slots {
            let end = slot.start.checked_add(slot.length)?;
            if slot.length.is_zero() || slot.start < free_from || end > cycle {
                return None;
            }
            free_from = end;
        }
        (!cycle.is_zero()).then_some(Self { cycle, slots })
    }

    /// After this much time the table begins again.
    #[must_use]
    pub fn cycle(&self) -> Span {
        self.cycle
    }

    /// The slots by time.
    #[must_use]
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Who has the processor at `now`, the table having begun at `origin` (≤ `now`). O(log slots).
    #[must_use]
    pub fn at(&self, origin: Instant, now: Instant) -> Occupancy {
        let phase = (now - origin) % self.cycle;
        let base = now - phase;
        let next = self.slots.partition_point(|slot| slot.start <= phase);
        if let Some(slot) = next.checked_sub(1).map(|i| self.slots[i]) {
            let end = slot.start + slot.length;
            if phase < end {
                return Occupancy {
                    owner: Some(slot.owner),
                    until: base + end,
                };
            }
        }
        let until = self.slots.get(next).map_or_else(
            || base + self.cycle + self.slots.first().map_or(Span::ZERO, |slot| slot.start),
            |slot| base + slot.start,
        );
        Occupancy { owner: None, until }
    }

    /// The edge at which what [`Self::at`] tells of `now` began; `origin` if that was before it. O(log slots).
    #[must_use]
    pub fn since(&self, origin: Instant, now: Instant) -> Instant {
        let phase = (now - origin) % self.cycle;
        let base = now - phase;
        let begun = self.slots.partition_point(|slot| slot.start <= phase);
        if let Some(slot) = begun.checked_sub(1).map(|i| self.slots[i]) {
            let end = slot.start + slot.length;
            return base + if phase < end { slot.start } else { end };
        }
        let last_end = self.slots.last().map(|slot| slot.start + slot.length);
        match last_end {
            Some(end) if base > origin => base - self.cycle + end,
            _ => origin,
        }
    }

    /// The service that `owner` gets in a cycle.
    #[must_use]
    pub fn service_in_a_cycle(&self, owner: usize) -> Service {
        let own = self.slots.iter().filter(|slot| slot.owner == owner);
        own.map(|slot| slot.length.as_full_service()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const MS: fn(u64) -> Span = Span::from_millis;

    #[test]
    fn the_table_tells_who_runs_and_until_when() {
        let slots = vec![
            Slot {
                start: MS(1),
                length: MS(2),
                owner: 0,
            },
            Slot {
                start: MS(3),
                length: MS(1),
                owner: 1,
            },
        ];
        let table = SlotTable::new(MS(8), slots).unwrap();
        let origin = Instant::from_millis(100);
        let at = |ms| table.at(origin, Instant::from_millis(ms));
        let occupancy = |owner, ms| Occupancy {
            owner,
            until: Instant::from_millis(ms),
        };
        assert_eq!(at(100), occupancy(None, 101));
        assert_eq!(at(101), occupancy(Some(0), 103));
        assert_eq!(at(103), occupancy(Some(1), 104));
        assert_eq!(at(104), occupancy(None, 109));
        assert_eq!(at(109), occupancy(Some(0), 111));
    }

    #[test]
    fn overlapping_or_overlong_slots_are_no_table() {
        let slot = |start, length| Slot {
            start: MS(start),
            length: MS(length),
            owner: 0,
        };
        assert_eq!(SlotTable::new(MS(8), vec![slot(0, 2), slot(1, 1)]), None);
        assert_eq!(SlotTable::new(MS(8), vec![slot(7, 2)]), None);
        assert_eq!(SlotTable::new(MS(8), vec![slot(0, 0)]), None);
        assert_eq!(SlotTable::new(Span::ZERO, vec![]), None);
    }
}
