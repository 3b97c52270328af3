//! The least pairs of rate and burst of a recorded flow, against all its intervals, and against who polices by them.

use std::num::NonZeroU32;

use laxity_model::channels::fit::{Arrival, FitError, Rate, Recorded};
use laxity_model::channels::source::{Excess, Limits, Offered, Source};
use laxity_model::nif::urgency::{Stated, Urgency};
use laxity_model::{Instant, Span};
use proptest::prelude::*;

fn arrivals(all: &[(u64, u32)]) -> Vec<Arrival> {
    let arrival = |(at, amount): &(u64, u32)| Arrival {
        at: Instant::from_nanos(*at),
        amount: *amount,
    };
    all.iter().map(arrival).collect()
}

fn recorded(all: &[(u64, u32)]) -> Recorded {
    Recorded::new(arrivals(all)).unwrap()
}

fn rate(amount: u64, period: u64) -> Rate {
    Rate::new(amount, Span::from_nanos(period)).unwrap()
}

/// What arrives in each interval, and how long it is.
fn intervals(all: &[(u64, u32)]) -> Vec<(u64, u64)> {
    let mut intervals = Vec::new();
    for (from, _) in all {
        for (until, _) in all.iter().filter(|(until, _)| until >= from) {
            let within = all.iter().filter(|(at, _)| (from..=until).contains(&at));
            let amount = within.map(|(_, amount)| u64::from(*amount)).sum();
            intervals.push((amount, until - from));
        }
    }
    intervals
}

/// The least rate for a burst, by all intervals.
fn oracle(all: &[(u64, u32)], burst: u64) -> Option<Rate> {
    let mut least = Rate::NONE;
    for (amount, lasts) in intervals(all) {
        if amount > burst {
            least = least.max(Rate::new(amount - burst, Span::from_nanos(lasts))?);
        }
    }
    Some(least)
}

/// The least burst for a rate, by all intervals.
fn burst_oracle(all: &[(u64, u32)], rate: Rate) -> u64 {
    let asked = intervals(all).into_iter().map(|(amount, lasts)| {
        let period = u128::from(rate.period().as_nanos());
        let covered = u128::from(rate.amount()) * u128::from(lasts) / period;
        u128::from(amount).saturating_sub(covered) as u64
    });
    asked.max().unwrap()
}

/// Which arrivals, in their order, are more than was stated.
fn in_excess(all: &[(u64, u32)], stated: Stated) -> usize {
    let mut all = all.to_vec();
    all.sort_by_key(|(at, _)| *at);
    let mut urgency = Urgency::new(stated);
    let exceed = all
        .iter()
        .filter(|(at, amount)| urgency.arrived(Instant::from_nanos(*at), *amount).exceeds);
    exceed.count()
}

/// The same in a period that is longer by a nanosecond.
fn a_tick_slower(of: Rate, burst: u32) -> Stated {
    let amount = of.amount().try_into().unwrap();
    let period = Span::from_nanos(of.period().as_nanos() + 1);
    Stated::new(amount, period, burst, Span::ZERO).unwrap()
}

/// What of a flow of messages is shaped by a sender with this pair.
fn shaped(all: &[(u64, u32)], stated: Stated) -> u64 {
    let one = NonZeroU32::MIN;
    let mut source = Source::new(Limits {
        stated,
        packets: one,
        room: NonZeroU32::new(1_000).unwrap(),
        excess: Excess::Shape,
    });
    let mut all = all.to_vec();
    all.sort_by_key(|(at, _)| *at);
    for (at, _) in all {
        let offered = source.offer(Instant::from_nanos(at), one, (), |()| {});
        assert_eq!(offered, Offered::Waits);
        source.take(|_| {});
    }
    source.counts().shaped
}

#[test]
fn a_periodic_flow_has_its_own_rate_and_a_burst_of_one() {
    let flow: Vec<(u64, u32)> = (0..50).map(|number| (7 + number * 1_000, 1)).collect();
    let flow = recorded(&flow);
    assert_eq!(flow.least_burst(), 1);
    assert_eq!(flow.rate(1), Some(rate(1, 1_000)));
    assert_eq!(flow.mean(), flow.rate(1));
    assert_eq!(flow.burst(rate(1, 1_000)), 1);
    // Ten of them would be late by ten periods.
    assert_eq!(flow.rate(11), Some(rate(39, 49_000)));
}

#[test]
fn a_burst_that_comes_at_once_has_no_rate_below_it() {
    let flow = recorded(&[(5, 1), (5, 1), (5, 1), (105, 1)]);
    assert_eq!(flow.least_burst(), 3);
    assert_eq!(flow.rate(2), None);
    assert_eq!(flow.rate(3), Some(rate(1, 100)));
    assert_eq!(flow.rate(4), Some(Rate::NONE));
    assert_eq!(flow.burst(Rate::NONE), 4);
    let stated = rate(1, 100).stated(3, Span::ZERO).unwrap();
    assert_eq!(flow.earliness(stated), Span::from_nanos(200));
}

