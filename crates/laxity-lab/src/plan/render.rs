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
    let several = lines.iter().any(|line| line.processor > Some(0));
    let rows = lines.iter().map(|line| cells(what, line, several, unit));
    let rows: Vec<_> = rows.collect();
    let Some(first) = rows.first() else {
        return String::new();
    };
    let heads = first
        .each_ref()
        .map(|(head, align, _)| ((*head).to_owned(), *align));
    let mut grid = Grid::new(heads, Fit::Plan);
    for row in rows {
        grid.row(row.map(|(.., cell)| cell));
    }
    grid.render()
}

/// The cells of a line, each with the head of its column.
fn cells<'h>(
    what: &'h str,
    line: &Line,
    several: bool,
    unit: TimeUnit,
) -> [(&'h str, Align, String); 15] {
    let up = |value: Option<u64>| value.map_or_else(String::new, |ns| unit.up(ns));
    let down = |value: Option<u64>| value.map_or_else(String::new, |ns| unit.down(ns));
    let said = |words: &Option<String>| words.clone().unwrap_or_default();
    let slack = match line.slack_ns {
        Some(slack) if slack < 0 => format!("-{}", unit.up(slack.unsigned_abs())),
        slack => down(slack.map(i64::unsigned_abs)),
    };
    let seen = line.observed_max_ns.zip(line.bound_ns);
    let ratio = seen.map(|(seen, bound)| {
        let ppm = u128::from(seen) * 1_000_000 / u128::from(bound.max(1));
        percent(u64::try_from(ppm).unwrap_or(u64::MAX))
    });
    let processor = line.processor.filter(|_| several).map(|on| on.to_string());
    let jobs = Some(line.observed_jobs).filter(|jobs| *jobs > 0);
    let bound = match &line.no_bound {
        Some(_) => "none".into(),
        None => up(line.bound_ns),
    };
    let at_least = match line.largest_cost_ns {
        Some(_) if !line.largest_cost_is_exact => "≥",
        _ => "",
    };
    let most = format!("{at_least}{}", down(line.largest_cost_ns));
    let (left, right) = (Align::Left, Align::Right);
    [
        (what, left, line.name.clone()),
        ("in", left, said(&line.phase)),
        ("on", right, said(&processor)),
        ("prio", right, said(&line.priority)),
        ("C", right, up(line.cost_ns)),
        ("T", right, up(line.period_ns)),
        ("D", right, up(line.deadline_ns)),
        ("U %", right, said(&line.utilization_ppm.map(percent))),
        ("bound", right, bound),
        ("slack", right, slack),
        ("seen", right, up(line.observed_max_ns)),
        ("of it %", right, said(&ratio)),
        ("jobs", right, said(&jobs.map(|jobs| jobs.to_string()))),
        ("C most", right, most),
        ("region most", right, down(line.longest_region_ns)),
    ]
}
