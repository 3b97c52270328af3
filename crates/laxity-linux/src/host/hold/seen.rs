//! What is seen of the holder of a reservation: kept by the watcher, and told to whoever asks.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use laxity_model::verify::delivery::{Delivery, Stretch};
use laxity_model::{Grade, Instant, Reservation, Span};

use super::subject::Subject;
use super::watcher::Looks;
use crate::os::clock;
use crate::os::fact::{Fact, Unknown};
use crate::os::fork;
use crate::os::open_files;
use crate::run::Run;

/// What was seen of a holder, for whoever asks meanwhile.
pub(crate) struct Seen {
    state: Mutex<State>,
    generation: u32,
    /// What is told in a child that was forked: there nobody looks any more, and who did may have the lock for ever.
    in_child: OnceLock<Mutex<State>>,
}

/// Why a child knows nothing of it.
const OF_PARENT: &str = "it is held by the process that forked this one";

struct State {
    /// Who is to be looked at too from now on.
    subjects: Vec<Box<dyn Subject>>,
    delivery: Fact<Delivery>,
    /// All that was seen, where it is kept.
    stretches: Vec<Stretch>,
    /// Of the worst moment.
    grade: Grade,
    /// It was this when it was granted.
    granted: Grade,
    /// What was seen until then is none of what is told.
    anew: Option<Anew>,
    /// When the reservation was given back.
    over_since: Option<Instant>,
    holders: Holders,
    /// Since then a holder is awaited.
    awaited_since: Instant,
    /// Names that are to hold it, of which no thread has come.
    missing: BTreeSet<String>,
    /// Somebody who is meant was there, and not held.
    leaves_out: bool,
    /// So it was as the kernel had no bandwidth for that one.
    lacks_bandwidth: bool,
    /// By what limit of its own the program may be ended.
    time_limit: Option<String>,
}

/// What is told of the holder begins anew.
#[derive(Clone, Copy, Debug)]
pub(super) struct Anew {
    /// What it has from then on.
    pub(super) reservation: Reservation,
    /// When it is looked at then, if not as before.
    pub(super) looks: Option<Looks>,
    pub(super) from: Instant,
}

/// Whether anybody holds what is reserved for threads of certain names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holders {
    /// Somebody has from the beginning.
    FromTheBeginning,
    /// Nobody yet: the program was started, and none of its threads that had such a name could be given it so far.
    Awaited,
    /// Somebody has, after so long.
    CameAfter(Span),
}

/// How firmly something is held for what could not be done, or not be seen. Where laxity may open no more files that says nothing of who holds it: nobody is
/// convicted by a limit of laxity's own.
pub(super) fn unheld(reason: String) -> Grade {
    match open_files::remedy(&reason) {
        None => Grade::Unenforced { reason },
        Some(remedy) => Grade::Uncertain {
            reason: format!("{reason}: {remedy}"),
        },
    }
}

impl State {
    fn new(grade: Grade) -> Self {
        Self {
            subjects: Vec::new(),
            delivery: Ok(Delivery::default()),
            stretches: Vec::new(),
            granted: grade.clone(),
            grade,
            anew: None,
            over_since: None,
            holders: Holders::FromTheBeginning,
            awaited_since: clock::now(),
            missing: BTreeSet::new(),
            leaves_out: false,
            lacks_bandwidth: false,
            time_limit: None,
        }
    }

    /// A child holds nothing of it.
    fn of_parent() -> Self {
        let reason = OF_PARENT.to_owned();
        Self {
            delivery: Err(Unknown(reason.clone())),
            over_since: Some(clock::now()),
            ..Self::new(Grade::Unenforced { reason })
        }
    }
}

