//! Writing results: to a file, whole or not at all, or to standard output.

use std::io::Write;
use std::path::Path;

use laxity_lab::evidence::write_whole;

use crate::exit::{ERROR, Failure};

/// Writes `bytes` to `path`; `-` is standard output.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if path == Path::new("-") {
        let mut out = std::io::stdout().lock();
        let written = out.write_all(bytes).and_then(|()| out.flush());
        return written.map_err(|error| Failure::new(ERROR, format!("standard output: {error}")));
    }
    write_whole(path, bytes).map_err(|error| Failure::new(ERROR, error.to_string()))
}
