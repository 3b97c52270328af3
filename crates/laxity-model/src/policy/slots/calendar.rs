//! The slots of one processor over all time: one table after the other, and unreserved time that is given away once.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use super::{Slot, SlotTable};
use crate::{Instant, Service, Span};

/// A table from an instant on, until the next one takes over.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Era {
    from: Instant,
    /// Where in the table's cycle that is; less than the cycle.
    phase: Span,
    table: Arc<SlotTable>,
}

/// Unreserved time that somebody has once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Extra {
    /// From when.
    pub from: Instant,
    /// Until when.
    pub until: Instant,
    /// Whose it is.
    pub owner: usize,
}

/// Who has the processor at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Occupancy {
    /// Whose slot it is; `None` between slots.
    pub owner: Option<usize>,
    /// Since when.
    pub since: Instant,
    /// The next edge: the first instant after which this may no longer hold.
    pub until: Instant,
}

/// Who has the processor when. An owner is an index that means the same in all its tables.
///
/// Immutable to whoever carries it out: each change makes another one, which agrees with the one before up to the instant at which the
/// change takes effect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Calendar {
    /// At least one, by time.
    eras: Vec<Era>,
    /// By time; none meets another, or a slot.
    extras: Vec<Extra>,
}

impl Era {
    /// Where in an endless row of cycles an instant of this era is.
    fn unrolled(&self, at: Instant) -> Instant {
        Instant::ZERO + self.phase + at.saturating_since(self.from)
    }

    /// Back from there; nothing is before the era.
    fn real(&self, unrolled: Instant) -> Instant {
        self.from + unrolled.saturating_since(Instant::ZERO + self.phase)
    }

    fn occupancy(&self, now: Instant) -> Occupancy {
        if now < self.from {
            // Only the first era is asked about the time before it.
            let first = self.table.slots().first();
            return Occupancy {
                owner: None,
                since: Instant::ZERO,
                until: self.from + first.map_or(self.table.cycle(), |slot| slot.start),
            };
        }
        let unrolled = self.unrolled(now);
        let occupancy = self.table.at(Instant::ZERO, unrolled);
        Occupancy {
            owner: occupancy.owner,
            since: self.real(occupancy.since),
            until: self.real(occupancy.until),
        }
    }
}

impl Calendar {
    /// One table, whose first cycle begins at `origin`; nothing is anybody's before.
    #[must_use]
    pub fn new(table: SlotTable, origin: Instant) -> Self {
        let era = Era {
            from: origin,
            phase: Span::ZERO,
            table: Arc::new(table),
        };
        Self {
            eras: vec![era],
            extras: Vec::new(),
        }
    }

    /// Who has the processor at `now`. O(log slots).
    pub fn at(&self, now: Instant) -> Occupancy {
        let occupancy = self.by_tables(now);
        if occupancy.owner.is_some() || self.extras.is_empty() {
            return occupancy;
        }
        let next = self.extras.partition_point(|extra| extra.from <= now);
        let mut since = occupancy.since;
        if let Some(last) = next.checked_sub(1).map(|i| self.extras[i]) {
            if now < last.until {
                return Occupancy {
                    owner: Some(last.owner),
                    since: last.from,
                    until: last.until,
                };
            }
            since = since.max(last.until);
        }
        let until = self
            .extras
            .get(next)
            .map_or(occupancy.until, |extra| extra.from);
        Occupancy {
            owner: None,
            since,
            until: occupancy.until.min(until),
        }
    }

    /// The same, as if nothing unreserved had been given away.
    pub fn by_tables(&self, now: Instant) -> Occupancy {
        let next = self.eras.partition_point(|era| era.from <= now).max(1);
        let occupancy = self.eras[next - 1].occupancy(now);
        let end = self.eras.get(next).map_or(Instant::MAX, |era| era.from);
        Occupancy {
            until: occupancy.until.min(end),
            ..occupancy
        }
    }

    /// The stretches from one edge of the tables to the next between two instants, cut off there.
    pub(crate) fn pieces(&self, from: Instant, to: Instant) -> impl Iterator<Item = Occupancy> {
        let mut at = from;
        core::iter::from_fn(move || {
            if at >= to {
                return None;
            }
            let occupancy = self.by_tables(at);
            let piece = Occupancy {
                owner: occupancy.owner,
                since: at,
                until: occupancy.until.min(to),
            };
            at = piece.until;
            Some(piece)
        })
    }

