//! Finds the threads of a program, those that come later too, and gives each what it is to have.

use std::collections::BTreeMap;
use std::sync::Arc;

use laxity_model::{Grade, HostError, Instant, Reservation, Span};

use super::super::command::family::{Family, name_of};
use super::HoldError;
use super::guarded::Guarded;
use super::members::Members;
use super::program::{Choice, ProgramRequest};
use super::seen::Seen;
use super::subject::{OneThread, Part, State, Subject};
use crate::enforce::deadline;
use crate::os::clock;
use crate::os::cpuset::CpuSet;
use crate::os::fact::{Fact, Unknown};
use crate::os::proc::RealTimeThread;
use crate::os::sched::{self, Policy, Tid};

/// How often it looks for threads that came later.
const LOOK_EVERY: Span = Span::from_millis(20);

/// What becomes of a thread that is found.
pub(super) trait Places: Send {
    /// Gives it what it is to have.
    fn place(&mut self, thread: Tid) -> Result<(), HoldError>;

    /// Who is there still.
    fn keep(&self, family: &Family, living: &[Tid]);

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
fn taken_out(found: Policy, ought: Policy) -> Option<String> {
    (found != ought)
        .then(|| format!("was taken out of its reservation: it had {found} instead of {ought}"))
}

/// A place in the slots of a program.
pub(super) struct Slotted {
    pub(super) members: Arc<Members>,
    pub(super) cpu: usize,
}

impl Places for Slotted {
    fn place(&mut self, thread: Tid) -> Result<(), HoldError> {
        sched::set_affinity(thread, &CpuSet::single(self.cpu))?;
        Ok(self.members.add(thread)?)
    }

    fn keep(&self, family: &Family, living: &[Tid]) {
        self.members.keep(family, living);
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
    fn place(&mut self, thread: Tid) -> Result<(), HoldError> {
        Ok(deadline::reserve(thread, self.0)?)
    }

    fn keep(&self, _: &Family, _: &[Tid]) {}

    fn is_shared(&self) -> bool {
        false
    }

    fn changed(&self, thread: Tid) -> Option<String> {
        let found = sched::policy(thread).ok()?;
        taken_out(found, Policy::Deadline(self.0.into()))
    }
}

/// The threads of a program, as the holder of its reservation.
pub(super) struct Follower {
    family: Family,
    choice: Choice,
    places: Box<dyn Places>,
    seen: Arc<Seen>,
    threads: BTreeMap<Tid, Found>,
    look_at: Instant,
}

/// A thread that was found.
struct Found {
    /// What was changed of it; `None`: nothing, since it is not meant.
    restore: Option<Guarded>,
    /// Where it shares a reservation.
    counted: Option<OneThread>,
}

impl Follower {
    pub(super) fn new(
        request: &ProgramRequest,
        family: Family,
        seen: Arc<Seen>,
        places: Box<dyn Places>,
    ) -> Self {
        Self {
            family,
            choice: request.choice.clone(),
            places,
            seen,
            threads: BTreeMap::new(),
            look_at: Instant::ZERO,
        }
    }

    /// Places who is there. One that cannot be placed is an error, and so is a program without a thread that is meant.
    pub(super) fn first(&mut self) -> Result<(), HoldError> {
        let living = self.living()?;
        for thread in living {
            match self.take(thread, true) {
                // It has gone meanwhile.
                Err(_) if name_of(thread).is_err() => {}
                taken => taken?,
            }
        }
        let placed = self.threads.values().any(|found| found.restore.is_some());
        let nobody = "the program has no thread that is meant".to_owned();
        placed
            .then_some(())
            .ok_or(HoldError::Host(HostError::Failed(nobody)))
    }

