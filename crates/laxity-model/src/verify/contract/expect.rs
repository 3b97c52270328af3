//! What is expected of a verdict: a demonstration of failure succeeds when it fails as expected.

use super::{Outcome, Verdict};
use derive_more::Display;

/// What is expected of a variant of a run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Display)]
#[display(rename_all = "lowercase")]
pub enum Expectation {
    /// The contract is met.
    #[default]
    Met,
    /// It is violated.
    Violated,
    /// The evidence does not suffice.
    Inconclusive,
    /// Nothing in particular.
    Any,
}

/// Whether the verdict is what was expected. An inconclusive verdict is as expected only if that or anything was.
pub fn as_expected(verdict: &Verdict, expectation: Expectation) -> bool {
    match expectation {
        Expectation::Met => verdict.result == Outcome::Met,
        Expectation::Violated => verdict.result == Outcome::Violated,
        Expectation::Inconclusive => verdict.result == Outcome::Inconclusive,
        Expectation::Any => true,
    }
}
