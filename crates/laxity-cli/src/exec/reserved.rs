//! What a program holds while it runs: what was asked for, or, where X is open, first what it is measured with.

use std::time::{Duration, Instant};

use laxity::command::Used;
use laxity::hold::{HoldError, Holders, ProgramHold, ProgramRequest, may_reserve};
use laxity::{Delivery, Enforcer, Grade, Observer, Reservation, Service, Unknown};
use signal_hook::consts::{SIGKILL, SIGXCPU};

use super::measured::{Measured, PERIODS, Round, begun, find, least};
use super::program::End;
use super::used::{Count, Uncounted, is_comparable};
use crate::files;

/// So often a program is measured anew that took too much to be measured: it may have been about to begin.
const TRIES: u32 = 3;

/// A program's reservation.
pub(super) struct Reserved {
    /// With X as it was named, or as it was found.
    request: ProgramRequest,
    hold: Option<ProgramHold>,
    since: Instant,
    /// When it first had anything.
    began: Instant,
    /// What was measured last, where nothing is reserved.
    measured: Option<(Observer, Duration)>,
    /// How often it is measured still; 0: not any more.
    tries: u32,
    /// It was just started.
    begins: bool,
    /// Each time that it was measured to an end.
    rounds: Vec<Round>,
    note: Option<String>,
    /// What the program has used since it holds this.
    count: Count,
}

/// What became of it.
pub(super) struct Over {
    /// With what it had.
    pub(super) request: ProgramRequest,
    pub(super) observer: Observer,
    /// For so long it had that.
    pub(super) took: Duration,
    pub(super) had: Had,
    /// Why it was this, or nothing.
    pub(super) note: Option<String>,
    /// Where X was open: each time that the program was measured.
    pub(super) rounds: Vec<Round>,
    /// What the program used meanwhile.
    count: Count,
}

impl Over {
    /// By its end it had used this.
    pub(super) fn with_used(mut self, used: Result<Service, Unknown>) -> Self {
        self.count.take(used);
        self
    }

    /// How firmly it was held, by how it ended as well.
    pub(super) fn grade(&self, end: End) -> Grade {
        let grade = self.observer.grade();
        let ended_by = match self.request.hold.enforcer {
            Enforcer::Slots => ended_by_limit(end, self.observer.time_limit()),
            Enforcer::Deadline => None,
        };
        ended_by.map_or(grade.clone(), |reason| {
            grade.and(&Grade::Uncertain { reason })
        })
    }

    /// What the program used meanwhile, at least, with all that it started; or why that is not known.
    pub(super) fn used(&self) -> Result<Service, Uncounted> {
        if self.had == Had::Nothing {
            let why = "it ran on when it was measured no more";
            return Err(Uncounted::NotCompared(why));
        }
        is_comparable(&self.request.choice)?;
        self.count.since().map_err(Uncounted::Unread)
    }
}

/// What a program had at its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Had {
    Reservation,
    /// Slots, to be measured in.
    Measurement,
    /// Nothing any more after it was measured.
    Nothing,
}

impl Reserved {
    /// What was asked for; `is_open`: to be measured first. What the program uses is counted from when it has that.
    pub(super) fn begin(
        request: &ProgramRequest,
        is_open: bool,
        hold: impl FnOnce(&ProgramRequest) -> Result<ProgramHold, HoldError>,
        count: impl FnOnce() -> Count,
    ) -> Result<Self, HoldError> {
        if is_open && request.hold.enforcer == Enforcer::Deadline {
            // Else it would be measured for nothing.
            may_reserve(least(request.hold.reservation.period())?)?;
        }
        Ok(Self {
            hold: Some(hold(&as_measured(request, is_open))?),
            // What it used while this was being prepared is none of it.
            count: count(),
            since: Instant::now(),
            began: Instant::now(),
            measured: None,
            request: request.clone(),
            tries: if is_open { TRIES } else { 0 },
            begins: false,
            rounds: Vec::new(),
            note: None,
        })
    }

    /// The program was just started: it is measured once it has begun.
    pub(super) fn just_started(self) -> Self {
        Self {
            begins: true,
            ..self
        }
    }

    /// By now the program has used this.
    pub(super) fn count(&mut self, used: Result<Used, Unknown>) {
        self.count.take(used.map(|used| used.least));
    }

