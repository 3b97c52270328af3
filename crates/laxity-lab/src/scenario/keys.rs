//! The keys of a scenario. Each is declared once: its name, what may be written, what holds without it, and what it means. By that
//! declaration it is read, what is no key is reported, and the reference is written.

use std::fmt;
use std::ops::RangeInclusive;

use laxity_model::Priority;
use toml::Spanned;

use super::diagnostic::alternatives;
use super::quantities::{LOAD, Quantity};
use super::reader::{Found, Section};
use super::units::Load;
use crate::each_once::each_once;

/// What may be written for a key.
pub(super) trait Form<T>: Sync {
    /// Reads it; what is wrong with it is reported.
    fn read(&self, section: &Section<'_>, key: &str) -> Option<Found<T>>;

    /// What a key's own default means, written as in a file.
    fn parse(&self, text: &str) -> Option<T>;

    /// What it is, in which unit and range.
    fn describe(&self) -> String;
}

/// What holds where a key is left out.
#[derive(Clone, Copy)]
pub(super) enum Without {
    /// This, written as in a file.
    Is(&'static str),
    /// Nothing does: it must be there, such as this.
    Refused(&'static str),
    /// What these words say.
    Means(&'static str),
}

/// A key.
pub(super) struct Key<T: 'static> {
    pub(super) name: &'static str,
    form: &'static dyn Form<T>,
    without: Without,
    meaning: &'static str,
}

impl<T> Key<T> {
    pub(super) const fn new(
        name: &'static str,
        form: &'static dyn Form<T>,
        without: Without,
        meaning: &'static str,
    ) -> Self {
        Self {
            name,
            form,
            without,
            meaning,
        }
    }

    /// Its value in a table that may itself be left out; what holds without the key also stands for one that is wrong.
    ///
    /// # Panics
    ///
    /// Never for a key with a default: a test reads them all.
    pub(super) fn of(&self, section: Option<&Section<'_>>) -> T {
        let found = section.and_then(|section| section.optional(self));
        found
            .or_else(|| self.default())
            .expect("a default that can be read")
    }

    /// What holds where it is left out.
    fn default(&self) -> Option<T> {
        match self.without {
            Without::Is(text) => self.form.parse(text.trim_matches('"')),
            Without::Refused(_) | Without::Means(_) => None,
        }
    }
}

/// A key as the reference has it, whatever its value is.
pub(super) trait Explained: Sync {
    fn name(&self) -> &'static str;

    /// What may be written, what holds without it, and what it means.
    fn explain(&self) -> [String; 3];

    /// Whether its default, if it has one, is what may be written.
    #[cfg(test)]
    fn is_sound(&self) -> bool;
}

impl<T> Explained for Key<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn explain(&self) -> [String; 3] {
        let without = match self.without {
            Without::Is(text) => format!("`{text}`"),
            Without::Refused(example) => format!("required, such as `{example}`"),
            Without::Means(words) => words.to_owned(),
        };
        [self.form.describe(), without, self.meaning.to_owned()]
    }

    #[cfg(test)]
    fn is_sound(&self) -> bool {
        !matches!(self.without, Without::Is(_)) || self.default().is_some()
    }
}

/// The keys of a table of the file, or those that one kind of what it declares has besides.
pub(super) struct Table {
    /// As a file has it: `[tasks.<name>]`.
    pub(super) heading: &'static str,
    /// The kind, if only that has them.
    pub(super) kind: Option<&'static str>,
    pub(super) about: &'static str,
    pub(super) keys: &'static [&'static dyn Explained],
}

impl<'a> Section<'a> {
    /// Reports every key that is in none of these tables.
    pub(super) fn keyed<'t>(&self, tables: impl IntoIterator<Item = &'t Table>) {
        let keys = tables.into_iter().flat_map(|table| table.keys);
        self.allow(&each_once(keys.map(|key| key.name())));
    }

    /// What stands under a key, if that is right; without one that is required, that is reported.
    pub(super) fn find<T>(&self, key: &Key<T>) -> Option<Found<T>> {
        if let (false, Without::Refused(example)) = (self.has(key.name), key.without) {
            self.missing(key.name, example);
        }
        self.value(key.name)?;
        key.form.read(self, key.name)
    }

    /// The value of a key that may be left out.
    pub(super) fn optional<T>(&self, key: &Key<T>) -> Option<T> {
        self.find(key).map(|found| found.value)
    }

    /// The value of a key with a default, which also stands for one that is wrong.
    pub(super) fn take<T>(&self, key: &Key<T>) -> T {
        key.of(Some(self))
    }

    /// The table under a key.
    pub(super) fn table(&self, key: &Key<Other>) -> Option<Self> {
        self.section(key.name, &format!("`{}` of {}", key.name, self.path))
    }
}

/// An integer within bounds.
pub(super) struct Integers<T>(pub(super) T, pub(super) T);

impl<T: Copy + Into<u64> + TryFrom<u64> + Sync> Form<T> for Integers<T> {
    fn read(&self, section: &Section<'_>, key: &str) -> Option<Found<T>> {
        section.integer(key, &(self.0..=self.1))
    }

