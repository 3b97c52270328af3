//! Plans of task sets: bounds that the twin never exceeds, advice that holds, and the shipped examples to the letter.
//!
//! `LAXITY_CASES` multiplies the number of random sets (default 1: 100 sets).

mod by_turns;
mod deadline_servers;

use laxity_lab::import::{Format, read};
use laxity_lab::plan::set::{Options, ProcessorPlan, Scheduler, SetPlan, Supply, plan, render};
use laxity_model::{Reservation, Service, Span};

use crate::plans::only;
use crate::random_sets::{cases, random};

#[test]
fn the_twin_never_exceeds_a_bound_and_often_reaches_it() {
    for scheduler in [Scheduler::FixedPriority, Scheduler::Edf] {
        let (mut compared, mut reached, mut jobs) = (0_u64, 0_u64, 0_u64);
        for seed in 0..cases() {
            let options = Options {
                scheduler,
                ..Options::default()
            };
            let found = only(&random(seed), &options);
            for task in &found.lines {
                if let (Some(bound), Some(seen)) = (task.bound_ns, task.observed_max_ns) {
                    assert!(seen <= bound, "seed {seed}: {task:?}");
                    compared += 1;
                    reached += u64::from(seen == bound);
                    jobs += task.observed_jobs;
                }
            }
        }
        println!("{compared} bounds compared with {jobs} jobs, {reached} of them reached");
        assert!(compared > cases(), "{compared}");
        assert!(3 * reached > 2 * compared, "{reached} of {compared}");
    }
}

/// The longest region is that of the least urgent, and there are more with regions than a few; those that float are at the beginning of a job.
#[test]
fn the_longest_regions_are_shown_whoever_has_them() {
    let mut text = "name,cost_us,period_us,region_us\n".to_owned();
    for place in 1..=14_u64 {
        let cost = 100 + 10 * place;
        text += &format!("t{place},{cost},{},{}\n", 10_000 * place, cost - 50);
    }
    let set = read(&text, "x.csv", Format::Csv).expect("a task set");
    let options = Options {
        scheduler: Scheduler::FixedPriority,
        ..Options::default()
    };
    let found = only(&set, &options);
    assert!(found.admitted);
    for line in &found.lines {
        assert_eq!(line.observed_max_ns, line.bound_ns, "{line:?}");
    }
}

#[test]
fn a_reservation_that_does_is_proposed_and_a_grain_less_does_not() {
    let text = "name,cost_us,period_us\na,400,10000\nb,2000,40000\n";
    let set = read(text, "x.csv", Format::Csv).expect("a task set");
    let reservation = |service_us, period_ms| {
        let service = Service::from_micros(service_us);
        Reservation::new(service, Span::from_millis(period_ms)).expect("it fits")
    };
    let kinds: [fn(Reservation) -> Supply; 2] = [Supply::Slots, |asked| {
        Supply::Deadline(asked, Span::from_millis(1))
    }];
    for kind in kinds {
        let found = |asked: Reservation| {
            let options = Options {
                supply: kind(asked),
                observe: false,
                ..Options::default()
            };
            let plan = only(&set, &options);
            (plan.admitted, plan.reservations.expect("a reservation"))
        };
        let (admitted, proposed) = found(reservation(100, 4));
        assert!(!admitted);
        let least = proposed.least_service_ns.expect("one does") / 1_000;
        assert!(found(reservation(least, 4)).0);
        assert!(!found(reservation(least - 50, 4)).0);
        let cheapest = proposed.cheapest.expect("one does");
        let (x, y) = (cheapest.service_ns / 1_000, cheapest.period_ns / 1_000_000);
        assert!(found(reservation(x, y)).0 && !found(reservation(x - 50, y)).0);
        assert!(x * 4 <= least * y, "{x}/{y} {least}");
        // The same is proposed beside what is admitted.
        assert_eq!(found(reservation(2_000, 4)), (true, proposed));
    }
    assert_eq!(only(&set, &Options::default()).reservations, None);
}

