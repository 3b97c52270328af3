//! Arrival curves: the burst that covers one, window by window, and the bounds that follow.

use super::*;
use laxity_model::analysis::edf;

/// Within how much time so many jobs in a row come at the least, by points as they rise; a job comes every `period` behind the last.
fn within(points: &[(u64, u64)], period: u64, jobs: u64) -> u64 {
    let passed = points.iter().rev().find(|(point, _)| *point <= jobs);
    match (passed, points.last()) {
        (Some(_), Some((last, within))) if jobs > *last => within + (jobs - last) * period,
        (Some((_, within)), _) => *within,
        (None, None) => (jobs - 1) * period,
        (None, _) => 0,
    }
}

proptest! {
    #[test]
    fn a_curve_is_covered_by_no_more_than_it_needs(
        (cost, period) in (1_u64..8, 8_u64..20),
        steps in prop::collection::vec((1_u64..4, 0_u64..30), 0..5),
    ) {
        let points = steps.iter().scan((1, 0), |(jobs, within), (more, later)| {
            (*jobs, *within) = (*jobs + more, *within + later);
            Some((*jobs, *within))
        });
        let points: Vec<(u64, u64)> = points.collect();
        let curve = points.iter().map(|(jobs, within)| (*jobs, ticks(*within)));
        let task = Task::new(service(cost), ticks(period)).expect("a task");
        let task = task.with_arrivals(curve);

        // What any window may hold by the curve is what it may hold by the burst, and by no lesser one.
        let spans: Vec<u64> = (1..=40).map(|jobs| within(&points, period, jobs)).collect();
        let held = |window: u64| spans.iter().filter(|span| **span < window).count() as u64;
        let needed = (1..300).map(|window| (held(window) + 1).saturating_sub(window.div_ceil(period)));
        prop_assert_eq!(task.burst().get(), needed.max().unwrap().max(1), "{:?}", points);

        // Jobs that come as early as the curve lets them behind all that came before.
        let mut arrivals: Vec<u64> = Vec::new();
        for _ in 0..40 {
            let behind = arrivals.iter().rev().zip(&spans[1..]);
            let at = behind.map(|(earlier, span)| earlier + span).max();
            arrivals.push(at.unwrap_or(0));
        }
        let mut done = 0;
        let responses = arrivals.iter().map(|at| {
            done = done.max(*at) + cost;
            done - at
        });
        let longest = responses.max().unwrap();
        let by_priority = fp::response_times(&[task], &Dedicated).expect("small");
        let by_deadline = edf::response_times(&[task], &Dedicated).expect("small");
        for response in [by_priority[0], by_deadline[0]] {
            let bound = response.bound().expect("bounded").from_arrival.as_nanos();
            prop_assert!(longest <= bound, "{} of {}: {:?}", longest, bound, points);
        }
    }
}
