//! An executor whose reservation is too little for its tasks is told one that is enough.

use super::*;
use laxity_model::analysis::Task;
use laxity_model::executor::edf::Edf;
use laxity_model::executor::rmdp::Rmdp;
use laxity_model::program::Links;
use laxity_model::program::upcalls::Overhead;

/// C, T and D in microseconds.
type Numbers = (u64, u64, u64);

/// Jobs that take turns in a reservation, beside what else there is.
fn taking_turns(
    asked: Reservation,
    enforcer: Enforcer,
    jobs: &[Numbers],
    others: &[Reservation],
) -> Program {
    let others = others
        .iter()
        .map(|asked| reserved("other", *asked, Enforcer::Slots));
    let mut program = program(others.collect());
    take_turns(&mut program, (asked, enforcer), jobs);
    program
}

/// One more executor, and its jobs.
fn take_turns(program: &mut Program, (asked, enforcer): (Reservation, Enforcer), jobs: &[Numbers]) {
    let request = reserved("turns", asked, enforcer).reservation;
    let place = (ProcessorId(1), Placement::Thread(Priority::NORMAL));
    let executor = program.executor("turns", place, request, Edf::<16>::with_room());
    for (cost, period, deadline) in jobs.iter().copied() {
        let task = Task::new(Service::from_micros(cost), Span::from_micros(period));
        let task = task.and_then(|task| task.with_deadline(Span::from_micros(deadline)));
        let placement = Placement::On {
            executor,
            task: Some(task.unwrap()),
        };
        program.push(activity("job", placement));
    }
}

/// What would do, if the executor is refused: the nearest first.
fn advised(admission: &Admission) -> Vec<Reservation> {
    let [executor] = &admission.executors[..] else {
        panic!("{:?}", admission.executors);
    };
    let advice = executor.nearest.iter().map(|advice| {
        assert!(executor.answer.is_err());
        assert_eq!(advice.change, Change::TasksNeed);
        let [(who, reservation)] = advice.requests[..] else {
            panic!("{advice:?}");
        };
        assert_eq!(who, executor.activity);
        reservation
    });
    advice.collect()
}

#[test]
fn an_executor_is_told_the_least_that_its_tasks_need() {
    let jobs = [(1_000, 20_000, 16_000), (500, 10_000, 10_000)];
    for enforcer in [Enforcer::Slots, Enforcer::Deadline] {
        let found_with = |asked| found(taking_turns(asked, enforcer, &jobs, &[]), &machine());
        let refused = found_with(every(200, 5_000));
        assert!(!refused.granted());
        let least = advised(&refused)[0];
        let said = refused.explain().join("");
        let expected = format!("; would fit: {least} for `turns`");
        assert!(said.contains(&expected), "{said}");
        assert!(found_with(least).granted());
        // A microsecond less is refused, and told the same.
        assert_eq!(least.period(), Span::from_millis(5), "{enforcer}");
        let less = every(least.service().as_nanos() / 1_000 - 1, 5_000);
        assert_eq!(advised(&found_with(less))[0], least, "{enforcer}");
    }
}

#[test]
fn where_a_period_is_too_long_whatever_the_service_a_shorter_one_is_told() {
    // To be without slots for no more than 1 ms in 40 takes more than there is for slots. The least share is that of the shortest period.
    let jobs = [(500, 40_000, 1_500)];
    let found_with = |asked| found(taking_turns(asked, Enforcer::Slots, &jobs, &[]), &machine());
    let [nearest, cheapest] = advised(&found_with(every(1_000, 40_000)))[..] else {
        panic!("two");
    };
    assert!(cheapest.period() < nearest.period() && nearest.period() < Span::from_millis(40));
    assert!(cheapest.share_ppm() < nearest.share_ppm());
    assert!(found_with(nearest).granted() && found_with(cheapest).granted());
}

