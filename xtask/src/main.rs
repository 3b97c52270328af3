//! Everything that CI runs, for people to run too: `cargo xtask test`, or one step by its name.

mod architecture;
mod fuzz;
mod golden;
mod peer;
mod readme;
mod style;
mod trace;
mod twin;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// One check: its name on the command line, what it is for, and how it runs.
struct StepDef {
    name: &'static str,
    about: &'static str,
    run: fn() -> Result<()>,
}

const STEPS: &[StepDef] = &[
    StepDef {
        name: "format",
        about: "sources are formatted",
        run: format,
    },
    StepDef {
        name: "style",
        about: "no file over 1,000 lines, no unfinished code",
        run: style::run,
    },
    StepDef {
        name: "direction",
        about: "dependencies point one way",
        run: architecture::direction,
    },
    StepDef {
        name: "licences",
        about: "every dependency's licence is allowed",
        run: architecture::licences,
    },
    StepDef {
        name: "no-std",
        about: "the pure crate builds without std",
        run: architecture::no_std,
    },
    StepDef {
        name: "clippy",
        about: "no warnings",
        run: clippy,
    },
    StepDef {
        name: "tests",
        about: "unit, integration and live tests, examples",
        run: tests,
    },
    StepDef {
        name: "doc-tests",
        about: "examples in the documentation",
        run: doc_tests,
    },
    StepDef {
        name: "peer",
        about: "the V.22bis mode against spandsp",
        run: peer::run,
    },
    StepDef {
        name: "docs",
        about: "the documentation builds without a warning",
        run: docs,
    },
    StepDef {
        name: "loom",
        about: "the event ring under every interleaving",
        run: loom,
    },
    StepDef {
        name: "readme",
        about: "the commands of the README and of docs/",
        run: readme::run,
    },
    StepDef {
        name: "trace",
        about: "an independent reader opens the trace",
        run: trace::run,
    },
    StepDef {
        name: "twin",
        about: "same seed, same bytes: threads and CPU levels",
        run: twin::run,
    },
    StepDef {
        name: "fuzz",
        about: "a minute of fuzzing over all parsers",
        run: fuzz::run,
    },
];

fn main() -> ExitCode {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let names: Vec<&str> = asked.iter().map(String::as_str).collect();
    if let ["golden", options @ ..] = &names[..] {
        return golden_with(options);
    }
    match select(&names) {
        Some(steps) => run(&steps),
        None => {
            print_usage();
            ExitCode::from(64)
        }
    }
}

/// Not a step of `test`: the tests compare the figures that are quick to make; this makes the tables and figure 17 too.
fn golden_with(options: &[&str]) -> ExitCode {
    match golden::run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("golden: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The steps that the command line names; `None` where it is no command line of ours.
fn select(names: &[&str]) -> Option<Vec<&'static StepDef>> {
    match names {
        [] => None,
        ["test"] => Some(STEPS.iter().collect()),
        names => names
            .iter()
            .map(|name| STEPS.iter().find(|step| step.name == *name))
            .collect(),
    }
}

fn print_usage() {
    eprintln!("usage: cargo xtask test          everything that CI runs");
    eprintln!("       cargo xtask STEP...       only these steps:");
    for step in STEPS {
        eprintln!("         {:<10} {}", step.name, step.about);
    }
    eprintln!(
        "       cargo xtask golden [--full] [--accept]    the study's numbers are the committed ones: at full scale; write them anew"
    );
}

fn run(steps: &[&StepDef]) -> ExitCode {
    let mut failed = 0;
    for step in steps {
        println!("== {}: {}", step.name, step.about);
        let began = Instant::now();
        let result = (step.run)();
        let seconds = began.elapsed().as_secs();
        match result {
            Ok(()) => println!("== {}: passed ({seconds} s)", step.name),
            Err(error) => {
                failed += 1;
                println!("== {}: FAILED ({seconds} s): {error:#}", step.name);
            }
        }
    }
    println!("{} passed, {failed} failed", steps.len() - failed);
    ExitCode::from(u8::from(failed > 0))
}

/// The root of the workspace.
fn root() -> PathBuf {
    // Cargo says where it runs us; where we were built may be another checkout with the same target directory.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR");
    let manifest =
        manifest.map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest
        .parent()
        .map_or_else(|| manifest.clone(), Path::to_path_buf)
}

/// Where builds go: what cargo was told, or `target` in the workspace.
fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

fn cargo() -> Command {
    command(&std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()))
}

fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// Runs a command to its end; an error tells which command it was.
fn sh(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}

/// Runs a command to its end and returns what it printed.
fn output(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!(
            "{command:?} ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn format() -> Result<()> {
    sh(cargo().args(["fmt", "--all", "--check"]))
}

fn clippy() -> Result<()> {
    sh(cargo().args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "--deny",
        "warnings",
    ]))
}

fn tests() -> Result<()> {
    sh(cargo().args([
        "test",
        "--workspace",
        "--lib",
        "--bins",
        "--tests",
        "--examples",
    ]))?;
    sh(cargo().args(["run", "--package", "laxity", "--example", "reserve"]))
}

fn doc_tests() -> Result<()> {
    sh(cargo().args(["test", "--workspace", "--doc"]))
}

fn docs() -> Result<()> {
    let mut command = cargo();
    // The command's own pages would take the place of the library's: both are called laxity.
    command.args(["doc", "--workspace", "--no-deps", "--exclude", "laxity-cli"]);
    sh(command.env("RUSTDOCFLAGS", "--deny warnings"))
}

fn loom() -> Result<()> {
    let mut command = cargo();
    command.args([
        "test",
        "--package",
        "laxity-model",
        "--test",
        "ring_loom",
        "--test",
        "arrivals_loom",
        "--release",
    ]);
    command.env("RUSTFLAGS", "--cfg loom");
    command.env("CARGO_TARGET_DIR", target_dir().join("loom"));
    sh(&mut command)
}
