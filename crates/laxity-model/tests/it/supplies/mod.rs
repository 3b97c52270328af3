//! Every supply against the least that brute force finds: all courses that its promise allows, tick by tick.
//!
//! `LAXITY_CASES` multiplies the random cases and raises the numbers of the simulated kernel (10 is thorough).

mod kernel;
mod residual;
use laxity_model::analysis::supply::{
    BoundedDelay, Dedicated, Delayed, ExplicitDeadline, KernelDeadline, Residual, SupplyBound,
    SupplyError, TableSupply,
};
use laxity_model::analysis::{Fraction, Overflow, Task};
use laxity_model::policy::slots::{Slot, SlotTable, largest_gap};
use laxity_model::{Reservation, Service, Span};
use proptest::prelude::*;
use response_time_analysis::supply::{Constrained, Periodic, SupplyBound as Rival};
use response_time_analysis::time as rival;

use crate::slot_oracle;

fn cases() -> u32 {
    let cases = std::env::var("LAXITY_CASES").ok();
    cases.and_then(|cases| cases.parse().ok()).unwrap_or(1)
}

fn every(service: u64, period: u64) -> Reservation {
    Reservation::new(Service::from_nanos(service), Span::from_nanos(period)).unwrap()
}

fn sbf(supply: &impl SupplyBound, window: u64) -> u64 {
    supply.least_service(Span::from_nanos(window)).as_nanos()
}

fn window_for(supply: &impl SupplyBound, service: u64) -> u64 {
    let window = supply.window_for(Service::from_nanos(service));
    window.unwrap().as_nanos()
}

/// What the trait promises, for windows up to `horizon`; that it repeats itself; and that a supply which says it is attained could be: full service up to an
/// instant and then just sbf, in which no window has less.
fn keeps_the_laws(supply: &impl SupplyBound, horizon: u64) {
    let rate = supply.rate();
    let (n, d) = (u128::from(rate.numerator()), u128::from(rate.denominator()));
    assert!(n <= d && n > 0);
    let curve: Vec<u64> = (0..=horizon).map(|t| sbf(supply, t)).collect();
    assert_eq!(curve[0], 0);
    assert_eq!(window_for(supply, 0), 0);
    let mut reached = 0;
    for (t, &service) in (0..).zip(&curve) {
        let before = curve[usize::try_from(t).unwrap().saturating_sub(1)];
        assert!(before <= service && service - before <= 1, "at {t}");
        while reached < service {
            reached += 1;
            assert_eq!(window_for(supply, reached), t, "for {reached}");
        }
        let late = u128::from(t.saturating_sub(supply.delay().as_nanos()));
        assert!(u128::from(service) * d >= late * n, "late at {t}");
    }
    for service in 2..=reached {
        let again = window_for(supply, service + rate.numerator());
        assert_eq!(again, window_for(supply, service) + rate.denominator());
    }
    assert!(window_for(supply, reached + 1) > horizon);
    if supply.is_attained() {
        for from in 0..curve.len() {
            for t in 0..curve.len() - from {
                assert!(curve[from + t] - curve[from] >= curve[t], "not attained");
            }
        }
    }
}

/// The least service of `count` ticks within one period, over all ways to serve it by its deadline, in three kinds of stretch.
struct Placements {
    period: usize,
    service: u64,
    /// From this tick to the period's end.
    from: Vec<u64>,
    /// From the period's beginning to this tick.
    until: Vec<u64>,
    /// Within.
    between: Vec<Vec<u64>>,
}

impl Placements {
    fn of(service: u32, period: usize, deadline: usize) -> Self {
        let full = u64::from(service);
        let mut this = Self {
            period,
            service: full,
            from: vec![full; period + 1],
            until: vec![full; period + 1],
            between: vec![vec![full; period + 1]; period + 1],
        };
        let placements = (0_u32..1 << deadline).filter(|mask| mask.count_ones() == service);
        for mask in placements {
            for from in 0..=period {
                for until in from..=period {
                    let stretch = ((1 << until) - 1) & !((1 << from) - 1);
                    let served = u64::from((mask & stretch).count_ones());
                    let least = &mut this.between[from][until];
                    *least = served.min(*least);
                }
            }
        }
        for tick in 0..=period {
            this.from[tick] = this.between[tick][period];
            this.until[tick] = this.between[0][tick];
        }
        this
    }

