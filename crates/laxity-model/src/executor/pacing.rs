//! When a periodic handler is called: releases on a grid that nothing moves, and what becomes of those that an overrun passed over.
//!
//! Release k is at `first + k · period`, whenever the calls before it began or ended: one long call delays none that comes after it by more
//! than it lasted, and a handler that is suspended and runs again keeps its phase. A call that is still at work when the next release comes has
//! *overrun* (`timerfd` tells so by its count of expirations, POSIX timers by `timer_getoverrun`).

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::base::port::Arrival;
use crate::{Instant, Span};

/// The instant from which first releases are counted, and the periods of budgets: when the first that has it begins.
#[derive(Clone, Debug)]
pub struct Epoch(Arc<AtomicU64>);

/// An epoch that nobody has begun.
const UNSET: u64 = u64::MAX;

impl Default for Epoch {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(UNSET)))
    }
}

impl From<Instant> for Epoch {
    /// One that is known.
    fn from(begins: Instant) -> Self {
        Self(Arc::new(AtomicU64::new(begins.as_nanos())))
    }
}

impl Epoch {
    /// The instant; it is now if nobody has asked before.
    pub(crate) fn or_now(&self, now: Instant) -> Instant {
        let now = now.as_nanos();
        let known = self
            .0
            .compare_exchange(UNSET, now, Ordering::Relaxed, Ordering::Relaxed);
        Instant::from_nanos(known.err().unwrap_or(now))
    }
}

/// What becomes of the releases that come while a call is still at work. Whatever it is, the handler is [told](Paced::overrun).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnOverrun {
    /// The last of them are called late, at once, one after the other, so many in a row at most; all before them are missed. After so many late calls
    /// those that have come by then are missed, too, and the next is on time: a handler that always takes longer than its period has no endless burst.
    /// None (0) is to skip, one is *once late*. Of [arrivals](Arriving) no more are called late than there is room for: what finds none is dropped where it arrives.
    CatchUp {
        /// So many.
        at_most: u32,
    },
    /// The handler is suspended, until it is [resumed](Pacing::resume).
    Suspend,
    /// The handler ends.
    End,
    /// The process ends, by which its other handlers end too; in a program, the run.
    EndProcess,
}

impl OnOverrun {
    /// All that have come are missed.
    pub const SKIP: Self = Self::CatchUp { at_most: 0 };
    /// The last that has come is called late.
    pub const ONCE_LATE: Self = Self::CatchUp { at_most: 1 };

    /// Whether no other call comes after an overrun, as long as nobody resumes the handler.
    #[must_use]
    pub const fn stops(self) -> bool {
        !matches!(self, Self::CatchUp { .. })
    }

    /// How many of those that have come are called late, after so many late calls in a row.
    ///
    /// # Errors
    ///
    /// What there is instead of calls.
    pub fn late(self, came: u64, in_a_row: u32) -> Result<u64, Next> {
        match self {
            Self::CatchUp { at_most } => Ok(came.min(at_most.saturating_sub(in_a_row).into())),
            Self::Suspend => Err(Next::Suspended),
            Self::End => Err(Next::Ended),
            Self::EndProcess => Err(Next::EndProcess),
        }
    }
}

/// One call of a handler, as it is told of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Paced {
    /// When it was to be released; on the grid.
    pub release: Instant,
    /// So many releases between the call before and this one came to nothing.
    pub missed: u64,
    /// Whether the call before was still at work when the next release came.
    pub overrun: bool,
}

/// What comes next of a handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// This call, now or when its release comes.
    Call(Paced),
    /// None until it is resumed: it overran.
    Suspended,
    /// None ever: it overran and was to end, or its grid is past the end of time.
    Ended,
    /// None of anybody: it overran, and its process was to end.
    EndProcess,
}

/// The grid of a handler, and how far it has come. O(1) each, and no memory but its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pacing {
    first: Instant,
    period: Span,
    on_overrun: OnOverrun,
    /// The index of the next release; those before were called or missed.
    next: u64,
    /// So many calls in a row were late.
    late: u32,
}

impl Pacing {
    /// Releases at `first` and every `period` after it; `None` if that is zero. Groups begin together by the same `first`, and at different phases by
    /// different ones.
    #[must_use]
    pub fn new(first: Instant, period: Span, on_overrun: OnOverrun) -> Option<Self> {
        (period > Span::ZERO).then_some(Self {
            first,
            period,
            on_overrun,
            next: 0,
            late: 0,
        })
    }

    /// Begins, or begins again after it was suspended, with the first release that is not before this. What came meanwhile was nobody's, and is not missed.
    pub fn resume(&mut self, from: Instant) -> Next {
        self.next = self.next.max(self.not_before(from));
        self.late = 0;
        self.call(0, false)
    }

    /// What comes after a call that ended now. A release that comes as it ends is on time.
    pub fn after(&mut self, ended: Instant) -> Next {
        let came = self.not_before(ended);
        if came <= self.next {
            self.late = 0;
            return self.call(0, false);
        }
        match self.on_overrun.late(came - self.next, self.late) {
            Ok(late) => {
                let missed = came - self.next - late;
                self.next += missed;
                self.late = match late {
                    0 => 0,
                    _ => self.late.saturating_add(1),
                };
                self.call(missed, true)
            }
            Err(instead) => instead,
        }
    }

