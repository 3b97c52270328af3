//! The slow definitions.

use super::*;

proptest! {
    #![proptest_config(cases(400))]

    /// Where the definition finds a bound within its horizon, so does the analysis, and the same one.
    #[test]
    fn response_times_are_those_of_the_definition(tasks in any_tasks(4), supply in any_supply()) {
        let supply = &*supply;
        prop_assume!(!may_be_endless(&tasks, supply));
        let responses = fp::response_times(&tasks, &supply).expect("small");
        for (i, response) in responses.iter().enumerate() {
            prop_assert_eq!(fp::response_time(&tasks, i, &supply), Ok(*response));
            let (own, above, blocking) = (&tasks[i], &tasks[..i], blocking(&tasks, i));
            let slow = oracle::response_time(own, above, blocking, &supply, HORIZON);
            let window = oracle::busy_window(own, above, blocking, &supply, HORIZON);
            if window.is_some() {
                prop_assert_eq!(fp::busy_window_among(own, above, blocking, &supply), Ok(window));
            }
            match load(&tasks[..=i], supply.rate()) {
                Ordering::Greater => prop_assert_eq!(*response, Response::Unbounded),
                Ordering::Less => prop_assert!(response.bound().is_some()),
                Ordering::Equal => {}
            }
            if slow.is_some() {
                prop_assert_eq!(response.bound(), slow);
            }
        }
    }

    #[test]
    fn deadlines_are_met_if_no_response_is_longer(tasks in any_tasks(4), supply in any_supply()) {
        let supply = &*supply;
        prop_assume!(!may_be_endless(&tasks, supply));
        let responses = fp::response_times(&tasks, &supply).expect("small");
        let met = tasks.iter().zip(&responses).all(|(task, response)| {
            response.bound().is_some_and(|bound| bound.from_arrival <= task.deadline())
        });
        let known = responses.iter().all(|r| !matches!(r, Response::Unknown(_)));
        prop_assume!(known);
        let verdict = fp::test(&tasks, &supply).expect("small");
        prop_assert_eq!(verdict.is_schedulable(), met, "{:?}", verdict);
        if !met && supply.is_attained() {
            prop_assert!(matches!(verdict, Verdict::NotSchedulable(_)), "{:?}", verdict);
        }
    }

    #[test]
    fn first_in_first_out_is_that_of_the_definition(tasks in any_tasks(4), supply in any_supply()) {
        let supply = &*supply;
        prop_assume!(!may_be_endless(&tasks, supply));
        let response = fp::fifo(&tasks, &supply).expect("small");
        if let Some(slow) = oracle::fifo(&tasks, &supply, HORIZON) {
            prop_assert_eq!(response.bound().map(|bound| bound.from_release), Some(slow));
        }
        if load(&tasks, supply.rate()).is_gt() {
            prop_assert_eq!(response, Response::Unbounded);
        }
    }
}
