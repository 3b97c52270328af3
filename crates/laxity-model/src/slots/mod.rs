//! Time slots: a cyclic table, computed once, that keeps *X in every window of length Y* for each of its reservations
//! (the precomputed schedule of Rialto; Jones, Saroiu §2.3, §5.4).

use alloc::vec::Vec;

use crate::{Instant, Span};

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
