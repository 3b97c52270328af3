//! How urgent a packet is, from the instant at which it arrived (§5 of the paper): deadline and workahead.
//!
//! A sender promises a *linear bounded arrival process*: in no interval of length t, its ends with it, do more than `burst + rate × t`
//! messages arrive, or bytes (Anderson, "Meta-scheduling for distributed continuous media", UCB/CSD 90/599, 1990). What comes faster than
//! the rate is *workahead*: it has come before its time. Its time is the *logical arrival*,
//!
//! ```text
//! l(0) = a(0),    l(i) = max(a(i), l(i−1) + n(i−1) / rate)
//! ```
//!
//! where `a(i)` is the arrival of the i-th packet and `n(i)` is 1, or its bytes. Its *deadline* is a delay behind that. A packet is *critical* from its
//! logical arrival on; before, it is workahead, and may wait for whatever is critical. So a packet that comes early is due no earlier than
//! if it had come in time, and logical arrivals, and with them deadlines, never go back: not even where arrival instants do.
//!
//! The promise is kept exactly as long as `l(i) − a(i) + n(i) / rate ≤ burst / rate` for each packet; one that breaks it is told as such. It has its place in
//! the line all the same, so that who sends too much makes only its own packets late.
//!
//! Fractions of a nanosecond are kept; what is told is rounded up.

use core::hint::select_unpredictable;
use core::num::NonZeroU32;

use crate::{Instant, Span};

/// What the rate and the burst that a client states are of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unit {
    /// Each packet is one.
    Packets,
    /// Each packet is its bytes.
    Bytes,
}

/// What a client states of its packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stated {
    amount: NonZeroU32,
    period: Span,
    burst: NonZeroU32,
    delay: Span,
}

/// What a client states cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StatedError {
    /// The rate, or the burst, is of nothing.
    #[error("a rate and a burst are of one message or byte at least")]
    Nothing,
    /// The period is zero.
    #[error("the period of a rate must be more than zero")]
    NoPeriod,
}

impl Stated {
    /// So many messages (or bytes) in each period; up to `burst` of them at once; each processed within a delay of its logical arrival. A burst of bytes
    /// has to be the longest message at least, or none keeps the promise.
    ///
    /// # Errors
    ///
    /// [`StatedError`].
    pub const fn new(
        amount: u32,
        period: Span,
        burst: u32,
        delay: Span,
    ) -> Result<Self, StatedError> {
        let (Some(amount), Some(burst)) = (NonZeroU32::new(amount), NonZeroU32::new(burst)) else {
            return Err(StatedError::Nothing);
        };
        if period.is_zero() {
            return Err(StatedError::NoPeriod);
        }
        Ok(Self {
            amount,
            period,
            burst,
            delay,
        })
    }

    /// Of a client whose packets are due as they come, and that promises nothing: as many as there may be in any time.
    pub const ANYTHING: Self = Self {
        amount: NonZeroU32::MAX,
        period: Span::from_nanos(1),
        burst: NonZeroU32::MAX,
        delay: Span::MAX,
    };

    /// When a packet with this logical arrival is due.
    #[must_use]
    #[inline]
    pub fn due(&self, logical: Instant) -> Instant {
        logical.checked_add(self.delay).unwrap_or(Instant::MAX)
    }

    /// How many of so many messages are critical, where all have arrived and the first, which counts in any case, has this logical arrival.
    #[must_use]
    pub fn critical(&self, messages: u32, logical: Instant, now: Instant) -> u32 {
        let since = u128::from(now.saturating_since(logical).as_nanos());
        let further = since * u128::from(self.amount.get()) / u128::from(self.period.as_nanos());
        let most = u32::try_from(further).map_or(u32::MAX, |further| further.saturating_add(1));
        messages.min(most)
    }

    /// What so many messages or bytes take at the rate.
    fn take(&self, count: u32) -> Point {
        let parts = u128::from(self.amount.get());
        let taken = u128::from(count) * u128::from(self.period.as_nanos());
        u64::try_from(taken / parts).map_or(Point::END, |nanos| Point {
            nanos,
            // Less than the amount, which is a number of 32 bits.
            part: (taken % parts) as u32,
        })
    }
}

/// A point in time, or a length of it, in nanoseconds and parts of one: as many as are in a period. Packed, so that all of a client's line is in one line of the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C, packed(4))]
struct Point {
    nanos: u64,
    part: u32,
}

impl Point {
    const ZERO: Self = Self { nanos: 0, part: 0 };
    const END: Self = Self {
        nanos: u64::MAX,
        part: 0,
    };

    /// In one number, which is compared without a branch.
    #[inline]
    const fn order(self) -> u128 {
        (self.nanos as u128) << 32 | self.part as u128
    }

    #[inline]
    fn later(self, other: Self) -> Self {
        select_unpredictable(self.order() < other.order(), other, self)
    }

