//! Tables of plain text whose columns are not known beforehand: at most [`WIDTH`] columns wide, cells broken between words.

use crate::layout::printable;

/// The widest line, in characters.
pub(super) const WIDTH: usize = 120;
/// Before every line, and between its columns.
const MARGIN: &str = "  ";
const GAP: &str = "  ";
/// No column becomes narrower than this, if it had more.
const NARROWEST: usize = 6;

/// A space at which no line ends; shown as any other.
pub(super) const TOGETHER: char = '\u{a0}';

/// Where a column's text stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Align {
    Left,
    Right,
}

/// A table with a heading; a line feed in a cell begins another line there.
pub(super) struct Grid {
    heads: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    pub(super) const fn new(heads: Vec<(String, Align)>) -> Self {
        Self {
            heads,
            rows: Vec::new(),
        }
    }

    /// Adds a row; what it lacks is empty, what it has too much is left out.
    pub(super) fn row(&mut self, mut row: Vec<String>) {
        row.resize(self.heads.len(), String::new());
        self.rows.push(row);
    }

    /// The lines, each ending in a line feed.
    pub(super) fn render(&self) -> String {
        let heads: Vec<String> = self.heads.iter().map(|(head, _)| head.clone()).collect();
        let rows: Vec<&Vec<String>> = std::iter::once(&heads).chain(&self.rows).collect();
        let widths = self.widths(&rows);
        let mut text = String::new();
        for row in rows {
            let cells: Vec<Vec<String>> = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| broken(cell, *width))
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for line in 0..height {
                let parts = cells.iter().zip(&self.heads).zip(&widths);
                let parts = parts.map(|((cell, (_, align)), &width)| {
                    let part = cell.get(line).map_or("", String::as_str);
                    match align {
                        Align::Left => format!("{part:<width$}"),
                        Align::Right => format!("{part:>width$}"),
                    }
                });
                let line = parts.collect::<Vec<_>>().join(GAP);
                text.push_str(MARGIN);
                text.push_str(&line.replace(TOGETHER, " "));
                text.truncate(text.trim_end().len());
                text.push('\n');
            }
        }
        text
    }

    /// As wide as the widest cell; where that is too much for a line, the widest column gives way, again and again.
    fn widths(&self, rows: &[&Vec<String>]) -> Vec<usize> {
        let natural = |column: usize| {
            let lines = rows.iter().flat_map(|row| row[column].split('\n'));
            lines.map(|line| line.chars().count()).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..self.heads.len()).map(natural).collect();
        let gaps = GAP.len() * widths.len().saturating_sub(1) + MARGIN.len();
        while widths.iter().sum::<usize>() + gaps > WIDTH {
            match widths.iter_mut().max() {
                Some(widest) if *widest > NARROWEST => *widest -= 1,
                _ => break,
            }
        }
        widths
    }
}

/// A cell in lines of at most `width` characters.
fn broken(cell: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    for paragraph in cell.split('\n') {
        let mut line = String::new();
        let mut length = 0;
        for word in paragraph.split(' ').filter(|word| !word.is_empty()) {
            let word: Vec<char> = printable(word).chars().collect();
            for part in word.chunks(width) {
                if length > 0 && length + 1 + part.len() > width {
                    lines.push(std::mem::take(&mut line));
                    length = 0;
                }
                if length > 0 {
                    line.push(' ');
                    length += 1;
                }
                line.extend(part);
                length += part.len();
            }
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lines_keep_to_the_width_and_no_character_is_lost(
            rows in prop::collection::vec(prop::collection::vec("[a-z ]{0,90}", 5), 1..6),
        ) {
            let mut grid = Grid::new(vec![(String::new(), Align::Left); 5]);
            rows.iter().for_each(|row| grid.row(row.clone()));
            let text = grid.render();
            for line in text.lines() {
                prop_assert!(line.chars().count() <= WIDTH, "{line}");
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
        let mut grid = Grid::new(vec![("a".into(), Align::Left), ("b".into(), Align::Right)]);
        grid.row(vec!["x\u{1b}[2J".into(), "1\n22".into()]);
        assert_eq!(
            grid.render(),
            "  a       b\n  x\u{fffd}[2J   1\n         22\n"
        );
    }
}
