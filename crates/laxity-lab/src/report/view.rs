//! A report's tables as they are shown, on the terminal and in the page: comparisons, tables of their own, and checks.

use super::value;
use super::{Cell, Check, Compared, Figure, Origin, Row, Table, Value, Verdict};
use crate::layout::Align;

/// A table as it is shown.
pub(super) struct TableView<'a> {
    /// What it shows; may be empty.
    pub(super) caption: &'a str,
    /// The headings, and where the columns' text stands.
    pub(super) heads: Vec<(&'a str, Align)>,
    /// Where all values of several columns come from, if that is one place: it is told once.
    pub(super) origin: Option<Origin>,
    /// Where all values of a column come from, if that is one place, and not that of the whole table.
    pub(super) origins: Vec<Option<Origin>>,
    /// The rows, each as long as the headings.
    pub(super) rows: Vec<Vec<CellView>>,
}

/// A cell as it is shown: with no lines, there is nothing to say.
#[derive(Default)]
pub(super) struct CellView {
    /// A judgement in a word, and what kind of word it is.
    pub(super) judged: Option<(Word, &'static str)>,
    /// A value or words; words have no origin.
    pub(super) lines: Vec<String>,
    pub(super) origin: Option<Origin>,
    /// Its origin, where the heading of its column does not tell it.
    pub(super) badge: Option<Origin>,
    /// How it stands in the page: numbers at the right and whole, words in lines.
    pub(super) class: &'static str,
}

impl<'a> TableView<'a> {
    fn new(caption: &'a str, heads: Vec<(&'a str, Align)>, mut rows: Vec<Vec<CellView>>) -> Self {
        let column = |column: usize| {
            let cells = rows.iter().filter_map(move |row| row.get(column));
            cells.filter_map(|cell| cell.origin)
        };
        let mut origins: Vec<_> = (0..heads.len()).map(|one| same(column(one))).collect();
        let several = (0..heads.len()).filter(|one| column(*one).next().is_some());
        let whole = if several.count() > 1 {
            same((0..heads.len()).flat_map(column))
        } else {
            None
        };
        for row in &mut rows {
            for ((cell, (_, align)), told) in row.iter_mut().zip(&heads).zip(&origins) {
                cell.badge = cell.origin.filter(|_| told.is_none() && whole.is_none());
                cell.class = match (align, cell.origin) {
                    (_, Some(_)) => "",
                    (Align::Right, None) => "r",
                    (Align::Left, None) => "w",
                };
            }
        }
        if whole.is_some() {
            origins.fill(None);
        }
        Self {
            caption,
            heads,
            origin: whole,
            origins,
            rows,
        }
    }
}

/// The place that all of them come from.
fn same(mut origins: impl Iterator<Item = Origin>) -> Option<Origin> {
    let first = origins.next()?;
    origins.all(|origin| origin == first).then_some(first)
}

/// How a judgement looks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Good,
    Bad,
    Open,
}

impl Word {
    /// Its class in the page's style.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Open => "open",
        }
    }
}

impl CellView {
    fn words(words: &str) -> Self {
        let lines = vec![words.to_owned()];
        Self {
            lines,
            ..Self::default()
        }
    }

    fn judged(word: Word, name: &'static str, why: &str) -> Self {
        let judged = Some((word, name));
        Self {
            judged,
            ..Self::words(why)
        }
    }

    fn of(cell: Option<&Cell>) -> Self {
        let Some(Cell { value, origin }) = cell else {
            return Self::default();
        };
        let lines = value::lines_from(*origin, value);
        let origin = (!matches!(value, Value::Text(_))).then_some(*origin);
        Self {
            lines,
            origin,
            ..Self::default()
        }
    }

    fn verdict(verdict: &Verdict) -> Self {
        let (name, why) = verdict.parts();
        let word = match verdict {
            Verdict::Agrees(_) => Word::Good,
            Verdict::Disagrees(_) => Word::Bad,
            Verdict::Consistent(_) | Verdict::Inconclusive(_) => Word::Open,
            Verdict::Alone => return Self::words(""),
        };
        Self::judged(word, name, why)
    }
}

/// All tables of a figure: its comparisons first.
pub(super) fn tables(figure: &Figure) -> Vec<TableView<'_>> {
    let compared = (!figure.compared.is_empty()).then(|| compared(&figure.compared));
    let tables = figure.tables.iter().map(table);
    compared.into_iter().chain(tables).collect()
}

/// A source of values and its heading.
type Source = (&'static str, fn(&Compared) -> Option<&Cell>);

fn compared(rows: &[Compared]) -> TableView<'_> {
    let mut sources: Vec<Source> = vec![
        ("paper", |row| row.paper.as_ref()),
        ("twin", |row| row.twin.as_ref()),
        ("predicted", |row| row.predicted.as_ref()),
        ("live", |row| row.live.as_ref()),
    ];
    sources.retain(|(_, cell)| rows.iter().any(|row| cell(row).is_some()));
    let is_judged = rows.iter().any(|row| !row.verdict.is_alone());
    let is_judged_live = rows.iter().any(|row| !row.live_verdict.is_alone());
    let mut heads = vec![("", Align::Left)];
    heads.extend(sources.iter().map(|(name, _)| (*name, Align::Right)));
    heads.extend(is_judged.then_some(("verdict", Align::Left)));
    heads.extend(is_judged_live.then_some(("verdict, live", Align::Left)));
    let row = |row: &Compared| {
        let mut cells = vec![CellView::words(&row.quantity)];
        cells.extend(sources.iter().map(|(_, cell)| CellView::of(cell(row))));
        cells.extend(is_judged.then(|| CellView::verdict(&row.verdict)));
        cells.extend(is_judged_live.then(|| CellView::verdict(&row.live_verdict)));
        cells
    };
    TableView::new("", heads, rows.iter().map(row).collect())
}

fn table(table: &Table) -> TableView<'_> {
    let row = |row: &Row| row.iter().map(|cell| CellView::of(cell.as_ref())).collect();
    let rows: Vec<Vec<CellView>> = table.rows.iter().map(row).collect();
    let align = |column: usize| {
        let mut there = rows.iter().filter_map(|row| row.get(column));
        if there.all(|cell| cell.origin.is_none()) {
            Align::Left
        } else {
            Align::Right
        }
    };
    let heads = table.columns.iter().enumerate();
    let heads = heads.map(|(column, head)| (head.as_str(), align(column)));
    TableView::new(&table.caption, heads.collect(), rows)
}

/// The claims, whether they held, and what was seen.
pub(super) fn checks(checks: &[Check]) -> TableView<'_> {
    let row = |check: &Check| {
        let (word, name) = match check.held {
            Some(true) => (Word::Good, "held"),
            Some(false) => (Word::Bad, "not held"),
            None => (Word::Open, "open"),
        };
        let held = CellView::judged(word, name, "");
        [
            CellView::words(&check.claim),
            held,
            CellView::words(&check.seen),
        ]
        .into()
    };
    let heads = ["claim", "held", "seen"].map(|name| (name, Align::Left));
    TableView::new("", heads.into(), checks.iter().map(row).collect())
}
