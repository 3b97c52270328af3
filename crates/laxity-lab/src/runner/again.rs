//! Which runs are made again: those that leave open what came of their variant because the processor stood still meanwhile.
//!
//! Whether a run is made again depends on what disturbed it, never on what it would show: what convicts stays, as does a reservation
//! that somebody could break. What a user's program does is done once: runs that execute one are not made again. Nothing is hidden either: the results say what was made again, and what had been open.

use std::collections::BTreeMap;

use super::RunDone;
use super::aggregate;
use super::conclude::Circumstances;
use crate::evidence::results::VariantResults;
use crate::scenario::{ExpectedGrade, Resolved, ResolvedVariant};

/// How often at most: a machine that stands still as often as that will not do otherwise the next time.
pub const AT_MOST: u32 = 2;

/// What was made again, by the variants' places in the scenario.
#[derive(Default)]
pub struct MadeAgain {
    /// How many runs of each.
    runs: BTreeMap<usize, u32>,
    /// What was open of those for which that was.
    left_open: BTreeMap<usize, Vec<String>>,
}

impl MadeAgain {
    /// The runs, as indices into `runs`, that are to be made again as things stand; notes why.
    pub fn next(
        &mut self,
        resolved: &Resolved,
        runs: &[RunDone],
        circumstances: &Circumstances,
    ) -> Vec<usize> {
        let mut all = Vec::new();
        for (index, variant) in resolved.variants.iter().enumerate() {
            let results = aggregate::variant(resolved, index, runs, circumstances);
            let Some(results) = results.filter(|results| is_left_open(variant, results)) else {
                continue;
            };
            let own = disturbed(runs, index);
            let spoiled = match variant.control {
                Some(control) if own.is_empty() => disturbed(runs, control),
                _ => own,
            };
            if spoiled.is_empty() {
                continue;
            }
            let left_open = self.left_open.entry(index).or_default();
            left_open.extend(results.unexpected());
            all.extend(spoiled);
        }
        all.sort_unstable();
        all.dedup();
        for run in &all {
            *self.runs.entry(runs[*run].planned.variant).or_default() += 1;
        }
        all
    }

    /// What is to be said of a variant; nothing where all its runs are the first, and those of its control, by which it is judged.
    pub fn notice(&self, resolved: &Resolved, variant: usize) -> Option<String> {
        let those = |runs: u32, whose: &str| match runs {
            1 => format!("1 run{whose} was made again"),
            runs => format!("{runs} runs{whose} were made again"),
        };
        let own = self.runs.get(&variant).map(|runs| those(*runs, ""));
        let control = resolved.variants[variant].control.and_then(|control| {
            let runs = self.runs.get(&control)?;
            let whose = format!(" of its control `{}`", resolved.variants[control].name);
            Some(those(*runs, &whose) + ", and what it is compared with is new")
        });
        let made: Vec<String> = own.into_iter().chain(control).collect();
        let why = match self.left_open.get(&variant) {
            Some(open) => format!("as the machine had left open: {}", open.join("; ")),
            None => "as the machine had left other variants open".to_owned(),
        };
        (!made.is_empty()).then(|| format!("{}, {why}", made.join("; ")))
    }
}

/// Whether nothing but the machine is in the way of a judgement. A reservation that could be broken, or of which that cannot be told, is an answer.
fn is_left_open(variant: &ResolvedVariant, results: &VariantResults) -> bool {
    let is_granted = match results.grade.as_deref() {
        Some("uncertain") => false,
        Some("unenforced") => variant.expect.grade == Some(ExpectedGrade::Unenforced),
        _ => true,
    };
    !results.as_expected && results.is_open() && results.failures.is_empty() && is_granted
}

/// The runs of a variant during which a processor stood still, or was held by nobody that was found.
fn disturbed(runs: &[RunDone], variant: usize) -> Vec<usize> {
    let disturbed = |run: &RunDone| {
        let is_disturbed = !run.record.disturbances.is_empty() || !run.record.doubts.is_empty();
        run.planned.variant == variant && is_disturbed && run.commands.is_empty()
    };
    let all = (0..runs.len()).filter(|index| disturbed(&runs[*index]));
    all.collect()
}
