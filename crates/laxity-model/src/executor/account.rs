//! What one handler was admitted with, and what it has taken of it.

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::{Instant, Service, Span};

/// What a handler was admitted with: a budget for each of its calls, a period apart at least. It is held to that, so that others who were admitted beside it are in time whatever it takes: a quantum begins in its turn only where anything of what was given is
/// left; who has taken more is behind all others, or waits, until releases of its own have made up for that. So in any time in which others have something to do it has no more than the budgets of its releases, what it spared and one quantum.
///
/// The executor alone writes it. It outlives the handler's [upcall](crate::program::upcall::Upcall), as nobody is forgiven what he owes by being suspended.
#[derive(Debug)]
pub struct Account {
    budget_ns: i64,
    period: Span,
    /// Of what it did not take it may take so much later.
    spare_ns: i64,
    /// No stretch takes more, whatever was counted.
    most: Service,
    /// Less than nothing is owed.
    left_ns: AtomicI64,
    /// When it was given the last budget: at an origin, or so many periods after one.
    given_ns: AtomicU64,
}

impl Account {
    /// Of a budget for each call; so much may be spared of it, and of any stretch no more than `most` is the handler's: the rest is the machine's. `None` where it was admitted with nothing, or more than can be counted.
    #[must_use]
    pub fn new(budget: Service, period: Span, spare: Service, most: Service) -> Option<Self> {
        let [budget_ns, spare_ns] = [budget, spare].map(|of| i64::try_from(of.as_nanos()).ok());
        let is_one = budget > Service::ZERO && period > Span::ZERO;
        let (budget_ns, spare_ns) = (budget_ns.filter(|_| is_one)?, spare_ns?);
        Some(Self {
            budget_ns,
            period,
            spare_ns,
            most,
            left_ns: AtomicI64::new(budget_ns.checked_add(spare_ns)?),
            given_ns: AtomicU64::new(0),
        })
    }

    /// Whether another quantum of a call may begin, the first of whose chain was released at this origin: the releases of one that comes after another are not a period apart, but origins are.
    ///
    /// Budgets are a period apart at least. Those that are due by the origin are given before anything is looked at: so in any time from a release on it has what was there then, which is a budget and what may be spared at most, and one more for each period that begins. Ahead of their releases they are given only where nothing is left: so who is called late has those of all its releases.
    ///
    /// # Errors
    ///
    /// When it may.
    pub(crate) fn admits(&self, origin: Instant, now: Instant) -> Result<(), Instant> {
        let due = origin.saturating_since(self.given()) / self.period;
        self.gives(due, origin);
        if self.left() > 0 {
            return Ok(());
        }
        let passed = now.saturating_since(self.given()) / self.period;
        self.gives(passed, self.after(passed));
        if self.left() > 0 {
            return Ok(());
        }
        Err(self.after(self.lacking()))
    }

    /// So many budgets until there is something left.
    fn lacking(&self) -> u64 {
        self.left().unsigned_abs() / self.budget_ns.unsigned_abs() + 1
    }

    fn given(&self) -> Instant {
        Instant::from_nanos(self.given_ns.load(Ordering::Relaxed))
    }

    fn left(&self) -> i64 {
        self.left_ns.load(Ordering::Relaxed)
    }

    /// So many periods after the last budget.
    fn after(&self, periods: u64) -> Instant {
        let since = Span::from_nanos(self.period.as_nanos().saturating_mul(periods));
        self.given().checked_add(since).unwrap_or(Instant::MAX)
    }

    /// So many budgets, the last of which is of this instant.
    fn gives(&self, periods: u64, until: Instant) {
        if periods == 0 {
            return;
        }
        let periods = i64::try_from(periods).unwrap_or(i64::MAX);
        let left = self
            .left()
            .saturating_add(self.budget_ns.saturating_mul(periods));
        let most = self.budget_ns.saturating_add(self.spare_ns);
        self.left_ns.store(left.min(most), Ordering::Relaxed);
        self.given_ns.store(until.as_nanos(), Ordering::Relaxed);
    }