    /// Periods are served independently of each other: the least of a window is the sum of the leasts of its parts.
    fn least(&self, window: usize) -> u64 {
        let from = |from: usize| {
            let until = from + window;
            if until <= self.period {
                return self.between[from][until];
            }
            let whole = (until / self.period - 1) as u64 * self.service;
            self.from[from] + whole + self.until[until % self.period]
        };
        (0..self.period).map(from).min().unwrap()
    }
}

#[test]
fn periodic_supplies_are_the_least_of_all_placements() {
    for period in 1..=12_usize {
        for deadline in 1..=period {
            for service in 1..=deadline {
                let (x, y) = (service as u64, period as u64);
                let placements = Placements::of(service as u32, period, deadline);
                let deadline_ns = Span::from_nanos(deadline as u64);
                let supply = ExplicitDeadline::new(every(x, y), deadline_ns).unwrap();
                for window in 0..=5 * period {
                    let (found, least) = (sbf(&supply, window as u64), placements.least(window));
                    assert_eq!(found, least, "{x}/{y} by {deadline} in {window}");
                }
                keeps_the_laws(&supply, 5 * y);
                if deadline == period {
                    let periodic = ExplicitDeadline::periodic(every(x, y));
                    assert_eq!(periodic, supply);
                    keeps_the_laws(&periodic, 5 * y);
                }
            }
        }
    }
}

/// The least service in windows of 0, 1, … ticks over *all* courses in which every window of the period holds the service. The state is
/// the last period, tick by tick; any that holds the service can be reached, by repeating it.
fn least_of_continuous_courses(service: u32, period: usize, longest: usize) -> Vec<u64> {
    let mask = (1_usize << period) - 1;
    let is_kept = |state: usize| state.count_ones() >= service;
    let states = 1 << period;
    let mut least: Vec<Option<u64>> = (0..states).map(|s| is_kept(s).then_some(0)).collect();
    let mut curve = vec![0];
    for _ in 0..longest {
        let mut next = vec![None; states];
        for (state, served) in least.iter().enumerate() {
            let Some(served) = *served else { continue };
            for tick in [0, 1] {
                let to = (state << 1 | tick) & mask;
                if is_kept(to) {
                    let served = served + tick as u64;
                    next[to] = Some(next[to].map_or(served, |other: u64| other.min(served)));
                }
            }
        }
        least = next;
        curve.push(least.iter().flatten().copied().min().unwrap());
    }
    curve
}

#[test]
fn continuous_supplies_are_the_least_of_all_courses() {
    for period in 1..=12_usize {
        for service in 1..=period {
            let (x, y) = (service as u64, period as u64);
            let supply = ExplicitDeadline::continuous(every(x, y));
            let least = least_of_continuous_courses(service as u32, period, 5 * period);
            let found: Vec<u64> = (0..=5 * y).map(|window| sbf(&supply, window)).collect();
            assert_eq!(found, least, "{x}/{y}");
            keeps_the_laws(&supply, 5 * y);
        }
    }
}

/// A slot of x in each y, each up to `late` late: in every window at least that much, and in some no more.
#[test]
fn late_slots_give_what_a_delayed_supply_says_and_no_less() {
    const SLOTS: u64 = 4;
    for (x, y, late) in [(2, 5, 1), (1, 4, 3), (3, 7, 2), (2, 2, 0)] {
        let supply = Delayed::new(
            ExplicitDeadline::continuous(every(x, y)),
            Span::from_nanos(late),
        );
        keeps_the_laws(&supply, 5 * y);
        let mut least = vec![u64::MAX; (3 * y) as usize];
        for course in 0..(late + 1).pow(SLOTS as u32) {
            let begins = (0..SLOTS).map(|n| n * y + course / (late + 1).pow(n as u32) % (late + 1));
            let begins: Vec<u64> = begins.collect();
            let given = |tick: u64| {
                begins
                    .iter()
                    .any(|begin| (*begin..begin + x).contains(&tick))
            };
            for from in 0..y {
                let mut served = 0;
                for (length, least) in least.iter_mut().enumerate() {
                    *least = served.min(*least);
                    served += u64::from(given(from + length as u64));
                }
            }
        }
        for (length, least) in (0..).zip(least) {
            // The windows of all courses, and so the worst, begin before the second slot.
            assert_eq!(sbf(&supply, length), least, "{x}/{y} {late} late: {length}");
        }
    }
}