#[test]
fn the_bottleneck_is_who_or_what_is_waited_for_longest() {
    let text = "name,cost_us,period_us,region_us\na,400,10000,\nb,6000,100000,6000\n";
    let set = read(text, "x.csv", Format::Csv).expect("a task set");
    for scheduler in [Scheduler::FixedPriority, Scheduler::Edf] {
        let options = Options {
            scheduler,
            ..Options::default()
        };
        let found = only(&set, &options).bottleneck.expect("one");
        let told = (found.name.as_str(), found.contributor.as_deref());
        assert_eq!(told, ("a", Some("b")), "{scheduler:?}");
        assert_eq!(found.contribution_ns, 5_999_999, "{scheduler:?}");
    }
    let set = read("cost_us,period_us\n400,20000\n", "x.csv", Format::Csv).expect("a task set");
    let reservation = Reservation::new(Service::from_millis(2), Span::from_millis(8)).expect("2/8");
    let options = Options {
        supply: Supply::Slots(reservation),
        ..Options::default()
    };
    let found = only(&set, &options).bottleneck.expect("one");
    assert_eq!(
        (found.contributor, found.waits_for),
        (None, Some("its supply"))
    );
    assert_eq!(found.contribution_ns, 6_000_000);
}

#[test]
fn a_reservation_gives_longer_bounds_than_a_processor_and_shorter_ones_than_a_slower_kernel() {
    let set = read(
        "name,cost_us,period_ms\na,100,10\nb,300,40\n",
        "x.csv",
        Format::Csv,
    );
    let set = set.expect("a task set");
    let reservation = Reservation::new(Service::from_millis(2), Span::from_millis(8)).expect("2/8");
    let tick = Span::from_millis(4);
    let supplies = [
        Supply::Dedicated,
        Supply::Slots(reservation),
        Supply::Deadline(reservation, Span::ZERO),
        Supply::Deadline(reservation, tick),
    ];
    let bounds = supplies.map(|supply| {
        let options = Options {
            supply,
            scheduler: Scheduler::FixedPriority,
            ..Options::default()
        };
        let found = only(&set, &options);
        found.lines[0].bound_ns.expect("a bound")
    });
    // The whole, then Y − X and 2(Y − X) before it, then with a kernel that looks every 4 ms.
    assert_eq!(bounds[..3], [100_000, 6_100_000, 12_100_000]);
    assert!(bounds[3] > bounds[2], "{bounds:?}");
}

#[test]
fn of_large_sets_not_every_task_is_asked_about_and_the_plan_says_so() {
    let large = |count: u64| {
        let lines = (0..count).map(|i| format!("{},{}\n", 1 + i % 3, 10_000 + i));
        let text = format!("cost_us,period_us\n{}", lines.collect::<String>());
        let set = read(&text, "x.csv", Format::Csv).expect("a task set");
        let options = Options {
            observe: false,
            scheduler: Scheduler::Edf,
            ..Options::default()
        };
        only(&set, &options)
    };
    let unknown = |found: &ProcessorPlan| {
        let tasks = found.lines.iter();
        tasks.filter(|task| task.largest_cost_ns.is_none()).count()
    };
    let (whole, partial) = (large(65), large(1_000));
    assert_eq!(unknown(&whole), 0);
    assert!(whole.left_out.is_empty(), "{:?}", whole.left_out);
    assert!(partial.admitted && partial.scale_ppm > Some(1_000_000));
    let words = format!("the largest costs of {} of 1000 tasks", unknown(&partial));
    assert!(
        unknown(&partial) > 0 && partial.left_out[0].contains(&words),
        "{:?}",
        partial.left_out
    );
    assert_eq!(partial, large(1_000));
}