impl Seen {
    pub(crate) fn new(grade: Grade) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State::new(grade)),
            generation: fork::generation(),
            in_child: OnceLock::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let state = if fork::generation() == self.generation {
            &self.state
        } else {
            self.in_child.get_or_init(|| Mutex::new(State::of_parent()))
        };
        state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From the next look on this is a holder too; or why nobody can look at it.
    pub(crate) fn observe(&self, subject: Fact<Box<dyn Subject>>) {
        let mut state = self.state();
        match subject {
            Ok(subject) => state.subjects.push(subject),
            // The first reason stays, which may tell what helps.
            Err(unknown) if state.delivery.is_ok() => state.delivery = Err(unknown),
            Err(_) => {}
        }
    }

    /// What was received until now, and what of it is kept since the look before; hands back who is to be looked at too.
    pub(super) fn publish(&self, delivery: Delivery, kept: &[Stretch]) -> Vec<Box<dyn Subject>> {
        let mut state = self.state();
        if state.anew.is_some() {
            // What was seen until now is told to nobody any more.
            return Vec::new();
        }
        state.stretches.extend_from_slice(kept);
        if state.delivery.is_ok() {
            state.delivery = Ok(delivery);
        }
        std::mem::take(&mut state.subjects)
    }

    /// Nothing of what was seen is told any more: it begins with the first look from that instant on, and until then there is nothing.
    pub(super) fn begin_anew(&self, anew: Anew) {
        let mut state = self.state();
        state.delivery = state
            .delivery
            .as_ref()
            .map(|_| Delivery::default())
            .map_err(Clone::clone);
        state.stretches.clear();
        state.grade = state.granted.clone();
        state.anew = Some(anew);
    }

    /// Whether it begins anew: a look now sees nothing else. Told until its time has come.
    pub(super) fn begins_anew(&self, now: Instant) -> Option<Anew> {
        let mut state = self.state();
        let is_due = state.anew.as_ref().is_some_and(|anew| now >= anew.from);
        if is_due {
            state.anew.take()
        } else {
            state.anew
        }
    }

    /// What it received, by the last look.
    pub(crate) fn delivery(&self) -> Fact<Delivery> {
        self.state().delivery.clone()
    }

    /// What is kept of it, by the last look.
    pub(super) fn stretches(&self) -> Fact<Vec<Stretch>> {
        let state = self.state();
        state.delivery.as_ref()?;
        Ok(state.stretches.clone())
    }

    /// Nobody holds it yet.
    pub(super) fn await_holder(&self) {
        let mut state = self.state();
        state.holders = Holders::Awaited;
        state.awaited_since = clock::now();
    }

    /// The first holder has come; if it was awaited, that is known from now on.
    pub(super) fn holder_came(&self) {
        let mut state = self.state();
        if state.holders == Holders::Awaited {
            let after = clock::now().saturating_since(state.awaited_since);
            state.holders = Holders::CameAfter(after);
        }
    }

    pub(super) fn holders(&self) -> Holders {
        self.state().holders
    }

    /// Threads with each of these names are to hold it.
    pub(super) fn await_names(&self, names: &[String]) {
        self.state().missing = names.iter().cloned().collect();
    }

    /// A thread with this name holds it.
    pub(super) fn name_came(&self, name: &str) {
        self.state().missing.remove(name);
    }

    /// The names that are to hold it, of which none has come.
    pub(super) fn missing(&self) -> Vec<String> {
        self.state().missing.iter().cloned().collect()
    }

    /// Somebody who is meant is there, and cannot be held: as the kernel has no bandwidth for it, or for another reason.
    pub(super) fn leave_out(&self, lacks_bandwidth: bool) {
        let mut state = self.state();
        state.leaves_out = true;
        state.lacks_bandwidth |= lacks_bandwidth;
    }

    pub(super) fn leaves_out(&self) -> bool {
        self.state().leaves_out
    }

    pub(super) fn lacks_bandwidth(&self) -> bool {
        self.state().lacks_bandwidth
    }

    /// The program has this limit now, or none.
    pub(super) fn limit(&self, time_limit: Option<String>) {
        self.state().time_limit = time_limit;
    }

    /// By what limit of its own the program may be ended.
    pub(super) fn time_limit(&self) -> Option<String> {
        self.state().time_limit.clone()
    }

    /// How firmly it is held, by the worst moment that was seen.
    pub(crate) fn grade(&self) -> Grade {
        self.state().grade.clone()
    }

    /// Whether the reservation was given back: what is so now says nothing of it any more.
    pub(crate) fn is_over(&self) -> bool {
        self.over_since().is_some()
    }

    /// When it was given back.
    pub(super) fn over_since(&self) -> Option<Instant> {
        self.state().over_since
    }

    /// It is about to be given back.
    pub(crate) fn end(&self) {
        self.state().over_since.get_or_insert(clock::now());
    }

    /// Something could not be done, or not be seen, without which it is not enforced. Where laxity may open no more files what the holder received is not
    /// known either.
    pub(super) fn note_failed(&self, reason: String) {
        let grade = unheld(reason);
        if let Grade::Uncertain { reason } = &grade {
            self.observe(Err(Unknown(reason.clone())));
        }
        self.note(grade);
    }

    /// Where one of the threads that hold it, or look at that, has failed, nobody enforces anything any more. To be asked before they are to end, too: who watches may be the one.
    pub(super) fn note_failure(&self, run: &Run) {
        if let Some(error) = run.failure() {
            self.note_failed(error.to_string());
        }
    }

    /// Something was seen that could take the reservation away, or did: what is worse takes the place of what was seen before, and what is as bad is told beside it.
    pub(crate) fn note(&self, grade: Grade) {
        let mut state = self.state();
        match grade.rank().cmp(&state.grade.rank()) {
            Ordering::Less => {}
            Ordering::Equal => state.grade = beside(&state.grade, &grade),
            Ordering::Greater => state.grade = grade,
        }
    }
}

/// So many reasons of one grade are told; who has as many has little use for more.
const TOLD: usize = 8;
/// What stands between two reasons.
const AND: &str = "; ";

/// The same grade, with those reasons of another look that it does not have.
fn beside(had: &Grade, found: &Grade) -> Grade {
    let (Some(reasons), Some(further)) = (had.reason(), found.reason()) else {
        return had.clone();
    };
    // How long somebody held a processor, and when, is told once.
    let of = |one: &str| one.split(" held ").next().map(str::to_owned);
    let told: Vec<_> = reasons.split(AND).map(of).collect();
    let new = further.split(AND).filter(|one| !told.contains(&of(one)));
    let room = TOLD.saturating_sub(told.len());
    let new: Vec<&str> = new.take(room).collect();
    if new.is_empty() {
        return had.clone();
    }
    let reason = new.join(AND);
    let new = match found {
        Grade::Enforced => return had.clone(),
        Grade::Uncertain { .. } => Grade::Uncertain { reason },
        Grade::Unenforced { .. } => Grade::Unenforced { reason },
    };
    had.clone().and(&new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_seen_later_is_told_beside_who_was_seen_first() {
        let seen = Seen::new(Grade::Enforced);
        let note = |reason: &str| {
            seen.note(Grade::Unenforced {
                reason: reason.to_owned(),
            });
        };
        note("above: a; processor 1 was held for 500us");
        note("above: a; processor 1 was held for 700us");
        note("above: a; b, seen after 900ms; processor 1 was held 2 times");
        seen.note(Grade::Uncertain {
            reason: "less".to_owned(),
        });
        let told = "above: a; processor 1 was held for 500us; b, seen after 900ms";
        assert_eq!(seen.grade().reason(), Some(told));
        (0..20).for_each(|number| note(&format!("further {number}")));
        let all = seen.grade().reason().map(|all| all.split(AND).count());
        assert_eq!(all, Some(TOLD));
    }
}
