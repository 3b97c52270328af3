//! Plans of task sets: bounds that the twin never exceeds, advice that holds, and the shipped examples to the letter.
//!
//! `LAXITY_CASES` multiplies the number of random sets (default 1: 100 sets).

mod random_sets;

use laxity_lab::import::{Format, Policy, TaskSet, read};
use laxity_lab::plan::Line;
use laxity_lab::plan::set::{Change, Options, ProcessorPlan, Scheduler, Supply, plan, render};
use laxity_model::analysis::{Preemption, Task};
use laxity_model::{Reservation, Service, Span};
use random_sets::{cases, random};

/// The only processor of a plan.
fn only(set: &TaskSet, options: &Options) -> ProcessorPlan {
    let mut plan = plan(set, options).expect("no overflow");
    assert_eq!(plan.processors.len(), 1);
    plan.processors.remove(0)
}

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

/// A change as a program has it that reads the plan's JSON.
#[derive(serde::Deserialize)]
struct Followed {
    text: String,
    tasks: Vec<FollowedTask>,
    test: String,
}

#[derive(serde::Deserialize)]
struct FollowedTask {
    name: String,
    cost_ns: u64,
    period_ns: u64,
    deadline_ns: u64,
    jitter_ns: u64,
    region_ns: Option<u64>,
    last_region_ns: Option<u64>,
}

/// The changes that a plan's JSON has.
fn from_json(found: &ProcessorPlan) -> Vec<Followed> {
    let text = serde_json::to_string(found).expect("JSON");
    let plan: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    serde_json::from_value(plan["nearest"].clone()).expect("changes")
}

/// A set in which every task is what the change says of it, by name and by nothing else.
fn changed(set: &TaskSet, change: &Followed) -> TaskSet {
    let mut changed = set.clone();
    assert_eq!(change.tasks.len(), set.tasks.len());
    for line in &change.tasks {
        let mut tasks = changed.tasks.iter_mut();
        let task = tasks.find(|task| task.name == line.name).expect("its name");
        task.work = Ok(task_of(line));
    }
    changed
}

fn task_of(line: &FollowedTask) -> Task {
    let region = |region: Option<u64>| region.map(Service::from_nanos);
    let preemption = match (region(line.region_ns), region(line.last_region_ns)) {
        (None, _) => Preemption::Anywhere,
        (Some(longest), None) => Preemption::Floating { longest },
        (Some(longest), Some(last)) => Preemption::Fixed { longest, last },
    };
    let task = Task::new(
        Service::from_nanos(line.cost_ns),
        Span::from_nanos(line.period_ns),
    );
    let task = task.and_then(|task| task.with_deadline(Span::from_nanos(line.deadline_ns)));
    let task = task.map(|task| task.with_jitter(Span::from_nanos(line.jitter_ns)));
    task.and_then(|task| task.with_preemption(preemption))
        .expect("a task")
}

#[test]
fn advice_that_is_followed_is_accepted() {
    let mut followed = 0_u64;
    for seed in 0..cases() {
        let set = random(seed);
        let options = Options {
            observe: false,
            ..Options::default()
        };
        let found = only(&set, &options);
        assert!(!found.admitted || found.nearest.is_empty(), "seed {seed}");
        for change in &from_json(&found) {
            let mut follow = changed(&set, change);
            let mut scheduler = Scheduler::Auto;
            if change.text.starts_with("as it is") {
                follow
                    .tasks
                    .iter_mut()
                    .for_each(|task| task.policy = Policy::Unsaid);
                scheduler = if change.test.starts_with("earliest") {
                    Scheduler::Edf
                } else {
                    Scheduler::FixedPriority
                };
            }
            let again = only(
                &follow,
                &Options {
                    scheduler,
                    ..options
                },
            );
            assert!(again.admitted, "seed {seed}: {}", change.text);
            assert_eq!(again.test, change.test, "seed {seed}: {}", change.text);
            followed += 1;
        }
        let scale = found.scale_ppm.unwrap_or(0);
        if found.admitted {
            assert!(scale >= 1_000_000, "seed {seed}: {scale}");
        } else {
            assert!(scale < 1_000_000, "seed {seed}: {scale}");
        }
    }
    println!("{followed} changes followed");
    assert!(followed > cases() / 4, "{followed}");
}

#[test]
fn margins_are_admitted_to_the_last_digit() {
    let (mut asked, mut exact) = (0_u64, 0_u64);
    for seed in 0..cases() / 4 {
        let set = random(seed);
        let options = Options {
            observe: false,
            ..Options::default()
        };
        let found = only(&set, &options);
        for (place, task) in set.tasks.iter().enumerate() {
            let mut lines = found.lines.iter();
            let line = lines.find(|line| line.name == task.name).expect("a line");
            let work = task.work.clone().expect("known");
            if let Some(largest) = line.largest_cost_ns {
                let with = |cost: u64| {
                    let mut with = set.clone();
                    let work = work.with_cost(Service::from_nanos(cost)).expect("a task");
                    with.tasks[place].work = Ok(work);
                    only(&with, &options)
                };
                assert!(with(largest).admitted, "seed {seed}: {line:?}");
                let had = work.cost().as_nanos();
                assert!(!found.admitted || largest >= had, "seed {seed}: {line:?}");
                if line.largest_cost_is_exact {
                    let more = with(largest + 1);
                    let same = more.test == found.test;
                    assert!(!more.admitted || !same, "seed {seed}: {line:?}");
                    exact += 1;
                }
                asked += 1;
            }
        }
    }
    assert!(asked > cases() / 4 && exact > asked / 2, "{asked}, {exact}");
}

