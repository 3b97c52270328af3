//! A report as one HTML page: opens offline, needs no script, prints, follows the reader's light or dark setting.

use std::collections::BTreeSet;

use askama::Template;

use super::text::{sources, verdict};
use super::value::{self, ORIGINS};
use super::{Cell, Compared, Figure, Mark, Origin, Report, Table, Value, Verdict, svg};

/// Strokes for dots in a whole page, so that it stays small however much was recorded.
const STROKES: usize = 9_000;
/// And in one series: never fewer, never more.
const STROKES_OF_SERIES: (usize, usize) = (250, 2_500);
/// A page with more figures than this has a table of contents.
const FIGURES_WITHOUT_CONTENTS: usize = 4;

/// The page. The same report gives the same bytes.
///
/// # Errors
///
/// None are known: the template is compiled in, and writing to memory does not fail.
pub fn render(report: &Report) -> Result<String, askama::Error> {
    let all = report.figures.iter().flat_map(|figure| &figure.charts);
    let dots = all.flat_map(|chart| &chart.series);
    let dots = dots.filter(|series| series.mark == Mark::Dots).count();
    let most = (STROKES / dots.max(1)).clamp(STROKES_OF_SERIES.0, STROKES_OF_SERIES.1);
    let mut taken = BTreeSet::new();
    let views = report.figures.iter().map(|figure| FigureView {
        figure,
        anchor: anchor(&figure.key, &mut taken),
        charts: figure
            .charts
            .iter()
            .map(|chart| (chart.caption.as_str(), svg::inline(chart, most)))
            .collect(),
        compared: (!figure.compared.is_empty()).then(|| compared(&figure.compared)),
        tables: figure.tables.iter().map(table).collect(),
    });
    let figures: Vec<_> = views.collect();
    let used: BTreeSet<Origin> = report
        .figures
        .iter()
        .flat_map(Figure::cells)
        .map(|cell| cell.origin)
        .collect();
    let page = Page {
        report,
        style: svg::STYLE,
        verdict: verdict(report).trim_start_matches("verdict: ").to_owned(),
        with_contents: figures.len() > FIGURES_WITHOUT_CONTENTS,
        figures,
        origins: ORIGINS
            .into_iter()
            .filter(|origin| used.contains(origin))
            .collect(),
        version: env!("CARGO_PKG_VERSION"),
    };
    page.render()
}

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    report: &'a Report,
    style: &'static str,
    verdict: String,
    with_contents: bool,
    figures: Vec<FigureView<'a>>,
    origins: Vec<Origin>,
    version: &'static str,
}

struct FigureView<'a> {
    figure: &'a Figure,
    anchor: String,
    /// Captions and drawings.
    charts: Vec<(&'a str, String)>,
    compared: Option<ComparedView<'a>>,
    tables: Vec<TableView<'a>>,
}

struct ComparedView<'a> {
    sources: Vec<&'static str>,
    is_judged: bool,
    rows: Vec<ComparedRow<'a>>,
}

struct ComparedRow<'a> {
    quantity: &'a str,
    cells: Vec<CellView>,
    /// The class, the word, and the reason.
    verdict: Option<(&'static str, &'static str, &'a str)>,
}

struct TableView<'a> {
    caption: &'a str,
    columns: &'a [String],
    rows: Vec<Vec<CellView>>,
}

/// A cell as text; nothing in it: a dash.
struct CellView {
    lines: Vec<String>,
    /// Words stand at the left and need no origin.
    is_words: bool,
    origin: Option<Origin>,
}

fn cell(cell: Option<&Cell>) -> CellView {
    let is_words = cell.is_some_and(|cell| matches!(cell.value, Value::Text(_)));
    CellView {
        lines: cell.map_or_else(|| vec!["–".into()], |cell| value::lines(&cell.value)),
        is_words,
        origin: cell.map(|cell| cell.origin).filter(|_| !is_words),
    }
}

fn compared(rows: &[Compared]) -> ComparedView<'_> {
    let sources = sources(rows);
    let row = |row: &'_ Compared| -> Vec<CellView> {
        sources
            .iter()
            .map(|(_, source)| cell(source(row)))
            .collect()
    };
    ComparedView {
        is_judged: rows.iter().any(|row| row.verdict != Verdict::Alone),
        rows: rows
            .iter()
            .map(|compared| ComparedRow {
                quantity: &compared.quantity,
                cells: row(compared),
                verdict: judged(&compared.verdict),
            })
            .collect(),
        sources: sources.iter().map(|(name, _)| *name).collect(),
    }
}

fn judged(verdict: &Verdict) -> Option<(&'static str, &'static str, &str)> {
    let class = match verdict {
        Verdict::Agrees(_) => "good",
        Verdict::Disagrees(_) => "bad",
        Verdict::Consistent(_) => "open",
        Verdict::Alone => return None,
    };
    let (word, why) = verdict.parts();
    Some((class, word, why))
}

fn table(table: &Table) -> TableView<'_> {
    let row = |row: &Vec<Option<Cell>>| row.iter().map(|entry| cell(entry.as_ref())).collect();
    TableView {
        caption: &table.caption,
        columns: &table.columns,
        rows: table.rows.iter().map(row).collect(),
    }
}

/// A name for links: what an address may hold, and nothing twice.
fn anchor(key: &str, taken: &mut BTreeSet<String>) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let mut name: String = key.chars().map(plain).collect();
    while !taken.insert(name.clone()) {
        name.push('-');
    }
    name
}
