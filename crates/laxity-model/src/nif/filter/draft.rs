//! Conditions in the making: alternatives with the tags that they stand behind.

use alloc::format;
use alloc::vec::Vec;

use super::condition::Condition;
use super::words::{FilterError, Word};
use crate::nif::frame::Field;

/// The most conditions of a filter.
pub const MOST: usize = 256;

/// A condition in the making: what is said behind all tags, and the ids of the tags as far as they are said.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Draft {
    pub(super) tags: Vec<Option<u16>>,
    pub(super) behind: Condition,
}

impl From<Condition> for Draft {
    fn from(behind: Condition) -> Self {
        let tags = Vec::new();
        Self { tags, behind }
    }
}

impl Draft {
    fn is_within(&self, other: &Self) -> bool {
        self.tags == other.tags && self.behind.is_within(&other.behind)
    }

    /// Both: the tags of the first are the outer ones. `None` if no packet is both.
    pub(super) fn and(&self, other: &Self) -> Option<Self> {
        let tags = [&self.tags[..], &other.tags].concat();
        let behind = self.behind.and(&other.behind)?;
        (tags.len() <= TAG_FIELDS.len()).then_some(Self { tags, behind })
    }

    /// What is looked for behind the tags is behind no further one.
    pub(super) fn finish(self) -> Condition {
        let mut all = self.behind;
        for (id, [has, field]) in self.tags.iter().zip(TAG_FIELDS) {
            all = all.with(has, 1);
            if let Some(id) = id {
                all = all.with(field, (*id).into());
            }
        }
        match TAG_FIELDS.get(self.tags.len()) {
            Some([further, _]) if self.behind != Condition::ALL => all.with(*further, 0),
            _ => all,
        }
    }
}

/// Of each tag, the outermost first: whether it is there, and its id.
const TAG_FIELDS: [[Field; 2]; 2] = [
    [Field::HAS_OUTER, Field::OUTER],
    [Field::HAS_INNER, Field::INNER],
];

/// Adds an alternative, if it adds anything; those that say nothing beside it go.
pub(super) fn add(drafts: &mut Vec<Draft>, draft: Draft) {
    if !drafts.iter().any(|other| draft.is_within(other)) {
        drafts.retain(|other| !other.is_within(&draft));
        drafts.push(draft);
    }
}

/// Only so many alternatives as there may be.
///
/// # Errors
///
/// At the operator that made more.
pub(super) fn few(operator: Word<'_>, drafts: &[Draft]) -> Result<(), FilterError> {
    if drafts.len() <= MOST {
        return Ok(());
    }
    Err(operator.wrong(format!(
        "that makes more than {MOST} alternatives; say `src` or `dst`, `ip` or `ip6`, `tcp` or `udp`, or make it several filters"
    )))
}
