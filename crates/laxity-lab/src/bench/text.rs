//! The words of a study: a file of its own, compiled in.

use std::collections::BTreeMap;
use std::fmt::Display;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::layout::wrap_to;
use crate::report::{Figure, Row, Table};

/// What fills the holes of a sentence: name and value.
pub type Holes<'a> = &'a [(&'a str, &'a dyn Display)];

/// Name, figures, tables, sentences and quoted numbers of a study.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    /// What the command line calls it.
    pub name: String,
    /// What it shows, in one line.
    pub summary: String,
    /// The heading of its report.
    pub title: String,
    /// Whether something of it can be measured on this machine.
    #[serde(default = "yes")]
    pub measures: bool,
    /// Whether something of it is repeated as often as is asked ([`Request::repeats`](super::Request::repeats)).
    #[serde(default)]
    pub repeats: bool,
    /// Whether something of it is predicted from what a machine costs ([`Request::machine`](super::Request::machine)).
    #[serde(default)]
    pub predicts: bool,
    /// Whether interfaces are made for what is measured of it.
    #[serde(default)]
    pub networks: bool,
    /// Whether what is measured of it may take longer, and be the more for it ([`Request::full`](super::Request::full)).
    #[serde(default)]
    pub lengths: bool,
    /// What may be chosen besides what every study is asked.
    #[serde(default)]
    pub options: Vec<OptionText>,
    /// What is asked, for a reader who reads nothing else: paragraphs.
    #[serde(default)]
    pub question: Vec<String>,
    /// What every run of it has in common: name and value.
    #[serde(default)]
    pub circumstances: Vec<(String, String)>,
    /// Its figures and tables, in the order of the source.
    #[serde(default)]
    pub figures: Vec<FigureText>,
    #[serde(default)]
    tables: BTreeMap<String, TableText>,
    #[serde(default)]
    says: BTreeMap<String, String>,
    #[serde(default)]
    claims: BTreeMap<String, ClaimText>,
    #[serde(default)]
    quoted: toml::Table,
}

const fn yes() -> bool {
    true
}

/// A number that may be chosen, from 1 on.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptionText {
    /// What the command line calls it.
    pub name: String,
    /// What it is.
    pub help: String,
    /// What it is unless it is chosen.
    pub default: u64,
    /// The most that it may be.
    pub most: u64,
}

/// The words of a figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureText {
    /// What the command line calls it.
    pub key: String,
    /// What it shows, in one line.
    pub shows: String,
    title: Option<String>,
    #[serde(default)]
    about: String,
    #[serde(default)]
    remarks: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableText {
    caption: String,
    columns: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimText {
    claim: String,
    #[serde(default)]
    seen: String,
}

impl Text {
    /// Its name and its figures, each with what it shows, in lines of so many characters, ending in a newline.
    pub fn listed(&self, width: usize) -> String {
        let mut text = String::new();
        let mut line = |indent: &str, name: &str, about: &str| {
            wrap_to(width, &format!("{indent}{name:<13} "), about, &mut text);
        };
        line("  ", &self.name, &self.summary);
        for figure in &self.figures {
            line("    ", &figure.key, &figure.shows);
        }
        text
    }

    /// Reads a study's file.
    ///
    /// # Panics
    ///
    /// If it is none: it is part of the program, and every test that looks at the study reads it.
    #[must_use]
    pub fn parse(file: &str) -> Self {
        match toml::from_str(file) {
            Ok(text) => text,
            Err(error) => panic!("the words of a study: {error}"),
        }
    }

    /// What is there under a key.
    fn there<T>(&self, found: Option<T>, what: &str, key: &str) -> T {
        found.unwrap_or_else(|| panic!("{}: no {what} {key}", self.name))
    }

    /// What publications print, or what is tried, under this name.
    ///
    /// # Panics
    ///
    /// If there is nothing of this name, or it is of another kind.
    pub fn quoted<T: DeserializeOwned>(&self, name: &str) -> T {
        let found = self.there(self.quoted.get(name), "quoted", name).clone();
        match found.try_into() {
            Ok(quoted) => quoted,
            Err(error) => panic!("{}: {name}: {error}", self.name),
        }
    }

    /// The figure of this key, with its words and nothing drawn.
    ///
    /// # Panics
    ///
    /// If there is no such figure.
    pub fn blank(&self, key: &str) -> Figure {
        let found = self.figures.iter().find(|figure| figure.key == key);
        let text = self.there(found, "figure", key);
        Figure {
            key: text.key.clone(),
            title: text.title.as_ref().unwrap_or(&text.shows).clone(),
            about: text.about.clone(),
            remarks: text.remarks.clone(),
            ..Figure::default()
        }
    }

    /// A sentence with its holes filled.
    ///
    /// # Panics
    ///
    /// If there is no such sentence, or it has other holes.
    pub fn say(&self, key: &str, holes: Holes<'_>) -> String {
        let sentence: &String = self.there(self.says.get(key), "sentence", key);
        filled(sentence, holes)
    }

    /// A table of these rows, with the headings of this key; holes are in its caption.
    ///
    /// # Panics
    ///
    /// If there is no such table, or a row has another length.
    pub fn table(&self, key: &str, holes: Holes<'_>, rows: Vec<Row>) -> Table {
        let text = self.there(self.tables.get(key), "table", key);
        let columns = text.columns.clone();
        let fits = rows.iter().all(|row| row.len() == columns.len());
        assert!(fits, "{}: rows of {key}", self.name);
        Table {
            caption: filled(&text.caption, holes),
            columns,
            rows,
        }
    }

    /// A claim, and what was seen.
    pub(super) fn claim(&self, key: &str, holes: Holes<'_>) -> (String, String) {
        let text = self.there(self.claims.get(key), "claim", key);
        (filled(&text.claim, holes), filled(&text.seen, holes))
    }
}

/// Replaces `{name}` by its value. A hole that nothing fills stays, for everybody to see; in a test it is an error.
fn filled(sentence: &str, holes: Holes<'_>) -> String {
    let mut rest = sentence;
    let mut out = String::with_capacity(sentence.len());
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let (name, after) = after.split_once('}').unwrap_or((after, ""));
        match holes.iter().find(|(hole, _)| *hole == name) {
            Some((_, value)) => out.push_str(&value.to_string()),
            None => {
                debug_assert!(false, "nothing fills {{{name}}} of: {sentence}");
                out.push_str(&format!("{{{name}}}"));
            }
        }
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_filled_with_what_has_their_name() {
        let holes: Holes<'_> = &[("late", &3), ("who", &"the {victim}")];
        assert_eq!(
            filled("{late} of {who}, {late}", holes),
            "3 of the {victim}, 3"
        );
        assert_eq!(filled("none", &[]), "none");
    }

    #[test]
    #[should_panic(expected = "nothing fills {when}")]
    fn a_hole_that_nothing_fills_is_found() {
        filled("late {when}", &[("who", &"the victim")]);
    }
}
