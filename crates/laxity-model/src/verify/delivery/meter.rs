//! Makes of looks at a holder what it received.

mod judge;

use super::Delivery;
use super::halts::{Standstills, note, periods_touched};
use super::look::{Held, Look, Stretch, Turn};
use crate::{Disturbance, Instant, Reservation, Service, Span};

/// A period is as reserved within this part of X: a twentieth.
const TOLERANCE: u64 = 20;
/// Whoever had nothing in one of so many periods cannot have had all that is reserved for them together: no other is counted for more than X and an
/// eighth. Of more of them, not even that is known.
const TOGETHER: u64 = 6;
/// A wait for the kernel's next budget may be longer than it is counted, by so much. The kernel counts it from one switch to the other, and the rest as the holder's
/// own service, so that no account tells how much it is: the interrupt that finds the budget used up, with all that it puts off, and the ways out and in. By a
/// program that read the clock all the time it was 21 to 100 µs in ten runs without a halt (`3ms/10ms`, a virtual machine with a tick of 4 ms, five beside a compile).
/// Twice that: it is measured, and no bound, as what an interrupt puts off has none.
pub const UNCOUNTED: Span = Span::from_micros(200);

/// Makes a [`Delivery`] of looks, one a period or so.
///
/// ```
/// use laxity_model::verify::delivery::{Held, Look, Meter, Turn};
/// use laxity_model::{Instant, Reservation, Service, Span};
///
/// let two_of_eight = Reservation::new(Service::from_millis(2), Span::from_millis(8)).unwrap();
/// let mut meter = Meter::new(two_of_eight, Held::Confined, Instant::ZERO);
/// meter.take(Look {
///     at: Instant::from_millis(8),
///     service: Service::from_millis(2),
///     kept_from: Span::from_millis(6),
///     longest: Span::from_millis(6),
///     several: false,
///     turn: Turn::Ran,
///     ended: false,
///     unwatched: false,
/// });
/// let seen = meter.delivery();
/// assert_eq!((seen.periods, seen.kept, seen.overruns), (1, 1, 1));
/// assert_eq!(seen.largest_gap, Span::from_millis(6));
/// ```
#[derive(Clone, Debug)]
pub struct Meter {
    /// X and Y; of so many periods together, where it looks more rarely than once a period.
    service: Service,
    period: Span,
    /// A wait that is longer is one for the next budget.
    throttled_above: Span,
    held: Held,
    /// The kernel notices no sooner that a budget is used up, and takes back from the next what it gave too much by then.
    tick: Service,
    /// So much less than is reserved it has had until now where it wanted that, and so much more.
    owed: Service,
    given: Service,
    /// Its service from the look before the last one to that.
    before: Service,
    /// Periods are counted from here, so many until now: looks are not punctual.
    origin: Instant,
    counted: u64,
    /// When the stretch that is open began.
    since: Instant,
    /// What was seen in it.
    open: Open,
    standstills: Standstills,
    /// It has ended, and that was told.
    is_gone: bool,
    /// Between these looks it was last seen to run.
    ran: [Instant; 2],
    delivery: Delivery,
}

#[derive(Clone, Debug)]
struct Open {
    /// When the last look at it was, or it began.
    looked: Instant,
    /// Until then it slept, or was stopped.
    idle_until: Instant,
    /// For so long of that it was stopped, or may have been.
    stopped: Span,
    /// It was when it was last seen not to want the processor.
    is_stopped: bool,
    service: Service,
    /// For so long it was kept from the processor; of several threads, the one that was longest.
    kept_from: Span,
    /// For so long while none of them ran, at least.
    kept_surely: Span,
    longest: Span,
    /// What is told of that: of waits between looks that were far apart their sum alone is known.
    longest_sure: Span,
    /// The same where one look has the waits of several periods together, all but the first of which began after the look before.
    longest_least: Span,
    /// The same that may have been while whoever looks was stopped.
    longest_unseen: Span,
    /// A look since it ran, or was idle, did not find it asleep.
    may_wait: bool,
    /// It wants the processor since that look.
    wants_since: Option<Instant>,
    /// A look came so late that more periods lie before it than can be judged together.
    late: bool,
    /// So many periods are not known of a thread of it that ended.
    unseen: u64,
}

impl Open {
    const fn from(since: Instant) -> Self {
        Self {
            looked: since,
            idle_until: since,
            stopped: Span::ZERO,
            is_stopped: false,
            service: Service::ZERO,
            kept_from: Span::ZERO,
            kept_surely: Span::ZERO,
            longest: Span::ZERO,
            longest_sure: Span::ZERO,
            longest_least: Span::ZERO,
            longest_unseen: Span::ZERO,
            may_wait: false,
            wants_since: None,
            late: false,
            unseen: 0,
        }
    }

