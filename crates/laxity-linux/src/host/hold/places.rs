//! What the threads of a program are given: a place in its slots, or each a reservation of its own.

use std::collections::BTreeSet;
use std::sync::Arc;

use laxity_model::Reservation;

use super::super::command::family::Family;
use super::HoldError;
use super::members::Members;
use crate::enforce::deadline;
use crate::os::cpuset::CpuSet;
use crate::os::fact::Fact;
use crate::os::sched::{self, Attributes, Policy, Restore, SchedError, Tid};

/// What becomes of a thread that is found.
pub(super) trait Places: Send {
    /// Gives it what it is to have, beside what it has of its own.
    fn place(&mut self, thread: Tid, own: Attributes) -> Result<(), HoldError>;

    /// What a thread has of its own that came later: it may have something else from who started it.
    fn own(&self, thread: Tid) -> Result<Restore, SchedError> {
        Restore::of(thread)
    }

    /// A thread came later and is not meant: it has nothing that it has from who started it.
    fn pass(&self, _: Tid) {}

    /// Who is there still.
    fn keep(&mut self, family: &Family, living: &[Tid]);

    /// Whether the threads share one reservation; else each has its own.
    fn is_shared(&self) -> bool;

    /// Whether a process runs in the slots alone, whatever its rank is.
    fn confines(&self, _: u32) -> Fact<bool> {
        Ok(false)
    }

    /// What somebody has made of one that was placed, in words. A system call or two.
    fn changed(&self, thread: Tid) -> Option<String>;
}

/// That a thread has another policy than it was given.
pub(super) fn taken_out(found: Policy, ought: Policy) -> Option<String> {
    (found != ought)
        .then(|| format!("was taken out of its reservation: it had {found} instead of {ought}"))
}

/// A place in the slots of a program.
pub(super) struct Slotted {
    pub(super) members: Arc<Members>,
    pub(super) cpu: usize,
    /// Where what the program starts is not meant: whom it starts.
    pub(super) passed: Option<Passed>,
}

/// The threads of a program and of all that it starts, of which some are not meant.
pub(super) struct Passed {
    family: Family,
    /// Those that were there at the last look; `None` before the first, by which nobody has anything from those in the slots.
    known: Option<BTreeSet<Tid>>,
}

impl Passed {
    pub(super) const fn new(family: Family) -> Self {
        let known = None;
        Self { family, known }
    }

    /// Who came since the last look, and is not one of these. Who cannot be seen is looked for again.
    fn came(&mut self, meant: &[Tid]) -> Vec<Tid> {
        let Ok(all) = self.family.refresh() else {
            return Vec::new();
        };
        let all: BTreeSet<Tid> = all.into_iter().filter(|one| !meant.contains(one)).collect();
        let before = self.known.replace(all.clone());
        before.map_or_else(Vec::new, |before| {
            all.difference(&before).copied().collect()
        })
    }
}

impl Places for Slotted {
    fn place(&mut self, thread: Tid, own: Attributes) -> Result<(), HoldError> {
        sched::set_affinity(thread, &CpuSet::single(self.cpu))?;
        Ok(self.members.add(thread, own)?)
    }

    fn own(&self, thread: Tid) -> Result<Restore, SchedError> {
        self.members.own(thread, self.cpu)
    }

    fn pass(&self, thread: Tid) {
        // Dropped, it is given back. Who has gone has nothing.
        drop(self.own(thread));
    }

    fn keep(&mut self, family: &Family, living: &[Tid]) {
        self.members.keep(family, living);
        let came = self.passed.as_mut().map(|passed| passed.came(living));
        for thread in came.into_iter().flatten() {
            self.pass(thread);
        }
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn confines(&self, process: u32) -> Fact<bool> {
        self.members.stops(process)
    }

    fn changed(&self, thread: Tid) -> Option<String> {
        if let Some(found) = self.members.changed(thread) {
            return taken_out(found, Members::INSIDE);
        }
        let may_be_on = sched::affinity(thread).ok()?;
        (may_be_on != CpuSet::single(self.cpu)).then(|| {
            format!(
                "was taken from its slots: it might run on processors {may_be_on} instead of {}",
                self.cpu
            )
        })
    }
}

/// A reservation of its own, by the kernel.
pub(super) struct Reserving(pub(super) Reservation);

impl Places for Reserving {
    fn place(&mut self, thread: Tid, _: Attributes) -> Result<(), HoldError> {
        Ok(deadline::reserve(thread, self.0)?)
    }

    fn keep(&mut self, _: &Family, _: &[Tid]) {}

    fn is_shared(&self) -> bool {
        false
    }

    fn changed(&self, thread: Tid) -> Option<String> {
        let found = sched::policy(thread).ok()?;
        taken_out(found, Policy::Deadline(self.0.into()))
    }
}
