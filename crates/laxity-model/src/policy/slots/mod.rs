//! Time slots: a cyclic table, computed once, that keeps *X in every window of length Y* for each of its reservations
//! (the precomputed schedule of Rialto; Jones, Roşu, Roşu, "CPU Reservations and Time Constraints", SOSP 1997; its continuous
//! guarantee: Jones, Saroiu §2.3, §5.4).
//!
//! * [`plan`]: finds a table, or says what is missing and which requests near by would fit ([`Refusal`]); [`plan_with`]: with another
//!   [`Objective`].
//! * [`Calendar`]: tables one after the other, and unreserved time that is given away once; [`crate::enforce::Dispatcher`] carries it out,
//!   and [`crate::admission::changes`] grants what changes it.
//! * [`least_service`]: what a table gives in every window of a length.
//!
//! # The problem
//!
//! *X in every window of Y* is more than *X in each period of Y*: it also bounds the distance from one slot to the next. With slots of
//! one tick that is the pinwheel problem (Holte, Mok, Rosier, Tulchinsky, Varvel, "The pinwheel: a real-time scheduling problem",
//! HICSS 1989), with longer ones distance-constrained scheduling (Han, Lin, Hou, "Distance-constrained scheduling and its
//! applications to real-time systems", IEEE Transactions on Computers 45(7), 1996). A load of less than one is not enough: windows of
//! 2 and 3 ticks leave room for no third request, of however long a window. Nor is there a quick way to the best table; so this is a
//! search, and a set that is refused may have a table after all.
//!
//! # The tables tried
//!
//! A slot of X every Y keeps *X in every window of Y* wherever it lies. So slots that are strictly periodic keep every promise by
//! themselves, and all that can go wrong is that two of them meet. They need not if all periods are whole multiples of a base: slots
//! every p and every q stay apart if they do so modulo gcd(p, q). A request with Y = n·p + r is served at a period p of that kind by
//! the least slot x with n·x + max(0, x − (p − r)) ≥ X. Four ways out of periods that do not fit together follow:
//!
//! * p just under Y: the same slot, a little too often;
//! * p just over Y: a slot lengthened by p − Y;
//! * p just under or over Y/m: m shorter slots a window, which is more edges for less over-allocation;
//! * p a multiple that no whole slot fits: the slot in as few pieces as possible, which all come every p.
//!
//! First *harmonic chains* are tried, in which each period divides the next longer one (the specialisation of Han, Lin, Hou): they pack
//! best and always give a table if there is much room. Then branch and bound over *any multiples of a base*, among them chains, for
//! fewer edges. Whatever is found is checked by [`SlotTable::keeps`], exactly, before it is handed out.
//!
//! # The objective
//!
//! *Over-allocation* is what the table gives ÷ what was asked for (the sum of X/Y), less one ([`SlotTable::over_allocation_ppm`]).
//! *Slot edges* are the beginnings and ends of slots, two a slot: each is a wake-up of the dispatcher
//! and a switch. Of the tables that fit and whose over-allocation is within [`Objective::most_over_ppm`], 5 % unless said otherwise, the
//! one with the fewest edges a second is taken. One slot of X every Y each, with the sum of 2/Y edges a second, is the mark; a slot at
//! a period over Y may go below it. If nothing is within the limit, the table with the least over-allocation is taken that is found.
//!
//! Of 100,000 random sets (one to five requests, log-uniform periods from 1 to 100 ms, none of which divides another, for up to 80 % of
//! the processor together) [`plan`] finds a table for all if switches cost nothing: 99.995 % within the 5 %, 2.4 % over-allocation and
//! 1.24 times the edges of the mark on average. If a slot is charged 50 µs and 6 % of the processor stay free: for 99.3 %, 98.1 %
//! within the 5 %, with 1.26 times the edges. The example `slot_plan_statistics` prints this and more.
//!
//! # Limits
//!
//! At most [`MAX_ENTRIES`] slots in a table. Lengths are whole nanoseconds, so a plan may give some nanoseconds more than it must. The
//! search is bounded by steps, not by time: the same requests give the same table on every machine. Tables whose slots are not
//! strictly periodic (as online pinwheel schedulers make them) are tried last, and only small ones: for up to six requests, in cycles of up
//! to 32 times the greatest common divisor of all X and Y, where slots cost nothing and may be as short as that.

mod arrange;
mod calendar;
mod cyclic;
mod item;
mod nearest;
mod objective;
mod place;
mod plan;
mod refusal;
mod search;
mod window;

use alloc::vec::Vec;

pub(crate) use calendar::phase_before;
pub use calendar::{Calendar, Extra, Occupancy};
pub(crate) use nearest::{Effort, grain};
pub use objective::Objective;
pub use plan::{MAX_ENTRIES, PlanCosts, plan, plan_with};
pub(crate) use plan::{find_table, plan_within};
pub use refusal::{Change, Nearest, Refusal};
pub use window::{largest_gap, least_service, shortest_interval};

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

    /// The table of no reservations.
    fn empty() -> Self {
        Self {
            cycle: Span::from_secs(1),
            slots: Vec::new(),
        }
    }

    /// After this much time the table begins again.
    pub fn cycle(&self) -> Span {
        self.cycle
    }

    /// The slots by time.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Who has the processor at `now`, the table having begun at `origin` (≤ `now`), and since when; since `origin` if that holds longer.
    /// O(log slots).
    pub fn at(&self, origin: Instant, now: Instant) -> Occupancy {
        let phase = (now - origin) % self.cycle;
        let base = now - phase;
        let end = |slot: Slot| slot.start + slot.length;
        let next = self.slots.partition_point(|slot| slot.start <= phase);
        let begun = next.checked_sub(1).map(|i| self.slots[i]);
        if let Some(slot) = begun.filter(|slot| phase < end(*slot)) {
            return Occupancy {
                owner: Some(slot.owner),
                since: base + slot.start,
                until: base + end(slot),
            };
        }
        let since = match (begun, self.slots.last()) {
            (Some(before), _) => base + end(before),
            (None, Some(last)) if base > origin => base - self.cycle + end(*last),
            _ => origin,
        };
        let until = self.slots.get(next).map_or_else(
            || base + self.cycle + self.slots.first().map_or(Span::ZERO, |slot| slot.start),
            |slot| base + slot.start,
        );
        Occupancy {
            owner: None,
            since,
            until,
        }
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
        let occupancy = |owner, since, until| Occupancy {
            owner,
            since: Instant::from_millis(since),
            until: Instant::from_millis(until),
        };
        assert_eq!(at(100), occupancy(None, 100, 101));
        assert_eq!(at(102), occupancy(Some(0), 101, 103));
        assert_eq!(at(103), occupancy(Some(1), 103, 104));
        assert_eq!(at(105), occupancy(None, 104, 109));
        assert_eq!(at(108), occupancy(None, 104, 109));
        assert_eq!(at(109), occupancy(Some(0), 109, 111));
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
