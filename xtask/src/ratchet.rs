//! Exceptions to the rules of `style` and `direction` that were there before the rules. Their list may only shrink.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

use crate::process::root;

/// One exception a line: its rule, what it is about, and how much of it there may be.
const FILE: &str = "xtask/exceptions.txt";

/// The exceptions to one rule.
#[derive(Debug)]
pub(crate) struct Ratchet {
    rule: &'static str,
    /// What may be against the rule, and how much of it.
    allowed: BTreeMap<String, usize>,
}

impl Ratchet {
    /// The exceptions to this rule that are listed.
    ///
    /// # Errors
    ///
    /// The list cannot be read.
    pub(crate) fn load(rule: &'static str) -> Result<Self> {
        let text = std::fs::read_to_string(root().join(FILE)).context(FILE)?;
        Self::parse(rule, &text)
    }

    fn parse(rule: &'static str, text: &str) -> Result<Self> {
        let mut allowed = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let entry = line.split_once(' ').and_then(|(of, rest)| {
                let (what, count) = rest.rsplit_once(' ')?;
                Some((of, what, count.parse().ok()?))
            });
            let (of, what, count) =
                entry.with_context(|| format!("{FILE}: {line:?} is not RULE WHAT COUNT"))?;
            if of == rule {
                allowed.insert(what.to_string(), count);
            }
        }
        Ok(Self { rule, allowed })
    }

    /// Whether there is an exception at all.
    pub(crate) fn is_in_use(&self) -> bool {
        !self.allowed.is_empty()
    }

    /// Holds what is against the rule against the list.
    ///
    /// # Errors
    ///
    /// There is more than the list allows, or the list allows more than there is.
    pub(crate) fn check(&self, found: &BTreeMap<String, usize>) -> Result<()> {
        let mut wrong = Vec::new();
        for (what, count) in found {
            match self.allowed.get(what) {
                None => wrong.push(format!("{} {what}: {count}", self.rule)),
                Some(allowed) if count > allowed => {
                    wrong.push(format!("{} {what}: {count}, was {allowed}", self.rule));
                }
                Some(_) => {}
            }
        }
        for what in self
            .allowed
            .keys()
            .filter(|what| !found.contains_key(*what))
        {
            wrong.push(format!(
                "{} {what} keeps the rule now: take its line out of {FILE} (`cargo xtask shrink`)",
                self.rule
            ));
        }
        if wrong.is_empty() {
            return Ok(());
        }
        bail!("{}", wrong.join("\n  "))
    }

    /// The lines of the list that are still needed, with what there is where that is less.
    fn shrunk(&self, found: &BTreeMap<String, usize>) -> impl Iterator<Item = String> {
        let needed = self.allowed.iter().filter_map(|(what, allowed)| {
            let count = found.get(what)?.min(allowed);
            Some(format!("{} {what} {count}", self.rule))
        });
        needed.collect::<Vec<_>>().into_iter()
    }
}

/// Takes out of the list what is no longer needed, for these rules with what is found against each; returns how many lines are left.
///
/// # Errors
///
/// The list cannot be read or written.
pub(crate) fn shrink(rules: &[(&'static str, BTreeMap<String, usize>)]) -> Result<usize> {
    let path = root().join(FILE);
    let text = std::fs::read_to_string(&path)?;
    let comments = text.lines().filter(|line| line.starts_with('#'));
    let mut lines: Vec<String> = comments.map(String::from).collect();
    let head = lines.len();
    for (rule, found) in rules {
        lines.extend(Ratchet::parse(rule, &text)?.shrunk(found));
    }
    std::fs::write(&path, lines.join("\n") + "\n")?;
    Ok(lines.len() - head)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pairs: &[(&str, usize)]) -> BTreeMap<String, usize> {
        let pairs = pairs.iter();
        pairs
            .map(|(what, count)| (what.to_string(), *count))
            .collect()
    }

    #[test]
    fn a_list_may_only_shrink() {
        let text = "# why\nfile a.rs 600\nfunction a.rs run 70\nfile b.rs 700\n";
        let files = Ratchet::parse("file", text).expect("a list");
        let check = |pairs: &[_]| {
            files
                .check(&found(pairs))
                .map_err(|error| error.to_string())
        };
        assert_eq!(check(&[("a.rs", 600), ("b.rs", 650)]), Ok(()));
        let more = check(&[("a.rs", 601), ("b.rs", 700)]).unwrap_err();
        assert!(more.contains("a.rs: 601, was 600"), "{more}");
        let new = check(&[("a.rs", 600), ("b.rs", 700), ("c.rs", 501)]).unwrap_err();
        assert!(new.contains("c.rs: 501"), "{new}");
        let done = check(&[("a.rs", 600)]).unwrap_err();
        assert!(done.contains("b.rs keeps the rule now"), "{done}");
        let shrunk: Vec<_> = files
            .shrunk(&found(&[("b.rs", 650), ("c.rs", 501)]))
            .collect();
        assert_eq!(shrunk, ["file b.rs 650"]);
        assert!(Ratchet::parse("file", "file a.rs\n").is_err());
    }
}
