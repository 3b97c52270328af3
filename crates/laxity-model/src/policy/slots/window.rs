//! What a table gives in every window of one length, exactly and quickly: every plan is checked by this before it is handed out.

use alloc::vec::Vec;

use super::SlotTable;
use crate::{Service, Span};

/// The least service that `owner` gets in any window of this length, wherever it begins in the endlessly repeated table: the exact
/// supply bound function of its slots.
///
/// The service in a window changes with the window's start at the rate *inside a slot at its end* less *inside a slot at its start*.
/// So it is least where it stops falling: where the window begins at the end of a slot, or ends at the start of one. Both kinds are
/// visited in order, each with two pointers: O(entries).
pub fn least_service(table: &SlotTable, owner: usize, window: Span) -> Service {
    let cycle = table.cycle().as_nanos();
    let own: Vec<(u64, u64)> = (table.slots().iter())
        .filter(|slot| slot.owner == owner)
        .map(|slot| (slot.start.as_nanos(), (slot.start + slot.length).as_nanos()))
        .collect();
    let a_cycle: u64 = own.iter().map(|(start, end)| end - start).sum();
    let (cycles, rest) = (window.as_nanos() / cycle, window.as_nanos() % cycle);
    let supply = Supply {
        own: &own,
        cycle,
        a_cycle,
    };
    let least = supply.least(rest);
    // No overflow: it is no more than the window.
    Service::from_nanos(cycles * a_cycle + least)
}

/// The longest stretch in the endlessly repeated table without a slot of `owner`; `None` if it has none at all.
pub fn largest_gap(table: &SlotTable, owner: usize) -> Option<Span> {
    let own: Vec<_> = table.slots().iter().filter(|s| s.owner == owner).collect();
    let (first, last) = (own.first()?, own.last()?);
    let around = table.cycle() - (last.start + last.length) + first.start;
    let inner = own
        .windows(2)
        .map(|w| w[1].start - (w[0].start + w[0].length));
    Some(inner.fold(around, Ord::max))
}

/// The least time from the beginning of one slot of `owner` in the endlessly repeated table to that of the next; `None` if it has none.
pub fn shortest_interval(table: &SlotTable, owner: usize) -> Option<Span> {
    let own = || table.slots().iter().filter(|slot| slot.owner == owner);
    let around = own().next()?.start + table.cycle();
    let next = own().skip(1).map(|slot| slot.start).chain([around]);
    own().zip(next).map(|(slot, next)| next - slot.start).min()
}

/// The slots of one owner, by time.
struct Supply<'a> {
    own: &'a [(u64, u64)],
    cycle: u64,
    a_cycle: u64,
}

impl Supply<'_> {
    /// The least in a window shorter than the cycle.
    fn least(&self, window: u64) -> u64 {
        let mut after = Cursor::new(self);
        let mut before = Cursor::new(self);
        let mut least = self.a_cycle;
        let mut served = 0;
        for (start, end) in self.own.iter().copied() {
            // The window that ends at the start of this slot; it begins before the cycle does, so all is one cycle later.
            let begin = u128::from(start) + u128::from(self.cycle) - u128::from(window);
            let until = u128::from(served) + u128::from(self.a_cycle);
            least = least.min(as_u64(until - before.served_before(begin)));
            served += end - start;
            // The window that begins at its end.
            let until = after.served_before(u128::from(end) + u128::from(window));
            least = least.min(as_u64(until - u128::from(served)));
        }
        least
    }
}

/// Walks the repeated slots forwards.
struct Cursor<'a> {
    supply: &'a Supply<'a>,
    /// The slot that comes next, and when its cycle begins.
    next: usize,
    base: u128,
    /// All that was served before it.
    served: u128,
}

impl<'a> Cursor<'a> {
    const fn new(supply: &'a Supply<'a>) -> Self {
        Self {
            supply,
            next: 0,
            base: 0,
            served: 0,
        }
    }

    /// The service from the beginning of the table until `at`, which never goes back.
    fn served_before(&mut self, at: u128) -> u128 {
        loop {
            let (start, end) = self.supply.own[self.next];
            if at < self.base + u128::from(end) {
                let begun = at.saturating_sub(self.base + u128::from(start));
                return self.served + begun;
            }
            self.served += u128::from(end - start);
            self.next += 1;
            if self.next == self.supply.own.len() {
                self.next = 0;
                self.base += u128::from(self.supply.cycle);
            }
        }
    }
}

fn as_u64(service: u128) -> u64 {
    u64::try_from(service).expect("no more than the window")
}
