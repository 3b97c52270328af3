//! What a plan rests it on that a deadline is met or can be missed.

use laxity_lab::plan::scenario::{self as scenarios, VariantPlan};
use laxity_lab::plan::{Deadline, Line};

use super::{of_devices, of_tasks, periodic, unbroken};

fn line<'p>(variant: &'p VariantPlan, name: &str) -> &'p Line {
    let mut lines = variant.lines.iter();
    lines.find(|line| line.name == name).expect("its line")
}

/// A thread above wakes no more than once a tick, and no more than once a period: neither of the two alone is what it may take.
#[test]
fn who_is_below_a_thread_that_comes_seldom_waits_for_what_that_does() {
    let quick = "[quick]\nidle = \"5s\"\n";
    let above = periodic("above", ("790us", "100ms"), 25);
    let player = "[devices.audio]\nkind = \"audio\"\nload = \"17.5 %\"\n";
    let text = format!("{player}{above}[variants.v]\nplacement = \"thread 20\"\n{quick}");
    let (variant, headline) = of_devices(&text);
    assert_eq!(headline, "v: nothing to admit");
    let bound_ns = line(&variant, "audio player thread").bound_ns;
    assert!(bound_ns <= Some(5_000_000), "{bound_ns:?}");

    let above = periodic("above", ("785us", "7ms"), 25);
    let executor = "[executors.e]\npolicy = \"rmdp\"\nplacement = \"thread 20\"\n";
    let turn = "[tasks.turn]\nkind = \"periodic\"\nservice = \"1165us\"\non = \"e\"\nperiod = \"8ms\"\ndeadline = \"5952us\"\n";
    let (variant, headline) = of_devices(&format!("{executor}{turn}{above}[variants.v]\n{quick}"));
    assert_eq!(headline, "v: nothing to admit");
    assert_eq!(line(&variant, "turn").deadline, Some(Deadline::Met));

    // What it does once in its period is a proof: 0.5 ms and 4.4 are more than 4.5, whatever the machine takes.
    let late = periodic("late", ("4.4ms", "20ms"), 20) + "deadline = \"4.5ms\"\n";
    let plan = of_tasks(&(periodic("above", ("500us", "20ms"), 25) + &late));
    let late = line(&plan.variants[0], "late");
    assert_eq!(late.deadline, Some(Deadline::CanBeMissed), "{late:?}");
}

/// It is a bound that two jobs above come a tick closer together than their period, and no proof; and no proof at all that one comes each tick.
#[test]
fn that_a_thread_could_come_each_tick_proves_no_miss() {
    let above = periodic("above", ("785us", "7ms"), 25);
    let executor = "[executors.e]\npolicy = \"rmdp\"\nplacement = \"thread 20\"\n";
    let turn = "[tasks.turn]\nkind = \"periodic\"\nservice = \"5.5ms\"\non = \"e\"\nperiod = \"100ms\"\ndeadline = \"7.7ms\"\n";
    let plan = of_tasks(&format!("{executor}{turn}{above}"));
    let found = line(&plan.variants[0], "turn");
    assert!(found.bound_ns > found.deadline_ns, "{found:?}");
    assert_eq!(found.deadline, Some(Deadline::NotKnown), "{found:?}");
}

/// Members of a group that are as urgent get no more at once than its budget, however long their jobs are.
#[test]
fn who_is_as_urgent_as_a_group_does_not_wait_for_more_than_its_budget() {
    let group = "[groups.g]\nbudget = \"1ms\"\nperiod = \"20ms\"\n[executors.grouped]\npolicy = \"rmdp\"\nplacement = \"thread 16\"\n[tasks.long]\nkind = \"periodic\"\nperiod = \"5ms\"\nservice = \"4.9ms\"\nbatch = 49\non = \"grouped\"\ngroup = \"g\"\n";
    let executor = "[executors.e]\npolicy = \"rmdp\"\nplacement = \"thread 16\"\n[tasks.t]\nkind = \"periodic\"\nperiod = \"5ms\"\nservice = \"200us\"\non = \"e\"\n";
    for equal in [executor.to_owned(), periodic("t", ("200us", "5ms"), 16)] {
        let quick = "[quick]\nidle = \"5s\"\n";
        let (variant, headline) = of_devices(&format!("{group}{equal}[variants.v]\n{quick}"));
        let unknown = "; 1 deadline is not known to be met: `t`";
        assert!(headline.ends_with(unknown), "{headline}");
        let found = line(&variant, "t");
        assert!(found.observed_max_ns < found.deadline_ns, "{found:?}");
        assert!(found.no_proof.is_some() && !found.grows, "{found:?}");
    }
}

/// Equals that ask for more than there is leave out what they miss: one waits for a job of the other, and no longer each time.
#[test]
fn who_is_late_behind_one_job_of_an_equal_is_not_later_and_later() {
    let tasks = periodic("a", ("3ms", "5ms"), 20) + &periodic("b", ("3ms", "6ms"), 20);
    let plan = of_tasks(&tasks);
    for name in ["a", "b"] {
        let found = line(&plan.variants[0], name);
        assert_eq!(found.deadline, Some(Deadline::CanBeMissed), "{found:?}");
        assert!(!found.grows, "{found:?}");
    }
    let text = unbroken(&scenarios::render(&plan, 100));
    let headline = "x: nothing to admit; 2 deadlines can be missed: `a`, `b` activity";
    assert!(text.contains(headline), "{text}");
    let why = "it and what goes first ask for more than there is, if all go first who may";
    assert!(text.contains(why), "{text}");
}

/// What one executor promises does not depend on that another one is refused.
#[test]
fn what_an_executor_promises_holds_beside_one_that_is_refused() {
    let executor = |name: &str, policy: &str| {
        format!(
            "[executors.{name}]\npolicy = \"{policy}\"\nplacement = \"reserved 3ms/20ms\"\noutside = \"confined\"\n"
        )
    };
    let chain = "[tasks.a]\nkind = \"periodic\"\nperiod = \"40ms\"\nservice = \"0.2ms\"\non = \"kept\"\n[tasks.b]\nkind = \"periodic\"\nservice = \"0.4ms\"\non = \"kept\"\nafter = \"a\"\n";
    let more =
        "[tasks.c]\nkind = \"periodic\"\nperiod = \"20ms\"\nservice = \"5ms\"\non = \"little\"\n";
    let both = executor("kept", "rmdp") + &executor("little", "edf");
    let plan = of_tasks(&(both + chain + more));
    let variant = &plan.variants[0];
    assert!(!variant.admitted);
    let mut executors = variant.executors.iter();
    let kept = executors.find(|executor| executor.executor == "kept");
    let kept = kept.expect("what it promises");
    assert_eq!(kept.grade.as_deref(), Some("enforced"));
    for (task, bound_ns) in &kept.bounds {
        let found = line(variant, task);
        assert_eq!(found.deadline, Some(Deadline::Met), "{found:?}");
        assert_eq!(found.bound_ns, Some(*bound_ns));
    }
    assert_eq!(kept.bounds.len(), 2);
    let refused = line(variant, "c").deadline;
    assert_eq!(refused, Some(Deadline::CanBeMissed));
}