/// Video in a reservation that has room for more, and control below it; times in microseconds.
fn reserving(runtime: u32, control: u32) -> TaskSet {
    let timer = r#""timer": { "ref": "unique", "period": 1000 }"#;
    let video = format!(
        r#""policy": "SCHED_DEADLINE", "dl-runtime": {runtime}, "dl-period": 1000, "run": 100, {timer}"#
    );
    let control = format!(r#""policy": "SCHED_FIFO", "priority": 50, "run": {control}, {timer}"#);
    let text =
        format!(r#"{{ "tasks": {{ "video": {{ {video} }}, "control": {{ {control} }} }} }}"#);
    read(&text, "x.json", Format::RtApp).expect("a task set")
}

/// A job grows up to the budget that the file declares, and not a nanosecond beyond; that neither shrinks with it nor grows.
#[test]
fn margins_leave_reservations_as_they_are() {
    let set = reserving(300, 100);
    let found = plan(&set, &Options::default()).expect("a plan");
    let only = &found.processors[0];
    assert!(only.admitted);
    assert_eq!(
        (only.scale_ppm, only.scale_is_exact),
        (Some(3_000_000), true)
    );
    let most = |line: &Line| (line.largest_cost_ns, line.largest_cost_is_exact);
    let most: Vec<_> = only.lines.iter().map(most).collect();
    assert_eq!(most, [(Some(300_000), true), (Some(400_000), true)]);
    let text = render(&found, 100);
    let words =
        "all costs times 3.000, with the reservations as they are, are admitted, and no more";
    assert!(text.contains(words), "{text}");
}

/// What a refused set would have to reserve is said with each change; by itself less work in the same budget would help nobody.
#[test]
fn advice_says_what_a_reservation_becomes() {
    let set = reserving(300, 500);
    let found = only(&set, &Options::default());
    assert!(!found.admitted);
    assert_eq!(found.scale_ppm, Some(800_000));
    let video = found.lines.iter().find(|line| line.name == "video");
    assert_eq!(video.expect("a line").largest_cost_ns, None);
    for change in &found.nearest {
        let kept = change.tasks.iter().find(|task| task.name == "video");
        let reserved = kept.and_then(|task| task.reservation).expect("one");
        let words = ["reserving", "reserves", "each reservation"];
        let is_said = words.iter().any(|words| change.text.contains(words));
        assert_eq!(is_said, reserved.runtime_ns != 300_000, "{change:?}");
    }
    let gives_up = |change: &&Change| change.text.contains("`video` ");
    let change = found.nearest.iter().find(gives_up).expect("one");
    assert!(change.text.contains("reserv"), "{}", change.text);
}

#[test]
fn what_is_admitted_as_it_is_has_a_margin_of_at_least_itself() {
    // Full to the last tick, and nearly.
    for (text, factor) in [
        ("cost_us,period_us\n1000,4000\n3000,4000\n", 1_000_000),
        ("cost_ns,period_ns\n333,1000\n667,1000\n", 1_000_000),
        ("cost_us,period_us\n999950,1000000\n", 1_000_000),
        ("cost_us,period_us\n1000,10000\n1000,10000\n", 5_000_000),
    ] {
        let set = read(text, "x.csv", Format::Csv).expect("a task set");
        let found = only(&set, &Options::default());
        assert!(found.admitted, "{text}");
        assert_eq!(found.scale_ppm, Some(factor), "{text}");
        assert!(found.scale_is_exact, "{text}");
        for task in &found.lines {
            assert!(task.largest_cost_ns >= task.cost_ns, "{text}: {task:?}");
        }
    }
    // A thousandfold is not the end, but the end of what is asked.
    let set = read("cost_us,period_s\n1,10\n", "x.csv", Format::Csv).expect("a task set");
    let found = only(&set, &Options::default());
    assert_eq!(found.scale_ppm, Some(1_000_000_000));
    assert!(!found.scale_is_exact);
}

#[test]
fn advice_that_cuts_a_region_says_so() {
    let text = "name,cost_ms,period_ms,region_ms\na,8,10,\nb,6,30,6\n";
    let set = read(text, "x.csv", Format::Csv).expect("a task set");
    let options = Options {
        scheduler: Scheduler::FixedPriority,
        ..Options::default()
    };
    let found = only(&set, &options);
    assert!(!found.admitted);
    let of_b = |change: &&Change| change.text.contains("`b` at most");
    let change = found.nearest.iter().find(of_b);
    let change = change.or_else(|| {
        let gives_up = |change: &&Change| change.text.contains("`b` gives up");
        found.nearest.iter().find(gives_up)
    });
    let change = change.expect("a smaller b");
    let b = change
        .tasks
        .iter()
        .find(|task| task.name == "b")
        .expect("b");
    assert_eq!(b.region_ns, Some(b.cost_ns));
    assert!(
        change.text.contains("and no region longer than"),
        "{}",
        change.text
    );
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
    let csv = include_str!("../../../scenarios/upcalls-12.csv");
    let csv = read(csv, "upcalls-12.csv", Format::Csv).expect("a task set");
    let json = include_str!("../../../scenarios/rt-app.json");
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
