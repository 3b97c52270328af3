//! The demand as steps and lines, on a grid of times: what is certain without a look at each channel.

use alloc::vec::Vec;

use super::others::share;
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Fraction, Task};

/// Bits behind the point.
const POINT: u32 = 48;

/// So many of a time's first bits are kept: the grid is 2⁻⁵ of it fine.
const KEPT: u32 = 6;

/// So many messages of each are steps; all behind these are a line.
const STEPS: usize = 3;

/// All steps at times that round down to one point of the grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Column {
    due: u64,
    steps: u32,
    /// Σ C.
    cost: i128,
    /// Σ C / T of those whose lines begin here, in units of 2⁻⁴⁸, each rounded up.
    share: u64,
}

/// The demand of tasks without jitter and bursts, from above: Σ C·n(t) over those with D ≤ t, where n(t) is the number of messages, or beyond the first ones 1 + (t − D)/T, each step rounded down to the grid.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Grid {
    /// By time; none is empty.
    columns: Vec<Column>,
    /// Σ ⌊C / T⌋ in units of 2⁻⁶⁴.
    load: u128,
    /// Σ C / T in parts per million, each rounded up.
    ppm: u128,
    /// Tasks that are too long to be drawn.
    huge: usize,
}

/// What the grid knows for certain, where a newcomer has the deadline that it says, or a later one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sure {
    /// They need more than the supply gives in the long run.
    TooMuch,
    /// No deadline is missed that is later than this after the begin of a busy window: none at all where this is zero.
    MetAfter(u64),
    /// Nothing.
    Nothing,
}

/// The last column at which more might be due than was given.
struct Behind {
    at: u64,
    left: i128,
    free: u64,
    /// The next column.
    before: Option<u64>,
}

impl Grid {
    /// One more.
    pub(super) fn insert(&mut self, task: &Task) {
        self.load += load(task);
        self.ppm += u128::from(share(task).ppm());
        let Some(steps) = steps(task) else {
            self.huge += 1;
            return;
        };
        for one in steps {
            match self.place(one.due) {
                Ok(place) => {
                    let column = &mut self.columns[place];
                    column.cost += one.cost;
                    column.share += one.share;
                    column.steps += 1;
                }
                Err(place) => self.columns.insert(place, one),
            }
        }
    }

    /// One less, of those that are there.
    pub(super) fn remove(&mut self, task: &Task) {
        self.load -= load(task);
        self.ppm -= u128::from(share(task).ppm());
        let Some(steps) = steps(task) else {
            self.huge -= 1;
            return;
        };
        for one in steps {
            let Ok(place) = self.place(one.due) else {
                continue;
            };
            let column = &mut self.columns[place];
            column.cost -= one.cost;
            column.share -= one.share;
            column.steps -= 1;
            if column.steps == 0 {
                self.columns.remove(place);
            }
        }
    }

    /// How many columns there are.
    pub(super) const fn columns(&self) -> u64 {
        self.columns.len() as u64
    }

    /// The shares of all, in parts per million, each rounded up.
    pub(super) const fn ppm(&self) -> u128 {
        self.ppm
    }

    /// Whether all of them and a newcomer need more than the supply gives, for certain.
    pub(super) fn is_too_much(&self, newcomer: &Task, supply: &impl SupplyBound) -> bool {
        let rate = supply.rate();
        let rate = (u128::from(rate.numerator()) << 64).div_ceil(u128::from(rate.denominator()));
        self.load + load(newcomer) > rate
    }

    /// From when on all of them and a newcomer meet their deadlines for certain, where nobody blocks for longer than this, and none later than its deadline costs more.
    ///
    /// Between two columns the demand grows at Σ C/T, and the supply no slower: only at columns it has to be looked at. O(columns), which are no more than three times the tasks, nor than 32 for each doubling of
    /// times.
    pub(super) fn looks(&self, newcomer: &Task, blocking: u64, supply: &impl SupplyBound) -> Sure {
        if self.is_too_much(newcomer, supply) {
            return Sure::TooMuch;
        }
        match steps(newcomer) {
            Some(own) if self.huge == 0 => self.walks(own, blocking, supply),
            _ => Sure::Nothing,
        }
    }

