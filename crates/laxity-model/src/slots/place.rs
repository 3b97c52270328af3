//! Where in the cycle each slot of an arrangement lies.

use alloc::vec;
use alloc::vec::Vec;

use super::arrange::{Arrangement, Item};
use super::plan::{MAX_ENTRIES, PlanCosts};
use super::{Slot, SlotTable};
use crate::Span;

/// Why an arrangement cannot be placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Obstacle {
    /// What is free lies in pieces too small.
    Room,
    /// It takes this many entries, or more.
    Entries(u64),
}

/// A piece of the cycle, in nanoseconds from its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Piece {
    start_ns: u64,
    length_ns: u64,
}

/// A table in the making: everything placed so far repeats every `period_ns`.
struct Layout {
    period_ns: u64,
    /// Ordered, not overlapping.
    free: Vec<Piece>,
    /// Slots, each with the dispatcher's time before it.
    taken: Vec<(Piece, usize)>,
    /// The dispatcher's time before each slot.
    cost_ns: u64,
    shortest_ns: u64,
}

/// Places the items by their periods, shortest first: what is already placed then repeats in each longer period, so an item that fits
/// its own period once fits it always.
pub(super) fn place(arrangement: &Arrangement, costs: &PlanCosts) -> Result<SlotTable, Obstacle> {
    let first = arrangement.items.first().ok_or(Obstacle::Room)?;
    let mut layout = Layout {
        period_ns: first.period_ns,
        free: vec![Piece {
            start_ns: 0,
            length_ns: first.period_ns,
        }],
        taken: Vec::new(),
        cost_ns: costs.per_slot.as_nanos(),
        shortest_ns: costs.granularity.as_nanos(),
    };
    for item in &arrangement.items {
        layout.extend_to(item.period_ns)?;
        layout.add(item)?;
    }
    layout.into_table()
}

impl Layout {
    /// Repeats what there is until it fills the longer period, a multiple of the present one.
    fn extend_to(&mut self, period_ns: u64) -> Result<(), Obstacle> {
        let times = period_ns / self.period_ns;
        if times == 1 {
            return Ok(());
        }
        let entries = (self.taken.len() as u64).saturating_mul(times);
        if entries > MAX_ENTRIES as u64 {
            return Err(Obstacle::Entries(entries));
        }
        let step = self.period_ns;
        let shifts = (0..times).map(|n| n * step);
        let shift = |piece: Piece, by: u64| Piece {
            start_ns: piece.start_ns + by,
            ..piece
        };
        let (free, taken) = (&self.free, &self.taken);
        let new_free = shifts
            .clone()
            .flat_map(|by| free.iter().map(move |p| shift(*p, by)));
        let new_taken = shifts.flat_map(|by| taken.iter().map(move |(p, o)| (shift(*p, by), *o)));
        (self.free, self.taken) = (new_free.collect(), new_taken.collect());
        self.period_ns = period_ns;
        Ok(())
    }

    /// Places one item: whole where the least room is left over, or else in as few pieces as possible.
    fn add(&mut self, item: &Item) -> Result<(), Obstacle> {
        let whole = item
            .whole_ns
            .checked_add(self.cost_ns)
            .ok_or(Obstacle::Room)?;
        let roomy = self
            .free
            .iter()
            .enumerate()
            .filter(|(_, piece)| piece.length_ns >= whole);
        if let Some((index, _)) = roomy.min_by_key(|(_, piece)| piece.length_ns) {
            self.take(index, whole, item.owner);
        } else {
            self.add_in_pieces(item)?;
        }
        self.free.retain(|piece| piece.length_ns > 0);
        if self.taken.len() > MAX_ENTRIES {
            return Err(Obstacle::Entries(self.taken.len() as u64));
        }
        Ok(())
    }

    fn add_in_pieces(&mut self, item: &Item) -> Result<(), Obstacle> {
        let mut by_length: Vec<usize> = (0..self.free.len()).collect();
        by_length.sort_by_key(|&index| u64::MAX - self.free[index].length_ns);
        let mut missing = item.split_ns;
        for index in by_length {
            if missing == 0 {
                break;
            }
            let room = self.free[index].length_ns.saturating_sub(self.cost_ns);
            if room < self.shortest_ns.max(1) {
                return Err(Obstacle::Room);
            }
            let piece = room.min(missing.max(self.shortest_ns));
            self.take(index, piece + self.cost_ns, item.owner);
            missing = missing.saturating_sub(piece);
        }
        if missing == 0 {
            Ok(())
        } else {
            Err(Obstacle::Room)
        }
    }

    /// Takes the beginning of a free piece.
    fn take(&mut self, index: usize, length_ns: u64, owner: usize) {
        let piece = &mut self.free[index];
        let start_ns = piece.start_ns;
        piece.start_ns += length_ns;
        piece.length_ns -= length_ns;
        self.taken.push((
            Piece {
                start_ns,
                length_ns,
            },
            owner,
        ));
    }

    /// The table. Time zero is where the first slot itself begins, so the dispatcher's time before it lies at the end of the cycle.
    fn into_table(mut self) -> Result<SlotTable, Obstacle> {
        self.taken.sort_unstable_by_key(|(piece, _)| piece.start_ns);
        let slots = self.taken.iter().map(|(piece, owner)| Slot {
            start: Span::from_nanos(piece.start_ns),
            length: Span::from_nanos(piece.length_ns - self.cost_ns),
            owner: *owner,
        });
        SlotTable::new(Span::from_nanos(self.period_ns), slots.collect()).ok_or(Obstacle::Room)
    }
}
