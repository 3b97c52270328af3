//! What a program holds while it runs: what was asked for, or, where X is open, first what it is measured with.

use std::time::{Duration, Instant};

use laxity::command::Used;
use laxity::hold::{HoldError, Holders, ProgramHold, ProgramRequest};
use laxity::{Delivery, Grade, Observer, Service, Unknown};

use super::measured::{Measured, Round, begun, find};
use super::used::{Count, is_comparable};
use crate::files;

/// So often a program is measured anew that took too much to be measured: it may have been about to begin.
const TRIES: u32 = 3;

/// A program's reservation.
pub(super) struct Reserved {
    /// With X as it was named, or as it was found.
    request: ProgramRequest,
    hold: Option<ProgramHold>,
    since: Instant,
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

    /// What the program used meanwhile, at least, with all that it started; or why that is not known.
    pub(super) fn used(&self) -> Result<Service, Unknown> {
        if self.had == Had::Nothing {
            let why = "it ran on when it was measured no more";
            return Err(Unknown(why.to_owned()));
        }
        is_comparable(&self.request.choice)?;
        self.count.since()
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
        Ok(Self {
            hold: Some(hold(&as_measured(request, is_open))?),
            // What it used while this was being prepared is none of it.
            count: count(),
            since: Instant::now(),
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
        self.rounds.extend(round(seen, observer.grade(), &found));
        let next = match found {
            Measured::NotYet => return,
            Measured::Begun => {
                self.begins = false;
                Some(as_measured(&self.request, true))
            }
            Measured::TooMuch(why) => {
                self.tries -= 1;
                self.note = Some(why);
                (self.tries > 0).then(|| as_measured(&self.request, true))
            }
            Measured::Found { reservation, why } => {
                self.tries = 0;
                self.note = Some(why);
                let mut found = self.request.clone();
                found.hold.reservation = reservation;
                Some(found)
            }
        };
        // One after the other: on a processor there is one holder.
        let took = self.since.elapsed();
        self.measured = self.hold.take().map(|hold| (hold.end(), took));
        if let Some(next) = next {
            match hold(&next) {
                Ok(hold) => self.hold = Some(hold),
                Err(error) => self.note = Some(format!("{}: {error}", next.hold.reservation)),
            }
            if self.hold.is_some() && self.tries == 0 {
                self.request = next;
            }
        }
        self.since = Instant::now();
        self.count = Count::from_now(used());
        if self.hold.is_none() {
            self.tries = 0;
            let why = self.note.as_deref().unwrap_or_default();
            files::say(&format!("laxity: nothing is reserved: {why}"));
        }
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
                took.saturating_sub(Duration::from_nanos(after.as_nanos()))
            }
            Holders::FromTheBeginning | Holders::Awaited => took,
        };
        let mut rounds = self.rounds;
        let note = match had {
            Had::Measurement => {
                let why = "it ended before 1,000 undisturbed periods";
                let ended = Measured::TooMuch(why.to_owned());
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

/// While it is measured, it competes outside its slots as before.
fn as_measured(request: &ProgramRequest, is_measured: bool) -> ProgramRequest {
    ProgramRequest {
        confinement: request.confinement.filter(|_| !is_measured),
        ..request.clone()
    }
}
