//! What all plans have in common, for people: their lines, why lines have no bound, and the bottleneck.

use std::fmt::Write as _;

use laxity_model::Span;

use super::{Bottleneck, Line};
use crate::layout::{Align, Fit, Grid, TimeUnit, percent, wrap};

/// So many names of a list are shown; all are in JSON.
pub(super) const MOST_NAMES: usize = 24;

/// The first few.
pub(super) fn shown(words: &[String]) -> String {
    let few = words[..words.len().min(MOST_NAMES)].join(", ");
    if words.len() > MOST_NAMES {
        return format!("{few}, … ({} in all)", words.len());
    }
    few
}

/// How many deadlines can be missed, behind the word of a verdict.
pub(super) fn lateness(lines: &[Line]) -> String {
    let late = |line: &&Line| line.slack_ns.is_some_and(|slack| slack < 0);
    match lines.iter().filter(late).count() {
        0 => String::new(),
        1 => "; 1 deadline can be missed".into(),
        count => format!("; {count} deadlines can be missed"),
    }
}

/// A table of lines, and what there is to say of them.
pub(super) fn render(
    what: &str,
    lines: &[Line],
    bottleneck: Option<&Bottleneck>,
    unit: TimeUnit,
    text: &mut String,
) {
    text.push_str(&table(what, lines, unit));
    render_reasons(lines, text);
    for line in lines {
        if let (Some(seen), Some(bound)) = (line.observed_max_ns, line.bound_ns)
            && seen > bound
        {
            let sentence = format!(
                "FAILURE: `{}` took {} in the twin, more than its bound of {}: one of the two is wrong",
                line.name,
                Span::from_nanos(seen),
                Span::from_nanos(bound)
            );
            wrap("  ", &sentence, text);
        }
    }
    if let Some(bottleneck) = bottleneck {
        wrap("  bottleneck: ", &bottleneck_words(bottleneck), text);
    }
}

fn bottleneck_words(found: &Bottleneck) -> String {
    let mut words = format!("`{}`", found.name);
    if let Some(phase) = &found.phase {
        let _ = write!(words, ", {phase}");
    }
    words.push_str("; most of its time ");
    let who = match &found.contributor {
        None => return words + "it waits for a tick of the clock",
        Some(own) if *own == found.name => "itself".to_owned(),
        Some(other) => format!("`{other}`"),
    };
    let taken = Span::from_nanos(found.contribution_ns);
    let _ = write!(words, "is taken by {who}, {taken}");
    words
}

/// Why there are no bounds: each reason once, with those it holds for.
fn render_reasons(lines: &[Line], text: &mut String) {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for line in lines {
        let Some(why) = &line.no_bound else {
            continue;
        };
        let name = format!("`{}`", line.name);
        match reasons.iter_mut().find(|(known, _)| known == why) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => reasons.push((why, vec![name])),
        }
    }
    for (why, names) in reasons {
        wrap("  no bound: ", &format!("{}: {why}", shown(&names)), text);
    }
}

fn table(what: &str, lines: &[Line], unit: TimeUnit) -> String {
    let (left, right) = (Align::Left, Align::Right);
    let heads = [
        (what, left),
        ("in", left),
        ("on", right),
        ("prio", right),
        ("C", right),
        ("T", right),
        ("D", right),
        ("U %", right),
        ("bound", right),
        ("slack", right),
        ("seen", right),
        ("of it %", right),
        ("jobs", right),
        ("C most", right),
        ("region most", right),
    ];
    let mut grid = Grid::new(
        heads.map(|(head, align)| (head.to_owned(), align)),
        Fit::Plan,
    );
    let several = lines.iter().any(|line| line.processor > Some(0));
    for line in lines {
        grid.row(row(line, several, unit));
    }
    grid.render()
}

fn row(line: &Line, several: bool, unit: TimeUnit) -> [String; 15] {
    let up = |value: Option<u64>| value.map_or_else(String::new, |ns| unit.up(ns));
    let down = |value: Option<u64>| value.map_or_else(String::new, |ns| unit.down(ns));
    let slack = match line.slack_ns {
        Some(slack) if slack < 0 => format!("-{}", unit.up(slack.unsigned_abs())),
        slack => down(slack.map(i64::unsigned_abs)),
    };
    let seen = line.observed_max_ns.zip(line.bound_ns);
    let ratio = seen.map(|(seen, bound)| {
        let ppm = u128::from(seen) * 1_000_000 / u128::from(bound.max(1));
        percent(u64::try_from(ppm).unwrap_or(u64::MAX))
    });
    let processor = line.processor.filter(|_| several);
    let jobs = Some(line.observed_jobs).filter(|jobs| *jobs > 0);
    let bound = if line.no_bound.is_some() {
        "none".into()
    } else {
        up(line.bound_ns)
    };
    let at_least = match line.largest_cost_ns {
        Some(_) if !line.largest_cost_is_exact => "≥",
        _ => "",
    };
    [
        line.name.clone(),
        line.phase.clone().unwrap_or_default(),
        processor.map_or_else(String::new, |number| number.to_string()),
        line.priority.clone().unwrap_or_default(),
        up(line.cost_ns),
        up(line.period_ns),
        up(line.deadline_ns),
        line.utilization_ppm.map_or_else(String::new, percent),
        bound,
        slack,
        up(line.observed_max_ns),
        ratio.unwrap_or_default(),
        jobs.map_or_else(String::new, |jobs| jobs.to_string()),
        format!("{at_least}{}", down(line.largest_cost_ns)),
        down(line.longest_region_ns),
    ]
}
