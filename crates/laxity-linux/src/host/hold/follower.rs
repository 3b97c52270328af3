//! Finds the threads of a program, those that come later too, and gives each what it is to have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use laxity_model::{Grade, HostError, Instant, Span};

use super::super::command::family::{Family, name_of};
use super::HoldError;
use super::groups::Groups;
use super::guarded::Guarded;
use super::limits::Limits;
use super::members::Members;
use super::places::Places;
use super::program::{Choice, Confinement, ProgramRequest};
use super::seen::{Seen, unheld};
use super::subject::{Acted, OneThread, Part, State, Subject};
use crate::doctor::Cause;
use crate::enforce::deadline::DeadlineError;
use crate::os::clock;
use crate::os::fact::Unknown;
use crate::os::open_files;
use crate::os::proc::{self, RealTimeThread};
use crate::os::sched::{Restore, Tid};

/// How often it looks for threads that came later.
const LOOK_EVERY: Span = Span::from_millis(20);

/// The threads of a program, as the holder of its reservation.
pub(super) struct Follower {
    family: Family,
    choice: Choice,
    places: Box<dyn Places>,
    seen: Arc<Seen>,
    /// By which it may be ended in its slots.
    limits: Limits,
    /// By which it may be stopped there.
    groups: Groups,
    threads: BTreeMap<Tid, Found>,
    /// The names of which nobody had come before this look: all who come with one of them are meant.
    awaited: Vec<String>,
    acted: Acted,
    /// Who was there first has its place: who comes now may have it from one of them.
    has_begun: bool,
    /// Some thread was placed: until then nobody holds anything.
    is_held: bool,
    /// Somebody who is meant was not placed at the last look, or could not be seen: that is tried, and told, at each.
    is_incomplete: bool,
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
        let groups = match request.confinement {
            Some(Confinement::Quota) => Groups::made_for(family.processes()),
            Some(Confinement::Freeze) | None => Groups::default(),
        };
        Self {
            family,
            choice: request.choice.clone(),
            places,
            seen,
            limits: Limits::default(),
            groups,
            threads: BTreeMap::new(),
            awaited: Vec::new(),
            acted: Acted::default(),
            has_begun: false,
            is_held: false,
            is_incomplete: false,
            look_at: Instant::ZERO,
        }
    }

    /// Places who is there. One that cannot be placed is an error, and so is a program without a thread that is meant, or of one of the names: unless it was
    /// started for this, and its threads take their names later. Those are awaited.
    pub(super) fn first(&mut self) -> Result<(), HoldError> {
        if self.choice.only.is_none() {
            self.seen.await_names(&self.choice.names);
        }
        self.awaited = self.seen.missing();
        let living = self.living()?;
        self.look_for_names(&living)?;
        for thread in living.iter().copied() {
            match self.take(thread, true) {
                // It has gone meanwhile.
                Err(_) if has_gone(thread) => {}
                taken => taken?,
            }
        }
        self.has_begun = true;
        if self.awaits() {
            self.seen.await_holder();
        } else if !self.is_held || (self.family.is_adopted() && !self.seen.missing().is_empty()) {
            return Err(self.nobody(&self.seen.missing(), &living));
        }
        Ok(())
    }

    /// Of a program that runs already each name is there before anything of it is changed: to take that back again is not for a word that was mistyped.
    fn look_for_names(&self, living: &[Tid]) -> Result<(), HoldError> {
        if self.awaited.is_empty() || !self.family.is_adopted() {
            return Ok(());
        }
        let mut missing = self.awaited.clone();
        for thread in living {
            match name_of(*thread) {
                Ok(name) => missing.retain(|one| *one != name),
                Err(_) if has_gone(*thread) => {}
                Err(Unknown(why)) => return Err(HostError::CannotRun(why).into()),
            }
        }
        match missing.is_empty() {
            true => Ok(()),
            false => Err(self.nobody(&missing, living)),
        }
    }

    /// That those who are meant are not all there, of which names nobody is, and who is there.
    fn nobody(&self, missing: &[String], living: &[Tid]) -> HoldError {
        let only = self.choice.only;
        let names = match missing {
            [] => &self.choice.names,
            missing => missing,
        };
        if names.is_empty() {
            let why = "the program has no thread that is meant".to_owned();
            return HostError::Refused(why).into();
        }
        let who = match only {
            Some(only) => format!("thread {only} is not"),
            None => "the program has no thread".to_owned(),
        };
        let meant = living
            .iter()
            .filter(|it| only.is_none_or(|only| only == **it));
        let there: BTreeSet<String> = meant.filter_map(|it| name_of(*it).ok()).collect();
        let there: Vec<String> = there.iter().map(|name| format!("{name:?}")).collect();
        let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
        let (names, there) = (names.join(", "), there.join(", "));
        HostError::Refused(format!("{who} named {names}: there is {there}")).into()
    }

    /// Whether none of the threads that are meant has come, and one may still.
    pub(super) fn awaits(&self) -> bool {
        !self.is_held && !self.choice.names.is_empty() && !self.family.is_adopted()
    }

    /// Places who came since, and forgets who has gone.
    fn follow(&mut self) {
        let now = clock::now();
        if now < self.look_at {
            return;
        }
        self.look_at = now + LOOK_EVERY;
        self.look_at_limits(now);
        self.look_at_groups(now);
        // A thread may take its name later.
        let may_have_come = self.family.may_have_grown() || !self.choice.names.is_empty();
        if !may_have_come && !self.is_incomplete {
            return;
        }
        let is_meant = self.choice.new_threads;
        match self.living() {
            Ok(living) => {
                self.is_incomplete = false;
                self.awaited = self.seen.missing();
                for thread in living {
                    if let Err(error) = self.take(thread, is_meant) {
                        self.is_incomplete |= self.note(thread, &error);
                    }
                }
            }
            Err(error) => {
                self.is_incomplete = true;
                let reason = format!("cannot see the program's threads: {error}");
                self.seen.note_failed(reason);
            }
        }
    }

    /// Whoever is FIFO in slots is ended by such a limit, and would not be without them. How one ended that laxity started is told by its keeper.
    fn look_at_limits(&mut self, now: Instant) {
        if !self.places.is_shared() {
            return;
        }
        let root = self.family.root();
        for process in self.limits.look(self.family.processes(), now) {
            if process == root && !self.family.is_adopted() {
                continue;
            }
            let limit = self.limits.forget(process);
            self.seen.note(Grade::Uncertain {
                reason: format!("a process of the program has gone, and may have been ended in its slots by a limit of its own: {limit}"),
            });
        }
        self.seen
            .limit(self.limits.that_may_have_ended(root, now + LOOK_EVERY));
    }

    /// Who was let into slots as no group took them from it may be moved to one that does, or its group may be limited.
    fn look_at_groups(&mut self, now: Instant) {
        if !self.places.is_shared() {
            return;
        }
        let placed = self.threads.iter().filter(|(_, it)| it.restore.is_some());
        let found = self.groups.look(placed.map(|(thread, _)| *thread), now);
        let told = found.and_then(|(thread, why)| Some((told(thread)?, why)));
        if let Some((thread, why)) = told {
            let reason = format!("{thread} of the program cannot have its slots: {why}");
            self.seen.note(match why.cause {
                Cause::Unexplained => Grade::Uncertain { reason },
                _ => unheld(reason),
            });
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

    /// Places a thread, if it is one that is meant and was not seen before; `is_meant`: also where none of its name is awaited.
    fn take(&mut self, thread: Tid, is_meant: bool) -> Result<(), HoldError> {
        let known = self.threads.get(&thread);
        if known.is_some_and(|found| found.restore.is_some() || self.choice.names.is_empty()) {
            return Ok(());
        }
        let mut found = Found {
            restore: None,
            counted: None,
        };
        let mut name = None;
        let mut unread = None;
        let is_chosen = self.choice.means(thread, |names| match name_of(thread) {
            Ok(own) => {
                let is_one = names.contains(&own);
                name = is_one.then_some(own);
                is_one
            }
            Err(why) => {
                unread = Some(why);
                false
            }
        });
        if let Some(Unknown(why)) = unread {
            return Err(HostError::CannotRun(why).into());
        }
        let is_awaited = name
            .as_ref()
            .is_some_and(|name| self.awaited.contains(name));
        if is_chosen && (is_meant || is_awaited) {
            let own = |thread| match self.has_begun {
                true => self.places.own(thread),
                false => Restore::of(thread),
            };
            let (guarded, own) = Guarded::of(thread, self.family.is_adopted(), own)?;
            found.restore = Some(guarded);
            self.places.place(thread, own)?;
            self.count(thread, &mut found);
            name.iter().for_each(|name| self.seen.name_came(name));
            if !std::mem::replace(&mut self.is_held, true) {
                self.seen.holder_came();
            }
        } else if self.has_begun && known.is_none() {
            self.places.pass(thread);
        }
        self.threads.insert(thread, found);
        Ok(())
    }

    fn count(&self, thread: Tid, found: &mut Found) {
        match OneThread::new(thread) {
            Ok(counted) if self.places.is_shared() => found.counted = Some(counted),
            // It has ended since it was placed, and says nothing of the others.
            Err(_) if has_gone(thread) => {}
            Err(Unknown(why)) if open_files::remedy(&why).is_some() => self.seen.note_failed(why),
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
                && let Some(thread) = told(thread)
            {
                self.seen.note(Grade::Unenforced {
                    reason: format!("{thread} of the program {what}"),
                });
            }
        }
    }

    /// A thread has not what it was to have; if it is there still, that is to be known. Tells whether it is.
    fn note(&self, thread: Tid, error: &HoldError) -> bool {
        let Some(thread) = told(thread) else {
            return false;
        };
        let reason = format!("{thread} of the program is not held: {error}");
        self.seen.note_failed(reason);
        let lacks_bandwidth = matches!(
            error,
            HoldError::Deadline(DeadlineError::NoBandwidth { .. })
        );
        self.seen.leave_out(lacks_bandwidth);
        true
    }
}

fn has_gone(thread: Tid) -> bool {
    proc::has_gone(format!("/proc/{thread}"))
}

/// How a thread is told of, with its name where that can be read; `None` of one that has gone.
fn told(thread: Tid) -> Option<String> {
    match name_of(thread) {
        Ok(name) => Some(format!("thread {thread} {name:?}")),
        Err(_) => (!has_gone(thread)).then(|| format!("thread {thread}")),
    }
}

impl Subject for Follower {
    fn look(&mut self) -> Option<Part> {
        // Who is placed by this look holds something from now on, and had nothing before.
        let is_held = self.is_held;
        let threads = self.threads.iter_mut();
        let part = self.acted.together(
            threads
                .map(|(thread, found)| (*thread, found.counted.as_mut().and_then(Subject::look))),
        );
        self.read_back();
        self.follow();
        (self.places.is_shared() && is_held).then_some(part)
    }

    /// What the program starts has its rank from it, that of the slots or that which who started it has outside them, and may end before it is placed. Who was
    /// found and is not meant has given that back, and who has another rank gave that to itself: they take the slots from the holder as strangers do.
    fn has(&self, thread: &RealTimeThread) -> bool {
        if let Some(found) = self.threads.get(&thread.tid) {
            return found.restore.is_some();
        }
        let rank = thread.at_work();
        let mut placed = self.threads.values().filter_map(|it| it.restore.as_ref());
        let is_descendant = || self.family.has(thread.pid, thread.parent);
        (rank == Members::INSIDE || placed.any(|one| one.had(rank)))
            && match self.places.confines(thread.pid) {
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
mod tests;
