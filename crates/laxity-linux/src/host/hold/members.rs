//! The threads of a program that have slots together.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use laxity_model::enforce::ranks;
use laxity_model::{Instant, Service};

use super::super::command::family::Family;
use super::subject::is_too_much;
use crate::enforce::confine::Freezer;
use crate::enforce::slots::{Inheriting, Program};
use crate::os::clock;
use crate::os::cpuset::CpuSet;
use crate::os::fact::{Fact, Unknown};
use crate::os::sched::{self, Attributes, Policy, Restore, SchedError, Tid};
use crate::os::schedstat::Account;

/// So many times who has the rank is looked for at the end: in each round only who was started during the one before is found.
const CLEARED_WITHIN: usize = 100;

/// Who they are now. The dispatcher takes the lock at edges; who adds one plans outside it, and who holds it inherits the rank of who waits.
pub(super) struct Members {
    list: Inheriting<List>,
    /// What a thread of the program had before: who is started in the slots has the rank of them, and their processor, from who started it.
    before: (Attributes, CpuSet),
    /// Stops them outside their slots; without one they run there as they did before.
    freezer: Option<Freezer>,
    /// Who had the rank of slots before there were any: it is their own.
    ranked_before: Vec<Tid>,
    /// Their processes have no threads but them: what these have received is then known by one clock for each process.
    are_all: bool,
}

#[derive(Default)]
struct List {
    /// Their slot is now.
    inside: bool,
    /// They have no slots now.
    released: bool,
    threads: Vec<Member>,
    processes: Vec<u32>,
    /// What members have received as such, those that have gone too, where each is counted by itself.
    received: Service,
}

#[derive(Clone)]
struct Member {
    tid: Tid,
    /// What it has outside its slots.
    own: Attributes,
    /// What it had at the end of one, if somebody had changed it.
    changed: Arc<OnceLock<Policy>>,
    /// Where each is counted by itself; `None` where that cannot be.
    counted: Option<Arc<Counter>>,
}

/// Counts what one of them receives. The kernel's account is exact where it is read: on the processor of the slots, by who runs there instead.
struct Counter {
    account: Account,
    /// Nanoseconds that it had received by the last reading.
    before: AtomicU64,
    /// No later than that was read, in nanoseconds.
    looked: AtomicU64,
}

impl Counter {
    /// From now on; `None` where the kernel tells nothing, as of one that has gone.
    fn of(thread: Tid) -> Option<Self> {
        let account = Account::of(thread).ok()?;
        let looked = AtomicU64::new(clock::now().as_nanos());
        let before = AtomicU64::new(account.read().ok()?.service.as_nanos());
        Some(Self {
            account,
            before,
            looked,
        })
    }

    /// What it has received since the last reading; of one that has ended since, nobody knows, and it gets nothing any more. Where it has the number of another
    /// since, that is counted from now on. A system call, no allocation.
    fn since(&self) -> Service {
        let looks = clock::now();
        let Some(now) = self.account.service() else {
            return Service::ZERO;
        };
        let looked = self.looked.swap(looks.as_nanos(), Ordering::Relaxed);
        let before = self.before.swap(now.as_nanos(), Ordering::Relaxed);
        let had = now.saturating_sub(Service::from_nanos(before));
        let passed = clock::now().saturating_since(Instant::from_nanos(looked));
        match is_too_much(had, passed) {
            true => Service::ZERO,
            false => had,
        }
    }
}

/// Who has the rank of slots of those that a freezer stops. Of whom no policy can be read has gone, and a group that has gone had nobody.
fn ranked(stopped: io::Result<Vec<i32>>) -> Fact<Vec<Tid>> {
    let stopped = match stopped {
        // The second where it went between the opening and the reading of its file.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV)) => {
            Vec::new()
        }
        Err(error) => {
            let why = format!("cannot see who is stopped (cgroup.threads): {error}");
            return Err(Unknown(why));
        }
        Ok(stopped) => stopped,
    };
    let ranked = stopped
        .into_iter()
        .map(Tid)
        .filter(|tid| sched::policy(*tid) == Ok(Members::INSIDE));
    Ok(ranked.collect())
}

