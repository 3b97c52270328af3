//! Where in the cycle each slot lies.
//!
//! Two slots that come every p and every q, both multiples of a base, never meet if and only if they do not overlap modulo the
//! greatest common divisor of p and q: there are whole numbers of both periods that differ by any multiple of it. (Strictly periodic
//! scheduling: Korst, Aarts, Lenstra, "Scheduling periodic tasks", INFORMS Journal on Computing 8(4), 1996.) So what is free for a
//! slot of period p is what the slots already placed leave free modulo p. In a harmonic chain, placed shortest period first, that is
//! simply the table so far.

use alloc::vec::Vec;

use super::item::{Item, rate, share_floor};
use super::plan::{MAX_ENTRIES, PlanCosts};
use super::{Slot, SlotTable};
use crate::Span;
use crate::base::number::{gcd, lcm};

/// Why items cannot be placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Obstacle {
    /// What is free lies in pieces too small.
    Room,
    /// It takes this many entries, or more.
    Entries(u64),
}

/// A slot that comes every `multiple` bases, with the dispatcher's time after it, which is the time before the next one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Placed {
    start_ns: u64,
    taken_ns: u64,
    multiple: u64,
    owner: usize,
}

/// Slots that never meet: a table that is not yet written out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    /// All periods are multiples of it.
    base_ns: u64,
    placed: Vec<Placed>,
    /// The dispatcher's time beside each slot.
    cost_ns: u64,
    shortest_ns: u64,
    /// Stretches looked at so far: what placing costs.
    pub(super) work: u64,
    /// Room for what is taken, and for what is free, when an item is placed.
    taken: Vec<Piece>,
    free: Vec<Piece>,
}

/// What some slots take together.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Sums {
    /// Slots by time, as [`rate`].
    pub(super) rate: u128,
    /// The share of the slots, rounded down for each.
    pub(super) given: u64,
    /// The same with the dispatcher's time.
    pub(super) taken: u64,
}

impl Sums {
    pub(super) const fn plus(self, other: Self) -> Self {
        Self {
            rate: self.rate + other.rate,
            given: self.given.saturating_add(other.given),
            taken: self.taken.saturating_add(other.taken),
        }
    }
}

/// A stretch of time, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Piece {
    start_ns: u64,
    length_ns: u64,
}

/// Places the items in their order, and takes what that costs from `work`; all periods are multiples of the first one's.
pub(super) fn place(
    items: &[Item],
    costs: &PlanCosts,
    work: &mut u64,
) -> Result<SlotTable, Obstacle> {
    let first = items.first().ok_or(Obstacle::Room)?;
    let mut layout = Layout::new(first.period_ns, costs);
    let placed = items.iter().try_for_each(|item| layout.add(item));
    *work = work.saturating_sub(layout.work);
    placed.and_then(|()| layout.table())
}

impl Layout {
    /// Nothing yet, for periods that are multiples of `base_ns`.
    pub(super) fn new(base_ns: u64, costs: &PlanCosts) -> Self {
        Self {
            base_ns,
            placed: Vec::new(),
            cost_ns: costs.per_slot.as_nanos(),
            shortest_ns: costs.granularity.as_nanos().max(1),
            work: 0,
            taken: Vec::new(),
            free: Vec::new(),
        }
    }

    /// How many slots were placed, each counted once for all its periods.
    pub(super) fn placed(&self) -> usize {
        self.placed.len()
    }

    /// Forgets all but the first so many.
    pub(super) fn truncate(&mut self, placed: usize) {
        self.placed.truncate(placed);
    }

    /// What the slots take that were placed after the first so many.
    pub(super) fn sums_after(&self, placed: usize) -> Sums {
        let last = self.placed[placed..].iter();
        last.fold(Sums::default(), |sums, slot| {
            let period = slot.multiple * self.base_ns;
            sums.plus(Sums {
                rate: u128::from(rate(period)),
                given: share_floor(slot.taken_ns - self.cost_ns, period),
                taken: share_floor(slot.taken_ns, period),
            })
        })
    }

    /// Places an item: whole where the least room is left over, or else in as few pieces as possible. What was placed of it before
    /// there was an obstacle stays.
    pub(super) fn add(&mut self, item: &Item) -> Result<(), Obstacle> {
        let pattern = self.find_free(item.period_ns)?;
        let whole = item
            .whole_ns
            .checked_add(self.cost_ns)
            .ok_or(Obstacle::Room)?;
        let roomy = self.free.iter().filter(|piece| piece.length_ns >= whole);
        match roomy.min_by_key(|piece| piece.length_ns) {
            Some(piece) => {
                self.take(piece.start_ns, whole, item);
                Ok(())
            }
            None => self.add_in_pieces(pattern, item),
        }
    }

