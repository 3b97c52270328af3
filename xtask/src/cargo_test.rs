//! `cargo test` to its end, and what came of it by name.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::process::cargo;

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
    cargo.args(["--", "--show-output"]).stdout(Stdio::piped());
    let mut child = cargo
        .spawn()
        .with_context(|| format!("cannot start {cargo:?}"))?;
    let mut reader = Reader::default();
    let stdout = child.stdout.take().context("its output is not ours")?;
    for line in BufReader::new(stdout).split(b'\n') {
        if let Some(shown) = reader.read(&String::from_utf8_lossy(&line?)) {
            println!("{shown}");
        }
    }
    let status = child.wait()?;
    for (reason, tests) in &reader.skipped {
        println!("   skipped, because {reason}: {}", tests.join(", "));
    }
    match (status.success(), &reader.failed[..]) {
        (true, _) => Ok(()),
        (false, []) => bail!("{cargo:?} ended with {status}"),
        (false, failed) => bail!("tests failed: {}", failed.join(", ")),
    }
}

/// What a test prints when it could not do what it is for.
const SKIPPED: &str = "skipped: ";

/// Reads what test binaries print, one after the other.
#[derive(Default)]
struct Reader {
    /// What passed tests printed is being listed.
    in_successes: bool,
    /// The test whose output is being listed.
    test: String,
    failed: Vec<String>,
    /// Tests by the reason that they gave.
    skipped: BTreeMap<String, Vec<String>>,
}

impl Reader {
    /// Takes a line in, and returns what of it people should see.
    fn read<'a>(&mut self, line: &'a str) -> Option<&'a str> {
        if let Some(test) = line.strip_prefix("test ") {
            if let Some(name) = test.strip_suffix(" ... FAILED") {
                self.failed.push(name.to_string());
            }
            if test.starts_with("result: ") {
                self.in_successes = false;
            }
        } else if line == "successes:" {
            self.in_successes = true;
        } else if line == "failures:" {
            self.in_successes = false;
        } else if let Some(test) = line.strip_prefix("---- ") {
            self.test = test.split(' ').next().unwrap_or(test).to_string();
        } else if let Some(reason) = line.strip_prefix(SKIPPED) {
            let tests = self.skipped.entry(reason.to_string()).or_default();
            tests.push(self.test.clone());
        }
        (!self.in_successes).then_some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::Reader;

    #[test]
    fn failures_and_skips_are_named_and_what_passed_tests_print_is_not_shown() {
        let printed = "running 3 tests\ntest a ... ok\ntest b::c ... FAILED\ntest d ... ok\n\nsuccesses:\n\n---- d stdout ----\nskipped: no right\n\n\
                       \nsuccesses:\n    a\n    d\n\nfailures:\n\n---- b::c stdout ----\nit broke\n\n\ntest result: FAILED. 2 passed; 1 failed";
        let mut reader = Reader::default();
        let shown: Vec<&str> = printed
            .lines()
            .filter_map(|line| reader.read(line))
            .collect();
        assert_eq!(reader.failed, ["b::c"]);
        assert_eq!(reader.skipped["no right"], ["d"]);
        assert!(shown.contains(&"it broke") && !shown.contains(&"skipped: no right"));
        assert!(shown.contains(&"test result: FAILED. 2 passed; 1 failed"));
    }
}
