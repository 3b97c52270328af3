//! Too much, or as much as there is: an answer, after a number of steps that has a limit, and never a search without end.
//!
//! Steps are counted where every search must take them: at the supply.

use core::cell::Cell;

use laxity_model::analysis::supply::{
    BoundedDelay, Dedicated, ExplicitDeadline, Residual, SupplyBound,
};
use laxity_model::analysis::{
    Doubt, Fraction, Overflow, Response, Search, Task, Verdict, edf, fixed_priority,
};
use laxity_model::{Reservation, Service, Span};

use crate::rivals::{never_preempted, task};

/// No more questions than this for one answer.
const MOST_STEPS: u64 = 1 << 24;

/// A supply that counts how often it is asked.
struct Counted<S> {
    supply: S,
    asked: Cell<u64>,
}

impl<S> Counted<S> {
    const fn new(supply: S) -> Self {
        Self {
            supply,
            asked: Cell::new(0),
        }
    }

    fn step(&self) {
        self.asked.set(self.asked.get() + 1);
        assert!(self.asked.get() < MOST_STEPS, "a search without end");
    }
}

impl<S: SupplyBound> SupplyBound for Counted<S> {
    fn least_service(&self, window: Span) -> Service {
        self.step();
        self.supply.least_service(window)
    }

    fn window_for(&self, service: Service) -> Result<Span, Overflow> {
        self.step();
        self.supply.window_for(service)
    }

    fn rate(&self) -> Fraction {
        self.supply.rate()
    }

    fn delay(&self) -> Span {
        self.supply.delay()
    }

    fn is_attained(&self) -> bool {
        self.supply.is_attained()
    }
}

fn reservation(service: u64, period: u64) -> Reservation {
    Reservation::new(Service::from_nanos(service), Span::from_nanos(period)).expect("it fits")
}

fn half() -> BoundedDelay {
    let rate = Fraction::new(1, 2).expect("not zero");
    BoundedDelay::new(rate, Span::from_nanos(7)).expect("a rate")
}

/// Asks everything that searches; the numbers of questions are limited by [`Counted`].
fn ask_all<S: SupplyBound>(tasks: &[Task], supply: S) {
    let counted = || Counted::new(&supply);
    let _ = fixed_priority::response_times(tasks, &counted());
    let _ = fixed_priority::test(tasks, &counted());
    let _ = fixed_priority::longest_regions(tasks, &counted());
    let _ = fixed_priority::best_order(tasks, &counted());
    let _ = fixed_priority::best_order_with_final_regions(tasks, &counted());
    let _ = fixed_priority::fifo(tasks, &counted());
    let _ = edf::response_times(tasks, &counted());
    let _ = edf::test(tasks, &counted());
    let _ = edf::longest_regions(tasks, &counted());
}

/// An overload is found before anything is searched, however small it is.
#[test]
fn an_overload_is_unbounded_and_not_searched() {
    let primes = [2_147_483_647_u64, 2_147_483_629, 2_147_483_587];
    // Σ C/T − 1 is 1 / (product of all three).
    let third = |p: u64| p.div_ceil(3);
    let tasks: Vec<Task> = primes.iter().map(|p| task(third(*p), *p)).collect();
    let counted = Counted::new(Dedicated);
    let responses = fixed_priority::response_times(&tasks, &counted).expect("small");
    assert_eq!(responses[2], Response::Unbounded);
    assert!(responses[1].bound().is_some());
    let responses = edf::response_times(&tasks, &counted).expect("small");
    assert_eq!(responses, [Response::Unbounded; 3]);
    assert!(counted.asked.get() < 1_000);
    assert_eq!(
        fixed_priority::fifo(&tasks, &Dedicated),
        Ok(Response::Unbounded)
    );
}

#[test]
fn an_overloaded_supply_is_unbounded() {
    let tasks = [task(3, 10), task(2, 10)];
    for rate in 1..5 {
        let supply = ExplicitDeadline::periodic(reservation(rate, 10));
        let responses = edf::response_times(&tasks, &supply).expect("small");
        assert_eq!(responses, [Response::Unbounded; 2]);
        assert_eq!(
            fixed_priority::response_times(&tasks, &supply).expect("small")[1],
            Response::Unbounded
        );
        assert!(matches!(
            edf::test(&tasks, &supply),
            Ok(Verdict::NotSchedulable(_))
        ));
        assert!(matches!(
            fixed_priority::test(&tasks, &supply),
            Ok(Verdict::NotSchedulable(_))
        ));
    }
}

