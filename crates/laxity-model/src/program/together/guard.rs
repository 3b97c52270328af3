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

/// Whoever may work for no longer than `limit` without a look, and does not come back, is seen after so long at the latest: at the second look.
#[must_use]
pub const fn detection(limit: Service) -> Span {
    Span::from_nanos(apart(limit).as_nanos().saturating_mul(2))
}

/// What the watchdog knows of a seat that is at work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watched {
    began_ns: u64,
    service: Service,
}

/// Sees who does not come back from a handler. It looks while somebody works, so long after each look as a handler may take, and a sixteenth; an executor that has had more
/// service than that within one stretch of work without a look has lost its seat. So that is after twice as long, and a little. What it knows of one who sleeps in a handler it
/// keeps while the baton rests: one who wakes then and does not come back keeps the processor from whoever is due next.
#[derive(Debug)]
pub struct Watchdog<M, const S: usize> {
    region: M,
    limit: Service,
    known: [Option<Watched>; S],
}

impl<const S: usize, const R: usize, M: Deref<Target = Region<S, R>>> Watchdog<M, S> {
    /// No stretch of work of any of them takes more than `limit`.
    pub const fn new(region: M, limit: Service) -> Self {
        Self {
            region,
            limit,
            known: [None; S],
        }
    }

    /// It is time to look. `who` has a seat, and what has his thread received, if he is at work?
    pub fn look(&mut self, now: Instant, mut who: impl FnMut(u16, bool) -> Occupant) -> Vigil {
        let apart = apart(self.limit);
        let after = |at: Instant| at.checked_add(apart).unwrap_or(Instant::MAX);
        for number in (0..=u16::MAX).take(S) {
            if let Some(vigil) = self.look_at(number, &mut who) {
                return vigil;
            }
        }
        let turn = self.region.turn();
        if turn.is_at_rest() {
            let until = after(self.region.due(now).max(now));
            return self.region.sleep(&self.region.watchdog, turn, until);
        }
        // It looks by itself, and nobody is to wake it.
        self.region.watchdog.store(0, SeqCst);
        Vigil::Sleep {
            word: 0,
            until: after(now),
        }
    }

    /// What is to be done about a seat, if anything is.
    fn look_at(
        &mut self,
        number: u16,
        who: &mut impl FnMut(u16, bool) -> Occupant,
    ) -> Option<Vigil> {
        let (seat, known) = (
            self.region.seat(number)?,
            self.known.get_mut(number as usize)?,
        );
        let standing = seat.standing();
        let works = standing == Some(Standing::Working);
        let interrupted = works || standing == Some(Standing::Withdrawn);
        let before = known.take();
        let service = match who(number, interrupted) {
            Occupant::Unknown => return None,
            Occupant::Present(service) => service,
            Occupant::Gone => return interrupted.then_some(Vigil::Remove(number)),
            Occupant::Removed => {
                let is_gone = matches!(standing, Some(Standing::Removed | Standing::Left));
                return (!is_gone).then_some(Vigil::Remove(number));
            }
        };
        self.region.uses(number);
        // Whoever takes a seat back says so before he frees it.
        let is_odd = matches!(standing, None | Some(Standing::Free | Standing::Removed));
        if is_odd && matches!(who(number, false), Occupant::Present(_)) && seat.is_mended() {
            seat.kick();
            return Some(Vigil::Wake(number));
        }
        let found = Watched {
            began_ns: seat.began_ns.load(SeqCst),
            service: service.filter(|_| works)?,
        };
        *known = before
            .filter(|before| before.began_ns == found.began_ns)
            .or(Some(found));
        let had = found.service.saturating_sub(known.as_ref()?.service);
        (had > self.limit).then_some(Vigil::Remove(number))
    }
}
