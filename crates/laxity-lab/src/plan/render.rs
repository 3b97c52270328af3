//! A task set's plan for people: at most 100 columns.

use std::fmt::Write as _;

use laxity_model::Span;

use super::{PartitionPlan, ProcessorPlan, SetPlan, SeveralPlan, TaskPlan, TestPlan};
use crate::layout::{Align, Grid, Unit, load, percent, wrap};

/// The plan for people.
#[must_use]
pub fn render(plan: &SetPlan) -> String {
    let word = if plan.admitted { "admitted" } else { "REFUSED" };
    let tasks: usize = plan.processors.iter().map(|p| p.tasks.len()).sum();
    let plural = if tasks == 1 { "" } else { "s" };
    // Writing to a string does not fail.
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} ({}, {tasks} task{plural}) on {}: {word}",
        plan.file, plan.format, plan.supply
    );
    for processor in &plan.processors {
        render_processor(processor, &mut text);
    }
    if let Some(several) = &plan.on_several {
        render_several(several, &mut text);
    }
    if !plan.notes.is_empty() {
        text.push('\n');
    }
    for note in &plan.notes {
        wrap("note: ", note, &mut text);
    }
    text
}

/// So many names of a list are shown; all are in JSON.
const MOST_NAMES: usize = 24;

/// Below the processors' own tables: what other ways of using them would give.
fn render_several(plan: &SeveralPlan, text: &mut String) {
    let _ = writeln!(
        text,
        "\non {} processors, {} of one used, were all tasks free to go on any:",
        plan.processors,
        load(plan.utilization_ppm)
    );
    let besides = if plan.ignores_policies {
        ", whatever the file gives"
    } else {
        ""
    };
    let tests = format!("{}{besides}", plan.tests.join("; or "));
    wrap("  tested by:    ", &tests, text);
    for partitioning in &plan.partitionings {
        let head = format!("  {:<12}  ", format!("{}:", partitioning.heuristic));
        wrap(&head, &partition_words(partitioning, plan), text);
    }
    wrap("  guarantee:    ", &guarantee_words(plan), text);
    wrap("  global EDF:   ", &test_words(&plan.global_edf), text);
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
    wrap("  tardiness:    ", &late, text);
    let kernel = &plan.kernel;
    wrap("  the kernel:   ", &test_words(kernel), text);
    if !plan.left_out.is_empty() {
        wrap("  left out:     ", &shown(&plan.left_out), text);
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
    let same = plan
        .partitionings
        .iter()
        .find(|other| other.processors == partitioning.processors && other.misfit.is_none());
    if let Some(same) = same.filter(|same| same.heuristic != partitioning.heuristic) {
        return format!("all fit, as by {}", same.heuristic);
    }
    let most = MOST_NAMES.div_ceil(usize::from(plan.processors));
    let places = partitioning
        .processors
        .iter()
        .enumerate()
        .filter(|(_, names)| !names.is_empty())
        .map(|(number, names)| {
            let more = if names.len() > most { ", …" } else { "" };
            format!(
                "{number}: {}{more}",
                names[..names.len().min(most)].join(", ")
            )
        });
    format!("all fit; {}", places.collect::<Vec<_>>().join("; "))
}

fn guarantee_words(plan: &SeveralPlan) -> String {
    let Some(bound) = plan.guaranteed_ppm else {
        let why = plan.no_guarantee.as_deref();
        return format!("none: {}", why.unwrap_or_default());
    };
    let (tenths, word) = (
        bound / 1_000,
        if plan.is_guaranteed {
            "and this has no more"
        } else {
            "and this has more"
        },
    );
    format!(
        "each of the three places such tasks up to {}.{} %, {word}",
        tenths / 10,
        tenths % 10
    )
}

fn test_words(test: &TestPlan) -> String {
    if test.detail.is_empty() {
        return test.verdict.clone();
    }
    format!("{}: {}", test.verdict, test.detail)
}

/// The first few.
fn shown(words: &[String]) -> String {
    let more = if words.len() > MOST_NAMES {
        ", …"
    } else {
        ""
    };
    format!("{}{more}", words[..words.len().min(MOST_NAMES)].join(", "))
}

fn render_processor(plan: &ProcessorPlan, text: &mut String) {
    let word = if plan.admitted {
        "admitted by"
    } else {
        "REFUSED by"
    };
    let place = plan.processor.map_or_else(
        || "all processors".into(),
        |number| format!("processor {number}"),
    );
    text.push('\n');
    let head = format!(
        "{} used; {word} {}{}",
        load(plan.utilization_ppm),
        plan.test,
        lateness_words(plan)
    );
    wrap(&format!("{place}: "), &head, text);
    let times = plan.tasks.iter().filter_map(|task| task.cost_ns);
    let unit = Unit::for_least(times.min().unwrap_or(1_000_000));
    let _ = writeln!(text, "\n  times in {}", unit.name());
    text.push_str(&table(plan, unit));
    text.push('\n');
    render_reasons(plan, text);
    for task in &plan.tasks {
        if let (Some(seen), Some(bound)) = (task.observed_max_ns, task.bound_ns)
            && seen > bound
        {
            let sentence = format!(
                "FAILURE: `{}` took {} in the twin, more than its bound of {}: one of the two is wrong",
                task.name,
                Span::from_nanos(seen),
                Span::from_nanos(bound)
            );
            wrap("  ", &sentence, text);
        }
    }
    if let Some(bottleneck) = &plan.bottleneck {
        let who = if bottleneck.contributor == bottleneck.task {
            "itself".to_owned()
        } else {
            format!("`{}`", bottleneck.contributor)
        };
        let sentence = format!(
            "`{}`; most of its time is taken by {who}, {}",
            bottleneck.task,
            Span::from_nanos(bottleneck.contribution_ns)
        );
        wrap("  bottleneck: ", &sentence, text);
    }
    if let Some(scale) = plan.scale_ppm {
        let (whole, rest) = (scale / 1_000_000, scale % 1_000_000 / 1_000);
        let end = if plan.scale_is_exact {
            ", and no more"
        } else {
            ", and perhaps more: that was not searched to the end"
        };
        let sentence = format!("all costs times {whole}.{rest:03} are admitted{end}");
        wrap("  margin:     ", &sentence, text);
    }
    for what in &plan.left_out {
        wrap("  left out:   ", what, text);
    }
    wrap("  seen:       ", &plan.observed, text);
    render_nearest(plan, text);
    render_tests(plan, text);
}

fn render_nearest(plan: &ProcessorPlan, text: &mut String) {
    if plan.nearest.is_empty() {
        return;
    }
    text.push_str("  would be admitted:\n");
    for change in &plan.nearest {
        let sentence = format!("{} ({})", change.text, change.test);
        wrap("    - ", &sentence, text);
    }
}

/// Why there are no bounds, each reason once.
fn render_reasons(plan: &ProcessorPlan, text: &mut String) {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for task in &plan.tasks {
        let Some(why) = &task.no_bound else {
            continue;
        };
        let name = format!("`{}`", task.name);
        match reasons.iter_mut().find(|(reason, _)| reason == why) {
            Some((_, names)) => names.push(name),
            None => reasons.push((why, vec![name])),
        }
    }
    for (why, names) in reasons {
        let verb = match names.len() {
            1 => "has".into(),
            count if count > MOST_NAMES => format!("({count} tasks) have"),
            _ => "have".into(),
        };
        wrap(
            "  ",
            &format!("{} {verb} no bound: {why}", shown(&names)),
            text,
        );
    }
}

fn render_tests(plan: &ProcessorPlan, text: &mut String) {
    if plan.tests.is_empty() {
        return;
    }
    text.push_str("  tests:\n");
    let width = plan.tests.iter().map(|test| test.test.chars().count());
    let width = width.max().unwrap_or(0);
    for test in &plan.tests {
        let head = format!("    {:<width$}  {:<14}  ", test.test, test.verdict);
        wrap(&head, &test.detail, text);
    }
}

/// Where threads are admitted and may all the same be late: how many.
fn lateness_words(plan: &ProcessorPlan) -> String {
    let late = plan
        .tasks
        .iter()
        .filter(|task| task.slack_ns < Some(0) && task.slack_ns.is_some());
    match (plan.admitted, late.count()) {
        (false, _) | (true, 0) => String::new(),
        (true, 1) => "; 1 deadline can be missed".into(),
        (true, count) => format!("; {count} deadlines can be missed"),
    }
}

fn table(plan: &ProcessorPlan, unit: Unit) -> String {
    let mut grid = Grid::new([
        ("task".to_owned(), Align::Left),
        ("prio".to_owned(), Align::Right),
        ("C".to_owned(), Align::Right),
        ("T".to_owned(), Align::Right),
        ("D".to_owned(), Align::Right),
        ("U %".to_owned(), Align::Right),
        ("bound".to_owned(), Align::Right),
        ("slack".to_owned(), Align::Right),
        ("seen".to_owned(), Align::Right),
        ("of it %".to_owned(), Align::Right),
        ("C most".to_owned(), Align::Right),
        ("region most".to_owned(), Align::Right),
    ]);
    for task in &plan.tasks {
        grid.row(row(task, unit));
    }
    grid.render()
}

fn row(task: &TaskPlan, unit: Unit) -> [String; 12] {
    let up = |value: Option<u64>| value.map_or_else(String::new, |ns| unit.up(ns));
    let down = |value: Option<u64>| value.map_or_else(String::new, |ns| unit.down(ns));
    let slack = task
        .slack_ns
        .map_or_else(String::new, |slack| match u64::try_from(slack) {
            Ok(slack) => unit.down(slack),
            Err(_) => format!("-{}", unit.up(slack.unsigned_abs())),
        });
    let ratio = task
        .observed_max_ns
        .zip(task.bound_ns)
        .map(|(seen, bound)| {
            let ppm = u128::from(seen) * 1_000_000 / u128::from(bound.max(1));
            percent(u64::try_from(ppm).unwrap_or(u64::MAX))
        });
    let bound = match (task.bound_ns, &task.no_bound) {
        (None, Some(_)) => "none".into(),
        (bound, _) => up(bound),
    };
    [
        task.name.clone(),
        task.priority.clone(),
        up(task.cost_ns),
        up(task.period_ns),
        up(task.deadline_ns),
        task.utilization_ppm.map_or_else(String::new, percent),
        bound,
        slack,
        up(task.observed_max_ns),
        ratio.unwrap_or_default(),
        match down(task.largest_cost_ns) {
            least if !least.is_empty() && !task.largest_cost_is_exact => format!("≥{least}"),
            most => most,
        },
        down(task.longest_region_ns),
    ]
}
