//! Where results go: looked at before anything starts, and each written whatever becomes of the others.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use clap::Args;
use laxity_lab::evidence::{check_writable, directory_of, written_to};
use laxity_lab::plain;

use crate::exit::{ERROR, Failure, USAGE};
use crate::files;

/// An option that names an output, and what it names.
pub(crate) type Output<'a> = (&'static str, &'a Path);

/// What is told as JSON, the same way by every command.
#[derive(Args, Clone, Debug)]
pub(crate) struct Json {
    /// Write the results as JSON, beside what is shown; without a file (or with `-`) to standard output, and nothing else there.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    json: Option<PathBuf>,
}

impl Json {
    /// Where it goes, if it is wanted.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.json.as_deref()
    }

    /// The same as an output to be checked.
    pub(crate) fn output(&self) -> Option<Output<'_>> {
        self.path().map(|path| ("--json", path))
    }
}

/// What is executed now.
const OWN: &str = "/proc/self/exe";
const PROGRAM: &str = "the program that is to be executed";

/// What an output is, whatever it is called.
#[derive(PartialEq, Eq)]
enum Place {
    /// Standard output, where that is no file.
    Stream,
    /// A file, by its device and number.
    File(u64, u64),
    /// A file to be made: its directory's device and number, and its name.
    New(u64, u64, OsString),
    /// A pipe or a device, which may well be written to twice.
    Other,
}

/// Fails if two outputs are the same file, by whatever name or link, if one is the input or laxity itself, or if one cannot be written where it
/// is to be. Changes nothing.
pub(crate) fn check(input: Option<&Path>, outputs: &[Output<'_>]) -> Result<(), Failure> {
    check_beside(input, &[], outputs)
}

/// The same, and fails if one is a program that is to be executed.
pub(crate) fn check_beside(
    input: Option<&Path>,
    programs: &[PathBuf],
    outputs: &[Output<'_>],
) -> Result<(), Failure> {
    // That something cannot be found is told by who reads or executes it.
    let mut seen: Vec<(Place, &str)> = Vec::new();
    let input = input.and_then(|path| input_there(path).ok());
    seen.extend(input.map(|there| (Place::of(&there), "the input")));
    let stream = standard_output().ok();
    let errors = io::stderr().as_fd().try_clone_to_owned();
    let errors = errors.and_then(|errors| File::from(errors).metadata());
    // It may well be the same file as standard output.
    let errors = errors
        .ok()
        .filter(Metadata::is_file)
        .map(|there| Place::of(&there));
    let errors = errors.filter(|errors| stream.as_ref().is_none_or(|stream| stream.0 != *errors));
    seen.extend(errors.map(|errors| (errors, "standard error")));
    let own = (Path::new(OWN), "laxity itself");
    let programs = programs.iter().map(|program| (program.as_path(), PROGRAM));
    seen.extend(programs.chain([own]).filter_map(|(path, what)| {
        let there = fs::metadata(path).ok()?;
        Some((Place::of(&there), what))
    }));
    for (option, path) in outputs {
        let shown = path.display().to_string();
        let shown = plain(&shown);
        let failed = |cause: io::Error| {
            Failure::new(ERROR, format!("{option}: cannot write {shown}: {cause}"))
        };
        if !files::is_stream(path) {
            let writable = check_writable(path);
            writable.map_err(|error| {
                Failure::new(ERROR, format!("{option}: {error}; nothing was started"))
            })?;
        }
        let place = place(path).map_err(failed)?;
        let other = seen.iter().find(|(other, _)| *other == place);
        if let Some((_, other)) = other.filter(|_| place != Place::Other) {
            let message = if stream.as_ref().is_some_and(|stream| place == stream.0) {
                format!(
                    "both {other} and {option} name standard output; name a file for one of them"
                )
            } else {
                format!("{option} names the same file as {other}: {shown}; give each its own")
            };
            return Err(Failure::new(USAGE, message + "; nothing was started"));
        }
        seen.push((place, option));
    }
    Ok(())
}

impl Place {
    fn of(there: &Metadata) -> Self {
        match there.is_file() {
            true => Self::File(there.dev(), there.ino()),
            false => Self::Other,
        }
    }
}

/// What is read: standard input may be a file too.
fn input_there(path: &Path) -> io::Result<Metadata> {
    if files::is_stream(path) {
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        return File::from(input).metadata();
    }
    fs::metadata(path)
}

/// Where standard output goes.
fn standard_output() -> io::Result<(Place, Metadata)> {
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    let there = File::from(output).metadata()?;
    let place = match Place::of(&there) {
        Place::Other => Place::Stream,
        file => file,
    };
    Ok((place, there))
}

fn place(path: &Path) -> io::Result<Place> {
    let (place, stream) = standard_output()?;
    if files::is_stream(path) {
        return Ok(place);
    }
    // What the system itself follows may be no path: an open file of some process.
    if let Ok(there) = fs::metadata(path) {
        let is_stream = (there.dev(), there.ino()) == (stream.dev(), stream.ino());
        // What nobody reads may be written to twice.
        let is_read = !there.file_type().is_char_device() || io::stdout().is_terminal();
        return Ok(match is_stream && is_read {
            true => place,
            false => Place::of(&there),
        });
    }
    let target = written_to(path)?;
    let directory = fs::metadata(directory_of(&target))?;
    let name = target.file_name().unwrap_or_default().to_owned();
    Ok(Place::New(directory.dev(), directory.ino(), name))
}

/// A text for people on standard output, and the same as JSON where that is wanted: there the JSON stands alone.
pub(crate) fn tell(
    json: &Json,
    people: impl FnOnce() -> String,
    bytes: impl FnOnce() -> Result<Vec<u8>, Failure>,
) -> Result<(), Failure> {
    let mut written = Written::default();
    if let Some(path) = json.path() {
        written.put(path, bytes());
    }
    if !json.path().is_some_and(files::is_stream) {
        written.print(&people());
    }
    written.done()
}

/// The outputs of one command, as they are written: each is tried, and the first failure is told when all have been.
#[derive(Default)]
pub(crate) struct Written {
    first: Option<Failure>,
}

impl Written {
    /// Writes one, if it could be made at all; tells whether it is there.
    pub(crate) fn put(&mut self, path: &Path, bytes: Result<Vec<u8>, Failure>) -> bool {
        let written = bytes.and_then(|bytes| files::write(path, &bytes));
        self.note(written)
    }

    /// Writes a text to standard output.
    pub(crate) fn print(&mut self, text: &str) -> bool {
        let printed = files::print(text);
        self.note(printed)
    }

    fn note(&mut self, done: Result<(), Failure>) -> bool {
        let Err(failure) = done else {
            return true;
        };
        match &self.first {
            None => self.first = Some(failure),
            Some(_) => files::say(&failure.message),
        }
        false
    }

    /// The exit code of what went wrong so far, if anything did.
    pub(crate) fn code(&self) -> Option<u8> {
        self.first.as_ref().map(|failure| failure.code)
    }

    /// The first that went wrong, if anything did.
    pub(crate) fn done(self) -> Result<(), Failure> {
        self.first.map_or(Ok(()), Err)
    }
}
