//! Rules that no compiler knows: how long a file and a function may be, and what may not be left in code.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

use crate::code::Code;
use crate::process::{all, root};
use crate::ratchet::Ratchet;
use crate::source::Tree;

/// The longest file that is still read as one.
const FILE_LINES: usize = 500;

/// Where the most code lines of a function are written, for clippy too.
const CLIPPY: &str = "clippy.toml";
const FUNCTION_LINES: &str = "too-many-lines-threshold = ";

/// Rules that have exceptions.
pub(crate) const FILE: &str = "file";
pub(crate) const FUNCTION: &str = "function";

/// Fails on a file or function that is too long, and on code that says of itself that it is not finished.
pub(crate) fn run() -> Result<()> {
    let tree = Tree::here()?;
    all([
        Ratchet::load(FILE)?.check(&long_files(&tree)),
        Ratchet::load(FUNCTION)?.check(&long_functions(&tree)?),
        unfinished(&tree),
    ])
}

/// Files that are too long, with their lines.
pub(crate) fn long_files(tree: &Tree) -> BTreeMap<String, usize> {
    let files = tree.files.iter();
    let lines = files.map(|(path, text)| (path.clone(), text.lines().count()));
    lines.filter(|(_, lines)| *lines > FILE_LINES).collect()
}

/// Functions that are too long, with their lines. Of two of a name in one file the longer one counts.
///
/// # Errors
///
/// A file is not Rust, or clippy's settings have no such length.
pub(crate) fn long_functions(tree: &Tree) -> Result<BTreeMap<String, usize>> {
    let most = function_lines()?;
    let mut found = BTreeMap::new();
    for (path, text) in &tree.files {
        let code = Code::parse(text).with_context(|| path.clone())?;
        for function in code.functions() {
            if function.lines > most {
                let longest = found
                    .entry(format!("{path} {}", function.name))
                    .or_insert(0);
                *longest = function.lines.max(*longest);
            }
        }
    }
    Ok(found)
}

fn function_lines() -> Result<usize> {
    let text = std::fs::read_to_string(root().join(CLIPPY))?;
    let lines = text
        .lines()
        .find_map(|line| line.strip_prefix(FUNCTION_LINES));
    let lines = lines.with_context(|| format!("{CLIPPY} has no {FUNCTION_LINES}"))?;
    Ok(lines.trim().parse()?)
}

fn unfinished(tree: &Tree) -> Result<()> {
    // Put together here, so that this file does not find itself.
    let words = ["todo", "unimplemented", "dbg"].map(|name| format!("{name}!("));
    let ignored = format!("#[{}", "ignore");
    let mut wrong = Vec::new();
    for (path, text) in &tree.files {
        for (number, line) in (1..).zip(text.lines()) {
            if words.iter().any(|word| line.contains(word)) || line.contains(&ignored) {
                wrong.push(format!("{path}:{number}: {}", line.trim()));
            }
        }
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n  "));
    }
    Ok(())
}
