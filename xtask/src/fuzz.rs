//! A minute of fuzzing, shared by all targets.

use std::num::NonZero;
use std::process::Command;
use std::thread;

use anyhow::{Result, bail};

use crate::process::{all, command, output, root, sh};

/// How long all targets together are fuzzed.
const SECONDS: u64 = 60;

/// How targets are built. All that is fuzzed is safe code: an address sanitizer would find nothing and cost minutes to build. And a crate that
/// is built in one piece leaves all processors but one idle.
const BUILT: [&str; 2] = ["--sanitizer=none", "--codegen-units=4"];

/// Builds every target and fuzzes each for its share of a minute, from its seeds, on every processor one.
pub(crate) fn run() -> Result<()> {
    let list = output(&mut cargo_fuzz("list"))?;
    let targets: Vec<&str> = list.lines().collect();
    if targets.is_empty() {
        bail!("no fuzz target in {}", root().join("fuzz").display());
    }
    sh(&mut build())?;
    let seconds = (SECONDS / targets.len() as u64).max(1);
    let at_once = thread::available_parallelism().map_or(1, NonZero::get);
    let together = targets.chunks(at_once).map(|targets| {
        thread::scope(|scope| {
            let start = |target| scope.spawn(move || fuzz(target, seconds));
            let started: Vec<_> = targets.iter().copied().map(start).collect();
            let ended = started.into_iter().map(thread::ScopedJoinHandle::join);
            all(ended.map(|ended| ended.expect("fuzzing does not panic")))
        })
    });
    all(together)
}

/// Builds every target.
pub(crate) fn build() -> Command {
    let mut build = cargo_fuzz("build");
    build.args(BUILT);
    build
}

fn cargo_fuzz(subcommand: &str) -> Command {
    let mut cargo = command("cargo");
    cargo.args(["+nightly", "fuzz", subcommand]);
    cargo
}

fn fuzz(target: &str, seconds: u64) -> Result<()> {
    let corpus = format!("fuzz/corpus/{target}");
    std::fs::create_dir_all(root().join(&corpus))?;
    let seeds = format!("fuzz/seeds/{target}");
    let limit = format!("-max_total_time={seconds}");
    let mut fuzz = cargo_fuzz("run");
    fuzz.args(BUILT).args([target, &corpus]);
    if root().join(&seeds).is_dir() {
        fuzz.arg(&seeds);
    }
    sh(fuzz.args(["--", &limit, "-verbosity=0"]))
}
