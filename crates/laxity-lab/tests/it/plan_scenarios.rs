//! Plans of scenarios: what the twin shows of every variant is within its bound, and the shipped scenario's plan to the letter.
//!
//! `LAXITY_CASES` multiplies the number of seeds (default 1: two seeds); above 1, the shipped scenario is looked at in its full length too.

use laxity_lab::machine_file::Known;
use laxity_lab::plan::scenario::{Plan, plan, render};
use laxity_lab::runner::{On, Silent};
use laxity_lab::scenario::{Length, Resolved, parse};

const TWIN: On = On::Twin { threads: 0 };

fn resolved(text: &str) -> Resolved {
    parse(text, "test.toml")
        .expect("a scenario")
        .resolve(Length::Quick)
}

fn whole(resolved: &Resolved) -> Plan {
    plan(resolved, (TWIN, true), &Known::Nothing, &mut Silent).expect("a plan")
}

fn unobserved(resolved: &Resolved) -> Plan {
    plan(resolved, (TWIN, false), &Known::Nothing, &mut Silent).expect("a plan")
}

/// How many bounds there are that something was seen of, all of it within.
fn within(plan: &Plan) -> usize {
    let mut compared = 0;
    for variant in &plan.variants {
        for line in &variant.lines {
            assert!(
                line.bound_ns.is_some() != line.no_bound.is_some(),
                "{line:?}"
            );
            if let (Some(bound), Some(seen)) = (line.bound_ns, line.observed_max_ns) {
                assert!(seen <= bound, "{}: {line:?}", variant.name);
                assert!(line.observed_jobs > 0);
                compared += 1;
            }
        }
    }
    compared
}

#[test]
fn the_shipped_scenario_keeps_its_bounds_and_has_this_plan() {
    let resolved = resolved(include_str!("../../../../scenarios/soft-modem.toml"));
    let plan = whole(&resolved);
    assert!(within(&plan) >= 35, "{}", within(&plan));
    for width in [60, 80, 140] {
        let text = render(&plan, width);
        let fits = |line: &str| line.chars().count() <= width;
        assert!(text.lines().all(fits), "{width}: {text}");
    }
    insta::assert_snapshot!("soft_modem", render(&plan, 100));
}

/// A player has no ring to be read, and a receiver gives nothing out.
#[test]
fn of_a_device_only_the_limits_that_it_has_are_told() {
    let text = r#"
devices = { music = { kind = "audio" }, air = { kind = "radio" } }
[variants.reserved]
placement = { music = "reserved 2ms/4ms", air = "reserved 0.1ms/0.3125ms" }
"#;
    let plan = unobserved(&resolved(text));
    let devices = &plan.variants[0].devices;
    let rings: Vec<bool> = devices
        .iter()
        .map(|one| one.device.ring_samples.is_some())
        .collect();
    let leads: Vec<bool> = devices
        .iter()
        .map(|one| one.device.lead_samples.is_some())
        .collect();
    assert_eq!((rings, leads), (vec![false, true], vec![true, false]));
    let told = render(&plan, 140);
    for wrong in [" 0 in the ring", " 0 ahead", "<= 0ns", "> 0ns", "for 0ns"] {
        assert!(!told.contains(wrong), "{wrong}: {told}");
    }
    // What says how often each must be called is its block.
    for limit in ["<= 10ms", "<= 312.500us"] {
        assert!(told.contains(limit), "{limit}: {told}");
    }
}