impl Members {
    /// What a member has in its slot.
    pub(super) const INSIDE: Policy = Policy::Fifo(ranks::OCCUPANT);

    /// Nobody yet, of a program of which a thread had this before; or why nobody knows who has the rank of slots already. `are_all`: all threads of its
    /// processes are to be members.
    pub(super) fn new(
        freezer: Option<Freezer>,
        before: (Attributes, CpuSet),
        are_all: bool,
    ) -> Fact<Self> {
        let ranked_before = match &freezer {
            Some(freezer) => ranked(freezer.threads())?,
            None => Vec::new(),
        };
        Ok(Self {
            list: Inheriting::new(List::default()),
            before,
            freezer,
            ranked_before,
            are_all,
        })
    }

    /// As it has that. One that is stopped outside has it always, and what it starts inherits it: that is stopped with it. Of others,
    /// what they start is an ordinary thread until it is seen: it could not be told from the outside that its slot is over.
    fn inside(&self) -> Attributes {
        Attributes::new(Self::INSIDE, self.freezer.is_none())
    }

    /// Whether a process stands still outside the slots, with its threads; or why that is not known, as of one that has gone.
    pub(super) fn stops(&self, process: u32) -> Fact<bool> {
        let freezer = self.freezer.as_ref();
        freezer.map_or(Ok(false), |freezer| {
            let found = freezer.has(process.cast_signed());
            found.map_err(|why| Unknown(why.to_string()))
        })
    }

    /// What a thread has of its own: not what it has from another member, who had it by its place on this processor.
    pub(super) fn own(&self, tid: Tid, cpu: usize) -> Result<Restore, SchedError> {
        let (mut policy, mut processors) = (Attributes::of(tid)?, sched::affinity(tid)?);
        if policy.policy() == Self::INSIDE {
            policy = self.before.0;
        }
        if processors == CpuSet::single(cpu) {
            processors.clone_from(&self.before.1);
        }
        Ok(Restore::to(tid, (policy, processors)))
    }

    /// After [`Program::release`] nobody has the rank, nor the processor by it: whom the freezer has may have them from who started it, without having been
    /// seen. Or why that is not known; who has them still then, the guardian makes ordinary when we are gone.
    pub(super) fn clear(&self) -> Fact<()> {
        let Some(freezer) = &self.freezer else {
            return Ok(());
        };
        if self.before.0.policy() == Self::INSIDE {
            return Ok(());
        }
        // Who is just being started has what its starter had a moment ago.
        for _ in 0..CLEARED_WITHIN {
            let mut ranked = ranked(freezer.threads())?;
            ranked.retain(|tid| !self.ranked_before.contains(tid));
            if ranked.is_empty() {
                return Ok(());
            }
            for tid in ranked {
                // It may have ended.
                let _ = self.before.0.apply_unchecked(tid);
                let _ = sched::set_affinity(tid, &self.before.1);
            }
        }
        Ok(())
    }

    /// One more, that has this of its own. It has a slot from now on, if that is now.
    pub(super) fn add(&self, tid: Tid, own: Attributes) -> Result<(), SchedError> {
        let counted = (!self.are_all).then(|| Counter::of(tid)).flatten();
        let mut threads = self.list.lock().threads.clone();
        threads.push(Member {
            tid,
            own,
            changed: Arc::default(),
            counted: counted.map(Arc::new),
        });
        let mut list = self.list.lock();
        // What is left over is freed after the lock.
        std::mem::swap(&mut list.threads, &mut threads);
        if !list.released && (self.freezer.is_some() || list.inside) {
            self.inside().apply_unchecked(tid)
        } else {
            Ok(())
        }
    }

    /// It is in its slot now, or out of it. Where it had none before, who is only stopped has the rank again.
    fn place(&self, list: &mut List, inside: bool) -> Result<(), SchedError> {
        list.inside = inside;
        if std::mem::take(&mut list.released) && self.freezer.is_some() {
            self.each(list, |_| self.inside())?;
        }
        Ok(())
    }

