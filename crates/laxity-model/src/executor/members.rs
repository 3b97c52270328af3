//! Those who take turns, each with what it has to do with others: who comes after whom, and who has a budget with whom. What admission makes of them is what is [linked](super::linked).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::in_order::analysed;
use super::linked::Linked;
use super::share::Share;
use crate::analysis::{Preemption, Task};
use crate::{Service, Span};

/// One of those who take turns, as it asks for it.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// Its name.
    pub name: &'a str,
    /// Nobody else among them has it.
    pub id: u64,
    /// `None` while it is not known.
    pub task: Option<Task>,
    /// The one whose calls release it when they are over.
    pub after: Option<u64>,
    /// With whom it has its service together.
    pub group: Option<InGroup<'a>>,
    /// Somebody [wakes](Linked::wakes) for each of its calls.
    pub is_woken: bool,
    /// What releases it is [looked for](Linked::polled) between calls alone.
    pub is_polled: bool,
}

/// A group, as its members know it.
#[derive(Clone, Copy, Debug)]
pub struct InGroup<'a> {
    /// Its name.
    pub name: &'a str,
    /// What its members have together; those that have the same are one group.
    pub share: &'a Share,
}

impl InGroup<'_> {
    fn is(&self, other: &Self) -> bool {
        core::ptr::eq(self.share, other.share)
    }
}

/// Whether one with this quantum and period can be in this group, and after that one.
///
/// # Errors
///
/// Why not: a sentence about it.
pub fn can_link(
    (quantum, period): (Service, Span),
    group: Option<&Share>,
    before: Option<&Member<'_>>,
) -> Result<(), String> {
    if let Some(budget) = group.map(Share::budget).filter(|budget| quantum > *budget) {
        return Err(format!(
            "a quantum of it takes {quantum}, and its group has {budget} a period"
        ));
    }
    let Some(before) = before else {
        return Ok(());
    };
    if group.is_some() || before.group.is_some() {
        return Err("a chain has no bound where one of it shares a budget".to_string());
    }
    match before.task.map(|task| task.period()) {
        Some(often) if period > often => Err(format!(
            "it comes as often as {}, every {often}, and not every {period}",
            before.name
        )),
        _ => Ok(()),
    }
}

/// All that take turns, as admission sees them: first those that are of no group, then the groups.
#[derive(Clone, Debug)]
pub struct Set<'a> {
    members: Vec<Member<'a>>,
}

impl<'a> FromIterator<Member<'a>> for Set<'a> {
    fn from_iter<I: IntoIterator<Item = Member<'a>>>(members: I) -> Self {
        let members = members.into_iter().map(|member| Member {
            task: member.task.as_ref().map(analysed),
            ..member
        });
        Self {
            members: members.collect(),
        }
    }
}

impl<'a> Set<'a> {
    /// All of them.
    pub fn members(&self) -> &[Member<'a>] {
        &self.members
    }

    /// The one of this number.
    pub fn member(&self, id: u64) -> Option<&Member<'a>> {
        self.members.iter().find(|member| member.id == id)
    }

    /// Those that are of no group.
    pub fn singles(&self) -> impl Iterator<Item = &Member<'a>> {
        self.members.iter().filter(|member| member.group.is_none())
    }

    fn groups(&self) -> Vec<InGroup<'a>> {
        let mut groups: Vec<InGroup<'a>> = Vec::new();
        for group in self.members.iter().filter_map(|one| one.group) {
            if !groups.iter().any(|known| known.is(&group)) {
                groups.push(group);
            }
        }
        groups
    }

    /// By index of what is [linked](Self::linked).
    pub fn names(&self) -> Vec<&'a str> {
        let singles = self.singles().map(|member| member.name);
        let groups = self.groups().into_iter().map(|group| group.name);
        singles.chain(groups).collect()
    }

    /// The index of this one, or of its group, in what is [linked](Self::linked).
    pub fn index(&self, id: u64) -> Option<usize> {
        let member = self.member(id)?;
        match &member.group {
            None => self.singles().position(|single| single.id == id),
            Some(group) => {
                let groups = self.groups();
                let index = groups.iter().position(|known| known.is(group));
                Some(self.singles().count() + index?)
            }
        }
    }

    /// What they are to admission.
    pub fn linked(&self) -> Vec<Linked> {
        let single = |member: &Member<'a>| {
            Some(Linked {
                after: member.after.and_then(|before| self.index(before)),
                wakes: member.is_woken.into(),
                polled: member.is_polled,
                ..Linked::alone(member.task?)
            })
        };
        let groups = self.groups().into_iter();
        let groups = groups.filter_map(|group| self.group(&group));
        self.singles().filter_map(single).chain(groups).collect()
    }

    fn group(&self, group: &InGroup<'a>) -> Option<Linked> {
        let (budget, period) = (group.share.budget(), group.share.period());
        let (mut region, mut calls) = (Service::ZERO, 0_u32);
        let (mut wakes, mut quanta) = (0_u32, 0_u64);
        for member in &self.members {
            let is_in = member.group.is_some_and(|own| own.is(group));
            let Some(task) = member.task.filter(|_| is_in) else {
                continue;
            };
            region = region.max(task.longest_region());
            // One may be under way at the begin, and one begin at the end.
            let most = period.as_nanos().div_ceil(task.period().as_nanos()) + 1;
            quanta = quanta.saturating_add(task.regions().saturating_mul(most));
            let most = u32::try_from(most).unwrap_or(u32::MAX);
            calls = calls.saturating_add(most);
            wakes = wakes.saturating_add(if member.is_woken { most } else { 0 });
        }
        let region = region.min(budget);
        let task = Task::new(budget, period).ok()?;
        // Without a region it is one whose members are not known, and is taken to look at no time.
        let regions = match region.is_zero() {
            true => Preemption::Never,
            false => Preemption::Floating { longest: region },
        };
        Some(Linked {
            task: task.with_preemption(regions).ok()?,
            after: None,
            defers: true,
            calls,
            wakes,
            quanta,
            // Nothing is promised of its calls.
            polled: false,
        })
    }
}
