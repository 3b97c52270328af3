//! What is no TOML at all: the TOML reader's findings, with what would be right.

use std::ops::Range;

use toml::de::Error;

use super::diagnostic::{Diagnostic, Severity, Source};
use super::reader::shortened;

/// After so many the rest is only more of the same.
const MOST: usize = 20;

/// The first error of each line. The lines below a repeated table name are no errors of their own.
pub(super) fn diagnostics(source: Source<'_>, errors: &[Error]) -> Vec<Diagnostic> {
    let mut errors: Vec<&Error> = errors.iter().collect();
    errors.sort_by_key(|error| place(error).start);
    let mut found: Vec<Diagnostic> = Vec::new();
    let mut in_repeated_table = false;
    for error in errors {
        let span = place(error);
        let is_name = source.line_of(&span).trim_start().starts_with('[');
        let is_repeated = error.message().contains(DUPLICATE);
        if in_repeated_table && is_repeated && !is_name {
            continue;
        }
        in_repeated_table = is_repeated && is_name;
        let (cause, remedy) = explain(error.message(), source.text.get(span.clone()));
        let finding = source.diagnostic(Severity::Error, &span, &cause, remedy);
        if found.last().is_none_or(|last| last.line != finding.line) {
            found.push(finding);
        }
        if found.len() == MOST {
            break;
        }
    }
    found
}

fn place(error: &Error) -> Range<usize> {
    error.span().unwrap_or(0..0)
}

/// As the TOML reader says it.
const DUPLICATE: &str = "duplicate key";
const UNQUOTED: &str = "string values must be quoted";

/// Cause and remedy for the TOML reader's message about this part of the text.
fn explain(message: &str, part: Option<&str>) -> (String, &'static str) {
    let part = part.map(str::trim).filter(|part| !part.is_empty());
    match part {
        Some(part) if message.contains(DUPLICATE) => (
            format!("`{}` stands here twice", shortened(part)),
            "every name stands once: remove one of them, or give it another name",
        ),
        None if message.contains(UNQUOTED) => (
            "there is no value after the `=`".to_owned(),
            "write a value, such as: seed = 1",
        ),
        Some(part) if message.contains(UNQUOTED) => (
            format!("`{}` is no number and not in quotes", shortened(part)),
            "put the value in quotes, such as: period = \"1ms\"",
        ),
        _ => (format!("not TOML: {message}"), remedy(message)),
    }
}

/// Parts of the TOML reader's messages, and what helps; the first that fits counts.
const REMEDIES: &[(&str, &str)] = &[
    (
        "basic string",
        "end the string with the quote that it began with, on the same line",
    ),
    (
        "literal string",
        "end the string with the quote that it began with, on the same line",
    ),
    (
        "table",
        "write a table's name in brackets on a line of its own, such as: [tasks.rogue]",
    ),
    (
        "array",
        "write a list in brackets with commas, such as: tasks = [\"spinners\", \"cothread\"]",
    ),
    (
        "recursion",
        "no part of a scenario is nested so deeply; the deepest is [variants.<name>.placement]",
    ),
];

fn remedy(message: &str) -> &'static str {
    let known = REMEDIES.iter().find(|(part, _)| message.contains(part));
    known.map_or(
        "write `key = value`, texts in quotes, such as: placement = \"thread 24\"",
        |(_, remedy)| *remedy,
    )
}
