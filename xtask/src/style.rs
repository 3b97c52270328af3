//! Rules that no compiler knows: how long a file and a function may be, and what may not be left in code.

use anyhow::{Context, Result};

use crate::code::Code;
use crate::mutants;
use crate::process::{all, none, root};
use crate::source::Tree;

/// The longest file that is still read as one.
const FILE_LINES: usize = 500;

/// Where the most code lines of a function are written, for clippy too.
const CLIPPY: &str = "clippy.toml";
const FUNCTION_LINES: &str = "too-many-lines-threshold = ";

/// Fails on a file or function that is too long, on code that says of itself that it is not finished, and on mutants of code that has moved on.
pub(crate) fn run() -> Result<()> {
    let tree = Tree::here()?;
    all([
        none(&long_files(&tree)),
        none(&long_functions(&tree)?),
        none(&unfinished(&tree)),
        none(&mutants::stale()?),
    ])
}

fn long_files(tree: &Tree) -> Vec<String> {
    let files = tree.files.iter();
    let lines = files.map(|(path, text)| (path, text.lines().count()));
    let long = lines.filter(|(_, lines)| *lines > FILE_LINES);
    long.map(|(path, lines)| format!("file {path}: {lines} lines"))
        .collect()
}

/// Functions that are too long.
///
/// # Errors
///
/// A file is not Rust, or clippy's settings have no such length.
fn long_functions(tree: &Tree) -> Result<Vec<String>> {
    let most = function_lines()?;
    let mut found = Vec::new();
    for (path, text) in &tree.files {
        let code = Code::parse(text).with_context(|| path.clone())?;
        let long = code.functions().into_iter();
        let long = long.filter(|function| function.lines > most);
        found.extend(long.map(|f| format!("function {path} {}: {} lines", f.name, f.lines)));
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

fn unfinished(tree: &Tree) -> Vec<String> {
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
    wrong
}
