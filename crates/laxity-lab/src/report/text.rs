//! A report on the terminal: what came of it, the comparisons, the checks. Plain text of at most 120 columns; drawings are in the page.

use super::view::{self, CellView, TableView, Word};
use super::{Check, Figure, Report};
use crate::layout::{Fit, Grid, TOGETHER, printable, wrap};

/// The widest line, in characters.
pub const WIDTH: usize = 120;

/// The whole report, ending in a newline. The same report gives the same bytes.
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    wrap("", &report.title, &mut out);
    for (name, value) in &report.circumstances {
        wrap(&format!("  {name}: "), value, &mut out);
    }
    for paragraph in &report.summary {
        out.push('\n');
        wrap("", paragraph, &mut out);
    }
    for figure in &report.figures {
        out.push('\n');
        render_figure(figure, &mut out);
    }
    if !report.checks.is_empty() {
        out.push_str("\nChecks\n");
        for check in &report.checks {
            render_check(check, &mut out);
        }
    }
    legend(report, &mut out);
    out.push('\n');
    out.push_str(&verdict(report));
    out.push('\n');
    out
}

/// How many checks held, in a line.
pub(super) fn verdict(report: &Report) -> String {
    let made = report.checks.len();
    match report.checks.iter().filter(|check| !check.held).count() {
        0 if made == 0 => "verdict: nothing was claimed".into(),
        0 => format!("verdict: every check held ({made})"),
        failed => format!("verdict: {failed} of {made} checks did not hold"),
    }
}

fn render_figure(figure: &Figure, out: &mut String) {
    wrap(&format!("{}  ", printable(&figure.key)), &figure.title, out);
    if !figure.about.is_empty() {
        wrap("  ", &figure.about, out);
    }
    for table in &view::tables(figure) {
        out.push('\n');
        render_table(table, out);
    }
    if !figure.remarks.is_empty() {
        out.push('\n');
    }
    for remark in &figure.remarks {
        wrap("  - ", remark, out);
    }
}

fn render_table(table: &TableView<'_>, out: &mut String) {
    if !table.caption.is_empty() {
        wrap("  ", table.caption, out);
    }
    let heads = table.heads.iter();
    let heads = heads.map(|(head, align)| ((*head).to_owned(), *align));
    let mut grid = Grid::new(heads.collect::<Vec<_>>(), Fit::Words(WIDTH));
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

fn render_check(check: &Check, out: &mut String) {
    let head = if check.held {
        "  held      "
    } else {
        "  NOT HELD  "
    };
    wrap(head, &described(&check.claim, &check.seen), out);
}

/// The letters that occur.
fn legend(report: &Report, out: &mut String) {
    let entries = report.origins().into_iter().map(|origin| {
        let (letter, name) = (origin.letter(), origin.name());
        format!("{letter} {name} ({})", origin.meaning())
    });
    let entries: Vec<_> = entries.collect();
    if !entries.is_empty() {
        out.push('\n');
        wrap("", &entries.join(", "), out);
    }
}
