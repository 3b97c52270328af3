//! What a plan says of a set under rate monotonic with delayed preemption, and what the executor does that has this policy.

use laxity_lab::import::Policy;
use laxity_lab::plan::set::{Options, ProcessorPlan, Scheduler};
use laxity_model::analysis::supply::Dedicated;
use laxity_model::analysis::{Preemption, Task};
use laxity_model::executor::ExecutorPolicy;
use laxity_model::executor::rmdp::Rmdp;
use laxity_model::{Service, Span};

use crate::plans::only;
use crate::random_sets::{cases, random, set_of};

/// The plan of these under it.
fn planned(tasks: &[Task]) -> ProcessorPlan {
    let unsaid = |task: &Task| (Policy::Unsaid, *task);
    let options = Options {
        scheduler: Scheduler::Rmdp,
        ..Options::default()
    };
    only(&set_of(tasks.iter().map(unsaid).collect()), &options)
}

fn task(cost: u64, period: u64, deadline: u64) -> Task {
    let task = Task::new(Service::from_millis(cost), Span::from_millis(period));
    let task = task.and_then(|task| task.with_deadline(Span::from_millis(deadline)));
    let longest = Service::from_millis(1);
    let task = task.and_then(|task| task.with_preemption(Preemption::Floating { longest }));
    task.expect("a task")
}

/// Who is due sooner goes first, and not who comes more often.
#[test]
fn who_is_due_sooner_goes_first_under_rmdp() {
    let tasks = [task(4, 10, 10), task(2, 20, 5)];
    assert!(Rmdp::new().admit(&tasks, &Dedicated).is_ok());
    let found = planned(&tasks);
    assert!(found.admitted, "{found:?}");
    let names: Vec<&str> = found.lines.iter().map(|line| line.name.as_str()).collect();
    assert_eq!(names, ["task 2", "task 1"]);
}

/// Equals go in the order in which they enter: the first of the file, which is released late, waits for all of the other.
#[test]
fn equals_wait_for_each_other_under_rmdp_wherever_they_stand_in_the_file() {
    let late = task(2, 10, 10).with_jitter(Span::from_millis(5));
    for tasks in [[late, task(5, 10, 10)], [task(5, 10, 10), late]] {
        assert!(Rmdp::new().admit(&tasks, &Dedicated).is_err());
        let found = planned(&tasks);
        assert!(!found.admitted, "{found:?}");
        let mut bounds: Vec<_> = found.lines.iter().map(|line| line.bound_ns).collect();
        bounds.sort_unstable();
        assert_eq!(bounds, [Some(9_000_000), Some(12_000_000)]);
    }
}

/// The oracle is the executor's own admission. It takes who says nothing of its regions for one that never looks, where a file has none: such a one is left out.
#[test]
fn a_plan_by_rmdp_admits_what_its_executor_does() {
    let mut outcomes = [0; 3];
    for seed in 0..4 * cases() {
        let tasks = random(seed).tasks.into_iter().map(|task| task.work);
        let tasks: Vec<Task> = tasks.flatten().collect();
        // Some of them equal.
        let equal = |task: &Task| match seed % 3 {
            0 => task.with_deadline(tasks[0].deadline()).unwrap_or(*task),
            _ => *task,
        };
        let says = |task: &Task| task.preemption() != Preemption::Anywhere;
        let tasks: Vec<Task> = tasks.iter().filter(|task| says(task)).map(equal).collect();
        if tasks.is_empty() {
            continue;
        }
        let admits = Rmdp::new().admit(&tasks, &Dedicated).is_ok();
        let found = planned(&tasks);
        assert_eq!(found.admitted, admits, "{tasks:?}");
        for line in &found.lines {
            let bound = line.bound_ns.unwrap_or(u64::MAX);
            assert!(line.observed_max_ns <= Some(bound), "{line:?} {tasks:?}");
        }
        outcomes[usize::from(admits)] += 1;
        // What regions it names it admits, all together.
        let named = |task: &Task| {
            let mut lines = found.lines.iter();
            lines.find_map(|line| {
                let is_it = line.cost_ns == Some(task.cost().as_nanos())
                    && line.period_ns == Some(task.period().as_nanos());
                let longest = Service::from_nanos(line.longest_region_ns.filter(|_| is_it)?);
                let task = task.without_regions();
                Some(match longest {
                    Service::ZERO => task,
                    longest => task
                        .with_preemption(Preemption::Floating { longest })
                        .ok()?,
                })
            })
        };
        let with: Option<Vec<Task>> = tasks.iter().map(named).collect();
        if let Some(with) = with.filter(|_| admits) {
            assert!(planned(&with).admitted, "{with:?}");
            outcomes[2] += 1;
        }
    }
    assert!(outcomes.iter().all(|count| *count > 30), "{outcomes:?}");
}
