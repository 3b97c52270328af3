//! A holder that is looked at: what became of it from one look to the next.

use laxity_model::verify::delivery::{Look, Meter, Stretch, Turn};
use laxity_model::{Disturbance, Instant, Span};

use super::super::subject::{Part, State, Subject};
use crate::os::clock;

/// Who wants a processor and has had nothing of it for longer than this, and for longer than two periods, does not have what is reserved.
const STARVED_AFTER: Span = Span::from_secs(2);

/// What dispatcher and witness recorded from one look to the next, and whether anybody could look meanwhile.
pub(super) struct Records {
    /// How long the holder was made to stand each time.
    pub(super) stood: Vec<Span>,
    /// When the machine stood still.
    pub(super) still: Vec<Disturbance>,
    /// When laxity itself did, since somebody had stopped it.
    pub(super) stops: Vec<Disturbance>,
    /// Who looks was stopped.
    pub(super) unwatched: bool,
}

/// Whether holders that do not run may be asked if they sleep, and how long that took.
pub(super) struct Asking {
    pub(super) may: bool,
    /// The dispatcher stops them outside their slots.
    pub(super) stops: bool,
    pub(super) took: Span,
}

impl Asking {
    /// Of a holder that did not run.
    fn turn(&mut self, subject: &dyn Subject) -> Turn {
        if !self.may {
            return Turn::No;
        }
        let begun = clock::now();
        let state = subject.state();
        self.took += clock::now().saturating_since(begun);
        match state {
            State::Stopped => Turn::Stopped,
            // Whom the dispatcher stops sleeps, as far as the kernel tells.
            State::Sleeps if !self.stops => Turn::Asleep,
            State::Frozen if !self.stops => Turn::Stopped,
            State::Wants => Turn::Wants,
            State::Sleeps | State::Frozen | State::Unknown => Turn::No,
        }
    }
}

/// A holder, and what was seen of it.
pub(super) struct Observed {
    pub(super) subject: Box<dyn Subject>,
    meter: Meter,
    /// The last look: that the machine stood still then is known a look later only, when dispatcher or witness ran again.
    pending: Option<Look>,
    /// Since then it is not seen to run, and wants to whenever it is asked.
    wants_since: Option<Instant>,
}

impl Observed {
    /// One that is judged by this from now on.
    pub(super) fn new(subject: Box<dyn Subject>, meter: Meter) -> Self {
        Self {
            subject,
            meter,
            pending: None,
            wants_since: None,
        }
    }

    /// What was seen until now is none of what is told, and it is judged by this.
    pub(super) fn begin_anew(&mut self, meter: Meter) {
        self.subject.look();
        self.meter = meter;
        self.pending = None;
        self.wants_since = None;
    }

    /// What judges it.
    pub(super) const fn meter(&self) -> &Meter {
        &self.meter
    }

    /// For how long a holder with such periods may not have run by then though it wanted to, if for longer than budget or slots explain.
    pub(super) fn starved_for(&self, at: Instant, period: Span) -> Option<Span> {
        let longest = STARVED_AFTER.max(period * 2);
        let wanted_for = at.saturating_since(self.wants_since?);
        (wanted_for > longest).then_some(longest)
    }

    /// Looks; tells the stretches that are over.
    pub(super) fn take(
        &mut self,
        at: Instant,
        seen: &Records,
        asking: &mut Asking,
        is_last: bool,
    ) -> impl Iterator<Item = Stretch> + use<> {
        let mut over = [None; 3];
        let Some(part) = self.subject.look() else {
            // Of nobody no period is judged: they are counted from when somebody holds it.
            self.meter.begin_at(at);
            return over.into_iter().flatten();
        };
        for still in &seen.still {
            self.meter.stood_still(*still);
        }
        for stopped in &seen.stops {
            self.meter.was_stopped(*stopped);
        }
        let turn = if part.gone {
            Turn::Gone
        } else if part.ran {
            Turn::Ran
        } else {
            asking.turn(&*self.subject)
        };
        match turn {
            // Of whom the dispatcher stops that is not to be known; and who was not asked may have slept.
            Turn::Wants if !asking.stops => {
                self.wants_since.get_or_insert(at);
            }
            Turn::Wants | Turn::No => {}
            _ => self.wants_since = None,
        }
        let look = look_of(part, turn, seen, at);
        if let Some(before) = self.pending.replace(look) {
            over[0] = self.meter.take(before);
        }
        if is_last {
            let state = (!part.ran).then(|| self.subject.state());
            // Of whom that cannot be read nobody saw what is open, as of one that has ended.
            let turn = match state {
                Some(State::Unknown) => Turn::Gone,
                _ => turn,
            };
            over[1] = self.meter.take(Look { turn, ..look });
            self.pending = None;
            let waits = state == Some(State::Wants);
            over[2] = Some(self.meter.finish(at, waits));
        }
        over.into_iter().flatten()
    }
}

fn look_of(part: Part, turn: Turn, seen: &Records, at: Instant) -> Look {
    let stood = &seen.stood;
    let stood_in_all: Span = stood.iter().copied().sum();
    // It comes to the processor a moment after it is let go: that wait is one with its standing still.
    let longest_stood = stood.iter().copied().max().unwrap_or(Span::ZERO);
    Look {
        at,
        service: part.service,
        kept_from: part.waited + stood_in_all,
        longest: part.longest + longest_stood,
        several: part.several,
        turn,
        ended: part.ended,
        unwatched: seen.unwatched,
    }
}
