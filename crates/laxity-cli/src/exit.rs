//! Exit codes, and failures that end in one.

use std::fmt::Display;

pub(crate) use laxity_lab::exit::{ERROR, INCONCLUSIVE, MET, of};

/// Admission said no.
pub(crate) const REFUSED: u8 = 3;
/// This machine cannot do it.
pub(crate) const CANNOT_RUN: u8 = 4;
/// The command line or the scenario is wrong.
pub(crate) const USAGE: u8 = 64;

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
