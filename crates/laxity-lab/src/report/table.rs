//! The table on the terminal: a line a variant, then the verdicts. Plain text, at most 110 columns.

use std::borrow::Cow;
use std::collections::BTreeSet;

use laxity_model::verify::contract::{Expectation, Outcome};

use super::format;
use crate::evidence::histogram::GapJson;
use crate::evidence::results::{RunResults, VariantResults, VerdictJson};
use crate::evidence::subjects::{ModemFigures, PeriodicFigures};

/// The widest line, in characters.
pub const WIDTH: usize = 110;
/// Names are cut to this if the line would be too wide otherwise.
const NAME_WIDTH_MIN: usize = 6;
/// Between columns.
const GAP: &str = "  ";

/// What a line of the table is about: the first one of a variant, and one for each further component of a kind.
struct Line<'a> {
    variant: &'a VariantResults,
    is_first: bool,
    modem: Option<(&'a str, Cow<'a, ModemFigures>)>,
    task: Option<(&'a str, Cow<'a, PeriodicFigures>)>,
}

/// A column: its heading on two lines, whether it is text or numbers, which stand at the right, and its cells.
struct Column {
    heading: [&'static str; 2],
    is_text: bool,
    cell: fn(&Line<'_>) -> Option<String>,
}

const fn text(heading: [&'static str; 2], cell: fn(&Line<'_>) -> Option<String>) -> Column {
    Column {
        heading,
        is_text: true,
        cell,
    }
}

const fn number(heading: [&'static str; 2], cell: fn(&Line<'_>) -> Option<String>) -> Column {
    Column {
        is_text: false,
        ..text(heading, cell)
    }
}

const VARIANT: Column = text(["variant", ""], |line| {
    Some(if line.is_first {
        line.variant.name.clone()
    } else {
        String::new()
    })
});
const VERDICT: Column = text(["verdict", ""], |line| {
    Some(if line.is_first {
        judged(line.variant)
    } else {
        String::new()
    })
});
const MODEM: Column = text(["modem", ""], |line| {
    Some(line.modem.as_ref()?.0.to_owned())
});
const TASK: Column = text(["task", ""], |line| Some(line.task.as_ref()?.0.to_owned()));

/// What is shown of a modem.
const OF_MODEMS: [Column; 5] = [
    number(["transfer", "s"], |line| {
        let transfer = &line.modem()?.transfer;
        let took = format::transfer(transfer);
        Some(if transfer.completed && !transfer.checksum_ok {
            format!("{took} bad")
        } else {
            took
        })
    }),
    number(["lost or", "underrun"], |line| {
        Some(line.modem()?.lost().to_string())
    }),
    number(["pend.", "max"], |line| {
        Some(line.modem()?.samples_pending_max.to_string())
    }),
    number(["processing", "p50/max ms"], |line| {
        let took = &line.modem()?.processing_ns;
        let (p50, max) = took.p50.zip(took.max)?;
        Some(format!("{:.2}/{:.2}", p50 as f64 / 1e6, max as f64 / 1e6))
    }),
    number(["cpu", "%"], |line| {
        Some(format!("{:.1}", line.modem()?.cpu_share * 100.0))
    }),
];

/// What is shown of a periodic task.
const OF_TASKS: [Column; 4] = [
    number(["gap ms", "p99"], |line| {
        line.gap()?.all.p99.map(format::millis)
    }),
    number(["", "p99.9"], |line| {
        line.gap()?.all.p999.map(format::millis)
    }),
    number(["", "max*"], |line| {
        line.gap()?.undisturbed_max.map(format::millis)
    }),
    number(["x con-", "trol"], |line| {
        let ratios = line.task.as_ref()?.1.gap_ratios_ppm()?;
        ratios.into_iter().max().map(format::ratio)
    }),
];

impl<'a> Line<'a> {
    /// The lines of a variant: modems and tasks side by side, as far as there are any.
    fn of(variant: &'a VariantResults) -> Vec<Self> {
        let several = variant.modems().count().max(variant.periodic().count());
        let line = |number: usize| {
            let modem = variant.modems().nth(number);
            let modem = modem.map(|(name, modem)| (name, Cow::Borrowed(modem)));
            let absent = || ("", Cow::Owned(ModemFigures::absent()));
            let task = variant.periodic().nth(number);
            Self {
                variant,
                is_first: number == 0,
                modem: modem.or_else(|| (number == 0).then(absent)),
                task: task.map(|(name, task)| (name, Cow::Borrowed(task))),
            }
        };
        (0..several.max(1)).map(line).collect()
    }

    fn modem(&self) -> Option<&ModemFigures> {
        self.modem.as_ref().map(|(_, modem)| &**modem)
    }

    fn gap(&self) -> Option<&GapJson> {
        self.task.as_ref()?.1.cothread_gap_ns.as_ref()
    }
}

/// The columns that the components of these variants have.
fn columns(variants: &[VariantResults]) -> Vec<Column> {
    let most = |count: fn(&VariantResults) -> usize| variants.iter().map(count).max().unwrap_or(0);
    let modems = most(|variant| variant.modems().count());
    let tasks = most(|variant| variant.periodic().count());
    let mut columns = vec![VARIANT];
    columns.extend((modems > 1).then_some(MODEM));
    columns.extend((modems > 0).then_some(OF_MODEMS).into_iter().flatten());
    columns.extend((tasks > 1).then_some(TASK));
    columns.extend((tasks > 0).then_some(OF_TASKS).into_iter().flatten());
    columns.push(VERDICT);
    columns
}

/// What the gaps are of, if any are shown.
fn legend(variants: &[VariantResults]) -> Option<String> {
    let tasks = variants.iter().flat_map(VariantResults::periodic);
    let periods: BTreeSet<_> = tasks.map(|(_, task)| task.task_period_ns).collect();
    let whose = match Vec::from_iter(&periods)[..] {
        [] => return None,
        [Some(period)] if period % 1_000_000 == 0 => {
            format!("the {} ms co-thread", period / 1_000_000)
        }
        _ => "a periodic task".to_owned(),
    };
    Some(format!(
        "gap: between wake-ups of {whose}; max*: undisturbed; x control: the worst of the three"
    ))
}

/// The whole table, ending in a newline.
#[must_use]
pub fn render(results: &RunResults) -> String {
    let mut lines = vec![
        format!(
            "{} on {}, contract {}, seed {}",
            results.scenario, results.host, results.contract, results.seed
        ),
        String::new(),
    ];
    lines.extend(grid(&results.variants));
    if let Some(legend) = legend(&results.variants) {
        lines.extend([String::new(), legend]);
    }
    for variant in &results.variants {
        remarks(variant, &mut lines);
    }
    for skipped in &results.skipped {
        lines.push(String::new());
        wrap(
            &mut lines,
            "",
            &format!("{}: not run: {}", skipped.name, skipped.reason),
        );
    }
    for notice in &results.notices {
        wrap(&mut lines, "note: ", notice);
    }
    lines.push(String::new());
    overall(&results.verdict, results.exit_code, &mut lines);
    let mut text: String = lines
        .iter()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect();
    text.shrink_to_fit();
    text
}

/// The columns, each as wide as it must be.
fn grid(variants: &[VariantResults]) -> Vec<String> {
    let columns = columns(variants);
    let heading = |line: usize| -> Vec<String> {
        let headings = columns.iter().map(|column| column.heading[line]);
        headings.map(str::to_owned).collect()
    };
    let row = |line: Line<'_>| -> Vec<String> {
        let cells = columns.iter().map(|column| (column.cell)(&line));
        cells
            .map(|cell| cell.unwrap_or_else(|| "-".into()))
            .collect()
    };
    let rows: Vec<Vec<String>> = [heading(0), heading(1)]
        .into_iter()
        .chain(variants.iter().flat_map(Line::of).map(row))
        .collect();
    let mut widths = vec![0_usize; columns.len()];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let total = widths.iter().sum::<usize>() + GAP.len() * (columns.len() - 1);
    let mut excess = total.saturating_sub(WIDTH);
    // The verdict, which is the last column, is never cut.
    for (width, column) in widths.iter_mut().zip(&columns[..columns.len() - 1]) {
        let spare = width.saturating_sub(NAME_WIDTH_MIN);
        let cut = spare.min(excess) * usize::from(column.is_text);
        *width -= cut;
        excess -= cut;
    }
    let line = |row: &Vec<String>| {
        let cells: Vec<_> = row
            .iter()
            .zip(&widths)
            .zip(&columns)
            .map(|((cell, &width), column)| {
                if column.is_text {
                    format!("{:<width$}", cut(cell, width))
                } else {
                    format!("{cell:>width$}")
                }
            })
            .collect();
        cells.join(GAP)
    };
    rows.iter().map(line).collect()
}

fn cut(name: &str, width: usize) -> String {
    if name.chars().count() <= width {
        return name.into();
    }
    let mut short: String = name.chars().take(width - 1).collect();
    short.push('…');
    short
}

/// The outcome, and a mark where it is not what was expected.
fn judged(variant: &VariantResults) -> String {
    let mark = if variant.as_expected { "" } else { "!" };
    format!("{}{mark}", variant.verdict.result)
}

/// What must be said of a variant besides its line: why it is not met, and what is not enforced.
fn remarks(variant: &VariantResults, lines: &mut Vec<String>) {
    let met = variant.verdict.result == Outcome::Met;
    if met && variant.as_expected && variant.verdict.reasons.is_empty() {
        return;
    }
    let expectation = match (variant.as_expected, variant.expected) {
        (_, Expectation::Any) => String::new(),
        (true, _) => ", as expected".into(),
        (false, expected) => format!(", expected {}", format::expectation(expected)),
    };
    lines.push(String::new());
    lines.push(format!(
        "{}: {}{expectation}",
        variant.name, variant.verdict.result
    ));
    for reason in &variant.verdict.reasons {
        wrap(lines, "  - ", reason);
    }
    if let Some(reason) = &variant.grade_reason {
        wrap(lines, "  - ", &format!("unenforced: {reason}"));
    }
}

fn overall(verdict: &VerdictJson, exit_code: u8, lines: &mut Vec<String>) {
    let words = match verdict.result {
        Outcome::Met => "every variant came as expected",
        Outcome::Violated => "not as expected",
        Outcome::Inconclusive => "the evidence does not tell",
    };
    lines.push(format!(
        "verdict: {} ({words}), exit code {exit_code}",
        verdict.result
    ));
    for reason in &verdict.reasons {
        wrap(lines, "  - ", reason);
    }
}

/// Adds text behind a prefix, broken between words; the lines after the first are indented.
fn wrap(lines: &mut Vec<String>, prefix: &str, text: &str) {
    let mut line = prefix.to_string();
    let indent = " ".repeat(prefix.chars().count().max(2));
    let mut is_empty = true;
    for word in text.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(std::mem::replace(&mut line, indent.clone()));
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines.push(line);
}
