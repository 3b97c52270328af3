//! Tables and paragraphs of plain text.

use std::borrow::Cow;

/// The widest line of a paragraph, in characters.
pub(crate) const WIDTH: usize = 100;
/// Names in the tables of plans are cut to so many characters.
const NAME_WIDTH: usize = 22;
/// No column becomes narrower than this, if it had more.
const NARROWEST: usize = 6;
/// Before every line, and between columns.
const MARGIN: &str = "  ";

/// A space at which no line ends; shown as any other.
pub(crate) const TOGETHER: char = '\u{a0}';

/// Where a column's text stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Align {
    Left,
    Right,
}

/// How a table is made to fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fit {
    /// Cells are cut to [`NAME_WIDTH`], and columns with nothing in them are left out.
    Plan,
    /// In lines of so many characters, columns of text but for the last are cut, the first one first; no margin.
    Names(usize),
    /// In lines of so many characters, the widest columns are broken between words.
    Words(usize),
}

/// A table with headings; a line feed in a heading or a cell begins another line there.
pub(crate) struct Grid {
    heads: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
    fit: Fit,
}

impl Grid {
    /// A table without rows.
    pub(crate) fn new(heads: impl Into<Vec<(String, Align)>>, fit: Fit) -> Self {
        let (heads, rows) = (heads.into(), Vec::new());
        Self { heads, rows, fit }
    }

    /// Adds a row; what it lacks is empty, what it has too much is left out.
    pub(crate) fn row(&mut self, row: impl Into<Vec<String>>) {
        let mut row = row.into();
        row.resize(self.heads.len(), String::new());
        self.rows.push(row);
    }

    /// The lines, each ending in a line feed.
    pub(crate) fn render(&self) -> String {
        let heads: Vec<String> = self.heads.iter().map(|(head, _)| head.clone()).collect();
        let rows: Vec<&Vec<String>> = std::iter::once(&heads).chain(&self.rows).collect();
        let columns = self.columns(&rows);
        let mut text = String::new();
        for row in rows {
            let cells = columns.iter();
            let cells = cells.map(|(column, width)| self.lines(&row[*column], *width));
            let cells: Vec<Vec<String>> = cells.collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for line in 0..height {
                let parts = cells.iter().zip(&columns).map(|(cell, (column, width))| {
                    let part = cell.get(line).map_or("", String::as_str);
                    match self.heads[*column].1 {
                        Align::Left => format!("{part:<width$}"),
                        Align::Right => format!("{part:>width$}"),
                    }
                });
                let line = parts.collect::<Vec<_>>().join(MARGIN);
                text.push_str(self.margin());
                text.push_str(&line.replace(TOGETHER, " "));
                text.truncate(text.trim_end().len());
                text.push('\n');
            }
        }
        text
    }

