//! Mutants: patches that each break the product in one way, and the tests that must notice.
//!
//! `mutants/NAME.patch` begins with `# about: WORDS` and, for each host it applies to, `# kills HOST: ARGUMENTS`, where the arguments are those
//! of `cargo test` that name the package and the test binary, and last the exact name of the test.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::process::{cargo, command, output, root, sh, target_dir};

const FOLDER: &str = "mutants";

/// A test that has not ended after so long hangs, and so noticed. Building does not count.
const TIMEOUT: &str = "600";

/// What `timeout` exits with.
const TIMED_OUT: i32 = 124;

/// A patch and its tests.
#[derive(PartialEq, Eq, Debug)]
struct Mutant {
    name: String,
    about: String,
    kills: Vec<Kill>,
}

/// The test that must notice, in one host.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Kill {
    host: String,
    /// What of `cargo test` names the package and the binary.
    binary: Vec<String>,
    test: String,
}

/// What a test did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Passed,
    Failed,
    Hung,
}

/// `cargo xtask mutants [NAME...]`: all of them, or those that are named, on what is committed.
///
/// # Errors
///
/// A patch does not apply, a mutant survives, or a test fails without one.
pub(crate) fn run(names: &[&str]) -> Result<()> {
    let mutants = read(names)?;
    let tree = WorkTree::new()?;
    let mut wrong = Vec::new();
    for mutant in &mutants {
        if let Err(error) = tree.patch(mutant, &["--check"]) {
            wrong.push(format!("{}: {error:#}", mutant.name));
        }
    }
    if !wrong.is_empty() {
        bail!("patches that do not apply:\n  {}", wrong.join("\n  "));
    }
    let tests: BTreeSet<_> = mutants.iter().flat_map(|mutant| &mutant.kills).collect();
    for kill in tests {
        match tree.test(kill) {
            Ok(Outcome::Passed) => {}
            Ok(outcome) => wrong.push(format!("without a mutant: {}: {outcome:?}", kill.test)),
            Err(error) => wrong.push(format!("without a mutant: {}: {error:#}", kill.test)),
        }
    }
    println!("| mutant | host | killing test | result |\n|---|---|---|---|");
    for mutant in &mutants {
        tree.patch(mutant, &[])?;
        for kill in &mutant.kills {
            let name = &mutant.name;
            match tree.test(kill) {
                Ok(outcome) => {
                    println!("{}", row(mutant, kill, outcome));
                    if outcome == Outcome::Passed {
                        wrong.push(format!("{name} survives {} ({})", kill.test, kill.host));
                    }
                }
                Err(error) => wrong.push(format!("{name}: {error:#}")),
            }
        }
        tree.patch(mutant, &["--reverse"])?;
    }
    if !wrong.is_empty() {
        bail!("\n  {}", wrong.join("\n  "));
    }
    Ok(())
}

fn row(mutant: &Mutant, kill: &Kill, outcome: Outcome) -> String {
    let result = match outcome {
        Outcome::Passed => "**survives**",
        Outcome::Failed => "killed",
        Outcome::Hung => "killed: hangs",
    };
    format!(
        "| {} | {} | `{}` | {result} |",
        mutant.about, kill.host, kill.test
    )
}

/// The mutants whose code has moved on, so that they change nothing any more, or whose tests have.
pub(crate) fn stale() -> Result<Vec<String>> {
    let mut found = Vec::new();
    for mutant in read(&[])? {
        let patch = format!("{FOLDER}/{}.patch", mutant.name);
        let mut git = command("git");
        let applies = git.args(["apply", "--check", &patch]).stderr(Stdio::null());
        let applies = applies.status()?;
        if !applies.success() {
            found.push(format!("{patch} does not apply"));
        }
        let gone = mutant.kills.iter().filter(|kill| !kill.has_program());
        found.extend(gone.map(|kill| format!("{patch}: no program has {}", kill.test)));
    }
    Ok(found)
}

