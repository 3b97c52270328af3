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

    /// What so many messages or bytes take at the rate, in parts of a nanosecond: as many as are in a period.
    fn take(&self, count: u32) -> u128 {
        u128::from(count) * u128::from(self.period.as_nanos())
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
    /// The earliest logical arrival of the next packet, in parts of a nanosecond.
    next: u128,
}

impl Urgency {
    /// Before the first packet.
    #[must_use]
    pub const fn new(stated: Stated) -> Self {
        Self { stated, next: 0 }
    }

    /// When a packet is due that arrived then; `count` is 1 where messages are counted, and its bytes where these are. Instants beyond the end of time
    /// are that. O(1).
    pub fn arrived(&mut self, at: Instant, count: u32) -> Due {
        let stated = &self.stated;
        let parts = u128::from(stated.amount.get());
        let at = u128::from(at.as_nanos()) * parts;
        let logical = self.next.max(at);
        self.next = logical.saturating_add(stated.take(count));
        let exceeds = self.next - at > stated.take(stated.burst.get());
        let nanos = u64::try_from(logical.div_ceil(parts));
        let logical = nanos.map_or(Instant::MAX, Instant::from_nanos);
        Due {
            logical,
            deadline: stated.due(logical),
            exceeds,
        }
    }
}
