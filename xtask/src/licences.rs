//! Under which licences our dependencies are.

use anyhow::{Result, bail};

use crate::metadata::{metadata, packages, text};

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

/// Fails on a dependency under a licence that is not in the list above.
pub(crate) fn run() -> Result<()> {
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
