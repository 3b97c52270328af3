//! Same seed, same bytes: the twin's output from one thread and two, and from builds for two CPU levels.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{cargo, command, sh, target_dir};

/// Compares everything that the twin writes of the main scenario, in three ways of running it.
pub(crate) fn run() -> Result<()> {
    let plain = built(plain_build(), &target_dir())?;
    let one = outputs(&plain, 1, "one-thread")?;
    let two = outputs(&plain, 2, "two-threads")?;
    same(&one, &two, "one and two threads")?;
    if !runs_here("avx2") {
        println!(
            "   this processor has no AVX2: the second CPU level cannot run here, only be built"
        );
    }
    let wide = built(wide_build(), &target_dir().join("x86-64-v3"))?;
    if runs_here("avx2") {
        same(
            &one,
            &outputs(&wide, 2, "x86-64-v3")?,
            "builds for x86-64 and x86-64-v3",
        )?;
    }
    Ok(())
}

fn runs_here(flag: &str) -> bool {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    info.lines()
        .any(|line| line.starts_with("flags") && line.split_whitespace().any(|f| f == flag))
}

/// What runs, for any processor.
pub(crate) fn plain_build() -> Command {
    build(&target_dir())
}

/// The same for processors with AVX2. It computes the same without debug information and optimisation at link time, and is built in less time.
pub(crate) fn wide_build() -> Command {
    let mut wide = build(&target_dir().join("x86-64-v3"));
    wide.env("RUSTFLAGS", "-C target-cpu=x86-64-v3");
    wide.env("CARGO_PROFILE_RELEASE_DEBUG", "0");
    wide.env("CARGO_PROFILE_RELEASE_LTO", "off");
    wide
}

fn build(target: &Path) -> Command {
    let mut build = cargo();
    build
        .args(["build", "--release", "--package", "laxity-cli"])
        .env("CARGO_TARGET_DIR", target);
    build
}

/// Where the program is that this builds.
fn built(mut build: Command, target: &Path) -> Result<PathBuf> {
    sh(&mut build)?;
    Ok(target.join("release/laxity"))
}

fn outputs(program: &Path, threads: usize, name: &str) -> Result<Vec<(String, Vec<u8>)>> {
    let dir = target_dir().join("twin-check").join(name);
    std::fs::create_dir_all(&dir)?;
    let program = program
        .to_str()
        .context("the build directory's name is not UTF-8")?;
    let mut run = command(program);
    run.args([
        "run",
        "scenarios/soft-modem.toml",
        "--on",
        "twin",
        "--quiet",
    ]);
    run.arg(format!("--threads={threads}"));
    let files = ["json", "html", "trace"];
    for file in files {
        run.arg(format!("--{file}={}", dir.join(file).display()));
    }
    sh(&mut run)?;
    let read = |file: &str| Ok((file.to_string(), std::fs::read(dir.join(file))?));
    files.into_iter().map(read).collect()
}

fn same(left: &[(String, Vec<u8>)], right: &[(String, Vec<u8>)], what: &str) -> Result<()> {
    for ((file, left), (_, right)) in left.iter().zip(right) {
        if left != right {
            bail!("{what}: the {file} differs");
        }
        println!("   {what}: the same {file}, {} bytes", left.len());
    }
    Ok(())
}