#[test]
fn a_deadline_outside_service_and_period_is_refused() {
    let refused = |deadline| {
        let supply = ExplicitDeadline::new(every(3, 8), Span::from_nanos(deadline));
        matches!(supply, Err(SupplyError::Deadline { .. }))
    };
    assert!(refused(2) && !refused(3) && !refused(8) && refused(9));
}

#[test]
fn a_rate_after_a_delay_is_rounded_down() {
    for d in 1..=12 {
        for n in 1..=d {
            for delay in 0..=6 {
                let rate = Fraction::new(n, d).unwrap();
                let supply = BoundedDelay::new(rate, Span::from_nanos(delay)).unwrap();
                for t in 0..=60_u64 {
                    // The most whole ticks k with k · d ≤ n · (t − Δ).
                    let scaled = n * t.saturating_sub(delay);
                    let most = (0..=60).take_while(|k| k * d <= scaled).last();
                    assert_eq!(Some(sbf(&supply, t)), most);
                }
                keeps_the_laws(&supply, 60);
            }
        }
    }
    for (n, d) in [(0, 1), (4, 3)] {
        let rate = Fraction::new(n, d).unwrap();
        let refused = BoundedDelay::new(rate, Span::ZERO);
        assert_eq!(refused, Err(SupplyError::Rate(rate)));
    }
}

#[test]
fn a_dedicated_processor_keeps_the_laws() {
    keeps_the_laws(&Dedicated, 50);
}

#[test]
fn numbers_at_the_edge_are_right_or_an_error() {
    let (half, most) = (u64::MAX / 2, u64::MAX);
    let longest = Reservation::LONGEST.as_nanos();
    let vast = ExplicitDeadline::periodic(every(1, longest));
    assert_eq!(sbf(&vast, longest), 0);
    assert!(vast.window_for(Service::from_nanos(most)).is_err());
    let wide = ExplicitDeadline::continuous(every(longest / 2, longest));
    assert_eq!(sbf(&wide, longest), longest / 2);
    assert_eq!(window_for(&wide, longest / 2), longest);
    assert!(wide.window_for(Service::from_nanos(most)).is_err());
    let slow = BoundedDelay::new(Fraction::new(1, most).unwrap(), Span::ZERO).unwrap();
    assert_eq!(sbf(&slow, most), 1);
    assert_eq!(window_for(&slow, 1), most);
    assert!(slow.window_for(Service::from_nanos(2)).is_err());
    let grain = Span::from_nanos(most);
    assert!(KernelDeadline::among_others(every(1, 10), grain).is_err());
    assert!(KernelDeadline::alone(every(1, 2), grain).is_err());
    let cycle = Span::from_nanos(most);
    let slot = |start, length| Slot {
        start: Span::from_nanos(start),
        length: Span::from_nanos(length),
        owner: 0,
    };
    let table = SlotTable::new(cycle, vec![slot(half, 1), slot(most - 1, 1)]).unwrap();
    let supply = TableSupply::new(&table, 0).unwrap();
    assert_eq!(sbf(&supply, most), 2);
    assert!(supply.window_for(Service::from_nanos(3)).is_err());
    let above = Task::new(Service::from_nanos(1), Span::from_nanos(2)).unwrap();
    let above = above.with_jitter(Span::from_nanos(most));
    let residual = Residual::new(Dedicated, vec![above]).unwrap();
    assert_eq!(sbf(&residual, most), 0);
    let error = residual.window_for(Service::from_nanos(1));
    assert!(matches!(error, Err(Overflow(_))), "{error:?}");
}

/// The rival's supply gives what ours gives, to the tick: for five periods, and for four times the service.
fn supplies_the_same(theirs: &impl Rival, ours: &impl SupplyBound, of: Reservation) {
    for t in 0..=5 * of.period().as_nanos() {
        let provided = theirs.provided_service(rival::Duration::from(t));
        assert_eq!(provided, rival::Service::from(sbf(ours, t)));
    }
    for s in 0..=4 * of.service().as_nanos() {
        let time = theirs.service_time(rival::Service::from(s));
        assert_eq!(time, rival::Duration::from(window_for(ours, s)));
    }
}

