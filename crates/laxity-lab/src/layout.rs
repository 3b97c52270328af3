//! Tables and paragraphs of plans: plain text of at most `WIDTH` columns.

use std::borrow::Cow;

/// The widest line, in characters.
pub(crate) const WIDTH: usize = 100;
/// Names are cut to so many characters.
const NAME_WIDTH: usize = 22;
/// Before a table's lines, and between its columns.
const MARGIN: &str = "  ";
const GAP: &str = "  ";

/// Where a column's text stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table with headings; a column with nothing in it is left out.
pub(crate) struct Grid<const N: usize> {
    heads: [(String, Align); N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Grid<N> {
    pub(crate) const fn new(heads: [(String, Align); N]) -> Self {
        Self {
            heads,
            rows: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, row: [String; N]) {
        self.rows.push(row);
    }

    pub(crate) fn render(&self) -> String {
        let columns: Vec<usize> = (0..N)
            .filter(|column| self.rows.iter().any(|row| !row[*column].is_empty()))
            .collect();
        let width = |column: usize| {
            let cells = self
                .rows
                .iter()
                .map(|row| cut(&row[column]).chars().count());
            cells
                .max()
                .unwrap_or(0)
                .max(self.heads[column].0.chars().count())
        };
        let widths: Vec<usize> = columns.iter().map(|column| width(*column)).collect();
        let mut text = String::new();
        let heads: Vec<String> = self.heads.iter().map(|(head, _)| head.clone()).collect();
        for row in std::iter::once(heads.as_slice()).chain(self.rows.iter().map(<[_; N]>::as_slice))
        {
            let mut line = MARGIN.to_owned();
            for (place, (column, width)) in columns.iter().zip(&widths).enumerate() {
                if place > 0 {
                    line.push_str(GAP);
                }
                let cell = cut(&row[*column]);
                let width = *width;
                line.push_str(&match self.heads[*column].1 {
                    Align::Left => format!("{cell:<width$}"),
                    Align::Right => format!("{cell:>width$}"),
                });
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// A text without what a terminal would obey: names come from files.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().any(char::is_control) {
        let shown = |c: char| if c.is_control() { '\u{fffd}' } else { c };
        return text.chars().map(shown).collect();
    }
    text.into()
}

/// A cell that is not too wide.
fn cut(cell: &str) -> String {
    let cell = printable(cell);
    if cell.chars().count() <= NAME_WIDTH {
        return cell.into_owned();
    }
    let mut short: String = cell.chars().take(NAME_WIDTH - 1).collect();
    short.push('…');
    short
}

/// A paragraph: a head, and the text behind it in lines that begin below its own beginning.
pub(crate) fn wrap(head: &str, text: &str, out: &mut String) {
    let indent = head.chars().count();
    let mut line = head.to_owned();
    let mut length = indent;
    for word in text.split_whitespace() {
        let word = &printable(word);
        let word_length = word.chars().count();
        if length > indent && length + 1 + word_length > WIDTH {
            out.push_str(line.trim_end());
            out.push('\n');
            line = " ".repeat(indent);
            length = indent;
        }
        if length > indent {
            line.push(' ');
            length += 1;
        }
        line.push_str(word);
        length += word_length;
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

/// Parts per million as per cent with one decimal, rounded; but what is more than the whole never looks like the whole.
pub(crate) fn load(ppm: u64) -> String {
    match ppm {
        1_000_001..1_000_500 => "more than 100 %".into(),
        _ => format!("{} %", percent(ppm)),
    }
}

/// Parts per million as per cent with one decimal, rounded.
pub(crate) fn percent(ppm: u64) -> String {
    let tenths = ppm.saturating_add(500) / 1_000;
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// The unit of all times of a table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Nanosecond,
    Microsecond,
    Millisecond,
}

impl Unit {
    /// So that the least of the times has digits.
    pub(crate) const fn for_least(nanos: u64) -> Self {
        match nanos {
            0..1_000 => Self::Nanosecond,
            1_000..10_000 => Self::Microsecond,
            _ => Self::Millisecond,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Nanosecond => "ns",
            Self::Microsecond => "us",
            Self::Millisecond => "ms",
        }
    }

    const fn size(self) -> u64 {
        match self {
            Self::Nanosecond => 1,
            Self::Microsecond => 1_000,
            Self::Millisecond => 1_000_000,
        }
    }

    /// Three decimals at most, rounded up: for what is at most so much.
    pub(crate) fn up(self, nanos: u64) -> String {
        let grain = (self.size() / 1_000).max(1);
        self.thousandths(nanos.div_ceil(grain), grain)
    }

    /// Three decimals at most, rounded down: for what is at least so much.
    pub(crate) fn down(self, nanos: u64) -> String {
        let grain = (self.size() / 1_000).max(1);
        self.thousandths(nanos / grain, grain)
    }

    fn thousandths(self, grains: u64, grain: u64) -> String {
        let whole = self.size() / grain;
        let (front, rest) = (grains / whole, grains % whole);
        if rest == 0 {
            return front.to_string();
        }
        format!("{front}.{}", format!("{rest:03}").trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_rounded_up_and_margins_down() {
        let unit = Unit::Millisecond;
        assert_eq!(unit.up(1_234_001), "1.235");
        assert_eq!(unit.down(1_234_999), "1.234");
        assert_eq!(unit.up(2_000_000), "2");
        assert_eq!(Unit::Microsecond.up(1_001), "1.001");
        assert_eq!(Unit::for_least(3).up(7), "7");
    }

    #[test]
    fn more_than_the_whole_does_not_look_like_it_and_names_are_not_obeyed() {
        assert_eq!(load(1_000_000), "100.0 %");
        assert_eq!(load(1_000_001), "more than 100 %");
        assert_eq!(load(1_000_500), "100.1 %");
        assert_eq!(cut("a\u{1b}[2J\nb"), "a\u{fffd}[2J\u{fffd}b");
    }

    #[test]
    fn paragraphs_keep_to_the_width_and_stay_below_their_beginning() {
        let mut text = String::new();
        wrap("note: ", &"words ".repeat(40), &mut text);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
        assert!(
            text.lines()
                .nth(1)
                .unwrap_or_default()
                .starts_with("      words")
        );
    }
}
