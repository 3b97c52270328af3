//! Which deadlines can be missed, in a plan's headline and in its lines, most of all those that have no bound.

mod proofs;

use laxity_lab::import::{Format, read};
use laxity_lab::machine_file::Known;
use laxity_lab::plan::scenario::{self as scenarios, Plan, VariantPlan};
use laxity_lab::plan::set::{self as sets, Options, Scheduler, SetPlan, Supply};
use laxity_lab::plan::{Deadline, Line};
use laxity_lab::runner::{On, Silent};
use laxity_lab::scenario::{Length, parse};
use laxity_model::{Reservation, Service, Span};

/// What the twin's plan says of a variant with these tasks, nothing observed.
fn of_tasks(tasks: &str) -> Plan {
    unobserved(&format!("{tasks}\n[variants.x]\n"))
}

fn unobserved(text: &str) -> Plan {
    let resolved = parse(text, "x.toml").expect("a scenario");
    let resolved = resolved.resolve(Length::Quick);
    scenarios::plan(
        &resolved,
        (On::Twin { threads: 0 }, false),
        &Known::Nothing,
        &mut Silent,
    )
    .expect("a plan")
}

fn periodic(name: &str, (service, period): (&str, &str), priority: u8) -> String {
    format!(
        "[tasks.{name}]\nkind = \"periodic\"\nservice = \"{service}\"\nperiod = \"{period}\"\npriority = {priority}\n"
    )
}

/// The answer to each line's deadline, by name.
fn answers(lines: &[Line]) -> Vec<(&str, Option<Deadline>)> {
    let lines = lines.iter();
    lines
        .map(|line| (line.name.as_str(), line.deadline))
        .collect()
}