#[test]
fn what_is_no_flow_is_refused_and_one_arrival_is_one() {
    assert_eq!(Recorded::new(Vec::new()).unwrap_err(), FitError::Nothing);
    let endless = Recorded::new(arrivals(&[(0, 1), (u64::MAX, 1)]));
    assert_eq!(endless.unwrap_err(), FitError::TooMuch);
    let one = recorded(&[(u64::MAX, 3)]);
    assert_eq!(
        (one.mean(), one.rate(2), one.rate(3)),
        (None, None, Some(Rate::NONE))
    );
    assert_eq!(Rate::new(1, Span::ZERO), None);
}

#[test]
fn what_a_client_cannot_state_is_rounded_up_to_what_it_can() {
    let many = rate(10_000_000_000, 3_000_000_007);
    let stated = many.stated(1, Span::ZERO).unwrap();
    let most = Span::from_nanos(u64::from(u32::MAX) * 3_000_000_007 / 10_000_000_000);
    assert_eq!(stated, Stated::new(u32::MAX, most, 1, Span::ZERO).unwrap());
    let least = Stated::new(1, Span::MAX, 1, Span::ZERO).unwrap();
    assert_eq!(Rate::NONE.stated(1, Span::ZERO).unwrap(), least);
    let lowest = Stated::new(2, Span::from_nanos(3), 1, Span::ZERO).unwrap();
    assert_eq!(
        rate(20_000_000_000, 30_000_000_000)
            .stated(1, Span::ZERO)
            .unwrap(),
        lowest
    );
    assert!(rate(u64::MAX, 1).stated(1, Span::ZERO).is_err());
    assert!(rate(1, 1).stated(0, Span::ZERO).is_err());
}

/// Gaps and amounts: messages, or bytes of up to so many.
fn flow(most: u32) -> impl Strategy<Value = Vec<(u64, u32)>> {
    let gap = prop_oneof![Just(0_u64), 1..20_u64, 90..110_u64, 1..10_000_000_000_u64];
    let least = u32::from(most == 1);
    let one = (gap, least..=most);
    prop::collection::vec(one, 1..40).prop_map(|steps| {
        let mut now = 1_700_000_000_000_000_000;
        let step = |(gap, amount)| {
            now += gap;
            (now, amount)
        };
        steps.into_iter().map(step).collect()
    })
}

proptest! {
    #[test]
    fn the_least_rate_and_burst_are_those_of_all_intervals(
        flow in prop_oneof![flow(1), flow(3), flow(1_500)],
        burst in 0..2_000_u64,
        amount in 0..u64::MAX,
        period in 1..u64::MAX,
    ) {
        let bound = flow.len() as u64 + 2;
        let recorded = recorded(&flow);
        for burst in [burst, burst % bound] {
            prop_assert_eq!(recorded.rate(burst), oracle(&flow, burst));
        }
        for rate in [rate(amount, period), rate(amount % 50, 1 + period % 5_000), Rate::NONE] {
            prop_assert_eq!(recorded.burst(rate), burst_oracle(&flow, rate));
        }
        let most = intervals(&flow).into_iter().filter(|(_, lasts)| *lasts == 0);
        prop_assert_eq!(Some(recorded.least_burst()), most.map(|(amount, _)| amount).max());
    }

    #[test]
    fn the_order_in_which_they_are_told_does_not_matter(flow in flow(1_500), turn in 0..40_usize) {
        let mut other = flow.clone();
        other.rotate_left(turn % flow.len());
        let (one, other) = (recorded(&flow), recorded(&other));
        let burst = one.least_burst();
        prop_assert_eq!(one.rate(burst), other.rate(burst));
        prop_assert_eq!(one.lasts(), other.lasts());
    }

    #[test]
    fn who_is_policed_by_a_pair_is_never_in_excess_and_a_tick_slower_is(
        flow in prop_oneof![flow(1), flow(1_500)],
        more in 0..10_u32,
    ) {
        let recorded = recorded(&flow);
        let burst = recorded.least_burst() as u32 + more;
        prop_assume!(burst > 0);
        let rate = recorded.rate(burst.into()).unwrap();
        let stated = rate.stated(burst, Span::ZERO).unwrap();
        prop_assert_eq!(in_excess(&flow, stated), 0);
        if rate != Rate::NONE {
            prop_assert!(in_excess(&flow, a_tick_slower(rate, burst)) > 0);
        }
        if flow.iter().all(|(_, amount)| *amount == 1) {
            prop_assert_eq!(shaped(&flow, stated), 0);
            if rate != Rate::NONE {
                prop_assert!(shaped(&flow, a_tick_slower(rate, burst)) > 0);
            }
        }
    }
}
