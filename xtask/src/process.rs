//! Commands, and where they run.

use std::path::{Path, PathBuf};
use std::process::Command;

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

/// Runs a command to its end.
///
/// # Errors
///
/// It cannot be started, or fails; the error tells which command it was.
pub(crate) fn sh(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
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
    bail!("\n  {}", failures.join("\n  "))
}
