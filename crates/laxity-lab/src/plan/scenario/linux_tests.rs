//! Bounds on Linux, beside what the twin of such a machine does.

use laxity::Twin;
use laxity_model::Span;
use laxity_model::enforce::machine::{Figure, Machine, Quantiles};
use laxity_model::request::{Stranger, Strangers};

use super::*;
use crate::machine_file::Measured;
use crate::runner::admit::supply;
use crate::runner::left::Left;
use crate::scenario::{Length, parse};

mod rogues;
mod turns;

#[path = "../../../tests/it/random_scenarios/mod.rs"]
#[expect(dead_code, reason = "modems are beside tasks in the study's twin only")]
mod random_scenarios;

fn machine() -> Machine {
    let us = |us| Quantiles::constant(Span::from_micros(us));
    Machine::without_costs(250).with([
        (Figure::Tick, us(5)),
        (Figure::ContextSwitch, us(2)),
        (Figure::Timer, us(3)),
        (Figure::Wakeup, us(30)),
        (Figure::WakeupIdle, us(30)),
        (Figure::Preemption, us(30)),
        (Figure::SlotBegin, us(20)),
        (Figure::SlotEdge, us(8)),
    ])
}

/// How many bounds there are that something was seen of, and for how many there is none.
fn compared(text: &str, seed: u64, machine: Machine) -> (usize, usize) {
    let scenario = parse(text, "random.toml").expect("a scenario");
    let resolved = scenario.resolve(Length::Quick);
    let mut host = Twin::linux(&machine, seed);
    let supply = supply(&mut host, &resolved).expect("a supply");
    let known = Known::Measured(Box::new(Measured {
        machine,
        packets: Default::default(),
        elsewhere: None,
    }));
    let live = Live::of(&supply, &known);
    let run = schedule(&resolved, true).expect("runs").remove(0);
    let ready = ready(&resolved, run, &FurtherReceivers::new(), &supply).expect("a program");
    let variant = &resolved.variants[0];
    let plan = VariantPlan::default();
    let found = bounds::of(&resolved, variant, &ready, (Some(&live), &plan));
    let (lines, _) = found.expect("small numbers");
    if ready.answer.is_err() {
        return (0, 0);
    }
    let seen = observe::seen_on(&mut host, ready, variant).expect("a run");
    let mut plan = VariantPlan {
        lines,
        ..VariantPlan::default()
    };
    observe::fill(&mut plan, &seen);
    let seen = plan.lines.iter().filter(|line| line.observed_jobs > 0);
    let (bounded, unbounded): (Vec<&Line>, _) = seen.partition(|line| line.bound_ns.is_some());
    for line in &bounded {
        assert!(line.observed_max_ns <= line.bound_ns, "{line:?}\n{text}");
    }
    (bounded.len(), unbounded.len())
}

#[test]
fn the_twin_of_linux_keeps_the_bounds_of_a_live_plan() {
    let factor = std::env::var("LAXITY_CASES").ok();
    let factor: u64 = factor.and_then(|text| text.parse().ok()).unwrap_or(1);
    let (mut bounded, mut unbounded) = (0, 0);
    for seed in 0..60 * factor {
        let text = random_scenarios::random(seed, random_scenarios::Shape::Tasks);
        let (more, none) = compared(&text, seed, machine());
        (bounded, unbounded) = (bounded + more, unbounded + none);
    }
    assert!(bounded >= 60 && unbounded >= 5, "{bounded} {unbounded}");
}

/// The same with costs that differ from event to event, as they were measured.
#[test]
fn the_twin_of_a_measured_machine_keeps_the_bounds_of_a_live_plan() {
    let measured = crate::machine_file::parse(costs_tests::EPYC, "machine.toml");
    let machine = measured.expect("it is right").machine;
    let mut bounded = 0;
    for seed in 0..40 {
        let text = random_scenarios::random(seed, random_scenarios::Shape::Tasks);
        bounded += compared(&text, seed, machine.clone()).0;
    }
    assert!(bounded >= 20, "{bounded}");
}

