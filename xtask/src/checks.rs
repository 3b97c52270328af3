//! The checks that are one command each.

use std::process::Command;

use anyhow::Result;

use crate::cargo_test;
use crate::process::{cargo, sh, target_dir};

pub(crate) fn format() -> Result<()> {
    sh(cargo().args(["fmt", "--all", "--check"]))
}

pub(crate) fn clippy() -> Result<()> {
    let every = ["clippy", "--workspace", "--all-targets"];
    sh(cargo().args(every).args(["--", "--deny", "warnings"]))
}

const TESTS: [&str; 5] = ["--workspace", "--lib", "--bins", "--tests", "--examples"];

/// What the tests are built from; what came of each is told by them.
pub(crate) fn build_tests() -> Result<()> {
    sh(cargo().args(["test", "--no-run"]).args(TESTS))
}

pub(crate) fn tests() -> Result<()> {
    cargo_test::run(&TESTS)
}

pub(crate) fn doc_tests() -> Result<()> {
    cargo_test::run(&["--workspace", "--doc"])
}

/// The V.22bis mode against a modem that is not ours.
pub(crate) fn peer() -> Result<()> {
    // Of one package cargo would choose other features of what it depends on, and build all of that once more.
    let features = "laxity-devices/spandsp,laxity-lab/v22bis";
    let package = ["--workspace", "--features", features];
    let tests = ["--test", "v22bis", "--test", "modem", "--test", "scenarios"];
    cargo_test::run(&[&package[..], &tests].concat())
}

pub(crate) fn docs() -> Result<()> {
    let mut command = cargo();
    // The command's own pages would take the place of the library's: both are called laxity.
    command.args(["doc", "--workspace", "--no-deps", "--exclude", "laxity-cli"]);
    sh(command.env("RUSTDOCFLAGS", "--deny warnings"))
}

pub(crate) fn loom() -> Result<()> {
    cargo_test::run_as(loom_cargo(), &LOOM)
}

/// Builds what it runs.
pub(crate) fn loom_build() -> Command {
    let mut build = loom_cargo();
    build.args(["test", "--no-run"]).args(LOOM);
    build
}

const LOOM: [&str; 5] = ["--package", "laxity-model", "--test", "loom", "--release"];

fn loom_cargo() -> Command {
    let mut cargo = cargo();
    cargo.env("RUSTFLAGS", "--cfg loom");
    cargo.env("CARGO_TARGET_DIR", target_dir().join("loom"));
    cargo
}
