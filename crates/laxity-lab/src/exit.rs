//! Exit codes that tell how something came out: those of the command, and the one that the results of a scenario carry.

use laxity_model::verify::contract::Outcome;

/// All is well, or as expected.
pub const MET: u8 = 0;
/// Something failed.
pub const ERROR: u8 = 1;
/// What was promised, claimed or expected was not so.
pub const VIOLATED: u8 = 2;
/// The evidence does not tell.
pub const INCONCLUSIVE: u8 = 5;

/// That of a verdict.
#[must_use]
pub const fn of(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Met => MET,
        Outcome::Violated => VIOLATED,
        Outcome::Inconclusive => INCONCLUSIVE,
    }
}
