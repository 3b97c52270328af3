//! Sets of processors.

use std::collections::BTreeSet;
use std::fmt;

/// No kernel numbers its processors higher.
const HIGHEST: usize = 65_535;

/// A set of processors, by the kernel's numbers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct CpuSet(BTreeSet<usize>);

impl CpuSet {
    /// One processor.
    #[must_use]
    pub fn single(cpu: usize) -> Self {
        Self(BTreeSet::from([cpu]))
    }

    /// `0-3,5`: a list of processors as the kernel writes it; empty text is the empty set. Reversed ranges are refused, and numbers that
    /// no kernel has.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        // What an unset list reads as on some kernels.
        if text.is_empty() || text == "(null)" {
            return Some(Self::default());
        }
        let number = |text: &str| text.trim().parse().ok().filter(|cpu| *cpu <= HIGHEST);
        let mut found = Self::default();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return None;
            }
            found.extend(first..=last);
        }
        Some(found)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `cpu` is one of them.
    pub fn contains(&self, cpu: usize) -> bool {
        self.0.contains(&cpu)
    }

    /// Whether each of these is also in `others`.
    pub fn is_subset(&self, others: &Self) -> bool {
        self.0.is_subset(&others.0)
    }

    /// Whether some processor is in both.
    pub fn overlaps(&self, others: &Self) -> bool {
        !self.0.is_disjoint(&others.0)
    }

    /// Those of these that are not in `others`.
    #[must_use]
    pub fn without(&self, others: &Self) -> Self {
        Self(&self.0 - &others.0)
    }

    /// Those that are in both.
    #[must_use]
    pub fn both(&self, others: &Self) -> Self {
        Self(&self.0 & &others.0)
    }

    /// From the lowest number to the highest.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().copied()
    }
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl Extend<usize> for CpuSet {
    fn extend<I: IntoIterator<Item = usize>>(&mut self, cpus: I) {
        self.0.extend(cpus);
    }
}

/// As the kernel and `taskset -c` write it: `0-3,5`.
impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.iter().peekable();
        let mut comma = "";
        while let Some(first) = rest.next() {
            let mut last = first;
            while let Some(next) = rest.next_if(|&next| last.checked_add(1) == Some(next)) {
                last = next;
            }
            if first == last {
                write!(f, "{comma}{first}")?;
            } else {
                write!(f, "{comma}{first}-{last}")?;
            }
            comma = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_are_read() {
        let set = |cpus: &[usize]| Some(cpus.iter().copied().collect());
        assert_eq!(CpuSet::parse("0-2,5\n"), set(&[0, 1, 2, 5]));
        assert_eq!(CpuSet::parse("\n"), set(&[]));
        assert_eq!(CpuSet::parse("(null)\n"), set(&[]));
        for wrong in ["3-1", "a", "1,,2", "0-99999999", "-1"] {
            assert_eq!(CpuSet::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn of_two_sets_what_both_have_and_what_one_lacks() {
        let [kept, online] = ["0-3,7", "0,2-5"].map(|list| CpuSet::parse(list).unwrap());
        assert_eq!(kept.both(&online).to_string(), "0,2-3");
        assert_eq!(kept.without(&online).to_string(), "1,7");
    }

    #[test]
    fn processors_print_as_ranges() {
        let set: CpuSet = [0, 1, 2, 5, 7, 8, HIGHEST].into_iter().collect();
        assert_eq!(set.to_string(), "0-2,5,7-8,65535");
        assert_eq!(CpuSet::default().to_string(), "");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(?s).{0,300}", word in "[0-9 ,\n-]{0,200}") {
            let _ = (CpuSet::parse(&text), CpuSet::parse(&word));
        }

        /// Written out and read back, a set of processors is the same set.
        #[test]
        fn lists_survive_a_round_trip(set in prop::collection::btree_set(0usize..300, 0..40)) {
            let set: CpuSet = set.into_iter().collect();
            prop_assert_eq!(CpuSet::parse(&set.to_string()), Some(set));
        }
    }
}