#[test]
fn what_nothing_near_is_enough_for_is_told_nothing() {
    // More than a processor; and what there is no room for beside others.
    let too_much = taking_turns(
        every(1_000, 8_000),
        Enforcer::Slots,
        &[(9_000, 8_000, 8_000)],
        &[],
    );
    let found_without = found(too_much, &machine());
    assert!(!found_without.granted());
    assert_eq!(advised(&found_without), []);
    let others = [every(5_000, 8_000)];
    let no_room = taking_turns(
        every(1_000, 8_000),
        Enforcer::Slots,
        &[(3_500, 8_000, 8_000)],
        &others,
    );
    assert_eq!(advised(&found(no_room, &machine())), []);
    // Whose reservation is refused itself is told what would fit there.
    let refused = taking_turns(
        every(7_900, 8_000),
        Enforcer::Slots,
        &[(1, 8_000, 8_000)],
        &[],
    );
    let refused = found(refused, &machine());
    assert!(refused.executors.is_empty() && refused.explain()[0].contains("would fit"));
}

/// Slots that there is room for are not offered to whose tasks they are too little for.
#[test]
fn what_would_fit_of_refused_slots_is_enough_for_the_tasks() {
    let (mut offered, mut kept_back) = (0, 0);
    for (share, cost) in [(3, 1_000), (3, 8_000), (4, 12_000), (4, 14_000), (6, 2_000)] {
        let jobs = [(cost, 32_000, 32_000)];
        let whole = || {
            let asked = (every(share * 1_000, 8_000), Enforcer::Slots);
            let mut whole = taking_turns(
                every(5_000, 8_000),
                Enforcer::Slots,
                &[(18_000, 32_000, 32_000)],
                &[],
            );
            take_turns(&mut whole, asked, &jobs);
            whole
        };
        let refused = found(whole(), &machine());
        let (_, denial) = refused.refusals().next().expect("one is refused");
        for advice in &denial.nearest {
            let followed = found(following(whole(), &advice.requests), &machine());
            assert!(followed.granted(), "{advice:?}: {:?}", followed.explain());
            offered += 1;
        }
        kept_back += usize::from(denial.nearest.is_empty());
    }
    assert!(offered >= 2 && kept_back >= 1, "{offered} {kept_back}");
}