    fn add_in_pieces(&mut self, pattern: u64, item: &Item) -> Result<(), Obstacle> {
        let mut missing = item.split_ns.ok_or(Obstacle::Room)?;
        self.free.sort_by_key(|piece| u64::MAX - piece.length_ns);
        let copies = item.period_ns / pattern;
        for index in 0..self.free.len() {
            let piece = self.free[index];
            let room = piece.length_ns.saturating_sub(self.cost_ns);
            for copy in 0..copies {
                if missing == 0 {
                    return Ok(());
                }
                if room < self.shortest_ns {
                    return Err(Obstacle::Room);
                }
                if self.placed.len() >= MAX_ENTRIES {
                    return Err(Obstacle::Entries(self.placed.len() as u64 + 1));
                }
                let part = room.min(missing.max(self.shortest_ns));
                self.take(piece.start_ns + copy * pattern, part + self.cost_ns, item);
                missing = missing.saturating_sub(part);
            }
        }
        if missing == 0 {
            Ok(())
        } else {
            Err(Obstacle::Room)
        }
    }

    fn take(&mut self, start_ns: u64, taken_ns: u64, item: &Item) {
        self.placed.push(Placed {
            start_ns,
            taken_ns,
            multiple: item.period_ns / self.base_ns,
            owner: item.owner,
        });
    }

    /// Finds what is free for a slot of this period, by time: a pattern that repeats, up to the period, every so many nanoseconds.
    /// The first slot placed lies at zero in every pattern, so no stretch goes around.
    fn find_free(&mut self, period_ns: u64) -> Result<u64, Obstacle> {
        let multiple = period_ns / self.base_ns;
        let steps = self.placed.iter().map(|slot| gcd(slot.multiple, multiple));
        // All divide the multiple, and so does what they have in common.
        let pattern = lcm(steps).unwrap_or(multiple) * self.base_ns;
        self.taken.clear();
        for slot in &self.placed {
            let step = gcd(slot.multiple, multiple) * self.base_ns;
            let times = pattern / step;
            if self.taken.len() as u64 + times > 2 * MAX_ENTRIES as u64 {
                return Err(Obstacle::Entries(self.taken.len() as u64 + times));
            }
            let first = slot.start_ns % step;
            for start_ns in (0..times).map(|n| first + n * step) {
                let beyond = slot.taken_ns.saturating_sub(pattern - start_ns);
                self.taken.push(Piece {
                    start_ns,
                    length_ns: slot.taken_ns - beyond,
                });
                if beyond > 0 {
                    self.taken.push(Piece {
                        start_ns: 0,
                        length_ns: beyond,
                    });
                }
            }
        }
        self.work += self.taken.len() as u64;
        self.taken.sort_unstable();
        self.free.clear();
        let mut from = 0;
        for piece in &self.taken {
            if piece.start_ns > from {
                self.free.push(Piece {
                    start_ns: from,
                    length_ns: piece.start_ns - from,
                });
            }
            from = from.max(piece.start_ns + piece.length_ns);
        }
        // Nothing placed: nothing repeats yet.
        let pattern = if self.placed.is_empty() {
            period_ns
        } else {
            pattern
        };
        if from < pattern {
            self.free.push(Piece {
                start_ns: from,
                length_ns: pattern - from,
            });
        }
        Ok(pattern)
    }

    /// The table. Time zero is where the first slot placed begins, so the dispatcher's time before it lies at the end of the cycle.
    pub(super) fn table(&self) -> Result<SlotTable, Obstacle> {
        let cycle = lcm(self.placed.iter().map(|slot| slot.multiple));
        let cycle = cycle.ok_or(Obstacle::Entries(u64::MAX))?;
        let counts = self.placed.iter().map(|slot| cycle / slot.multiple);
        let entries = counts.fold(0, u64::saturating_add);
        if entries > MAX_ENTRIES as u64 {
            return Err(Obstacle::Entries(entries));
        }
        let cycle_ns = cycle
            .checked_mul(self.base_ns)
            .ok_or(Obstacle::Entries(u64::MAX))?;
        let mut slots: Vec<Slot> = Vec::with_capacity(entries as usize);
        for slot in &self.placed {
            let period_ns = slot.multiple * self.base_ns;
            let times = 0..cycle_ns / period_ns;
            slots.extend(times.map(|n| Slot {
                start: Span::from_nanos(slot.start_ns + n * period_ns),
                length: Span::from_nanos(slot.taken_ns - self.cost_ns),
                owner: slot.owner,
            }));
        }
        slots.sort_unstable_by_key(|slot| slot.start);
        SlotTable::new(Span::from_nanos(cycle_ns), slots).ok_or(Obstacle::Room)
    }
}
