//! A task set's plan for people.

use std::collections::BTreeSet;

use laxity_model::Span;

use super::{PartitionPlan, ProcessorPlan, SetPlan, SeveralPlan, TestPlan};
use crate::layout::{TimeUnit, load, wrap_to};
use crate::plan::Line;
use crate::plan::render::{self as common, MOST_NAMES, lateness, proposal_words, shown};

/// The plan for people, in lines of so many characters.
pub fn render(plan: &SetPlan, width: usize) -> String {
    let all_promised = plan.processors.iter().all(|one| one.unpromised.is_empty());
    let of = (plan.as_if_real_time, all_promised);
    let answer = word((plan.admitted, plan.unknown), of);
    // Who may be on any processor has a line on each.
    let lines = plan.processors.iter().flat_map(|one| &one.lines);
    let names: BTreeSet<&str> = lines.map(|line| line.name.as_str()).collect();
    let tasks = names.len();
    let plural = if tasks == 1 { "" } else { "s" };
    let mut text = String::new();
    let head = format!(
        "{} ({}, {tasks} task{plural}) on {}: {answer}",
        plan.file, plan.format, plan.supply
    );
    wrap_to(width, "", &head, &mut text);
    for processor in &plan.processors {
        let of = (plan.as_if_real_time, processor.unpromised.is_empty());
        let word = word((processor.admitted, processor.unknown), of);
        render_processor(processor, &word, width, &mut text);
    }
    if let Some(several) = &plan.on_several {
        render_several(several, width, &mut text);
    }
    if !plan.notes.is_empty() {
        text.push('\n');
    }
    for note in &plan.notes {
        wrap_to(width, "note: ", note, &mut text);
    }
    text
}

/// The answer, and of whom it is.
fn word((admitted, unknown): (bool, bool), (as_if, all_promised): (bool, bool)) -> String {
    let answer = match (admitted, unknown) {
        (true, _) => "admitted",
        (false, true) => "UNKNOWN",
        (false, false) => "REFUSED",
    };
    let of = match (as_if, admitted && !all_promised) {
        (true, _) => " (as if real-time)",
        (false, true) => " (the real-time tasks)",
        (false, false) => "",
    };
    format!("{answer}{of}")
}

/// Below the processors' own tables: what other ways of using them would give.
fn render_several(plan: &SeveralPlan, width: usize, text: &mut String) {
    text.push('\n');
    let head = format!(
        "on {} processors, {} of one used, were all tasks free to go on any:",
        plan.processors,
        load(plan.utilization_ppm)
    );
    wrap_to(width, "", &head, text);
    let besides = if plan.ignores_policies {
        ", whatever the file gives"
    } else {
        ""
    };
    let tests = format!("{}{besides}", plan.tests.join("; or "));
    wrap_to(width, "  tested by:    ", &tests, text);
    for partitioning in &plan.partitionings {
        let head = format!("  {:<12}  ", format!("{}:", partitioning.heuristic));
        wrap_to(width, &head, &partition_words(partitioning, plan), text);
    }
    wrap_to(width, "  guarantee:    ", &guarantee_words(plan), text);
    wrap_to(
        width,
        "  global EDF:   ",
        &test_words(&plan.global_edf),
        text,
    );
    let late = match &plan.no_tardiness {
        Some(why) => format!("no bound: {why}"),
        None if plan.tardiness.iter().all(|line| line.tardiness_ns == 0) => "none".into(),
        None => {
            let lines = plan.tardiness.iter();
            let lines =
                lines.map(|line| format!("{} {}", line.task, Span::from_nanos(line.tardiness_ns)));
            format!("by at most: {}", shown(&lines.collect::<Vec<_>>()))
        }
    };
    wrap_to(width, "  tardiness:    ", &late, text);
    let kernel = &plan.kernel;
    wrap_to(width, "  the kernel:   ", &test_words(kernel), text);
    if !plan.left_out.is_empty() {
        wrap_to(width, "  left out:     ", &shown(&plan.left_out), text);
    }
}

