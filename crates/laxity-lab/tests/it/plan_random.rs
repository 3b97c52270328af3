//! Plans of random scenarios: modems, reservations with tasks inside, and all that competes with them. What the twin shows is within its bound, and
//! what is promised is kept.
//!
//! `LAXITY_CASES` multiplies how many are looked at (default 1: 240).

use laxity_lab::evidence::results::VariantResults;
use laxity_lab::machine_file::Known;
use laxity_lab::plan::scenario::{Plan, plan, render};
use laxity_lab::plan::{Deadline, Line};
use laxity_lab::runner::{self, On, Silent};
use laxity_lab::scenario::{Length, Resolved, parse};

use crate::random_scenarios::{Shape, random};

const TWIN: On = On::Twin { threads: 0 };

fn resolved(text: &str, seed: u64) -> Resolved {
    let scenario = parse(text, "random.toml");
    let mut resolved = scenario
        .unwrap_or_else(|errors| panic!("{errors:?}\n{text}"))
        .resolve(Length::Quick);
    resolved.seed = seed;
    resolved
}

fn planned(text: &str, seed: u64) -> Plan {
    let resolved = resolved(text, seed);
    plan(&resolved, (TWIN, true), &Known::Nothing, &mut Silent).expect("a plan")
}

/// What the modems of a scenario lose in the twin.
fn lost(text: &str, seed: u64) -> u64 {
    let run = runner::run(&resolved(text, seed), TWIN, Vec::new(), &mut Silent);
    let results = run.expect("a run").results;
    let modems = results.variants.iter().flat_map(VariantResults::modems);
    modems.map(|(_, modem)| modem.device.lost()).sum()
}

/// The answers to the deadlines of a modem's calls, by phase.
fn calls(plan: &Plan) -> Vec<(&str, Option<Deadline>)> {
    let lines = plan.variants[0].lines.iter();
    let calls = lines.filter_map(|line| Some((line.phase.as_deref()?, line.deadline)));
    calls.collect()
}

