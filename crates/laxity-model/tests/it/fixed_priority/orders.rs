//! All orders, and all final regions.

use super::*;

/// All orders of so many.
fn permutations(count: usize) -> Vec<Vec<usize>> {
    let Some(rest) = count.checked_sub(1) else {
        return vec![Vec::new()];
    };
    let shorter = permutations(rest);
    let with = |order: &Vec<usize>, at: usize| {
        let mut order = order.clone();
        order.insert(at, rest);
        order
    };
    shorter
        .iter()
        .flat_map(|order| (0..count).map(move |at| with(order, at)))
        .collect()
}

fn by(order: &[usize], tasks: &[Task]) -> Vec<Task> {
    order.iter().map(|index| tasks[*index]).collect()
}

fn final_region(task: Task, region: Service) -> Task {
    let preemption = Preemption::Fixed {
        longest: region,
        last: region,
    };
    task.with_preemption(preemption).expect("fits")
}

fn accepts(tasks: &[Task], supply: &dyn SupplyBound) -> bool {
    fp::test(tasks, &supply).expect("small").is_schedulable()
}

/// Whether some choice of all final regions is accepted in this order.
fn some_regions(tasks: &[Task], from: usize, supply: &dyn SupplyBound) -> bool {
    let Some(task) = tasks.get(from) else {
        return accepts(tasks, supply);
    };
    (1..=task.cost().as_nanos()).any(|region| {
        let mut chosen = tasks.to_vec();
        chosen[from] = final_region(*task, service(region));
        some_regions(&chosen, from + 1, supply)
    })
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn an_order_is_found_if_and_only_if_there_is_one(tasks in any_tasks(4), supply in any_supply()) {
        prop_assume!(load(&tasks, supply.rate()).is_ne());
        let any = permutations(tasks.len()).iter().any(|order| accepts(&by(order, &tasks), &*supply));
        let found = fp::best_order(&tasks, &&*supply).expect("small");
        prop_assert_eq!(matches!(found, Search::Found(_)), any);
        // "None" is for sure, and only for sure.
        prop_assert!(found != Search::None || supply.is_attained());
        if let Search::Found(order) = found {
            prop_assert!(accepts(&by(&order, &tasks), &*supply));
        }
    }

    /// Every order, every final region: where any is accepted, the search finds one; and so it does where the tasks are accepted in
    /// any order with the regions they have.
    #[test]
    fn final_regions_are_found_if_and_only_if_there_are_some(
        tasks in any_tasks(3), supply in any_supply(),
    ) {
        prop_assume!(load(&tasks, supply.rate()).is_ne());
        let mut orders = permutations(tasks.len()).into_iter();
        let found = fp::best_order_with_final_regions(&tasks, &&*supply).expect("small");
        if let Search::Found(found) = &found {
            let set: Vec<Task> = found.iter().map(|(i, q)| final_region(tasks[*i], *q)).collect();
            prop_assert!(accepts(&set, &*supply));
        } else {
            prop_assert_eq!(found == Search::None, supply.is_attained());
            prop_assert!(!orders.any(|order| some_regions(&by(&order, &tasks), 0, &*supply)));
        }
        if fp::best_order(&tasks, &&*supply).expect("small").found().is_some() {
            prop_assert!(matches!(found, Search::Found(_)));
        }
    }
}

#[test]
fn equal_periods_and_deadlines_keep_their_order() {
    let task = |period, deadline| task((1, period, deadline, 0, (0, 0, 0)));
    let tasks = [task(9, 3), task(5, 3), task(9, 1), task(5, 9)];
    assert_eq!(fp::rate_monotonic(&tasks), [1, 3, 0, 2]);
    assert_eq!(fp::deadline_monotonic(&tasks), [2, 0, 1, 3]);
}
