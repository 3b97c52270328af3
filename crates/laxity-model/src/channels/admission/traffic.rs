//! What a channel may send.

use core::fmt;
use core::num::NonZeroU32;

use crate::Span;
use crate::nif::urgency::{Stated, StatedError};

/// What a channel may send: messages of at most so many bytes (M_max), in a *linear bounded arrival process* of a rate (R_max) and a burst (B_max); §2.2.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Traffic {
    largest: NonZeroU32,
    messages: NonZeroU32,
    per: Span,
    burst: NonZeroU32,
}

/// Numbers are no traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TrafficError {
    /// The largest message has no byte, or the rate or the burst no message.
    #[error("a message has one byte at least, a rate and a burst one message")]
    Nothing,
    /// The period of the rate is zero.
    #[error("the period of a rate must be more than zero")]
    NoPeriod,
    /// More than a message a nanosecond.
    #[error("{messages} messages in {per} are more than one a nanosecond")]
    TooOften {
        /// So many messages
        messages: NonZeroU32,
        /// in so much time.
        per: Span,
    },
}

impl Traffic {
    /// Messages of at most `largest` bytes, `messages` of them in each `per`, and up to `burst` at once.
    ///
    /// # Errors
    ///
    /// [`TrafficError`].
    pub fn new(
        largest: u32,
        (messages, per): (u32, Span),
        burst: u32,
    ) -> Result<Self, TrafficError> {
        let [Some(largest), Some(messages), Some(burst)] =
            [largest, messages, burst].map(NonZeroU32::new)
        else {
            return Err(TrafficError::Nothing);
        };
        if per.is_zero() {
            return Err(TrafficError::NoPeriod);
        }
        if per.as_nanos() < u64::from(messages.get()) {
            return Err(TrafficError::TooOften { messages, per });
        }
        Ok(Self {
            largest,
            messages,
            per,
            burst,
        })
    }

    /// The same with messages of at most so many bytes.
    #[must_use]
    pub const fn with_largest(self, largest: NonZeroU32) -> Self {
        Self { largest, ..self }
    }

    /// The same with one message in each interval; `None` where that is zero.
    #[must_use]
    pub fn with_interval(self, interval: Span) -> Option<Self> {
        (!interval.is_zero()).then_some(Self {
            messages: NonZeroU32::MIN,
            per: interval,
            ..self
        })
    }

    /// M_max, in bytes.
    #[must_use]
    pub const fn largest(&self) -> NonZeroU32 {
        self.largest
    }

    /// R_max: so many messages in so much time.
    #[must_use]
    pub const fn rate(&self) -> (NonZeroU32, Span) {
        (self.messages, self.per)
    }

    /// B_max: so many messages at once.
    #[must_use]
    pub const fn burst(&self) -> NonZeroU32 {
        self.burst
    }

    /// Bits a second of messages, without headers, rounded up.
    #[must_use]
    pub fn bits(&self) -> u64 {
        let each = u128::from(self.messages.get()) * u128::from(self.largest.get()) * 8;
        let bits = (each * 1_000_000_000).div_ceil(u128::from(self.per.as_nanos()));
        u64::try_from(bits).unwrap_or(u64::MAX)
    }

    /// I = 1 / R_max: logical arrivals are no closer. A fraction of a nanosecond is left out, so this is low, which is safe.
    #[must_use]
    pub fn interval(&self) -> Span {
        self.per / u64::from(self.messages.get())
    }

    /// How many messages at most have logical arrivals in a window of this length, its ends with it: ⌊W / I⌋ + 1, exactly; `None` where that does not fit.
    #[must_use]
    pub fn messages_in(&self, window: Span) -> Option<u64> {
        let whole = u128::from(window.as_nanos()) * u128::from(self.messages.get())
            / u128::from(self.per.as_nanos());
        u64::try_from(whole).ok()?.checked_add(1)
    }

    /// What a policer is to be told: each message due this long after its logical arrival.
    ///
    /// # Errors
    ///
    /// None that is possible here.
    pub fn stated(&self, delay: Span) -> Result<Stated, StatedError> {
        Stated::new(self.messages.get(), self.per, self.burst.get(), delay)
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            largest,
            messages,
            per,
            burst,
        } = self;
        write!(f, "{largest} B, {messages} in {per}")?;
        if burst.get() > 1 {
            write!(f, ", up to {burst} at once")?;
        }
        Ok(())
    }
}
