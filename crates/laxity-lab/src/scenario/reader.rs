//! Typed access to a parsed TOML table; every finding is collected with its place, and reading goes on.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::{Range, RangeInclusive};

use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::diagnostic::{Diagnostic, Severity, Source, alternatives, nearest};
use super::quantities::Quantity;
use super::units::UnitError;
use crate::plain::unfit;

/// A place in the file, in bytes.
pub(crate) type Place = Range<usize>;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Found<T> {
    pub(crate) value: T,
    pub(crate) place: Place,
}

impl<T> Found<T> {
    /// What is made of it, at the same place.
    pub(crate) fn map<U>(self, make: impl FnOnce(T) -> U) -> Found<U> {
        Found {
            value: make(self.value),
            place: self.place,
        }
    }
}

/// Nobody reads more; and each costs a search for its line.
const MOST_FINDINGS: usize = 100;

/// Collects what is wrong.
pub(crate) struct Findings<'s> {
    source: Source<'s>,
    list: RefCell<Vec<Diagnostic>>,
    errors: Cell<usize>,
}

impl<'s> Findings<'s> {
    pub(crate) fn new(source: Source<'s>) -> Self {
        Self {
            source,
            list: RefCell::new(Vec::new()),
            errors: Cell::new(0),
        }
    }

    pub(crate) fn error(&self, place: &Place, cause: impl Into<String>, remedy: impl Into<String>) {
        self.errors.set(self.errors.get() + 1);
        self.push(Severity::Error, place, &cause.into(), &remedy.into());
    }

    pub(crate) fn note(&self, place: &Place, cause: impl Into<String>, remedy: impl Into<String>) {
        self.push(Severity::Note, place, &cause.into(), &remedy.into());
    }

    /// A name that is not declared.
    pub(crate) fn unknown<'n>(
        &self,
        what: &str,
        name: &Found<&str>,
        declared: impl Iterator<Item = &'n str> + Clone,
    ) {
        if self.is_full() {
            return;
        }
        let remedy = if declared.clone().next().is_none() {
            format!("this file declares no {what}")
        } else {
            suggestion(name.value, declared)
        };
        let cause = format!("there is no {what} `{}`", shortened(name.value));
        self.error(&name.place, cause, remedy);
    }

    /// How often something was wrong until now, also what was wrong already.
    pub(crate) fn errors(&self) -> usize {
        self.errors.get()
    }

    /// Whether something has been found to be wrong here.
    fn reported(&self, place: &Place) -> bool {
        let (line, column) = self.source.position(place);
        let here = |finding: &Diagnostic| (finding.line, finding.column) == (line, column);
        self.list.borrow().iter().any(here)
    }

    /// Whether so much has been found that no more is looked for.
    fn is_full(&self) -> bool {
        self.list.borrow().len() >= MOST_FINDINGS
    }

    fn push(&self, severity: Severity, place: &Place, cause: &str, remedy: &str) {
        if self.is_full() {
            return;
        }
        let finding = self.source.diagnostic(severity, place, cause, remedy);
        let mut list = self.list.borrow_mut();
        // A declaration that several variants use is found wrong once.
        if !list.contains(&finding) {
            list.push(finding);
        }
    }

    /// All findings in the order of the file.
    pub(crate) fn into_sorted(self) -> Vec<Diagnostic> {
        let mut list = self.list.into_inner();
        list.sort_by_key(|finding| (finding.line, finding.column));
        list
    }
}

/// "did you mean …?" where something is near, else everything that is valid.
fn suggestion<'n>(word: &str, valid: impl Iterator<Item = &'n str> + Clone) -> String {
    match nearest(word, valid.clone()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("valid here: {}", alternatives(valid)),
    }
}

