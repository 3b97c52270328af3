//! What a plan advises: changes that are accepted once followed, and margins that hold to the last digit.
//!
//! `LAXITY_CASES` multiplies the number of random sets (default 1: 100 sets).

use laxity_lab::import::{Format, Policy, TaskSet, read};
use laxity_lab::plan::Line;
use laxity_lab::plan::set::{Change, Options, ProcessorPlan, Scheduler, plan, render};
use laxity_lab::scenario::units;
use laxity_model::analysis::{Preemption, Task};
use laxity_model::{Service, Span};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::plans::only;
use crate::random_sets::{cases, random};

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

/// Up to three tasks of rt-app, most of them with reservations, of which some have room for more than a job and some for less.
fn random_reserving(seed: u64) -> TaskSet {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let count = random.random_range(1..=3);
    let tasks = (0..count).map(|number| {
        let period = 1_000 * random.random_range(2..=20_u32);
        let run = random.random_range(100..=2 * period / count);
        let timer = format!(r#""run": {run}, "timer": {{ "ref": "unique", "period": {period} }}"#);
        if random.random_bool(0.3) {
            return format!(r#""t{number}": {{ "policy": "SCHED_FIFO", "priority": 50, {timer} }}"#);
        }
        let of = match random.random_range(0..3) {
            0 => (period / 2).max(1_000),
            _ => period,
        };
        let runtime = (run * random.random_range(5..=20) / 10).clamp(100, of);
        let due = match random.random_range(0..3) {
            0 => random.random_range(runtime..=of),
            _ => of,
        };
        format!(
            r#""t{number}": {{ "policy": "SCHED_DEADLINE", "dl-runtime": {runtime}, "dl-period": {of}, "dl-deadline": {due}, {timer} }}"#
        )
    });
    let tasks = tasks.collect::<Vec<_>>().join(", ");
    let text = format!(r#"{{ "tasks": {{ {tasks} }} }}"#);
    read(&text, "x.json", Format::RtApp).expect("a task set")
}

/// A deadline that stands in the file stays there, also where the period was the same; one that does not is the period, whatever that becomes.
#[test]
fn what_is_due_when_the_file_says_stays_so() {
    for (due, stays) in [("20", true), ("", false)] {
        let text = format!("name,cost_ms,period_ms,deadline_ms\na,4,10,\nb,5,12,\nc,4,20,{due}\n");
        let set = read(&text, "x.csv", Format::Csv).expect("a task set");
        let found = only(&set, &Options::default());
        let mut nearest = found.nearest.iter();
        let rarer = nearest.find(|one| one.text.starts_with("`c` every"));
        let change = rarer.expect("it comes less often");
        let c = change.tasks.iter().find(|task| task.name == "c");
        let c = c.expect("its line");
        let due = if stays { 20_000_000 } else { c.period_ns };
        assert_eq!(c.deadline_ns, due, "{change:?}");
    }
}

/// A set in which nothing is changed but what the words of an advice say, as one would write it into the file.
fn to_the_letter(set: &TaskSet, words: &str) -> TaskSet {
    let mut set = set.clone();
    let (head, deadline) = words.split_once(", its deadline ").unwrap_or((words, ""));
    let (head, reserving) = head.split_once(", reserving ").unwrap_or((head, ""));
    let (head, cuts) = head.split_once(", each reservation").unwrap_or((head, ""));
    let whose = head.split('`').nth(1);
    let whose = |name: &str| whose.is_none_or(|whose| whose == name);
    let factor = head.strip_prefix("all costs times ");
    let factor = factor.map(|factor| factor.replace('.', "").parse::<u64>().expect("digits"));
    let cost = head.split_once("at most ").or(head.split_once("with its "));
    let cost = cost.and_then(|(_, cost)| cost.split_whitespace().next());
    let period = head.split_once(" every ").map(|(_, rest)| rest);
    let period = period.map(|rest| rest.split(',').next().expect("one"));
    for task in set.tasks.iter_mut().filter(|task| whose(&task.name)) {
        let had = task.work.clone().expect("known");
        let read = |cost: &str| units::service(cost).expect("a time");
        let cost = cost.map_or(had.cost(), read);
        let cost = factor.map_or(cost, |permille| {
            Service::from_nanos((had.cost().as_nanos() * permille).div_ceil(1_000))
        });
        let mut period = period.map_or(had.period(), |text| units::span(text).expect("a time"));
        let mut work = (cost, period);
        if let Policy::Deadline(request) = &mut task.policy {
            let has_room = had.cost() <= request.runtime && had.period() >= request.period;
            if head.contains("` reserves at most ") {
                (request.runtime, request.period) = work;
                work = (had.cost(), had.period());
            } else if !reserving.is_empty() {
                let now = units::reservation(reserving).expect("a reservation");
                (request.runtime, request.period) = (now.service(), now.period());
            } else if !cuts.is_empty() && has_room {
                request.runtime = cost;
            }
            if !deadline.is_empty() {
                request.deadline = units::span(deadline).expect("a time");
            }
            period = request.deadline;
        }
        let work = Task::new(work.0, work.1).and_then(|work| work.with_deadline(period));
        task.work = work
            .map(|work| work.with_jitter(had.jitter()))
            .map_err(|_| "no work".into());
    }
    set
}

#[test]
fn advice_on_reservations_is_accepted_to_the_letter() {
    let text = r#"{"tasks":{"a":{"policy":"SCHED_DEADLINE","dl-runtime":300,"dl-period":4000,"run":500,"timer":{"ref":"unique","period":4000}}}}"#;
    let known = read(text, "n.json", Format::RtApp).expect("a task set");
    let random = (0..cases()).map(random_reserving);
    let (mut rarer, mut followed) = (0, 0);
    for set in std::iter::once(known).chain(random) {
        let options = Options {
            observe: false,
            ..Options::default()
        };
        for change in &only(&set, &options).nearest {
            if change.text.starts_with("as it is") {
                continue;
            }
            let follow = to_the_letter(&set, &change.text);
            let again = only(&follow, &options);
            assert!(again.admitted, "{set:#?} {}: {again:#?}", change.text);
            rarer += u64::from(change.text.contains(", with its "));
            followed += 1;
        }
    }
    println!("{followed} changes followed, {rarer} of them of a period");
    assert!(rarer > 0 && followed > cases() / 4, "{rarer}, {followed}");
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

/// Where priorities admit a set, what they do not may still be admitted by deadline: margins say by which test they are, and where none is named no
/// test of the command admits more.
#[test]
fn margins_are_of_the_test_that_is_named() {
    let set_with = |cost: u64| {
        let text = format!("name,cost_ns,period_ns\na,1,2\nb,{cost},5\n");
        read(&text, "x.csv", Format::Csv).expect("a task set")
    };
    for (scheduler, named) in [
        (Scheduler::Auto, true),
        (Scheduler::FixedPriority, true),
        (Scheduler::Edf, false),
    ] {
        let options = Options {
            scheduler,
            ..Options::default()
        };
        let found = plan(&set_with(1), &options).expect("a plan");
        let text = render(&found, 1_000);
        let one = &found.processors[0];
        let most = one.lines[1].largest_cost_ns.expect("one is admitted");
        assert_eq!((most, one.lines[1].largest_cost_is_exact), (2, true));
        let by = one.margins_by.as_deref();
        assert_eq!(by.is_some(), named, "{text}");
        if let Some(by) = by {
            assert_eq!(by, one.test);
            let said = format!("are admitted by {by}, and no more; C most is by that, too");
            assert!(text.contains(&said), "{text}");
        } else {
            assert!(!only(&set_with(most + 1), &options).admitted);
        }
    }
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
    assert_eq!(most, [(Some(300_000), true), (Some(700_000), true)]);
    let text = render(&found, 100);
    let words =
        "all costs times 3.000, with the reservations as they are, are admitted, and no more";
    assert!(text.contains(words), "{text}");
}

/// What a refused set would have to reserve is said with each change; by itself less work in the same budget would help nobody.
#[test]
fn advice_says_what_a_reservation_becomes() {
    let set = reserving(300, 875);
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