    /// The index of the first release that is not before this instant.
    const fn not_before(&self, at: Instant) -> u64 {
        let since = at.saturating_since(self.first).as_nanos();
        since.div_ceil(self.period.as_nanos())
    }

    fn call(&mut self, missed: u64, overrun: bool) -> Next {
        let since = self.period.as_nanos().checked_mul(self.next);
        let release = since.and_then(|since| self.first.checked_add(Span::from_nanos(since)));
        // A sleep until the end of time is a suspension.
        let Some(release) = release.filter(|release| *release < Instant::MAX) else {
            return Next::Ended;
        };
        self.next += 1;
        Next::Call(Paced {
            release,
            missed,
            overrun,
        })
    }
}

/// The releases of a handler that arrivals call, no sooner than a distance apart: each is released when it arrives, or a distance after the release before. They
/// are its grid: those that come while a call is at work have the consequence that was chosen, as on the [grid](Pacing) of a timer. O(1) each but for those that have come.
///
/// What need not be known yet stays where it arrives, which is bounded: so is what waits, however many are to be called late.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arriving {
    distance: Span,
    on_overrun: OnOverrun,
    /// Nothing is released before that.
    since: Instant,
    /// The last release, of an arrival that was called, is held, or was missed.
    released: Option<Instant>,
    /// No more than so many arrivals wait where they arrive.
    room: u64,
    /// Those that are not called yet, each with its release: late ones, if fewer are to be called late than may wait, and the next.
    held: VecDeque<(Instant, [u64; 2])>,
    /// So many calls in a row were late.
    late: u32,
    /// What the next call is told.
    missed: u64,
    overrun: bool,
}

impl Arriving {
    /// Nothing has arrived. The distance may be zero.
    #[must_use]
    pub const fn new(distance: Span, on_overrun: OnOverrun) -> Self {
        Self {
            distance,
            on_overrun,
            since: Instant::ZERO,
            released: None,
            // As many as nobody has room for: of more that are to be called late, all that wait are.
            room: 1 << 31,
            held: VecDeque::new(),
            late: 0,
            missed: 0,
            overrun: false,
        }
    }

    /// The same, where no more than so many arrivals wait. Nothing is allocated from then on.
    #[must_use]
    pub fn in_room(mut self, room: u32) -> Self {
        self.room = room.into();
        let late = match self.on_overrun {
            OnOverrun::CatchUp { at_most } => at_most.min(room),
            _ => 0,
        };
        self.held.reserve_exact(late as usize + 1);
        self
    }

    /// Begins again after it was suspended. What it held was nobody's; what arrives is released no sooner than if it had not been suspended.
    pub fn resume(&mut self) {
        self.held.clear();
        (self.late, self.missed, self.overrun) = (0, 0, false);
    }

    /// Nothing is released sooner than the distance after this release, which somebody else has called, nor before this instant: what has arrived until then counts as if it did so then.
    pub const fn follow(&mut self, released: Option<Instant>, since: Instant) {
        self.released = released;
        self.since = since;
    }

    /// This has arrived next.
    pub fn arrives(&mut self, arrival: Arrival) {
        let soonest = self
            .released
            .and_then(|before| before.checked_add(self.distance));
        let release = arrival.at.max(self.since);
        let release = soonest.map_or(release, |soonest| soonest.max(release));
        self.released = Some(release);
        self.held.push_back((release, arrival.payload));
    }

    /// What comes after a call that ended then, or after none, and what arrived with it; `None` if that is still to arrive. What has arrived and was not told is asked for one by one, as far as that may change the answer.
    pub fn after(
        &mut self,
        ended: Option<Instant>,
        mut take: impl FnMut() -> Option<Arrival>,
    ) -> Option<(Next, [u64; 2])> {
        let is_late = |held: &(Instant, _)| ended.is_some_and(|ended| held.0 < ended);
        let called = self.on_overrun.late(u64::MAX, self.late);
        let most = called.unwrap_or(0);
        let missed = self.missed;
        // Where all that can wait is to be called late, none of that is missed.
        while self
            .held
            .back()
            .is_none_or(|last| is_late(last) && most < self.room)
        {
            if self.held.len() as u64 > most {
                self.held.pop_front();
                self.missed += 1;
            }
            let Some(arrival) = take() else { break };
            self.arrives(arrival);
        }
        let next_is_late = self.held.front().is_some_and(is_late);
        if self.missed > missed || next_is_late {
            if let Err(instead) = called {
                return Some((instead, [0; 2]));
            }
            self.overrun = true;
        }
        self.late = match next_is_late {
            true => self.late.saturating_add(1),
            false => 0,
        };
        let (release, payload) = self.held.pop_front()?;
        let paced = Paced {
            release,
            missed: core::mem::take(&mut self.missed),
            overrun: core::mem::take(&mut self.overrun),
        };
        Some((Next::Call(paced), payload))
    }
}
