//! What makes one table better than another, and how much of it a table has.

use core::cmp::Ordering;

use super::{SlotTable, window};
use crate::Reservation;

/// Shares of the processor are summed in parts of this many.
const SCALE: u128 = 1 << 50;

/// What is wanted of a table among those that keep every promise and fit: the fewest slot edges a second among the tables that give
/// no more over and above what was asked for than a limit; if none is within the limit, the least over-allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Objective {
    /// How much more of the processor the table may give than was asked for, in parts per million of what was asked for.
    pub most_over_ppm: u32,
}

impl Default for Objective {
    /// 5 %.
    fn default() -> Self {
        Self {
            most_over_ppm: 50_000,
        }
    }
}

impl SlotTable {
    /// (what the table gives ÷ what `requests` ask for: the sum of their X/Y) − 1, in parts per million rounded up: the
    /// *over-allocation*. To some 10⁻¹² of the processor; zero if nothing is asked for.
    pub fn over_allocation_ppm(&self, requests: &[Reservation]) -> u64 {
        let asked = requests.iter().map(|request| {
            let service = u128::from(request.service().as_nanos());
            service * SCALE / u128::from(request.period().as_nanos())
        });
        // What rounding down lost is no over-allocation.
        let asked = asked.sum::<u128>() + requests.len() as u128;
        let lengths = self
            .slots
            .iter()
            .map(|slot| u128::from(slot.length.as_nanos()));
        // No overflow: all slots are within the cycle, which is less than 2⁶⁴.
        let given = lengths.sum::<u128>() * SCALE / u128::from(self.cycle.as_nanos());
        let over = given.saturating_sub(asked) * 1_000_000;
        u64::try_from(over.div_ceil(asked.max(1))).unwrap_or(u64::MAX)
    }

    /// Whether every request has its X in every window of Y, the owner of a slot being its request's index. O(requests · entries).
    pub fn keeps(&self, requests: &[Reservation]) -> bool {
        let mut requests = requests.iter().enumerate();
        requests.all(|(owner, request)| {
            window::least_service(self, owner, request.period()) >= request.service()
        })
    }
}

/// A table and what it is judged by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Judged {
    pub(super) over_ppm: u64,
    pub(super) table: SlotTable,
}

impl Judged {
    pub(super) fn new(table: SlotTable, requests: &[Reservation]) -> Self {
        Self {
            over_ppm: table.over_allocation_ppm(requests),
            table,
        }
    }

    /// By edges a second, exactly.
    pub(super) fn by_edges(&self, other: &Self) -> Ordering {
        let times =
            |a: &SlotTable, b: &SlotTable| a.slots.len() as u128 * u128::from(b.cycle.as_nanos());
        times(&self.table, &other.table).cmp(&times(&other.table, &self.table))
    }

    /// Whether it is within the limit.
    pub(super) fn is_within(&self, objective: Objective) -> bool {
        self.over_ppm <= u64::from(objective.most_over_ppm)
    }

    /// Whether it is strictly better than another.
    pub(super) fn is_better(&self, other: &Self, objective: Objective) -> bool {
        let by_edges = || self.by_edges(other);
        let by_over = || self.over_ppm.cmp(&other.over_ppm);
        let order = match (self.is_within(objective), other.is_within(objective)) {
            (true, true) => by_edges().then_with(by_over),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => by_over().then_with(by_edges),
        };
        order.is_lt()
    }
}
