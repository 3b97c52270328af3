//! Plans of task sets on several processors: who is placed where, what is guaranteed, and threads of `SCHED_DEADLINE`.

use laxity_lab::import::{Format, Policy, SetTask, read};
use laxity_lab::plan::set::{Options, PartitionPlan, Scheduler, plan, render};
use laxity_model::analysis::supply::Dedicated;
use laxity_model::analysis::{Task, edf};
use laxity_model::{Service, Span};

use crate::random_sets::{cases, random, set_of};

#[test]
fn threads_of_sched_deadline_are_on_all_processors_and_may_be_late() {
    let thread = |name: &str, runtime: u32, period: u32| {
        format!(
            "\"{name}\": {{ \"policy\": \"SCHED_DEADLINE\", \"dl-runtime\": {runtime}, \"dl-period\": {period}, \"run\": {runtime}, \"timer\": {{ \"ref\": \"unique\", \"period\": {period} }} }}"
        )
    };
    let low = "\"low\": { \"policy\": \"SCHED_FIFO\", \"priority\": 5, \"run\": 500, \"timer\": { \"ref\": \"unique\", \"period\": 20000 } }";
    let two = |tasks: &[String]| {
        let text = format!("{{ \"tasks\": {{ {} }} }}", tasks.join(", "));
        let set = read(&text, "x.json", Format::RtApp).expect("a task set");
        let options = Options {
            processors: Some(2),
            ..Options::default()
        };
        plan(&set, &options).expect("a plan")
    };
    // Two light ones go first on both processors, and the heavy one is complete at 11, not by 10.5 (Dhall's effect).
    let (a, b) = (thread("a", 2_000, 10_000), thread("b", 2_000, 10_000));
    let heavy = thread("heavy", 9_000, 10_500);
    let late = two(&[a.clone(), b.clone(), heavy, low.into()]);
    let threads = &late.processors[0];
    assert_eq!((threads.processor, threads.lines.len()), (None, 3));
    let heavy = &threads.lines[2];
    assert!(heavy.bound_ns >= Some(11_000_000), "{heavy:?}");
    assert!(render(&late, 100).contains("deadlines can be missed"));
    // Together they might take all of one processor.
    let low_there = &late.processors[1].lines[0];
    let why = low_there.no_bound.as_deref().expect("a reason");
    assert!(
        why.contains("all of one processor") && !late.admitted,
        "{why}"
    );
    // Light ones alone are never late; whoever is below waits for both at most, each as late as it may be and once more.
    let fine = two(&[a, b, low.into()]);
    assert!(fine.admitted);
    let threads = &fine.processors[0];
    assert!(
        threads
            .lines
            .iter()
            .all(|task| task.bound_ns == Some(10_000_000))
    );
    assert_eq!(fine.processors[1].lines[0].bound_ns, Some(8_500_000));
}

#[test]
fn tasks_on_no_processor_are_placed_where_they_are_admitted() {
    let text = "name,cost_ms,period_ms,processor\na,6,10,\nb,6,10,\nc,3,10,0\nd,3,10,\n";
    let set = read(text, "x.csv", Format::Csv).expect("a task set");
    let options = Options::default();
    assert!(!plan(&set, &options).expect("a plan").admitted);
    let options = Options {
        processors: Some(2),
        ..options
    };
    let two = plan(&set, &options).expect("a plan");
    assert!(two.admitted);
    let names = |place: usize| -> Vec<&str> {
        two.processors[place]
            .lines
            .iter()
            .map(|task| task.name.as_str())
            .collect()
    };
    assert_eq!((names(0), names(1)), (vec!["a", "c"], vec!["b", "d"]));
    assert!(two.notes[0].contains("first fit"), "{:?}", two.notes);
    let text = "cost_ms,period_ms,processor\n6,10,3\n";
    let set = read(text, "x.csv", Format::Csv).expect("a task set");
    let wrong = plan(&set, &options).expect_err("there is no processor 3");
    assert!(wrong.to_string().contains("processor 3, and there are 2"));
}

