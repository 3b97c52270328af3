//! A report on the terminal: what came of it, the comparisons, the checks. Plain text; drawings are in the page.

use super::view::{self, CellView, TableView, Word};
use super::{Figure, Report, Verdict};
use crate::layout::{Fit, Grid, TOGETHER, wrap_to};
use crate::plain;

/// The whole report in lines of so many characters, ending in a newline; what is no experiment claims nothing, and has no verdict. The same report gives the same bytes.
pub fn render(report: &Report, width: usize) -> String {
    let mut out = String::new();
    wrap_to(width, "", &report.title, &mut out);
    for (name, value) in &report.circumstances {
        wrap_to(width, &format!("  {name}: "), value, &mut out);
    }
    for paragraph in &report.summary {
        out.push('\n');
        wrap_to(width, "", paragraph, &mut out);
    }
    for figure in &report.figures {
        out.push('\n');
        render_figure(figure, width, &mut out);
    }
    if !(report.checks.is_empty() && report.not_judged.is_empty()) {
        out.push_str("\nChecks\n");
        render_checks(report, width, &mut out);
    }
    legend(report, width, &mut out);
    if !report.experiment.is_empty() {
        out.push_str(&format!("\n{}\n", verdict(report)));
    }
    out
}

/// How many checks held, and how many could not be judged, in a line.
pub(super) fn verdict(report: &Report) -> String {
    let (made, open) = (report.checks.len(), report.not_judged.len());
    let of_checks = match report.checks.iter().filter(|check| !check.held).count() {
        0 if made + open == 0 => "verdict: nothing was claimed".into(),
        0 if open > 0 => format!(
            "verdict: inconclusive, {made} of {} checks held",
            made + open
        ),
        0 => format!("verdict: every check held ({made})"),
        failed => format!("verdict: {failed} of {made} checks did not hold"),
    };
    let of_checks = match open {
        0 => of_checks,
        1 => format!("{of_checks}, one could not be judged"),
        _ => format!("{of_checks}, {open} could not be judged"),
    };
    let rows = report.figures.iter().flat_map(|figure| &figure.compared);
    let both = rows.flat_map(|row| [&row.verdict, &row.live_verdict]);
    match both
        .filter(|one| matches!(one, Verdict::Inconclusive(_)))
        .count()
    {
        0 => of_checks,
        1 => format!("{of_checks}, one value is inconclusive"),
        open => format!("{of_checks}, {open} values are inconclusive"),
    }
}

fn render_figure(figure: &Figure, width: usize, out: &mut String) {
    wrap_to(
        width,
        &format!("{}  ", plain(&figure.key)),
        &figure.title,
        out,
    );
    if !figure.about.is_empty() {
        wrap_to(width, "  ", &figure.about, out);
    }
    for table in &view::tables(figure) {
        out.push('\n');
        render_table(table, width, out);
    }
    if !figure.remarks.is_empty() {
        out.push('\n');
    }
    for remark in &figure.remarks {
        wrap_to(width, "  - ", remark, out);
    }
}

fn render_table(table: &TableView<'_>, width: usize, out: &mut String) {
    if !table.caption.is_empty() {
        wrap_to(width, "  ", table.caption, out);
    }
    let heads = table.heads.iter();
    let heads = heads.map(|(head, align)| ((*head).to_owned(), *align));
    let mut grid = Grid::new(heads.collect::<Vec<_>>(), Fit::Words(width));
    for row in &table.rows {
        grid.row(row.iter().map(cell).collect::<Vec<_>>());
    }
    out.push_str(&grid.render());
}

/// A value and the letter of its origin; words need none. What disagrees must be seen at a glance.
fn cell(cell: &CellView) -> String {
    if let Some((word, name)) = cell.judged {
        let name = match word {
            Word::Bad => name.to_uppercase(),
            Word::Good | Word::Open => name.to_owned(),
        };
        return described(&name, &cell.lines.concat());
    }
    let Some(origin) = cell.origin else {
        return cell.lines.first().map_or("-", String::as_str).to_owned();
    };
    let lines = cell.lines.iter().enumerate().map(|(index, line)| {
        // A number stays with its unit, and the lines below the first keep to its edge.
        let mark = if index == 0 {
            origin.letter()
        } else {
            TOGETHER
        };
        let line = line.replace('\u{202f}', "").replace(' ', "\u{a0}");
        format!("{line}{TOGETHER}{mark}")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// What something is, and why.
fn described(what: &str, why: &str) -> String {
    if why.is_empty() {
        what.to_owned()
    } else {
        format!("{what}: {why}")
    }
}

fn render_checks(report: &Report, width: usize, out: &mut String) {
    for check in &report.checks {
        let head = if check.held {
            "  held      "
        } else {
            "  NOT HELD  "
        };
        wrap_to(width, head, &described(&check.claim, &check.seen), out);
    }
    for open in &report.not_judged {
        let told = format!("{} ({})", described(&open.claim, &open.seen), open.why);
        wrap_to(width, "  not judged  ", &told, out);
    }
}

/// The letters that occur.
fn legend(report: &Report, width: usize, out: &mut String) {
    let entries = report.origins().into_iter().map(|origin| {
        let (letter, name) = (origin.letter(), origin.name());
        format!("{letter} {name} ({})", origin.meaning())
    });
    let entries: Vec<_> = entries.collect();
    if !entries.is_empty() {
        out.push('\n');
        wrap_to(width, "", &entries.join(", "), out);
    }
}
