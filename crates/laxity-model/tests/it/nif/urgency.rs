//! Logical arrivals against the promise itself, counted in every interval.

use laxity_model::nif::urgency::{Stated, StatedError, Urgency};
use laxity_model::{Instant, Span};
use proptest::prelude::*;

const DELAY: u64 = 1_000;

fn stated(amount: u32, period: u64, burst: u32) -> Stated {
    Stated::new(
        amount,
        Span::from_nanos(period),
        burst,
        Span::from_nanos(DELAY),
    )
    .expect("a rate")
}

/// The promise is broken with the last: more of it and those before in an interval that ends with it than burst and rate allow.
fn exceeds(arrivals: &[(u64, u32)], amount: u64, period: u64, burst: u64) -> bool {
    let (last, _) = arrivals[arrivals.len() - 1];
    (0..arrivals.len()).any(|first| {
        let count: u64 = arrivals[first..]
            .iter()
            .map(|(_, count)| u64::from(*count))
            .sum();
        count * period > burst * period + amount * (last - arrivals[first].0)
    })
}

/// The logical arrival of the last: the latest that any of those before it leaves, each with all between at the rate behind it; rounded up.
fn logical(arrivals: &[(u64, u32)], amount: u64, period: u64) -> u64 {
    let behind = (0..arrivals.len()).map(|first| {
        let between = &arrivals[first..arrivals.len() - 1];
        let count: u64 = between.iter().map(|(_, count)| u64::from(*count)).sum();
        arrivals[first].0 * amount + count * period
    });
    behind.max().expect("one at least").div_ceil(amount)
}

proptest! {
    #[test]
    fn arrivals_are_logical_and_exceed_as_counting_says(
        amount in 1_u32..5,
        period in 1_u64..40,
        burst in 1_u32..12,
        gaps in prop::collection::vec((prop_oneof![Just(0_u64), 0_u64..60], 1_u32..4), 1..40),
    ) {
        let mut urgency = Urgency::new(stated(amount, period, burst));
        let mut arrivals: Vec<(u64, u32)> = Vec::new();
        for (gap, count) in gaps {
            let at = arrivals.last().map_or(0, |(at, _)| *at) + gap;
            arrivals.push((at, count));
            let due = urgency.arrived(Instant::from_nanos(at), count);
            let (amount, burst) = (u64::from(amount), u64::from(burst));
            let logical = logical(&arrivals, amount, period);
            prop_assert_eq!(due.logical.as_nanos(), logical);
            prop_assert_eq!(due.deadline.as_nanos(), logical + DELAY);
            prop_assert_eq!(due.exceeds, exceeds(&arrivals, amount, period, burst));
        }
    }

    #[test]
    fn who_comes_early_is_due_no_later_and_nothing_goes_back(
        early in prop::collection::vec((0_u64..1_000, 0_u64..200), 2..30),
        amount in 1_u32..4,
        period in 1_u64..90,
    ) {
        // In time, and each so much earlier, in any order.
        let mut times: Vec<u64> = early.iter().map(|(at, _)| at + 200).collect();
        times.sort_unstable();
        let [mut in_time, mut hurried] = [(); 2].map(|()| Urgency::new(stated(amount, period, 1)));
        let mut last = Instant::ZERO;
        for (at, (_, by)) in times.iter().zip(&early) {
            let in_time = in_time.arrived(Instant::from_nanos(*at), 1);
            let hurried = hurried.arrived(Instant::from_nanos(at - by), 1);
            prop_assert!(hurried.deadline <= in_time.deadline, "early packets delay nobody");
            prop_assert!(hurried.logical >= last, "and logical arrivals never go back");
            last = hurried.logical;
        }
    }
}

#[test]
fn packets_that_come_at_once_have_logical_arrivals_at_the_rate() {
    let mut urgency = Urgency::new(stated(1, 100, 3));
    let at = Instant::from_nanos(1_000);
    let all = [(); 4].map(|()| urgency.arrived(at, 1));
    assert_eq!(
        all.map(|due| due.logical.as_nanos()),
        [1_000, 1_100, 1_200, 1_300]
    );
    assert_eq!(all.map(|due| due.exceeds), [false, false, false, true]);
    // Who pauses begins anew.
    let later = urgency.arrived(Instant::from_nanos(5_000), 1);
    assert_eq!((later.logical.as_nanos(), later.exceeds), (5_000, false));
}

#[test]
fn a_third_of_a_nanosecond_is_not_lost() {
    let mut urgency = Urgency::new(stated(3, 100, 3_000));
    let all: Vec<_> = (0..=3_000)
        .map(|_| urgency.arrived(Instant::ZERO, 1))
        .collect();
    assert_eq!(all[1].logical.as_nanos(), 34);
    assert_eq!(all[3_000].logical.as_nanos(), 100_000);
}

#[test]
fn times_beyond_the_end_are_the_end() {
    let longest = Stated::new(1, Span::MAX, u32::MAX, Span::MAX).expect("a rate");
    let mut urgency = Urgency::new(longest);
    for _ in 0..3 {
        let due = urgency.arrived(Instant::MAX, u32::MAX);
        assert_eq!((due.logical, due.deadline), (Instant::MAX, Instant::MAX));
    }
}

#[test]
fn what_is_no_rate_is_refused() {
    let (ms, none) = (Span::from_millis(1), Span::ZERO);
    assert_eq!(Stated::new(0, ms, 1, ms), Err(StatedError::Nothing));
    assert_eq!(Stated::new(1, ms, 0, ms), Err(StatedError::Nothing));
    assert_eq!(Stated::new(1, none, 1, ms), Err(StatedError::NoPeriod));
}