    fn parse(&self, text: &str) -> Option<T> {
        T::try_from(text.parse().ok()?).ok()
    }

    fn describe(&self) -> String {
        let [least, most] = [self.0, self.1].map(T::into);
        match i64::try_from(most) {
            Ok(i64::MAX) => format!("an integer, from {least} on"),
            _ => format!("an integer, {least} to {most}"),
        }
    }
}

/// A thread's priority.
pub(super) struct Priorities;

impl Form<Priority> for Priorities {
    fn read(&self, section: &Section<'_>, key: &str) -> Option<Found<Priority>> {
        let found = section.integer(key, &(0_u8..=31))?;
        let place = found.place;
        Priority::new(found.value).map(|value| Found { value, place })
    }

    fn parse(&self, text: &str) -> Option<Priority> {
        Priority::new(text.parse().ok()?)
    }

    fn describe(&self) -> String {
        "a priority of the study's host, 0 to 31".into()
    }
}

/// A quantity with its unit, within bounds.
pub(super) struct Within<T: 'static>(
    pub(super) &'static Quantity<T>,
    pub(super) RangeInclusive<T>,
);

impl<T: PartialOrd + Default + Copy + Sync> Form<T> for Within<T> {
    fn read(&self, section: &Section<'_>, key: &str) -> Option<Found<T>> {
        section.quantity_in(key, self.0, &self.1)
    }

    fn parse(&self, text: &str) -> Option<T> {
        (self.0.parse)(text).ok()
    }

    fn describe(&self) -> String {
        let [least, most] = [self.1.start(), self.1.end()].map(|end| (self.0.show)(*end));
        format!("{}, {least} to {most}", self.0.what).replace('"', "")
    }
}

/// A quantity with its unit, whose bounds are for its reader to say.
pub(super) struct Any<T: 'static>(pub(super) &'static Quantity<T>);

impl<T> Form<T> for Any<T> {
    fn read(&self, section: &Section<'_>, key: &str) -> Option<Found<T>> {
        section.quantity(key, self.0)
    }

    fn parse(&self, text: &str) -> Option<T> {
        (self.0.parse)(text).ok()
    }

    fn describe(&self) -> String {
        format!("{}, such as {}", self.0.what, self.0.example)
    }
}

/// A load of more than nothing.
pub(super) struct Loads;

impl Form<Load> for Loads {
    fn read(&self, section: &Section<'_>, key: &str) -> Option<Found<Load>> {
        let found = section.quantity(key, &LOAD)?;
        if found.value.share.ppm == 0 {
            let cause = format!("`{key}` must be more than zero");
            section.wrong(key, cause, "write for example: load = \"14.7 %\"");
        }
        Some(found)
    }

    fn parse(&self, text: &str) -> Option<Load> {
        (LOAD.parse)(text).ok()
    }

    fn describe(&self) -> String {
        "a share of a processor, above 0 % and up to 100 %, and how far off it may be (0.7 % if it is not said)".into()
    }
}

/// One of a few words.
pub(super) struct Words<T: 'static>(pub(super) &'static [(&'static str, T)]);

impl<T: Copy + Sync> Form<T> for Words<T> {
    fn read(&self, section: &Section<'_>, key: &str) -> Option<Found<T>> {
        section.choice(key, self.0)
    }

    fn parse(&self, text: &str) -> Option<T> {
        let mut all = self.0.iter();
        all.find(|(word, _)| *word == text).map(|(_, value)| *value)
    }

    fn describe(&self) -> String {
        alternatives(self.0.iter().map(|(word, _)| *word))
    }
}

/// `true` or `false`.
pub(super) struct Booleans;

impl Form<bool> for Booleans {
    fn read(&self, section: &Section<'_>, key: &str) -> Option<Found<bool>> {
        section.flag(key)
    }

    fn parse(&self, text: &str) -> Option<bool> {
        text.parse().ok()
    }

    fn describe(&self) -> String {
        "`true` or `false`".into()
    }
}

/// A string: what it is, and one such.
pub(super) struct Texts(pub(super) &'static str, pub(super) &'static str);

impl Form<String> for Texts {
    fn read(&self, section: &Section<'_>, key: &str) -> Option<Found<String>> {
        let found = section.text(key, self.0, self.1)?;
        Some(found.map(str::to_owned))
    }

    fn parse(&self, text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    fn describe(&self) -> String {
        format!("{}, such as \"{}\"", self.0, self.1)
    }
}

/// The value of a key that is read in its own way: a table, a list, several forms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Other;

/// What such a value is, in words.
pub(super) struct Own(pub(super) &'static str);

impl Form<Other> for Own {
    fn read(&self, section: &Section<'_>, key: &str) -> Option<Found<Other>> {
        let place = section.value(key).map(Spanned::span)?;
        let value = Other;
        Some(Found { value, place })
    }

    fn parse(&self, _: &str) -> Option<Other> {
        Some(Other)
    }

    fn describe(&self) -> String {
        self.0.to_owned()
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.heading)
    }
}
