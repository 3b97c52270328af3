//! The commands of the README and of the pages in `docs/`, run as a newcomer would type them.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};

use crate::process::{all, command, root};

/// A block of commands that is run begins with this; other blocks are for reading.
const FENCE: &str = "```sh";

/// Commands that would start this very program again.
const OURSELVES: &str = "cargo xtask";

/// Runs every command of the `sh` blocks, page by page, in order, also after one that failed. A comment behind a command may name the exit
/// codes it may have, such as `# exits 0, 2 or 5`: what a live run says of a noisy machine is not an error of the page.
pub(crate) fn run() -> Result<()> {
    let docs = pages(&root().join("docs"))?;
    let pictures = pictures(&docs)?;
    let mut results = Vec::new();
    for page in [root().join("README.md")].iter().chain(&docs) {
        let text = std::fs::read_to_string(page)?;
        let commands = commands(&text);
        if commands.is_empty() {
            results.push(Err(anyhow!("{} has no command to run", page.display())));
        }
        results.extend(commands.iter().map(|(line, codes)| run_line(line, codes)));
    }
    for (path, before) in pictures {
        if std::fs::read(&path)? != before {
            let path = path.display();
            results.push(Err(anyhow!(
                "{path} was not what its page's command makes: it is now; look at it, and commit it"
            )));
        }
    }
    all(results)
}

/// The drawings beside the pages, as they are: those that a page's command makes again are to come out the same.
fn pictures(docs: &[PathBuf]) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let folder = docs.first().and_then(|page| page.parent());
    let files = folder.map_or(Ok(Vec::new()), |folder| files(folder, "svg"))?;
    let read = |path: PathBuf| Ok((path.clone(), std::fs::read(path)?));
    files.into_iter().map(read).collect()
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

fn run_line(line: &str, codes: &[i32]) -> Result<()> {
    println!("-- {line}");
    let began = Instant::now();
    let status = command("sh")
        .args(["-c", line])
        .status()
        .with_context(|| line.to_string())?;
    println!("-- {status}, {} s", began.elapsed().as_secs());
    if !status.code().is_some_and(|code| codes.contains(&code)) {
        bail!("`{line}` ended with {status}, not with one of {codes:?}");
    }
    Ok(())
}

/// The commands of the `sh` blocks with the exit codes each may have.
fn commands(text: &str) -> Vec<(String, Vec<i32>)> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("```") {
            inside = !inside && line.trim_end() == FENCE;
        } else if inside {
            let (command, comment) = line.split_once(" #").unwrap_or((line, ""));
            let command = command.trim();
            if !command.is_empty() && !command.starts_with(OURSELVES) && !command.starts_with('#') {
                found.push((command.to_string(), exit_codes(comment)));
            }
        }
    }
    found
}

fn exit_codes(comment: &str) -> Vec<i32> {
    let Some((_, codes)) = comment.split_once("exits ") else {
        return vec![0];
    };
    let words = codes.split(|c: char| !c.is_ascii_digit());
    words.filter_map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::commands;

    #[test]
    fn only_sh_blocks_are_run() {
        let text = "```sh\necho a   # a comment\ncargo xtask test\nfalse # exits 0, 1 or 5\n```\n```toml\nx = 1\n```\n";
        let expected = [
            ("echo a".to_string(), vec![0]),
            ("false".to_string(), vec![0, 1, 5]),
        ];
        assert_eq!(commands(text), expected);
    }
}