    /// What the tables give `owner` between two instants. O(edges between them).
    pub fn service_by_tables(&self, owner: usize, from: Instant, to: Instant) -> Service {
        let own = self
            .pieces(from, to)
            .filter(|piece| piece.owner == Some(owner));
        own.map(|piece| (piece.until - piece.since).as_full_service())
            .sum()
    }

    /// What `owner` has of unreserved time between two instants.
    pub fn extra_service(&self, owner: usize, from: Instant, to: Instant) -> Service {
        let own = self.extras.iter().filter(|extra| extra.owner == owner);
        own.map(|extra| {
            let (begin, end) = (extra.from.max(from), extra.until.min(to));
            end.saturating_since(begin).as_full_service()
        })
        .sum()
    }

    /// What of unreserved time is given away, by time.
    pub fn extras(&self) -> &[Extra] {
        &self.extras
    }

    /// The table that is the last to take over, and from when.
    pub fn last(&self) -> (&SlotTable, Instant) {
        let era = self.last_era();
        (&era.table, era.from)
    }

    /// When a table took or will take the place of another for the last time, as far as is remembered.
    pub(crate) fn last_mode_change(&self) -> Option<Instant> {
        (self.eras.len() > 1).then(|| self.last_era().from)
    }

    /// How many tables are known that are still to take over.
    pub fn to_come(&self, now: Instant) -> usize {
        self.eras.iter().filter(|era| era.from > now).count()
    }

    /// The same calendar until `from`, after all that takes over in this one; from then on `table` from its `phase` on. What was given
    /// away of unreserved time is given away no more.
    pub(crate) fn then(&self, from: Instant, table: Arc<SlotTable>, phase: Span) -> Self {
        let mut eras = self.eras.clone();
        eras.push(Era { from, phase, table });
        Self {
            eras,
            extras: Vec::new(),
        }
    }

    /// The same tables with this of the unreserved time given away.
    pub(crate) fn with_extras(mut self, mut extras: Vec<Extra>) -> Self {
        extras.sort_unstable();
        self.extras = extras;
        self
    }

    /// Without what was over long before `now`: at least `keep` before it everything is as it was.
    pub(crate) fn forget(&mut self, now: Instant, keep: Span) {
        let over = |at: Instant| at.checked_add(keep).is_some_and(|end| end <= now);
        self.extras.retain(|extra| !over(extra.until));
        let begun = self.eras.partition_point(|era| over(era.from)).max(1);
        self.eras.drain(..begun - 1);
    }

    /// The ends of the slots of the last table from `from` on, for a cycle; `from` itself first where it is nobody's.
    pub(crate) fn ends(&self, from: Instant) -> impl Iterator<Item = Instant> {
        let era = self.last_era();
        let to = from.checked_add(era.table.cycle()).unwrap_or(Instant::MAX);
        let free = self.by_tables(from).owner.is_none().then_some(from);
        let slots = self.pieces(from, to).filter(|piece| piece.owner.is_some());
        // A slot that the look ahead cuts does not end there.
        let whole = slots.filter(move |slot| self.by_tables(slot.since).until == slot.until);
        free.into_iter().chain(whole.map(|slot| slot.until))
    }

    /// Where the slots of `owner` are between two instants, in nanoseconds after the first.
    pub(crate) fn own(&self, owner: usize, from: Instant, to: Instant) -> Vec<(u64, u64)> {
        let pieces = self.pieces(from, to);
        let own = pieces.filter(|piece| piece.owner == Some(owner));
        own.map(|piece| {
            let begin = piece.since - from;
            (begin.as_nanos(), (piece.until - from).as_nanos())
        })
        .collect()
    }

    fn last_era(&self) -> &Era {
        self.eras.last().expect("there is always one")
    }
}

/// A slot's start in its cycle with `cost` before it kept free.
pub(crate) fn phase_before(slot: &Slot, cost: Span, cycle: Span) -> Span {
    let cost = cost % cycle;
    if slot.start >= cost {
        slot.start - cost
    } else {
        cycle - (cost - slot.start)
    }
}
