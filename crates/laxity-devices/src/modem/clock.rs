//! A call's own time, from its first moment on, whichever host it runs on and however much of it was run ahead.

use std::sync::OnceLock;

use laxity_model::{Instant, Span};

/// Translates between the host's instants and the call's. All parts of a call share one.
#[derive(Debug)]
pub struct CallClock {
    began: OnceLock<Instant>,
    ahead: Span,
}

impl CallClock {
    /// The clock of a call whose first `ahead` have been run before the host starts.
    #[must_use]
    pub fn new(ahead: Span) -> Self {
        Self {
            began: OnceLock::new(),
            ahead,
        }
    }

    /// The host's instant in the call's time; the first reading of all makes it start.
    #[must_use]
    pub fn call_time(&self, host: Instant) -> Instant {
        let began = *self.began.get_or_init(|| host);
        Instant::ZERO + self.ahead + host.saturating_since(began)
    }

    /// The call's instant in the host's time, `host_now` being the latest reading of it.
    #[must_use]
    pub fn host_time(&self, call: Instant, host_now: Instant) -> Instant {
        let began = *self.began.get_or_init(|| host_now);
        began + call.since_epoch().saturating_sub(self.ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_was_run_ahead_is_skipped() {
        let clock = CallClock::new(Span::from_secs(3));
        let began = Instant::from_secs(100);
        assert_eq!(clock.call_time(began), Instant::from_secs(3));
        assert_eq!(
            clock.call_time(began + Span::from_millis(5)),
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
}
