//! What the pure crate may not use.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use crate::process::{cargo, output, root, sh};

/// Crates that the pure crate may use when it is built for users.
const PURE_DEPENDENCIES: &[&str] = &["derive_more", "hashbrown", "laxity-model", "thiserror"];

/// Builds the pure crate alone, and fails if it or anything it is built with could reach std.
pub(crate) fn run() -> Result<()> {
    sh(cargo().args(["check", "--package", "laxity-model", "--lib"]))?;
    let tree = output(cargo().args([
        "tree",
        "--package",
        "laxity-model",
        "--edges",
        "normal,no-proc-macro",
        "--prefix",
        "none",
    ]))?;
    let used: BTreeSet<&str> = tree
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let strange: Vec<_> = used
        .iter()
        .filter(|name| !PURE_DEPENDENCIES.contains(name))
        .collect();
    if !strange.is_empty() {
        bail!("the pure crate depends on {strange:?}");
    }
    let features = output(cargo().args([
        "tree",
        "--package",
        "laxity-model",
        "--edges",
        "features,normal",
    ]))?;
    if features.contains("feature \"std\"") {
        bail!("the pure crate turns on a `std` feature:\n{features}");
    }
    let source = std::fs::read_to_string(root().join("crates/laxity-model/src/lib.rs"))?;
    for needed in [
        "#![no_std]",
        "#![forbid(unsafe_code)]",
        "#![deny(clippy::float_arithmetic)]",
    ] {
        if !source.contains(needed) {
            bail!("laxity-model must say {needed}");
        }
    }
    Ok(())
}
