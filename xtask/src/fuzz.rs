//! A minute of fuzzing, shared by all targets.

use anyhow::{Result, bail};

use crate::{command, output, root, sh};

/// How long all targets together are fuzzed.
const SECONDS: u64 = 60;

/// Builds every target and fuzzes each for its share of a minute. Needs a nightly toolchain and cargo-fuzz.
pub(crate) fn run() -> Result<()> {
    let mut fuzz = command("cargo");
    let list = output(fuzz.args(["+nightly", "fuzz", "list"]))?;
    let targets: Vec<&str> = list.lines().collect();
    if targets.is_empty() {
        bail!("no fuzz target in {}", root().join("fuzz").display());
    }
    let seconds = (SECONDS / targets.len() as u64).max(1);
    for target in targets {
        let limit = format!("-max_total_time={seconds}");
        sh(command("cargo").args([
            "+nightly",
            "fuzz",
            "run",
            target,
            "--",
            &limit,
            "-verbosity=0",
        ]))?;
    }
    Ok(())
}