    /// Where it is measured: goes on to what follows of that, of which the program has used nothing yet.
    pub(super) fn look(
        &mut self,
        hold: impl Fn(&ProgramRequest) -> Result<ProgramHold, HoldError>,
        used: impl Fn() -> Result<Used, Unknown>,
    ) {
        let Some(current) = self.hold.as_ref().filter(|_| self.tries > 0) else {
            return;
        };
        let observer = current.observer();
        let seen = observer.delivery();
        let found = match &seen {
            Ok(seen) if self.begins => begun(seen),
            Ok(seen) => find(seen, self.request.hold.reservation),
            Err(why) => {
                // That it cannot be seen stays so.
                self.tries = 1;
                Measured::TooMuch(why.to_string())
            }
        };
        if found == Measured::NotYet {
            return;
        }
        let grade = observer.grade();
        let round = round(seen, grade, &found);
        let went_on = match &found {
            Measured::NotYet => return,
            Measured::Begun => {
                self.begins = false;
                self.measure_anew();
                true
            }
            Measured::TooMuch(why) => {
                self.tries -= 1;
                self.note = Some(why.clone());
                self.measure_anew();
                true
            }
            Measured::Found { reservation, why } => self.reserve(*reservation, why, hold),
        };
        if !went_on {
            return;
        }
        self.rounds.extend(round);
        self.since = Instant::now();
        self.count = Count::from_now(used());
        if self.hold.is_none() {
            self.tries = 0;
            let why = self.note.as_deref().unwrap_or_default();
            files::say(&format!("laxity: nothing is reserved: {why}"));
        }
    }

    /// In the slots that it has, if it is measured once more.
    fn measure_anew(&mut self) {
        let Some(hold) = &self.hold else { return };
        if self.tries > 0 {
            hold.tell_anew(&self.request);
        } else {
            self.give_back();
        }
    }

    fn give_back(&mut self) {
        let took = self.since.elapsed();
        self.measured = self.hold.take().map(|hold| (hold.end(), took));
    }

    /// What was found for it; `false` where it is to be asked for again later. The slots that it was measured in become those that are reserved, so that it
    /// has none fewer at any time. Where it is confined from now on, or held by the kernel, they cannot: then it is without for a while, which is told.
    fn reserve(
        &mut self,
        found: Reservation,
        why: &str,
        hold: impl Fn(&ProgramRequest) -> Result<ProgramHold, HoldError>,
    ) -> bool {
        let mut next = self.request.clone();
        next.hold.reservation = found;
        let mut note = why.to_owned();
        let by_slots = next.hold.enforcer == Enforcer::Slots;
        let is_changed = by_slots && next.confinement.is_none();
        let held = match &self.hold {
            Some(current) if is_changed => match current.change(found) {
                Ok(true) => Ok(()),
                Ok(false) => return false,
                Err(error) => {
                    self.give_back();
                    Err(error.to_string())
                }
            },
            _ => {
                // One after the other: on a processor there is one holder.
                let without = Instant::now();
                self.give_back();
                let held = hold(&next).map_err(|error| error.to_string());
                let without = without.elapsed().as_millis();
                note.push_str(&match by_slots {
                    true => format!("; before it was confined it had no slots for {without}ms"),
                    false => format!(
                        " of all its threads together, each of which has that now; before that it had nothing for {without}ms"
                    ),
                });
                held.map(|hold| self.hold = Some(hold))
            }
        };
        self.tries = 0;
        match held {
            Ok(()) => {
                self.note = Some(note);
                self.request = next;
            }
            Err(error) => self.note = Some(format!("{found}: {error}")),
        }
        true
    }

    /// Whoever gives slots is about to stand still.
    pub(super) fn pause(&self) {
        self.hold.iter().for_each(ProgramHold::pause);
    }

    /// It goes on.
    pub(super) fn resume(&self) {
        self.hold.iter().for_each(ProgramHold::resume);
    }

