//! The machine file that a command names.

use std::path::Path;

use laxity_lab::machine_file::Known;

use crate::exit::{Failure, USAGE};
use crate::{files, scenario};

/// What it says of the machine that this is. A file that is named must be there, and right.
pub(crate) fn read(path: &Path) -> Result<Known, Failure> {
    let read = files::read(path);
    let (name, text) = read.map_err(|failure| Failure::new(USAGE, failure.message))?;
    Known::read(&text, &name).map_err(|errors| scenario::wrong(&name, &errors))
}
