//! Who sees to it that the baton goes on.

use core::ops::Deref;

use super::{Region, Standing, Turn};
use crate::base::atomic::{AtomicU32, Ordering::SeqCst, fence};
use crate::{Instant, Service, Span};

/// What a guard is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Vigil {
    /// It waits while its word is this, until an instant at the latest, and looks again.
    Sleep {
        /// 1: who begins to work where the baton rested wakes it.
        word: u32,
        /// At the latest.
        until: Instant,
    },
    /// It wakes the thread of this seat, and looks again.
    Wake(u16),
    /// It looks again.
    Again,
    /// The thread of this seat does not come back: it is made an ordinary one, and its seat [taken away](Region::remove).
    Remove(u16),
}

/// Work begins: whoever waits for that is woken, by whoever is told so here.
fn wakes(word: &AtomicU32) -> bool {
    word.swap(0, SeqCst) == 1
}

impl<const S: usize, const R: usize> Region<S, R> {
    /// Work has begun where the baton rested: which of the [guards](Self::guards) are to be woken.
    pub fn begun(&self) -> [bool; 2] {
        fence(SeqCst);
        self.guards().map(wakes)
    }

    /// Whoever watches the seats looks now.
    pub fn looks(&self, now: Instant) {
        self.looked_ns.store(now.as_nanos(), SeqCst);
    }

    /// When whoever watches the seats looked last, as is written; at the beginning of time if nobody has.
    pub fn looked(&self) -> Instant {
        Instant::from_nanos(self.looked_ns.load(SeqCst))
    }

    /// A seat is taken away from a process of which a handler does not come back. Tells whom to wake.
    pub fn remove(&self, number: u16, now: Instant) -> Option<u16> {
        self.seat(number)?.stands(Standing::Removed);
        self.hand_on_from(number, now)
    }

    /// When the first of all is due, by what is written.
    fn due(&self, now: Instant) -> Instant {
        let scan = self.scan((now, Self::ALL), None, 0);
        let released = scan.first.map(|(claim, _)| claim.release);
        let coming = scan.next.map(|(at, _)| at);
        released.or(coming).unwrap_or(Instant::MAX)
    }

    /// It sleeps if this is the turn still once others know that they are to wake it.
    fn sleep(&self, word: &AtomicU32, turn: Turn, until: Instant) -> Vigil {
        word.store(1, SeqCst);
        // In this order: who begins to work sees that it is to be woken, or its turn is seen.
        fence(SeqCst);
        if self.turn() == turn {
            Vigil::Sleep { word: 1, until }
        } else {
            word.store(0, SeqCst);
            Vigil::Again
        }
    }
}

/// Has the processor where no executor has it: its thread's priority is just below theirs. So a holder at work is none that could run, and the baton goes on.
/// That costs a switch to it and back in each stretch of work, and no timer.
#[derive(Debug)]
pub struct Sentinel<M> {
    region: M,
    /// So long after a release it is looked for who does not attend to it.
    grace: Span,
    /// The holder of this turn was woken, to be sure.
    woken: Option<Turn>,
}

impl<const S: usize, const R: usize, M: Deref<Target = Region<S, R>>> Sentinel<M> {
    /// Of a region.
    pub const fn new(region: M, grace: Span) -> Self {
        Self {
            region,
            grace,
            woken: None,
        }
    }

    /// It has the processor now.
    pub fn look(&mut self, now: Instant) -> Vigil {
        let region = &*self.region;
        let turn = region.turn();
        if turn.is_at_rest() {
            let due = region.due(now).checked_add(self.grace);
            let due = due.unwrap_or(Instant::MAX);
            if now < due {
                return region.sleep(&region.sentinel, turn, due);
            }
        }
        let holder = turn.seat().and_then(|number| region.seat(number));
        if let Some((number, seat)) = turn.seat().zip(holder) {
            if self.woken != Some(turn) {
                // Whoever handed it over may have died before it woke anybody.
                self.woken = Some(turn);
                seat.kick();
                return Vigil::Wake(number);
            }
            seat.turns(Standing::Waiting, Standing::Withdrawn);
        }
        match region.hand_on(turn, now) {
            Some(Some(next)) => Vigil::Wake(next),
            _ => Vigil::Again,
        }
    }
}

