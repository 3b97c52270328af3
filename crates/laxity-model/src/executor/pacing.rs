//! When a periodic handler is called: releases on a grid that nothing moves, and what becomes of those that an overrun passed over.
//!
//! Release k is at `first + k · period`, whenever the calls before it began or ended: one long call delays none that comes after it by more
//! than it lasted, and a handler that is suspended and runs again keeps its phase. A call that is still at work when the next release comes has
//! *overrun* (`timerfd` tells so by its count of expirations, POSIX timers by `timer_getoverrun`).

use crate::{Instant, Span};

/// What becomes of the releases that come while a call is still at work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnOverrun {
    /// The last of them are called late, at once, one after the other, so many in a row at most; all before them are missed. After so many late calls
    /// those that have come by then are missed, too, and the next is on time: a handler that always takes longer than its period has no endless burst.
    /// None (0) is to skip, one is *once late*.
    CatchUp {
        /// So many.
        at_most: u32,
    },
    /// The handler is suspended, until it is [resumed](Pacing::resume).
    Suspend,
    /// The handler ends.
    End,
}

impl OnOverrun {
    /// All that have come are missed.
    pub const SKIP: Self = Self::CatchUp { at_most: 0 };
    /// The last that has come is called late.
    pub const ONCE_LATE: Self = Self::CatchUp { at_most: 1 };
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

    /// Begins, or begins again after it was suspended, with the first release that is not past. What came meanwhile was nobody's, and is not missed.
    pub fn resume(&mut self, now: Instant) -> Next {
        self.next = self.next.max(self.not_before(now));
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
        match self.on_overrun {
            OnOverrun::CatchUp { at_most } => {
                let late = (came - self.next).min(u64::from(at_most.saturating_sub(self.late)));
                let missed = came - self.next - late;
                self.next += missed;
                self.late = if late > 0 { self.late + 1 } else { 0 };
                self.call(missed, true)
            }
            OnOverrun::Suspend => Next::Suspended,
            OnOverrun::End => Next::Ended,
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
        let Some(release) = release else {
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