/// Reads a whole file: what is made of it, and what is merely worth knowing; or all that is wrong, which `not_toml` tells of a file that
/// is no TOML.
pub(crate) fn document<T>(
    source: Source<'_>,
    not_toml: impl FnOnce(&[toml::de::Error]) -> Vec<Diagnostic>,
    read: impl FnOnce(&Section<'_>) -> Option<T>,
) -> Result<(T, Vec<Diagnostic>), Vec<Diagnostic>> {
    let (document, errors) = DeTable::parse_recoverable(source.text);
    if !errors.is_empty() {
        return Err(not_toml(&errors));
    }
    let findings = Findings::new(source);
    let root = Section::new(&findings, "the file", document.get_ref(), 0..0);
    let read = read(&root);
    let found = findings.into_sorted();
    let failed = found.iter().any(|one| one.severity == Severity::Error);
    match read {
        Some(read) if !failed => Ok((read, found)),
        _ => Err(found),
    }
}

/// One table of the file.
#[derive(Clone)]
pub(crate) struct Section<'a> {
    pub(crate) findings: &'a Findings<'a>,
    /// Its name as a person would say it: `[tasks.rogue]`.
    pub(crate) path: String,
    table: &'a DeTable<'a>,
    /// Where it is named.
    pub(crate) place: Place,
}

/// An entry of a table of names, in the order of the file.
pub(crate) struct Entry<'a> {
    pub(crate) name: Found<&'a str>,
    pub(crate) value: &'a Spanned<DeValue<'a>>,
}

impl<'a> Section<'a> {
    pub(crate) fn new(
        findings: &'a Findings<'a>,
        path: &str,
        table: &'a DeTable<'a>,
        place: Place,
    ) -> Self {
        Self {
            findings,
            path: path.to_owned(),
            table,
            place,
        }
    }

    /// Reports every key that is not among these.
    pub(crate) fn allow(&self, keys: &[&str]) {
        for entry in self.entries() {
            if !keys.contains(&entry.name.value) && !self.findings.is_full() {
                let cause = format!("{} has no key `{}`", self.path, shortened(entry.name.value));
                let remedy = suggestion(entry.name.value, keys.iter().copied());
                self.findings.error(&entry.name.place, cause, remedy);
            }
        }
    }

