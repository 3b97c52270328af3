//! Who is there, what each has to do with the others, and what admission makes of that.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use laxity_model::analysis::Task;
use laxity_model::executor::members::{self, InGroup, Set};
use laxity_model::executor::share::{Share, ShareCounts};
use laxity_model::program::upcalls::{Counts, NotAdmitted};
use laxity_model::{Service, Span};

use super::core::Core;
use super::{Error, Pace, Spec, State};

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
    /// A thread of its own process wakes for what its descriptor has.
    pub(super) is_woken: bool,
    /// The executor itself looks at that, between calls.
    pub(super) is_polled: bool,
}

impl Member {
    /// What is asked for, with a task that admission is to replace; of an executor that `shares` its processor with other processes or not.
    pub(super) fn new(spec: &Spec, shares: bool) -> Self {
        static SERIALS: AtomicU64 = AtomicU64::new(0);
        let is_fed = matches!(spec.pace, Pace::Descriptor(_));
        Self {
            name: spec.name.clone(),
            serial: SERIALS.fetch_add(1, Ordering::Relaxed),
            task: None,
            after: spec.after_whom(),
            group: spec.group.as_ref().map(|group| Arc::clone(&group.0)),
            is_woken: shares && is_fed,
            is_polled: !shares && is_fed,
        }
    }

    fn asked(&self) -> members::Member<'_> {
        let group = self.group.as_ref();
        members::Member {
            name: &self.name,
            id: self.serial,
            task: self.task,
            after: self.after.map(|before| before.serial),
            group: group.map(|group| InGroup {
                name: &group.name,
                share: &group.share,
            }),
            is_woken: self.is_woken,
            is_polled: self.is_polled,
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
    let group = spec.group.as_ref().map(|group| &group.0);
    if group.is_some_and(|group| !std::ptr::eq(group.core.as_ptr(), Arc::as_ptr(core))) {
        return Err(Error::NotHere);
    }
    let before = spec.after_whom().map(|before| {
        let mut known = present.iter().filter(|one| !closed.contains(&one.serial));
        let before = known.find(|member| member.serial == before.serial);
        before.ok_or(Error::NotHere)
    });
    let before = before.transpose()?.map(|before| before.asked());
    let own = (spec.quantum(), spec.timing.period);
    let share = group.map(|group| &*group.share);
    members::can_link(own, share, before.as_ref()).or_else(refused)
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

/// These as admission sees them.
pub(super) fn set<'a>(members: impl Iterator<Item = &'a Member>) -> Set<'a> {
    members.map(Member::asked).collect()
}

impl Core {
    /// All that are there of whom this is true, by name, each with its state and what it has done. In a child there is none, and no lock is waited for.
    pub(super) fn list(&self, of: impl Fn(&Member) -> bool) -> Vec<(String, State, Counts)> {
        if self.is_elsewhere() {
            return Vec::new();
        }
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
