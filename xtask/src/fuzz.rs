//! A minute of fuzzing, shared by all targets.

use anyhow::{Result, bail};

use crate::process::{all, command, output, root, sh};

/// How long all targets together are fuzzed.
const SECONDS: u64 = 60;

/// Builds every target and fuzzes each for its share of a minute, from its seeds.
pub(crate) fn run() -> Result<()> {
    let list = output(command("cargo").args(["+nightly", "fuzz", "list"]))?;
    let targets: Vec<&str> = list.lines().collect();
    if targets.is_empty() {
        bail!("no fuzz target in {}", root().join("fuzz").display());
    }
    let seconds = (SECONDS / targets.len() as u64).max(1);
    all(targets.into_iter().map(|target| fuzz(target, seconds)))
}

fn fuzz(target: &str, seconds: u64) -> Result<()> {
    let corpus = format!("fuzz/corpus/{target}");
    std::fs::create_dir_all(root().join(&corpus))?;
    let seeds = format!("fuzz/seeds/{target}");
    let limit = format!("-max_total_time={seconds}");
    let mut fuzz = command("cargo");
    // All that is fuzzed is safe code: an address sanitizer would find nothing and cost minutes to build.
    fuzz.args([
        "+nightly",
        "fuzz",
        "run",
        "--sanitizer=none",
        target,
        &corpus,
    ]);
    if root().join(&seeds).is_dir() {
        fuzz.arg(&seeds);
    }
    sh(fuzz.args(["--", &limit, "-verbosity=0"]))
}
