//! A device's own time, from its first moment on, whichever host it runs on and however much of it was run ahead.

use std::sync::{Arc, OnceLock};

use laxity_model::{Body, Context, Instant, Span, Step};

/// How a device's clock, which is its card's crystal, stands to the host's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CardClock {
    /// The device begins so long after the host first looks at it, so that it is in no phase with the host's clock and slots.
    pub begins_after: Span,
    /// By how much the card's clock is faster than the host's, in parts per billion. Zero live, where the host's clock is the card's.
    pub fast_ppb: i32,
}

/// Translates between the host's instants and the device's. All parts of a device share one.
#[derive(Debug)]
pub(crate) struct DeviceClock {
    began: OnceLock<Instant>,
    ahead: Span,
    card: CardClock,
}

const BILLION: u128 = 1_000_000_000;

impl DeviceClock {
    /// The clock of a device whose first `ahead` have been run before the host starts.
    #[must_use]
    pub(crate) fn new(ahead: Span, card: CardClock) -> Self {
        Self {
            began: OnceLock::new(),
            ahead,
            card,
        }
    }

    /// The card's nanoseconds in a second of the host's.
    fn rate(&self) -> u128 {
        (BILLION as i64 + i64::from(self.card.fast_ppb)) as u128
    }

    /// The host's instant in the device's time; the first reading of all makes it start.
    pub(crate) fn device_time(&self, host: Instant) -> Instant {
        let began = *self.began.get_or_init(|| host + self.card.begins_after);
        let passed = u128::from(host.saturating_since(began).as_nanos());
        let passed = match self.card.fast_ppb {
            0 => passed,
            _ => passed * self.rate() / BILLION,
        };
        Instant::ZERO + self.ahead + Span::from_nanos(passed as u64)
    }

    /// The first instant of the host at which it is `at` in the device's time, `host_now` being the latest reading of it.
    pub(crate) fn host_time(&self, at: Instant, host_now: Instant) -> Instant {
        let began = *self.began.get_or_init(|| host_now + self.card.begins_after);
        let wanted = u128::from(at.since_epoch().saturating_sub(self.ahead).as_nanos());
        let wanted = match self.card.fast_ppb {
            0 => wanted,
            _ => (wanted * BILLION).div_ceil(self.rate()),
        };
        began + Span::from_nanos(wanted as u64)
    }

    /// What is outside the machine as an activity: it does what is due, in the device's time, and says when the next is.
    pub(crate) fn activity(
        self: Arc<Self>,
        mut advance: impl FnMut(Instant) -> Instant + Send + 'static,
    ) -> impl Body + 'static {
        move |context: &mut dyn Context| {
            let host_now = context.now();
            let due = advance(self.device_time(host_now));
            Step::SleepUntil(self.host_time(due, host_now))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_was_run_ahead_is_skipped() {
        let clock = DeviceClock::new(Span::from_secs(3), CardClock::default());
        let began = Instant::from_secs(100);
        assert_eq!(clock.device_time(began), Instant::from_secs(3));
        assert_eq!(
            clock.device_time(began + Span::from_millis(5)),
            Instant::from_millis(3_005)
        );
        assert_eq!(
            clock.host_time(Instant::from_millis(3_005), began),
            began + Span::from_millis(5)
        );
        assert_eq!(
            clock.host_time(Instant::from_secs(1), began),
            began,
            "what is past is now"
        );
    }

    #[test]
    fn a_crystal_of_its_own_drifts_and_what_is_waited_for_has_come() {
        for fast_ppb in [-50_000, 50_000] {
            let card = CardClock {
                begins_after: Span::from_millis(7),
                fast_ppb,
            };
            let clock = DeviceClock::new(Span::ZERO, card);
            let first = Instant::from_secs(1);
            assert_eq!(clock.device_time(first), Instant::ZERO);
            let after = first + Span::from_millis(7) + Span::from_secs(100);
            let drift = i64::from(fast_ppb) / 10;
            let card_ns = clock.device_time(after).as_nanos() as i64;
            assert_eq!(card_ns, 100_000_000_000 + drift * 1_000);
            for call in (0..10_000_000_000).step_by(13_124_999) {
                let call = Instant::from_nanos(call);
                let host = clock.host_time(call, first);
                assert!(clock.device_time(host) >= call);
                assert!(
                    clock.device_time(host - Span::from_nanos(1)) < call || call == Instant::ZERO
                );
            }
        }
    }
}
