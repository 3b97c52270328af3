//! What is no TOML at all: the TOML reader's findings, with what would be right.

use toml::de::Error;

use super::diagnostic::{Diagnostic, Severity, Source};

/// After so many the rest is only more of the same.
const MOST: usize = 20;

/// The first error of each line.
pub(super) fn diagnostics(source: Source<'_>, errors: &[Error]) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = errors
        .iter()
        .map(|error| {
            let span = error.span().unwrap_or(0..0);
            let cause = format!("not TOML: {}", error.message());
            source.diagnostic(
                Severity::Error,
                &span,
                cause,
                remedy(error.message()).into(),
            )
        })
        .collect();
    found.sort_by_key(|finding| (finding.line, finding.column));
    found.dedup_by_key(|finding| finding.line);
    found.truncate(MOST);
    found
}

/// Parts of the TOML reader's messages, and what helps; the first that fits counts.
const REMEDIES: &[(&str, &str)] = &[
    (
        "duplicate key",
        "every name stands once: remove this one or give it another name",
    ),
    (
        "string values must be quoted",
        "put the value in quotes, such as: period = \"1ms\"",
    ),
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