    /// All entries in the order of the file.
    pub(crate) fn entries(&self) -> Vec<Entry<'a>> {
        let entries = self.table.iter().map(|(key, value)| Entry {
            name: Found {
                value: key.get_ref().as_ref(),
                place: key.span(),
            },
            value,
        });
        let mut entries: Vec<Entry<'a>> = entries.collect();
        entries.sort_by_key(|entry| entry.name.place.start);
        entries
    }

    pub(crate) fn value(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.table.get(key)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// Where the key's value stands, or the section if it has none.
    pub(crate) fn place_of(&self, key: &str) -> Place {
        self.value(key)
            .map_or_else(|| self.place.clone(), Spanned::span)
    }

    /// The table under this key, if it is there and is one.
    pub(crate) fn section(&self, key: &str, path: &str) -> Option<Self> {
        let entry = self.entries().into_iter().find(|e| e.name.value == key)?;
        self.child(&entry, path)
    }

    /// An entry as a table.
    pub(crate) fn child(&self, entry: &Entry<'a>, path: &str) -> Option<Self> {
        match entry.value.get_ref() {
            DeValue::Table(table) => {
                let place = entry.name.place.clone();
                Some(Self::new(self.findings, path, table, place))
            }
            other => {
                let cause = format!("{path} must be a table, found {}", describe(other));
                let remedy = format!("write {path} on a line of its own, and its keys below it");
                self.findings.error(&entry.value.span(), cause, remedy);
                None
            }
        }
    }

    /// Reports that a key is missing, unless it is there but for a slip: that is reported as what it is.
    pub(crate) fn missing(&self, key: &str, example: &str) {
        let slip = |entry: &Entry<'_>| {
            nearest(entry.name.value, [key]).is_some() && self.findings.reported(&entry.name.place)
        };
        if self.entries().iter().any(slip) {
            return;
        }
        let cause = format!("{} lacks the key `{key}`", self.path);
        let remedy = format!("add a line such as: {key} = {example}");
        self.findings.error(&self.place, cause, remedy);
    }

    /// Reports that a key is missing, if it is.
    pub(crate) fn require(&self, key: &str, example: &str) {
        if !self.has(key) {
            self.missing(key, example);
        }
    }

    /// An error about a key's value.
    pub(crate) fn wrong(&self, key: &str, cause: impl Into<String>, remedy: impl Into<String>) {
        self.findings.error(&self.place_of(key), cause, remedy);
    }

    fn mismatch(&self, key: &str, value: &Spanned<DeValue<'a>>, wanted: &str, example: &str) {
        self.findings.error(
            &value.span(),
            format!(
                "`{key}` must be {wanted}, found {}",
                describe(value.get_ref())
            ),
            format!("write for example: {key} = {example}"),
        );
    }

    /// A string.
    pub(crate) fn text(&self, key: &str, wanted: &str, example: &str) -> Option<Found<&'a str>> {
        let value = self.value(key)?;
        let found = string(value);
        match found.as_ref().map(|text| unfit(text.value)) {
            None => self.mismatch(key, value, wanted, &format!("\"{example}\"")),
            Some(Some((cause, remedy))) => self.wrong(key, cause, remedy),
            Some(None) => {}
        }
        found
    }

    /// A quantity with its unit.
    pub(crate) fn quantity<T>(&self, key: &str, quantity: &Quantity<T>) -> Option<Found<T>> {
        let value = self.value(key)?;
        if let DeValue::Integer(_) | DeValue::Float(_) = value.get_ref() {
            self.findings.error(
                &value.span(),
                format!("`{key}` is {} and has no unit", quantity.what),
                format!(
                    "write it in quotes and with its unit, such as: {key} = \"{}\"",
                    quantity.example
                ),
            );
            return None;
        }
        let text = self.text(key, quantity.what, quantity.example)?;
        self.parsed(&text, quantity.parse)
    }

    /// What `parse` makes of a text; its error is reported at the text.
    pub(crate) fn parsed<T>(
        &self,
        text: &Found<&str>,
        parse: impl FnOnce(&str) -> Result<T, UnitError>,
    ) -> Option<Found<T>> {
        let place = text.place.clone();
        match parse(text.value) {
            Ok(value) => Some(Found { value, place }),
            Err(error) => {
                self.findings.error(&place, error.cause, error.remedy);
                None
            }
        }
    }

    /// A quantity within bounds; zero gets a message of its own where it is out.
    pub(crate) fn quantity_in<T: PartialOrd + Default + Copy>(
        &self,
        key: &str,
        quantity: &Quantity<T>,
        range: &RangeInclusive<T>,
    ) -> Option<Found<T>> {
        let found = self.quantity(key, quantity)?;
        let show = quantity.show;
        if range.contains(&found.value) {
            return Some(found);
        }
        let cause = if found.value == T::default() {
            format!("`{key}` must be more than zero")
        } else {
            format!("`{key}` is out of range: {}", show(found.value))
        };
        let (least, most) = (show(*range.start()), show(*range.end()));
        let remedy = format!("write {least} to {most}");
        self.findings.error(&found.place, cause, remedy);
        None
    }

    /// A plain integer within bounds.
    pub(crate) fn integer<T: Copy + Into<u64> + TryFrom<u64>>(
        &self,
        key: &str,
        range: &RangeInclusive<T>,
    ) -> Option<Found<T>> {
        let [least, most] = [*range.start(), *range.end()].map(T::into);
        let value = self.value(key)?;
        let DeValue::Integer(integer) = value.get_ref() else {
            self.mismatch(key, value, "an integer", &least.max(1).to_string());
            return None;
        };
        let place = value.span();
        let fits = unsigned(integer).filter(|value| (least..=most).contains(value));
        if let Some(value) = fits.and_then(|value| T::try_from(value).ok()) {
            return Some(Found { value, place });
        }
        let cause = match integer.to_string().as_str() {
            "0" => format!("`{key}` must be more than zero"),
            text if text.starts_with('-') => format!("`{key}` must not be negative"),
            text => format!("`{key}` is out of range: {}", shortened(text)),
        };
        let remedy = format!("write {least} to {most}");
        self.findings.error(&place, cause, remedy);
        None
    }

    /// `true` or `false`.
    pub(crate) fn flag(&self, key: &str) -> Option<Found<bool>> {
        let value = self.value(key)?;
        let DeValue::Boolean(flag) = value.get_ref() else {
            self.mismatch(key, value, "`true` or `false`", "true");
            return None;
        };
        Some(Found {
            value: *flag,
            place: value.span(),
        })
    }

    /// One of a few words.
    pub(crate) fn choice<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Option<Found<T>> {
        let names = words.iter().map(|(name, _)| *name);
        let example = names.clone().next().unwrap_or_default();
        let wanted = alternatives(names.clone());
        let text = self.text(key, &wanted, example)?;
        if let Some((_, value)) = words.iter().find(|(name, _)| *name == text.value) {
            return Some(text.map(|_| *value));
        }
        let cause = format!("`{key}` cannot be `{}`", shortened(text.value));
        let remedy = suggestion(text.value, names);
        self.findings.error(&text.place, cause, remedy);
        None
    }

    /// A list of strings.
    pub(crate) fn texts(&self, key: &str, example: &str) -> Option<Vec<Found<&'a str>>> {
        self.items(key, ("a list of strings", example), string)
    }

    /// Tables in a list: `limits = [{ … }, { … }]`.
    pub(crate) fn sections(&self, key: &str, path: &str, example: &str) -> Option<Vec<Self>> {
        self.items(key, ("a list of tables", example), |item| {
            let table = item.get_ref().as_table()?;
            Some(Self::new(self.findings, path, table, item.span()))
        })
    }

    /// What `read` makes of each item of a list; an item of which it makes nothing is reported, and left out.
    pub(crate) fn items<T>(
        &self,
        key: &str,
        (wanted, example): (&str, &str),
        read: impl Fn(&'a Spanned<DeValue<'a>>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let value = self.value(key)?;
        let mismatch = |found| self.mismatch(key, found, wanted, example);
        let Some(array) = value.get_ref().as_array() else {
            mismatch(value);
            return None;
        };
        let mut items = Vec::new();
        for item in array.iter() {
            match read(item) {
                Some(found) => items.push(found),
                None => mismatch(item),
            }
        }
        Some(items)
    }
}

/// A value that is a string.
pub(crate) fn string<'t>(value: &'t Spanned<DeValue<'_>>) -> Option<Found<&'t str>> {
    Some(Found {
        value: value.get_ref().as_str()?,
        place: value.span(),
    })
}

/// The integer, if it fits 64 bits and is not negative.
pub(crate) fn unsigned(integer: &DeInteger<'_>) -> Option<u64> {
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// No message repeats more of the file than a line holds.
pub(crate) fn shortened(text: &str) -> String {
    const LONGEST: usize = 40;
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let head: String = text.chars().take(LONGEST).collect();
    format!("{head}…")
}

/// A value as a message names it.
pub(crate) fn describe(value: &DeValue<'_>) -> String {
    let show = |kind: &str, value: &dyn fmt::Display| {
        format!("the {kind} `{}`", shortened(&value.to_string()))
    };
    match value {
        DeValue::String(text) => show("string", text),
        DeValue::Integer(integer) => show("integer", integer),
        DeValue::Float(float) => show("number", float),
        DeValue::Boolean(flag) => show("boolean", flag),
        DeValue::Datetime(date) => show("date", date),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
