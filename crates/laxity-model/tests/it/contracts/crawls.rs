//! A processor that goes on, far slower than usual, and what stands still beside that.

use laxity_model::{Event, EventKind, Stretches, Whereabouts};

use super::halts::still;
use super::*;

/// It excuses as a standstill does, and is none.
#[test]
fn a_processor_that_crawled_is_told_from_one_that_stood_still() {
    let mut both = record(&[(1_000, 1_300), (1_400, 1_410)], 100);
    both.crawled = both.disturbances[..1].to_vec();
    assert_eq!(RunFacts::of([&both]).disturbed_ppm, 103_333);
    assert_eq!(both.crawled_most(), Span::from_millis(300));
    assert_eq!(both.standstills().count(), 1);
    assert_eq!(both.halts([Whereabouts::Anywhere]), 1);
}

/// The witness woke late by so much.
fn late(from_ms: u64, to_ms: u64) -> Event {
    Event {
        at: Instant::from_millis(to_ms),
        kind: EventKind::Disturbed,
        processor: ProcessorId(0),
        activity: laxity_model::enforce::WITNESS_ACTIVITY,
        args: [from_ms, to_ms].map(|ms| Instant::from_millis(ms).as_nanos()),
    }
}

/// A halt in the middle of a crawl is one, whoever counts it, and what is late because it crawls is none.
#[test]
fn a_halt_beside_a_crawl_is_not_forgotten() {
    let mut both = record(&[(1_000, 1_031), (1_500, 1_504)], 100);
    both.crawled = both.disturbances[..1].to_vec();
    both.events = vec![late(1_002, 1_003), late(1_010, 1_030), late(1_500, 1_504)];
    let long: Vec<Span> = both.standstills().map(Disturbance::length).collect();
    assert_eq!(long, [4, 20].map(Span::from_millis));
    assert_eq!(both.halts([Whereabouts::Anywhere]), 2);
}

/// What is told to others of a halt with a crawl in it is both, and what was seen to be late before the crawl is a halt however short.
#[test]
fn a_short_halt_just_before_a_crawl_is_not_taken_for_a_part_of_it() {
    let mut both = record(&[(1_000, 1_031)], 100);
    both.crawled = record(&[(1_005, 1_031)], 100).disturbances;
    both.events = vec![late(1_000, 1_001), late(1_006, 1_007)];
    let seen: Vec<Disturbance> = both.standstills().collect();
    assert_eq!(seen, record(&[(1_000, 1_001)], 100).disturbances);
}

#[test]
fn what_lies_outside_is_told_of_each_processor() {
    let those = [still(0, 10, 20), still(1, 0, 99), still(0, 30, 40)];
    let those = Stretches::of(those);
    let outside = |from, to| still(0, from, to).outside(&those);
    assert_eq!(outside(15, 50), [still(0, 20, 30), still(0, 40, 50)]);
    assert_eq!(outside(0, 35), [still(0, 0, 10), still(0, 20, 30)]);
    assert_eq!(outside(12, 18), []);
    assert_eq!(outside(20, 30), [still(0, 20, 30)]);
}

/// Whoever asks what overlaps each of a hundred thousand looks at two of as many, and not at all of them.
#[test]
fn of_very_many_only_those_are_looked_at_that_overlap() {
    const MANY: u64 = 100_000;
    let those = Stretches::of((0..MANY).map(|k| still(0, 10 * k, 10 * k + 5)));
    let each = (0..MANY - 1).map(|k| still(0, 10 * k + 4, 10 * k + 11));
    let looked_at = each.clone().map(|one| those.overlapping(&one).len());
    assert_eq!(looked_at.max(), Some(2));
    let mut left = each.flat_map(|one| one.outside(&those));
    assert!(left.all(|part| part.length() == Span::from_nanos(5)));
}
