//! The shape of the workspace: who may depend on whom, under which licences, and what the pure crate may not use.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{cargo, output, root, sh};

/// What each crate may depend on among ours, tests included. Anything else is a change of the architecture.
const MAY_DEPEND_ON: &[(&str, &[&str])] = &[
    ("laxity-model", &[]),
    ("laxity-conformance", &["laxity-model"]),
    ("laxity-sim", &["laxity-model", "laxity-conformance"]),
    ("laxity-linux", &["laxity-model", "laxity-conformance"]),
    ("laxity-devices", &["laxity-model"]),
    ("laxity", &["laxity-model", "laxity-linux", "laxity-sim"]),
    (
        "laxity-lab",
        &[
            "laxity-model",
            "laxity-sim",
            "laxity-linux",
            "laxity-devices",
            "laxity",
        ],
    ),
    (
        "laxity-studies",
        &[
            "laxity-model",
            "laxity-sim",
            "laxity-linux",
            "laxity-devices",
            "laxity-lab",
        ],
    ),
    (
        "laxity-cli",
        &[
            "laxity-model",
            "laxity-linux",
            "laxity-lab",
            "laxity-studies",
        ],
    ),
    ("xtask", &[]),
];

/// Crates that the pure crate may use when it is built for users.
const PURE_DEPENDENCIES: &[&str] = &["laxity-model", "thiserror"];

/// Licences that a dependency may be under; an expression passes if one of its alternatives does.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

fn metadata() -> Result<Value> {
    let text = output(cargo().args(["metadata", "--format-version", "1", "--locked"]))?;
    serde_json::from_str(&text).context("cargo metadata is not JSON")
}

fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Fails on a dependency between our crates that the table above does not name.
pub(crate) fn direction() -> Result<()> {
    let metadata = metadata()?;
    let allowed: BTreeMap<_, _> = MAY_DEPEND_ON.iter().copied().collect();
    let ours: BTreeMap<&str, &Value> = packages(&metadata)
        .filter(|package| package["source"].is_null())
        .map(|package| (text(package, "name"), package))
        .collect();
    let mut wrong = Vec::new();
    for (name, package) in &ours {
        let allowed = allowed
            .get(name)
            .with_context(|| format!("{name} is not in the table of crates"))?;
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let dependency = text(dependency, "name");
            if ours.contains_key(dependency) && !allowed.contains(&dependency) {
                wrong.push(format!("{name} -> {dependency}"));
            }
        }
    }
    if !wrong.is_empty() {
        bail!(
            "dependencies against the architecture: {}",
            wrong.join(", ")
        );
    }
    Ok(())
}

/// Fails on a dependency under a licence that is not in the list above.
pub(crate) fn licences() -> Result<()> {
    let metadata = metadata()?;
    let wrong: Vec<String> = packages(&metadata)
        .filter(|package| !is_allowed(text(package, "license")))
        .map(|p| {
            format!(
                "{} {} ({})",
                text(p, "name"),
                text(p, "version"),
                text(p, "license")
            )
        })
        .collect();
    if !wrong.is_empty() {
        bail!("licences that are not allowed: {}", wrong.join(", "));
    }
    Ok(())
}

/// Whether an SPDX expression can be satisfied with the allowed licences. AND binds tighter than OR; the old `/` means OR.
fn is_allowed(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ").replace(['(', ')'], "");
    let satisfied = |terms: &str| {
        terms
            .split(" AND ")
            .all(|term| LICENCES.contains(&term.trim()))
    };
    // Without parentheses "(A OR B) AND C" reads as "A OR B AND C"; requiring C in every alternative errs on the safe side.
    let required: Vec<&str> = expression.split(" AND ").skip(1).map(last_term).collect();
    expression.split(" OR ").any(satisfied) && required.iter().all(|term| LICENCES.contains(term))
}

fn last_term(terms: &str) -> &str {
    terms.split(" OR ").next().unwrap_or(terms).trim()
}

/// Builds the pure crate alone, and fails if it or anything it is built with could reach std.
pub(crate) fn no_std() -> Result<()> {
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

#[cfg(test)]
mod tests {
    use super::is_allowed;

    #[test]
    fn licence_expressions() {
        assert!(is_allowed("MIT OR Apache-2.0"));
        assert!(is_allowed("MIT/Apache-2.0"));
        assert!(is_allowed("(MIT OR Apache-2.0) AND Unicode-3.0"));
        assert!(is_allowed("GPL-3.0 OR MIT"));
        assert!(!is_allowed("GPL-3.0"));
        assert!(!is_allowed("MIT AND GPL-3.0"));
        assert!(!is_allowed("(MIT OR Apache-2.0) AND GPL-3.0"));
        assert!(!is_allowed(""));
    }
}
