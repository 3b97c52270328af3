//! `cargo test` to its end, and what came of it by name.

use std::collections::BTreeMap;
use std::iter::once;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::process::{Tail, cargo, watch};

/// What takes longer than this is named with its time.
const LONG: Duration = Duration::from_secs(4);

/// Runs tests, goes on after failures, and names those that failed; those that were skipped are printed with their reasons.
///
/// # Errors
///
/// Tests failed, or could not be built.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    run_as(cargo(), arguments)
}

/// The same with a cargo that has an environment of its own.
///
/// # Errors
///
/// Tests failed, or could not be built.
pub(crate) fn run_as(mut cargo: Command, arguments: &[&str]) -> Result<()> {
    cargo.args(["test", "--no-fail-fast"]).args(arguments);
    cargo.args(["--", "--show-output"]);
    let (mut reader, mut tail) = (Reader::default(), Tail::default());
    let mut begins = vec![Instant::now()];
    let status = watch(&mut cargo, |line| {
        tail.push(line);
        if let Some(shown) = reader.read(line) {
            println!("{shown}");
        }
        if reader.binaries.len() == begins.len() {
            begins.push(Instant::now());
        }
    })?;
    begins.push(Instant::now());
    let names = once("building").chain(reader.binaries.iter().map(String::as_str));
    for (name, begin_and_end) in names.zip(begins.windows(2)) {
        let took = begin_and_end[1] - begin_and_end[0];
        if took > LONG {
            println!("   {:>4} s  {name}", took.as_secs());
        }
    }
    for (reason, tests) in &reader.skipped {
        println!("   skipped, because {reason}: {}", tests.join(", "));
    }
    if status.success() {
        return Ok(());
    }
    let failed = reader.failed.iter();
    let failed: String = failed
        .map(|test| format!("\n  {}: {}{}", test.binary, test.name, test.said))
        .collect();
    bail!("{cargo:?} ended with {status}{failed}\n  its last lines:{tail}")
}

/// What a test prints when it could not do what it is for.
const SKIPPED: &str = "skipped: ";

/// A test that failed.
struct Failed {
    binary: String,
    name: String,
    /// The end of what it printed.
    said: Tail,
}

/// What a test binary lists after its tests, one test after the other: what those that passed printed, or those that failed.
#[derive(Default, PartialEq, Eq)]
enum Listing {
    #[default]
    Nothing,
    Successes,
    Failures,
}

/// Reads what cargo and test binaries print, one after the other.
#[derive(Default)]
struct Reader {
    /// Those that were begun.
    binaries: Vec<String>,
    listing: Listing,
    /// The test whose output is being listed.
    test: String,
    failed: Vec<Failed>,
    /// Tests by the reason that they gave.
    skipped: BTreeMap<String, Vec<String>>,
}

impl Reader {
    /// Takes a line in, and returns what of it people should see.
    fn read<'a>(&mut self, line: &'a str) -> Option<&'a str> {
        if let Some(binary) = begun(line) {
            self.binaries.push(binary.to_string());
        } else if let Some(test) = line.strip_prefix("test ") {
            if let Some(name) = test.strip_suffix(" ... FAILED") {
                self.failed.push(Failed {
                    binary: self.binaries.last().cloned().unwrap_or_default(),
                    name: name.to_string(),
                    said: Tail::default(),
                });
            }
            if test.starts_with("result: ") {
                self.listing = Listing::Nothing;
            }
        } else if line == "successes:" {
            self.listing = Listing::Successes;
        } else if line == "failures:" {
            self.listing = Listing::Failures;
            self.test.clear();
        } else if let Some(test) = line.strip_prefix("---- ") {
            self.test = test.split(' ').next().unwrap_or(test).to_string();
        } else if let Some(reason) = line.strip_prefix(SKIPPED) {
            let tests = self.skipped.entry(reason.to_string()).or_default();
            tests.push(self.test.clone());
        } else if self.listing == Listing::Failures {
            let listed = self.failed.iter_mut().rev();
            if let Some(failed) = listed.into_iter().find(|failed| failed.name == self.test) {
                failed.said.push(line);
            }
        }
        (self.listing != Listing::Successes).then_some(line)
    }
}

/// The test binary, or the crate with tests in its documentation, that cargo says it begins.
fn begun(line: &str) -> Option<&str> {
    let line = line.trim_start();
    if let Some(documented) = line.strip_prefix("Doc-tests ") {
        return Some(documented);
    }
    let path = line.strip_prefix("Running ")?.strip_suffix(')')?;
    let (_, file) = path.rsplit_once('/')?;
    Some(file.rsplit_once('-').map_or(file, |(name, _)| name))
}

#[cfg(test)]
mod tests {
    use super::{Failed, Reader};

    #[test]
    fn failures_and_skips_are_named_and_what_passed_tests_print_is_not_shown() {
        let printed = "     Running tests/x.rs (target/debug/deps/x-0f)\nrunning 3 tests\ntest a ... ok\ntest b::c ... FAILED\ntest d ... ok\n\n\
                       successes:\n\n---- d stdout ----\nskipped: no right\n\n\nsuccesses:\n    a\n    d\n\nfailures:\n\n---- b::c stdout ----\n\
                       it broke\n\nfailures:\n    b::c\n\ntest result: FAILED. 2 passed; 1 failed\nerror: test failed";
        let mut reader = Reader::default();
        let shown: Vec<&str> = printed
            .lines()
            .filter_map(|line| reader.read(line))
            .collect();
        let [failed] = &reader.failed[..] else {
            panic!("one failed, not {}", reader.failed.len());
        };
        let Failed { binary, name, said } = failed;
        assert_eq!((&binary[..], &name[..]), ("x", "b::c"));
        assert_eq!(said.to_string(), "\n    | it broke\n    | ");
        assert_eq!(reader.skipped["no right"], ["d"]);
        assert!(shown.contains(&"it broke") && !shown.contains(&"skipped: no right"));
        assert!(shown.contains(&"test result: FAILED. 2 passed; 1 failed"));
    }
}