#[test]
fn on_several_processors_what_is_planned_is_first_fit_and_what_is_guaranteed_fits() {
    let (mut compared, mut guaranteed, mut late) = (0_u64, 0_u64, 0_u64);
    for seed in 0..cases() {
        let mut set = random(seed);
        for task in &mut set.tasks {
            task.policy = Policy::Unsaid;
            // Every other set is of the kind that guarantees are made for.
            if let (Ok(work), true) = (&task.work, seed % 2 == 0) {
                task.work = Ok(Task::new(work.cost(), work.period()).expect("a task"));
            }
        }
        for scheduler in [Scheduler::Auto, Scheduler::Edf, Scheduler::FixedPriority] {
            let options = Options {
                scheduler,
                observe: false,
                processors: Some(2 + (seed % 2) as u16),
                ..Options::default()
            };
            let found = plan(&set, &options).expect("no overflow");
            let several = found.on_several.as_ref().expect("more than one");
            let first = &several.partitionings[0];
            if first.misfit.is_none() {
                assert!(found.admitted, "seed {seed}");
                for placed in &found.processors {
                    let mut names: Vec<&String> = placed.lines.iter().map(|t| &t.name).collect();
                    names.sort();
                    let number = placed.processor.expect("one of them");
                    let mut expected: Vec<&String> =
                        first.processors[usize::from(number)].iter().collect();
                    expected.sort();
                    assert_eq!(names, expected, "seed {seed}");
                }
                compared += 1;
            }
            let fits = |line: &PartitionPlan| line.misfit.is_none();
            if several.is_guaranteed {
                assert!(several.partitionings.iter().all(fits), "seed {seed}");
                guaranteed += 1;
            }
            let latest = several.tardiness.iter().map(|line| line.tardiness_ns).max();
            if several.global_edf.verdict == "admits" {
                assert_eq!(latest.unwrap_or(0), 0, "seed {seed}");
            }
            late += u64::from(latest > Some(0));
        }
    }
    println!(
        "{compared} first fits compared, {guaranteed} guaranteed, {late} late by a bounded time"
    );
    assert!(compared > cases() && guaranteed > cases() / 4 && late > 0);
}

#[test]
fn a_task_that_fits_nowhere_fits_with_what_is_said_to_be_left() {
    // Three of two thirds on two processors.
    let set = |cost_us: u64| {
        let text = format!("name,cost_us,period_ms\na,6000,9\nb,6000,9\nc,{cost_us},9\n");
        read(&text, "x.csv", Format::Csv).expect("a task set")
    };
    let options = Options {
        processors: Some(2),
        ..Options::default()
    };
    let refused = plan(&set(6_000), &options).expect("a plan");
    assert!(!refused.admitted);
    let several = refused.on_several.expect("two");
    for line in &several.partitionings {
        let misfit = line.misfit.as_ref().expect("no room for three");
        assert_eq!(misfit.task, "c");
        assert_eq!(misfit.largest_cost_ns, Some(3_000_000));
        assert_eq!(misfit.missing_ns, Some(3_000_000));
    }
    // All are equally long, so that x is nothing: late by their own C at most, though both processors are full.
    let late: Vec<u64> = several
        .tardiness
        .iter()
        .map(|line| line.tardiness_ns)
        .collect();
    assert_eq!(late, [6_000_000; 3]);
    assert_eq!(several.kernel.verdict, "refuses");
    assert!(
        several.kernel.detail.contains("`c` gets EBUSY"),
        "{}",
        several.kernel.detail
    );
    assert!(plan(&set(3_000), &options).expect("a plan").admitted);
}

#[test]
fn a_processor_for_a_thread_of_sched_deadline_is_noted_as_what_the_kernel_refuses() {
    let thread = "\"a\": { \"policy\": \"SCHED_DEADLINE\", \"dl-runtime\": 2000, \"dl-period\": 10000, \"cpus\": [0], \"run\": 2000, \"timer\": { \"ref\": \"unique\", \"period\": 10000 } }";
    let text = format!("{{ \"tasks\": {{ {thread} }} }}");
    let set = read(&text, "x.json", Format::RtApp).expect("a task set");
    for (processors, word, home) in [(1, "exclusive cpuset", Some(0)), (2, "run on any", None)] {
        let options = Options {
            processors: Some(processors),
            ..Options::default()
        };
        let found = plan(&set, &options).expect("a plan");
        let mut notes = found.notes.iter();
        let note = notes.find(|note| note.contains("EPERM")).expect("a note");
        assert!(note.contains(word), "{note}");
        assert_eq!(found.processors[0].processor, home);
    }
}

#[test]
fn numbers_at_the_end_of_what_can_be_counted_are_planned_or_refused() {
    let ends = [1, 2, u64::MAX / 8, u64::MAX / 2 + 1, u64::MAX];
    let mut planned = 0;
    for cost in ends {
        for period in ends {
            for (deadline, jitter) in [(1, 0), (period, u64::MAX), (u64::MAX, 1)] {
                let task = Task::new(Service::from_nanos(cost), Span::from_nanos(period));
                let task = task.and_then(|task| task.with_deadline(Span::from_nanos(deadline)));
                let task = task.expect("a task").with_jitter(Span::from_nanos(jitter));
                let set = set_of(vec![(Policy::Unsaid, task); 2]);
                for scheduler in [Scheduler::Auto, Scheduler::Edf, Scheduler::Rmdp] {
                    let options = Options {
                        scheduler,
                        ..Options::default()
                    };
                    planned += u32::from(plan(&set, &options).is_ok());
                }
            }
        }
    }
    assert!(planned > 0);
}