    /// Until then it did not want the processor, or could not ask for it. When it was stopped, and let go on, between two looks nobody knows.
    fn idle(&mut self, until: Instant, stopped: bool) {
        if stopped || self.is_stopped {
            self.stopped += until.saturating_since(self.idle_until);
        }
        self.idle_until = until;
        self.is_stopped = stopped;
        (self.may_wait, self.wants_since) = (false, None);
    }

    /// Whether it may wait from now on, or does.
    fn wait(&mut self, look: &Look) {
        match look.turn {
            Turn::Ran => (self.may_wait, self.wants_since) = (false, None),
            Turn::No => self.may_wait = true,
            Turn::Wants => {
                self.may_wait = true;
                self.wants_since.get_or_insert(look.at);
            }
            Turn::Asleep | Turn::Stopped | Turn::Gone => {}
        }
    }
}

impl Meter {
    /// Of a holder from this instant on.
    #[must_use]
    pub fn new(reservation: Reservation, held: Held, from: Instant) -> Self {
        Self {
            service: reservation.service(),
            period: reservation.period(),
            throttled_above: reservation.period() / TOLERANCE,
            held,
            tick: Service::ZERO,
            owed: Service::ZERO,
            given: Service::ZERO,
            before: Service::ZERO,
            origin: from,
            counted: 0,
            since: from,
            open: Open::from(from),
            standstills: Standstills::default(),
            is_gone: false,
            ran: [from; 2],
            delivery: Delivery::default(),
        }
    }

    /// The same where looks are so many periods apart, if more than one: these are counted, and judged, as one.
    #[must_use]
    pub fn together(self, periods: u64) -> Self {
        let periods = periods.max(1);
        Self {
            service: self.service * periods,
            period: self.period * periods,
            delivery: Delivery {
                together: periods,
                ..self.delivery
            },
            ..self
        }
    }

    /// The same where the kernel looks whether a budget is used up at ticks so far apart. A period may then have up to a tick more or less than is reserved,
    /// as long as no more than a tick is owed.
    #[must_use]
    pub fn noticed_at(self, tick: Span) -> Self {
        Self {
            tick: tick.as_full_service(),
            ..self
        }
    }

    /// Nobody held anything until now, and nothing was taken: its periods begin at this instant.
    pub fn begin_at(&mut self, from: Instant) {
        (self.origin, self.since, self.ran) = (from, from, [from; 2]);
        self.open = Open::from(from);
        self.standstills = Standstills::default();
        (self.delivery.halts, self.delivery.stops) = Default::default();
    }

    /// What was seen of the periods that are over.
    pub const fn delivery(&self) -> Delivery {
        self.delivery
    }

    /// The machine stood still then: to be told before the look that ends the stretch, of several whose halts began in this order.
    pub fn stood_still(&mut self, still: Disturbance) {
        if still.to > self.since {
            note(&mut self.standstills.halts, &mut self.delivery.halts, still);
        }
    }

    /// The same of when somebody had stopped laxity itself: it excuses as much, and is told apart.
    pub fn was_stopped(&mut self, stopped: Disturbance) {
        if stopped.to > self.since {
            note(
                &mut self.standstills.stops,
                &mut self.delivery.stops,
                stopped,
            );
        }
    }