    /// Those who are there still, and the processes that they are of.
    pub(super) fn keep(&self, family: &Family, living: &[Tid]) {
        let mut threads = self.list.lock().threads.clone();
        threads.retain(|member| living.contains(&member.tid));
        let mut processes = family.processes().collect();
        let mut list = self.list.lock();
        std::mem::swap(&mut list.threads, &mut threads);
        std::mem::swap(&mut list.processes, &mut processes);
    }

    /// What somebody had made of a thread by the end of a slot; or has now, where it has a rank of a slot's or above that the dispatcher did not give it: that may keep the
    /// dispatcher itself from the end of the slot. What it has of its own outside its slots otherwise is its own business.
    pub(super) fn changed(&self, thread: Tid) -> Option<Policy> {
        let member = {
            let list = self.list.lock();
            list.threads.iter().find(|one| one.tid == thread)?.clone()
        };
        let given = [Self::INSIDE, member.own.policy()];
        let is_raised =
            |found: &Policy| found.outranks(ranks::BELOW_OCCUPANT) && !given.contains(found);
        let now = || sched::policy(thread).ok().filter(is_raised);
        member.changed.get().copied().or_else(now)
    }

    /// A slot ends: who has not what it was given for it was changed meanwhile. A system call a thread.
    fn read_back(list: &List) {
        if !list.inside || list.released {
            return;
        }
        for member in &list.threads {
            // Who has ended has nothing.
            let found = sched::policy(member.tid).ok();
            if let Some(changed) = found.filter(|found| *found != Self::INSIDE) {
                let _ = member.changed.set(changed);
            }
        }
    }

    fn each(
        &self,
        list: &List,
        attributes: impl Fn(&Member) -> Attributes,
    ) -> Result<(), SchedError> {
        for member in &list.threads {
            match attributes(member).apply_unchecked(member.tid) {
                // It has ended.
                Err(error) if error.errno() == Some(libc::ESRCH) => {}
                done => done?,
            }
        }
        Ok(())
    }

    fn switch(freeze: io::Result<()>) -> Result<(), SchedError> {
        freeze.map_err(|error| SchedError::Os {
            call: "write",
            tid: Tid(0),
            request: "cgroup.freeze".to_owned(),
            errno: error.raw_os_error().unwrap_or(0),
        })
    }
}

impl Program for Members {
    fn enter(&self) -> Result<(), SchedError> {
        let mut list = self.list.lock();
        self.place(&mut list, true)?;
        match &self.freezer {
            Some(freezer) => Self::switch(freezer.thaw()),
            None => self.each(&list, |_| self.inside()),
        }
    }

    fn leave(&self) -> Result<(), SchedError> {
        let mut list = self.list.lock();
        Self::read_back(&list);
        self.place(&mut list, false)?;
        match &self.freezer {
            Some(freezer) => Self::switch(freezer.freeze()),
            None => self.each(&list, |member| member.own),
        }
    }

    fn release(&self) -> Result<(), SchedError> {
        let mut list = self.list.lock();
        list.released = true;
        let thawed = self
            .freezer
            .as_ref()
            .map_or(Ok(()), |freezer| Self::switch(freezer.thaw()));
        self.each(&list, |member| member.own)?;
        thawed
    }

    fn service(&self) -> Option<Service> {
        let mut list = self.list.lock();
        let list = &mut *list;
        if self.are_all {
            let processes = list.processes.iter();
            return processes
                .map(|process| clock::service_of_process(*process))
                .sum();
        }
        // What a thread that is not meant does meanwhile, on whatever processor, is nothing that the slots gave.
        let mut is_known = true;
        for member in &list.threads {
            // Whoever else cannot be counted.
            match &member.counted {
                Some(counter) => list.received += counter.since(),
                None => is_known = false,
            }
        }
        is_known.then_some(list.received)
    }
}

#[cfg(test)]
mod tests;
