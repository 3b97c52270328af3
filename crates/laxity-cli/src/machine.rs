//! What is known of the costs of this machine, or of one that a command names.

use std::path::Path;

use laxity_lab::machine_file::Known;
use laxity_lab::runner::On as Host;

use crate::exit::{Failure, USAGE};
use crate::{files, scenario};

/// What was measured here before, unless another file is named, or `none`. A file that is named must be there, and right. The twin reads none that is
/// not named: what it says is the same on every machine.
pub(crate) fn known(named: Option<&Path>, on: Host) -> Result<Known, Failure> {
    let Some(path) = named else {
        return Ok(match on {
            Host::Linux => Known::here(),
            Host::Twin { .. } => Known::Nothing,
        });
    };
    if path == Path::new("none") {
        return Ok(Known::LeftOut);
    }
    let read = files::read(path);
    let (name, text) = read.map_err(|failure| Failure::new(USAGE, failure.message))?;
    Known::read(&text, &name).map_err(|errors| scenario::wrong(&name, &errors))
}