    /// Takes the next look; tells the stretch that it ends, if it does. Where a look is late, the few periods before it are judged together; of many only
    /// what is so however it was spread over them.
    pub fn take(&mut self, look: Look) -> Option<Stretch> {
        let open = &mut self.open;
        let before = core::mem::replace(&mut open.looked, look.at);
        let length = look.at.saturating_since(before);
        let periods = nearest(length, self.period);
        // Who looks punctually has missed nothing, whatever became of it before.
        let unwatched = look.unwatched && periods > 1;
        let look = Look { unwatched, ..look };
        open.service += look.service;
        // While one of several threads waited others may have run, also before the last look: they share what is reserved.
        let ran = look.service + core::mem::replace(&mut self.before, look.service);
        let (most, least) = match look.several {
            true => (
                look.longest,
                look.longest.saturating_sub(ran.as_dedicated_span()),
            ),
            false => (look.kept_from, look.kept_from),
        };
        open.kept_from += most;
        open.kept_surely += least;
        self.open.late |= periods > TOGETHER;
        let (longest, sure) = self.waits(&look, before);
        self.open.longest = self.open.longest.max(longest);
        self.open.longest_sure = self.open.longest_sure.max(sure);
        let later = match self.delivery.together > 1 {
            true => length,
            false => Span::ZERO,
        };
        let least = sure.saturating_sub(later);
        self.open.longest_least = self.open.longest_least.max(least);
        if look.unwatched {
            self.open.longest_unseen = self.open.longest_unseen.max(longest);
        }
        if look.turn == Turn::Ran {
            self.ran = [before, look.at];
        }
        self.open.wait(&look);
        if look.ended {
            // The period in which it ended is none of its own.
            self.open.unseen += periods.saturating_sub(1);
        }
        self.delivery.service += look.service;
        if !self.standstills.within(before, look.at) && periods <= 1 {
            self.delivery.most = self.delivery.most.max(look.service);
        }
        let was_gone = core::mem::replace(&mut self.is_gone, look.turn == Turn::Gone);
        match look.turn {
            Turn::No | Turn::Wants => None,
            Turn::Asleep | Turn::Stopped => {
                self.open.idle(look.at, look.turn == Turn::Stopped);
                None
            }
            Turn::Ran => self.close(self.awake(before), look.at),
            Turn::Gone => {
                if !was_gone {
                    self.leave(&look);
                }
                self.begin_again(look.at);
                (self.origin, self.counted) = (look.at, 0);
                None
            }
        }
    }

    /// Of the waits that ended since the look before: how long the longest may have been, and what is told of it. A look that is not late has those of one
    /// period together, of which less than that is not for the slot. Of what a late one has together, all but the first began after the look before.
    fn waits(&self, look: &Look, before: Instant) -> (Span, Span) {
        let length = look.at.saturating_since(before);
        let is_late = nearest(length, self.period) > 1;
        if !look.several {
            let later = if is_late { length } else { Span::ZERO };
            return (look.longest, look.longest.saturating_sub(later));
        }
        // Whoever waited while another ran was not all that holds it.
        let longest = look.longest.min(look.at.saturating_since(self.ran[0]));
        if self.ran[1] == before {
            return (longest, Span::ZERO);
        }
        // None had run by the look before, and since then one may have waited for another.
        let later = if is_late {
            length
        } else {
            look.service.as_dedicated_span()
        };
        (longest, longest.saturating_sub(later))
    }

    /// The last look: what is open is closed, and told. `waits`: it wants the processor now and does not have it.
    pub fn finish(&mut self, at: Instant, waits: bool) -> Stretch {
        let length = at.saturating_since(self.since);
        if waits {
            let waited = at.saturating_since(self.open.idle_until);
            let open = &mut self.open;
            for longest in [
                &mut open.kept_from,
                &mut open.kept_surely,
                &mut open.longest,
                &mut open.longest_sure,
                &mut open.longest_least,
            ] {
                *longest = waited.max(*longest);
            }
        }
        let awake = if waits { self.open.idle_until } else { at };
        // Less than a period tells nothing of one.
        let closed = (length >= self.period && !self.is_gone)
            .then(|| self.close(awake, at))
            .flatten();
        closed.unwrap_or_else(|| self.note_gap(awake, at, 1))
    }

    /// When it has begun to want the processor that it had after the look before. What it had, and waited for, cannot have begun earlier than this; until
    /// then it slept.
    fn awake(&self, before: Instant) -> Instant {
        let busy = self.open.longest + self.open.service.as_dedicated_span();
        before.saturating_sub(busy).max(self.open.idle_until)
    }

    /// It has ended since the look before: what is open, and was not slept through, nobody saw, but for the period in which it ended.
    fn leave(&mut self, look: &Look) {
        let (at, idle_until) = (look.at, self.open.idle_until);
        self.note_cut_off(look);
        self.count_idle(idle_until, u64::MAX);
        let unseen = at.saturating_since(idle_until);
        self.delivery.unseen += nearest(unseen, self.period).saturating_sub(1);
    }

