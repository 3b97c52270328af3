//! What is wrong with a task-set file, where, and what would be right.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::scenario::Style;

/// Why a file is no task set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportError {
    /// The file's name, as it was given.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub cause: String,
    /// What would be right.
    pub remedy: String,
    /// The line's text.
    text: String,
    /// The place in `text`, in bytes, on character boundaries.
    place: Range<usize>,
}

impl ImportError {
    /// Several lines of text: cause, file with line and column, the line itself with the place marked, and the remedy.
    #[must_use]
    pub fn render(&self, style: Style) -> String {
        let snippet = Snippet::source(self.text.as_str())
            .line_start(self.line)
            .path(self.file.as_str())
            .annotation(AnnotationKind::Primary.span(self.place.clone()));
        let report: &[Group<'_>] = &[Level::ERROR
            .primary_title(self.cause.as_str())
            .element(snippet)
            .element(Level::HELP.message(self.remedy.as_str()))];
        match style {
            Style::Plain => Renderer::plain().render(report),
            Style::Coloured => Renderer::styled().render(report),
        }
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Style::Plain))
    }
}

impl std::error::Error for ImportError {}

/// An error on its way: small beside what is read.
pub(super) type Wrong = Box<ImportError>;

/// A file as it was read.
#[derive(Clone, Copy)]
pub(super) struct Source<'s> {
    pub(super) file: &'s str,
    pub(super) text: &'s str,
}

impl Source<'_> {
    /// An error about these bytes; several lines are shown at the first.
    pub(super) fn error(
        self,
        span: Range<usize>,
        cause: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Wrong {
        let start = self.text.floor_char_boundary(span.start);
        let line_start = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let rest = &self.text[line_start..];
        let line = rest.split('\n').next().unwrap_or(rest);
        let line = line.trim_end_matches('\r');
        let within = |at: usize| at.saturating_sub(line_start).min(line.len());
        let from = line.floor_char_boundary(within(start));
        let until = line.ceil_char_boundary(within(span.end).max(from));
        Box::new(ImportError {
            file: self.file.to_owned(),
            line: self.text[..line_start].matches('\n').count() + 1,
            column: line[..from].chars().count() + 1,
            cause: cause.into(),
            remedy: remedy.into(),
            text: line.to_owned(),
            place: from..until,
        })
    }

    /// The line, from 1, in which this byte is.
    pub(super) fn line_of(self, at: usize) -> usize {
        let at = self.text.floor_char_boundary(at);
        self.text[..at].matches('\n').count() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_characters_and_end_with_their_line() {
        let source = Source {
            file: "x.csv",
            text: "a\r\nµ,é\r\nb",
        };
        let at = source.text.find('é').unwrap_or(0);
        let found = source.error(at..100, "cause", "remedy");
        assert_eq!((found.line, found.column), (2, 3));
        assert_eq!(&found.text[found.place.clone()], "é");
        let beyond = source.error(500..501, "", "");
        assert_eq!((beyond.line, beyond.column), (3, 2));
    }
}
