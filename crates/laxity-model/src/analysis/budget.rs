//! How much a question may look at.

use core::cell::Cell;

/// How many tasks, at most, one question looks at in all its passes, unless it is told otherwise: some 0.1 s of work.
const MOST_ROWS: u64 = 1 << 26;

/// What one question may still look at, in however many calls: rows, which are one task in one pass over all of them. The supply counts as one more.
#[derive(Clone, Debug)]
pub struct Budget(Cell<u64>);

impl Default for Budget {
    /// 2²⁶ rows, some 0.1 s.
    fn default() -> Self {
        Self::of(MOST_ROWS)
    }
}

impl Budget {
    /// So many rows.
    #[must_use]
    pub const fn of(rows: u64) -> Self {
        Self(Cell::new(rows))
    }

    /// Whether so many rows more may be looked at: they are counted.
    #[inline]
    pub(crate) fn allows(&self, rows: u64) -> bool {
        let left = self.0.get().checked_sub(rows);
        left.inspect(|left| self.0.set(*left)).is_some()
    }

    /// Whether one more pass over this many tasks may be made: it is counted.
    #[inline]
    pub(crate) fn allows_pass(&self, tasks: usize) -> bool {
        self.allows(tasks as u64 + 1)
    }

    /// Whether a sum of so many fractions may be compared exactly, in numbers of any length: each is multiplied by all before it. It is counted.
    pub(crate) fn allows_exact_sum(&self, fractions: usize) -> bool {
        let fractions = fractions as u64;
        self.allows(fractions.saturating_mul(fractions))
    }

    /// Asks something for which there are no more than so many rows of these; what it leaves is there again.
    pub(crate) fn part<T>(&self, rows: u64, ask: impl FnOnce(&Self) -> T) -> T {
        let rows = rows.min(self.0.get());
        let part = Self::of(rows);
        let answer = ask(&part);
        self.0.set(self.0.get() - rows + part.0.get());
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_takes_what_it_looks_at_and_no_more_than_there_is() {
        let budget = Budget::of(10);
        assert!(budget.allows_pass(2));
        let left = |rows| {
            budget.part(rows, |part| {
                (0..).find(|_| !part.allows(2)).expect("it comes to an end")
            })
        };
        assert_eq!((left(5), left(5), left(5)), (2, 1, 0));
        assert!(budget.allows(1) && !budget.allows(1));
    }

    #[test]
    fn an_exact_sum_of_more_than_fit_is_not_allowed() {
        let budget = Budget::of(99);
        assert!(!budget.allows_exact_sum(10) && !budget.allows_exact_sum(usize::MAX));
        assert!(budget.allows_exact_sum(9));
    }
}
