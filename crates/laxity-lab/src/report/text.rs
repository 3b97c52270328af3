//! A report on the terminal: what came of it, the comparisons, the checks. Plain text of at most 120 columns; drawings are in the page.

use super::grid::{Align, Grid, TOGETHER};
use super::value::{self, ORIGINS};
use super::{Cell, Check, Compared, Figure, Report, Table, Value, Verdict};
use crate::layout::{printable, wrap};

/// The widest line, in characters.
pub const WIDTH: usize = super::grid::WIDTH;

/// The whole report, ending in a newline. The same report gives the same bytes.
#[must_use]
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
    if !figure.compared.is_empty() {
        out.push('\n');
        out.push_str(&compared(&figure.compared));
    }
    for table in &figure.tables {
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

/// A source of values and its heading.
pub(super) type Source = (&'static str, fn(&Compared) -> Option<&Cell>);

/// The sources of a comparison that have anything to say.
pub(super) fn sources(rows: &[Compared]) -> Vec<Source> {
    let all: [Source; 4] = [
        ("paper", |row| row.paper.as_ref()),
        ("twin", |row| row.twin.as_ref()),
        ("predicted", |row| row.predicted.as_ref()),
        ("live", |row| row.live.as_ref()),
    ];
    let there = all.into_iter();
    there
        .filter(|(_, cell)| rows.iter().any(|row| cell(row).is_some()))
        .collect()
}

fn compared(rows: &[Compared]) -> String {
    let sources = sources(rows);
    let is_judged = rows.iter().any(|row| row.verdict != Verdict::Alone);
    let mut heads = vec![(String::new(), Align::Left)];
    heads.extend(
        sources
            .iter()
            .map(|(name, _)| ((*name).to_owned(), Align::Right)),
    );
    if is_judged {
        heads.push(("verdict".into(), Align::Left));
    }
    let mut grid = Grid::new(heads);
    for row in rows {
        let mut cells = vec![row.quantity.clone()];
        cells.extend(sources.iter().map(|(_, source)| cell(source(row))));
        cells.push(judged(&row.verdict));
        grid.row(cells);
    }
    grid.render()
}

/// What disagrees must be seen at a glance.
fn judged(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Alone => String::new(),
        Verdict::Disagrees(why) => joined("DISAGREES", why),
        other => {
            let (name, why) = other.parts();
            joined(name, why)
        }
    }
}

fn joined(name: &str, why: &str) -> String {
    if why.is_empty() {
        name.to_owned()
    } else {
        format!("{name}: {why}")
    }
}

fn render_table(table: &Table, out: &mut String) {
    if !table.caption.is_empty() {
        wrap("  ", &table.caption, out);
    }
    let is_words = |column: usize| {
        let mut cells = table
            .rows
            .iter()
            .filter_map(|row| row.get(column)?.as_ref());
        cells.all(|cell| matches!(cell.value, Value::Text(_)))
    };
    let heads = table.columns.iter().enumerate().map(|(column, head)| {
        let align = if is_words(column) {
            Align::Left
        } else {
            Align::Right
        };
        (head.clone(), align)
    });
    let mut grid = Grid::new(heads.collect());
    for row in &table.rows {
        grid.row(row.iter().map(|entry| cell(entry.as_ref())).collect());
    }
    out.push_str(&grid.render());
}

/// A value and the letter of its origin; words need none.
fn cell(cell: Option<&Cell>) -> String {
    let Some(Cell { value, origin }) = cell else {
        return "-".into();
    };
    if let Value::Text(text) = value {
        return text.clone();
    }
    let mut lines = value::lines(value);
    for (index, line) in lines.iter_mut().enumerate() {
        // A number stays with its unit, and the lines below the first keep to its edge.
        let mark = if index == 0 {
            origin.letter()
        } else {
            TOGETHER
        };
        *line = line.replace('\u{202f}', "").replace(' ', "\u{a0}");
        line.extend([TOGETHER, mark]);
    }
    lines.join("\n")
}

fn render_check(check: &Check, out: &mut String) {
    let head = if check.held {
        "  held      "
    } else {
        "  NOT HELD  "
    };
    let text = if check.seen.is_empty() {
        check.claim.clone()
    } else {
        format!("{}: {}", check.claim, check.seen)
    };
    wrap(head, &text, out);
}

/// The letters that occur.
fn legend(report: &Report, out: &mut String) {
    let cells = report.figures.iter().flat_map(Figure::cells);
    let used: Vec<_> = cells.map(|cell| cell.origin).collect();
    let entries = ORIGINS.iter().filter(|origin| used.contains(origin));
    let entries: Vec<_> = entries
        .map(|origin| {
            format!(
                "{} {} ({})",
                origin.letter(),
                origin.name(),
                origin.meaning()
            )
        })
        .collect();
    if !entries.is_empty() {
        out.push('\n');
        wrap("", &entries.join(", "), out);
    }
}
