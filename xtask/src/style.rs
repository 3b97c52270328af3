//! Rules that no compiler knows: how long a file may be, and what may not be left in it.

use anyhow::{Result, bail};

use crate::{command, output, root};

/// The longest file that is still read as one.
const LINES: usize = 1_000;

/// Fails on a source file that is too long, or on code that says of itself that it is not finished.
pub(crate) fn run() -> Result<()> {
    let files = output(command("git").args([
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "*.rs",
    ]))?;
    // Put together here, so that this file does not find itself.
    let unfinished = ["todo", "unimplemented", "dbg"].map(|name| format!("{name}!("));
    let ignored = format!("#[{}", "ignore");
    let mut wrong = Vec::new();
    for file in files.lines() {
        let Ok(text) = std::fs::read_to_string(root().join(file)) else {
            continue;
        };
        let lines = text.lines().count();
        if lines > LINES {
            wrong.push(format!("{file}: {lines} lines, more than {LINES}"));
        }
        for (number, line) in text.lines().enumerate() {
            if unfinished.iter().any(|word| line.contains(word)) || line.contains(&ignored) {
                wrong.push(format!("{file}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    if !wrong.is_empty() {
        bail!("\n  {}", wrong.join("\n  "));
    }
    Ok(())
}
