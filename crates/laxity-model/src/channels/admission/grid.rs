//! The demand as lines, on a grid of deadlines: a yes that is cheap, or no answer.

use alloc::vec::Vec;

use crate::analysis::supply::SupplyBound;
use crate::analysis::{Fraction, Task};

/// Bits behind the point.
const POINT: u32 = 32;

/// So many of a deadline's first bits are kept: the grid is 2⁻⁵ of it fine.
const KEPT: u32 = 6;

/// All tasks whose deadlines round down to one point of the grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Column {
    due: u64,
    tasks: u32,
    /// Σ C.
    cost: i128,
    /// Σ C / T in units of 2⁻³², each rounded up.
    share: u64,
}

/// The demand of tasks without jitter and bursts, from above: Σ C·(1 + (t − D)/T) over those with D ≤ t, D rounded down to the grid.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Grid {
    /// By deadline; none is empty.
    columns: Vec<Column>,
}

impl Grid {
    /// One more.
    pub(super) fn insert(&mut self, task: &Task) {
        let one = column(task);
        match self.place(one.due) {
            Ok(place) => {
                let column = &mut self.columns[place];
                column.cost += one.cost;
                column.share += one.share;
                column.tasks += 1;
            }
            Err(place) => self.columns.insert(place, one),
        }
    }

    /// One less, of those that are there.
    pub(super) fn remove(&mut self, task: &Task) {
        let one = column(task);
        let Ok(place) = self.place(one.due) else {
            return;
        };
        let column = &mut self.columns[place];
        column.cost -= one.cost;
        column.share -= one.share;
        column.tasks -= 1;
        if column.tasks == 0 {
            self.columns.remove(place);
        }
    }

    /// Whether all of them and a newcomer meet their deadlines for certain, where nobody blocks for longer than this. `false` says nothing.
    ///
    /// Between two columns the demand grows at Σ C/T, and the supply no slower: only at columns it has to be looked at. O(columns), which are no more than the tasks, nor than 32 for each doubling of
    /// deadlines.
    pub(super) fn accepts(
        &self,
        newcomer: &Task,
        blocking: u64,
        supply: &impl SupplyBound,
    ) -> bool {
        let own = column(newcomer);
        let (mut free, delay) = (free(supply), supply.delay().as_nanos());
        let split = self.columns.partition_point(|column| column.due <= own.due);
        let (before, behind) = self.columns.split_at(split);
        // What is left over at a column's deadline, in units of 2⁻³²: 64 bits times 33, and sums of the costs of as many tasks as fit in memory.
        let mut left = -(i128::from(blocking) << POINT) - i128::from(free) * i128::from(delay);
        let mut at = 0;
        for column in before.iter().chain([&own]).chain(behind) {
            left += (u128::from(free) * u128::from(column.due - at)).cast_signed();
            left -= column.cost << POINT;
            at = column.due;
            match free.checked_sub(column.share) {
                Some(less) if left >= 0 => free = less,
                _ => return false,
            }
        }
        true
    }

    fn place(&self, due: u64) -> Result<usize, usize> {
        self.columns.binary_search_by_key(&due, |column| column.due)
    }
}

/// The rate of a supply in units of 2⁻³², rounded down; at most one.
fn free(supply: &impl SupplyBound) -> u64 {
    let rate = supply.rate();
    if rate == Fraction::ONE {
        return 1 << POINT;
    }
    let rate = (u128::from(rate.numerator()) << POINT) / u128::from(rate.denominator());
    rate.min(1 << POINT) as u64
}

/// What one task is on the grid. One that is more than all of a supply is twice that.
fn column(task: &Task) -> Column {
    let due = task.deadline().as_nanos();
    let finer = u64::BITS - due.leading_zeros().min(u64::BITS - KEPT) - KEPT;
    let (cost, period) = (task.cost().as_nanos(), task.period().as_nanos());
    let share = if cost >> POINT == 0 {
        (cost << POINT).div_ceil(period)
    } else {
        let share = (u128::from(cost) << POINT).div_ceil(u128::from(period));
        share.min(2 << POINT) as u64
    };
    Column {
        due: due >> finer << finer,
        tasks: 1,
        cost: i128::from(cost),
        share: share.min(2 << POINT),
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::analysis::Preemption;
    use crate::analysis::edf;
    use crate::analysis::supply::{BoundedDelay, Dedicated};
    use crate::{Service, Span};
    use proptest::prelude::*;

    fn task() -> impl Strategy<Value = Task> {
        (100..20_000_u64).prop_flat_map(|period| {
            let numbers = (Just(period), 1..=period / 4, 1..=100_u64, 1..3 * period);
            numbers.prop_map(|(period, cost, percent, later)| {
                let longest = Service::from_nanos((cost * percent).div_ceil(100));
                Task::new(Service::from_nanos(cost), Span::from_nanos(period))
                    .and_then(|task| task.with_deadline(Span::from_nanos(cost + later)))
                    .and_then(|task| task.with_preemption(Preemption::Floating { longest }))
                    .expect("a task")
            })
        })
    }

    proptest! {
        /// It says yes only where the exact test does; and what came and went leaves nothing.
        #[test]
        fn yes_is_yes(
            tasks in proptest::collection::vec(task(), 1..12), gone in proptest::collection::vec(task(), 0..4),
            never_due in 0..200_u64, delay in 0..300_u64, shared in any::<bool>(),
        ) {
            let mut grid = Grid::default();
            tasks[1..].iter().chain(&gone).for_each(|task| grid.insert(task));
            gone.iter().for_each(|task| grid.remove(task));
            let regions = tasks.iter().map(|task| task.longest_region().as_nanos());
            let blocking = regions.max().unwrap_or(0).max(never_due);
            let never_due = Service::from_nanos(never_due);
            if shared {
                let rate = Fraction::new(3, 4).expect("a rate");
                let supply = BoundedDelay::new(rate, Span::from_nanos(delay)).expect("a supply");
                if grid.accepts(&tasks[0], blocking, &supply) {
                    let exact = edf::test_beside(&tasks, never_due, &supply).expect("fits");
                    prop_assert!(exact.is_schedulable());
                }
            } else if grid.accepts(&tasks[0], blocking, &Dedicated) {
                let exact = edf::test_beside(&tasks, never_due, &Dedicated).expect("fits");
                prop_assert!(exact.is_schedulable());
            }
            tasks[1..].iter().for_each(|task| grid.remove(task));
            prop_assert!(grid.columns.is_empty());
        }
    }

    #[test]
    fn what_is_far_from_full_is_said_to_be_met() {
        let task = |cost, period| {
            Task::new(Service::from_nanos(cost), Span::from_nanos(period)).expect("a task")
        };
        let mut grid = Grid::default();
        let all: Vec<Task> = (1..100).map(|n| task(10, 10_000 * n)).collect();
        all.iter().for_each(|task| grid.insert(task));
        assert!(grid.accepts(&task(1_000, 50_000), 500, &Dedicated));
        assert!(!grid.accepts(&task(9_600, 10_000), 500, &Dedicated));
        assert!(!grid.accepts(&task(10_000, 10_000), 0, &Dedicated));
    }
}