/// What is known of who has a seat, apart from what is written there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Occupant {
    /// It was given to nobody.
    Unknown,
    /// The process that it was given to has it. So much its thread has received, if that was asked and can be known.
    Present(Option<Service>),
    /// The process that it was given to has no such thread.
    Gone,
    /// It was taken away.
    Removed,
}

/// So long after each look the watchdog looks again. Looking takes the processor, too: between two looks whoever works throughout has more than he may.
/// And who looked all the time would leave nobody anything.
const fn apart(limit: Service) -> Span {
    let limit = limit.as_nanos();
    let apart = Span::from_nanos(limit.saturating_add(limit / 16));
    let least = Span::from_micros(10);
    if apart.as_nanos() < least.as_nanos() {
        least
    } else {
        apart
    }
}

/// Who is admitted with such quanta loses his seat for no less than this, and none that takes more than `longest` is admitted anywhere: so much more one may take for what the machine does meanwhile.
#[must_use]
pub fn limit(quantum: Service, tolerance: Service, longest: Service) -> Service {
    let more = quantum.checked_add(tolerance);
    more.map_or(longest, |limit| limit.min(longest))
}

/// Whoever may work for no longer than `limit` without a look, and does not come back, is seen after so long at the latest: at the second look.
#[must_use]
pub const fn detection(limit: Service) -> Span {
    Span::from_nanos(apart(limit).as_nanos().saturating_mul(2))
}

/// A timer is later than that only where the machine stood still.
const LATE: Span = Span::from_micros(100);

/// What the watchdog knows of a seat that is at work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watched {
    began_ns: u64,
    service: Service,
}

/// Sees who does not come back from a handler. It looks while somebody works, so long after each look as a handler of his may take, and a sixteenth; an executor that has had more
/// service than that within one stretch of work without a look has lost its seat. So that is after twice as long, and a little. What it knows of one who sleeps in a handler it
/// keeps while the baton rests: one who wakes then and does not come back keeps the processor from whoever is due next.
///
/// Each is [held](Self::hold) to what he was admitted with, which is known here and not read from the region. Where the watchdog itself wakes late, and did not [wait](Self::has_waited) meanwhile for a processor, the machine stood still, and nobody is charged that.
#[derive(Debug)]
pub struct Watchdog<M, const S: usize> {
    region: M,
    longest: Service,
    limits: [Service; S],
    known: [Option<Watched>; S],
    /// It was to wake then.
    woken_at: Option<Instant>,
    /// It has waited so long for its processor since it looked last, and in all.
    waited: [Span; 2],
}

impl<const S: usize, const R: usize, M: Deref<Target = Region<S, R>>> Watchdog<M, S> {
    /// No stretch of work of any of them takes more than `limit`, unless another one is [said](Self::hold) of a seat.
    pub const fn new(region: M, limit: Service) -> Self {
        Self {
            region,
            longest: limit,
            limits: [limit; S],
            known: [None; S],
            woken_at: None,
            waited: [Span::ZERO; 2],
        }
    }

    /// No stretch of work of this seat takes more.
    pub fn hold(&mut self, number: u16, limit: Service) {
        if let Some(known) = self.limits.get_mut(usize::from(number)) {
            *known = limit;
        }
    }

    /// The watchdog's own thread was runnable and had no processor for so long in all: what it was late by for that was somebody's doing, in the kernel or above it, and not the machine's.
    pub fn has_waited(&mut self, in_all: Span) {
        let [since, before] = &mut self.waited;
        *since += in_all.saturating_sub(*before);
        *before = in_all;
    }