fn partition_words(partitioning: &PartitionPlan, plan: &SeveralPlan) -> String {
    if let Some(misfit) = &partitioning.misfit {
        let sentence = format!("`{}` fits nowhere", misfit.task);
        return match (misfit.processor, misfit.largest_cost_ns, misfit.missing_ns) {
            (Some(processor), Some(largest), Some(missing)) => format!(
                "{sentence}; at most {} of it on processor {processor}, {} missing",
                Span::from_nanos(largest),
                Span::from_nanos(missing)
            ),
            _ => sentence,
        };
    }
    let is_same =
        |one: &&PartitionPlan| one.processors == partitioning.processors && one.misfit.is_none();
    let same = plan.partitionings.iter().find(is_same);
    if let Some(same) = same.filter(|same| same.heuristic != partitioning.heuristic) {
        return format!("all fit, as by {}", same.heuristic);
    }
    let most = MOST_NAMES.div_ceil(usize::from(plan.processors));
    let places = partitioning.processors.iter().enumerate();
    let places = places.filter(|(_, names)| !names.is_empty());
    let places = places.map(|(number, names)| {
        let more = if names.len() > most { ", …" } else { "" };
        let few = names[..names.len().min(most)].join(", ");
        format!("{number}: {few}{more}")
    });
    format!("all fit; {}", places.collect::<Vec<_>>().join("; "))
}

fn guarantee_words(plan: &SeveralPlan) -> String {
    let Some(bound) = plan.guaranteed_ppm else {
        let why = plan.no_guarantee.as_deref();
        return format!("none: {}", why.unwrap_or_default());
    };
    let has = if plan.is_guaranteed {
        "no more"
    } else {
        "more"
    };
    let (whole, tenth) = (bound / 10_000, bound / 1_000 % 10);
    format!("each of the three places such tasks up to {whole}.{tenth} %, and this has {has}")
}

fn test_words(test: &TestPlan) -> String {
    if test.detail.is_empty() {
        return test.verdict.clone();
    }
    format!("{}: {}", test.verdict, test.detail)
}

fn render_processor(plan: &ProcessorPlan, word: &str, width: usize, text: &mut String) {
    let place = plan.processor.map_or_else(
        || "all processors".into(),
        |number| format!("processor {number}"),
    );
    text.push('\n');
    let head = format!(
        "{} used; {word} by {}{}",
        load(plan.utilization_ppm),
        plan.test,
        lateness(&plan.lines, plan.bottleneck.as_ref())
    );
    wrap_to(width, &format!("{place}: "), &head, text);
    let times = plan.lines.iter().filter_map(|line| line.cost_ns);
    let unit = TimeUnit::for_least(times.min().unwrap_or(1_000_000));
    text.push_str(&format!("\n  times in {}\n", unit.ascii()));
    let bottleneck = plan.bottleneck.as_ref();
    common::render("task", &plan.lines, bottleneck, unit, (width, text));
    if let Some(scale) = plan.scale_ppm {
        let (whole, rest) = (scale / 1_000_000, scale % 1_000_000 / 1_000);
        let end = if plan.scale_is_exact {
            ", and no more"
        } else {
            ", and perhaps more: that was not searched to the end"
        };
        let is_reserved = |line: &Line| line.priority.as_ref().is_some_and(|of| of.contains('/'));
        let kept = match plan.lines.iter().any(is_reserved) {
            true => ", with the reservations as they are,",
            false => "",
        };
        let (by, also) = match &plan.margins_by {
            Some(test) => (format!(" by {test}"), "; C most is by that, too"),
            None => (String::new(), ""),
        };
        let sentence =
            format!("all costs times {whole}.{rest:03}{kept} are admitted{by}{end}{also}");
        wrap_to(width, "  margin:     ", &sentence, text);
    }
    for what in &plan.left_out {
        wrap_to(width, "  left out:   ", what, text);
    }
    wrap_to(width, "  seen:       ", &plan.observed, text);
    if let Some(found) = plan.reservations {
        let words = proposal_words(found.period_ns, found.least_service_ns, found.cheapest);
        wrap_to(width, "  would do:   ", &words, text);
    }
    render_nearest(plan, width, text);
    render_tests(plan, width, text);
}

fn render_nearest(plan: &ProcessorPlan, width: usize, text: &mut String) {
    if plan.nearest.is_empty() {
        return;
    }
    text.push_str("  would be admitted:\n");
    for change in &plan.nearest {
        let sentence = format!("{} ({})", change.text, change.test);
        wrap_to(width, "    - ", &sentence, text);
    }
}

fn render_tests(plan: &ProcessorPlan, width: usize, text: &mut String) {
    if plan.tests.is_empty() {
        return;
    }
    if plan.tests_without.is_empty() {
        text.push_str("  tests:\n");
    } else {
        let unknown = shown(&plan.tests_without);
        let whose = format!("of those that are known, without {unknown}:");
        wrap_to(width, "  tests:      ", &whose, text);
    }
    let longest = plan.tests.iter().map(|test| test.test.chars().count());
    let longest = longest.max().unwrap_or(0);
    for test in &plan.tests {
        let head = format!("    {:<longest$}  {:<14}  ", test.test, test.verdict);
        wrap_to(width, &head, &test.detail, text);
    }
}