/// A reservation is worth no less than the rank beside it: whoever takes from the slots leaves enough outside them.
#[test]
fn beside_its_slots_a_holder_has_its_rank() {
    let text = r#"
[devices.modem]
kind = "soft-modem"
[tasks.above]
kind = "periodic"
period = "20ms"
service = "3ms"
priority = 31
[variants.beside]
placement = "reserved 2ms/8ms"
tasks = ["above"]
[variants.confined]
placement = { modem = { placement = "reserved 2ms/8ms", outside = "confined" } }
tasks = ["above"]
"#;
    let plan = whole(&resolved(text));
    assert!(within(&plan) >= 6);
    let bound = |variant: usize, phase: &str| {
        let mut lines = plan.variants[variant].lines.iter();
        let line = lines.find(|line| line.phase.as_deref() == Some(phase));
        line.expect("its line").bound_ns
    };
    let text = render(&plan, 140);
    for phase in ["answer", "connected"] {
        assert!(bound(0, phase).is_some_and(|ns| ns < 12_000_000), "{text}");
    }
    assert_eq!(bound(1, "connected"), None, "{text}");
    assert!(
        text.contains("ask for more than its slots are sure to give"),
        "{text}"
    );
}

/// Placements, priorities, tasks and reservations that the shipped scenarios do not have.
const OTHERS: &str = r#"
[tasks.cothread]
kind = "periodic"
period = "3ms"
service = "0.4ms"
priority = 20

[tasks.urgent]
kind = "periodic"
period = "5ms"
service = "0.3ms"
priority = 31

[tasks.rogue]
kind = "rogue"
burst = "7ms"
every = "40ms"
priority = 26

[tasks.spinners]
kind = "spinner"
count = 3
priority = 8

[devices.modem]
kind = "soft-modem"

[defaults]
contracts = []

[variants.interrupt]
placement = "interrupt"
tasks = ["spinners", "cothread"]

[variants.interrupt-rogue]
placement = "interrupt"
tasks = ["rogue", "urgent"]

[variants.deferred-rogue]
placement = "deferred"
tasks = ["spinners", "cothread", "rogue"]

[variants.thread-equal]
placement = "thread 20"
tasks = ["spinners", "cothread"]

[variants.thread-above]
placement = "thread 28"
tasks = ["spinners", "cothread", "rogue"]

[variants.slots]
placement = "reserved 1ms/4ms"
tasks = ["spinners", "cothread"]

[variants.slots-confined]
placement = "reserved 3ms/10ms"
outside = "confined"
tasks = ["spinners", "urgent", "rogue"]

[variants.connected]
placement = "reserved 2ms/8ms"
start = "connected"
tasks = ["spinners", "cothread"]
"#;

fn factor() -> u64 {
    let factor = std::env::var("LAXITY_CASES").ok();
    factor.and_then(|text| text.parse().ok()).unwrap_or(1)
}

#[test]
fn other_scenarios_keep_their_bounds_too() {
    for seed in 1..=2 * factor() {
        let mut resolved = resolved(OTHERS);
        resolved.seed = seed;
        let plan = whole(&resolved);
        assert!(plan.admitted());
        assert!(within(&plan) >= 25, "{}", within(&plan));
    }
    if factor() > 1 {
        let text = include_str!("../../../../scenarios/soft-modem.toml");
        let scenario = parse(text, "soft-modem.toml").expect("a scenario");
        assert!(within(&whole(&scenario.resolve(Length::Full))) >= 35);
    }
}