    /// It is time to look. `who` has a seat, and what has his thread received, if he is at work?
    pub fn look(&mut self, now: Instant, mut who: impl FnMut(u16, bool) -> Occupant) -> Vigil {
        let waited = core::mem::take(&mut self.waited[0]);
        let late = self.woken_at.take().map(|at| now.saturating_since(at));
        let stood = late.map(|late| late.saturating_sub(waited));
        let stood = stood.filter(|stood| *stood > LATE).unwrap_or(Span::ZERO);
        self.region.adds_standstill(stood);
        let mut at_work = Service::MAX;
        let mut there = self.longest;
        for number in (0..=u16::MAX).take(S) {
            match self.look_at(number, stood, &mut who) {
                Seen::Nobody => {}
                Seen::There(limit) => there = there.min(limit),
                Seen::AtWork(limit) => at_work = at_work.min(limit),
                Seen::Wrong(vigil) => return vigil,
            }
        }
        // Who begins after him is seen no later than this one would be, for which all have the time.
        let limit = if at_work < Service::MAX {
            at_work
        } else {
            there
        };
        let after = |at: Instant| at.checked_add(apart(limit)).unwrap_or(Instant::MAX);
        let turn = self.region.turn();
        if turn.is_at_rest() {
            let until = after(self.region.due(now).max(now));
            return self.region.sleep(&self.region.watchdog, turn, until);
        }
        // It looks by itself, and nobody is to wake it.
        self.region.watchdog.store(0, SeqCst);
        let until = after(now);
        self.woken_at = Some(until);
        Vigil::Sleep { word: 0, until }
    }

    /// What there is of a seat.
    fn look_at(
        &mut self,
        number: u16,
        stood: Span,
        who: &mut impl FnMut(u16, bool) -> Occupant,
    ) -> Seen {
        let place = usize::from(number);
        let of_seat = self.region.seat(number).zip(self.known.get_mut(place));
        let Some(((seat, known), limit)) = of_seat.zip(self.limits.get(place).copied()) else {
            return Seen::Nobody;
        };
        let standing = seat.standing();
        let works = standing == Some(Standing::Working);
        let interrupted = works || standing == Some(Standing::Withdrawn);
        let before = known.take();
        let service = match who(number, interrupted) {
            Occupant::Unknown => return Seen::Nobody,
            Occupant::Present(service) => service,
            Occupant::Gone if interrupted => return Seen::Wrong(Vigil::Remove(number)),
            Occupant::Gone => return Seen::Nobody,
            Occupant::Removed => {
                return match standing {
                    Some(Standing::Removed | Standing::Left) => Seen::Nobody,
                    _ => Seen::Wrong(Vigil::Remove(number)),
                };
            }
        };
        self.region.uses(number);
        // Whoever takes a seat back says so before he frees it.
        let is_odd = matches!(standing, None | Some(Standing::Free | Standing::Removed));
        if is_odd && matches!(who(number, false), Occupant::Present(_)) && seat.is_mended() {
            seat.kick();
            return Seen::Wrong(Vigil::Wake(number));
        }
        let Some(service) = service.filter(|_| works) else {
            return Seen::There(limit);
        };
        let began_ns = seat.began_ns.load(SeqCst);
        let before = before.filter(|before| before.began_ns == began_ns);
        let had_before = before.map_or(service, |before| {
            let stood = Service::from_nanos(stood.as_nanos());
            let excused = before.service.checked_add(stood);
            excused.unwrap_or(Service::MAX).min(service)
        });
        *known = Some(Watched {
            began_ns,
            service: had_before,
        });
        match service.saturating_sub(had_before) > limit {
            true => Seen::Wrong(Vigil::Remove(number)),
            false => Seen::AtWork(limit),
        }
    }
}

/// What the watchdog sees of a seat, and how long a handler may take there.
enum Seen {
    Nobody,
    There(Service),
    AtWork(Service),
    /// That is to be done first.
    Wrong(Vigil),
}
