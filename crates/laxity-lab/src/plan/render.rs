//! What all plans have in common, for people: their lines, why lines have no bound, and the bottleneck.

use std::fmt::Write as _;

use laxity_model::Span;
use laxity_model::enforce::slots::MOST_SHARE_PPM;

use super::{Bottleneck, Deadline, Line, Proposal};
use crate::layout::{Align, Fit, Grid, TimeUnit, percent, wrap_to};
use crate::runner::proposal::{LONGEST_PERIOD, SHORTEST_PERIOD, too_short};

/// Before every line of a table.
const MARGIN: &str = "  ";

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

/// Which deadlines can be missed, by how much, and why the worst one, behind the word of a verdict; and of which it is not known whether they are met.
pub(super) fn lateness(lines: &[Line], bottleneck: Option<&Bottleneck>) -> String {
    let late = |line: &Line| {
        let slack = line.slack_ns.filter(|slack| *slack < 0);
        let by = match (slack, line.seen_late()) {
            _ if line.no_proof.is_some() => String::new(),
            (Some(slack), _) => format!(" by up to {}", Span::from_nanos(slack.unsigned_abs())),
            (None, Some(late)) => format!(" by {late} as seen"),
            (None, None) if line.is_too_much() => " by more and more".to_owned(),
            (None, None) => String::new(),
        };
        let is_worst = |worst: &&Bottleneck| worst.name == line.name && worst.phase == line.phase;
        let why = bottleneck.filter(is_worst).filter(|_| !by.is_empty());
        let why = why.map(how_it_waits);
        let why = why.map_or_else(String::new, |why| format!(" ({why})"));
        format!("{}{by}{why}", named(line))
    };
    let listed = |answer: Deadline, [one, several]: [&str; 2]| {
        let lines = lines.iter().filter(|line| line.deadline == Some(answer));
        let late: Vec<String> = lines.map(late).collect();
        match late.len() {
            0 => String::new(),
            1 => format!("; 1 deadline {one}: {}", late[0]),
            count => format!("; {count} deadlines {several}: {}", shown(&late)),
        }
    };
    let missed = listed(Deadline::CanBeMissed, ["can be missed"; 2]);
    let unknown = ["is not known to be met", "are not known to be met"];
    missed + &listed(Deadline::NotKnown, unknown)
}

/// Whose line it is, and in which phase.
fn named(line: &Line) -> String {
    let phase = line.phase.as_ref();
    let phase = phase.map_or_else(String::new, |phase| format!(" ({phase})"));
    format!("`{}`{phase}", line.name)
}

/// What would do: the least at a period, and the cheapest of all.
pub(super) fn proposal_words(
    period_ns: u64,
    least_service_ns: Option<u64>,
    cheapest: Option<Proposal>,
) -> String {
    let span = Span::from_nanos;
    let period = span(period_ns);
    let least = match least_service_ns {
        Some(least) => format!("{}/{period}", span(least)),
        None if period < SHORTEST_PERIOD => too_short(period),
        None => format!(
            "nothing every {period} of up to {} %",
            percent(u64::from(MOST_SHARE_PPM))
        ),
    };
    let cheapest = match cheapest {
        Some(cheapest) => {
            let (service, period) = (span(cheapest.service_ns), span(cheapest.period_ns));
            format!("the cheapest: {service}/{period}")
        }
        None => format!("nor anything every {SHORTEST_PERIOD} to {LONGEST_PERIOD}"),
    };
    format!("{least}; {cheapest}")
}

