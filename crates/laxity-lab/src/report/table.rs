//! The table on the terminal: a line a variant, then the verdicts. Plain text, at most 110 columns.

use laxity_model::verify::contract::{Expectation, Outcome};

use super::format;
use crate::evidence::results::{RunResults, VariantResults, VerdictJson};

/// The widest line, in characters.
pub const WIDTH: usize = 110;
/// Names of variants are cut to this if the line would be too wide otherwise.
const NAME_WIDTH_MIN: usize = 10;
/// Between columns.
const GAP: &str = "  ";

/// Headings over the columns, two lines.
const HEADINGS: [[&str; 2]; 11] = [
    ["variant", ""],
    ["transfer", "s"],
    ["lost or", "underrun"],
    ["pend.", "max"],
    ["processing", "p50/max ms"],
    ["cpu", "%"],
    ["gap ms", "p99"],
    ["", "p99.9"],
    ["", "max*"],
    ["x con-", "trol"],
    ["verdict", ""],
];
/// These columns are text; the others are numbers, which stand at the right.
const TEXT: [usize; 2] = [0, HEADINGS.len() - 1];

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
    lines.push(String::new());
    lines.push(
        "gap: between wake-ups of the 1 ms co-thread; max*: undisturbed; x control: the worst of the three"
            .into(),
    );
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
    let [upper, lower] = [0, 1].map(|line| HEADINGS.map(|h| h[line].to_string()));
    let rows: Vec<_> = [upper, lower]
        .into_iter()
        .chain(variants.iter().map(row))
        .collect();
    let mut widths = [0_usize; HEADINGS.len()];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let total = widths.iter().sum::<usize>() + GAP.len() * (HEADINGS.len() - 1);
    let excess = total.saturating_sub(WIDTH);
    widths[0] = widths[0].saturating_sub(excess).max(NAME_WIDTH_MIN);
    let line = |row: &[String; HEADINGS.len()]| {
        let cells: Vec<_> = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, &width))| {
                if TEXT.contains(&column) {
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

fn row(variant: &VariantResults) -> [String; HEADINGS.len()] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    let transfer = &variant.transfer;
    let took = format::transfer(transfer);
    let processing = &variant.processing_ns;
    let gap = variant.cothread_gap_ns.as_ref();
    let worst = variant.gap_ratios_ppm().and_then(|r| r.into_iter().max());
    [
        variant.name.clone(),
        if transfer.completed && !transfer.checksum_ok {
            format!("{took} bad")
        } else {
            took
        },
        variant
            .samples_lost
            .saturating_add(variant.samples_underrun)
            .to_string(),
        variant.samples_pending_max.to_string(),
        or_dash(
            processing
                .p50
                .zip(processing.max)
                .map(|(p50, max)| format!("{:.2}/{:.2}", p50 as f64 / 1e6, max as f64 / 1e6)),
        ),
        format!("{:.1}", variant.cpu_share * 100.0),
        or_dash(gap.and_then(|g| g.all.p99).map(format::millis)),
        or_dash(gap.and_then(|g| g.all.p999).map(format::millis)),
        or_dash(gap.and_then(|g| g.undisturbed_max).map(format::millis)),
        or_dash(worst.map(format::ratio)),
        judged(variant),
    ]
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