    /// Of the wait in which it ended no count is left: it may have lasted since it ran last, or was idle, and where it was seen to want the processor it did from
    /// then on; but for as much as it may have had of its last slot. The periods in which the machine stood still are not of it.
    fn note_cut_off(&mut self, look: &Look) {
        let may_wait = self.open.may_wait || look.unwatched;
        let since = self.open.idle_until.max(self.ran[1]);
        let unseen = match look.unwatched {
            true => Some(since),
            false => self.open.wants_since,
        };
        let until_now = |from: Instant| {
            let waited = look.at.saturating_since(from);
            let periods = nearest(waited, self.period).max(1);
            waited.saturating_sub(self.period * self.touched(from, look.at, periods))
        };
        let possible = may_wait.then(|| until_now(since));
        let in_slot = self.service.as_dedicated_span();
        let unseen = unseen.map(|from| until_now(from).saturating_sub(in_slot));
        let delivery = &mut self.delivery;
        for (gap, found) in [
            (&mut delivery.largest_gap_possible, possible),
            (&mut delivery.largest_gap_unseen, unseen),
        ] {
            *gap = found.unwrap_or_default().max(*gap);
        }
    }

    /// Counts the periods until then, so many at most, in which it did not ask for the processor: how many there were.
    fn count_idle(&mut self, until: Instant, most: u64) -> u64 {
        self.open.idle(until, false);
        let idle = nearest(until.saturating_since(self.since), self.period).min(most);
        let stopped = nearest(self.open.stopped, self.period).min(idle);
        let slept = idle - stopped;
        let delivery = &mut self.delivery;
        delivery.periods += slept;
        delivery.kept += slept;
        delivery.asleep += slept;
        delivery.stopped += stopped;
        idle
    }

    /// Judges the stretch that is open: it slept until it was awake, and what the machine did meanwhile is not to be told from its own sleep. Nothing is to
    /// be judged yet of what is no period still.
    fn close(&mut self, awake: Instant, at: Instant) -> Option<Stretch> {
        let until_now = nearest(at.saturating_since(self.origin), self.period);
        let all = until_now.saturating_sub(self.counted);
        if all == 0 {
            return None;
        }
        self.counted = until_now;
        let beyond = at
            .saturating_since(self.since)
            .saturating_sub(self.period * all);
        let periods = all - self.count_idle(awake, all);
        let stretch = self.note_gap(awake, at, periods);
        let judged = self.judge(self.touched(awake, at, periods), periods, beyond);
        let stops = &self.standstills.stops;
        let by_stops = periods_touched(stops, self.period, awake, (at, periods));
        let delivery = &mut self.delivery;
        delivery.disturbed_by_stops += by_stops.min(judged.disturbed);
        delivery.periods += judged.kept + judged.short;
        delivery.kept += judged.kept;
        delivery.exceeded += judged.exceeded;
        delivery.disturbed += judged.disturbed;
        delivery.short_disturbed += judged.short_disturbed;
        delivery.unseen += judged.unseen;
        self.begin_again(at);
        Some(stretch)
    }

    fn begin_again(&mut self, at: Instant) {
        self.open = Open::from(at);
        self.since = at;
    }

    /// In how many of the periods before `at` the machine stood still, or laxity itself, once it was awake.
    fn touched(&self, awake: Instant, at: Instant, periods: u64) -> u64 {
        let all = self.standstills.all();
        periods_touched(&all, self.period, awake, (at, periods))
    }

    /// A wait in which the machine stood still counts as one without the periods in which it did, where it was longer. What may have been one wait, or
    /// several, is told apart.
    fn note_gap(&mut self, awake: Instant, at: Instant, periods: u64) -> Stretch {
        let (longest, sure) = (self.open.longest, self.open.longest_sure);
        let touched = self.touched(awake, at, periods.max(1));
        let delivery = &mut self.delivery;
        if touched > 0 {
            delivery.largest_gap_disturbed = delivery.largest_gap_disturbed.max(sure);
        }
        let own = |gap: Span| gap.saturating_sub(self.period * touched);
        let at_most = |gap: Span| own(gap + uncounted(self.held, gap));
        delivery.largest_gap = delivery.largest_gap.max(at_most(sure));
        delivery.largest_gap_least = delivery.largest_gap_least.max(own(self.open.longest_least));
        let unseen = own(self.open.longest_unseen);
        delivery.largest_gap_unseen = delivery.largest_gap_unseen.max(unseen);
        if longest > sure {
            delivery.largest_gap_possible = delivery.largest_gap_possible.max(at_most(longest));
        }
        Stretch {
            from: self.since,
            to: at,
            gap: longest,
        }
    }
}

/// What the kernel may have left out of a wait of such a holder, if it waited.
fn uncounted(held: Held, wait: Span) -> Span {
    match held {
        Held::ByKernel if !wait.is_zero() => UNCOUNTED,
        _ => Span::ZERO,
    }
}

/// To the nearest whole number of periods: looks lie where edges of slots are not.
fn nearest(length: Span, period: Span) -> u64 {
    (length + period / 2) / period
}
