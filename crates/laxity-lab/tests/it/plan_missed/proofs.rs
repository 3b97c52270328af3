//! What a plan rests it on that a deadline is met or can be missed.

use laxity_lab::plan::scenario::VariantPlan;
use laxity_lab::plan::{Deadline, Line};

use super::{of_devices, of_tasks, periodic};

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