    fn walks(&self, own: [Column; STEPS], blocking: u64, supply: &impl SupplyBound) -> Sure {
        let (mut free, delay) = (free(supply), supply.delay().as_nanos());
        // What is left over at a column's time, in units of 2⁻⁴⁸: 64 bits times 49, and sums of the costs of as many tasks as fit in memory, none of which has more than 48.
        let mut left = -(i128::from(blocking) << POINT) - i128::from(free) * i128::from(delay);
        let (mut at, mut behind, mut is_behind) = (0, None::<Behind>, false);
        let mut own = own.iter().peekable();
        let mut there = self.columns.iter().peekable();
        loop {
            let is_own = match (own.peek(), there.peek()) {
                (Some(own), Some(there)) => own.due <= there.due,
                (own, _) => own.is_some(),
            };
            let Some(column) = (if is_own { own.next() } else { there.next() }) else {
                break;
            };
            if let (true, Some(behind)) = (is_behind, &mut behind) {
                behind.before = Some(column.due);
            }
            left += (u128::from(free) * u128::from(column.due - at)).cast_signed();
            left -= column.cost << POINT;
            at = column.due;
            let Some(less) = free.checked_sub(column.share) else {
                return Sure::Nothing;
            };
            free = less;
            is_behind = left < 0;
            if is_behind {
                behind = Some(Behind {
                    at,
                    left,
                    free,
                    before: None,
                });
            }
        }
        behind.map_or(Sure::MetAfter(0), |behind| {
            behind.until().map_or(Sure::Nothing, Sure::MetAfter)
        })
    }

    fn place(&self, due: u64) -> Result<usize, usize> {
        self.columns.binary_search_by_key(&due, |column| column.due)
    }
}

impl Behind {
    /// When all that might be due was given; `None` where that is behind all columns, and might take long.
    fn until(&self) -> Option<u64> {
        let before = self.before?;
        let wait = self.left.unsigned_abs().checked_div(u128::from(self.free));
        let until = wait.and_then(|wait| u64::try_from(wait + 1).ok()?.checked_add(self.at));
        Some(until.map_or(before, |until| until.min(before)))
    }
}

/// The rate of a supply in units of 2⁻⁴⁸, rounded down; at most one.
fn free(supply: &impl SupplyBound) -> u64 {
    let rate = supply.rate();
    if rate == Fraction::ONE {
        return 1 << POINT;
    }
    let rate = (u128::from(rate.numerator()) << POINT) / u128::from(rate.denominator());
    rate.min(1 << POINT) as u64
}

/// ⌊C / T⌋ in units of 2⁻⁶⁴; of one that is more than twice all there is, that.
fn load(task: &Task) -> u128 {
    let (cost, period) = (task.cost().as_nanos(), task.period().as_nanos());
    let load = (u128::from(cost) << 64) / u128::from(period);
    load.min(2 << 64)
}

/// What one task is on the grid; `None` where it is more than all of a supply, or too long to be drawn.
fn steps(task: &Task) -> Option<[Column; STEPS]> {
    let (cost, period) = (task.cost().as_nanos(), task.period().as_nanos());
    if cost > period || cost >> POINT > 0 {
        return None;
    }
    let share = (u128::from(cost) << POINT).div_ceil(u128::from(period)) as u64;
    let mut due = task.deadline().as_nanos();
    Some(core::array::from_fn(|step| {
        let finer = u64::BITS - due.leading_zeros().min(u64::BITS - KEPT) - KEPT;
        let column = Column {
            due: due >> finer << finer,
            steps: 1,
            cost: i128::from(cost),
            share: if step + 1 == STEPS { share } else { 0 },
        };
        due = due.saturating_add(period);
        column
    }))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::analysis::supply::Dedicated;
    use crate::{Service, Span};

    fn task(cost: u64, period: u64) -> Task {
        Task::new(Service::from_nanos(cost), Span::from_nanos(period)).expect("a task")
    }

    #[test]
    fn what_is_far_from_full_is_said_to_be_met_and_what_is_more_is_too_much() {
        let mut grid = Grid::default();
        let all: Vec<Task> = (1..100).map(|n| task(10, 10_000 * n)).collect();
        all.iter().for_each(|task| grid.insert(task));
        let looks = |newcomer| grid.looks(&newcomer, 500, &Dedicated);
        assert_eq!(looks(task(1_000, 50_000)), Sure::MetAfter(0));
        // As it is due itself it is behind, and then soon no more.
        assert!(matches!(
            looks(task(9_600, 10_000)),
            Sure::MetAfter(10_001..10_200)
        ));
        assert_eq!(looks(task(9_950, 10_000)), Sure::TooMuch);
        // So much that it is longer than can be drawn.
        let huge = task(1 << 50, 1 << 60);
        assert_eq!(looks(huge), Sure::Nothing);
        grid.insert(&huge);
        assert_eq!(grid.looks(&task(1, 10_000), 0, &Dedicated), Sure::Nothing);
        all.iter().chain([&huge]).for_each(|task| grid.remove(task));
        assert_eq!(grid, Grid::default());
    }

    /// With one exactly as much as there is: the sum of what is rounded must not say more.
    #[test]
    fn exactly_as_much_as_there_is_is_not_too_much() {
        let mut grid = Grid::default();
        (0..2).for_each(|_| grid.insert(&task(1, 3)));
        assert_ne!(grid.looks(&task(1, 3), 0, &Dedicated), Sure::TooMuch);
        assert_eq!(
            grid.looks(&task(1_001, 3_000), 0, &Dedicated),
            Sure::TooMuch
        );
    }
}
