//! What a run of a scenario leaves: a table for the terminal, and a report for the page, both made of the same columns.

mod apart;
mod columns;
mod facts;
mod histograms;

use std::collections::BTreeSet;

use laxity_model::verify::contract::{Expectation, Outcome};

use self::columns::{Column, Line, SURPRISE, shows_gaps, tables};
use self::facts::{crawled, facts, placed, proposals, provenance, speed};
use self::histograms::Limits;
use super::{Check, Figure, Origin, Report, Row, Table, Timeline, Value, value};
use crate::evidence::results::{RunResults, VariantResults};
use crate::evidence::subjects::is_cothread;
use crate::exit;
use crate::layout::{Fit, Grid, wrap_to};

/// So wide would a table of the page be on the terminal, in characters, that fits a window of 800 pixels.
const PAGE_WIDTH: usize = 96;

/// The tables on the terminal, in lines of so many characters: a line a variant, then the verdicts. Plain text, ending in a newline. `unwritten`: the exit code
/// of the command instead, where an output could not be written.
pub fn table(results: &RunResults, width: usize, unwritten: Option<u8>) -> String {
    let variants = &results.variants;
    let mut text = String::new();
    wrap_to(width, "", &heading(results), &mut text);
    for columns in tables(variants, width) {
        text.push_str(&format!("\n{}", grid(variants, &columns, width).render()));
    }
    let legends = legend(variants).into_iter().chain(surprise(variants));
    for (number, legend) in legends.enumerate() {
        text.push_str(if number == 0 { "\n" } else { "" });
        wrap_to(width, "", &legend, &mut text);
    }
    for variant in results.variants.iter().filter(|one| needs_words(one)) {
        text.push_str(&format!("\n{}: {}\n", variant.name, outcome(variant)));
        items(reasons(variant), width, &mut text);
    }
    if let Some(speed) = speed(results) {
        text.push('\n');
        wrap_to(width, "", &speed, &mut text);
    }
    let proposed = proposals(results);
    if !proposed.is_empty() {
        text.push_str("\nproposed:\n");
        items(proposed, width, &mut text);
    }
    for skipped in &results.skipped {
        text.push('\n');
        let head = format!("{}: not run: ", skipped.name);
        wrap_to(width, &head, &skipped.reason, &mut text);
    }
    for notice in &results.notices {
        wrap_to(width, "note: ", notice, &mut text);
    }
    let overall = overall(results, unwritten);
    text.push_str(&format!("\nverdict: {overall}\n"));
    items(results.verdict.reasons.clone(), width, &mut text);
    text
}

/// A table in lines of so many characters.
fn grid(variants: &[VariantResults], columns: &[Column], width: usize) -> Grid {
    let heads: Vec<_> = columns.iter().map(Column::head).collect();
    let mut grid = Grid::new(heads, Fit::Names(width));
    for line in Line::all(variants, columns) {
        let cells = columns.iter().map(|column| column.text(&line));
        grid.row(cells.collect::<Vec<_>>());
    }
    grid
}

fn items(items: Vec<String>, width: usize, text: &mut String) {
    for item in items {
        wrap_to(width, "  - ", &item, text);
    }
}

fn heading(results: &RunResults) -> String {
    let (scenario, host) = (&results.scenario, &results.host);
    let contract = match results.contract.as_str() {
        "" => "no contract".to_owned(),
        contract => format!("contract {contract}"),
    };
    format!("{scenario} on {host}, {contract}, seed {}", results.seed)
}

/// What the gaps are of, if any are shown.
fn legend(variants: &[VariantResults]) -> Option<String> {
    if !shows_gaps(variants) {
        return None;
    }
    let tasks = variants.iter().flat_map(VariantResults::periodic);
    let called = tasks.map(|(name, task)| {
        let period = task.task_period_ns.map(value::nanos).unwrap_or_default();
        match is_cothread(name) {
            true => format!("the {period} co-thread"),
            false => format!("`{name}`, every {period}"),
        }
    });
    let whose = match Vec::from_iter(called.collect::<BTreeSet<_>>()).as_slice() {
        [] => return None,
        [only] => only.clone(),
        _ => "a periodic task".to_owned(),
    };
    Some(format!(
        "gap: between wake-ups of {whose}; x control: the worst of the three, its least run by the control's largest{}",
        brackets(variants)
    ))
}

/// What the mark behind a verdict means, where one has it.
fn surprise(variants: &[VariantResults]) -> Option<String> {
    let mut variants = variants.iter();
    let is_marked = variants.any(|variant| !variant.as_expected);
    is_marked.then(|| format!("{SURPRISE}: not as the scenario expects"))
}

