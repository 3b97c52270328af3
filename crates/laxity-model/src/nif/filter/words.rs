//! The words of a filter's text, each with its column.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::base::plain::plain;

/// The longest text, in bytes.
pub const LONGEST: usize = 1_024;

/// A filter's text is not one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilterError {
    /// Where: the first character has column 1.
    pub column: usize,
    /// What is wrong there, and what would be right.
    pub why: String,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.why)
    }
}

impl core::error::Error for FilterError {}

/// A word, a sign or, with an empty text, the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'t> {
    /// The first character has 1.
    pub(super) column: usize,
    pub(super) text: &'t str,
}

impl Word<'_> {
    /// That something is wrong here.
    pub(super) fn wrong(&self, why: impl Into<String>) -> FilterError {
        FilterError {
            column: self.column,
            why: why.into(),
        }
    }

    /// That something else belongs here.
    pub(super) fn expected(&self, what: &str) -> FilterError {
        self.wrong(match self.text {
            "" => format!("{what} is missing at the end"),
            text => format!("`{}` stands where {what} belongs", plain(text)),
        })
    }
}

/// All words and signs, and the end.
///
/// # Errors
///
/// The text is too long, or has half a sign.
pub(super) fn words(text: &str) -> Result<Vec<Word<'_>>, FilterError> {
    let mut found: Vec<Word<'_>> = Vec::new();
    let mut rest = text;
    let mut column = 1;
    if text.len() > LONGEST {
        let begin = Word { column, text };
        return Err(begin.wrong(format!("a filter is at most {LONGEST} bytes long")));
    }
    while let Some(first) = rest.chars().next() {
        let long = match first {
            '(' | ')' | '!' => 1,
            '&' | '|' => {
                let long = rest.len() - rest.trim_start_matches(first).len();
                if long != 2 {
                    let sign = Word { column, text: rest };
                    return Err(sign.wrong(format!("`{first}` is written twice, and no more")));
                }
                long
            }
            _ if first.is_whitespace() => first.len_utf8(),
            _ => rest.find(ends_a_word).unwrap_or(rest.len()),
        };
        let (word, behind) = rest.split_at(long);
        if !first.is_whitespace() {
            found.push(Word { column, text: word });
        }
        column += word.chars().count();
        rest = behind;
    }
    found.push(Word { column, text: "" });
    Ok(found)
}

fn ends_a_word(character: char) -> bool {
    character.is_whitespace() || matches!(character, '(' | ')' | '!' | '&' | '|')
}
