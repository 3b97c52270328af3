//! Who is there, what each has to do with the others, and what admission makes of that.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use laxity_model::analysis::{Preemption, Task};
use laxity_model::executor::linked::Linked;
use laxity_model::executor::share::{Share, ShareCounts};
use laxity_model::program::upcalls::{Counts, NotAdmitted};
use laxity_model::{Service, Span};

use super::core::Core;
use super::{Error, Spec, State};

/// One upcall, which nobody else is at its place later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Predecessor {
    pub(super) place: u16,
    pub(super) serial: u64,
}

/// An upcall, as those know it who ask for another.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) serial: u64,
    /// `None` while it is not admitted.
    pub(super) task: Option<Task>,
    pub(super) after: Option<Predecessor>,
    pub(super) group: Option<Arc<Grouped>>,
}

impl Member {
    /// What is asked for, with a task that admission is to replace.
    pub(super) fn new(spec: &Spec) -> Self {
        static SERIALS: AtomicU64 = AtomicU64::new(0);
        Self {
            name: spec.name.clone(),
            serial: SERIALS.fetch_add(1, Ordering::Relaxed),
            task: None,
            after: spec.after_whom(),
            group: spec.group.as_ref().map(|group| Arc::clone(&group.0)),
        }
    }
}

/// Whether it can have to do with others as it asks for, which are not closed.
pub(super) fn can_link(
    core: &Arc<Core>,
    spec: &Spec,
    present: &[&Member],
    closed: &[u64],
) -> Result<(), Error> {
    let refused = |reason: String| {
        Err(Error::NotAdmitted(Box::new(NotAdmitted {
            asked: spec.name.clone(),
            bottleneck: spec.name.clone(),
            reason,
            fits: None,
        })))
    };
    if let Some(group) = &spec.group {
        if !std::ptr::eq(group.0.core.as_ptr(), Arc::as_ptr(core)) {
            return Err(Error::NotHere);
        }
        let (quantum, budget) = (spec.quantum(), group.0.share.budget());
        if quantum > budget {
            return refused(format!(
                "a quantum of it takes {quantum}, and its group has {budget} a period"
            ));
        }
    }
    let Some(before) = spec.after_whom() else {
        return Ok(());
    };
    let mut known = present.iter().filter(|one| !closed.contains(&one.serial));
    let before = known.find(|member| member.serial == before.serial);
    let before = before.ok_or(Error::NotHere)?;
    if spec.group.is_some() || before.group.is_some() {
        return refused("a chain has no bound where one of it shares a budget".to_owned());
    }
    let own = spec.timing.period;
    match before.task.map(|task| task.period()) {
        Some(period) if own > period => refused(format!(
            "it comes as often as {}, every {period}, and not every {own}",
            before.name
        )),
        _ => Ok(()),
    }
}

/// What a group is.
pub(super) struct Grouped {
    pub(super) name: String,
    pub(super) share: Arc<Share>,
    pub(super) core: Weak<Core>,
}

/// Upcalls that have one budget together: in each period of the group its calls get no more than that, in the order in which they are released, and what is over waits for the next period.
/// They are in that order among themselves and the group among the others by its period, whatever their own are.
///
/// Admission counts the group by its budget, so that nothing is promised of the calls of one member, and what the others are promised holds whatever the members want. A quantum begins only where all that
/// is declared for it is left; one that takes more leaves a debt. A group whose last member is closed costs nothing.
#[derive(Clone)]
pub struct Group(pub(super) Arc<Grouped>);

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("name", &self.name())
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

impl PartialEq for Group {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Group {}

impl Group {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What its members have used together, and how often one waited for the next period. No lock, and no system call.
    pub fn counts(&self) -> ShareCounts {
        self.0.share.counts()
    }

    /// Its upcalls, as [`Upcalls::list`](super::Upcalls::list) tells of all. None if its executor has ended.
    pub fn list(&self) -> Vec<(String, State, Counts)> {
        let core = self.0.core.upgrade();
        let is_own = |member: &Member| {
            let group = member.group.as_ref();
            group.is_some_and(|group| Arc::ptr_eq(group, &self.0))
        };
        core.map_or_else(Vec::new, |core| core.list(is_own))
    }
}

/// All that take turns, as admission sees them: first those that are of no group, then the groups.
pub(super) struct Set<'a> {
    members: Vec<&'a Member>,
}