    /// So much later, where a nanosecond has so many parts.
    #[inline]
    fn plus(self, other: Self, parts: NonZeroU32) -> Self {
        let (sum, parts) = (
            u64::from(self.part) + u64::from(other.part),
            u64::from(parts.get()),
        );
        // Whether a nanosecond is full nobody can foresee, so nothing branches on it.
        let is_full = sum >= parts;
        let nanos = self.nanos.checked_add(other.nanos);
        match nanos.and_then(|nanos| nanos.checked_add(u64::from(is_full))) {
            Some(nanos) => Self {
                nanos,
                part: (sum - u64::from(is_full) * parts) as u32,
            },
            None => Self::END,
        }
    }

    /// So much earlier, or the beginning.
    fn minus(self, other: Self, parts: NonZeroU32) -> Self {
        let (borrow, part) = match self.part.checked_sub(other.part) {
            Some(part) => (0, part),
            None => (1, self.part + (parts.get() - other.part)),
        };
        let nanos = self.nanos.checked_sub(other.nanos);
        match nanos.and_then(|nanos| nanos.checked_sub(borrow)) {
            Some(nanos) => Self { nanos, part },
            None => Self::ZERO,
        }
    }

    /// The first instant that is not before it.
    #[inline]
    fn instant(self) -> Instant {
        Instant::from_nanos(self.nanos.saturating_add(u64::from(self.part > 0)))
    }
}

/// When a packet is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Due {
    /// From here on it is critical.
    pub logical: Instant,
    /// By then it has to be processed.
    pub deadline: Instant,
    /// Whether the sender broke its promise with it.
    pub exceeds: bool,
}

/// The logical arrivals of one client.
#[derive(Clone, Debug)]
pub struct Urgency {
    stated: Stated,
    /// What one message or byte takes at the rate, and what a burst does.
    one: Point,
    burst: Point,
    /// The earliest logical arrival of the next packet.
    next: Point,
}

impl Urgency {
    /// Before the first packet.
    #[must_use]
    pub fn new(stated: Stated) -> Self {
        Self {
            stated,
            one: stated.take(1),
            burst: stated.take(stated.burst.get()),
            next: Point::ZERO,
        }
    }

    /// When a packet is due that arrived then; `count` is 1 where messages are counted, and its bytes where these are. Instants beyond the end of time
    /// are that. O(1).
    #[inline]
    pub fn arrived(&mut self, at: Instant, count: u32) -> Due {
        let place = self.place(at, count);
        self.next = place.behind;
        self.due(place)
    }

    /// Where a packet that arrived then and counts so much has its place in the line. O(1).
    #[inline]
    #[must_use]
    pub fn place(&self, at: Instant, count: u32) -> Place {
        let at = Point {
            nanos: at.as_nanos(),
            part: 0,
        };
        let logical = self.next.later(at);
        let behind = self.behind(logical, count);
        let most = at.plus(self.burst, self.stated.amount);
        Place {
            logical,
            behind,
            exceeds: behind.order() > most.order(),
        }
    }

    /// A packet takes its place, which is where it would have now.
    #[inline]
    pub const fn take(&mut self, place: Place) {
        self.next = place.behind;
    }

    /// When a packet with this place is due.
    #[inline]
    #[must_use]
    pub fn due(&self, place: Place) -> Due {
        let logical = place.logical.instant();
        Due {
            logical,
            deadline: self.stated.due(logical),
            exceeds: place.exceeds,
        }
    }

    /// Whether a packet that arrived then and counts so much would keep the promise. O(1).
    #[inline]
    #[must_use]
    pub fn keeps(&self, at: Instant, count: u32) -> bool {
        !self.place(at, count).exceeds
    }

    /// The earliest instant at which a packet that counts so much keeps the promise; `None` where it counts more than a burst, and never does.
    #[must_use]
    pub fn keeps_from(&self, count: u32) -> Option<Instant> {
        let room = self.stated.burst.get().checked_sub(count)?;
        let room = self.stated.take(room);
        Some(self.next.minus(room, self.stated.amount).instant())
    }

    /// The client states something else from now on. What has come keeps its place in the line, to the nanosecond above.
    pub fn states(&mut self, stated: Stated) {
        let nanos = self.next.instant().as_nanos();
        *self = Self {
            next: Point { nanos, part: 0 },
            ..Self::new(stated)
        };
    }

    /// The line of the same client as it was at the mark.
    #[must_use]
    #[inline]
    pub const fn since(&self, mark: Mark) -> Self {
        Self {
            next: mark.0,
            ..*self
        }
    }

    /// Whatever came since the mark, and what the mark is of, is taken to have never come.
    pub const fn back_to(&mut self, mark: Mark) {
        self.next = mark.0;
    }

    #[inline]
    fn behind(&self, logical: Point, count: u32) -> Point {
        let taken = if count == 1 {
            self.one
        } else {
            self.stated.take(count)
        };
        logical.plus(taken, self.stated.amount)
    }
}

/// The place of a packet in the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    logical: Point,
    behind: Point,
    exceeds: bool,
}

impl Place {
    /// Whether the sender breaks its promise with it.
    #[inline]
    #[must_use]
    pub const fn exceeds(self) -> bool {
        self.exceeds
    }

    /// The line at its logical arrival, as if it took nothing of it.
    #[inline]
    #[must_use]
    pub const fn mark(self) -> Mark {
        Mark(self.logical)
    }
}

/// A point in the line of a client's logical arrivals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark(Point);
