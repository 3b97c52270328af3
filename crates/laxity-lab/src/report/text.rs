//! A report on the terminal: what came of it, the comparisons, the checks. Plain text; drawings are in the page.

use laxity_model::verify::contract::Outcome;

use super::view::{self, CellView, TableView, Word};
use super::{Check, Figure, Report, Verdict};
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
    if !report.checks.is_empty() {
        out.push_str("\nChecks\n");
        for check in &report.checks {
            render_check(check, width, &mut out);
        }
    }
    legend(report, width, &mut out);
    if !report.experiment.is_empty() {
        out.push_str(&format!("\n{}\n", verdict(report)));
    }
    out
}

/// What becomes of all checks and values together: a check that did not hold is worse than one that is open. Where a value disagrees, or is inconclusive,
/// not all is well, whatever held.
pub(super) fn word(report: &Report) -> Word {
    match report.outcome() {
        Outcome::Violated => Word::Bad,
        Outcome::Met if values(report) == (0, 0) => Word::Good,
        Outcome::Met | Outcome::Inconclusive => Word::Open,
    }
}

/// How many values are inconclusive, and how many disagree.
fn values(report: &Report) -> (usize, usize) {
    let rows = report.figures.iter().flat_map(|figure| &figure.compared);
    let both = rows.flat_map(|row| [&row.verdict, &row.live_verdict]);
    both.fold((0, 0), |(open, differ), verdict| match verdict {
        Verdict::Inconclusive(_) => (open + 1, differ),
        Verdict::Disagrees(_) => (open, differ + 1),
        _ => (open, differ),
    })
}

/// How many checks held, in a line.
pub(super) fn verdict(report: &Report) -> String {
    let made = report.checks.len();
    let count = |held: Option<bool>| report.checks.iter().filter(|one| one.held == held).count();
    let is = |open: usize| if open == 1 { "is" } else { "are" };
    let of_checks = match (count(Some(false)), count(None)) {
        (0, 0) if made == 0 => "verdict: nothing was claimed".into(),
        (0, 0) => format!("verdict: every check held ({made})"),
        (0, open) => format!("verdict: {open} of {made} checks {} open", is(open)),
        (failed, 0) => format!("verdict: {failed} of {made} checks did not hold"),
        (failed, open) => format!(
            "verdict: {failed} of {made} checks did not hold, {open} {} open",
            is(open)
        ),
    };
    let (open, differ) = values(report);
    let open = match open {
        0 => String::new(),
        1 => ", one value is inconclusive".to_owned(),
        open => format!(", {open} values are inconclusive"),
    };
    let differ = match differ {
        0 => String::new(),
        1 => ", one value disagrees".to_owned(),
        differ => format!(", {differ} values disagree"),
    };
    of_checks + &open + &differ
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

fn render_check(check: &Check, width: usize, out: &mut String) {
    let head = match check.held {
        Some(true) => "  held      ",
        Some(false) => "  NOT HELD  ",
        None => "  open      ",
    };
    wrap_to(width, head, &described(&check.claim, &check.seen), out);
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