impl<'a> Set<'a> {
    pub(super) fn new(members: impl Iterator<Item = &'a Member>) -> Self {
        Self {
            members: members.collect(),
        }
    }

    fn singles(&self) -> impl Iterator<Item = &&'a Member> {
        self.members.iter().filter(|member| member.group.is_none())
    }

    fn groups(&self) -> Vec<&Arc<Grouped>> {
        let mut groups: Vec<&Arc<Grouped>> = Vec::new();
        for group in self.members.iter().filter_map(|one| one.group.as_ref()) {
            if !groups.iter().any(|known| Arc::ptr_eq(known, group)) {
                groups.push(group);
            }
        }
        groups
    }

    /// By index of what is [linked](Self::linked).
    pub(super) fn names(&self) -> Vec<&str> {
        let singles = self.singles().map(|member| member.name.as_str());
        let groups = self.groups().into_iter().map(|group| group.name.as_str());
        singles.chain(groups).collect()
    }

    /// The index of this one, or of its group, in what is [linked](Self::linked).
    pub(super) fn index(&self, serial: u64) -> Option<usize> {
        let member = self.members.iter().find(|member| member.serial == serial)?;
        match &member.group {
            None => self.singles().position(|single| single.serial == serial),
            Some(group) => {
                let groups = self.groups();
                let index = groups.iter().position(|known| Arc::ptr_eq(known, group));
                Some(self.singles().count() + index?)
            }
        }
    }

    /// What they are to admission.
    pub(super) fn linked(&self) -> Vec<Linked> {
        let single = |member: &&'a Member| {
            Some(Linked {
                after: member.after.and_then(|before| self.index(before.serial)),
                ..Linked::alone(member.task?)
            })
        };
        let groups = self.groups().into_iter();
        let groups = groups.filter_map(|group| self.group(group));
        self.singles().filter_map(single).chain(groups).collect()
    }

    fn group(&self, group: &Arc<Grouped>) -> Option<Linked> {
        let (budget, period) = (group.share.budget(), group.share.period());
        let (mut region, mut calls) = (Service::ZERO, 0_u32);
        for member in &self.members {
            let own = member.group.as_ref();
            let is_in = own.is_some_and(|own| Arc::ptr_eq(own, group));
            let Some(task) = member.task.filter(|_| is_in) else {
                continue;
            };
            region = region.max(task.longest_region());
            // One may be under way at the begin, and one begin at the end.
            let most = period.as_nanos().div_ceil(task.period().as_nanos()) + 1;
            calls = calls.saturating_add(u32::try_from(most).unwrap_or(u32::MAX));
        }
        let region = region.min(budget);
        let task = Task::new(budget, period).ok()?;
        let regions = Preemption::Floating { longest: region };
        Some(Linked {
            task: task.with_preemption(regions).ok()?,
            after: None,
            defers: true,
            calls,
        })
    }
}

impl Core {
    /// All that are there of whom this is true, by name, each with its state and what it has done.
    pub(super) fn list(&self, of: impl Fn(&Member) -> bool) -> Vec<(String, State, Counts)> {
        let members = self.members();
        let there = members.iter().enumerate();
        let there = there.filter_map(|(place, member)| Some((place, member.as_ref()?)));
        let there = there.filter(|(place, member)| !self.is_gone(*place) && of(member));
        let told = |(place, member): (usize, &Member)| {
            let state = self.state(place as u16);
            let counts = self.boards[place].counts();
            (member.name.clone(), state, counts)
        };
        there.map(told).collect()
    }

    /// A group of this budget, without members yet.
    pub(super) fn group(
        self: &Arc<Self>,
        name: &str,
        budget: Service,
        period: Span,
    ) -> Result<Group, Error> {
        let share = Share::new(budget, period, crate::now());
        let share = share.ok_or(Error::NoBudget(budget, period))?;
        Ok(Group(Arc::new(Grouped {
            name: name.to_owned(),
            share: Arc::new(share),
            core: Arc::downgrade(self),
        })))
    }
}
