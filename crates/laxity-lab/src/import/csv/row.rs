//! A line of a file, and where its fields stand.

use std::ops::Range;

use csv::StringRecord;

use crate::import::Wrong;
use crate::scenario::diagnostic::Source;

/// A line with the places of its fields.
pub(super) struct Row<'s> {
    source: Source<'s>,
    pub(super) record: StringRecord,
    /// Where its first field begins.
    start: usize,
}

impl<'s> Row<'s> {
    pub(super) fn new(source: Source<'s>, record: StringRecord) -> Self {
        let at = record.position().map_or(0, csv::Position::byte);
        let mut start = usize::try_from(at).unwrap_or(0).min(source.text.len());
        // The reader counts what it skipped before a record as part of it.
        loop {
            let rest = &source.text[start..];
            let blank = rest.len() - rest.trim_start_matches(['\r', '\n', '\u{feff}']).len();
            start += blank;
            if !source.text[start..].starts_with('#') {
                break;
            }
            let rest = &source.text[start..];
            start += rest.find('\n').unwrap_or(rest.len());
        }
        Self {
            source,
            record,
            start,
        }
    }

    /// The bytes of a field, quotes and all, without the blanks around it; of the line's end for one that is not there.
    fn place(&self, field: usize) -> Range<usize> {
        let text = &self.source.text[self.start..];
        let (mut index, mut from, mut quoted) = (0, 0, false);
        let mut end = text.len();
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                b'"' => quoted = !quoted,
                b',' if !quoted => {
                    if index == field {
                        end = at;
                        break;
                    }
                    index += 1;
                    from = at + 1;
                }
                b'\n' | b'\r' if !quoted => {
                    end = at;
                    break;
                }
                _ => {}
            }
        }
        if index < field {
            from = end;
        }
        let part = &text[from..end];
        let from = from + part.len() - part.trim_start().len();
        self.start + from..self.start + from + part.trim().len()
    }

    /// The line, from 1.
    pub(super) fn line(&self) -> usize {
        self.source.position(&(self.start..self.start)).0
    }

    pub(super) fn error(
        &self,
        field: usize,
        cause: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Wrong {
        self.source.error(self.place(field), cause, remedy)
    }
}