/// A table of lines, and what there is to say of them, in lines of so many characters.
pub(super) fn render(
    what: &str,
    lines: &[Line],
    bottleneck: Option<&Bottleneck>,
    unit: TimeUnit,
    (width, text): (usize, &mut String),
) {
    for line in table(what, lines, unit, width - MARGIN.len()).lines() {
        text.push_str(format!("{MARGIN}{line}").trim_end());
        text.push('\n');
    }
    render_reasons(lines, (width, "  no bound: "), |line| &line.no_bound, text);
    render_reasons(lines, (width, "  no proof: "), |line| &line.no_proof, text);
    for line in lines.iter().filter(|line| line.is_contradicted()) {
        if let (Some(seen), Some(bound)) = (line.observed_max_ns, line.bound_ns) {
            let sentence = format!(
                "FAILURE: `{}` took {} in the twin, more than its bound of {}: one of the two is wrong",
                line.name,
                Span::from_nanos(seen).beside(Span::from_nanos(bound)),
                Span::from_nanos(bound).beside(Span::from_nanos(seen))
            );
            wrap_to(width, "  ", &sentence, text);
        }
    }
    let late = lines.iter().filter(|line| line.seen_late().is_some());
    let late: Vec<String> = late.map(named).collect();
    if !late.is_empty() {
        wrap_to(width, "  seen late in the twin: ", &shown(&late), text);
    }
    if let Some(bottleneck) = bottleneck {
        wrap_to(width, "  bottleneck: ", &bottleneck_words(bottleneck), text);
    }
}

fn bottleneck_words(found: &Bottleneck) -> String {
    let mut words = format!("`{}`", found.name);
    if let Some(phase) = &found.phase {
        let _ = write!(words, ", {phase}");
    }
    let taken = Span::from_nanos(found.contribution_ns);
    let _ = write!(words, "; {}, {taken}", how_it_waits(found));
    words
}

/// Where most of its time goes.
fn how_it_waits(found: &Bottleneck) -> String {
    match (&found.contributor, found.waits_for) {
        (Some(other), _) if found.never_stops => {
            format!("`{other}` never stops, and takes what those above it leave of its time")
        }
        (Some(own), _) if *own == found.name => "most of its time is taken by itself".to_owned(),
        (Some(other), _) => format!("most of its time is taken by `{other}`"),
        (None, what) => {
            let what = what.unwrap_or("nobody");
            format!("most of its time it waits for {what}")
        }
    }
}

/// Why there are no bounds, or why they prove nothing: each reason once, with those it holds for.
fn render_reasons(
    lines: &[Line],
    (width, head): (usize, &str),
    reason: impl Fn(&Line) -> &Option<String>,
    text: &mut String,
) {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for line in lines {
        let Some(why) = reason(line) else {
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
        wrap_to(width, head, &format!("{}: {why}", shown(&names)), text);
    }
}

/// The columns in which there is something.
fn table(what: &str, lines: &[Line], unit: TimeUnit, width: usize) -> String {
    let several = lines.iter().any(|line| line.processor > Some(0));
    let rows = lines.iter().map(|line| cells(what, line, several, unit));
    let rows: Vec<_> = rows.collect();
    let Some(first) = rows.first() else {
        return String::new();
    };
    let is_shown = |column: &usize| rows.iter().any(|row| !row[*column].2.is_empty());
    let shown: Vec<usize> = (0..first.len()).filter(is_shown).collect();
    let heads = shown.iter().map(|column| {
        let (head, align, _) = &first[*column];
        ((*head).to_owned(), *align)
    });
    let mut grid = Grid::new(heads.collect::<Vec<_>>(), Fit::Names(width));
    for row in &rows {
        let cells = shown.iter().map(|column| row[*column].2.clone());
        grid.row(cells.collect::<Vec<_>>());
    }
    grid.render()
}

/// The cells of a line, each with the head of its column.
fn cells<'h>(
    what: &'h str,
    line: &Line,
    several: bool,
    unit: TimeUnit,
) -> [(&'h str, Align, String); 16] {
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
        ("usual", right, up(line.usual_bound_ns)),
        ("seen", right, up(line.observed_max_ns)),
        ("of it %", right, said(&ratio)),
        ("jobs", right, said(&jobs.map(|jobs| jobs.to_string()))),
        ("C most", right, most),
        ("region most", right, down(line.longest_region_ns)),
    ]
}