/// What a plan for Linux says of a modem's reservation beside this.
fn modem(beside: &str, reserved: &str) -> DevicePlan {
    let text = format!(
        "[devices.modem]\nkind = \"soft-modem\"\n{beside}\n[variants.v]\non = \"live\"\nplacement = \"reserved {reserved}\"\n"
    );
    of_text(&text, Span::from_millis(4)).devices.remove(0)
}

/// What a plan says for a Linux of one processor whose kernel looks at budgets so often.
fn of_text(text: &str, tick: Span) -> VariantPlan {
    let scenario = parse(text, "modem.toml").expect("a scenario");
    let resolved = scenario.resolve(Length::Quick);
    let mut supply = supply(&mut Twin::linux(&machine(), 1), &resolved).expect("a supply");
    let kernel = supply.deadline.as_mut().expect("it has such");
    (kernel.tick, kernel.processors) = (tick, std::num::NonZeroU16::MIN);
    let run = schedule(&resolved, true).expect("runs").remove(0);
    let ready = ready(&resolved, run, &FurtherReceivers::new(), &supply).expect("a program");
    let left = Left::of(&resolved, 0, None, &supply).expect("a program");
    let variant = &resolved.variants[0];
    let devices = device::of(&ready, variant, None, (&supply, &left));
    VariantPlan {
        devices: devices.expect("small numbers"),
        ..variant_plan(variant, &ready)
    }
}

/// A modem in slots beside a command in the kernel's reservation.
fn beside_a_budget(reserved: &str, tick: Span) -> VariantPlan {
    let text = format!(
        "[devices.modem]\nkind = \"soft-modem\"\n[tasks.player]\nkind = \"command\"\nargv = [\"true\"]\n[variants.v]\non = \"live\"\ntasks = [\"player\"]\nplacement = {{ modem = \"reserved 5ms/8ms\", player = {{ placement = \"reserved {reserved}\", enforcer = \"deadline\" }} }}\n"
    );
    of_text(&text, tick)
}

/// A kernel that looks at budgets at its ticks only lets a holder run on until then, and slots wait.
#[test]
fn what_a_budget_takes_too_much_until_the_next_tick_is_taken_from_slots() {
    let response = |tick| {
        let plan = beside_a_budget("100us/10ms", tick);
        let margins = plan.devices[0].margins.expect("it is served");
        Span::from_nanos(margins.response_ns)
    };
    let tick = Span::from_millis(1);
    assert!(response(tick) >= response(Span::ZERO) + tick);
}

/// A run asks the kernel for it, and so does a plan.
#[test]
fn what_a_command_reserves_is_planned_like_all_that_is_reserved() {
    let tick = Span::from_millis(4);
    let plan = beside_a_budget("1ms/10ms", tick);
    assert!(plan.admitted, "{plan:?}");
    let of_player = |plan: &VariantPlan| {
        let mut requests = plan.requests.clone().into_iter();
        let found = requests.find(|request| request.activity == "player");
        found.expect("it asks")
    };
    let player = of_player(&plan);
    assert_eq!(
        (player.service_ns, player.period_ns),
        (1_000_000, 10_000_000)
    );
    let [offer] = &player.offers[..] else {
        panic!("{player:?}");
    };
    assert!(offer.possible && offer.enforcer == "deadline");
    assert_eq!(offer.grade.as_deref(), Some("enforced"));
    assert!(plan.notes[0].contains("`player` is its first thread's alone"));
    let refused = beside_a_budget("9.9ms/10ms", tick);
    assert!(!refused.admitted && !of_player(&refused).offers[0].possible);
    let own = |refusal: &&String| refusal.starts_with("`player` (9.900ms/10ms by deadline");
    assert!(refused.refusals.iter().any(|one| own(&one)), "{refused:?}");
}

fn above(service: &str, period: &str) -> String {
    format!(
        "[tasks.above]\nkind = \"periodic\"\nperiod = \"{period}\"\nservice = \"{service}\"\npriority = 31\n"
    )
}

