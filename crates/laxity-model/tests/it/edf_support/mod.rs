//! What the tests of earliest deadline first share.

pub(crate) mod oracle;
pub(crate) mod rival;
pub(crate) mod schedule;
pub(crate) mod sets;

use laxity_model::analysis::supply::SupplyBound;
use laxity_model::analysis::{Fraction, Overflow, Task};
use laxity_model::{Service, Span};

/// Times `LAXITY_CASES`.
pub(crate) fn cases(cases: u32) -> u32 {
    let times = std::env::var("LAXITY_CASES")
        .ok()
        .and_then(|times| times.parse().ok());
    cases.saturating_mul(times.unwrap_or(1))
}

/// A preemptible task with an implicit deadline.
pub(crate) fn plain(cost: u64, period: u64) -> Task {
    Task::new(Service::from_nanos(cost), Span::from_nanos(period)).expect("a task")
}

/// `budget` in each `period`, early in the one before the window and late in all others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    pub(crate) budget: u64,
    pub(crate) period: u64,
}

impl SupplyBound for Pause {
    fn least_service(&self, window: Span) -> Service {
        let pause = self.period - self.budget;
        // Nothing for a pause, then as late as possible in each period.
        let after = window.as_nanos().saturating_sub(pause);
        let (whole, rest) = (after / self.period, after % self.period);
        Service::from_nanos(whole * self.budget + rest.saturating_sub(pause))
    }

    fn window_for(&self, service: Service) -> Result<Span, Overflow> {
        let Some(before) = service.as_nanos().checked_sub(1) else {
            return Ok(Span::ZERO);
        };
        let (whole, rest) = (before / self.budget, before % self.budget + 1);
        let window = Span::from_nanos(2 * (self.period - self.budget) + whole * self.period + rest);
        Ok(window)
    }

    fn rate(&self) -> Fraction {
        Fraction::new(self.budget, self.period).expect("not zero")
    }

    fn delay(&self) -> Span {
        Span::from_nanos(2 * (self.period - self.budget))
    }

    fn is_attained(&self) -> bool {
        true
    }
}

#[test]
fn the_supply_of_these_tests_keeps_its_word() {
    for period in 1..7 {
        for budget in 1..=period {
            let supply = Pause { budget, period };
            for window in (0..60).map(Span::from_nanos) {
                let service = supply.least_service(window);
                let found = supply.window_for(service).expect("small numbers");
                assert!(found <= window && supply.least_service(found) == service);
                let linear = (window.as_nanos() * budget)
                    .saturating_sub(2 * (period - budget) * budget)
                    / period;
                assert!(service.as_nanos() >= linear);
            }
        }
    }
}
