//! Registers of constants, which the studies show that put them in: how each came to its value, and by what it was chosen. The words are the study's data, the values
//! are taken from where they are used.

use std::collections::BTreeMap;

use laxity_lab::report::{Origin, Row, Value};
use laxity_lab::runner::RunError;
use serde::Deserialize;

/// How a constant came to its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Printed in the source, and put in.
    Charged,
    /// Chosen so that rows, figures or numbers of the source come out.
    Calibrated,
    /// Chosen for plausibility, and by no row or number of the source.
    Assumed,
    /// What we take an unclear sentence of the source to mean.
    Reading,
}

impl Kind {
    /// In a table.
    const fn name(self) -> &'static str {
        match self {
            Self::Charged => "charged",
            Self::Calibrated => "calibrated",
            Self::Assumed => "assumed",
            Self::Reading => "a reading",
        }
    }

    const fn origin(self) -> Origin {
        match self {
            Self::Charged => Origin::Charged,
            _ => Origin::Calibrated,
        }
    }
}

/// A constant.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Constant {
    /// What it is.
    pub(crate) name: String,
    /// The key of its value.
    pub(crate) value: String,
    /// How it came to its value.
    pub(crate) kind: Kind,
    /// Why this value.
    pub(crate) reason: String,
    /// What it was chosen by: figures, rows or numbers of the source, as the study names them; empty if by nothing that the twin is compared with.
    pub(crate) chosen_by: Vec<String>,
}

/// A register as rows of the report, with its values by their keys.
///
/// # Errors
///
/// [`RunError::CannotRun`] if a constant's value has no such key, or a value has no constant.
pub(crate) fn rows(
    register: &[Constant],
    mut values: BTreeMap<&'static str, Value>,
) -> Result<Vec<Row>, RunError> {
    let row = |constant: &Constant| -> Result<Row, RunError> {
        let Constant { name, value, .. } = constant;
        let value = values.remove(value.as_str());
        let value =
            value.ok_or_else(|| wrong(&format!("{name} has the value of another, or none")))?;
        Ok(constant.kind.origin().row([
            name.as_str().into(),
            value,
            constant.kind.name().into(),
            constant.reason.as_str().into(),
            constant.chosen_by.join(", ").into(),
        ]))
    };
    let rows = register
        .iter()
        .map(row)
        .collect::<Result<Vec<Row>, RunError>>()?;
    match values.keys().next() {
        Some(key) => Err(wrong(&format!("{key} is the value of none"))),
        None => Ok(rows),
    }
}

fn wrong(what: &str) -> RunError {
    RunError::CannotRun(format!("constants: {what}"))
}