/// What is in brackets, where anything was disturbed.
fn brackets(variants: &[VariantResults]) -> &'static str {
    match variants.iter().any(|variant| variant.disturbed.count > 0) {
        true => "; in brackets: where the machine stood still, not judged",
        false => "",
    }
}

/// Whether there is more to say of a variant than its line does.
fn needs_words(variant: &VariantResults) -> bool {
    let is_bad = variant
        .verdict
        .result
        .is_some_and(|result| result != Outcome::Met);
    is_bad || !variant.as_expected || !variant.verdict.reasons.is_empty()
}

/// The verdict in a word, or `none` where there is no contract to judge by.
fn judgement(variant: &VariantResults, none: &str) -> String {
    let result = variant.verdict.result;
    result.map_or_else(|| none.to_owned(), |result| result.to_string())
}

/// What became of a variant, and whether that was expected.
fn outcome(variant: &VariantResults) -> String {
    let result = judgement(variant, "no contract");
    match (variant.as_expected, variant.expected) {
        (true, Expectation::Any) => format!("{result}, and nothing was expected"),
        (false, Expectation::Any) => format!("{result}, not as expected"),
        (true, _) => format!("{result}, as expected"),
        // What is expected besides contracts is not so.
        (false, expected) if expected.to_string() == result => {
            format!("{result}, and otherwise not as expected")
        }
        (false, expected) => format!("{result}, expected {expected}"),
    }
}

/// Why a variant is not met, and what is not enforced.
fn reasons(variant: &VariantResults) -> Vec<String> {
    let graded = variant.grade.iter().zip(&variant.grade_reason);
    let graded = graded.map(|(grade, reason)| format!("{grade}: {reason}"));
    let reasons = variant.verdict.reasons.iter().cloned();
    reasons.chain(graded).collect()
}

fn overall(results: &RunResults, unwritten: Option<u8>) -> String {
    let (result, exit_code) = (results.verdict.result, results.exit_code);
    let words = match (result, exit_code) {
        (None, _) => "no contract judged anything",
        (Some(Outcome::Met), _) => "every variant came as expected",
        (Some(Outcome::Violated), _) => "not as expected",
        (Some(Outcome::Inconclusive), exit::ERROR) => {
            "something failed, and what it was for is not judged"
        }
        (Some(Outcome::Inconclusive), _) => "the evidence does not tell",
    };
    let result = result.map_or_else(|| "as expected".to_owned(), |result| result.to_string());
    let said = format!("{result} ({words})");
    match unwritten {
        None => format!("{said}, exit code {exit_code}"),
        Some(code) => format!("{said}, but not every output could be written: exit code {code}"),
    }
}

/// The report for the page. Timelines come in the order given; some 60 ms of one run is a good length.
pub fn report(results: &RunResults, timelines: Vec<Timeline>) -> Report {
    let origin = match results.machine {
        Some(_) => Origin::Measured,
        None => Origin::Simulated,
    };
    let limits = Limits::of(results);
    let mut figures = vec![side_by_side(results, origin)];
    if !timelines.is_empty() {
        figures.push(stretches(timelines));
    }
    let variants = results.variants.iter();
    figures.extend(variants.map(|variant| Figure {
        key: variant.name.clone(),
        title: variant.name.clone(),
        about: about(variant),
        remarks: reasons(variant),
        charts: histograms::of(variant, &limits),
        side_by_side: true,
        tables: vec![facts(variant, origin)],
        ..Figure::default()
    }));
    figures.extend(skipped(results, origin));
    let here = crawled(results).map(|told| format!(" Here {told}."));
    figures.push(Figure {
        key: "disturbed".into(),
        title: "What “disturbed” means".into(),
        about: format!("{DISTURBED}{}", here.unwrap_or_default()),
        ..Figure::default()
    });
    figures.push(provenance(results, origin));
    let mut summary = vec![format!("{}: {}", heading(results), overall(results, None))];
    summary.extend(results.verdict.reasons.iter().cloned());
    summary.extend(results.notices.iter().cloned());
    Report {
        experiment: "",
        title: results.scenario.clone(),
        summary,
        circumstances: circumstances(results),
        figures,
        checks: checks(results),
    }
}

/// What became of a variant, where its devices work, and whether what is reserved is enforced.
fn about(variant: &VariantResults) -> String {
    let (outcome, placed) = (outcome(variant), placed(variant));
    let parts = [outcome, placed]
        .into_iter()
        .filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("; ")
}

const DISTURBED: &str = "A virtual machine, or firmware, stops a whole processor for milliseconds at times, and no account of the kernel \
    shows it. So on the live host a witness thread of the highest real-time priority wakes at the same instants as the co-thread, on the same \
    processor. Where it wakes more than 100 µs late, nobody on that processor could have run: what overlaps of what ran there is disturbed. Beside a reservation \
    by SCHED_DEADLINE, which outranks the witness, that is more than 1 ms besides what it may have waited for the budgets. So is the time in which a fixed piece of work, \
    done at each wake-up, takes more than twice as long as is usual: a throttled processor goes on and does next to nothing. It is counted and shown, and judged apart. If more than 1 % of the wake-ups \
    or of the time, whichever is more, is disturbed, the verdict is inconclusive, unless undisturbed evidence breaks a limit, or every limit holds of \
    what was disturbed too. The twin has no disturbances.";