#[test]
fn a_reservation_is_judged_by_the_studys_lines_and_by_the_cards_rings() {
    let cases = [
        // Often enough, not enough; enough, not often enough; both, and late by the time of the work itself; served.
        ("1ms/8ms", (false, true), "too late"),
        ("4ms/20ms", (true, false), "too late"),
        ("2ms/14ms", (true, true), "too late"),
        ("2ms/8ms", (true, true), "served"),
        // All of the processor is more than slots can give.
        ("8ms/8ms", (true, true), "cannot tell"),
    ];
    for (reservation, lines, answer) in cases {
        let text = format!(
            "[devices.modem]\nkind = \"soft-modem\"\n[variants.a.placement]\nmodem = {{ placement = \"reserved {reservation}\", outside = \"confined\" }}\n"
        );
        let resolved = resolved(&text);
        let plan = unobserved(&resolved);
        let variant = &plan.variants[0];
        let device = variant.devices.first().expect("a reserved modem");
        assert_eq!(
            (device.is_enough, device.is_often_enough),
            lines,
            "{device:?}"
        );
        assert_eq!(device.answer, answer, "{device:?}");
        if let Some(margins) = device.margins {
            // All that the machine takes besides comes on top.
            let mut lines = variant.lines.iter();
            let connected = lines.find(|line| line.phase.as_deref() == Some("connected"));
            let bound = connected.and_then(|line| line.bound_ns);
            assert!(Some(margins.response_ns) <= bound, "{margins:?} {bound:?}");
            // 12.5 ms of a crystal that is faster by 50 ppm.
            assert_eq!(margins.output_ns, Some(12_499_375 - margins.response_ns));
            assert!(device.cheapest.is_none() && device.least_service_ns.is_none());
        } else {
            let cheapest = device.cheapest.expect("one serves");
            let least = device.least_service_ns.expect("one serves");
            let more = least > device.service_ns;
            assert_eq!(more, answer == "too late", "{device:?}");
            let cost = |service: u64, period: u64| {
                u128::from(service) * 1_000_000_000 / u128::from(period)
            };
            let cheap = cost(cheapest.service_ns, cheapest.period_ns);
            assert!(cheap <= cost(least, device.asked_period_ns), "{device:?}");
        }
    }
}

/// Of three whose shares add up to one exactly, and of two that ask for more than there is, admission says no: the file is right.
#[test]
fn what_is_too_much_is_refused_and_the_file_is_right() {
    for (reservations, what, said) in [
        (
            ["1ms/6ms", "2ms/6ms", "4ms/8ms"],
            "switches",
            "those that were tried take 100.35 % of the processor, the switches to their slots included",
        ),
        (
            ["5ms/8ms", "4ms/8ms", "1ms/8ms"],
            "themselves",
            "processor time",
        ),
    ] {
        let names = ["a", "b", "c"];
        let executors = names.iter().zip(reservations).map(|(name, reserved)| {
            format!(
                "[executors.{name}]\npolicy = \"edf\"\nplacement = \"reserved {reserved}\"\n[tasks.of-{name}]\nkind = \"periodic\"\nperiod = \"60ms\"\nservice = \"1ms\"\non = \"{name}\"\n"
            )
        });
        let text = executors.collect::<String>() + "[variants.v]\ncontracts = []\n";
        let plan = unobserved(&resolved(&text));
        assert!(!plan.admitted(), "{what}");
        let refusals = &plan.variants[0].refusals;
        assert!(refusals[0].contains(said), "{refusals:?}");
    }
}