impl Kill {
    /// Whether the test's program is there; that of a crate's own tests always is.
    fn has_program(&self) -> bool {
        let named = |what: &[&str]| {
            let mut pairs = self.binary.windows(2);
            pairs.find_map(|pair| what.contains(&&*pair[0]).then(|| pair[1].clone()))
        };
        let (package, Some(test)) = (named(&["-p", "--package"]), named(&["--test"])) else {
            return true;
        };
        let tests = root()
            .join("crates")
            .join(package.unwrap_or_default())
            .join("tests");
        let mut places = [
            tests.join(format!("{test}.rs")),
            tests.join(test).join("main.rs"),
        ]
        .into_iter();
        places.any(|place| place.exists())
    }
}

/// The patches of these names, or all; by name.
fn read(names: &[&str]) -> Result<Vec<Mutant>> {
    let entries = std::fs::read_dir(root().join(FOLDER)).context(FOLDER)?;
    let paths: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    let mut mutants = Vec::new();
    for path in paths
        .iter()
        .filter(|path| path.extension().is_some_and(|e| e == "patch"))
    {
        let name = path.file_stem().and_then(|name| name.to_str());
        let name = name.with_context(|| format!("{} is no name", path.display()))?;
        if names.is_empty() || names.contains(&name) {
            mutants.push(parse(name, &std::fs::read_to_string(path)?)?);
        }
    }
    mutants.sort_by(|left, right| left.name.cmp(&right.name));
    match names
        .iter()
        .find(|name| mutants.iter().all(|mutant| mutant.name != **name))
    {
        Some(name) => bail!("there is no {FOLDER}/{name}.patch"),
        None if mutants.is_empty() => bail!("there is no patch in {FOLDER}"),
        None => Ok(mutants),
    }
}

fn parse(name: &str, patch: &str) -> Result<Mutant> {
    let head = || patch.lines().map_while(|line| line.strip_prefix("# "));
    let about = head().find_map(|line| line.strip_prefix("about: "));
    let mut kills = Vec::new();
    for line in head().filter_map(|line| line.strip_prefix("kills ")) {
        let (host, arguments) = line
            .split_once(": ")
            .with_context(|| format!("{name}: {line:?} is not HOST: ARGUMENTS"))?;
        let mut words: Vec<String> = arguments.split_whitespace().map(String::from).collect();
        let test = words.pop().filter(|test| !test.starts_with('-'));
        kills.push(Kill {
            host: host.into(),
            test: test.with_context(|| format!("{name}: {line:?} names no test"))?,
            binary: words,
        });
    }
    if kills.is_empty() {
        bail!("{name}: no line `# kills HOST: ARGUMENTS`");
    }
    Ok(Mutant {
        name: name.into(),
        about: about
            .with_context(|| format!("{name}: no line `# about: `"))?
            .into(),
        kills,
    })
}

/// A checkout of what is committed, to be patched; it goes when this does.
struct WorkTree {
    path: PathBuf,
}

impl WorkTree {
    fn new() -> Result<Self> {
        let path = target_dir().join("mutants/tree");
        // One that was interrupted left it behind.
        if path.exists() {
            remove(&path)?;
        }
        sh(command("git").args(["worktree", "prune"]))?;
        let add = ["worktree", "add", "--quiet", "--detach"];
        sh(command("git").args(add).arg(&path).arg("HEAD"))?;
        Ok(Self { path })
    }

    fn patch(&self, mutant: &Mutant, how: &[&str]) -> Result<()> {
        let patch = root().join(FOLDER).join(format!("{}.patch", mutant.name));
        let mut apply = Command::new("git");
        apply
            .current_dir(&self.path)
            .arg("apply")
            .args(how)
            .arg(patch);
        output(&mut apply).map(drop)
    }