    /// Places who came since, and forgets who has gone.
    fn follow(&mut self) {
        let now = clock::now();
        if now < self.look_at {
            return;
        }
        self.look_at = now + LOOK_EVERY;
        // A thread may take its name later.
        if !self.family.may_have_grown() && self.choice.names.is_empty() {
            return;
        }
        match self.living() {
            Ok(living) => {
                for thread in living {
                    if let Err(error) = self.take(thread, self.choice.new_threads) {
                        self.note(thread, &error);
                    }
                }
            }
            Err(error) => self.seen.note(Grade::Unenforced {
                reason: format!("cannot see the program's threads: {error}"),
            }),
        }
    }

    /// Its threads that are there now; of those that are not, nothing is to be restored.
    fn living(&mut self) -> Result<Vec<Tid>, HoldError> {
        let unseen = |why: Unknown| HostError::CannotRun(why.to_string());
        let living = self.family.refresh().map_err(unseen)?;
        let gone = self
            .threads
            .extract_if(.., |thread, _| !living.contains(thread));
        // Its number may be somebody else's soon.
        gone.filter_map(|(_, found)| found.restore)
            .for_each(Guarded::forget);
        self.places.keep(&self.family, &living);
        Ok(living)
    }

    /// Places a thread, if it is one that is meant and was not seen before.
    fn take(&mut self, thread: Tid, is_meant: bool) -> Result<(), HoldError> {
        let known = self.threads.get(&thread);
        if known.is_some_and(|found| found.restore.is_some() || self.choice.names.is_empty()) {
            return Ok(());
        }
        let mut found = Found {
            restore: None,
            counted: None,
        };
        if is_meant && self.is_chosen(thread) {
            found.restore = Some(Guarded::of(thread, self.family.is_adopted())?);
            self.places.place(thread)?;
            self.count(thread, &mut found);
        }
        self.threads.insert(thread, found);
        Ok(())
    }

    fn is_chosen(&self, thread: Tid) -> bool {
        let names = &self.choice.names;
        let named = || name_of(thread).is_ok_and(|name| names.contains(&name));
        self.choice.only.is_none_or(|only| only == thread) && (names.is_empty() || named())
    }

    fn count(&self, thread: Tid, found: &mut Found) {
        match OneThread::new(thread) {
            Ok(counted) if self.places.is_shared() => found.counted = Some(counted),
            // It has ended since it was placed, and says nothing of the others.
            Err(_) if name_of(thread).is_err() => {}
            counted => {
                let subject = counted.map(|one| Box::new(one) as Box<dyn Subject>);
                self.seen.observe(subject);
            }
        }
    }

    /// Whoever has the right may take a thread out of its reservation, or change that, at any time: the program itself too.
    fn read_back(&mut self) {
        let held = self.threads.iter().filter(|(_, one)| one.restore.is_some());
        let changed: Vec<(Tid, String)> = held
            .filter_map(|(thread, _)| Some((*thread, self.places.changed(*thread)?)))
            .collect();
        // Who has gone has nothing, and its number may be somebody else's by now.
        if changed.is_empty() || self.living().is_err() {
            return;
        }
        for (thread, what) in changed {
            if self.threads.contains_key(&thread)
                && let Ok(name) = name_of(thread)
            {
                self.seen.note(Grade::Unenforced {
                    reason: format!("thread {thread} {name:?} of the program {what}"),
                });
            }
        }
    }

    /// A thread has not what it was to have; if it is there still, that is to be known.
    fn note(&self, thread: Tid, error: &HoldError) {
        if let Ok(name) = name_of(thread) {
            let reason = format!("thread {thread} {name:?} of the program is not held: {error}");
            self.seen.note(Grade::Unenforced { reason });
        }
    }
}

impl Subject for Follower {
    fn look(&mut self) -> Option<Part> {
        let mut part = Part::NOBODY;
        let counted = self.threads.values_mut();
        for one in counted.filter_map(|found| found.counted.as_mut()) {
            part.add(one.look().unwrap_or(Part::NOBODY));
        }
        self.read_back();
        self.follow();
        self.places.is_shared().then_some(part)
    }

