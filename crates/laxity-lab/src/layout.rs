//! Tables and paragraphs of plain text.

use std::collections::BTreeSet;

use crate::plain;

/// Names are not cut to fewer characters, if the table can be told in parts instead.
const NAME_LEAST: usize = 16;
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
    /// In lines of so many characters, columns of text are cut; no margin.
    Names(usize),
    /// In lines of so many characters, columns of text are broken between words.
    Words(usize),
}

/// A column.
#[derive(Clone, Copy)]
struct Column {
    /// Which of all.
    index: usize,
    /// In characters.
    width: usize,
    /// It becomes no narrower, if there is another way.
    least: usize,
}

/// Takes from the widest column that is wider than its least width, until all fit into the room or none is.
fn narrow(columns: &mut [Column], room: usize, least: impl Fn(&Column) -> usize) {
    while columns.iter().map(|column| column.width).sum::<usize>() > room {
        let wide = columns
            .iter_mut()
            .filter(|column| column.width > least(column));
        let Some(widest) = wide.max_by_key(|column| column.width) else {
            break;
        };
        widest.width -= 1;
    }
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

    /// The lines, each ending in a line feed. A table that is too wide is told in parts below each other, each with the columns again that name its rows.
    pub(crate) fn render(&self) -> String {
        let heads: Vec<String> = self.heads.iter().map(|(head, _)| head.clone()).collect();
        let rows: Vec<&Vec<String>> = std::iter::once(&heads).chain(&self.rows).collect();
        let parts = self.parts(&self.columns(&rows)).into_iter();
        let parts = parts.map(|part| self.render_part(&rows, &part));
        parts.collect::<Vec<_>>().join("\n")
    }

    fn render_part(&self, rows: &[&Vec<String>], columns: &[Column]) -> String {
        let mut text = String::new();
        for row in rows {
            let cells = columns.iter();
            let cells = cells.map(|column| self.lines(&row[column.index], column.width));
            let cells: Vec<Vec<String>> = cells.collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for line in 0..height {
                let parts = cells.iter().zip(columns).map(|(cell, column)| {
                    let part = cell.get(line).map_or("", String::as_str);
                    let width = column.width;
                    match self.heads[column.index].1 {
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
            Fit::Words(_) => MARGIN,
        }
    }

    /// The columns, as wide as their widest cell.
    fn columns(&self, rows: &[&Vec<String>]) -> Vec<Column> {
        let column = |index: usize| {
            let lines = rows.iter();
            let lines = lines.flat_map(|row| self.lines(&row[index], usize::MAX));
            let lines: Vec<String> = lines.collect();
            let widest = |parts: &mut dyn Iterator<Item = &str>| {
                parts.map(|part| part.chars().count()).max().unwrap_or(0)
            };
            let width = widest(&mut lines.iter().map(String::as_str));
            let least = match (self.fit, self.heads[index].1) {
                // A number is told whole, and what a table ends in.
                (_, Align::Right) => width,
                (Fit::Names(_), _) if index + 1 == self.heads.len() => width,
                (Fit::Words(_), Align::Left) => {
                    let words = &mut lines.iter().flat_map(|line| line.split(' '));
                    widest(words).max(NARROWEST)
                }
                (Fit::Names(_), Align::Left) => NAME_LEAST,
            };
            Column {
                index,
                width,
                least: least.min(width),
            }
        };
        (0..self.heads.len()).map(column).collect()
    }

    /// How many of the first columns name a row: as many as tell the rows apart, or the first alone where none do or they take more than half of the room beside
    /// another. An empty cell is as the one above: a name that several rows have may stand on the first of them alone.
    fn names(&self, columns: &[Column], room: impl Fn(usize) -> usize) -> usize {
        let tell_apart = |names: &usize| {
            let mut last = vec![""; *names];
            let rows = self.rows.iter().map(|row| {
                let told = last
                    .iter_mut()
                    .zip(row)
                    .filter(|(_, cell)| !cell.is_empty());
                told.for_each(|(last, cell)| *last = cell);
                last.clone()
            });
            rows.collect::<BTreeSet<_>>().len() == self.rows.len()
        };
        let names = (1..columns.len()).find(tell_apart).unwrap_or(1);
        let least: usize = columns.iter().take(names).map(|column| column.least).sum();
        if least > room(names + 1) / 2 {
            1
        } else {
            names
        }
    }

    /// The columns in as few parts as have room, each part beginning with those that name a row. Where there is too little room, the widest column
    /// that may be narrower is.
    fn parts(&self, columns: &[Column]) -> Vec<Vec<Column>> {
        let (Fit::Names(width) | Fit::Words(width)) = self.fit;
        let room = |columns: usize| {
            let gaps = columns.saturating_sub(1);
            width.saturating_sub(gaps * MARGIN.len() + self.margin().len())
        };
        if columns.is_empty() {
            return Vec::new();
        }
        let (names, others) = columns.split_at(self.names(columns, room));
        let mut parts = vec![names.to_vec()];
        for column in others {
            let part = parts.last_mut().expect("there is one");
            let least: usize = part.iter().map(|column| column.least).sum();
            if part.len() == names.len() || least + column.least <= room(part.len() + 1) {
                part.push(*column);
            } else {
                parts.push([names, &[*column]].concat());
            }
        }
        for part in &mut parts {
            let room = room(part.len());
            narrow(part, room, |column| column.least);
            // What nothing else can be done about.
            narrow(part, room, |_| NARROWEST);
        }
        parts
    }

    /// A cell in lines of at most `width` characters.
    fn lines(&self, cell: &str, width: usize) -> Vec<String> {
        match self.fit {
            Fit::Words(_) => broken(cell, width),
            Fit::Names(_) => cell.split('\n').map(|line| cut(line, width)).collect(),
        }
    }
}

/// A text of at most so many characters.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let text = plain(text);
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

/// A word in parts of at most so many characters.
fn parts(word: &str, width: usize) -> Vec<String> {
    let word: Vec<char> = plain(word).chars().collect();
    let parts = word.chunks(width.max(1));
    parts.map(|part| part.iter().collect()).collect()
}

/// A text in lines of at most so many characters; a longer word goes over several.
fn broken(text: &str, width: usize) -> Vec<String> {
    let of_one = |paragraph: &str| {
        let words = paragraph.split(' ').flat_map(|word| parts(word, width));
        filled(words, width)
    };
    text.split('\n').flat_map(of_one).collect()
}

/// A paragraph in lines of at most `width` characters: a head, and the text behind it in lines that begin below its own beginning.
pub(crate) fn wrap_to(width: usize, head: &str, text: &str, out: &mut String) {
    // A name may stand there.
    let mut head = cut(head, width * 3 / 4);
    let indent = head.chars().count();
    let width = width.saturating_sub(indent);
    let words = text.split_whitespace();
    for line in filled(words.flat_map(|word| parts(word, width)), width) {
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

/// Two of them, with as many decimals as tell them apart.
pub(crate) fn percents(both: [u64; 2]) -> [String; 2] {
    let with = |decimals| both.map(|ppm| fixed(ppm, 10_000, decimals));
    let apart = |[one, other]: &[String; 2]| one != other || both[0] == both[1];
    (1..4).map(with).find(apart).unwrap_or_else(|| with(4))
}

/// A number of units, rounded to so many decimals, without zeros at the end.
pub(crate) fn decimal(value: u64, unit: u64, decimals: u32) -> String {
    trimmed(&fixed(value, unit, decimals)).to_owned()
}

/// A number of units, rounded to so many decimals: half up.
pub fn fixed(value: u64, unit: u64, decimals: u32) -> String {
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
        assert_eq!(cut("a\u{1b}[2J\nb", 22), r"a\u{1b}[2J\nb");
    }

    #[test]
    fn paragraphs_keep_to_the_width_and_stay_below_their_beginning() {
        let mut text = String::new();
        wrap_to(80, "note: ", &"words ".repeat(40), &mut text);
        assert!(text.lines().all(|line| line.chars().count() <= 80));
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
            // The first column would be told again in each part.
            let mut grid = Grid::new(vec![(String::new(), Align::Left); 6], Fit::Words(120));
            rows.iter().for_each(|row| grid.row([vec![String::new()], row.clone()].concat()));
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
    fn a_table_that_is_too_wide_is_told_in_parts_and_no_number_is_broken() {
        let mut heads = vec![("name".to_owned(), Align::Left)];
        heads.extend((1..=9).map(|n| (format!("column {n}"), Align::Right)));
        for fit in [Fit::Names(80), Fit::Words(80)] {
            let mut grid = Grid::new(heads.clone(), fit);
            let numbers = (1..=9).map(|n| format!("{n}23 456.789"));
            let row = ["a-name-of-some-length".to_owned()].into_iter();
            grid.row(row.chain(numbers).collect::<Vec<_>>());
            let text = grid.render();
            assert!(
                text.lines().all(|line| line.chars().count() <= 80),
                "{text}"
            );
            assert_eq!(text.matches("name  ").count(), 3, "{text}");
            assert!(
                (1..=9).all(|n| text.contains(&format!("{n}23 456.789"))),
                "{text}"
            );
        }
    }

    #[test]
    fn each_part_of_a_table_tells_its_rows_apart_also_where_a_name_stands_once() {
        let mut heads = ["variant", "flow"]
            .map(|head| (head.to_owned(), Align::Left))
            .to_vec();
        heads.extend((1..=9).map(|n| (format!("column {n}"), Align::Right)));
        for is_once in [false, true] {
            let mut grid = Grid::new(heads.clone(), Fit::Names(80));
            for row in 0..4 {
                let variant = ["late-demultiplexing", "early-demultiplexing"][row / 2];
                let variant = if is_once && row % 2 == 1 { "" } else { variant };
                let flow = ["left-video-camera", "right-video-camera"][row % 2];
                let numbers = (1..=9).map(|n| format!("{n}23.{row}"));
                let names = [variant, flow].map(str::to_owned).into_iter();
                grid.row(names.chain(numbers).collect::<Vec<_>>());
            }
            let text = grid.render();
            let told = ["variant", "left-video", "right-video"].map(|one| text.matches(one));
            assert_eq!(told.map(Iterator::count), [3, 6, 6], "{text}");
        }
    }

    #[test]
    fn cells_have_lines_and_control_characters_are_not_obeyed() {
        let heads = vec![("a".into(), Align::Left), ("b".into(), Align::Right)];
        let mut grid = Grid::new(heads, Fit::Words(120));
        grid.row(vec!["x\u{1b}[2J".into(), "1\n22".into()]);
        assert_eq!(
            grid.render(),
            "  a            b\n  x\\u{1b}[2J   1\n              22\n"
        );
    }
}
