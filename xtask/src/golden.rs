//! The numbers of the soft-modem study in the twin, against those that are committed.

use anyhow::{Result, bail};

use crate::process::{cargo, sh};

/// `cargo xtask golden [--full] [--accept]`. Without `--full`: the figures, and the tables with one attempt a row.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    let mut scale = "reduced";
    let mut accept = false;
    for option in options {
        match *option {
            "--full" => scale = "full",
            "--accept" => accept = true,
            other => bail!(
                "golden knows --full (ten attempts a row) and --accept (write the numbers anew), not {other}"
            ),
        }
    }
    check(scale, accept)
}

fn check(scale: &str, accept: bool) -> Result<()> {
    let mut test = cargo();
    test.args([
        "test",
        "--release",
        "--package",
        "laxity-studies",
        "--test",
        "modem_study",
        "the_numbers_are_those_that_are_committed",
    ]);
    test.env("LAXITY_GOLDEN", scale);
    if accept {
        test.env("LAXITY_ACCEPT", "1");
    }
    sh(&mut test)
}
