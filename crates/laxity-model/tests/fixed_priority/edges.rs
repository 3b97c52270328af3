//! Where numbers are at their limits.

use super::*;
use laxity_model::analysis::Doubt;

fn plain(cost: u64, period: u64) -> Task {
    Task::new(service(cost), ticks(period)).expect("a task")
}

fn never(cost: u64, period: u64) -> Task {
    plain(cost, period)
        .with_preemption(Preemption::Never)
        .expect("fits")
}

fn arrivals(responses: &[Response]) -> Vec<Option<u64>> {
    let bound = |response: &Response| response.bound().map(|b| b.from_arrival.as_nanos());
    responses.iter().map(bound).collect()
}

#[test]
fn a_processor_exactly_full_has_bounds() {
    // Harmonic or not, the window closes with the hyperperiod.
    let full = [plain(1, 2), plain(1, 3), plain(1, 6)];
    let responses = fp::response_times(&full, &Dedicated).expect("small");
    assert_eq!(arrivals(&responses), [Some(1), Some(2), Some(6)]);
    // Blocked for ever, or released late for ever: it never closes, but repeats itself.
    let blocked = [plain(1, 2), plain(2, 4)];
    let response = fp::response_time_among(&blocked[1], &blocked[..1], service(1), &Dedicated);
    assert_eq!(arrivals(&[response.expect("small")]), [Some(6)]);
    let late = [plain(1, 2).with_jitter(ticks(1)), plain(2, 4)];
    let responses = fp::response_times(&late, &Dedicated).expect("small");
    assert_eq!(arrivals(&responses), [Some(2), Some(5)]);
    // One tick more in a long time is too much.
    let over = [plain(1, 2), plain(500_000_001, 1_000_000_000)];
    let responses = fp::response_times(&over, &Dedicated).expect("fits");
    assert_eq!(responses[1], Response::Unbounded);
}

#[test]
fn a_window_that_is_too_long_is_not_searched_for_ever() {
    let primes = [1_000_003, 1_000_033, 1_000_037, 1_000_039];
    // Full to the last tick, with no common multiple that fits.
    let mut tasks: Vec<Task> = primes
        .iter()
        .map(|prime| plain(prime / 5, *prime))
        .collect();
    let rest: u64 = tasks
        .iter()
        .map(|task| task.period().as_nanos() - 5 * task.cost().as_nanos())
        .sum();
    assert!(rest > 0);
    tasks.push(plain(200_003, 1_000_000).with_jitter(ticks(900_000)));
    let last = fp::response_times(&tasks, &Dedicated).expect("fits")[4];
    assert!(
        matches!(
            last,
            Response::Unknown(Doubt::TooLong) | Response::Unbounded
        ),
        "{last:?}"
    );
    // Jobs without end at one instant.
    let many = plain(1, 3).with_jitter(Span::from_millis(10));
    let response = fp::response_times(&[many], &Dedicated);
    assert_eq!(response, Ok(vec![Response::Unknown(Doubt::TooLong)]));
}

#[test]
fn what_does_not_fit_is_an_error() {
    let huge = [
        plain(1, u64::MAX),
        plain(u64::MAX, u64::MAX),
        plain(1 << 60, 1 << 61),
    ];
    assert!(fp::response_times(&huge[..1], &Dedicated).is_err());
    assert!(fp::response_times(&huge[1..], &Dedicated).is_err());
    assert!(fp::test(&[huge[2], huge[2], huge[2]], &Dedicated).is_err());
    let late = plain(5, 10).with_jitter(ticks(u64::MAX));
    assert!(fp::best_order(&[late], &Dedicated).is_err());
    assert!(fp::longest_regions(&[late], &Dedicated).is_err());
    assert!(fp::best_order_with_final_regions(&[late], &Dedicated).is_err());
    assert!(fp::fifo(&[late], &Dedicated).is_err());
}

#[test]
fn no_tasks_are_no_trouble() {
    assert_eq!(fp::response_times(&[], &Dedicated), Ok(vec![]));
    assert_eq!(fp::test(&[], &Dedicated), Ok(Verdict::Schedulable));
    assert_eq!(
        fp::longest_regions(&[], &Dedicated),
        Ok(Search::Found(vec![]))
    );
    assert_eq!(fp::best_order(&[], &Dedicated), Ok(Search::Found(vec![])));
    assert_eq!(
        fp::best_order_with_final_regions(&[], &Dedicated),
        Ok(Search::Found(vec![]))
    );
}

/// Bril, Lukkien, Verhaegh, Real-Time Systems 42, 2009: with regions, a later job of the busy window can take longest, though the
/// first meets its deadline and no deadline is longer than its period.
#[test]
fn with_regions_the_first_job_is_not_always_the_worst() {
    let first = plain(20, 50);
    let preemption = Preemption::Fixed {
        longest: service(30),
        last: service(30),
    };
    let second = plain(42, 70).with_preemption(preemption).expect("fits");
    let responses = fp::response_times(&[first, second], &Dedicated).expect("small");
    // The first job is complete after 62, the fifth, released at 280, at 350.
    assert_eq!(arrivals(&responses), [Some(49), Some(70)]);
}

/// Scaling all numbers changes a response by the scale, but for the one tick that a region does not block.
#[test]
fn large_numbers_are_as_exact_as_small_ones() {
    for scale in [
        1,
        10,
        1_000_000,
        4_000_000,
        1_000_000_007,
        10_000_000_000_000,
    ] {
        let tasks = [
            never(5 * scale, 10 * scale),
            never(scale, 1_000 * scale),
            never(5 * scale, 1_000 * scale),
        ];
        let responses = fp::response_times(&tasks, &Dedicated).expect("fits");
        let expected = [10 * scale - 1, 11 * scale - 1, 11 * scale];
        assert_eq!(arrivals(&responses), expected.map(Some));
    }
}
