//! Tasks that take turns by rate on a thread without a reservation: a plan's lines and what their executor says of them.
//!
//! `LAXITY_CASES` multiplies how many are looked at (default 1: 80).

use laxity_lab::machine_file::Known;
use laxity_lab::plan::scenario::{Plan, VariantPlan, plan, render};
use laxity_lab::plan::{Deadline, Line};
use laxity_lab::runner::{On, Silent};
use laxity_lab::scenario::{Length, parse};
use rand::RngExt;
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

fn planned(text: &str, observe: bool) -> Plan {
    let scenario = parse(text, "turns.toml");
    let scenario = scenario.unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
    plan(
        &scenario.resolve(Length::Quick),
        (On::Twin { threads: 0 }, observe),
        &Known::Nothing,
        &mut Silent,
    )
    .expect("a plan")
}

/// An executor by rate at this priority, with tasks of so many milliseconds every so many, each looking after every so many of them.
fn turns(priority: u8, tasks: &[(u64, u64, u64)]) -> String {
    let mut text = format!(
        "[quick]\nidle = \"2s\"\n[executors.media]\npolicy = \"rmdp\"\nplacement = \"thread {priority}\"\n"
    );
    for (place, (service, period, quantum)) in tasks.iter().enumerate() {
        text += &format!(
            "[tasks.t{place}]\nkind = \"periodic\"\nperiod = \"{period}ms\"\nservice = \"{service}ms\"\non = \"media\"\nbatch = {service}\nquantum = {quantum}\n"
        );
    }
    text
}

fn line<'a>(variant: &'a VariantPlan, name: &str) -> &'a Line {
    let found = variant.lines.iter().find(|line| line.name == name);
    found.expect("its line")
}

/// The most urgent waits for a quantum of the others, and not for a job of each.
const SET: [(u64, u64, u64); 3] = [(2, 10, 1), (7, 25, 2), (10, 70, 3)];

#[test]
fn a_line_is_what_the_executor_says_and_what_the_machine_and_those_above_take() {
    let above =
        "[tasks.above]\nkind = \"periodic\"\nperiod = \"40ms\"\nservice = \"1ms\"\npriority = 31\n";
    for (beside, taken_ms) in [("", 0), (above, 1)] {
        let text = turns(28, &SET) + beside + "[variants.v]\ncontracts = []\n";
        let plan = planned(&text, true);
        let (variant, said) = (&plan.variants[0], render(&plan, 100));
        assert!(!said.contains("not known to be met"), "{said}");
        let executor = &variant.executors[0];
        assert_eq!(executor.bounds.len(), SET.len(), "{said}");
        for (name, promised_ns) in &executor.bounds {
            let line = line(variant, name);
            assert_eq!(line.deadline, Some(Deadline::Met), "{said}");
            let beyond = line.bound_ns.expect("a bound").checked_sub(*promised_ns);
            // The clock, at each of its ticks, and switches.
            let most = (taken_ms + 1) * 1_000_000;
            assert!(beyond.is_some_and(|ns| (1..most).contains(&ns)), "{said}");
        }
        assert!(!plan.is_contradicted(), "{said}");
    }
}

/// Where a chain's executor says in which time it is over, its line does.
#[test]
fn a_chain_without_a_reservation_has_a_bound() {
    let text = turns(28, &SET[..1])
        + "[tasks.next]\nkind = \"periodic\"\nafter = \"t0\"\nservice = \"3ms\"\non = \"media\"\n[variants.v]\ncontracts = []\n";
    let plan = planned(&text, true);
    let (variant, said) = (&plan.variants[0], render(&plan, 100));
    let promised = variant.executors[0].bounds.iter();
    for (name, promised_ns) in promised {
        let bound_ns = line(variant, name).bound_ns;
        assert!(bound_ns > Some(*promised_ns), "{said}");
    }
    assert_eq!(line(variant, "next").deadline, Some(Deadline::Met));
    assert!(!plan.is_contradicted(), "{said}");
}

/// What the executor cannot promise on a processor of its own, or what those above leave too little for, is not promised by a line.
#[test]
fn who_is_late_by_turns_is_not_said_to_be_in_time() {
    let above =
        "[tasks.above]\nkind = \"periodic\"\nperiod = \"10ms\"\nservice = \"5ms\"\npriority = 31\n";
    let spinner = "[tasks.above]\nkind = \"spinner\"\ncount = 1\npriority = 31\n";
    for beside in [above, spinner] {
        let text = turns(28, &SET) + beside + "[variants.v]\ncontracts = []\n";
        let plan = planned(&text, false);
        let last = line(&plan.variants[0], "t2");
        assert_ne!(last.deadline, Some(Deadline::Met), "{last:?}");
    }
}

#[test]
fn random_turns_beside_others_keep_the_bounds_of_their_lines() {
    let factor = std::env::var("LAXITY_CASES").ok();
    let factor: u64 = factor.and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut sooner = 0;
    for seed in 0..80 * factor {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let count = random.random_range(2..=4_u64);
        let load = random.random_range(40..=95_u64);
        let mut tasks = Vec::new();
        for _ in 0..count {
            let period = random.random_range(6..=60_u64);
            let service = (period * load / count / 100).max(1);
            tasks.push((service, period, random.random_range(1..=service)));
        }
        let mut text = turns(random.random_range(16..=30), &tasks);
        for name in ["p", "q"] {
            let period = random.random_range(5..=40_u64) * 1_000;
            let service = period * random.random_range(10..=150) / 1_000;
            let priority = random.random_range(9..=31);
            text += &format!(
                "[tasks.{name}]\nkind = \"periodic\"\nperiod = \"{period}us\"\nservice = \"{service}us\"\npriority = {priority}\n"
            );
        }
        text += "[variants.v]\ncontracts = []\n";
        let plan = planned(&text, true);
        assert!(
            !plan.is_contradicted(),
            "{seed}: {text}\n{}",
            render(&plan, 100)
        );
        let variant = &plan.variants[0];
        let turns = variant
            .lines
            .iter()
            .filter(|line| line.name.starts_with('t'));
        let is_whole = variant.executors[0].grade.is_some();
        sooner += turns
            .filter(|line| is_whole && line.deadline == Some(Deadline::Met))
            .count();
    }
    assert!(sooner >= 100, "{sooner}");
}

/// Half of the processor and half of it is all there is, and the switches come on top: that is told.
#[test]
fn what_the_machine_takes_is_told_where_the_work_alone_would_fit() {
    let said = |service: &str| {
        let task = |name: &str| {
            format!(
                "[tasks.{name}]\nkind = \"periodic\"\nperiod = \"20ms\"\nservice = \"{service}\"\non = \"media\"\n"
            )
        };
        let executor = "[executors.media]\npolicy = \"edf\"\nplacement = \"thread 28\"\n";
        let text = format!(
            "{executor}{}{}[variants.v]\ncontracts = []\n",
            task("a"),
            task("b")
        );
        let said = render(&planned(&text, false), 1_000);
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let besides =
        "their work alone is no more than that, but the machine takes 8us for each job besides";
    assert!(said("10ms").contains(besides), "{}", said("10ms"));
    assert!(!said("10.1ms").contains(besides), "{}", said("10.1ms"));
}
