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
        let origin = (!matches!(value, Value::Text(_))).then_some(*origin);
        Self {
            judged: None,
            lines: value::lines(value),
            origin,
        }
    }

    fn verdict(verdict: &Verdict) -> Self {
        let (name, why) = verdict.parts();
        let word = match verdict {
            Verdict::Agrees(_) => Word::Good,
            Verdict::Disagrees(_) => Word::Bad,
            Verdict::Consistent(_) => Word::Open,
            Verdict::Alone => return Self::words(""),
        };
        Self::judged(word, name, why)
    }

    /// Whether it is words, which stand at the left.
    pub(super) fn is_words(&self) -> bool {
        self.origin.is_none() && !self.lines.is_empty()
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
    let is_judged = rows.iter().any(|row| row.verdict != Verdict::Alone);
    let mut heads = vec![("", Align::Left)];
    heads.extend(sources.iter().map(|(name, _)| (*name, Align::Right)));
    heads.extend(is_judged.then_some(("verdict", Align::Left)));
    let row = |row: &Compared| {
        let mut cells = vec![CellView::words(&row.quantity)];
        cells.extend(sources.iter().map(|(_, cell)| CellView::of(cell(row))));
        cells.extend(is_judged.then(|| CellView::verdict(&row.verdict)));
        cells
    };
    TableView {
        caption: "",
        heads,
        rows: rows.iter().map(row).collect(),
    }
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
    TableView {
        caption: &table.caption,
        heads: heads.collect(),
        rows,
    }
}

/// The claims, whether they held, and what was seen.
pub(super) fn checks(checks: &[Check]) -> TableView<'_> {
    let row = |check: &Check| {
        let (word, name) = if check.held {
            (Word::Good, "held")
        } else {
            (Word::Bad, "not held")
        };
        let held = CellView::judged(word, name, "");
        [
            CellView::words(&check.claim),
            held,
            CellView::words(&check.seen),
        ]
        .into()
    };
    TableView {
        caption: "",
        heads: ["claim", "held", "seen"]
            .map(|name| (name, Align::Left))
            .into(),
        rows: checks.iter().map(row).collect(),
    }
}