    /// A stretch of work that is over took so much.
    pub(crate) fn charge(&self, took: Service) {
        let took = i64::try_from(took.min(self.most).as_nanos()).unwrap_or(i64::MAX);
        // Nobody owes more than one stretch: what is taken while one does is taken behind all others.
        let most = i64::try_from(self.most.as_nanos()).unwrap_or(i64::MAX);
        let left = self.left().saturating_sub(took).max(-most);
        self.left_ns.store(left, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    const BUDGET: u64 = 50;
    const PERIOD: u64 = 1_000;
    const SPARE: u64 = 30;
    const MOST: u64 = 2_000;

    fn account() -> Account {
        let [budget, spare, most] = [BUDGET, SPARE, MOST].map(Service::from_nanos);
        Account::new(budget, Span::from_nanos(PERIOD), spare, most).unwrap()
    }

    /// What calls of one quantum each took, one after the other, and when each began: so long after the release of the one before.
    fn calls(account: &Account, asked: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let (mut release, mut now) = (PERIOD, 0);
        let mut taken = Vec::new();
        for (after, took) in asked {
            release += after;
            now = now.max(release);
            while let Err(until) = admits(account, release, now) {
                assert!(until > now, "it waits for nothing");
                now = until;
            }
            account.charge(Service::from_nanos(*took));
            taken.push((now, *took.min(&MOST)));
            now += took;
        }
        taken
    }

    fn admits(account: &Account, origin: u64, now: u64) -> Result<(), u64> {
        let [origin, now] = [origin, now].map(Instant::from_nanos);
        account.admits(origin, now).map_err(Instant::as_nanos)
    }

    /// From release to release: on the grid, a little off it, or far from it.
    fn after() -> impl Strategy<Value = u64> {
        prop_oneof![
            (1..4_u64).prop_map(|periods| periods * PERIOD),
            PERIOD..PERIOD + 200,
            PERIOD..4 * PERIOD,
        ]
    }

    /// Between any two of these quanta no more was taken than an account allows.
    fn keeps_within(taken: &[(u64, u64)]) -> Result<(), TestCaseError> {
        for (place, (from, _)) in taken.iter().enumerate() {
            let mut sum = 0;
            for (at, took) in &taken[place..] {
                let releases = 1 + (at - from).div_ceil(PERIOD);
                // What is left of the budgets before is the last stretch's.
                prop_assert!(sum < releases * BUDGET + SPARE, "{sum} from {from} to {at}");
                sum += took;
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn in_any_time_it_has_its_budgets_what_it_spared_and_a_stretch(
            asked in proptest::collection::vec((after(), prop_oneof![0..120_u64, 60..120_u64, 0..4_000_u64]), 1..60),
        ) {
            keeps_within(&calls(&account(), &asked))?;
        }

        #[test]
        fn who_keeps_to_its_budget_never_waits(asked in proptest::collection::vec((after(), 0..=BUDGET), 1..60)) {
            let mut release = PERIOD;
            for ((after, _), (at, _)) in asked.iter().zip(calls(&account(), &asked)) {
                release += after;
                prop_assert_eq!(at, release);
            }
        }
    }

    /// What was due before a release, though nobody asked for it, counts before what may be spared is limited.
    #[test]
    fn who_spared_all_has_no_more_for_that_it_owed_something_before() {
        let asked = [
            (1_000, 481),
            (3_000, 97),
            (1_052, 94),
            (1_136, 58),
            (3_665, 55),
            (2_000, 50),
            (3_000, 43),
            (2_980, 58),
            (1_027, 94),
            (1_140, 50),
            (3_000, 0),
            (1_000, 80),
            (1_000, 50),
            (1_000, 1_500),
            (1_000, 0),
        ];
        keeps_within(&calls(&account(), &asked)).unwrap();
    }

    /// Who is at work longer than a period and is released soon after it ends has one budget a period.
    #[test]
    fn what_is_given_ahead_of_a_release_is_not_given_at_it() {
        let account = account();
        let quantum = |release, now, took| {
            let admitted = admits(&account, release, now);
            if admitted.is_ok() {
                account.charge(Service::from_nanos(took));
            }
            admitted
        };
        assert_eq!(quantum(1_000, 1_000, 100), Ok(()));
        assert_eq!(quantum(1_000, 2_000, 30), Ok(()));
        for periods in 2..6 {
            let next = (periods + 1) * PERIOD;
            let release = next - 500;
            assert_eq!(quantum(release, release, 50), Err(next));
            assert_eq!(quantum(release, next, 50), Ok(()));
        }
    }

    #[test]
    fn who_is_called_late_has_a_budget_for_each_release() {
        let (account, late) = (account(), 9 * PERIOD);
        for quantum in 0..10 {
            let origin = (1 + quantum / 2) * PERIOD;
            let now = late + quantum * BUDGET / 2;
            assert_eq!(admits(&account, origin, now), Ok(()), "{origin}");
            account.charge(Service::from_nanos(BUDGET / 2));
        }
    }

    /// What it was given while it was behind is of the releases that came meanwhile, called or missed, and of none that comes after those.
    #[test]
    fn one_of_a_chain_that_was_released_late_once_has_made_up_for_that() {
        let account = account();
        let took = |nanos| account.charge(Service::from_nanos(nanos));
        let late = PERIOD + 300;
        assert_eq!(admits(&account, PERIOD, late), Ok(()));
        took(SPARE + 2 * BUDGET);
        assert_eq!(admits(&account, PERIOD, late + 2 * PERIOD), Ok(()));
        took(BUDGET);
        for release in (4..8).map(|periods| periods * PERIOD) {
            assert_eq!(admits(&account, release, release), Ok(()), "{release}");
            took(BUDGET);
        }
    }

    /// No more of one stretch is charged than one may be, whatever the machine did.
    #[test]
    fn a_stretch_is_made_up_for_in_as_many_periods_as_it_has_budgets() {
        let asked = [(PERIOD, 5 * BUDGET + SPARE), (PERIOD, 0)];
        assert_eq!(calls(&account(), &asked)[1].0, 2 * PERIOD + 5 * PERIOD);
        let [long, longer] = [MOST, 100 * MOST].map(|took| {
            let account = account();
            admits(&account, 1, 0).unwrap();
            account.charge(Service::from_nanos(took));
            account.left()
        });
        assert_eq!(long, longer);
        let none = Account::new(
            Service::ZERO,
            Span::from_millis(1),
            Service::ZERO,
            Service::MAX,
        );
        assert!(none.is_none());
    }
}