    const fn margin(&self) -> &'static str {
        match self.fit {
            Fit::Names(_) => "",
            Fit::Plan | Fit::Words(_) => MARGIN,
        }
    }

    /// The columns that are shown, and how wide: as their widest cell, as far as the lines have room.
    fn columns(&self, rows: &[&Vec<String>]) -> Vec<(usize, usize)> {
        let is_shown = |column: &usize| {
            self.fit != Fit::Plan || self.rows.iter().any(|row| !row[*column].is_empty())
        };
        let natural = |column: usize| {
            let lines = rows.iter();
            let lines = lines.flat_map(|row| self.lines(&row[column], usize::MAX));
            lines.map(|line| line.chars().count()).max().unwrap_or(0)
        };
        let shown = (0..self.heads.len()).filter(is_shown);
        let mut columns: Vec<_> = shown.map(|column| (column, natural(column))).collect();
        let (width, gaps) = match self.fit {
            Fit::Plan => {
                let widths = columns.iter_mut().map(|(_, width)| width);
                widths.for_each(|width| *width = NAME_WIDTH.min(*width));
                return columns;
            }
            Fit::Names(width) | Fit::Words(width) => (width, columns.len().saturating_sub(1)),
        };
        let room = width.saturating_sub(gaps * MARGIN.len() + self.margin().len());
        let last = columns.len().saturating_sub(1);
        while columns.iter().map(|(_, width)| width).sum::<usize>() > room {
            let is_wide = |column: &&mut (usize, usize)| column.1 > NARROWEST;
            let is_name = |column: &&mut (usize, usize)| {
                column.0 != last && self.heads[column.0].1 == Align::Left
            };
            let mut wide = columns.iter_mut().filter(is_wide);
            let next = match self.fit {
                Fit::Names(_) => wide.find(is_name),
                _ => wide.max_by_key(|(_, width)| *width),
            };
            let Some((_, width)) = next else { break };
            *width -= 1;
        }
        columns
    }

    /// A cell in lines of at most `width` characters.
    fn lines(&self, cell: &str, width: usize) -> Vec<String> {
        match self.fit {
            Fit::Words(_) => broken(cell, width),
            Fit::Names(_) => cell.split('\n').map(|line| cut(line, width)).collect(),
            Fit::Plan => vec![cut(cell, width)],
        }
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

/// A text of at most so many characters.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let text = printable(text);
    if text.chars().count() <= width {
        return text.into_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// Words in lines of at most so many characters, but for longer words; one line if there is no word.
fn filled(words: impl Iterator<Item = String>, width: usize) -> Vec<String> {
    let (mut lines, mut line, mut length) = (Vec::new(), String::new(), 0);
    for word in words {
        let own = word.chars().count();
        if length > 0 && length + 1 + own > width {
            lines.push(std::mem::take(&mut line));
            length = 0;
        }
        if length > 0 {
            line.push(' ');
            length += 1;
        }
        line.push_str(&word);
        length += own;
    }
    lines.push(line);
    lines
}

/// A text in lines of at most so many characters; a longer word goes over several.
fn broken(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let parts = |word: &str| {
        let word: Vec<char> = printable(word).chars().collect();
        let parts = word.chunks(width).map(|part| part.iter().collect());
        parts.collect::<Vec<String>>()
    };
    let of_one = |paragraph: &str| filled(paragraph.split(' ').flat_map(parts), width);
    text.split('\n').flat_map(of_one).collect()
}

/// A paragraph of [`WIDTH`]: a head, and the text behind it in lines that begin below its own beginning.
pub(crate) fn wrap(head: &str, text: &str, out: &mut String) {
    wrap_to(WIDTH, head, text, out);
}

/// A paragraph as [`wrap`] makes it, in lines of at most `width` characters but for longer words.
pub(crate) fn wrap_to(width: usize, head: &str, text: &str, out: &mut String) {
    let indent = head.chars().count();
    let words = text.split_whitespace();
    let words = words.map(|word| printable(word).into_owned());
    let mut head = head.to_owned();
    for line in filled(words, width.saturating_sub(indent)) {
        out.push_str((head + &line).trim_end());
        out.push('\n');
        head = " ".repeat(indent);
    }
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
    fixed(ppm, 10_000, 1)
}

/// A number of units, rounded to so many decimals, without zeros at the end.
pub(crate) fn decimal(value: u64, unit: u64, decimals: u32) -> String {
    trimmed(&fixed(value, unit, decimals)).to_owned()
}

/// A number of units, rounded to so many decimals: half up.
pub(crate) fn fixed(value: u64, unit: u64, decimals: u32) -> String {
    let scale = 10_u128.pow(decimals);
    let unit = u128::from(unit);
    let scaled = (u128::from(value) * scale * 2 + unit) / (unit * 2);
    let (whole, rest) = (scaled / scale, scaled % scale);
    if decimals == 0 {
        return whole.to_string();
    }
    format!("{whole}.{rest:0width$}", width = decimals as usize)
}

/// Without zeros at the end.
pub(crate) fn trimmed(number: &str) -> &str {
    if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    }
}

/// A unit of time; several times that stand together have one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TimeUnit {
    Nano,
    Micro,
    Milli,
    Second,
}