/// What was expected of each variant, and whether it came so: of those that were to run and failed it is open.
fn checks(results: &RunResults) -> Vec<Check> {
    let failed = results.skipped.iter().filter(|one| one.has_failed);
    let failed = failed.map(|one| Check {
        claim: format!("{}: runs as declared", one.name),
        held: None,
        seen: one.reason.clone(),
    });
    let variants = results.variants.iter();
    variants.filter_map(check).chain(failed).collect()
}

/// None of a variant of which nothing is expected.
fn check(variant: &VariantResults) -> Option<Check> {
    let contracts = variant.contracts.iter();
    let contracts = contracts.filter(|one| one.expected != Expectation::Any);
    let contracts = contracts.map(|one| format!("{} {}", one.name, one.expected));
    let expected = contracts.chain(variant.expected_besides.iter().cloned());
    let mut claim = expected.collect::<Vec<_>>().join(", ");
    if claim.is_empty() {
        if variant.as_expected {
            return None;
        }
        claim.push_str("runs as declared");
    }
    let seen = match (variant.as_expected, variant.expected) {
        (true, Expectation::Any) => "as expected".to_owned(),
        (true, _) => format!("{}, as expected", judgement(variant, "")),
        (false, _) => variant.unexpected().collect::<Vec<_>>().join("; "),
    };
    Some(Check {
        claim: format!("{}: {claim}", variant.name),
        held: (variant.as_expected || !variant.is_open()).then_some(variant.as_expected),
        seen,
    })
}

fn circumstances(results: &RunResults) -> Vec<(&'static str, String)> {
    let mut told = vec![("scenario", results.file.clone())];
    if let Some(machine) = &results.machine {
        let none = |what: &Option<String>, none: &str| what.clone().unwrap_or_else(|| none.into());
        told.extend([
            (
                "processors",
                format!("{} × {}", machine.cpus, machine.cpu_model),
            ),
            ("kernel", machine.kernel.clone()),
            ("clock source", machine.clock_source.clone()),
            ("frequency governor", none(&machine.governor, "none")),
            ("hypervisor", none(&machine.hypervisor, "none seen")),
            (
                "steal time during the run",
                value::known_nanos(machine.steal_ns),
            ),
        ]);
        let speed = machine.speed.as_ref();
        told.extend(speed.map(|speed| ("speed", speed.words())));
    }
    told
}

fn side_by_side(results: &RunResults, origin: Origin) -> Figure {
    let variants = &results.variants;
    let row = |columns: &[Column], line: Line<'_>| -> Row {
        let cells = columns.iter().map(|column| column.value(&line));
        cells.map(|cell| origin.cell(cell?)).collect()
    };
    let explained = "The gap is the time between wake-ups of the periodic task. × control is the worst of p99, p99.9 and maximum, each the least of \
        its runs divided by the largest of the control’s, as it is judged. What is in brackets was seen where the machine stood still, and is not judged.";
    let has_gaps = legend(variants).is_some();
    let tables = tables(variants, PAGE_WIDTH)
        .into_iter()
        .map(|columns| Table {
            caption: String::new(),
            columns: columns.iter().map(|column| column.name.into()).collect(),
            rows: Line::all(variants, &columns)
                .map(|line| row(&columns, line))
                .collect(),
        });
    Figure {
        key: "variants".into(),
        title: "Variants side by side".into(),
        tables: tables.collect(),
        remarks: has_gaps
            .then(|| explained.into())
            .into_iter()
            .chain(surprise(variants))
            .collect(),
        ..Figure::default()
    }
}

fn stretches(timelines: Vec<Timeline>) -> Figure {
    Figure {
        key: "timelines".into(),
        title: "A stretch of a run".into(),
        about:
            "Ticks above a lane are events of the application’s own. Hover for names and durations."
                .into(),
        timelines,
        ..Figure::default()
    }
}

/// The variants that did not run.
fn skipped(results: &RunResults, origin: Origin) -> Option<Figure> {
    let rows = results.skipped.iter();
    let rows = rows.map(|skipped| {
        let words = [&skipped.name, &skipped.reason].map(|words| Value::Text(words.clone()));
        origin.row(words)
    });
    let table = Table::new(["variant", "why not"], rows);
    let any = !results.skipped.is_empty();
    any.then(|| Figure::of_table("not-run", "What did not run", table))
}
