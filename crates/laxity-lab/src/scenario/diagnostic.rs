//! What is wrong with a file that somebody wrote (a scenario, a task set), where, and what would be right.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use strsim::osa_distance;

use crate::plain::{plain, steers};

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// The file cannot be used; nothing is started.
    Error,
    /// The file means what it says, but maybe not what its author thinks.
    Note,
}

/// One finding in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
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

/// Whether a rendered diagnostic has terminal colours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// ASCII text only.
    Plain,
    /// With ANSI escapes.
    Coloured,
}

/// A file as it was read: finds the line and column of a place.
#[derive(Clone, Copy)]
pub(crate) struct Source<'s> {
    pub(crate) file: &'s str,
    pub(crate) text: &'s str,
}

impl<'s> Source<'s> {
    /// Where the line begins in which the span begins, and its text.
    fn line(self, span: &Range<usize>) -> (usize, &'s str) {
        let start = self
            .text
            .floor_char_boundary(span.start.min(self.text.len()));
        let line_start = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let rest = &self.text[line_start..];
        let line = rest.split('\n').next().unwrap_or(rest);
        (line_start, line.trim_end_matches('\r'))
    }

    /// The text of the line in which the span begins.
    pub(super) fn line_of(self, span: &Range<usize>) -> &'s str {
        self.line(span).1
    }

    /// The line and the column at which the span begins, both from 1.
    pub(crate) fn position(self, span: &Range<usize>) -> (usize, usize) {
        let (line_start, text) = self.line(span);
        let from = span.start.saturating_sub(line_start).min(text.len());
        let before = &text[..text.floor_char_boundary(from)];
        let line = self.text[..line_start].matches('\n').count() + 1;
        (line, before.chars().count() + 1)
    }

    /// An error about the bytes in `span`, boxed: small beside what is read.
    pub(crate) fn error(
        self,
        span: Range<usize>,
        cause: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Box<Diagnostic> {
        let (cause, remedy) = (cause.into(), remedy.into());
        Box::new(self.diagnostic(Severity::Error, &span, &cause, &remedy))
    }

    /// A finding about the bytes in `span`; a span over several lines is shown at its first.
    pub(super) fn diagnostic(
        self,
        severity: Severity,
        span: &Range<usize>,
        cause: &str,
        remedy: &str,
    ) -> Diagnostic {
        let (line_start, text) = self.line(span);
        let (line, column) = self.position(span);
        let within = |at: usize| at.saturating_sub(line_start).min(text.len());
        let from = text.floor_char_boundary(within(span.start));
        let until = text.ceil_char_boundary(within(span.end).max(from));
        Diagnostic {
            severity,
            file: plain(self.file).into_owned(),
            line,
            column,
            cause: plain(cause).into_owned(),
            remedy: plain(remedy).into_owned(),
            text: text.to_owned(),
            place: from..until,
        }
    }
}

impl Diagnostic {
    /// File with line and column, cause and remedy, where there is no room for more.
    pub fn in_one_line(&self) -> String {
        let Self {
            file, line, column, ..
        } = self;
        format!("{file}:{line}:{column}: {}; {}", self.cause, self.remedy)
    }

    /// Several lines of text: cause, file with line and column, the line itself with the place marked, and the remedy.
    pub fn render(&self, style: Style) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Note => Level::NOTE,
        };
        let [from, until] =
            [self.place.start, self.place.end].map(|at| excerpt(&self.text[..at]).len());
        let snippet = Snippet::source(excerpt(&self.text))
            .line_start(self.line)
            .path(self.file.as_str())
            .annotation(AnnotationKind::Primary.span(from..until));
        let report: &[Group<'_>] = &[level
            .primary_title(self.cause.as_str())
            .element(snippet)
            .element(Level::HELP.message(self.remedy.as_str()))];
        match style {
            Style::Plain => Renderer::plain().render(report),
            Style::Coloured => Renderer::styled().render(report),
        }
    }
}

/// A line of the file, or a part of it, as it may be shown. The renderer makes pictures of ASCII's controls, and knows no others.
fn excerpt(text: &str) -> String {
    let shown = |c: char| {
        if !c.is_ascii() && steers(c) {
            '\u{fffd}'
        } else {
            c
        }
    };
    text.chars().map(shown).collect()
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Style::Plain))
    }
}

impl std::error::Error for Diagnostic {}

/// Words longer than this are not compared: the comparison costs their product.
const LONGEST_COMPARED: usize = 64;

/// The candidate most like `word`, if one is like enough to be what was meant.
pub(crate) fn nearest<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    // A slip or two in a short word, a third of a long one.
    let characters = word.chars().count();
    let allowed = (characters / 3).clamp(1, 4);
    if word.len() > LONGEST_COMPARED {
        return None;
    }
    let word = word.to_ascii_lowercase();
    let short = candidates.into_iter();
    let short = short.filter(|name| name.len() <= LONGEST_COMPARED);
    // Those that differ more in length are no nearer than that, and need no comparison.
    let short = short.filter(|name| name.chars().count().abs_diff(characters) <= allowed);
    let distances = short.map(|name| (osa_distance(&word, &name.to_ascii_lowercase()), name));
    let (least, name) = distances.min_by_key(|(distance, _)| *distance)?;
    (least <= allowed).then_some(name)
}

/// The names as a sentence has them: "`a`, `b` or `c`".
pub(super) fn alternatives<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        None => "nothing".to_owned(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let names = ["processor", "priority", "period"];
        assert_eq!(nearest("procesor", names), Some("processor"));
        assert_eq!(nearest("Period", names), Some("period"));
        assert_eq!(nearest("colour", names), None);
        assert_eq!(nearest("sede", ["seed"]), Some("seed"));
    }

    #[test]
    fn columns_count_characters_and_spans_end_with_their_line() {
        let source = Source {
            file: "x.toml",
            text: "a\r\nµ = 'é'\r\nb",
        };
        let at = source.text.find("'é'").unwrap_or(0);
        let found = source.diagnostic(Severity::Error, &(at..100), "c", "r");
        assert_eq!((found.line, found.column), (2, 5));
        assert_eq!(&found.text[found.place.clone()], "'é'");
        let beyond = source.diagnostic(Severity::Error, &(500..501), "", "");
        assert_eq!((beyond.line, beyond.column), (3, 2));
        assert!(beyond.render(Style::Coloured).contains('\u{1b}'));
    }
}