/// Two reserved modems and one in a thread, on these processors, and a task on the third.
fn several(places: [u16; 3], of_b: &str) -> Resolved {
    let [a, b, c] = places;
    let text = format!(
        "[host]\nprocessors = 3\n
        [tasks.work]\nkind = \"periodic\"\nperiod = \"10ms\"\nprocessor = 2\nservice = \"0.2ms\"\n
        [devices.a]\nkind = \"soft-modem\"\nprocessor = {a}\n
        [devices.b]\nkind = \"soft-modem\"\nprocessor = {b}\n
        [devices.c]\nkind = \"soft-modem\"\nprocessor = {c}\n
        [variants.x]\ncontracts = []\ntasks = [\"work\"]\n[variants.x.placement]\n
        a = \"reserved 2ms/8ms\"\nb = \"reserved {of_b}\"\nc = \"thread 24\"\n"
    );
    resolved(&text)
}

#[test]
fn each_of_several_modems_is_judged_by_itself() {
    // Alone on a processor it has all of it, whatever is reserved.
    for (places, of_b) in [([0, 1, 2], "served"), ([0, 0, 0], "too late")] {
        let plan = unobserved(&several(places, "1ms/8ms"));
        let devices = &plan.variants[0].devices;
        let told = devices.iter().map(|device| {
            let name = device.activity.split(':').next().expect("a name");
            (name, device.answer.as_str())
        });
        assert_eq!(told.collect::<Vec<_>>(), [("a", "served"), ("b", of_b)]);
        let text = render(&plan, 100);
        assert!(
            text.contains("`a: modem thread`:") && text.contains("`b: modem thread`:"),
            "{text}"
        );
    }
}

#[test]
fn modems_on_processors_of_their_own_have_bounds_that_the_twin_keeps() {
    let plan = whole(&several([0, 1, 2], "2ms/8ms"));
    // The interrupt, the deferred call and four phases of each, and the task.
    let seen = render(&plan, 100);
    assert_eq!(within(&plan), 3 * 6 + 1, "{seen}");
}

#[test]
fn modems_that_share_a_processor_have_none_and_the_plan_says_why() {
    let plan = whole(&several([0, 0, 1], "2ms/8ms"));
    assert_eq!(within(&plan), 6 + 1);
    let lines = plan.variants[0].lines.iter();
    for line in lines.filter(|line| line.processor == Some(0)) {
        let why = line.no_bound.as_deref().expect("a reason");
        assert!(why.contains("several calls"), "{line:?}");
    }
}

/// What a modem's calls take is what its own load says, beside another one as on a processor of its own.
#[test]
fn each_of_several_modems_is_charged_its_own_load() {
    for processor in [0, 1] {
        let text = format!(
            "[host]\nprocessors = 2\n[devices.a]\nkind = \"soft-modem\"\nload = \"60 %\"\n
            [devices.b]\nkind = \"soft-modem\"\nload = \"8 %\"\nprocessor = {processor}\n
            [variants.v]\ncontracts = []\nstart = \"connected\"\nplacement = {{ a = \"thread 24\", b = \"thread 24\" }}\n"
        );
        let plan = unobserved(&resolved(&text));
        let mut calls = plan.variants[0].lines.iter();
        let costs = ["a: modem thread", "b: modem thread"].map(|name| {
            let call = calls.find(|line| line.name == name && line.phase.is_some());
            call.and_then(|call| call.cost_ns)
        });
        assert_eq!(costs, [Some(7_500_000), Some(1_000_000)], "{processor}");
    }
}

#[test]
fn tasks_that_take_turns_keep_their_bounds() {
    let plan = whole(&resolved(include_str!("../../../../scenarios/turns.toml")));
    let seen = render(&plan, 100);
    assert!(plan.admitted() && within(&plan) >= 2, "{seen}");
    let promises = plan.variants.iter().map(|variant| {
        let promised = &variant.executors[0];
        (promised.tasks.len(), promised.grade.as_deref())
    });
    assert_eq!(
        promises.collect::<Vec<_>>(),
        [
            (2, Some("enforced")),
            (2, Some("unenforced")),
            (3, Some("enforced"))
        ]
    );
}

/// In a run nobody of the chain is later than the plan says, whatever the group wants; and of the group nothing is said.
#[test]
fn a_chain_beside_a_group_keeps_its_bounds() {
    let plan = whole(&resolved(include_str!(
        "../../../../scenarios/upcalls-chain.toml"
    )));
    let seen = render(&plan, 100);
    assert!(plan.admitted() && within(&plan) >= 2 * 3, "{seen}");
    for variant in &plan.variants {
        let promised = &variant.executors[0];
        assert_eq!(promised.grade.as_deref(), Some("enforced"), "{seen}");
        let bounds = promised.bounds.iter().map(|(task, _)| task.as_str());
        assert_eq!(bounds.collect::<Vec<_>>(), ["receive", "decode", "show"]);
    }
    let members = plan.variants[1].lines.iter();
    let mut members = members.filter(|line| ["queries", "log"].contains(&line.name.as_str()));
    assert!(members.all(|line| line.bound_ns.is_none()), "{seen}");
}

#[test]
fn what_never_stops_has_no_bound_and_takes_it_from_its_equals() {
    let text = "[tasks.spin]\nkind = \"spinner\"\ncount = 2\n[tasks.work]\nkind = \"periodic\"\nperiod = \"10ms\"\npriority = 8\n[variants.a]\nplacement = \"absent\"\n";
    let text = text.replace("placement = \"absent\"\n", "tasks = [\"spin\", \"work\"]\n");
    let resolved = resolved(&text);
    let plan = unobserved(&resolved);
    let why = |name: &str| {
        let line = plan.variants[0].lines.iter().find(|line| line.name == name);
        line.and_then(|line| line.no_bound.clone())
            .expect("a reason")
    };
    assert!(why("spin").contains("never stops"));
    assert!(
        why("work").contains("shares its priority with `spin`"),
        "{}",
        why("work")
    );
}

/// Devices that have the same to do all the time, wherever they are placed, beside each other and beside tasks.
const STREAMS: &str = r#"
[quick]
idle = "2s"

[devices.player]
kind = "audio"

[devices.line]
kind = "dsl"

[devices.receiver]
kind = "radio"

[tasks.control]
kind = "periodic"
period = "5ms"
service = "0.5ms"
priority = 28

[tasks.spinners]
kind = "spinner"

[defaults]
contracts = []

[variants.threads.placement]
player = "thread 24"
line = "thread 26"
receiver = "thread 30"

[variants.slots]
outside = "confined"
[variants.slots.placement]
player = "reserved 2ms/8ms"
line = "thread 26"
receiver = "absent"

[variants.handlers.placement]
player = "interrupt"
line = "deferred"
receiver = "absent"
"#;

#[test]
fn devices_other_than_modems_have_bounds_that_the_twin_keeps() {
    let mut compared = 0;
    for seed in 1..=3 {
        let mut resolved = resolved(STREAMS);
        resolved.seed = seed;
        let plan = whole(&resolved);
        let seen = render(&plan, 100);
        assert!(plan.admitted(), "{seen}");
        compared += within(&plan);
        let lines = plan.variants.iter().flat_map(|variant| &variant.lines);
        for line in lines.filter(|line| !line.name.starts_with("spinners")) {
            assert!(line.bound_ns.is_some(), "{line:?}\n{seen}");
        }
    }
    assert_eq!(compared, 3 * (10 + 7 + 4), "every line but the spinners'");
    let text = include_str!("../../../../scenarios/audio.toml");
    let plan = whole(&resolved(text));
    let seen = render(&plan, 100);
    assert!(within(&plan) >= 7, "{seen}");
    assert!(!seen.contains("not analysed"), "{seen}");
}

/// Beside a task that runs a fifth of the time nothing is short of time, although a job takes a tick of the clock.
#[test]
fn a_job_that_takes_a_tick_or_more_has_a_bound() {
    for service in ["0.96ms", "0.97ms", "1ms", "2.5ms"] {
        let text = format!(
            "[tasks.work]\nkind = \"periodic\"\nperiod = \"5ms\"\nservice = \"{service}\"\npriority = 20\n
            [tasks.below]\nkind = \"periodic\"\nperiod = \"20ms\"\nservice = \"3ms\"\npriority = 18\n
            [tasks.equal]\nkind = \"periodic\"\nperiod = \"40ms\"\nservice = \"1ms\"\npriority = 18\n
            [variants.a]\ntasks = [\"work\", \"below\", \"equal\"]\n"
        );
        let plan = whole(&resolved(&text));
        let seen = render(&plan, 100);
        assert_eq!(within(&plan), 3, "{seen}");
        let work = &plan.variants[0].lines[0];
        assert!(work.bound_ns < Some(5_000_000), "{seen}");
    }
}
