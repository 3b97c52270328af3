//! A scenario that a test writes, and its run in the study's twin.

use laxity_lab::evidence::results::RunResults;
use laxity_lab::runner::{self, On, Silent};
use laxity_lab::scenario::{self, Length, Resolved, Scenario};

/// Reads it; fails with all that is wrong with it.
#[track_caller]
pub(crate) fn parsed(text: &str) -> Scenario {
    scenario::parse(text, "test.toml").unwrap_or_else(|found| {
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        panic!("{}\n{text}", found.join("\n"))
    })
}

/// The same at its quick length.
#[track_caller]
pub(crate) fn resolved(text: &str) -> Resolved {
    parsed(text).resolve(Length::Quick)
}

/// What comes of it at that length.
#[track_caller]
pub(crate) fn run(text: &str) -> RunResults {
    let on = On::Twin { threads: 1 };
    let finished = runner::run(&resolved(text), on, Vec::new(), &mut Silent);
    finished.expect("a run").results
}
