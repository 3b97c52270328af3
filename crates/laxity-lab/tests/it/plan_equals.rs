//! Plans of sets in which several tasks have one priority, or some a reservation above priorities.

use laxity_lab::import::{Format, Policy, TaskSet, read};
use laxity_lab::plan::set::{Options, ProcessorPlan, Scheduler, plan, render};

use crate::plans::only;
use crate::random_sets::{cases, random};

fn csv(text: &str) -> TaskSet {
    read(text, "set.csv", Format::Csv).expect("a task set")
}

/// A set as rt-app has it, of tasks as it has them.
fn rt_app(tasks: &str) -> TaskSet {
    let text = format!("{{ \"tasks\": {{ {tasks} }} }}");
    read(&text, "set.json", Format::RtApp).expect("a task set")
}

fn bounds(plan: &ProcessorPlan) -> Vec<Option<u64>> {
    let lines = plan.lines.iter();
    lines
        .map(|line| line.bound_ns.map(|ns| ns / 1_000_000))
        .collect()
}

const HEADER: &str = "name,cost_ms,period_ms,deadline_ms,priority\n";

/// Each may wait for the other, and is late where it may not.
#[test]
fn equals_wait_for_each_other() {
    let set = csv(&format!("{HEADER}long,3,20,20,5\noften,1,4,4,5\n"));
    let plan = only(&set, &Options::default());
    assert!(plan.admitted, "{plan:?}");
    assert_eq!(bounds(&plan), [Some(4), Some(4)]);
    let often = &plan.lines[1];
    assert_eq!(often.observed_max_ns, often.bound_ns);
    // A millisecond less is missed, and that is no doubt.
    let set = csv(&format!("{HEADER}long,3,20,20,5\noften,1,4,3,5\n"));
    let plan = only(&set, &Options::default());
    assert!(!plan.admitted && !plan.unknown, "{plan:?}");
}

/// On Linux a thread of `SCHED_FIFO` that is at work when its next job comes goes on with that job, before equals that came sooner: `x` took 15.8 ms there, and `c` 8.7.
#[test]
fn a_thread_whose_next_job_has_come_does_not_queue_again() {
    let behind = |rows: &str| {
        let plan = only(&csv(&format!("{HEADER}{rows}")), &Options::default());
        let last = plan.lines.last().expect("three").bound_ns.expect("a bound");
        (plan.admitted, plan.unknown, last)
    };
    for (rows, took) in [
        (
            "long,4.9,100,100,5\noften,1.95,3,30,5\nx,0.9,100,10,5\n",
            15_850_000,
        ),
        ("b,1.9,16,16,5\na,2.9,4,20,5\nc,0.9,24,7,5\n", 8_740_000),
    ] {
        let (admitted, unknown, bound) = behind(rows);
        assert!(!admitted && unknown && bound >= took, "{bound}");
    }
    // What each of them does once is too much already.
    let (admitted, unknown, _) = behind("b,1.9,16,16,5\na,2.9,4,20,5\nc,0.9,24,5,5\n");
    assert!(!admitted && !unknown);
    // Long as they are, `a` is alone with one that is over before it comes again.
    let (admitted, ..) = behind("b,1.9,16,16,4\na,2.9,4,4,5\nc,0.9,24,4,5\n");
    assert!(admitted);
}

/// Of sets by priority, equal ones or not, it is known whether a deadline is missed, unless it takes too long to be found.
#[test]
fn of_sets_by_priority_all_is_known() {
    let mut equal = 0;
    for seed in 0..4 * cases() {
        let set = random(seed);
        let options = Options {
            scheduler: Scheduler::FixedPriority,
            observe: false,
            ..Options::default()
        };
        let plan = only(&set, &options);
        assert!(!plan.unknown, "seed {seed}: {plan:?}");
        let levels = set.tasks.iter().filter_map(|task| match task.policy {
            Policy::Priority(level) => Some(level),
            _ => None,
        });
        let mut levels: Vec<u8> = levels.collect();
        let all = levels.len();
        levels.sort_unstable();
        levels.dedup();
        equal += u64::from(!plan.admitted && levels.len() < all);
    }
    assert!(equal > cases() / 4, "{equal}");
}

/// A job with a whole budget goes before all priorities: what it does delays them for sure, and what its budget has besides only perhaps.
#[test]
fn what_a_reservation_is_sure_to_take_proves_a_miss() {
    let plan = |period: u64| {
        let video = "\"video\": { \"policy\": \"SCHED_DEADLINE\", \"dl-runtime\": 3000, \"dl-period\": 20000, \"run\": 2500, \"timer\": { \"ref\": \"v\", \"period\": 20000 } }";
        let control = format!(
            "\"control\": {{ \"policy\": \"SCHED_FIFO\", \"priority\": 50, \"run\": 400, \"timer\": {{ \"ref\": \"c\", \"period\": {period} }} }}"
        );
        only(&rt_app(&format!("{video}, {control}")), &Options::default())
    };
    // It is surely done after 2.9 ms, and at the latest after 3.4.
    let answers = [2_899, 2_900, 3_399, 3_400].map(|period| {
        let plan = plan(period);
        (plan.admitted, plan.unknown)
    });
    let (refused, unknown, admitted) = ((false, false), (false, true), (true, false));
    assert_eq!(answers, [refused, unknown, unknown, admitted]);
}

/// That jobs get later and later is told where that is sure: not where who goes first need not do all it may.
#[test]
fn who_may_do_less_makes_nobody_later_and_later() {
    let task = |name: &str, (priority, run, period): (u8, u64, u64), more: &str| {
        format!(
            "\"{name}\": {{ \"policy\": \"SCHED_FIFO\", \"priority\": {priority}, \"run\": {run}, {more} \"timer\": {{ \"ref\": \"{name}\", \"period\": {period} }} }}"
        )
    };
    let late = task("late", (20, 1_500, 2_000), "");
    let said = |above: &str| {
        let set = rt_app(&format!(
            "{}, {above}, {late}",
            task("a", (50, 1_000, 4_000), "")
        ));
        let options = Options {
            observe: false,
            ..Options::default()
        };
        render(&plan(&set, &options).expect("small numbers"), 1_000)
    };
    let ends = said(&task("b", (40, 1_000, 4_000), "\"loop\": 5,"));
    assert!(!ends.contains("more and more"), "{ends}");
    let stays = said(&task("b", (40, 1_000, 4_000), ""));
    assert!(stays.contains("`late` by more and more"), "{stays}");
}

/// Half a percent of a second is less than one of a millisecond, though that is more of time.
#[test]
fn the_bottleneck_has_the_least_slack_as_a_part_of_its_deadline() {
    let named = |late_us: u64| {
        let text =
            format!("name,cost_us,period_us,priority\nsoon,994,1000,9\nlate,{late_us},1000000,1\n");
        let plan = only(&csv(&text), &Options::default());
        let slacks = plan
            .lines
            .iter()
            .map(|line| line.slack_ns.map(|ns| ns / 1_000));
        (
            plan.bottleneck.expect("one").name,
            slacks.collect::<Vec<_>>(),
        )
    };
    assert_eq!(named(5_970), ("late".into(), vec![Some(6), Some(5_000)]));
    assert_eq!(named(5_940), ("soon".into(), vec![Some(6), Some(10_000)]));
}