/// However many there are, what would do is looked for only so long: the rest is told that it was not all looked at.
#[test]
fn advice_for_many_has_a_budget_and_says_where_that_ends() {
    let others: Vec<_> = (0..16).map(|n| every(100, 4_003 + 731 * n)).collect();
    const MANY: usize = 40;
    let asked = (every(50, 12_000), Enforcer::Slots);
    let jobs = [(70, 15_000, 9_000)];
    let mut whole = taking_turns(asked.0, asked.1, &jobs, &others);
    for _ in 1..MANY {
        take_turns(&mut whole, asked, &jobs);
    }
    let admission = found(whole, &machine());
    let refused = &admission.executors;
    assert!(refused.len() == MANY && refused.iter().all(|one| one.answer.is_err()));
    assert!(!refused[0].is_cut_short && !refused[0].nearest.is_empty());
    assert!(refused[MANY - 1].is_cut_short);
    let said = admission.explain();
    assert!(said[MANY - 1].ends_with("; not all that might fit was looked at"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever else there is and whatever that costs: advice that is followed is granted, and what was granted is still.
    #[test]
    fn an_executors_advice_that_is_followed_is_granted(
        jobs in prop::collection::vec((50_u64..2_000, 4_000_u64..40_000, 2_000_u64..40_000), 1..4),
        others in prop::collection::vec((100_u64..3_000, 4_000_u64..30_000), 0..3),
        (service, period) in (60_u64..2_000, 2_000_u64..20_000),
        (switch, by_slots) in (0_u64..100, any::<bool>()),
    ) {
        let mut machine = machine();
        for processor in &mut machine.processors {
            processor.slots.as_mut().unwrap().switch = Service::from_micros(switch);
        }
        let others: Vec<_> = others.iter().map(|(x, y)| every(*x, *y)).collect();
        let enforcer = if by_slots { Enforcer::Slots } else { Enforcer::Deadline };
        let whole = || taking_turns(every(service, period), enforcer, &jobs, &others);
        let admission = found(whole(), &machine);
        if admission.executors.is_empty() {
            return Ok(());
        }
        for advised in advised(&admission) {
            let executor = admission.executors[0].activity;
            let followed = found(following(whole(), &[(executor, advised)]), &machine);
            prop_assert!(followed.executors[0].answer.is_ok());
            prop_assert!(followed.explain().len() < admission.explain().len());
            // The program itself asks for what it asked.
            let asked = admission.program.activities[executor.index()].reservation;
            prop_assert_eq!(asked.unwrap().reservation, every(service, period));
        }
    }
}

/// An executor by rate with a chain of three, each of which takes 2 ms every 20, and a group with 1 ms every 10.
fn chained(deadlines: [u64; 3], policy_by_rate: bool) -> Program {
    let mut program = program(Vec::new());
    let place = (ProcessorId(1), Placement::Thread(Priority::NORMAL));
    let executor = match policy_by_rate {
        true => program.executor("turns", place, None, Rmdp::<16>::with_room()),
        false => program.executor("turns", place, None, Edf::<16>::with_room()),
    };
    let on = |cost, period, deadline| {
        let task = Task::new(Service::from_millis(cost), Span::from_millis(period)).unwrap();
        let task = task.with_deadline(Span::from_millis(deadline)).unwrap();
        let task = Some(task);
        Placement::On { executor, task }
    };
    let ends = [(); 2].map(|()| program.port(1));
    for (place, (name, deadline)) in ["first", "second", "third"]
        .into_iter()
        .zip(deadlines)
        .enumerate()
    {
        let chained = program.push(activity(name, on(2, 20, deadline)));
        let links = Links {
            after: place.checked_sub(1).map(|before| ends[before]),
            before: ends.get(place).copied().into_iter().collect(),
            group: None,
        };
        program.link(chained, links);
    }
    let group = program.group("group", Service::from_millis(1), Span::from_millis(10));
    let member = program.push(activity("member", on(1, 2, 10)));
    program.link(
        member,
        Links {
            group,
            ..Links::default()
        },
    );
    program
}

/// The member wants half of the processor, and its group has a tenth.
#[test]
fn a_chain_has_bounds_from_its_first_release_on_and_a_group_costs_its_budget() {
    let found = found(chained([15, 16, 17], true), &machine());
    assert!(found.granted(), "{:?}", found.explain());
    let [executor] = &found.executors[..] else {
        panic!("{:?}", found.executors);
    };
    let bounds = executor.bounds.iter().map(|(_, bound)| *bound);
    let bounds: Vec<Span> = bounds.collect();
    assert_eq!(bounds.len(), 3, "nothing of the member alone");
    // The budget at the end of a period and at once again, those that come before, each its own 2 ms; and but for the last a less urgent one that has just begun.
    assert_eq!(bounds, [6, 8, 8].map(Span::from_millis));
}

#[test]
fn a_chain_that_may_be_late_names_its_bottleneck() {
    let refused = found(chained([5, 5, 5], true), &machine());
    let said = refused.explain().join("");
    assert!(said.contains("(bottleneck: `third`)"), "{said}");
    let by_deadline = found(chained([15, 16, 17], false), &machine());
    let said = by_deadline.explain().join("");
    assert!(said.contains("only where the order is by rate"), "{said}");
}

/// Each breaks the links of one, and is told why it is the bottleneck.
#[test]
fn what_no_upcall_of_the_executor_releases_is_refused() {
    for (breaks, expected) in [
        (
            None,
            "no upcall of its executor, or more than one, releases it",
        ),
        (Some("group"), "one of it shares a budget"),
    ] {
        let mut program = chained([15, 16, 17], true);
        let task = Task::new(Service::from_millis(1), Span::from_millis(20)).ok();
        let executor = program.executors().next().unwrap().0;
        let on = Placement::On { executor, task };
        let before = program.push(activity("before", on));
        let last = program.push(activity("last", on));
        let port = program.port(1);
        if breaks.is_some() {
            let before_last = Links {
                before: vec![port],
                ..Links::default()
            };
            program.link(before, before_last);
        }
        let group = breaks
            .and_then(|name| program.group(name, Service::from_millis(2), Span::from_millis(40)));
        program.link(
            last,
            Links {
                after: Some(port),
                group,
                ..Links::default()
            },
        );
        let said = found(program, &machine()).explain().join("");
        assert!(said.contains(expected), "{said}");
        assert!(said.contains("(bottleneck: `"), "{said}");
    }
}

/// What its reservation is not known to get it is not known to be promised.
#[test]
fn a_promise_is_no_firmer_than_the_reservation_it_rests_on() {
    let admission = |unseen: Option<&str>| {
        let mut machine = machine();
        let supply = machine.deadline.as_mut().expect("a kernel that reserves");
        supply.unseen = unseen.map(str::to_owned);
        let asked = (every(6_000, 10_000), Enforcer::Deadline);
        found(
            taking_turns(asked.0, asked.1, &[(1_000, 40_000, 40_000)], &[]),
            &machine,
        )
    };
    for unseen in [None, Some("others are hidden")] {
        let admission = admission(unseen);
        let promised = admission.executors[0].answer.as_ref().expect("it fits");
        let granted = admission.requests[0].asked.as_ref().expect("it fits");
        assert_eq!(*promised, granted.grade, "{unseen:?}");
        assert_eq!(*promised == Grade::Enforced, unseen.is_none());
    }
    // What is not known of the reservation excuses nothing else.
    let mut machine = machine();
    let supply = machine.deadline.as_mut().expect("a kernel that reserves");
    supply.unseen = Some("others are hidden".to_owned());
    let asked = (every(6_000, 10_000), Enforcer::Deadline);
    let mut program = taking_turns(asked.0, asked.1, &[(1_000, 40_000, 40_000)], &[]);
    let (executor, _) = program.executors().next().expect("one");
    let undeclared = Placement::On {
        executor,
        task: None,
    };
    program.push(activity("undeclared", undeclared));
    let promised = found(program, &machine).executors[0].answer.clone();
    assert!(
        matches!(promised, Ok(Grade::Unenforced { .. })),
        "{promised:?}"
    );
}

/// The same as of a processor of its own where nobody is above, and what those take besides, or no promise where they leave too little.
#[test]
fn an_executor_without_a_reservation_promises_what_those_above_leave() {
    let mut program = program(Vec::new());
    let place = (ProcessorId(1), Placement::Thread(Priority::NORMAL));
    let executor = program.executor("turns", place, None, Rmdp::<16>::with_room());
    let task = |cost, period| {
        let task = Task::new(Service::from_millis(cost), Span::from_millis(period));
        task.expect("a task")
    };
    for own in [task(2, 10), task(7, 40)] {
        let task = Some(own);
        program.push(activity("job", Placement::On { executor, task }));
    }
    let admission = found(program, &machine());
    let overhead = Overhead {
        late: Span::ZERO,
        each: Service::ZERO,
        quantum: Service::ZERO,
    };
    let below = |above: Vec<Task>, waits| {
        let found = admission.promised_below(executor, (above, waits), overhead);
        found.map(|bounds| Vec::from_iter(bounds.into_iter().map(|(_, bound)| bound)))
    };
    let ms = Span::from_millis;
    // Each call is looked at as a whole, less a tick for the one that began before.
    let alone = below(vec![], Span::ZERO).expect("it is little");
    let said = admission.executors[0]
        .bounds
        .iter()
        .map(|(_, bound)| *bound);
    assert_eq!(alone, said.collect::<Vec<_>>());
    let later = below(vec![], ms(1)).expect("it is little");
    assert_eq!(later, [alone[0] + ms(1), alone[1] + ms(1)]);
    let above = below(vec![task(1, 20)], Span::ZERO).expect("it is little");
    assert_eq!(above, [alone[0] + ms(1), alone[1] + ms(1)]);
    assert!(below(vec![task(3, 10)], Span::ZERO).is_err());
    assert!(below(vec![task(10, 10)], Span::ZERO).is_err());
}