#[test]
fn on_linux_too_work_above_slots_is_taken_from_them() {
    assert!(modem("", "2.5ms/8ms").is_served());
    for beside in [above("40ms", "100ms"), above("9ms", "20ms")] {
        let found = modem(&beside, "2.5ms/8ms");
        assert!(found.is_late(), "{beside}: {found:?}");
    }
}

/// Of a load of 40 % a plan said that 3 ms of 12 serve it; live it was dead.
#[test]
fn on_linux_a_modem_takes_the_load_that_it_states() {
    for (load, reserved, cost_ns, serves) in [
        ("load = \"5 %\"", "3ms/12ms", 625_000, true),
        ("load = \"40 %\"", "3ms/12ms", 5_000_000, false),
        ("load = \"40 %\"", "6ms/8ms", 5_000_000, true),
    ] {
        let found = modem(load, reserved);
        assert_eq!(found.device.cost_ns, cost_ns, "{load}");
        assert_eq!(found.is_served(), serves, "{load} {reserved}: {found:?}");
    }
}

/// With what is taken a proposal is larger, and serves by the same test.
#[test]
fn what_is_proposed_on_linux_has_room_for_what_is_above() {
    let (beside, too_little) = (above("2ms", "20ms"), "0.5ms/8ms");
    let [free, taken] = ["", &beside].map(|beside| {
        let least = modem(beside, too_little).least_service_ns;
        least.expect("one serves")
    });
    assert!(taken > free, "{taken} {free}");
    for (beside, least) in [("", free), (&beside, taken)] {
        let least = crate::scenario::units::format_span(Span::from_nanos(least));
        let found = modem(beside, &format!("{least}/8ms"));
        assert!(found.is_served(), "{found:?}");
        assert!(
            found.detail.contains("its edges up to 200us late"),
            "{found:?}"
        );
    }
}

/// What a plan for Linux says of an executor in slots and of a thread of priority 20, beside a command that is placed so.
fn beside_a_command(placement: &str) -> VariantPlan {
    let text = format!(
        r#"
[executors.turns]
policy = "edf"
placement = "reserved 2ms/8ms"
[tasks.turn]
kind = "periodic"
period = "16ms"
service = "1ms"
on = "turns"
[tasks.thread]
kind = "periodic"
period = "100ms"
service = "1ms"
priority = 20
[tasks.other]
kind = "command"
argv = ["true"]
[variants.v]
on = "live"
placement = {{ other = {placement} }}
"#
    );
    with_lines(&text, |_| {})
}

/// What a plan for Linux says of a scenario's lines, if its processor is as `change` makes it.
fn with_lines(text: &str, change: impl FnOnce(&mut Strangers)) -> VariantPlan {
    let scenario = parse(text, "beside.toml").expect("a scenario");
    let resolved = scenario.resolve(Length::Quick);
    let machine = machine();
    let mut supply = supply(&mut Twin::linux(&machine, 1), &resolved).expect("a supply");
    change(&mut supply.processors[0].outranking);
    let known = Known::Measured(Box::new(Measured {
        machine,
        packets: Default::default(),
        elsewhere: None,
    }));
    let live = Live::of(&supply, &known);
    let run = schedule(&resolved, true).expect("runs").remove(0);
    let ready = ready(&resolved, run, &FurtherReceivers::new(), &supply).expect("a program");
    let variant = &resolved.variants[0];
    let left = Left::of(&resolved, 0, None, &supply).expect("a program");
    let devices = device::of(&ready, variant, None, (&supply, &left));
    let mut plan = variant_plan(variant, &ready);
    plan.devices = devices.expect("small numbers");
    let found = bounds::of(&resolved, variant, &ready, (Some(&live), &plan));
    (plan.lines, plan.bottleneck) = found.expect("small numbers");
    plan.heed_lines(false);
    plan
}

