//! How much is looked at for advice. It is counted and not timed, so that a set has the same advice on every machine.

use std::cell::Cell;

use laxity_model::analysis::supply::SupplyBound;
use laxity_model::analysis::{Fraction, Overflow};
use laxity_model::{Service, Span};

use super::attempt::Answer;

/// For one processor's advice, in rows (what one task asks for in one window): some 0.3 s of work.
const MOST_ROWS: u64 = 1 << 28;

/// For one question, at least: a window of ten tasks may be looked at some 100,000 times.
const ROWS_OF_A_QUESTION: u64 = 1 << 20;

/// For one question, by the square of the number of tasks: every task's window may be looked at so often.
const PASSES_OF_A_TASK: u64 = 16;

/// To copy and sort a set takes as long as so many rows of each of its tasks.
const ROWS_TO_PREPARE: u64 = 64;

/// What may still be looked at.
pub(super) struct Effort<'a> {
    supply: &'a dyn SupplyBound,
    /// In one look at the supply.
    rows: u64,
    of_a_question: u64,
    left: Cell<u64>,
}

impl<'a> Effort<'a> {
    /// For questions about sets of so many tasks.
    pub(super) fn new(supply: &'a dyn SupplyBound, members: usize) -> Self {
        let members = u64::try_from(members).unwrap_or(u64::MAX);
        let square = members.saturating_mul(members);
        Self {
            supply,
            rows: members.saturating_add(1),
            of_a_question: square
                .saturating_mul(PASSES_OF_A_TASK)
                .max(ROWS_OF_A_QUESTION),
            left: Cell::new(MOST_ROWS),
        }
    }

    /// Whether nothing more is asked.
    pub(super) fn is_spent(&self) -> bool {
        self.left.get() == 0
    }

    /// Asks about a set on the supply.
    pub(super) fn ask(
        &self,
        question: impl FnOnce(&dyn SupplyBound) -> Result<Answer, Overflow>,
    ) -> Result<Answer, Overflow> {
        self.ask_on(self.supply, question)
    }

    /// The same on another supply. Each counts how often it is asked itself, and fails if that is too often.
    pub(super) fn ask_on(
        &self,
        supply: &dyn SupplyBound,
        question: impl FnOnce(&dyn SupplyBound) -> Result<Answer, Overflow>,
    ) -> Result<Answer, Overflow> {
        let prepared = self.rows.saturating_mul(ROWS_TO_PREPARE);
        let Some(left) = self.left.get().checked_sub(prepared) else {
            self.left.set(0);
            return Ok(Answer::TooLong);
        };
        let may = left.min(self.of_a_question);
        let counted = Counted {
            supply,
            rows: self.rows,
            left: Cell::new(may),
            is_over: Cell::new(false),
        };
        let answer = question(&counted);
        self.left.set(left - (may - counted.left.get()));
        if counted.is_over.get() {
            return Ok(Answer::TooLong);
        }
        answer
    }
}

/// A supply that is asked only so often.
struct Counted<'a> {
    supply: &'a dyn SupplyBound,
    rows: u64,
    left: Cell<u64>,
    /// Whether it failed for that; what was made of it is then worth nothing.
    is_over: Cell<bool>,
}

impl SupplyBound for Counted<'_> {
    fn least_service(&self, window: Span) -> Service {
        // Those who ask this count for themselves.
        self.left.set(self.left.get().saturating_sub(self.rows));
        self.supply.least_service(window)
    }

    fn window_for(&self, service: Service) -> Result<Span, Overflow> {
        let Some(left) = self.left.get().checked_sub(self.rows) else {
            self.left.set(0);
            self.is_over.set(true);
            return Err(Overflow("what is looked at"));
        };
        self.left.set(left);
        self.supply.window_for(service)
    }

    fn rate(&self) -> Fraction {
        self.supply.rate()
    }

    fn delay(&self) -> Span {
        self.supply.delay()
    }

    fn is_attained(&self) -> bool {
        self.supply.is_attained()
    }
}
