//! Reading what a command names, and writing results: to a file, whole or not at all, or to standard output.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use laxity_lab::evidence::write_whole;
use laxity_lab::{plain, plain_lines};

use crate::colour::painted;
use crate::exit::{ERROR, Failure, USAGE, failed};

/// Nothing that is read is larger: 4 MiB, which is what a task set may have.
const LARGEST: u64 = 4 << 20;

/// The text of a file, with the name to speak of it by; `-` is standard input.
pub(crate) fn read(path: &Path) -> Result<(String, String), Failure> {
    let (name, source): (String, Box<dyn Read>) = if is_stream(path) {
        ("standard input".to_owned(), Box::new(std::io::stdin()))
    } else {
        let name = plain(&path.display().to_string()).into_owned();
        let file = File::open(path).map_err(failed(&name))?;
        (name, Box::new(file))
    };
    let mut bytes = Vec::new();
    // One more, to see that there is more.
    let taken = source.take(LARGEST + 1).read_to_end(&mut bytes);
    taken.map_err(failed(&name))?;
    if bytes.len() as u64 > LARGEST {
        let message = format!("{name}: larger than {} MiB", LARGEST >> 20);
        return Err(Failure::new(USAGE, message));
    }
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

/// Whether a path stands for standard input, or output.
pub(crate) fn is_stream(path: &Path) -> bool {
    path == Path::new("-")
}

/// Writes `bytes` to `path`; `-` is standard output.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if is_stream(path) {
        let mut out = std::io::stdout().lock();
        let written = out.write_all(bytes).and_then(|()| out.flush());
        return written.map_err(failed("standard output"));
    }
    write_whole(path, bytes).map_err(|error| Failure::new(ERROR, error.to_string()))
}

/// How wide lines of standard output are, in characters: as the terminal is, as far as lines that long can be read; 80 where there is none.
pub(crate) fn width() -> usize {
    let terminal = terminal_size::terminal_size_of(std::io::stdout());
    terminal.map_or(80, |(width, _)| usize::from(width.0).clamp(60, 140))
}

/// Writes a text for people to standard output, its verdicts in colour where that is wanted.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    write(Path::new("-"), painted(&plain_lines(text)).as_bytes())
}

/// Says something to a person, on standard error.
pub(crate) fn say(text: &str) {
    tell(&format!("{}\n", plain_lines(text)));
}

/// Writes to standard error, as it is. What cannot be told there can be told nowhere, and takes nothing else along.
pub(crate) fn tell(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