impl TimeUnit {
    /// So that the least of the times has digits.
    pub(crate) const fn for_least(nanos: u64) -> Self {
        match nanos {
            0..1_000 => Self::Nano,
            1_000..10_000 => Self::Micro,
            _ => Self::Milli,
        }
    }

    /// The largest that is not above the largest of the times.
    pub(crate) const fn for_largest(nanos: u64) -> Self {
        match nanos {
            0..1_000 => Self::Nano,
            1_000..1_000_000 => Self::Micro,
            1_000_000..1_000_000_000 => Self::Milli,
            _ => Self::Second,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Micro => "µs",
            _ => self.ascii(),
        }
    }

    /// Its name where everything can be typed.
    pub(crate) const fn ascii(self) -> &'static str {
        match self {
            Self::Nano => "ns",
            Self::Micro => "us",
            Self::Milli => "ms",
            Self::Second => "s",
        }
    }

    /// In nanoseconds.
    pub(crate) const fn size(self) -> u64 {
        match self {
            Self::Nano => 1,
            Self::Micro => 1_000,
            Self::Milli => 1_000_000,
            Self::Second => 1_000_000_000,
        }
    }

    /// Three decimals at most, rounded up: for what is at most so much.
    pub(crate) fn up(self, nanos: u64) -> String {
        let grain = (self.size() / 1_000).max(1);
        decimal(nanos.div_ceil(grain), self.size() / grain, 3)
    }

    /// Three decimals at most, rounded down: for what is at least so much.
    pub(crate) fn down(self, nanos: u64) -> String {
        let grain = (self.size() / 1_000).max(1);
        decimal(nanos / grain, self.size() / grain, 3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bounds_are_rounded_up_and_margins_down() {
        let unit = TimeUnit::Milli;
        assert_eq!(unit.up(1_234_001), "1.235");
        assert_eq!(unit.down(1_234_999), "1.234");
        assert_eq!(unit.up(2_000_000), "2");
        assert_eq!(TimeUnit::Micro.up(1_001), "1.001");
        assert_eq!(TimeUnit::for_least(3).up(7), "7");
    }

    #[test]
    fn more_than_the_whole_does_not_look_like_it_and_names_are_not_obeyed() {
        assert_eq!(load(1_000_000), "100.0 %");
        assert_eq!(load(1_000_001), "more than 100 %");
        assert_eq!(load(1_000_500), "100.1 %");
        assert_eq!(cut("a\u{1b}[2J\nb", 22), "a\u{fffd}[2J\u{fffd}b");
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

    proptest! {
        #[test]
        fn lines_keep_to_the_width_and_no_character_is_lost(
            rows in prop::collection::vec(prop::collection::vec("[a-z ]{0,90}", 5), 1..6),
        ) {
            let mut grid = Grid::new(vec![(String::new(), Align::Left); 5], Fit::Words(120));
            rows.iter().for_each(|row| grid.row(row.clone()));
            let text = grid.render();
            for line in text.lines() {
                prop_assert!(line.chars().count() <= 120, "{line}");
            }
            let sorted = |text: &str| {
                let mut letters: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
                letters.sort_unstable();
                letters
            };
            prop_assert_eq!(sorted(&text), sorted(&rows.concat().concat()));
        }
    }

    #[test]
    fn cells_have_lines_and_control_characters_are_not_obeyed() {
        let heads = vec![("a".into(), Align::Left), ("b".into(), Align::Right)];
        let mut grid = Grid::new(heads, Fit::Words(120));
        grid.row(vec!["x\u{1b}[2J".into(), "1\n22".into()]);
        assert_eq!(
            grid.render(),
            "  a       b\n  x\u{fffd}[2J   1\n         22\n"
        );
    }
}