    /// Gives it back; `None`: there never was anything.
    pub(super) fn end(self) -> Option<Over> {
        let had = match (&self.hold, self.tries) {
            (None, _) => Had::Nothing,
            (Some(_), 0) => Had::Reservation,
            (Some(_), _) => Had::Measurement,
        };
        let took = self.since.elapsed();
        let last = self.hold.map(|hold| (hold.end(), took));
        let (observer, took) = last.or(self.measured)?;
        // What a thread had before it came is none of this.
        let took = match observer.holders() {
            Holders::CameAfter(after) => {
                let after = Duration::from_nanos(after.as_nanos());
                took.min(self.began.elapsed().saturating_sub(after))
            }
            Holders::FromTheBeginning | Holders::Awaited => took,
        };
        let mut rounds = self.rounds;
        let note = match had {
            Had::Measurement => {
                let why = format!("it ended before {PERIODS} undisturbed periods");
                let ended = Measured::TooMuch(why.clone());
                rounds.extend(round(observer.delivery(), observer.grade(), &ended));
                Some(format!("only measured: {why}"))
            }
            Had::Reservation | Had::Nothing => self.note,
        };
        Some(Over {
            request: as_measured(&self.request, had != Had::Reservation),
            observer,
            took,
            had,
            note,
            rounds,
            count: self.count,
        })
    }
}

/// That in its slots the program was ended by a limit of its own, or may have been; `limit`: the one that it was last seen to have.
fn ended_by_limit(end: End, limit: Option<String>) -> Option<String> {
    match (end, limit) {
        (End::Killed(SIGXCPU | SIGKILL), Some(limit)) => Some(format!(
            "it was ended, as it seems in its slots by a limit of its own: {limit}"
        )),
        (End::Gone, Some(limit)) => Some(format!(
            "it has ended, and may have been ended in its slots by a limit of its own: {limit}"
        )),
        (End::Killed(SIGXCPU), None) => Some(
            "SIGXCPU ended it: a limit of its own that no look has seen, as RLIMIT_RTTIME, by which the kernel ends who is FIFO in slots for so long"
                .to_owned(),
        ),
        _ => None,
    }
}

/// The time that the program was measured, which is over unless more is to be seen.
fn round(seen: Result<Delivery, Unknown>, grade: Grade, found: &Measured) -> Option<Round> {
    let why_not = match found {
        Measured::NotYet => return None,
        Measured::Begun => Some("the program had just begun".to_owned()),
        Measured::Found { .. } => None,
        Measured::TooMuch(why) => Some(why.clone()),
    };
    // Where it cannot be seen, that is why nothing follows.
    let seen = seen.unwrap_or_default();
    Some(Round {
        seen,
        grade,
        why_not,
    })
}

/// While it is measured it has slots, and competes outside them as before.
fn as_measured(request: &ProgramRequest, is_measured: bool) -> ProgramRequest {
    let mut request = request.clone();
    if is_measured {
        request.confinement = None;
        request.hold.enforcer = Enforcer::Slots;
    }
    request
}

#[cfg(test)]
mod tests {
    use laxity::Span;
    use laxity::hold::{Choice, Confinement, HoldRequest};

    use super::*;

    #[test]
    fn whoever_is_to_hold_it_what_is_open_is_measured_in_slots() {
        let two_of_eight = Reservation::new(Service::from_millis(2), Span::from_millis(8));
        let request = |enforcer, confinement| ProgramRequest {
            hold: HoldRequest {
                name: "it".to_owned(),
                reservation: two_of_eight.unwrap(),
                enforcer,
                outside: laxity::Outside::AsPlaced,
                processor: None,
            },
            choice: Choice::default(),
            confinement,
            witnessed: false,
        };
        let in_slots = request(Enforcer::Slots, None);
        for asked in [
            request(Enforcer::Deadline, None),
            request(Enforcer::Slots, Some(Confinement::Quota)),
        ] {
            assert_eq!(as_measured(&asked, true), in_slots);
            assert_eq!(as_measured(&asked, false), asked);
        }
    }

    #[test]
    fn who_was_ended_by_its_limit_is_told_from_who_ended_otherwise() {
        let limit = || Some("process 1".to_owned());
        let told = |end, limit| ended_by_limit(end, limit).map(|told| told.contains("process 1"));
        // How one ended that was adopted nobody tells.
        for end in [End::Killed(SIGXCPU), End::Killed(SIGKILL), End::Gone] {
            assert_eq!(told(end, limit()), Some(true), "{end:?}");
        }
        assert_eq!(told(End::Killed(SIGXCPU), None), Some(false));
        for end in [End::Killed(SIGKILL), End::Gone] {
            assert_eq!(told(end, None), None, "{end:?}");
        }
        let others = [
            End::Killed(signal_hook::consts::SIGTERM),
            End::Exited(0),
            End::LetGo,
        ];
        for end in others {
            assert_eq!(told(end, limit()), None, "{end:?}");
        }
    }
}
