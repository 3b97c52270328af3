//! What one request needs if it is served by one slot that comes back every so much.

use super::SlotTable;
use crate::Reservation;

/// Shares of the processor are compared in parts of this many.
pub(super) const WHOLE: u64 = 1_000_000_000;
/// Slots a second are compared as slots in this many nanoseconds.
const RATE_TIME_NS: u64 = 1_000_000_000_000_000_000;

/// How one request is served.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Item {
    /// The slot comes every so much.
    pub(super) period_ns: u64,
    /// It is so long, if it is in one piece.
    pub(super) whole_ns: u64,
    /// Its pieces are so long together, if it must be split; `None` if it cannot be.
    pub(super) split_ns: Option<u64>,
    /// The request.
    pub(super) owner: usize,
}

impl Item {
    /// The least slot that keeps `request` if it comes every `period_ns` (more than zero). `None` if no slot does.
    ///
    /// A window of Y = n·p + r holds n whole slots, and what of one more is not hidden in p − r: n·x + max(0, x − (p − r)), wherever
    /// the slot lies. For p > Y, where n = 0, that is a slot lengthened by what its period is longer: X + p − Y.
    /// In pieces only the n whole ones count.
    pub(super) fn new(
        owner: usize,
        request: Reservation,
        period_ns: u64,
        shortest_ns: u64,
    ) -> Option<Self> {
        let (service, window) = (request.service().as_nanos(), request.period().as_nanos());
        let (n, rest) = (window / period_ns, window % period_ns);
        let split = (n > 0).then(|| service.div_ceil(n));
        let hidden = period_ns - rest;
        // What does not fit 64 bits is longer than any period.
        let overlapping =
            (service.checked_add(hidden)).map(|sum| sum.div_ceil(n.saturating_add(1)));
        let whole = [overlapping, split].into_iter().flatten().min()?;
        let whole_ns = whole.max(shortest_ns);
        (whole_ns <= period_ns).then_some(Self {
            period_ns,
            whole_ns,
            split_ns: split.map(|split| split.max(shortest_ns)),
            owner,
        })
    }

    /// Its share of the processor with `cost_ns` beside each slot, in parts of [`WHOLE`], rounded up.
    pub(super) fn share(&self, cost_ns: u64) -> u128 {
        let taken = u128::from(self.whole_ns) + u128::from(cost_ns);
        (taken * u128::from(WHOLE)).div_ceil(u128::from(self.period_ns))
    }
}

/// `part` / `whole_ns` in parts of [`WHOLE`], rounded down; saturating.
pub(super) fn share_floor(part: u64, whole_ns: u64) -> u64 {
    match part.checked_mul(WHOLE) {
        Some(product) => product / whole_ns,
        None => {
            let share = u128::from(part) * u128::from(WHOLE) / u128::from(whole_ns);
            u64::try_from(share).unwrap_or(u64::MAX)
        }
    }
}

/// How often a slot of this period comes, in slots per [`RATE_TIME_NS`], rounded down.
pub(super) const fn rate(period_ns: u64) -> u64 {
    RATE_TIME_NS / period_ns
}

/// How often the slots of a table come together, as [`rate`], rounded down.
pub(super) fn rate_of(table: &SlotTable) -> u128 {
    table.slots().len() as u128 * u128::from(RATE_TIME_NS) / u128::from(table.cycle().as_nanos())
}
