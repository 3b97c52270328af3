//! Exit codes, and failures that end in one.

use std::fmt::Display;

use laxity_model::verify::contract::Outcome;

/// All is well.
pub(crate) const MET: u8 = 0;
/// Something failed.
pub(crate) const ERROR: u8 = 1;
/// What was promised or claimed was not so.
pub(crate) const VIOLATED: u8 = 2;
/// Admission said no.
pub(crate) const REFUSED: u8 = 3;
/// This machine cannot do it.
pub(crate) const CANNOT_RUN: u8 = 4;
/// The evidence does not tell.
pub(crate) const INCONCLUSIVE: u8 = 5;
/// The command line or the scenario is wrong.
pub(crate) const USAGE: u8 = 64;

/// That of a verdict.
pub(crate) const fn of(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Met => MET,
        Outcome::Violated => VIOLATED,
        Outcome::Inconclusive => INCONCLUSIVE,
    }
}

/// Makes a failure of an error, with what failed before it.
pub(crate) fn failed<E: Display>(what: impl Display) -> impl FnOnce(E) -> Failure {
    move |error| Failure::new(ERROR, format!("{what}: {error}"))
}

/// Why a command ends without a result.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) code: u8,
    /// What is said on standard error.
    pub(crate) message: String,
}

impl Failure {
    /// A failure with this code.
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}
