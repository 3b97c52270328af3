//! The commands of the README and of the pages in `docs/`, run as a newcomer would type them.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, anyhow, bail};

use crate::process::{Tail, all, command, nothing_may_be_skipped, root, watch};

/// A block of commands that is run begins with this; other blocks are for reading.
const FENCE: &str = "```sh";

/// Commands that would start this very program again.
const OURSELVES: &str = "cargo xtask";

/// What a page installs goes here, and not among the user's own programs. It is what other commands have built.
const INSTALLED: &str = "target/installed";

/// Runs every command of the `sh` blocks, page by page, in order, also after one that failed. A comment behind a command may name the exit
/// codes it may have, such as `# exits 0 or 5`: what a live run says of a noisy machine is not an error of the page. What it ends with where it may not
/// run, as in `# exits 0 or 5; 4 without the rights`, says that it was skipped, and is an error where live runs are required.
pub(crate) fn run() -> Result<()> {
    let docs = pages(&root().join("docs"))?;
    let made = made(&docs)?;
    let mut results = Vec::new();
    for page in [root().join("README.md")].iter().chain(&docs) {
        let text = std::fs::read_to_string(page)?;
        let commands = commands(&text);
        if commands.is_empty() {
            results.push(Err(anyhow!("{} has no command to run", page.display())));
        }
        results.extend(commands.iter().map(run_line));
    }
    for (path, before) in made {
        if std::fs::read(&path)? != before {
            let path = path.display();
            results.push(Err(anyhow!(
                "{path} was not what its page's command makes: it is now; look at it, and commit it"
            )));
        }
    }
    all(results)
}

/// The pages, and the drawings beside them, as they are: those that a page's command makes again are to come out the same.
fn made(docs: &[PathBuf]) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let folder = docs.first().and_then(|page| page.parent());
    let pictures = folder.map_or(Ok(Vec::new()), |folder| files(folder, "svg"))?;
    let read = |path: PathBuf| Ok((path.clone(), std::fs::read(path)?));
    pictures
        .into_iter()
        .chain(docs.to_vec())
        .map(read)
        .collect()
}

/// The pages of a folder, by name.
fn pages(folder: &Path) -> Result<Vec<PathBuf>> {
    files(folder, "md")
}

/// The files of a folder with this extension, by name.
fn files(folder: &Path, wanted: &str) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    let paths = entries.into_iter().map(|entry| entry.path());
    let mut files: Vec<_> = paths
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == wanted)
        })
        .collect();
    files.sort();
    Ok(files)
}

/// What laxity ends with where the evidence does not tell.
const INCONCLUSIVE: i32 = 5;

/// A command of a page.
#[derive(PartialEq, Eq, Debug)]
struct Line {
    command: String,
    /// The exit codes that it may have.
    codes: Vec<i32>,
    /// And the one that it has where the rights to schedule are missing.
    without_rights: Option<i32>,
}

fn run_line(line: &Line) -> Result<()> {
    let Line {
        command: line,
        codes,
        without_rights,
    } = line;
    println!("-- {line}");
    let began = Instant::now();
    let mut tail = Tail::default();
    let mut shell = command("sh");
    shell
        .args(["-c", line])
        .env("CARGO_INSTALL_ROOT", root().join(INSTALLED));
    let status = watch(&mut shell, |line| {
        println!("{line}");
        tail.push(line);
    })?;
    println!("-- {status}, {} s", began.elapsed().as_secs());
    if status.code().is_some() && status.code() == *without_rights && !nothing_may_be_skipped() {
        println!("-- skipped, because the rights to schedule are missing here");
        return Ok(());
    }
    if !status.code().is_some_and(|code| codes.contains(&code)) {
        bail!("`{line}` ended with {status}, not with one of {codes:?}{tail}");
    }
    if status.code() == Some(INCONCLUSIVE) && !tells_why(tail.lines()) {
        bail!("`{line}` was inconclusive and does not say why{tail}");
    }
    Ok(())
}

/// Whether it is said why something is inconclusive: on the same line behind a colon, or on the next, indented.
fn tells_why<'a>(lines: impl Iterator<Item = &'a str>) -> bool {
    let mut lines = lines.peekable();
    while let Some(line) = lines.next() {
        let Some((_, rest)) = line.split_once("inconclusive") else {
            continue;
        };
        let cause = rest.split_once(": ").map_or("", |(_, cause)| cause);
        let next = lines.peek().copied().unwrap_or("");
        if !cause.trim().is_empty() || (next.starts_with("  ") && !next.trim().is_empty()) {
            return true;
        }
    }
    false
}

/// The commands of the `sh` blocks with the exit codes each may have.
fn commands(text: &str) -> Vec<Line> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("```") {
            inside = !inside && line.trim_end() == FENCE;
        } else if inside {
            let (command, comment) = line.split_once(" #").unwrap_or((line, ""));
            let command = command.trim();
            if !command.is_empty() && !command.starts_with(OURSELVES) && !command.starts_with('#') {
                found.push(described(command, comment));
            }
        }
    }
    found
}

fn described(command: &str, comment: &str) -> Line {
    let numbers = |text: &str| -> Vec<i32> {
        let words = text.split(|c: char| !c.is_ascii_digit());
        words.filter_map(|word| word.parse().ok()).collect()
    };
    let codes = comment.split_once("exits ").map_or("0", |(_, codes)| codes);
    let (codes, without) = codes.split_once(';').unwrap_or((codes, ""));
    let without = without.strip_suffix("without the rights");
    Line {
        command: command.to_string(),
        codes: numbers(codes),
        without_rights: without.and_then(|code| numbers(code).first().copied()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, commands, tells_why};

    #[test]
    fn what_is_inconclusive_needs_a_cause() {
        let why = |text: &str| tells_why(text.lines());
        assert!(why("laxity: inconclusive: the load of `modem`: too fast"));
        assert!(why(
            "verdict: inconclusive (exit code 5)\n  - reserved: halts\n"
        ));
        assert!(!why("verdict: inconclusive (exit code 5)\n\nReport: x\n"));
        assert!(!why("verdict: met\n  - more\n"));
    }

    #[test]
    fn only_sh_blocks_are_run() {
        let text = "```sh\necho a   # a comment\ncargo xtask test\nfalse # exits 0, 1 or 5\nfalse # so; exits 0 or 5; 4 without the rights\n```\n```toml\nx = 1\n```\n";
        let line = |command: &str, codes: &[i32], without_rights| Line {
            command: command.to_string(),
            codes: codes.to_vec(),
            without_rights,
        };
        let expected = [
            line("echo a", &[0], None),
            line("false", &[0, 1, 5], None),
            line("false", &[0, 5], Some(4)),
        ];
        assert_eq!(commands(text), expected);
    }
}
