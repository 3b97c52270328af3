//! The longest regions.

use super::*;

fn with_region(task: Task, longest: Service) -> Task {
    task.with_preemption(Preemption::Floating { longest })
        .expect("fits")
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn the_longest_regions_are_tolerated_and_no_longer_ones(
        tasks in any_tasks(5), supply in any_supply(),
    ) {
        let supply = &*supply;
        prop_assume!(!may_be_endless(&tasks, supply));
        let plain: Vec<Task> = tasks.iter().map(|task| with_region(*task, service(1))).collect();
        let longest = match fp::longest_regions(&tasks, &supply).expect("small") {
            Search::Found(longest) => longest,
            // As sure as the test of the same tasks without regions.
            nothing => {
                let expected = match fp::test(&plain, &supply).expect("small") {
                    Verdict::Schedulable => None,
                    Verdict::NotSchedulable(_) => Some(Search::None),
                    Verdict::Unknown(doubt) => Some(Search::Unknown(doubt)),
                };
                prop_assert_eq!(Some(nothing), expected);
                return Ok(());
            }
        };
        let all: Vec<Task> = plain.iter().zip(&longest).map(|(t, q)| with_region(*t, *q)).collect();
        prop_assert_eq!(fp::test(&all, &supply), Ok(Verdict::Schedulable));
        for (k, region) in longest.iter().enumerate() {
            if *region == tasks[k].cost() {
                continue;
            }
            let mut longer = plain.clone();
            longer[k] = with_region(plain[k], *region + service(1));
            let verdict = fp::test(&longer, &supply).expect("small");
            if supply.is_attained() {
                let above = matches!(verdict, Verdict::NotSchedulable(w) if w.task < k);
                prop_assert!(above, "{:?} of {:?}", verdict, longest);
            } else {
                prop_assert!(!verdict.is_schedulable());
            }
        }
    }

    /// The published formula, where it applies.
    #[test]
    fn bisection_agrees_with_the_slack_of_constrained_deadlines(tasks in any_tasks(5)) {
        let constrained: Vec<Task> = tasks.iter().map(|task| {
            let latest = task.period().saturating_sub(task.jitter()).max(ticks(1));
            let alone = task.with_burst(std::num::NonZeroU64::MIN);
            alone.with_deadline(task.deadline().min(latest)).expect("a deadline")
        }).collect();
        let mut least = Service::MAX;
        let mut expected = Vec::new();
        for (i, task) in constrained.iter().enumerate() {
            expected.push(task.cost().min(Service::from_nanos(least.as_nanos().saturating_add(1))));
            let slack = oracle::blocking_tolerance(task, &constrained[..i]);
            let Some(slack) = slack else {
                prop_assert_eq!(fp::longest_regions(&constrained, &Dedicated), Ok(Search::None));
                return Ok(());
            };
            least = least.min(slack);
        }
        prop_assert_eq!(fp::longest_regions(&constrained, &Dedicated), Ok(Search::Found(expected)));
    }
}
