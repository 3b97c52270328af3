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
    // Neither need it close where the supply is less than a processor.
    let slots = Reservation::new(service(2), ticks(3)).expect("it fits");
    let slots = ExplicitDeadline::continuous(slots);
    let late = plain(4, 6).with_deadline(ticks(10)).expect("fits");
    let late = late.with_jitter(ticks(1));
    let responses = fp::response_times(&[late], &slots).expect("small");
    assert_eq!(arrivals(&responses), [Some(7)]);
    assert_eq!(fp::test(&[late], &slots), Ok(Verdict::Schedulable));
    let shorter = late.with_deadline(ticks(6)).expect("fits");
    let verdict = fp::test(&[shorter], &slots).expect("small");
    assert!(matches!(verdict, Verdict::NotSchedulable(_)), "{verdict:?}");
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

/// By ticks, the longest from arrival to completion of the last task's jobs, of which so many are looked at.
fn longest_by_ticks(tasks: &[Task], blocking: u64, supply: &dyn SupplyBound, jobs: u64) -> u64 {
    let [first @ .., own] = tasks else {
        panic!("no task");
    };
    let ns = |span: Span| span.as_nanos();
    let (cost, period, jitter) = (own.cost().as_nanos(), ns(own.period()), ns(own.jitter()));
    let mut longest = 0;
    let mut at = 1;
    for job in 0..jobs {
        let asked = |window: u64| {
            let first = first.iter().map(|task| {
                (window + ns(task.jitter())).div_ceil(ns(task.period())) * task.cost().as_nanos()
            });
            blocking + (job + 1) * cost + first.sum::<u64>()
        };
        while supply.least_service(ticks(at)).as_nanos() < asked(at) {
            at += 1;
        }
        longest = longest.max(at + jitter - job * period);
    }
    longest
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Two tasks that need exactly X of every Y, released late and blocked: the busy window closes or never does, and every job takes no longer
    /// than the formula says of the first hundreds.
    #[test]
    fn where_all_that_slots_give_is_needed_the_longest_response_is_found(
        (x, y) in (2_u64..6).prop_flat_map(|y| (2..=y, Just(y))),
        share in 1_u64..5,
        (k, l) in (1_u64..4, 1_u64..4),
        (late, own_late) in (0_u64..4, 0_u64..9),
        blocking in 0_u64..4,
        in_theory in any::<bool>(),
    ) {
        let share = 1 + share % (x - 1).max(1);
        prop_assume!(share < x);
        let tasks = [
            plain(share * k, y * k).with_jitter(ticks(late)),
            plain((x - share) * l, y * l).with_jitter(ticks(own_late)),
        ];
        let reservation = Reservation::new(service(x), ticks(y)).expect("it fits");
        let supply = match in_theory {
            true => ExplicitDeadline::periodic(reservation),
            false => ExplicitDeadline::continuous(reservation),
        };
        let found = fp::response_time_among(&tasks[1], &tasks[..1], service(blocking), &supply);
        let expected = longest_by_ticks(&tasks, blocking, &supply, 200);
        prop_assert_eq!(arrivals(&[found.expect("small")]), [Some(expected)]);
    }
}