/// That somebody outside is there does not make too much any less.
#[test]
fn what_is_too_much_is_so_whoever_else_is_there() {
    let task = |name: &str, service: &str, priority: u8| {
        format!(
            "[tasks.{name}]\nkind = \"periodic\"\nservice = \"{service}\"\nperiod = \"4ms\"\npriority = {priority}\n"
        )
    };
    let text = task("ui", "1ms", 20) + &task("ctl", "3.2ms", 18) + "[variants.v]\n";
    let stranger = |strangers: &mut Strangers| {
        strangers.seen.push(Stranger {
            name: "somebody".to_owned(),
            had: None,
        });
    };
    let alone = headline(with_lines(&text, |_| {}));
    let missed = "v: nothing to admit; 1 deadline can be missed: `ctl` by more and more";
    assert!(alone.starts_with(missed), "{alone}");
    let plan = with_lines(&text, stranger);
    let why = plan.lines[0].no_bound.clone().expect("a stranger");
    assert_eq!(why, "somebody else here goes first: somebody");
    let beside = headline(plan);
    assert!(beside.starts_with(missed), "{beside}");
    assert!(
        beside.ends_with("; 1 deadline is not known to be met: `ui`"),
        "{beside}"
    );
}

/// Of who has no slots nothing is said of any.
#[test]
fn who_runs_by_its_rank_is_told_that_others_may_go_first_unseen() {
    let text = "[tasks.ui]\nkind = \"periodic\"\nservice = \"1ms\"\nperiod = \"4ms\"\npriority = 20\n[variants.v]\n";
    let plan = with_lines(text, |strangers| {
        strangers.unseen = Some("it is dark".to_owned());
    });
    let why = plan.lines[0].no_bound.clone().expect("nobody sees");
    assert_eq!(why, "cannot see who goes first here: it is dark");
}

/// A job that is late by little is so beside a stranger too.
#[test]
fn what_is_missed_is_so_whoever_else_is_there() {
    let stranger = |strangers: &mut Strangers| {
        strangers.seen.push(Stranger {
            name: "somebody".to_owned(),
            had: None,
        });
    };
    let text = costs_tests::LATE_BY_LITTLE;
    let missed = "v: nothing to admit; 1 deadline can be missed: `c`";
    for said in [
        headline(with_lines(text, |_| {})),
        headline(with_lines(text, stranger)),
    ] {
        assert!(said.starts_with(missed), "{said}");
        assert!(!said.contains("more and more"), "{said}");
    }
}

/// On Linux too a modem that somebody outranks who never stops asks for no reservation, unless it has that from the start.
#[test]
fn on_linux_too_who_never_gets_so_far_is_not_served() {
    let beside = |priority: u8, from: &str| {
        let text = format!(
            "[devices.modem]\nkind = \"soft-modem\"\n[tasks.s]\nkind = \"spinner\"\npriority = {priority}\n[variants.v]\non = \"live\"\nplacement = \"reserved 5ms/8ms\"\n{from}tasks = [\"s\"]\n"
        );
        let plan = with_lines(&text, |_| {});
        (
            plan.devices[0].is_served(),
            bounded(&plan).contains(&"modem thread"),
        )
    };
    assert_eq!(beside(23, ""), (true, true));
    assert_eq!(beside(28, "reserve_from = \"start\"\n"), (true, true));
    assert_eq!(beside(28, ""), (false, false));
    // Its equal takes no turns either.
    assert_eq!(beside(24, "reserve_from = \"start\"\n"), (true, true));
    assert!(!beside(24, "").0);
}

/// Of a modem by the kernel there is a device's answer, and no bound of a call: the one stands for the other.
#[test]
fn the_calls_of_a_device_that_is_served_are_in_time() {
    let by_kernel = |reserved: &str| {
        let text = format!(
            "[devices.modem]\nkind = \"soft-modem\"\n[variants.v]\non = \"live\"\nplacement = \"reserved {reserved}\"\nenforcer = \"deadline\"\n"
        );
        headline(with_lines(&text, |_| {}))
    };
    assert_eq!(by_kernel("7ms/8ms"), "v: admitted");
    let late = by_kernel("1ms/8ms");
    assert!(
        late.contains("1 deadline is not known to be met: `modem thread`"),
        "{late}"
    );
    assert!(
        late.contains("not sure to be served in time: `modem thread`"),
        "{late}"
    );
}

