//! Commands, and where they run.

use std::collections::VecDeque;
use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};

/// The properties that tests check draw their cases from this seed, so that a run of the checks cannot fail by chance.
const PROPERTY_SEED: &str = "1";

/// Where one of these is set, somebody asks for other cases or more of them.
const OTHER_CASES: [&str; 3] = ["PROPTEST_RNG_SEED", "PROPTEST_CASES", "LAXITY_CASES"];

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    // Cargo says where it runs us; where we were built may be another checkout with the same target directory.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR");
    let manifest =
        manifest.map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest
        .parent()
        .map_or_else(|| manifest.clone(), Path::to_path_buf)
}

/// Where builds go: what cargo was told, or `target` in the workspace.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Whether a check that is skipped counts as failed.
pub(crate) fn nothing_may_be_skipped() -> bool {
    std::env::var("LAXITY_REQUIRE_LIVE").is_ok_and(|value| value == "1")
}

/// The cargo that runs us, in the root of the workspace.
pub(crate) fn cargo() -> Command {
    let mut cargo = command(&std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    if OTHER_CASES
        .iter()
        .all(|name| std::env::var_os(name).is_none())
    {
        cargo.env("PROPTEST_RNG_SEED", PROPERTY_SEED);
    }
    cargo
}

/// A program, in the root of the workspace.
pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// Runs a command to its end and shows what it prints.
///
/// # Errors
///
/// It cannot be started, or fails; the error tells which command it was, and its last lines.
pub(crate) fn sh(command: &mut Command) -> Result<()> {
    let mut tail = Tail::default();
    let status = watch(command, |line| {
        println!("{line}");
        tail.push(line);
    })?;
    if !status.success() {
        bail!("{command:?} ended with {status}{tail}");
    }
    Ok(())
}

/// Runs a command to its end and shows every line that it prints, on whichever stream, to `see`.
///
/// # Errors
///
/// It cannot be started.
pub(crate) fn watch(command: &mut Command, mut see: impl FnMut(&str)) -> Result<ExitStatus> {
    let (reader, writer) = std::io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let child = command.spawn();
    // As long as the command has its ends of the pipe, no end of what is printed is seen.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = child.with_context(|| format!("cannot start {command:?}"))?;
    for line in BufReader::new(reader).split(b'\n') {
        see(&String::from_utf8_lossy(&line?));
    }
    Ok(child.wait()?)
}

/// The last lines of what was printed. They are told again where something failed: of a long record often only the end is kept.
#[derive(Default)]
pub(crate) struct Tail(VecDeque<String>);

impl Tail {
    const LINES: usize = 20;

    pub(crate) fn push(&mut self, line: &str) {
        if self.0.len() == Self::LINES {
            self.0.pop_front();
        }
        self.0.push_back(line.to_string());
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl fmt::Display for Tail {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|line| write!(out, "\n    | {line}"))
    }
}

/// Runs a command to its end and returns what it printed.
///
/// # Errors
///
/// It cannot be started, fails, or prints what is not UTF-8.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!(
            "{command:?} ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Whether a command can be started and succeeds; what it prints is not shown.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Fails where something was found, with all of it.
///
/// # Errors
///
/// Something was found.
pub(crate) fn none(found: &[String]) -> Result<()> {
    if found.is_empty() {
        return Ok(());
    }
    bail!("{}", found.join("\n  "))
}

/// Goes on after each failure, and fails at the end with all of them.
///
/// # Errors
///
/// One of the results is an error.
pub(crate) fn all(results: impl IntoIterator<Item = Result<()>>) -> Result<()> {
    let failures: Vec<String> = results
        .into_iter()
        .filter_map(Result::err)
        .map(|error| format!("{error:#}"))
        .collect();
    if failures.is_empty() {
        return Ok(());
    }
    bail!(
        "{} of its parts\n  {}",
        failures.len(),
        failures.join("\n  ")
    )
}