    /// What the program starts has its rank from it, and may end before it is placed.
    fn has(&self, thread: &RealTimeThread) -> bool {
        let is_descendant = || self.family.has(thread.pid, thread.parent);
        self.threads.contains_key(&thread.tid)
            || match self.places.confines(thread.pid) {
                Ok(true) => true,
                Ok(false) => self.choice.children && is_descendant(),
                // It has gone, or nobody can look at it: it was where those are of whom it comes.
                Err(_) => is_descendant(),
            }
    }

    fn state(&self) -> State {
        let counted = self.threads.values();
        counted
            .filter_map(|found| found.counted.as_ref())
            .map(Subject::state)
            .max()
            .unwrap_or(State::Sleeps)
    }
}

/// What still runs has what it had before.
impl Drop for Follower {
    fn drop(&mut self) {
        // Who has gone is left out; where that cannot be seen, nobody's number was given away in the moment since.
        let _: Result<Vec<Tid>, HoldError> = self.living();
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use laxity_model::{Enforcer, Outside, Service};

    use super::super::HoldRequest;
    use super::super::above::is_above;
    use super::*;

    /// A thread is to keep what it has.
    struct Keeping(Policy);

    impl Places for Keeping {
        fn place(&mut self, _: Tid) -> Result<(), HoldError> {
            Ok(())
        }

        fn keep(&self, _: &Family, _: &[Tid]) {}

        fn is_shared(&self) -> bool {
            false
        }

        fn changed(&self, thread: Tid) -> Option<String> {
            taken_out(sched::policy(thread).ok()?, self.0)
        }
    }

    /// Of this process only this thread is held.
    fn request(only: Tid) -> ProgramRequest {
        let two_of_eight = Reservation::new(Service::from_millis(2), Span::from_millis(8));
        ProgramRequest {
            hold: HoldRequest {
                name: "it".to_owned(),
                reservation: two_of_eight.unwrap(),
                enforcer: Enforcer::Deadline,
                outside: Outside::Confined,
                processor: None,
            },
            choice: Choice {
                only: Some(only),
                ..Choice::default()
            },
            confinement: None,
            witnessed: false,
        }
    }

    #[test]
    fn a_thread_that_leaves_its_reservation_is_named_with_what_it_has() {
        let mut program = Command::new("sleep").arg("1000").spawn().unwrap();
        let thread = Tid(program.id().cast_signed());
        let seen = Seen::new(Grade::Enforced);
        let family = Family::new(program.id(), None, false);
        let is = sched::policy(thread).unwrap();
        let places = Box::new(Keeping(is));
        let mut follower = Follower::new(&request(thread), family, Arc::clone(&seen), places);
        follower.first().unwrap();
        follower.look();
        assert_eq!(seen.grade(), Grade::Enforced);
        sched::set_policy(thread, Policy::Batch { nice: 0 }).unwrap();
        follower.look();
        let reason = seen.grade().reason().map(str::to_owned);
        program.kill().unwrap();
        program.wait().unwrap();
        let named = format!("thread {thread} ");
        let told = format!(
            "of the program was taken out of its reservation: it had SCHED_BATCH nice 0 instead of {is}"
        );
        let reason = reason.expect("it is noticed");
        assert!(
            reason.starts_with(&named) && reason.ends_with(&told),
            "{reason}"
        );
    }

    #[test]
    fn a_thread_that_is_moved_from_its_slots_is_named_with_where_it_might_be() {
        let all = sched::affinity(Tid::current()).unwrap();
        if all.len() < 2 {
            eprintln!("skipped: there is one processor, and nowhere to move to");
            return;
        }
        let cpu = all.iter().next().unwrap();
        let mut program = Command::new("sleep").arg("1000").spawn().unwrap();
        let thread = Tid(program.id().cast_signed());
        let seen = Seen::new(Grade::Enforced);
        let family = Family::new(program.id(), None, false);
        let members = Arc::new(Members::new(None));
        let places = Box::new(Slotted { members, cpu });
        let mut follower = Follower::new(&request(thread), family, Arc::clone(&seen), places);
        follower.first().unwrap();
        follower.look();
        let before = seen.grade();
        sched::set_affinity(thread, &all).unwrap();
        follower.look();
        let after = seen.grade();
        program.kill().unwrap();
        program.wait().unwrap();
        assert_eq!(before, Grade::Enforced);
        let reason = after.reason().expect("it is noticed").to_owned();
        let told = format!("it might run on processors {all} instead of {cpu}");
        assert!(
            reason.starts_with(&format!("thread {thread} ")) && reason.ends_with(&told),
            "{reason}"
        );
    }

    #[test]
    fn of_a_program_that_has_ended_nobody_saw_the_last() {
        let mut program = Command::new("sleep").arg("1000").spawn().unwrap();
        let thread = Tid(program.id().cast_signed());
        let family = Family::new(program.id(), None, false);
        let members = Arc::new(Members::new(None));
        let cpu = sched::affinity(thread).unwrap().iter().next().unwrap();
        let places = Box::new(Slotted { members, cpu });
        let seen = Seen::new(Grade::Enforced);
        let mut follower = Follower::new(&request(thread), family, seen, places);
        follower.first().unwrap();
        let looked = |part: Option<Part>| part.map(|part| (part.ended, part.gone));
        let alive = looked(follower.look());
        program.kill().unwrap();
        program.wait().unwrap();
        assert_eq!(alive, Some((false, false)));
        assert_eq!(looked(follower.look()), Some((true, true)));
        assert_eq!(
            looked(follower.look()),
            Some((false, true)),
            "it is told once"
        );
    }

    #[test]
    fn what_a_program_starts_is_its_own_before_it_is_found_and_a_stranger_is_not() {
        let mut program = Command::new("sleep").arg("1000").spawn().unwrap();
        let mut stranger = Command::new("sleep").arg("1000").spawn().unwrap();
        let (process, other) = (program.id(), stranger.id());
        let family = |children| Family::new(process, None, children);
        let places = || {
            let members = Arc::new(Members::new(None));
            Box::new(Slotted { members, cpu: 0 })
        };
        let seen = || Seen::new(Grade::Enforced);
        let [with, without] = [true, false].map(|children| {
            let mut request = request(Tid(process.cast_signed()));
            request.choice.children = children;
            Follower::new(&request, family(children), seen(), places())
        });
        let ranked = |pid: u32, parent: u32| RealTimeThread {
            pid,
            parent,
            tid: Tid(pid.cast_signed()),
            name: "it".to_owned(),
            policy: Members::INSIDE,
            affinity: Ok(CpuSet::single(0)),
            processor: 0,
            of_kernel: false,
            of_laxity: false,
            boosted: None,
        };
        // It has ended since it was seen: such a number there never is.
        let child = ranked(u32::MAX / 2, process);
        let its_parent_is_no_member = ranked(other, std::process::id());
        let found = [&with, &without].map(|follower| {
            let counts = |thread| is_above(thread, 0, |thread| follower.has(thread));
            [counts(&child), counts(&its_parent_is_no_member)]
        });
        for process in [&mut program, &mut stranger] {
            process.kill().unwrap();
            process.wait().unwrap();
        }
        // Who is not to be followed, and is not stopped either, takes from the slot.
        assert_eq!(found, [[false, true], [true, true]]);
    }

    #[test]
    fn by_the_kernel_a_thread_ought_to_have_just_what_is_reserved() {
        let two_of_eight = request(Tid(1)).hold.reservation;
        let ought = Policy::Deadline(two_of_eight.into());
        assert_eq!(taken_out(ought, ought), None);
        let own = Tid::current();
        let is = sched::policy(own).unwrap();
        assert_eq!(Reserving(two_of_eight).changed(own), taken_out(is, ought));
    }
}