/// The rival's supplies, on all small models.
#[test]
fn the_rival_supplies_the_same() {
    for period in 1..=12_u64 {
        for deadline in 1..=period {
            for service in 1..=deadline {
                let x = rival::Service::from(service);
                let (y, by) = (
                    rival::Duration::from(period),
                    rival::Duration::from(deadline),
                );
                let of = every(service, period);
                let ours = ExplicitDeadline::new(of, Span::from_nanos(deadline)).unwrap();
                supplies_the_same(&Constrained::new(x, by, y), &ours, of);
                supplies_the_same(&Periodic::new(x, y), &ExplicitDeadline::periodic(of), of);
            }
        }
    }
}

/// A table of up to some slots of two owners, touching or not.
fn table() -> impl Strategy<Value = SlotTable> {
    let stretches = prop::collection::vec((0_u64..5, 1_u64..5, 0_usize..2), 1..9);
    (stretches, 0_u64..5).prop_map(|(stretches, end)| {
        let mut now = 0;
        let slots = stretches.into_iter().map(|(pause, length, owner)| {
            let start = now + pause;
            now = start + length;
            Slot {
                start: Span::from_nanos(start),
                length: Span::from_nanos(length),
                owner,
            }
        });
        let slots = slots.collect();
        SlotTable::new(Span::from_nanos(now + end), slots).unwrap()
    })
}

/// The service of an owner up to each tick of the table, repeated a few times.
fn served(table: &SlotTable, owner: usize, cycles: u64) -> Vec<u64> {
    let cycle = table.cycle().as_nanos();
    let is_served = |tick: u64| {
        let mut own = table.slots().iter().filter(|slot| slot.owner == owner);
        own.any(|slot| (slot.start..slot.start + slot.length).contains(&Span::from_nanos(tick)))
    };
    let mut sum = 0;
    let ticks = (0..cycles * cycle).map(|tick| {
        sum += u64::from(is_served(tick % cycle));
        sum
    });
    std::iter::once(0).chain(ticks).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256 * cases()))]

    /// Both the planner's oracle and a slower one that counts ticks; whether one place in the table is the worst for all windows, too.
    #[test]
    fn a_table_supplies_what_its_worst_windows_hold(table in table()) {
        for owner in 0..2 {
            let Ok(supply) = TableSupply::new(&table, owner) else {
                prop_assert!(table.slots().iter().all(|slot| slot.owner != owner));
                continue;
            };
            let cycle = table.cycle().as_nanos() as usize;
            let ticks = served(&table, owner, 4);
            let in_window = |from: usize, t: usize| ticks[from + t] - ticks[from];
            for t in 0..3 * cycle {
                let found = sbf(&supply, t as u64);
                prop_assert_eq!(Some(found), (0..cycle).map(|from| in_window(from, t)).min());
                let window = Span::from_nanos(t as u64);
                let least = slot_oracle::least_service_in_any_window(&table, owner, window);
                prop_assert_eq!(found, least.as_nanos());
            }
            let is_worst = |from: &usize| (0..=cycle).all(|t| in_window(*from, t) == sbf(&supply, t as u64));
            prop_assert_eq!(supply.is_attained(), (0..cycle).any(|from| is_worst(&from)));
            keeps_the_laws(&supply, 3 * cycle as u64);
            let gap = largest_gap(&table, owner).unwrap();
            prop_assert_eq!(window_for(&supply, 1), gap.as_nanos() + 1);
        }
    }
}

#[test]
fn a_table_of_one_slot_is_a_continuous_reservation() {
    for (x, y) in [(1, 4), (2, 4), (3, 13), (5, 5)] {
        let slot = Slot {
            start: Span::ZERO,
            length: Span::from_nanos(x),
            owner: 7,
        };
        let table = SlotTable::new(Span::from_nanos(y), vec![slot]).unwrap();
        let supply = TableSupply::new(&table, 7).unwrap();
        let promised = ExplicitDeadline::continuous(every(x, y));
        assert!((0..=5 * y).all(|t| sbf(&supply, t) == sbf(&promised, t)));
        assert!(supply.is_attained());
        assert_eq!(
            (supply.rate(), supply.delay()),
            (promised.rate(), promised.delay())
        );
        assert_eq!(TableSupply::new(&table, 0), Err(SupplyError::NoSlot(0)));
    }
}
