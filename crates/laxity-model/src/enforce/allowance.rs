//! How much may be made up for slots: what the processor has left beside what was admitted.

use super::slots::MOST_IN_ALL_PPM;
use crate::policy::slots::{PlanCosts, SlotTable};
use crate::{Instant, Span};

/// What is left grows to this at most.
const MOST: Span = Span::from_millis(1);

/// Grows with time, by the share that is left, and is taken from when a slot is prolonged. So slots, all that admission charges for, and what is
/// made up take no more of the processor than [`MOST_IN_ALL_PPM`], but for [`MOST`] once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Allowance {
    share_ppm: u32,
    left: Span,
    /// When that was so; zero at the beginning.
    since: Instant,
}

impl Allowance {
    /// What is left beside a table that was planned by these costs; at first all that it can be.
    pub(super) fn beside(table: &SlotTable, costs: &PlanCosts) -> Self {
        Self {
            share_ppm: left_beside(table, costs),
            left: MOST,
            since: Instant::ZERO,
        }
    }

    /// Another table takes the place of that one.
    pub(super) fn is_now_beside(&mut self, table: &SlotTable, costs: &PlanCosts) {
        self.share_ppm = left_beside(table, costs);
    }

    /// What may be made up now.
    pub(super) fn left(&mut self, now: Instant) -> Span {
        let passed = now.saturating_since(self.since).as_nanos();
        let grown = u128::from(passed) * u128::from(self.share_ppm) / 1_000_000;
        let grown = Span::from_nanos(u64::try_from(grown).unwrap_or(u64::MAX));
        self.left = self
            .left
            .checked_add(grown)
            .map_or(MOST, |left| left.min(MOST));
        self.since = now;
        self.left
    }

    /// So much was made up.
    pub(super) fn take(&mut self, made_up: Span) {
        self.left = self.left.saturating_sub(made_up);
    }
}

/// The share of the processor that neither slots nor what admission charges beside them may take.
fn left_beside(table: &SlotTable, costs: &PlanCosts) -> u32 {
    let each = costs.per_slot.as_dedicated_span();
    let planned: Span = table.slots().iter().map(|slot| slot.length + each).sum();
    let planned_ppm =
        u128::from(planned.as_nanos()) * 1_000_000 / u128::from(table.cycle().as_nanos().max(1));
    let planned_ppm = u32::try_from(planned_ppm).unwrap_or(u32::MAX);
    MOST_IN_ALL_PPM.saturating_sub(planned_ppm.saturating_add(costs.other_ppm))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Service;
    use crate::policy::slots::Slot;

    /// 9 ms of 10, and 40 µs for the switch: 904,000 parts per million, so that 46,000 are left.
    fn allowance() -> Allowance {
        let slot = Slot {
            start: Span::ZERO,
            length: Span::from_millis(9),
            owner: 0,
        };
        let table = SlotTable::new(Span::from_millis(10), [slot].into()).expect("a table");
        let costs = PlanCosts {
            per_slot: Service::from_micros(40),
            max_share_ppm: 940_000,
            other_ppm: 0,
            granularity: Span::from_micros(1),
        };
        Allowance::beside(&table, &costs)
    }

    #[test]
    fn what_is_made_up_is_no_more_than_what_is_left() {
        let mut allowance = allowance();
        let at = Instant::from_secs(7);
        assert_eq!(allowance.left(at), MOST);
        allowance.take(MOST);
        assert_eq!(allowance.left(at), Span::ZERO);
        let later = at + Span::from_millis(10);
        assert_eq!(allowance.left(later), Span::from_micros(460));
        allowance.take(Span::from_micros(400));
        assert_eq!(allowance.left(later), Span::from_micros(60));
        assert_eq!(allowance.left(later + Span::from_secs(9)), MOST);
    }

    #[test]
    fn a_table_that_takes_all_leaves_nothing_to_be_made_up() {
        let mut allowance = allowance();
        allowance.take(MOST);
        allowance.share_ppm = 0;
        assert_eq!(allowance.left(Instant::from_secs(9)), Span::ZERO);
    }
}