/// A text in one line.
fn unbroken(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn who_asks_for_more_than_there_is_can_miss_every_deadline() {
    for (first, second) in [
        (("1ms", "4ms"), ("3.2ms", "4ms")),
        (("5ms", "10ms"), ("9ms", "10ms")),
    ] {
        let tasks = periodic("ui", first, 20) + &periodic("ctl", second, 18);
        let plan = of_tasks(&tasks);
        let text = unbroken(&scenarios::render(&plan, 100));
        let headline = "x: nothing to admit; 1 deadline can be missed: `ctl` by more and more";
        assert!(text.contains(headline), "{text}");
        assert!(
            text.contains("bottleneck: `ctl`; most of its time"),
            "{text}"
        );
        let variant = &plan.variants[0];
        let expected = [
            ("ui", Some(Deadline::Met)),
            ("ctl", Some(Deadline::CanBeMissed)),
        ];
        assert_eq!(answers(&variant.lines), expected);
        let json = serde_json::to_value(&plan).expect("JSON");
        let lines = &json["variants"][0]["lines"];
        assert_eq!(lines[0]["deadline"], "met");
        assert_eq!(lines[1]["deadline"], "can be missed");
    }
}

/// Below who never stops nothing is left; what equals leave is not known, and is not told as a miss.
#[test]
fn what_is_not_known_is_no_deadline_that_can_be_missed() {
    let spinner = "[tasks.spin]\nkind = \"spinner\"\npriority = 20\n";
    let said = |priority| {
        let task = periodic("ctl", ("1ms", "4ms"), priority);
        unbroken(&scenarios::render(&of_tasks(&(task + spinner)), 100))
    };
    let below = said(19);
    assert!(below.contains("1 deadline can be missed: `ctl`"), "{below}");
    let equal = said(20);
    let headline = "x: nothing to admit; 1 deadline is not known to be met: `ctl` activity";
    assert!(equal.contains(headline), "{equal}");
    assert!(!said(21).contains("deadline "), "{}", said(21));
}

/// Who is below one that never stops waits for that, whoever else is above, and in words.
#[test]
fn who_starves_below_one_that_never_stops_waits_for_that() {
    let spin = "[tasks.spin]\nkind = \"spinner\"\ncount = 1\npriority = 28\n";
    let low = periodic("low", ("1ms", "50ms"), 20);
    let is_told = |plan: &Plan, name: &str, most_ns: u64| {
        let found = plan.variants[0].bottleneck.as_ref().expect("one");
        assert_eq!((found.name.as_str(), found.never_stops), (name, true));
        assert_eq!(found.contributor.as_deref(), Some("spin"), "{found:?}");
        let takes = most_ns - 3_000_000..=most_ns;
        assert!(takes.contains(&found.contribution_ns), "{found:?}");
        let text = unbroken(&scenarios::render(plan, 100));
        let why = "`spin` never stops, and takes what those above it leave of its time";
        let headline = format!("1 deadline can be missed: `{name}` by more and more ({why})");
        assert!(text.contains(&headline), "{text}");
        let words = format!("bottleneck: `{name}`; {why}, ");
        assert!(text.contains(&words), "{text}");
    };
    // One above takes next to nothing, nobody does, or one takes more than is left.
    let high = periodic("high", ("1ms", "50ms"), 31);
    is_told(&of_tasks(&format!("{spin}{high}{low}")), "low", 49_000_000);
    is_told(&of_tasks(&format!("{spin}{low}")), "low", 50_000_000);
    let heavy = periodic("high", ("30ms", "50ms"), 31);
    is_told(&of_tasks(&format!("{spin}{heavy}{low}")), "low", 20_000_000);
    // The same beside a device that the variant leaves out.
    let modem = "[devices.modem]\nkind = \"soft-modem\"\n";
    let p = periodic("p", ("1ms", "10ms"), 20);
    let text = format!("{modem}{spin}{p}[variants.a]\nplacement = \"absent\"\n");
    let plan = unobserved(&format!(
        "{text}tasks = [\"spin\", \"p\"]\ncontracts = []\n"
    ));
    is_told(&plan, "p", 10_000_000);
}

/// Three tasks of 5.33 ms, on 2 or 8 ms of every 8 or 10.
fn on_slots(scheduler: Scheduler, (service, period): (u64, u64)) -> SetPlan {
    let csv = "name,cost_ms,period_ms\njackd,0.6,5.33\nsynth,3,5.33\nmixer,3,5.33\n";
    let set = read(csv, "set.csv", Format::Csv).expect("a task set");
    let reservation = Reservation::new(Service::from_millis(service), Span::from_millis(period));
    let options = Options {
        scheduler,
        supply: Supply::Slots(reservation.expect("X is no more than Y")),
        ..Options::default()
    };
    sets::plan(&set, &options).expect("a plan")
}

#[test]
fn of_a_set_all_are_named_that_a_supply_is_too_little_for() {
    for (scheduler, supply) in [
        (Scheduler::Auto, (2, 8)),
        (Scheduler::Edf, (8, 10)),
        (Scheduler::FixedPriority, (2, 8)),
    ] {
        let plan = on_slots(scheduler, supply);
        let text = unbroken(&sets::render(&plan, 100));
        assert!(text.contains("REFUSED by"), "{text}");
        assert!(text.contains("; 3 deadlines can be missed: "), "{text}");
        let lines = &plan.processors[0].lines;
        let mut answers = answers(lines).into_iter();
        assert!(answers.all(|(_, answer)| answer == Some(Deadline::CanBeMissed)));
    }
}

/// A set of which it cannot be told has no deadline that can be missed, only such as are not known to be met.
#[test]
fn of_an_unknown_set_no_deadline_is_said_to_be_missed() {
    let video = r#""video": { "policy": "SCHED_DEADLINE", "dl-runtime": 3000, "dl-period": 20000, "run": 2500, "timer": { "ref": "unique", "period": 20000 } }"#;
    let control = r#""control": { "policy": "SCHED_FIFO", "priority": 50, "run": 400, "timer": { "ref": "unique", "period": 3300 } }"#;
    let text = format!("{{ \"tasks\": {{ {video}, {control} }} }}");
    let set = read(&text, "set.json", Format::RtApp).expect("a task set");
    let plan = sets::plan(&set, &Options::default()).expect("a plan");
    assert!(plan.unknown);
    let control = ("control", Some(Deadline::NotKnown));
    assert!(answers(&plan.processors[0].lines).contains(&control));
    let text = unbroken(&sets::render(&plan, 100));
    assert!(
        text.contains("1 deadline is not known to be met: `control` by up to"),
        "{text}"
    );
}

/// A player whose slots are too little for it has its rank beside them in the twin: its bound, its own answer, and whoever waits for it say the same.
#[test]
fn a_device_and_its_line_and_those_below_it_say_the_same() {
    let text = "[devices.music]\nkind = \"audio\"\nload = \"30 %\"\n[tasks.mid]\nkind = \"periodic\"\nservice = \"1ms\"\nperiod = \"10ms\"\npriority = 12\n[variants.v]\nplacement = \"reserved 1ms/10ms\"\n";
    let resolved = parse(text, "x.toml").expect("a scenario");
    let resolved = resolved.resolve(Length::Quick);
    let plan = scenarios::plan(
        &resolved,
        (On::Twin { threads: 0 }, true),
        &Known::Nothing,
        &mut Silent,
    );
    let plan = plan.expect("a plan");
    assert!(!plan.is_contradicted());
    let variant = &plan.variants[0];
    let (device, mut lines) = (&variant.devices[0], variant.lines.iter());
    assert!(
        lines.all(|line| line.bound_ns.is_some()),
        "{:?}",
        variant.lines
    );
    assert!(device.is_served(), "{device:?}");
    let said = "with its rank beside its slots, complete ";
    assert!(device.detail.starts_with(said), "{device:?}");
    let text = scenarios::render(&plan, 100);
    assert_eq!(
        text.lines().find(|line| line.starts_with("v:")),
        Some("v: admitted")
    );
    for wrong in ["no bound", "would do"] {
        assert!(!text.contains(wrong), "{text}");
    }
}

/// What the twin's plan says of a scenario's only variant, with what was seen.
fn of_devices(text: &str) -> (VariantPlan, String) {
    let resolved = parse(text, "x.toml").expect("a scenario");
    let resolved = resolved.resolve(Length::Quick);
    let plan = scenarios::plan(
        &resolved,
        (On::Twin { threads: 0 }, true),
        &Known::Nothing,
        &mut Silent,
    );
    let mut plan = plan.expect("a plan");
    assert!(!plan.is_contradicted());
    let text = scenarios::render(&plan, 1_000);
    let headline = text.lines().find(|line| line.starts_with("v:"));
    let headline = headline.expect("a headline").to_owned();
    (plan.variants.remove(0), headline)
}

/// The edges of the slots of two receivers are too many for a bound of calls, and not for what the slots give them.
#[test]
fn who_is_served_exactly_has_no_deadline_that_its_bound_misses() {
    let text = r#"
[devices.ad]
kind = "dsl"
load = "13.1 %"
[devices.bd]
kind = "dsl"
load = "20.875 %"
[tasks.spinners]
kind = "spinner"
[variants.v]
placement = { ad = "reserved 600us/4ms", bd = "reserved 950us/4ms" }
enforcer = "slots"
"#;
    let (variant, headline) = of_devices(text);
    assert_eq!(headline, "v: admitted");
    for device in &variant.devices {
        assert!(device.is_served(), "{device:?}");
        let mut lines = variant.lines.iter();
        let line = lines.find(|line| line.name == device.activity);
        let line = line.expect("its line");
        assert_eq!(line.deadline, Some(Deadline::Met), "{line:?}");
        assert!(line.bound_ns <= line.deadline_ns, "{line:?}");
    }
}

/// A modem's blocks are of several lengths, and every one as short as the shortest would be too much for it: once it is connected it is served, before that it
/// is late in one call, and both are said once.
#[test]
fn a_modem_is_late_where_it_is_late_and_nowhere_else() {
    let text = r#"
[devices.modem]
kind = "soft-modem"
[variants.v]
placement = "reserved 2ms/13ms"
enforcer = "slots"
outside = "confined"
"#;
    let (variant, headline) = of_devices(text);
    let device = &variant.devices[0];
    assert_eq!(device.answer, "served");
    assert!(device.late_before.is_some() && !device.is_served());
    let of_driver = |line: &&Line| line.name == device.activity;
    for line in variant.lines.iter().filter(of_driver) {
        let expected = match line.phase.as_deref() {
            Some("answer") => Deadline::CanBeMissed,
            _ => Deadline::Met,
        };
        assert_eq!(line.deadline, Some(expected), "{line:?}");
        let is_behind = line.slack_ns.is_some_and(|slack| slack < 0);
        assert_eq!(is_behind, expected == Deadline::CanBeMissed, "{line:?}");
    }
    let missed = "v: admitted; 1 deadline can be missed: `modem thread` (answer) by up to ";
    assert!(headline.starts_with(missed), "{headline}");
    let named = "; not sure to be served in time: `modem thread`";
    assert!(headline.ends_with(named), "{headline}");
}

/// What is confined to its slots has no rank beside them that would serve it.
#[test]
fn who_is_confined_is_never_served_by_its_rank() {
    let text = r#"
[devices.a]
kind = "dsl"
load = "8.2375 %"
[devices.b]
kind = "audio"
load = "3.3125 %"
[devices.c]
kind = "dsl"
load = "7.0375 %"
[variants.v]
placement = { a = "reserved 250us/2ms", b = "reserved 500us/10ms", c = "reserved 400us/4ms" }
enforcer = "slots"
outside = "confined"
"#;
    let (variant, headline) = of_devices(text);
    assert_eq!(headline, "v: admitted");
    let player = &variant.devices[1];
    assert!(player.is_served(), "{player:?}");
    let said = "by its slots, complete ";
    assert!(player.detail.starts_with(said), "{player:?}");
    for device in &variant.devices {
        assert!(!device.detail.contains("rank"), "{device:?}");
    }
}

/// Of how much could be added to what is not known, nothing is known.
#[test]
fn an_unknown_set_has_no_margin() {
    let fifo = r#""policy": "SCHED_FIFO", "timer": { "ref": "unique", "period": 10000 }"#;
    let text = format!(
        r#"{{ "tasks": {{ "a": {{ {fifo}, "mem": 4096, "run": 10 }}, "b": {{ {fifo}, "run": 2500 }} }} }}"#
    );
    let set = read(&text, "set.json", Format::RtApp).expect("a task set");
    for scheduler in [Scheduler::Auto, Scheduler::FixedPriority, Scheduler::Edf] {
        let options = Options {
            scheduler,
            ..Options::default()
        };
        let plan = sets::plan(&set, &options).expect("a plan");
        let text = unbroken(&sets::render(&plan, 100));
        assert!(plan.unknown && !text.contains("all costs times"), "{text}");
        let mut lines = plan.processors[0].lines.iter();
        assert!(lines.all(|line| line.largest_cost_ns.is_none()), "{text}");
        // By the priorities of the file nothing is admitted of which there could be a margin.
        let is_told = text.contains("left out: margins: ");
        assert_eq!(is_told, scheduler == Scheduler::Edf, "{text}");
    }
}

/// Equals go first in the order in which they come, and each once: `b` waits for one job of `a`, and the bound takes all that may come; `a` waits for one
/// of `b`, and is late.
#[test]
fn what_equals_would_miss_in_another_order_is_not_told_as_a_miss() {
    let tasks = periodic("a", ("0.87ms", "2ms"), 24) + &periodic("b", ("27ms", "50ms"), 24);
    let plan = of_tasks(&tasks);
    let text = unbroken(&scenarios::render(&plan, 100));
    let headline = "x: nothing to admit; 1 deadline can be missed: `a` by up to 27.102ms (most of its time is taken by `b`); 1 deadline is not known to be met: `b`";
    assert!(text.contains(headline), "{text}");
    let why = "no proof: `b`: its bound has all go first who may, as late as they may be: others as urgent";
    assert!(text.contains(why), "{text}");
    // Above it the same is a proof.
    let tasks = periodic("a", ("0.87ms", "2ms"), 25) + &periodic("b", ("27ms", "50ms"), 24);
    let plan = of_tasks(&tasks);
    let last = answers(&plan.variants[0].lines).pop();
    assert_eq!(last, Some(("b", Some(Deadline::CanBeMissed))));
}

/// An executor by rate that looks after a quantum serves all of these in time.
#[test]
fn what_an_executor_would_miss_in_another_order_is_not_told_as_a_miss() {
    let task = |name: &str, (units, quantum, period_ms): (u32, u32, u32)| {
        format!(
            "[tasks.{name}]\nkind = \"periodic\"\nservice = \"{units}ms\"\nperiod = \"{period_ms}ms\"\non = \"e\"\nbatch = {units}\nquantum = {quantum}\n"
        )
    };
    let tasks = [
        "[executors.e]\npolicy = \"rmdp\"\nplacement = \"thread 24\"\n".to_owned(),
        task("t0", (2, 1, 20)),
        task("t1", (12, 4, 40)),
        task("t2", (30, 5, 100)),
    ];
    let plan = of_tasks(&tasks.concat());
    let lines = &plan.variants[0].lines;
    for line in lines {
        assert_eq!(line.deadline, Some(Deadline::Met), "{line:?}");
    }
}

/// Who waits for slots, a budget or another's end is charged in a bound as if all of it came at once: what only that makes late is not told as late. What
/// they surely take in the long run is.
#[test]
fn what_those_who_wait_would_make_late_if_they_came_at_once_is_not_told_as_a_miss() {
    let held = |work: &str| {
        format!(
            "[executors.held]\npolicy = \"edf\"\nplacement = \"reserved 4ms/10ms\"\noutside = \"confined\"\n[tasks.long]\nkind = \"periodic\"\nperiod = \"40ms\"\nservice = \"{work}\"\non = \"held\"\n"
        )
    };
    let chain = "[executors.high]\npolicy = \"rmdp\"\nplacement = \"thread 28\"\n[tasks.a]\nkind = \"periodic\"\nperiod = \"40ms\"\nservice = \"9ms\"\non = \"high\"\n[tasks.b]\nkind = \"periodic\"\nafter = \"a\"\nservice = \"8ms\"\non = \"high\"\n";
    let group = "[groups.g]\nbudget = \"2ms\"\nperiod = \"60ms\"\n[executors.high]\npolicy = \"rmdp\"\nplacement = \"thread 28\"\n[tasks.hog]\nkind = \"periodic\"\nperiod = \"20ms\"\nservice = \"15ms\"\nbatch = 15\non = \"high\"\ngroup = \"g\"\n";
    let victim = |(service, period): (&str, &str), deadline: &str| {
        periodic("victim", (service, period), 24) + &format!("deadline = \"{deadline}\"\n")
    };
    let of = |others: &str, victim: &str| {
        let plan = of_tasks(&format!("{others}{victim}"));
        let line = plan.variants[0]
            .lines
            .iter()
            .find(|line| line.name == "victim");
        let line = line.expect("its line");
        (line.deadline, line.grows)
    };
    let not_known = (Some(Deadline::NotKnown), false);
    assert_eq!(
        of(&held("12ms"), &victim(("3ms", "40ms"), "12ms")),
        not_known
    );
    assert_eq!(of(chain, &victim(("2ms", "40ms"), "26ms")), not_known);
    assert_eq!(of(group, &victim(("6ms", "20ms"), "20ms")), not_known);
    let grows = (Some(Deadline::CanBeMissed), true);
    assert_eq!(of(&held("15ms"), &victim(("26ms", "40ms"), "40ms")), grows);
    let late = (Some(Deadline::CanBeMissed), false);
    assert_eq!(of(&held("4ms"), &victim(("3ms", "40ms"), "2.5ms")), late);
}

/// A call is in one phase at a time: what only several of them together would make late is not told as late. What one does is.
#[test]
fn what_only_several_phases_of_a_call_would_miss_is_not_told_as_a_miss() {
    let answer = |deadline: &str| {
        let task = periodic("below", ("8ms", "100ms"), 20);
        let plan = unobserved(&format!(
            "[devices.modem]\nkind = \"soft-modem\"\nload = \"60 %\"\n{task}deadline = \"{deadline}\"\n[variants.x]\nplacement = \"thread 28\"\n"
        ));
        let mut lines = plan.variants[0].lines.iter();
        let below = lines.find(|line| line.name == "below");
        below.and_then(|line| line.deadline)
    };
    // Beside a modem that is connected, 7.5 ms in every 11.25, it takes some 31 ms. If the answer were in the same window, more than 40.
    assert_eq!(answer("25ms"), Some(Deadline::CanBeMissed));
    assert_eq!(answer("37ms"), Some(Deadline::NotKnown));
    assert_eq!(answer("80ms"), Some(Deadline::Met));
}

/// Before it dials a modem has no reservation, and competes with its equals.
#[test]
fn of_a_modem_that_is_on_hook_its_reservation_says_nothing() {
    let text = "[devices.m]\nkind = \"soft-modem\"\n[tasks.s]\nkind = \"spinner\"\npriority = 24\n\
        [variants.v]\nplacement = \"reserved 3ms/8ms\"\ntasks = [\"s\"]\ncontracts = []\n";
    let met = |text: &str| {
        let plan = unobserved(text);
        let lines = plan.variants[0].lines.iter();
        let mut on_hook = lines.filter(|line| line.phase.as_deref() == Some("on-hook"));
        on_hook.next().unwrap().deadline
    };
    assert_eq!(met(text), Some(Deadline::NotKnown));
    let from_start = text.replace("tasks = [", "reserve_from = \"start\"\ntasks = [");
    assert_eq!(met(&from_start), Some(Deadline::Met));
}

/// A modem in slots that it asks for later than at the start, or at the start, beside a spinner of this priority.
fn beside_a_spinner(priority: u8, from: &str) -> VariantPlan {
    let text = format!(
        "[devices.m]\nkind = \"soft-modem\"\n[tasks.s]\nkind = \"spinner\"\npriority = {priority}\n[variants.v]\nplacement = \"reserved 3ms/8ms\"\n{from}tasks = [\"s\"]\ncontracts = []\n"
    );
    let resolved = parse(&text, "spinner.toml").expect("a scenario");
    let resolved = resolved.resolve(Length::Quick);
    let on = On::Twin { threads: 0 };
    let plan = scenarios::plan(&resolved, (on, true), &Known::Nothing, &mut Silent);
    plan.expect("a plan").variants.remove(0)
}

/// Until it has its reservation a modem has a rank, and whoever is above that and never stops keeps it from asking.
#[test]
fn who_never_gets_so_far_as_to_ask_is_not_served() {
    let connected = "start = \"connected\"\n";
    for start in ["", connected] {
        let from_start = format!("reserve_from = \"start\"\n{start}");
        for (priority, from) in [(23, start), (23, &from_start), (28, &from_start)] {
            let plan = beside_a_spinner(priority, from);
            let device = &plan.devices[0];
            assert!(device.is_served() && !device.is_unseen, "{plan:?}");
        }
        let plan = beside_a_spinner(28, start);
        let device = &plan.devices[0];
        assert!(plan.admitted && device.is_unseen, "{plan:?}");
        let never = "it never gets so far as to ask for its reservation";
        assert_eq!(device.answer, "too late", "{plan:?}");
        assert!(device.detail.starts_with(never), "{}", device.detail);
        let mut calls = plan.lines.iter();
        let last = calls.rfind(|line| line.phase.as_deref() == Some("connected"));
        let last = last.expect("its line");
        assert_eq!(
            (last.bound_ns, last.no_bound.as_deref()),
            (None, Some(never))
        );
        assert_eq!(last.deadline, Some(Deadline::CanBeMissed));
    }
}
