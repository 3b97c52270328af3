//! The README's commands, run as a newcomer would type them.

use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::{command, root};

/// A block of commands that is run begins with this; other blocks are for reading.
const FENCE: &str = "```sh";

/// Commands that would start this very program again.
const OURSELVES: &str = "cargo xtask";

/// Runs every command of the README's `sh` blocks, in order. A command may name the exit code it is expected to have in a
/// comment behind it: `# exits 2`.
pub(crate) fn run() -> Result<()> {
    let text = std::fs::read_to_string(root().join("README.md"))?;
    let commands = commands(&text);
    if commands.is_empty() {
        bail!("the README has no command to run");
    }
    for (line, code) in commands {
        println!("-- {line}");
        let began = Instant::now();
        let status = command("sh")
            .args(["-c", &line])
            .status()
            .with_context(|| line.clone())?;
        println!("-- {status}, {} s", began.elapsed().as_secs());
        if status.code() != Some(code) {
            bail!("`{line}` ended with {status}, not with exit code {code}");
        }
    }
    Ok(())
}

/// The commands of the `sh` blocks with the exit code each should have.
fn commands(text: &str) -> Vec<(String, i32)> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("```") {
            inside = !inside && line.trim_end() == FENCE;
        } else if inside {
            let (command, comment) = line.split_once(" #").unwrap_or((line, ""));
            let code = comment
                .trim()
                .strip_prefix("exits ")
                .and_then(|n| n.trim().parse().ok());
            let command = command.trim();
            if !command.is_empty() && !command.starts_with(OURSELVES) && !command.starts_with('#') {
                found.push((command.to_string(), code.unwrap_or(0)));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::commands;

    #[test]
    fn only_sh_blocks_are_run() {
        let text = "```sh\necho a   # a comment\ncargo xtask test\nfalse # exits 1\n```\n```toml\nx = 1\n```\n";
        assert_eq!(
            commands(text),
            [("echo a".to_string(), 0), ("false".to_string(), 1)]
        );
    }
}
