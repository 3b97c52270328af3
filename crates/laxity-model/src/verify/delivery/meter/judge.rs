//! Whether the periods of a stretch were as reserved.

use super::{Meter, TOLERANCE};
use crate::verify::delivery::Held;
use crate::{Service, Span};

/// Who has nothing outside its reservation was given too much where it is counted for more than X by this part: an eighth. The kernel counts the ways
/// in and out of a slot as the holder's, and the slot is prolonged by as much.
const COUNTED_BESIDES: u64 = 8;
/// And, of who is confined, by so much in each period besides: what it takes to stop and to be let go on is counted as its own, however small X is.
const COUNTED_EACH: Service = Service::from_micros(50);

/// What a stretch's periods come to in which it did not sleep.
#[derive(Clone, Copy, Default)]
pub(super) struct Judged {
    pub(super) kept: u64,
    pub(super) short: u64,
    /// Of those that were short: they had too much.
    pub(super) exceeded: u64,
    pub(super) disturbed: u64,
    pub(super) short_disturbed: u64,
    pub(super) unseen: u64,
}

impl Meter {
    /// Judges so many periods in which it did not sleep, of which the machine stood still in some. The look at their end came so much `beyond` them.
    pub(super) fn judge(&mut self, disturbed: u64, periods: u64, beyond: Span) -> Judged {
        if periods == 0 {
            return Judged::default();
        }
        let reserved = self.service * periods;
        let throttled = self.held == Held::ByKernel && self.open.longest > self.throttled_above;
        if self.open.service >= least(reserved) || throttled {
            self.delivery.overruns += periods;
        }
        let unseen = self.open.unseen.min(periods);
        let disturbed = disturbed.min(periods - unseen);
        let judged = periods - unseen - disturbed;
        let too_much = self.exceed(periods, beyond);
        let all_kept = self.served(periods, Span::ZERO) == Some(true) && !too_much;
        let is_owed = self.owe(judged, disturbed == 0);
        // In each of the others it may have waited all the time.
        let elsewhere = self.period * (periods - judged);
        let served = match too_much {
            true => Some(false),
            false if !is_owed => Some(true),
            false => self.served(judged, elsewhere),
        };
        let known = match served {
            None => 0,
            Some(kept) => self.known(judged, (kept, too_much), elsewhere),
        };
        let short = if served == Some(false) { known } else { 0 };
        Judged {
            kept: if served == Some(true) { known } else { 0 },
            short,
            exceeded: if too_much { short } else { 0 },
            disturbed,
            short_disturbed: if all_kept { 0 } else { disturbed },
            unseen: unseen + judged - known,
        }
    }

    /// Of how many periods that were judged together it is known, as of each of them, that they were kept, or were not.
    fn known(&self, judged: u64, (kept, too_much): (bool, bool), elsewhere: Span) -> u64 {
        let open = &self.open;
        let kept_from = open.kept_from.saturating_sub(elsewhere);
        if !open.late || judged <= 1 || (kept && kept_from <= self.others(1)) {
            return judged;
        }
        if kept || too_much {
            // One of them may have had what another lacked.
            return 0;
        }
        // None can lack more than X.
        let lacks = least(self.service * judged).saturating_sub(open.service);
        let short = lacks.as_nanos().div_ceil(self.service.as_nanos());
        short.min(judged)
    }

    /// Counts what so many periods had beyond what is reserved, of one who has nothing besides: whether that is more now than the kernel's tick may have given
    /// too much. What is `beyond` them may be of the next slot, so far as that goes.
    fn exceed(&mut self, periods: u64, beyond: Span) -> bool {
        let next = self.service.min(beyond.as_full_service());
        let reserved = self.service * periods + next;
        let each = match self.held {
            Held::Confined => COUNTED_EACH,
            Held::ByKernel | Held::BySlots => Service::ZERO,
        };
        let most = reserved + reserved / COUNTED_BESIDES + each * periods;
        self.given = (self.given + self.open.service).saturating_sub(most);
        let too_much = self.held != Held::BySlots && self.given > self.tick;
        if self.tick == Service::ZERO || self.held == Held::BySlots {
            self.given = Service::ZERO;
        }
        too_much
    }

    /// Whether so many periods had what is reserved, or all that it wanted but for waits `elsewhere`; `None` if that is not known, as while one of several
    /// threads waited another ran.
    fn served(&self, periods: u64, elsewhere: Span) -> Option<bool> {
        let others = self.others(periods);
        let is_within = |kept_from: Span| kept_from.saturating_sub(elsewhere) <= others;
        if self.open.service >= least(self.service * periods) || is_within(self.open.kept_from) {
            return Some(true);
        }
        (!is_within(self.open.kept_surely)).then_some(false)
    }

    /// Counts what so many periods lack of what is reserved, where it wanted that: whether more is owed now than the kernel's tick makes up for. Where it had
    /// all that it wanted, or nobody knows, nothing is paid back.
    fn owe(&mut self, periods: u64, is_undisturbed: bool) -> bool {
        let reserved = least(self.service * periods);
        let used_all = self.open.service >= reserved;
        let wanted = used_all || self.open.kept_from > self.others(periods);
        if is_undisturbed && wanted {
            self.owed = (self.owed + reserved).saturating_sub(self.open.service);
        }
        !is_undisturbed || !wanted || self.tick == Service::ZERO || self.owed > self.tick
    }

    /// What the reservation leaves to others of so many periods.
    fn others(&self, periods: u64) -> Span {
        let due = least(self.service * periods);
        (self.period * periods).saturating_sub(due.as_dedicated_span())
    }
}

/// A period is as reserved from this on.
fn least(reserved: Service) -> Service {
    reserved.saturating_sub(reserved / TOLERANCE)
}
