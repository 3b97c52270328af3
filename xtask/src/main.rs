//! Everything that CI runs, for people to run too: `cargo xtask test`, or one step by its name.

mod ahead;
mod cargo_test;
mod checks;
mod circles;
mod code;
mod direction;
mod fuzz;
mod golden;
mod licences;
mod lines;
mod metadata;
mod mutants;
mod needs;
mod no_std;
mod process;
mod readme;
mod source;
mod style;
mod took;
mod trace;
mod twin;

use std::process::ExitCode;
use std::thread::JoinHandle;

use anyhow::Result;

use needs::Need;
use process::nothing_may_be_skipped;
use took::{Begun, HEADS};

/// One check: its name on the command line, what it is for, what it needs beside the toolchain, and how it runs.
struct Step(
    &'static str,
    &'static str,
    &'static [Need],
    fn() -> Result<()>,
);

const RUSTFMT: Need = Need::Component("rustfmt", "fmt");
const CLIPPY: Need = Need::Component("clippy", "clippy");

#[rustfmt::skip]
const STEPS: &[Step] = &[
    Step("format", "sources are formatted", &[RUSTFMT], checks::format),
    Step("style", "no long file or function, no unfinished code, no stale mutant", &[], style::run),
    Step("direction", "crates and folders depend as they are drawn", &[], direction::run),
    Step("licences", "every dependency's licence is allowed", &[], licences::run),
    Step("no-std", "the pure crate builds without std", &[], no_std::run),
    Step("clippy", "no warnings", &[CLIPPY], checks::clippy),
    Step("build", "tests and examples build", &[], checks::build_tests),
    Step("tests", "unit, integration and live tests, examples", &[], checks::tests),
    Step("doc-tests", "examples in the documentation", &[], checks::doc_tests),
    Step("peer", "the V.22bis mode against spandsp", &[Need::Spandsp], checks::peer),
    Step("docs", "the documentation builds without a warning", &[], checks::docs),
    Step("loom", "the event ring under every interleaving", &[], checks::loom),
    Step("readme", "the commands of the README and of docs/", &[], readme::run),
    Step("trace", "an independent reader opens the trace", &[Need::TraceReader], trace::run),
    Step("twin", "same seed, same bytes: threads and CPU levels", &[], twin::run),
    Step("fuzz", "a minute of fuzzing over all parsers", &[Need::Fuzzer], fuzz::run),
];

/// What is no step of `test`: its name, its arguments, what it is for, and how it runs.
struct Tool(
    &'static str,
    &'static str,
    &'static str,
    fn(&[&str]) -> Result<()>,
);

#[rustfmt::skip]
const TOOLS: &[Tool] = &[
    Tool("lines", "[--at REVISION]", "how much code there is", lines::run),
    Tool("mutants", "[NAME...]", "every mutant is noticed by its tests", mutants::run),
    Tool("golden", "[--full] [--accept]", "the study's numbers are the committed ones: at full scale; write them anew", golden::run),
];

fn main() -> ExitCode {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let names: Vec<&str> = asked.iter().map(String::as_str).collect();
    if let [name, options @ ..] = &names[..]
        && let Some(Tool(_, _, _, run)) = TOOLS.iter().find(|tool| tool.0 == *name)
    {
        return match run(options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{name}: {error:#}");
                ExitCode::FAILURE
            }
        };
    }
    match select(&names) {
        Some(steps) => run(&steps),
        None => {
            print_usage();
            ExitCode::from(64)
        }
    }
}

/// The steps that the command line names; `None` where it is no command line of ours.
fn select(names: &[&str]) -> Option<Vec<&'static Step>> {
    match names {
        [] => None,
        ["test"] => Some(STEPS.iter().collect()),
        names => {
            let named = names
                .iter()
                .map(|name| STEPS.iter().find(|step| step.0 == *name));
            named.collect()
        }
    }
}

fn print_usage() {
    eprintln!("usage: cargo xtask test          everything that CI runs");
    eprintln!("       cargo xtask STEP...       only these steps:");
    for Step(name, about, ..) in STEPS {
        eprintln!("         {name:<10} {about}");
    }
    for Tool(name, options, about, _) in TOOLS {
        eprintln!("       cargo xtask {name} {options}    {about}");
    }
}

/// What came of a step.
enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

/// Runs all of these, whatever comes of each, and says at the end what each took, which were skipped and which failed.
fn run(steps: &[&Step]) -> ExitCode {
    let (mut failed, mut skipped) = (Vec::new(), Vec::new());
    let mut table = vec![format!("{:<10}{HEADS}", "step")];
    let all = Begun::now();
    let mut ahead = None;
    for (at, step) in steps.iter().enumerate() {
        let Step(name, about, ..) = step;
        if *name == ahead::DURING {
            let later: Vec<&str> = steps[at..].iter().map(|step| step.0).collect();
            ahead = Some(ahead::begin(&later));
        }
        println!("== {name}: {about}");
        let begun = Begun::now();
        let outcome = run_step(step);
        let took = begun.took();
        table.push(format!("{name:<10}{took}"));
        let seconds = took.time.as_secs();
        match outcome {
            Outcome::Passed => println!("== {name}: passed ({seconds} s)"),
            Outcome::Failed(why) => {
                let first = why.lines().next().unwrap_or_default();
                println!("== {name}: FAILED ({seconds} s): {first}");
                failed.push(format!("failed: {name}: {why}"));
            }
            Outcome::Skipped(why) => {
                println!("== {name}: skipped, because {why}");
                skipped.push(format!("skipped: {name}, because {why}"));
            }
        }
    }
    // It has built all that the steps wanted, and these ran.
    ahead.map(JoinHandle::join);
    table.push(format!("{:<10}{}", "all", all.took()));
    for line in table.iter().chain(&skipped).chain(&failed) {
        println!("{line}");
    }
    let passed = steps.len() - failed.len() - skipped.len();
    println!(
        "{passed} passed, {} failed, {} skipped",
        failed.len(),
        skipped.len()
    );
    ExitCode::from(u8::from(!failed.is_empty()))
}

fn run_step(Step(_, _, needs, run): &Step) -> Outcome {
    for need in *needs {
        match need.provide() {
            Ok(()) => {}
            Err(why) if nothing_may_be_skipped() => {
                return Outcome::Failed(format!("nothing may be skipped, and {why}"));
            }
            Err(why) => return Outcome::Skipped(why),
        }
    }
    match run() {
        Ok(()) => Outcome::Passed,
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}