fn factor() -> u64 {
    let factor = std::env::var("LAXITY_CASES").ok();
    factor.and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// What was seen of these lines, if it is within the bounds; and how many could be compared.
fn within(plan: &Plan, text: &str) -> usize {
    let lines: Vec<&Line> = plan.variants.iter().flat_map(|v| &v.lines).collect();
    let seen = lines.iter().filter_map(|line| {
        let (bound, seen) = (line.bound_ns?, line.observed_max_ns?);
        assert!(seen <= bound, "{line:?}\n{text}\n{}", render(plan, 100));
        Some(())
    });
    seen.count()
}

/// Nobody takes more of anybody's time than that lasts; returns whose culprits were looked at.
fn culprits(plan: &Plan, text: &str) -> usize {
    let named = plan.variants.iter().filter_map(|variant| {
        let found = variant.bottleneck.as_ref()?;
        let mut lines = variant.lines.iter();
        let line = lines.find(|line| line.name == found.name && line.phase == found.phase)?;
        // Where there is no bound, it is looked at until it is due.
        let is_within = line.bound_ns.or(line.deadline_ns) >= Some(found.contribution_ns);
        assert!(is_within, "{found:?}\n{text}\n{}", render(plan, 100));
        Some(())
    });
    named.count()
}

/// Tasks on executors that are promised to meet their deadlines, and how many of them were seen to.
fn promised(plan: &Plan, text: &str) -> usize {
    let variant = &plan.variants[0];
    let enforced = |executor: &&laxity_lab::plan::scenario::ExecutorPlan| {
        executor.grade.as_deref() == Some("enforced")
    };
    let executors = variant.executors.iter().filter(enforced);
    let names = executors.flat_map(|executor| &executor.tasks);
    let lines = names.filter_map(|name| variant.lines.iter().find(|line| line.name == *name));
    let kept = lines.filter(|line| {
        let in_time = line.observed_max_ns <= line.deadline_ns;
        assert!(in_time, "{line:?}\n{text}\n{}", render(plan, 100));
        line.observed_jobs > 0
    });
    kept.count()
}

/// A device and its calls have one answer, where its reservation is enforced: who is served is late nowhere, and of equal calls in time the device is served.
fn agreed(plan: &Plan, text: &str) {
    let variant = &plan.variants[0];
    for device in &variant.devices {
        let mut requests = variant.requests.iter();
        let request = requests.find(|request| request.activity == device.activity);
        let grade = request.and_then(|request| request.offers[0].grade.as_deref());
        let lines = variant.lines.iter();
        let lines = lines.filter(|line| line.name == device.activity && grade == Some("enforced"));
        for line in lines.filter(|line| line.phase.as_deref() != Some("on-hook")) {
            let is_met = line.deadline == Some(Deadline::Met);
            let both = format!("{device:?}\n{line:?}\n{text}");
            assert!(is_met || !device.is_served(), "{both}");
            let is_late = device.answer == "too late";
            assert!(!is_met || !is_late || line.phase.is_some(), "{both}");
        }
    }
}

fn look(shape: Shape, seeds: u64) -> (usize, usize) {
    let (mut compared, mut kept) = (0, 0);
    for seed in 0..seeds * factor() {
        let text = random(seed, shape);
        let plan = planned(&text, seed + 1);
        culprits(&plan, &text);
        if plan.admitted() {
            agreed(&plan, &text);
            compared += within(&plan, &text);
            kept += promised(&plan, &text);
        }
    }
    (compared, kept)
}

/// A task that keeps a modem in a thread below it waiting, and one before it has its reservation, for longer than its output is ahead.
const HOLDS_UP: &str = "[tasks.p]\nkind = \"periodic\"\nperiod = \"40ms\"\nservice = \"14ms\"\npriority = 30\nphase = \"50ms\"\n";

fn held_up(load: u64, placement: &str) -> String {
    format!(
        "[devices.m]\nkind = \"soft-modem\"\nload = \"{load} %\"\n{HOLDS_UP}[variants.a]\ncontracts = []\ntasks = [\"p\"]\n{placement}\n"
    )
}

#[test]
fn a_call_whose_first_piece_may_be_late_is_not_said_to_be_met() {
    let thread = held_up(10, "placement = \"thread 24\"");
    let reserved = held_up(24, "placement = \"reserved 2.45ms/8ms\"\npriority = 20");
    for (text, expected) in [
        (&thread, &["on-hook", "dialing", "connected"][..]),
        (&reserved, &["on-hook"]),
    ] {
        assert!(lost(text, 1) > 0, "{text}");
        let plan = planned(text, 1);
        let open = calls(&plan).into_iter();
        let open = open.filter(|(_, deadline)| *deadline != Some(Deadline::Met));
        let open: Vec<_> = open.map(|(phase, _)| phase).collect();
        for phase in expected {
            assert!(open.contains(phase), "{open:?}\n{text}");
        }
    }
}

/// Beside a task above it a modem loses nothing of which all is met, whether it runs in a thread or in slots.
#[test]
fn a_modem_whose_calls_are_all_met_loses_nothing() {
    let (mut met, mut open) = (0, 0);
    for service in [2, 6, 9, 11, 12, 13, 14] {
        for (load, placement) in [
            (3, "placement = \"thread 24\""),
            (24, "placement = \"thread 24\""),
            (24, "placement = \"reserved 3ms/8ms\"\npriority = 20"),
        ] {
            let task = format!("service = \"{service}ms\"");
            let text = held_up(load, placement).replace("service = \"14ms\"", &task);
            let plan = planned(&text, 1);
            let mut all = calls(&plan).into_iter();
            if plan.admitted() && all.all(|(_, deadline)| deadline == Some(Deadline::Met)) {
                met += 1;
                for seed in 1..=2 {
                    assert_eq!(lost(&text, seed), 0, "{text}\n{}", render(&plan, 100));
                }
            } else {
                open += 1;
            }
        }
    }
    assert!(met >= 5 && open >= 3, "{met} {open}");
}

/// What an executor that promises firmly says of a task in a chain, and what it says of one that others may break.
#[test]
fn what_is_said_of_a_chain_is_within_its_promise() {
    let chain = |placement: &str| {
        format!(
            "[executors.x]\npolicy = \"rmdp\"\nplacement = \"{placement}\"\n[tasks.a]\nkind = \"periodic\"\nperiod = \"50ms\"\nservice = \"10ms\"\nphase = \"50ms\"\non = \"x\"\n[tasks.b]\nkind = \"periodic\"\nafter = \"a\"\nservice = \"15ms\"\non = \"x\"\n[variants.v]\ncontracts = []\ntasks = [\"a\", \"b\"]\n"
        )
    };
    for (placement, is_firm) in [("thread 31", false), ("reserved 7ms/8ms", true)] {
        let text = chain(placement);
        let plan = planned(&text, 1);
        let (variant, text) = (&plan.variants[0], render(&plan, 1_000));
        let executor = &variant.executors[0];
        assert_eq!(executor.grade.as_deref() == Some("enforced"), is_firm);
        let [(_, first), (_, last)] = &executor.bounds[..] else {
            panic!("{text}");
        };
        // The second begins when the first is done.
        assert!(first <= last && *last <= 50_000_000, "{text}");
        let apart =
            "in a chain that of its first) and beside what the machine and those above take: a";
        assert_eq!(text.contains(apart), !is_firm, "{text}");
        for (name, bound_ns) in executor.bounds.iter().filter(|_| is_firm) {
            let line = variant.lines.iter().find(|line| line.name == *name);
            assert!(line.is_some_and(|line| line.observed_max_ns <= Some(*bound_ns)));
        }
        assert!(!plan.is_contradicted(), "{text}");
    }
}

#[test]
fn tasks_in_reservations_beside_others_keep_their_bounds() {
    let (compared, kept) = look(Shape::Tasks, 120);
    assert!(compared >= 200 && kept >= 40, "{compared} {kept}");
}

#[test]
fn tasks_in_reservations_beside_a_modem_keep_their_bounds() {
    let (compared, kept) = look(Shape::BesideAModem, 60);
    assert!(compared >= 150 && kept >= 10, "{compared} {kept}");
}

#[test]
fn tasks_in_reservations_beside_devices_keep_their_bounds() {
    let (compared, kept) = look(Shape::BesideDevices, 90);
    assert!(compared >= 150 && kept >= 10, "{compared} {kept}");
}

/// A job that needs several slots has whoever runs below it pay a switch to it and one back for each of them.
#[test]
fn below_slots_each_slot_costs_its_switches() {
    let text = r#"
[quick]
idle = "700ms"
limit = "4s"
[devices]
player = { kind = "audio" }
modem = { kind = "soft-modem" }
[tasks.above]
kind = "periodic"
period = "34ms"
service = "8.477ms"
priority = 27
[tasks.rogue]
kind = "rogue"
burst = "2.27ms"
every = "39.483ms"
priority = 26
[variants.a]
contracts = []
tasks = ["above", "rogue"]
[variants.a.placement]
player = { placement = "reserved 365us/1500us", outside = "confined", before = 21 }
modem = { placement = "thread 21" }
"#;
    for seed in [1, 6, 7, 8] {
        assert!(within(&planned(text, seed), text) >= 11, "{seed}");
    }
}

/// Deferred calls that an interrupt handler holds up are served in one, and each is complete before those behind it.
#[test]
fn of_deferred_calls_in_one_each_has_its_own_end() {
    for load in [36, 60] {
        let text = format!(
            "[quick]\nidle = \"2s\"\nlimit = \"4s\"\n[devices]\na = {{ kind = \"radio\" }}\n
            m = {{ kind = \"soft-modem\", load = \"{load} %\" }}\n[variants.a]\ncontracts = []\n
            placement = {{ a = {{ placement = \"thread 26\" }}, m = {{ placement = \"interrupt\" }} }}\n"
        );
        let plan = planned(&text, 1);
        assert!(within(&plan, &text) >= 7);
        let mut lines = plan.variants[0].lines.iter();
        let jobs = |name| {
            let line = lines.find(|line| line.name == name);
            line.expect("its line").observed_jobs
        };
        let [handled, deferred] = ["a: radio interrupt", "a: radio deferred call"].map(jobs);
        assert!(handled - deferred <= 1, "{handled} {deferred}");
    }
}

/// Of tasks by rank alone, who takes most is who has most to do in the time of the bound.
#[test]
fn the_culprit_is_who_takes_most_of_the_bound() {
    const MS: u64 = 1_000_000;
    let cases: [[(u64, u64, u64); 3]; 4] = [
        // T, C and D in microseconds, from the top.
        [
            (4_000, 1_000, 4_000),
            (1_000_000, 1_200, 1_000_000),
            (40_000, 12_000, 17_000),
        ],
        [
            (500_000, 2_000, 500_000),
            (5_000, 2_000, 5_000),
            (40_000, 4_000, 12_600),
        ],
        [
            (33_000, 12_000, 33_000),
            (500_000, 1_000, 500_000),
            (13_000, 1_000, 13_000),
        ],
        [
            (20_000, 9_000, 20_000),
            (100_000, 500, 100_000),
            (8_000, 1_000, 8_000),
        ],
    ];
    for (tasks, culprit) in cases.into_iter().zip(["low", "often", "above", "above"]) {
        let names = match culprit {
            "often" => ["seldom", "often", "low"],
            "low" => ["often", "seldom", "low"],
            _ => ["above", "seldom", "low"],
        };
        let mut text = String::new();
        for ((name, (period, cost, due)), rank) in names.iter().zip(tasks).zip([31, 30, 24]) {
            text.push_str(&format!(
                "[tasks.{name}]\nkind = \"periodic\"\nperiod = \"{period}us\"\nservice = \"{cost}us\"\ndeadline = \"{due}us\"\npriority = {rank}\n"
            ));
        }
        text.push_str(&format!(
            "[variants.a]\ncontracts = []\ntasks = {names:?}\n"
        ));
        let plan = planned(&text, 1);
        assert_eq!(culprits(&plan, &text), 1);
        let found = plan.variants[0].bottleneck.as_ref().expect("one");
        assert_eq!(found.name, "low", "{}", render(&plan, 100));
        assert_eq!(
            found.contributor.as_deref(),
            Some(culprit),
            "{}",
            render(&plan, 100)
        );
        assert!(found.contribution_ns < 13 * MS, "{found:?}");
    }
}

/// What a task needs of its slots is all that they give, but for what the machine takes of them: switches and its clock.
#[test]
fn what_the_machine_takes_from_slots_is_no_part_of_a_promise() {
    let mut promises = 0;
    for period_us in (29_800..=30_400).step_by(50) {
        for (policy, service) in [("fcfs", "5.859ms"), ("edf", "5.82ms"), ("fcfs", "5.78ms")] {
            let text = format!(
                "[quick]\nidle = \"3s\"\n[executors.x]\npolicy = \"{policy}\"\nplacement = \"reserved 2ms/8ms\"\noutside = \"confined\"\n
                [tasks.work]\nkind = \"periodic\"\nperiod = \"{period_us}us\"\nservice = \"{service}\"\non = \"x\"\n
                [tasks.spin]\nkind = \"spinner\"\n[variants.a]\ncontracts = []\ntasks = [\"work\", \"spin\"]\n"
            );
            let plan = planned(&text, 1);
            within(&plan, &text);
            promises += promised(&plan, &text);
        }
    }
    assert!(promises >= 10, "{promises}");
}

/// Nothing is known of how long a job takes in a reservation that there is not; nor of those beside it.
#[test]
fn a_reservation_that_is_refused_bounds_nothing() {
    let text = "[tasks.work]\nkind = \"periodic\"\nperiod = \"10ms\"\nservice = \"0.8ms\"\nreservation = \"1ms/4ms\"\n
        [tasks.below]\nkind = \"periodic\"\nperiod = \"20ms\"\nservice = \"1ms\"\npriority = 20\n
        [tasks.above]\nkind = \"periodic\"\nperiod = \"20ms\"\nservice = \"1ms\"\n
        [variants.a]\ncontracts = []\ntasks = [\"work\", \"below\", \"above\"]\n";
    let plan = planned(text, 1);
    assert!(!plan.admitted());
    let lines = &plan.variants[0].lines;
    for line in &lines[..2] {
        let why = line.no_bound.as_deref().expect("a reason");
        assert!(why.contains("reservation is refused"), "{line:?}");
    }
    assert!(lines[2].bound_ns.is_some(), "{:?}", lines[2]);
}

/// A modem above the slots of an executor calls, and recognises the answer once: what its tasks are promised counts that call, too.
#[test]
fn the_longest_call_of_a_modem_above_slots_is_counted_in_what_is_promised_there() {
    let mut compared = 0;
    for seed in 0..6 * factor() {
        for (above, load, reserved, service) in [
            ("interrupt", "14.7 %", "7ms/10ms", "2ms"),
            ("deferred", "14.7 %", "7ms/10ms", "2ms"),
            ("interrupt", "2 %", "4ms/10ms", "1.6ms"),
        ] {
            for policy in ["rmdp", "edf"] {
                let text = format!(
                    r#"
devices = {{ modem = {{ kind = "soft-modem", load = "{load}" }} }}
executors = {{ e = {{ policy = "{policy}", placement = "reserved {reserved}", outside = "confined" }} }}
tasks = {{ up = {{ kind = "periodic", period = "12.5ms", service = "{service}", on = "e" }} }}
[variants.a]
placement = {{ modem = "{above}" }}
"#
                );
                let plan = planned(&text, seed);
                compared += within(&plan, &text);
                promised(&plan, &text);
            }
        }
    }
    assert!(compared > 100, "{compared}");
}

/// Of who comes more seldom on an executor by rate one quantum goes before a job, and no more.
#[test]
fn who_is_less_urgent_on_an_executor_takes_one_quantum() {
    let text = r#"
executors = { e = { policy = "rmdp", placement = "reserved 9ms/10ms" } }
tasks.fast = { kind = "periodic", period = "10ms", service = "1ms", on = "e" }
tasks.slow = { kind = "periodic", period = "500ms", service = "1.3ms", batch = 13, on = "e" }
variants.a = {}
"#;
    let plan = planned(text, 1);
    let found = plan.variants[0].bottleneck.as_ref().expect("one");
    assert_eq!(found.name, "fast");
    assert_ne!(found.contributor.as_deref(), Some("slow"), "{found:?}");
}

/// On an executor by rate the time until a job is due is what decides, and not how often it comes: before who is due soon goes one quantum of who comes more often.
#[test]
fn who_is_due_later_on_an_executor_takes_one_quantum_however_often_it_comes() {
    let text = r#"
executors = { e = { policy = "rmdp", placement = "reserved 9ms/10ms" } }
tasks.soon = { kind = "periodic", period = "40ms", deadline = "4.5ms", service = "1ms", batch = 10, on = "e" }
tasks.often = { kind = "periodic", period = "10ms", service = "2ms", batch = 10, on = "e" }
variants.a = {}
"#;
    let plan = planned(text, 1);
    let found = plan.variants[0].bottleneck.as_ref().expect("one");
    assert_eq!(found.name, "soon", "{found:?}");
    assert_ne!(found.contributor.as_deref(), Some("often"), "{found:?}");
}