/// Where the load is exactly the rate of a supply that pauses, no busy window closes.
#[test]
fn a_supply_that_is_exactly_used_up_is_no_endless_search() {
    for tasks in [
        vec![task(2, 5)],
        vec![task(1, 5), task(3, 15)],
        vec![task(1, 10), task(3, 10)],
    ] {
        ask_all(&tasks, ExplicitDeadline::periodic(reservation(2, 5)));
        ask_all(&tasks, ExplicitDeadline::continuous(reservation(2, 5)));
        ask_all(
            &tasks,
            ExplicitDeadline::continuous(reservation(2_000_000_002, 5_000_000_005)),
        );
    }
    ask_all(&[task(1, 2)], half());
    ask_all(&[task(1, 4), never_preempted(1, 4)], half());
}

/// Periods without a common divisor, and next to nothing left of the processor: busy windows of years, of nanoseconds each.
#[test]
fn a_processor_that_is_nearly_full_is_no_endless_search() {
    let (p, q) = (999_999_937_u64, 1_000_000_007_u64);
    // a/p + b/q = 1 − 1/(pq).
    let a = (1..p)
        .find(|a| (a * q + 1) % p == 0)
        .expect("they are coprime");
    let b = (p * q - 1 - a * q) / p;
    for tasks in [
        vec![task(a, p), task(b, q)],
        vec![task(a, p).with_jitter(Span::from_nanos(q)), task(b, q)],
        vec![task(a, p), task(b - 1, q), never_preempted(1, 5 * q)],
        vec![
            task(1, 3),
            task(a / 3, p),
            task(b / 3, q),
            task(1_000, 3_000 + 7),
        ],
    ] {
        ask_all(&tasks, Dedicated);
    }
}

#[test]
fn short_periods_beside_long_ones_are_no_endless_search() {
    let (long, longest) = (1 << 60, Reservation::LONGEST.as_nanos());
    for tasks in [
        vec![task(1, 2), task(long / 3, long)],
        vec![task(1, 2), task(long / 2, long)],
        vec![task(1, 2), never_preempted(long / 2 - 1, long)],
        vec![
            task(1, 3).with_jitter(Span::from_nanos(long)),
            task(1, 1_000_003),
        ],
        vec![
            task(2, 3),
            task(1, 7),
            task(long / 100, long - 1).with_jitter(Span::from_nanos(long)),
        ],
    ] {
        ask_all(&tasks, Dedicated);
        ask_all(
            &tasks,
            ExplicitDeadline::continuous(reservation(9_999, 10_000)),
        );
        ask_all(
            &tasks,
            ExplicitDeadline::periodic(reservation(longest - 1, longest)),
        );
    }
}

/// One task leaves a tick every 10 ms to a thousand others: each of them alone is a search of hundreds of thousands of steps, all of which
/// look at all tasks above. What one call may look at is limited for all tasks together.
#[test]
fn a_thousand_tasks_in_a_trickle_are_no_endless_search() {
    let ms = 1_000_000;
    let mut tasks = vec![task(10 * ms - 1, 10 * ms)];
    tasks.resize(1_000, task(300, 10_000_000 * ms));
    ask_all(&tasks, Dedicated);
    // The budget goes to the most urgent first.
    let counted = Counted::new(Dedicated);
    let responses = fixed_priority::response_times(&tasks, &counted).expect("small");
    assert!(responses[1].bound().is_some());
    let passes = counted.asked.get();
    assert!(passes < 1 << 22, "{passes}");
    // Nobody was refused: not all was searched.
    let too_long = Search::Unknown(Doubt::TooLong);
    assert_eq!(fixed_priority::best_order(&tasks, &Dedicated), Ok(too_long));
    assert_eq!(
        fixed_priority::longest_regions(&tasks, &Dedicated),
        Ok(Search::Unknown(Doubt::TooLong))
    );
}

/// Full to 10⁻⁶ by interrupts: a window of that takes as many rounds as there are ticks in it, if one begins at its beginning.
#[test]
fn interrupts_that_leave_next_to_nothing_are_no_endless_search() {
    let tasks = [
        task(5_000_000, 100_000_000_000_000),
        task(7_000_000, 130_000_000_000_000),
        task(11_000_000, 170_000_000_000_000),
    ];
    for above in [
        vec![task(999_999, 1_000_000)],
        vec![task(499_999, 1_000_000), task(350_000, 700_000)],
        vec![
            task(1 << 39, 1 << 40),
            task((1 << 39) - (1 << 20), (1 << 40) - 1),
        ],
    ] {
        let left = |supply| Residual::new(supply, above.clone()).expect("a tick is left");
        let supply = left(Counted::new(Dedicated));
        let _ = edf::response_times(&tasks, &supply);
        let _ = edf::test(&tasks, &supply);
        let _ = edf::longest_regions(&tasks, &supply);
        let _ = fixed_priority::response_times(&tasks, &supply);
        let _ = fixed_priority::test(&tasks, &supply);
        let _ = fixed_priority::longest_regions(&tasks, &supply);
        let _ = fixed_priority::best_order(&tasks, &supply);
        let rounds = supply.supply().asked.get();
        assert!(rounds < 1 << 20, "{rounds}");
    }
}
