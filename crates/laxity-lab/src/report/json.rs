//! A report for programs: integers with their units in the names, the origin beside each value, keys in a fixed order.

use std::io::{self, Write};

use laxity_model::Span;
use serde::Serialize;
use serde::ser::SerializeStruct;
use serde_json::ser::{Formatter, Serializer};

use laxity_model::verify::contract::Outcome;

use super::{Check, Figure, Point, Report, Verdict};

/// What changes when a reader of the file must change.
pub const FILE_VERSION: u32 = 1;

/// The bytes of the file: a table's row, a curve or a check a line, ending in a newline. The same report gives the same bytes.
pub fn render(report: &Report) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, Lines::default());
    let circumstances = report.circumstances.iter();
    let file = File {
        file_version: FILE_VERSION,
        laxity_version: env!("CARGO_PKG_VERSION"),
        experiment: report.experiment,
        title: &report.title,
        holds: report.outcome() == Outcome::Met,
        summary: &report.summary,
        circumstances: circumstances
            .map(|(name, value)| Circumstance { name, value })
            .collect(),
        checks: &report.checks,
        figures: &report.figures,
    };
    file.serialize(&mut serializer)
        .expect("numbers and strings go into memory");
    bytes.push(b'\n');
    bytes
}

#[derive(Serialize)]
struct File<'a> {
    file_version: u32,
    laxity_version: &'static str,
    experiment: &'a str,
    title: &'a str,
    holds: bool,
    summary: &'a [String],
    circumstances: Vec<Circumstance<'a>>,
    checks: &'a [Check],
    figures: &'a [Figure],
}

#[derive(Serialize)]
struct Circumstance<'a> {
    name: &'a str,
    value: &'a str,
}

/// A straight line of a drawing.
#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    from: Point,
    to: Point,
}

pub(super) fn nanos<S: serde::Serializer>(span: &Span, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(span.as_nanos())
}

pub(super) fn verdict<S: serde::Serializer>(
    verdict: &Verdict,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let (result, why) = verdict.parts();
    let mut fields = serializer.serialize_struct("Verdict", 2)?;
    fields.serialize_field("result", result)?;
    fields.serialize_field("why", why)?;
    fields.end()
}

pub(super) fn lines<S: serde::Serializer>(
    lines: &[(String, Point, Point)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let lines = lines.iter().map(|(name, from, to)| Line {
        name,
        from: *from,
        to: *to,
    });
    serializer.collect_seq(lines)
}

/// Lines down to this depth, so that a difference between two files is a difference of lines; no line a number.
const DEEPEST_LINES: usize = 5;

/// Line breaks and indents in the outer levels, and in lists one level deeper; everything inside is on one line.
#[derive(Default)]
struct Lines {
    /// Of everything that is open, outermost first: whether it has lines of its own.
    open: Vec<bool>,
    /// Whether anything is in what was opened last.
    is_filled: bool,
}

impl Lines {
    fn in_lines(&self) -> bool {
        self.open.last().copied().unwrap_or(true)
    }

    fn begin<W: ?Sized + Write>(
        &mut self,
        to: &mut W,
        open: &[u8],
        deepest: usize,
    ) -> io::Result<()> {
        self.open.push(self.open.len() < deepest);
        self.is_filled = false;
        to.write_all(open)
    }

    /// Goes on to the next item.
    fn next<W: ?Sized + Write>(&self, to: &mut W, first: bool) -> io::Result<()> {
        if !first {
            to.write_all(b",")?;
        }
        if self.in_lines() {
            write!(to, "\n{:1$}", "", self.open.len())?;
        }
        Ok(())
    }

    fn end<W: ?Sized + Write>(&mut self, to: &mut W, close: &[u8]) -> io::Result<()> {
        let in_lines = self.in_lines();
        self.open.pop();
        if in_lines && self.is_filled {
            write!(to, "\n{:1$}", "", self.open.len())?;
        }
        to.write_all(close)
    }
}

impl Formatter for Lines {
    fn begin_array<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.begin(to, b"[", DEEPEST_LINES + 1)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.next(to, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.is_filled = true;
        Ok(())
    }

    fn end_array<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.end(to, b"]")
    }

    fn begin_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.begin(to, b"{", DEEPEST_LINES)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.next(to, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(if self.in_lines() { b": " } else { b":" })
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.end_array_value(to)
    }

    fn end_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.end(to, b"}")
    }
}