/// First fit puts `t1` beside `t0`, and then two of three are left nowhere; the emptiest processor is right each time.
#[test]
fn where_first_fit_fails_others_are_tried_before_a_refusal() {
    let text =
        "name,cost_ms,period_ms,deadline_ms\nt0,1,5,1\nt1,1,4,4\nt2,3,10,10\nt3,2,6,3\nt4,3,12,3\n";
    let set = read(text, "x.csv", Format::Csv).expect("a task set");
    let options = Options {
        processors: Some(2),
        ..Options::default()
    };
    let found = plan(&set, &options).expect("a plan");
    assert!(found.admitted, "{}", render(&found, 100));
    let placed = "placed by worst fit, the most demanding first";
    assert!(
        found.notes.iter().any(|note| note.ends_with(placed)),
        "{:?}",
        found.notes
    );
}

/// Three ways of placing one after the other are wrong here, and some other is right.
#[test]
fn where_no_heuristic_places_all_every_way_is_tried_before_a_refusal() {
    let due_later = "name,cost_ms,period_ms\na,5,10\nb,4.5,10\nc,4,10\nd,3.5,10\ne,2,10\nf,1,10\n";
    let due_sooner = "name,cost_ms,period_ms,deadline_ms\nt0,2,4,3\nt1,1,4,2\nt2,1,2,1\nt3,1,4,1\n";
    let options = Options {
        processors: Some(2),
        scheduler: Scheduler::Edf,
        ..Options::default()
    };
    let found = |text: &str, how: &str| {
        let set = read(text, "x.csv", Format::Csv).expect("a task set");
        let found = plan(&set, &options).expect("a plan");
        let said = found.notes.iter().any(|note| note.ends_with(how));
        assert!(said, "{:?}", found.notes);
        found
    };
    for text in [due_later, due_sooner] {
        let found = found(text, "looking for a way in which all fit");
        assert!(found.admitted, "{}", render(&found, 100));
    }
    let more = due_later.replace("f,1,", "f,1.1,");
    let found = found(&more, "there is no way in which all fit");
    assert!(!found.admitted && !found.unknown);
}

/// Refused is what fits in no way, by the test of one processor for each; what fits in one is admitted.
#[test]
fn who_is_refused_on_two_processors_fits_on_them_in_no_way() {
    let admits = |tasks: &[Task]| {
        let verdict = edf::test(tasks, &Dedicated).expect("small numbers");
        tasks.is_empty() || verdict.is_schedulable()
    };
    let options = Options {
        processors: Some(2),
        scheduler: Scheduler::Edf,
        observe: false,
        ..Options::default()
    };
    let (mut fitting, mut refused) = (0_u64, 0_u64);
    for seed in 0..2 * cases() {
        let mut set = random(seed);
        // As much again, so that it is a matter of places.
        let again: Vec<SetTask> = set.tasks.clone();
        set.tasks.extend(again.into_iter().map(|task| SetTask {
            name: format!("{} again", task.name),
            ..task
        }));
        for task in &mut set.tasks {
            task.policy = Policy::Unsaid;
        }
        let works = set.tasks.iter().flat_map(|task| task.work.clone());
        let all: Vec<Task> = works.collect();
        let way = (0..1_u32 << all.len()).any(|mask| {
            let those = |there: bool| -> Vec<Task> {
                let of_mask = |at: &usize| (mask >> at & 1 == 1) == there;
                let places = (0..all.len()).filter(of_mask);
                places.map(|at| all[at]).collect()
            };
            admits(&those(false)) && admits(&those(true))
        });
        let found = plan(&set, &options).expect("no overflow");
        if found.unknown {
            continue;
        }
        assert_eq!(found.admitted, way, "seed {seed}: {}", render(&found, 100));
        fitting += u64::from(way);
        refused += u64::from(!way);
    }
    println!("{fitting} fit in some way, {refused} are refused");
    assert!(fitting > 0 && refused > 0);
}

/// A thread that may run on two processors is placed on one of them, and there are both.
#[test]
fn who_may_run_on_several_processors_is_placed_on_one_of_them() {
    let thread = |name: &str, cpus: &str| {
        format!(
            "\"{name}\": {{ \"policy\": \"SCHED_FIFO\", \"priority\": 10, \"cpus\": {cpus}, \"run\": 4000, \"timer\": {{ \"ref\": \"unique\", \"period\": 5000 }} }}"
        )
    };
    let of = |threads: [String; 2]| {
        let text = format!("{{ \"tasks\": {{ {} }} }}", threads.join(", "));
        let set = read(&text, "x.json", Format::RtApp).expect("a task set");
        plan(&set, &Options::default()).expect("a plan")
    };
    let found = of([thread("a", "[0, 1]"), thread("b", "[0]")]);
    assert!(found.admitted, "{}", render(&found, 100));
    let found = of([thread("a", "[1, 2]"), thread("b", "[0]")]);
    assert!(found.admitted, "{}", render(&found, 100));
    let place = |number: usize| {
        let here = &found.processors[number];
        (here.processor, here.lines[0].name.as_str())
    };
    assert_eq!([0, 1].map(place), [(Some(0), "b"), (Some(1), "a")]);
    let found = of([thread("a", "[0, 1]"), thread("b", "[0, 1]")]);
    assert!(found.admitted, "{}", render(&found, 100));
}
