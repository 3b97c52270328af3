//! From a filter's words to its conditions.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use super::condition::Condition;
use super::draft::{Draft, add, few};
use super::value::number;
use super::words::{FilterError, Word, words};
use crate::nif::frame::Tail;

/// The deepest parentheses.
const DEEPEST: usize = 32;

/// All conditions of a filter.
///
/// # Errors
///
/// As [`super::Filter::parse`].
pub(super) fn compile(text: &str, tail: Option<Tail>) -> Result<Vec<Condition>, FilterError> {
    let words = words(text)?;
    let mut parser = Parser {
        words: &words,
        tail,
        depth: 0,
        contradiction: None,
    };
    if parser.peek().text.is_empty() {
        return Ok(vec![Condition::ALL]);
    }
    let drafts = parser.expression()?;
    let end = parser.peek();
    match end.text {
        "" => {}
        ")" => return Err(end.wrong("no parenthesis is open here")),
        _ => {
            let more = "`and`, `or` or the end";
            return Err(end.expected(&format!(
                "{more} (every condition begins with its own words: `port 80 or port 443`)"
            )));
        }
    }
    match parser.contradiction {
        Some(at) if drafts.is_empty() => {
            Err(at.wrong("no packet is both what stands before this and what stands behind it"))
        }
        _ => Ok(drafts.into_iter().map(Draft::finish).collect()),
    }
}

/// What reads words one by one.
pub(super) struct Parser<'w, 't> {
    /// What is left; the end is never taken.
    words: &'w [Word<'t>],
    pub(super) tail: Option<Tail>,
    depth: usize,
    /// The first `and` that left nothing.
    contradiction: Option<Word<'t>>,
}

impl<'t> Parser<'_, 't> {
    pub(super) fn ahead(&self, by: usize) -> Word<'t> {
        let end = Word {
            column: 1,
            text: "",
        };
        let word = self.words.get(by).or(self.words.last());
        word.copied().unwrap_or(end)
    }

    pub(super) fn peek(&self) -> Word<'t> {
        self.ahead(0)
    }

    pub(super) fn take(&mut self) -> Word<'t> {
        let word = self.peek();
        if !word.text.is_empty() {
            self.words = self.words.get(1..).unwrap_or_default();
        }
        word
    }

    fn expression(&mut self) -> Result<Vec<Draft>, FilterError> {
        let mut all = self.term()?;
        loop {
            let operator = self.peek();
            let is_and = match operator.text {
                "and" | "&&" => true,
                "or" | "||" => false,
                _ => return Ok(all),
            };
            self.take();
            let more = self.term()?;
            all = if is_and {
                self.both(operator, &all, &more)?
            } else {
                more.into_iter().for_each(|draft| add(&mut all, draft));
                all
            };
            few(operator, &all)?;
        }
    }

    fn both(
        &mut self,
        operator: Word<'t>,
        one: &[Draft],
        other: &[Draft],
    ) -> Result<Vec<Draft>, FilterError> {
        let mut all = Vec::new();
        for one in one {
            for draft in other.iter().filter_map(|other| one.and(other)) {
                add(&mut all, draft);
            }
            few(operator, &all)?;
        }
        if all.is_empty() {
            self.contradiction.get_or_insert(operator);
        }
        Ok(all)
    }

    fn term(&mut self) -> Result<Vec<Draft>, FilterError> {
        let word = self.peek();
        match word.text {
            "(" => {
                self.take();
                self.depth += 1;
                if self.depth > DEEPEST {
                    return Err(word.wrong(format!("at most {DEEPEST} parentheses are open at once")));
                }
                let all = self.expression()?;
                let end = self.take();
                if end.text != ")" {
                    return Err(end.expected("`and`, `or` or `)`"));
                }
                self.depth -= 1;
                Ok(all)
            }
            "not" | "!" => Err(word.wrong(
                "there is no `not`: what a filter wants is a list of values under masks; say what is wanted",
            )),
            "vlan" => self.vlan(),
            _ => {
                // Every address is both a source and a destination in `net ::/0`.
                let mut drafts = Vec::new();
                let all = self.primitive()?.into_iter().map(Draft::from);
                all.for_each(|draft| add(&mut drafts, draft));
                Ok(drafts)
            }
        }
    }

    fn vlan(&mut self) -> Result<Vec<Draft>, FilterError> {
        self.take();
        let word = self.peek();
        let is_number = word.text.starts_with(|first: char| first.is_ascii_digit());
        let id = if is_number {
            Some(number(self.take(), 0, 4_095)? as u16)
        } else {
            None
        };
        Ok(vec![Draft {
            tags: vec![id],
            behind: Condition::ALL,
        }])
    }
}
