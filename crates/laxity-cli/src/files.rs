//! Reading what a command names, and writing results: to a file, whole or not at all, or to standard output.

use std::io::Write;
use std::path::Path;

use laxity_lab::evidence::write_whole;

use crate::exit::{ERROR, Failure, USAGE, failed};

/// The text of a file, with the name to speak of it by.
pub(crate) fn read(path: &Path) -> Result<(String, String), Failure> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).map_err(failed(&name))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(&error.as_bytes()[..good]);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        let place = format!("{name}:{line}:{column}");
        Failure::new(USAGE, format!("{place}: not UTF-8; save it as UTF-8 text"))
    })?;
    Ok((name, text))
}

/// Whether a path stands for standard output.
pub(crate) fn is_output(path: &Path) -> bool {
    path == Path::new("-")
}

/// Whether standard output is taken by the JSON or by the file that another option names; an error if by both.
pub(crate) fn taken(json: Option<&Path>, option: &str, file: &Path) -> Result<bool, Failure> {
    let json = json.is_some_and(is_output);
    if json && is_output(file) {
        let both = format!("both --json and {option} name standard output");
        return Err(Failure::new(USAGE, both + "; name a file for one of them"));
    }
    Ok(json || is_output(file))
}

/// Writes `bytes` to `path`; `-` is standard output.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if is_output(path) {
        let mut out = std::io::stdout().lock();
        let written = out.write_all(bytes).and_then(|()| out.flush());
        return written.map_err(failed("standard output"));
    }
    write_whole(path, bytes).map_err(|error| Failure::new(ERROR, error.to_string()))
}

/// Writes a text to standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    write(Path::new("-"), text.as_bytes())
}
