//! What cargo knows of the workspace.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process::{cargo, output};

/// All packages, ours and others', as `cargo metadata` tells them.
///
/// # Errors
///
/// cargo fails, or the lock file is not up to date.
pub(crate) fn metadata() -> Result<Value> {
    let text = output(cargo().args(["metadata", "--format-version", "1", "--locked"]))?;
    serde_json::from_str(&text).context("cargo metadata is not JSON")
}

/// The packages one by one.
pub(crate) fn packages(metadata: &Value) -> impl Iterator<Item = &Value> + Clone {
    metadata["packages"].as_array().into_iter().flatten()
}

/// A field that is a string; empty if it is absent.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}