#[test]
fn what_is_not_known_is_not_refused() {
    // Response times cannot tell on a kernel that looks at budgets every 4 ms; nor can any order.
    let text = "name,cost_us,period_ms\na,1000,10\nb,3000,30\n";
    let set = read(text, "x.csv", Format::Csv).expect("a task set");
    let reservation = Reservation::new(Service::from_millis(2), Span::from_millis(8)).expect("2/8");
    let tick = Span::from_millis(4);
    let options = Options {
        supply: Supply::Deadline(reservation, tick),
        ..Options::default()
    };
    let found = only(&set, &options);
    // Where no test can tell nothing is refused.
    assert!(!found.admitted && found.unknown);
    let by_deadline = "response times, priorities by deadline";
    for name in [by_deadline, "best priorities (Audsley)"] {
        let mut tests = found.tests.iter();
        let line = tests.find(|line| line.test == name).expect("a line");
        assert_eq!(line.verdict, "cannot tell", "{line:?}");
    }
}

/// Somebody who may ask for less, and takes next to nothing, makes no refusal of what no test can tell.
#[test]
fn what_is_not_known_is_not_refused_for_whoever_comes_besides() {
    let timer = |period| format!(r#""timer": {{ "ref": "unique", "period": {period} }}"#);
    let set = |besides: &str| {
        let video = format!(
            r#""policy": "SCHED_DEADLINE", "dl-runtime": 3000, "dl-period": 20000, "run": 2500, {}"#,
            timer(20_000)
        );
        let control = format!(
            r#""policy": "SCHED_FIFO", "priority": 50, "run": 500, {}"#,
            timer(3_400)
        );
        let other = format!(
            r#""policy": "SCHED_OTHER", "run": 10, {besides} {}"#,
            timer(100_000)
        );
        let text = format!(
            r#"{{ "tasks": {{ "video": {{ {video} }}, "control": {{ {control} }}, "other": {{ {other} }} }} }}"#
        );
        read(&text, "x.json", Format::RtApp).expect("a task set")
    };
    for besides in ["", r#""loop": 3,"#, r#""delay": 5,"#] {
        let found = only(&set(besides), &Options::default());
        assert!(!found.admitted && found.unknown, "{besides}: {found:?}");
    }
}

#[test]
fn rmdp_is_asked_once_and_says_one_thing() {
    let text = "name,cost_ms,period_ms,deadline_ms\na,1,10,8\nb,1,20,9\n";
    let set = read(text, "x.csv", Format::Csv).expect("a task set");
    let options = Options {
        scheduler: Scheduler::Rmdp,
        ..Options::default()
    };
    let found = only(&set, &options);
    let mut tests = found.tests.iter();
    let line = tests.find(|line| line.test == "RMDP").expect("a line");
    assert_eq!((found.admitted, line.verdict.as_str()), (true, "admits"));
}

/// With the regions that it names in the file a set is admitted by it as before, and with a nanosecond more it is not.
#[test]
fn rmdp_names_the_longest_regions_that_it_admits() {
    let admits = |regions: [u64; 3]| {
        let [a, b, c] = regions.map(|ns| format!("{}", ns as f64 / 1_000.0));
        let text = format!(
            "name,cost_us,period_us,region_us\na,2000,10000,{a}\nb,2000,20000,{b}\nc,9000,40000,{c}\n"
        );
        let set = read(&text, "x.csv", Format::Csv).expect("a task set");
        let options = Options {
            scheduler: Scheduler::Rmdp,
            ..Options::default()
        };
        only(&set, &options)
    };
    let found = admits([1_000_000; 3]);
    assert!(found.admitted, "{found:?}");
    let region = |name: &str| {
        let line = found.lines.iter().find(|line| line.name == name);
        line.and_then(|line| line.longest_region_ns).expect("one")
    };
    let longest = ["a", "b", "c"].map(region);
    assert!(admits(longest).admitted, "{longest:?}");
    let [a, b, c] = longest;
    assert!(c < 9_000_000 && !admits([a, b, c + 1]).admitted, "{c}");
}

/// The tests of a processor say whom they leave out, once and in both forms; and nothing of that where they know of all.
#[test]
fn tests_say_whose_work_they_know_nothing_of() {
    let set = |does: &str| {
        let text = format!(
            r#"{{ "tasks": {{ "one": {{ "run": 100, {does} "timer": {{ "ref": "unique", "period": 10000 }} }},
                "two": {{ "run": 100, "timer": {{ "ref": "unique", "period": 10000 }} }} }} }}"#
        );
        read(&text, "x.json", Format::RtApp).expect("a task set")
    };
    let found = only(&set(r#""lock": "m","#), &Options::default());
    assert_eq!(found.tests_without, ["one"], "{found:?}");
    let found = only(&set(""), &Options::default());
    assert!(found.tests_without.is_empty(), "{found:?}");
}

#[test]
fn what_is_not_analysed_gives_no_bound_to_whom_it_may_delay() {
    let timer = "\"timer\": { \"ref\": \"unique\", \"period\": 10000 }";
    let fifo = |priority: u8, rest: &str| {
        format!(
            "{{ \"policy\": \"SCHED_FIFO\", \"priority\": {priority}, \"run\": 100, {rest} {timer} }}"
        )
    };
    let (top, middle, low) = (fifo(3, ""), fifo(2, "\"lock\": \"m\","), fifo(1, ""));
    let text =
        format!("{{ \"tasks\": {{ \"top\": {top}, \"middle\": {middle}, \"low\": {low} }} }}");
    let set = read(&text, "x.json", Format::RtApp).expect("a task set");
    let found = only(&set, &Options::default());
    assert!(!found.admitted);
    let bounds: Vec<bool> = found
        .lines
        .iter()
        .map(|task| task.bound_ns.is_some())
        .collect();
    assert_eq!(bounds, [true, false, false]);
    let why = found.lines[2].no_bound.as_deref().expect("a reason");
    assert!(why.contains("`middle` may go first"), "{why}");
}

/// Of tasks `a` and `b`, each text an object's inside, on so many processors: whether that is unknown, and where the plan has bounds for `b`.
fn beside_a_phase(a: (&str, &str), b: &str, processors: u16) -> (SetPlan, Vec<bool>) {
    let work = r#""run": 1000, "timer": { "ref": "unique", "period": 10000 }"#;
    let (thread, phase) = a;
    let text = format!(
        r#"{{ "tasks": {{ "a": {{ {thread} "phases": {{ "p": {{ {phase} {work} }} }} }}, "b": {{ {b} {work} }} }} }}"#
    );
    let set = read(&text, "x.json", Format::RtApp).expect("a task set");
    let options = Options {
        processors: Some(processors),
        ..Options::default()
    };
    let plan = plan(&set, &options).expect("a plan");
    let lines = plan.processors.iter().flat_map(|one| &one.lines);
    let of_b = lines.filter(|line| line.name == "b");
    let bounds = of_b.map(|line| line.bound_ns.is_some()).collect();
    (plan, bounds)
}

#[test]
fn whom_a_phase_may_preempt_has_no_bound() {
    let fifo = |level: u8| format!(r#""policy": "SCHED_FIFO", "priority": {level},"#);
    let reserved = |runtime: u32| {
        format!(r#""policy": "SCHED_DEADLINE", "dl-runtime": {runtime}, "dl-period": 10000,"#)
    };
    let [low, middle, high, top] = [10, 50, 60, 99].map(fifo);
    let (here, there) = (
        format!(r#"{middle} "cpus": [0],"#),
        format!(r#"{low} "cpus": [1],"#),
    );
    let (first, second) = (r#""priority": 5,"#, r#""cpus": [0, 1],"#);
    let table = [
        ((middle.as_str(), first), low.as_str(), 1, false),
        ((&middle, first), &high, 1, true),
        (("", &top), &high, 1, false),
        ((&middle, first), &reserved(2_000), 1, true),
        // Where it runs is the file's to say: here on processor 0 alone, there nobody knows.
        ((&here, first), &there, 2, true),
        ((&here, second), &there, 2, false),
        ((&middle, r#""cpus": [0],"#), &there, 2, false),
        // What may become a reservation goes before all others, and before other reservations.
        ((&reserved(5_000), r#""dl-runtime": 1000,"#), &top, 1, false),
        (
            (&reserved(5_000), r#""dl-runtime": 1000,"#),
            &reserved(2_000),
            1,
            false,
        ),
        (
            (&reserved(5_000), r#""dl-runtime": 1000,"#),
            &there,
            2,
            false,
        ),
        (
            (&reserved(5_000), r#""dl-runtime": 1000,"#),
            &reserved(2_000),
            2,
            false,
        ),
        ((&here, &reserved(1_000)), &reserved(2_000), 2, false),
        // Timesharing delays nobody, wherever.
        (("", r#""cpus": [0],"#), &low, 1, true),
    ];
    for (a, b, processors, is_bounded) in table {
        let (plan, bounds) = beside_a_phase(a, b, processors);
        let promised = !a.0.is_empty() || a.1.contains("FIFO");
        assert_eq!(
            (plan.admitted, plan.unknown),
            (!promised, promised),
            "{a:?} {b}: {plan:?}"
        );
        assert!(!bounds.is_empty(), "{a:?} {b}");
        assert!(render(&plan, 100).starts_with("x.json (rt-app, 2 tasks)"));
        assert!(
            bounds.iter().all(|found| *found == is_bounded),
            "{a:?} {b}: {plan:?}"
        );
    }
}

#[test]
fn what_the_kernel_refuses_is_not_admitted() {
    let timer = "\"timer\": { \"ref\": \"unique\", \"period\": 10000 }";
    let text = |runtime: u32| {
        format!(
            "{{ \"tasks\": {{ \"a\": {{ \"policy\": \"SCHED_DEADLINE\", \"dl-runtime\": {runtime}, \"dl-period\": 10000, \"run\": 100, {timer} }} }} }}"
        )
    };
    let only_with = |runtime: u32| {
        let set = read(&text(runtime), "x.json", Format::RtApp).expect("a task set");
        only(&set, &Options::default())
    };
    assert!(only_with(8_900).admitted);
    let refused = only_with(9_700);
    assert!(!refused.admitted);
    let why = refused.lines[0].no_bound.as_deref().expect("a reason");
    assert!(why.contains("EBUSY"), "{why}");
}

#[test]
fn the_shipped_sets_have_these_plans() {
    let csv = include_str!("../../../../scenarios/upcalls-12.csv");
    let csv = read(csv, "upcalls-12.csv", Format::Csv).expect("a task set");
    let json = include_str!("../../../../scenarios/rt-app.json");
    let json = read(json, "rt-app.json", Format::RtApp).expect("a task set");
    for (name, set) in [("upcalls", &csv), ("rt_app", &json)] {
        let plan = plan(set, &Options::default()).expect("a plan");
        for width in [60, 80, 100, 140] {
            let text = render(&plan, width);
            let fits = |line: &str| line.chars().count() <= width;
            assert!(text.lines().all(fits), "{width}: {text}");
        }
        let text = render(&plan, 100);
        insta::assert_snapshot!(name, text);
    }
    let options = Options {
        processors: Some(2),
        observe: false,
        ..Options::default()
    };
    for (name, set) in [("upcalls_on_2", &csv), ("rt_app_on_2", &json)] {
        let text = render(&plan(set, &options).expect("a plan"), 100);
        let (_, several) = text.split_once("\non ").expect("a section");
        insta::assert_snapshot!(name, several);
    }
    let options = Options {
        scheduler: Scheduler::Rmdp,
        ..Options::default()
    };
    insta::assert_snapshot!(
        "upcalls_rmdp",
        render(&plan(&csv, &options).expect("a plan"), 100)
    );
}
