//! How a number is spread over several runs or sets.

use std::fmt;

/// One number of several runs or sets: the least, the median (the lower of two in the middle) and the most.
#[derive(Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) least: u64,
    pub(crate) median: u64,
    pub(crate) most: u64,
}

impl Spread {
    /// `None` of none, and where one is not known.
    pub(crate) fn of(values: impl Iterator<Item = Option<u64>>) -> Option<Self> {
        let mut values = values.collect::<Option<Vec<u64>>>()?;
        values.sort_unstable();
        Some(Self {
            least: *values.first()?,
            median: *values.get((values.len() - 1) / 2)?,
            most: *values.last()?,
        })
    }

    /// Of anything, in words that are found for each.
    pub(crate) fn words(&self, word: impl Fn(u64) -> String) -> String {
        let [least, median, most] = [self.least, self.median, self.most].map(word);
        format!("{median} ({least} to {most})")
    }

    /// The same, and of one run or of several that are alike that one alone.
    pub(crate) fn briefly(&self, word: impl Fn(u64) -> String) -> String {
        if self.least == self.most {
            word(self.median)
        } else {
            self.words(word)
        }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            least,
            median,
            most,
            ..
        } = self;
        write!(f, "{median} ({least} to {most})")
    }
}