    /// A command in the checkout, with what cargo needs there.
    fn command(&self, program: &OsStr) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.path);
        for (name, value) in cargo().get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command.env("CARGO_TARGET_DIR", target_dir().join("mutants/build"));
        // A live test that is skipped would be no test.
        command.env("LAXITY_REQUIRE_LIVE", "1");
        command
    }

    /// Builds a test and runs it, and it alone.
    fn test(&self, kill: &Kill) -> Result<Outcome> {
        println!("== {} {}", kill.binary.join(" "), kill.test);
        let cargo = cargo();
        let mut build = self.command(cargo.get_program());
        build.args(["test", "--quiet", "--no-run"]);
        sh(build.args(&kill.binary))?;
        let mut test = self.command(OsStr::new("timeout"));
        test.args(["--kill-after=10", TIMEOUT])
            .arg(cargo.get_program());
        test.arg("test").args(&kill.binary);
        test.args(["--", "--exact", &kill.test]);
        let ended = test.output().context("cannot start timeout")?;
        let printed = String::from_utf8_lossy(&ended.stdout);
        outcome(ended.status.code(), &printed).with_context(|| {
            let errors = String::from_utf8_lossy(&ended.stderr);
            format!("{test:?} did not run one test of this name:\n{printed}{errors}")
        })
    }
}

/// What the one test that ran did; `None` if there was not exactly one.
fn outcome(code: Option<i32>, printed: &str) -> Option<Outcome> {
    let ran = |what: &str| printed.matches(what).count() == 1;
    match code {
        Some(TIMED_OUT) => Some(Outcome::Hung),
        Some(0) if ran("test result: ok. 1 passed; 0 failed;") => Some(Outcome::Passed),
        Some(_) if ran("test result: FAILED. 0 passed; 1 failed;") => Some(Outcome::Failed),
        _ => None,
    }
}

fn remove(path: &Path) -> Result<()> {
    sh(command("git")
        .args(["worktree", "remove", "--force"])
        .arg(path))
}

impl Drop for WorkTree {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.path) {
            eprintln!("{error:#}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_says_what_it_breaks_and_who_must_notice() {
        let patch = "# about: no round robin\n# kills twin: -p laxity-sim --test conformance bands::turns\n# kills linux: -p laxity-linux --lib x::y\n\
                     diff --git a/x b/x\n# kills nobody: z\n";
        let mutant = parse("turns", patch).expect("a mutant");
        assert_eq!(mutant.about, "no round robin");
        assert_eq!(mutant.kills.len(), 2);
        assert_eq!(mutant.kills[0].host, "twin");
        assert_eq!(
            mutant.kills[0].binary,
            ["-p", "laxity-sim", "--test", "conformance"]
        );
        assert_eq!(mutant.kills[1].test, "x::y");
        assert!(
            parse("x", "# kills twin: -p a b\n").is_err(),
            "without about"
        );
        assert!(parse("x", "# about: a\ndiff\n").is_err(), "without a test");
        assert!(
            parse("x", "# about: a\n# kills twin: -p a --lib\n").is_err(),
            "no test's name"
        );
    }

    #[test]
    fn a_test_of_a_program_that_is_not_there_is_stale() {
        let has = |program: &str| {
            let patch = format!("# about: a\n# kills twin: {program} x::y\ndiff --git a/x b/x\n");
            parse("x", &patch).expect("a mutant").kills[0].has_program()
        };
        assert!(has("-p laxity-sim --test conformance"));
        assert!(has("--package laxity-model --test it"));
        assert!(has("-p laxity-model --lib"));
        assert!(!has("--package laxity-model --test slot_plans"));
    }

    #[test]
    fn only_one_test_that_ran_counts() {
        let ok = "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out";
        let failed = "test result: FAILED. 0 passed; 1 failed; 0 ignored";
        assert_eq!(outcome(Some(0), ok), Some(Outcome::Passed));
        assert_eq!(outcome(Some(101), failed), Some(Outcome::Failed));
        assert_eq!(outcome(Some(124), ""), Some(Outcome::Hung));
        assert_eq!(
            outcome(Some(0), "test result: ok. 0 passed; 0 failed;"),
            None
        );
        assert_eq!(outcome(Some(101), "error[E0308]: mismatched types"), None);
        assert_eq!(outcome(None, ""), None);
    }
}
