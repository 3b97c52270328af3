//! Wrong answers of other tools, each with the numbers that showed it.

use laxity_model::analysis::supply::Dedicated;
use laxity_model::analysis::{Response, Task, Verdict, edf, fixed_priority, utilization};
use laxity_model::{Service, Span};

use crate::rivals::{nanos, never_preempted, task};

const MILLI: u64 = 1_000_000;

/// S10: ten tasks with periods of 10, 20 … 100 ms, each 8 % of the processor.
fn s10() -> Vec<Task> {
    (1..=10)
        .map(|n| task(800_000 * n, 10 * MILLI * n))
        .collect()
}

fn bounds(tasks: &[Task]) -> Vec<Option<u64>> {
    let responses = fixed_priority::response_times(tasks, &Dedicated).expect("small");
    responses.into_iter().map(nanos).collect()
}

/// PARTSim's rate monotonic scheduler ran first in, first out, because a function of a base class was hidden rather than overridden: the
/// task of 10 ms took up to 34.8 ms.
#[test]
fn rate_monotonic_is_not_first_in_first_out() {
    let mut tasks = s10();
    tasks.rotate_left(3);
    let order = fixed_priority::rate_monotonic(&tasks);
    let ordered: Vec<Task> = order.iter().map(|index| tasks[*index]).collect();
    assert_eq!(ordered, s10());
    let bounds = bounds(&ordered);
    assert_eq!(bounds[0], Some(800_000));
    // 8 + 8·0.8 + 4·1.6 + 3·2.4 + 2·(3.2 + 4 + 4.8 + 5.6) + 6.4 + 7.2 ms.
    assert_eq!(bounds[9], Some(76_800_000));

    let Ok(Response::Bounded(fifo)) = fixed_priority::fifo(&tasks, &Dedicated) else {
        panic!("a bound");
    };
    assert_eq!(fifo.from_release, Span::from_millis(44));
    assert!(fifo.from_release >= Span::from_micros(34_800));
}

/// pyCPA adds 10⁻⁹ to its floating-point windows in place of "just after": not preemptive, (5, 10), (1, 1000) and (5, 1000), times k, give the
/// second task 16k up to k = 10⁶, and 11k from k = 4 · 10⁶, where 10⁻⁹ is lost beside the window.
///
/// In whole ticks "just before" is one tick before: blocked for 5k, the second task cannot begin at 10k, when the first comes again, and takes
/// 16k; blocked for a tick less it does, and takes 11k − 1. The difference of a tick is seen whatever k is.
#[test]
fn one_tick_is_not_lost_beside_long_periods() {
    for k in [
        1,
        2,
        1_000,
        1_000_000,
        4_000_000,
        1_000_000_000,
        1_000_000_000_000,
        1_000_000_000_000_000,
    ] {
        let middle = |blocker: u64| {
            let tasks = [
                never_preempted(5 * k, 10 * k),
                never_preempted(k, 1_000 * k),
                never_preempted(blocker, 1_000 * k),
            ];
            bounds(&tasks)[1]
        };
        assert_eq!(middle(5 * k + 1), Some(16 * k), "k = {k}");
        assert_eq!(middle(5 * k), Some(11 * k - 1), "k = {k}");

        let blocked = |ticks: u64| {
            let (own, above) = (
                never_preempted(k, 1_000 * k),
                [never_preempted(5 * k, 10 * k)],
            );
            let blocking = Service::from_nanos(ticks);
            fixed_priority::response_time_among(&own, &above, blocking, &Dedicated).map(nanos)
        };
        assert_eq!(blocked(5 * k), Ok(Some(16 * k)), "k = {k}");
        assert_eq!(blocked(5 * k - 1), Ok(Some(11 * k - 1)), "k = {k}");
    }
}

/// SimSo keeps deadlines in floating-point milliseconds: 0.1 ms and 0.2 ms every 0.3 ms, which is feasible, missed 74 of 668 deadlines.
#[test]
fn a_processor_that_is_exactly_full_misses_no_deadline() {
    let tasks = [task(100_000, 300_000), task(200_000, 300_000)];
    assert_eq!(edf::test(&tasks, &Dedicated), Ok(Verdict::Schedulable));
    let responses = edf::response_times(&tasks, &Dedicated).expect("small");
    let longest = responses.into_iter().map(nanos).max();
    assert_eq!(longest, Some(Some(300_000)));
    assert_eq!(
        utilization::earliest_deadline_first(&tasks),
        Ok(Verdict::Schedulable)
    );
    assert_eq!(
        fixed_priority::test(&tasks, &Dedicated),
        Ok(Verdict::Schedulable)
    );
    // A nanosecond more does not fit.
    let more = [task(100_001, 300_000), task(200_000, 300_000)];
    assert!(matches!(
        edf::test(&more, &Dedicated),
        Ok(Verdict::NotSchedulable(_))
    ));
    assert!(matches!(
        fixed_priority::test(&more, &Dedicated),
        Ok(Verdict::NotSchedulable(_))
    ));
}

/// The same with thirds of which no decimal fraction is exact, and with tenths: ten times a tenth is one.
#[test]
fn parts_of_a_processor_add_up_to_one() {
    for parts in 1..=60 {
        let tasks = vec![task(1_000_000, 1_000_000 * parts); parts as usize];
        assert_eq!(
            edf::test(&tasks, &Dedicated),
            Ok(Verdict::Schedulable),
            "{parts}"
        );
        assert_eq!(
            fixed_priority::test(&tasks, &Dedicated),
            Ok(Verdict::Schedulable),
            "{parts}"
        );
        assert_eq!(
            bounds(&tasks).last(),
            Some(&Some(1_000_000 * parts)),
            "{parts}"
        );
    }
}

/// S10's last task takes 56.8 ms or 65.6 ms under earliest deadline first, by how a simulator breaks ties; a bound must hold for any rule.
#[test]
fn ties_are_broken_against_every_task() {
    let responses = edf::response_times(&s10(), &Dedicated).expect("small");
    let last = responses.last().copied().and_then(nanos).expect("a bound");
    assert!(last >= 65_600_000, "{last}");
    assert!(last <= 100 * MILLI, "{last}");
}

/// Deadlines are kept from the arrival on, response times are not execution times: a job that is released late and preempted has both
/// in its bound.
#[test]
fn a_response_time_holds_jitter_and_interference() {
    let late = task(2, 20).with_jitter(Span::from_nanos(3));
    let responses = fixed_priority::response_times(&[task(1, 4), late], &Dedicated).expect("small");
    let bound = responses[1].bound().expect("a bound");
    assert_eq!(bound.from_release, Span::from_nanos(3));
    assert_eq!(bound.from_arrival, Span::from_nanos(6));
}