/// Who has no work is planned like all others, and is nobody's bottleneck.
#[test]
fn who_does_nothing_has_a_bound_and_is_no_bottleneck() {
    let of = |reserved: &str| {
        let text = format!(
            "[tasks.idle]\nkind = \"periodic\"\nperiod = \"1ms\"\n{reserved}\n[variants.v]\non = \"live\"\n"
        );
        with_lines(&text, |_| {})
    };
    for placement in ["priority = 26", "reservation = \"0.1ms/1ms\""] {
        let plan = of(placement);
        assert_eq!(bounded(&plan), ["idle"], "{:?}", plan.lines);
        let taken_by = plan.bottleneck.and_then(|found| found.contributor);
        assert_eq!(taken_by, None);
    }
}

/// Who has a bound.
fn bounded(plan: &VariantPlan) -> Vec<&str> {
    let bounded = plan.lines.iter().filter(|line| line.bound_ns.is_some());
    bounded.map(|line| line.name.as_str()).collect()
}

/// What a person reads of it first.
fn headline(variant: VariantPlan) -> String {
    let plan = Plan {
        file_version: FILE_VERSION,
        scenario: "it".to_owned(),
        host: "a machine".to_owned(),
        machine: None,
        notes: Vec::new(),
        variants: vec![variant],
    };
    let text = render(&plan, 1_000);
    text.lines().nth(2).expect("a headline").to_owned()
}

#[test]
fn a_command_below_slots_takes_nothing_from_them() {
    for (placement, expected) in [
        (r#""thread 8""#, &["turn", "thread"][..]),
        (r#""thread 19""#, &["turn", "thread"]),
        (r#""thread 20""#, &["turn"]),
        (r#""thread 30""#, &["turn"]),
    ] {
        let plan = beside_a_command(placement);
        assert!(plan.admitted);
        assert_eq!(plan.executors[0].grade.as_deref(), Some("enforced"));
        assert!(!headline(plan.clone()).contains("unenforced"));
        assert_eq!(bounded(&plan), expected, "{placement}: {:?}", plan.lines);
        // That it never stops is an assumption, and not what it does.
        let mut lines = plan.lines.iter();
        let why = lines.find(|line| line.name == "other");
        let why = why.and_then(|line| line.no_bound.as_deref());
        let why = why.expect("a command has no bound");
        assert!(why.starts_with("nothing says how much a command"), "{why}");
    }
}

#[test]
fn a_command_above_slots_is_held_against_them_by_name() {
    for (placement, name) in [
        (r#""thread 31""#, "other (SCHED_FIFO priority 95)"),
        (
            r#"{ placement = "reserved 2ms/8ms", enforcer = "deadline" }"#,
            "other (SCHED_DEADLINE)",
        ),
    ] {
        let plan = beside_a_command(placement);
        assert!(plan.admitted, "{:?}", plan.refusals);
        let (slots, turns) = (&plan.requests[0].offers[0], &plan.executors[0]);
        for (grade, reason) in [
            (&slots.grade, &slots.grade_reason),
            (&turns.grade, &turns.reason),
        ] {
            assert_eq!(grade.as_deref(), Some("unenforced"));
            let reason = reason.as_ref().expect("who interferes");
            assert!(reason.contains(name), "{reason}");
        }
        let reason = slots.grade_reason.as_ref().expect("who interferes");
        let said =
            format!("`turn`, `thread`; unenforced: the reservation of 2ms/8ms by slots: {reason}");
        assert!(headline(plan.clone()).contains(&said), "{said}");
        let unknown = "v: admitted; 2 deadlines are not known to be met: ";
        assert!(headline(plan.clone()).starts_with(unknown), "{plan:?}");
        assert_eq!(bounded(&plan), [""; 0], "{placement}");
    }
}

#[test]
fn slots_have_no_room_that_a_command_reserves() {
    let plan = beside_a_command(r#"{ placement = "reserved 7ms/8ms", enforcer = "deadline" }"#);
    assert!(!plan.admitted, "{plan:?}");
}
