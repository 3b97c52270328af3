//! Several components of a kind in one variant, in the study's twin: each is observed and judged by itself, whatever the order in which
//! they are declared.

use laxity_lab::evidence::results::{RunResults, VariantResults};
use laxity_lab::runner::{self, On, Silent};
use laxity_model::verify::contract::Outcome;

use crate::common::{resolved, run};

/// All orders of three.
const ORDERS: [[usize; 3]; 6] = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
];

fn only(results: &RunResults) -> &VariantResults {
    assert_eq!(results.variants.len(), 1);
    &results.variants[0]
}

fn outcome(variant: &VariantResults, contract: &str) -> Outcome {
    let mut judged = variant.contracts.iter();
    judged
        .find(|judged| judged.name == contract)
        .unwrap()
        .verdict
        .result
}

const SERVED: &str = "[devices.served]\nkind = \"soft-modem\"\n";
const STARVED: &str = "[devices.starved]\nkind = \"soft-modem\"\n";
const SPINNERS: &str = "[tasks.spinners]\nkind = \"spinner\"\ncount = 2\npriority = 8\n";

/// A task whose jobs take a twentieth of the processor.
const TICK: &str = "[tasks.tick]\nkind = \"periodic\"\nperiod = \"20ms\"\nservice = \"1ms\"";

/// A modem with all it needs, and one below threads that never stop.
fn two_modems(first: &str, second: &str) -> String {
    format!(
        "{first}{second}{SPINNERS}
[contracts.lossless]
limits = [{{ quantity = \"samples_lost\", at_most = 0 }}]
[variants.both]
placement = {{ served = \"thread 24\", starved = \"thread 4\" }}
contracts = [\"lossless\"]
"
    )
}

#[test]
fn a_starved_modem_is_not_hidden_by_a_served_one() {
    for (first, second) in [(SERVED, STARVED), (STARVED, SERVED)] {
        let results = run(&two_modems(first, second));
        let variant = only(&results);
        assert!(!variant.as_expected, "{:?}", variant.verdict);
        assert_ne!(results.exit_code, 0);
        let told = variant.unexpected().collect::<Vec<_>>().join("\n");
        assert!(told.contains("starved"), "{told}");
        assert!(
            !told.contains("served:") || told.contains("starved:"),
            "{told}"
        );
    }
}

#[test]
fn the_deadlines_of_a_periodic_task_are_judged() {
    let text = format!(
        "{SPINNERS}{TICK}
[contracts.timely]
limits = [
    {{ quantity = \"response_time\", at_most = \"20ms\" }},
    {{ quantity = \"deadline_misses\", at_most = 0 }},
    {{ quantity = \"service_gap\", at_most = \"20ms\" }},
]
[variants.alone]
contracts = [\"timely\"]
"
    );
    let results = run(&text);
    let variant = only(&results);
    assert_eq!(
        outcome(variant, "timely"),
        Outcome::Met,
        "{:?}",
        variant.verdict
    );
    let starved = run(&text.replace("service = \"1ms\"", "service = \"1ms\"\npriority = 2"));
    let variant = only(&starved);
    assert_eq!(
        outcome(variant, "timely"),
        Outcome::Violated,
        "{:?}",
        variant.verdict
    );
}

/// What was measured is the bound that is just kept; a nanosecond less is not.
#[test]
fn a_bound_is_judged_to_the_nanosecond() {
    let text = |bound_ns: u64| {
        format!(
            "{SPINNERS}{TICK}
[contracts.timely]
limits = [{{ quantity = \"response_time\", at_most = \"{bound_ns}ns\" }}]
[variants.alone]
contracts = [\"timely\"]
"
        )
    };
    let results = run(&text(20_000_000));
    let tick = only(&results).subjects.iter().find(|s| s.name == "tick");
    let measured = tick.unwrap().quantities["response_time_ns"].max.unwrap();
    assert!(
        measured > 1_000_000,
        "{measured} ns for a millisecond of work"
    );
    for (bound_ns, result) in [(measured, Outcome::Met), (measured - 1, Outcome::Violated)] {
        let results = run(&text(bound_ns));
        let variant = only(&results);
        assert_eq!(outcome(variant, "timely"), result, "{:?}", variant.verdict);
    }
}

/// Three periodic tasks: above everything, beside the spinners and below them.
fn three_tasks(order: [usize; 3], expect: &str) -> String {
    let tasks = [("above", 31), ("middle", 20), ("below", 2)];
    let declared = order.map(|index| {
        let (name, priority) = tasks[index];
        format!(
            "[tasks.{name}]\nkind = \"periodic\"\nperiod = \"10ms\"\nservice = \"2ms\"\npriority = {priority}\n"
        )
    });
    format!(
        "{}{SPINNERS}
[contracts.gaps]
limits = [{{ quantity = \"wakeup_gap\", at_most = \"40ms\" }}]
[variants.all]
contracts = [\"gaps\"]
{expect}
",
        declared.concat()
    )
}

#[test]
fn of_several_periodic_tasks_none_vanishes() {
    for order in ORDERS {
        let results = run(&three_tasks(order, ""));
        let variant = only(&results);
        assert_eq!(
            outcome(variant, "gaps"),
            Outcome::Inconclusive,
            "{order:?}: {:?}",
            variant.verdict
        );
        assert!(
            variant.verdict.reasons.iter().any(|r| r.contains("below")),
            "{:?}",
            variant.verdict
        );
    }
}

/// A served modem, a starved one and a periodic task, declared in this order as far as devices and tasks may change places, each with a
/// contract of its own, and one for each kind.
fn three_subjects(modems: [&str; 2], tasks: [&str; 2]) -> String {
    format!(
        "{}{}{}{}
[contracts.served-answers]
subject = \"served\"
limits = [{{ quantity = \"response_time\", statistic = \"p50\", at_most = \"12ms\" }}]
[contracts.starved-answers]
subject = \"starved\"
limits = [{{ quantity = \"response_time\", at_most = \"12ms\" }}]
[contracts.tick-keeps]
subject = \"tick\"
limits = [
    {{ quantity = \"deadline_misses\", at_most = 0 }},
    {{ quantity = \"response_time\", at_most = \"10ms\" }},
]
[contracts.every-task]
kind = \"periodic\"
limits = [{{ quantity = \"deadline_misses\", at_most = 0 }}]
[contracts.every-modem]
kind = \"soft-modem\"
limits = [{{ quantity = \"response_time\", at_most = \"12ms\" }}]
[variants.all]
placement = {{ served = \"thread 24\", starved = \"thread 4\" }}
contracts = [\"served-answers\", \"starved-answers\", \"tick-keeps\", \"every-task\", \"every-modem\"]
expect = {{ starved-answers = \"inconclusive\", every-task = \"violated\", every-modem = \"any\" }}
lost = \"any\"
transfer = \"any\"
",
        modems[0], modems[1], tasks[0], tasks[1]
    )
}

#[test]
fn contracts_on_different_subjects_are_right_in_every_order() {
    let tick = "[tasks.tick]\nkind = \"periodic\"\nperiod = \"20ms\"\nservice = \"1ms\"\n";
    let low = format!(
        "[tasks.low]\nkind = \"periodic\"\nperiod = \"20ms\"\nservice = \"1ms\"\npriority = 7\n{SPINNERS}"
    );
    let mut told = Vec::new();
    for modems in [[SERVED, STARVED], [STARVED, SERVED]] {
        for tasks in [[tick, low.as_str()], [low.as_str(), tick]] {
            let results = run(&three_subjects(modems, tasks));
            let variant = only(&results);
            for (contract, result) in [
                ("served-answers", Outcome::Met),
                ("tick-keeps", Outcome::Met),
            ] {
                assert_eq!(outcome(variant, contract), result, "{:?}", variant.verdict);
            }
            for contract in ["starved-answers", "every-task", "every-modem"] {
                assert_ne!(
                    outcome(variant, contract),
                    Outcome::Met,
                    "{:?}",
                    variant.verdict
                );
            }
            told.push(figures(variant));
        }
    }
    for other in &told[1..] {
        assert_eq!(*other, told[0]);
    }
}

/// What must not depend on the order: by component, what was lost and whether the file arrived, and how many jobs of a task there were.
fn figures(variant: &VariantResults) -> Vec<(String, bool, u64)> {
    let modems = variant.modems().map(|(name, modem)| {
        (
            name.to_owned(),
            modem.transfer.completed,
            modem.device.lost(),
        )
    });
    let tasks = variant.subjects.iter().filter_map(|subject| {
        let jobs = subject.quantities.get("deadline_misses")?;
        Some((subject.name.clone(), jobs.max == Some(0), jobs.count))
    });
    let mut all: Vec<_> = modems.chain(tasks).collect();
    all.sort();
    all
}

/// One way from the card to the verdict: what is shown of a modem, of each of its phases and of the limit that it breaks is one number.
#[test]
fn a_lost_sample_is_counted_once_wherever_it_is_told() {
    let text = format!(
        "{STARVED}{SPINNERS}
[tasks.rogue]
kind = \"rogue\"
burst = \"100ms\"
every = \"250ms\"
priority = 26
[contracts.lossless]
limits = [{{ quantity = \"samples_lost\", at_most = 0 }}]
[variants.rogue]
placement = \"thread 24\"
contracts = [\"lossless\"]
start = \"connected\"
expect = \"violated\"
lost = \"some\"
transfer = \"any\"
"
    );
    let results = run(&text);
    let variant = only(&results);
    assert!(variant.as_expected, "{:?}", variant.verdict);
    let (_, modem) = variant.modems().next().unwrap();
    // Both directions stand still in the same bursts: neither loses half as much as the other.
    let device = &modem.device;
    let both = [device.samples_overwritten, device.samples_underrun];
    assert!(both[0] < 2 * both[1] && both[1] < 2 * both[0], "{both:?}");
    assert_eq!(modem.device.lost(), modem.device.samples_lost_undisturbed);
    // The file's name for them is of the same samples: both directions.
    let file: serde_json::Value = serde_json::from_slice(&results.to_json()).unwrap();
    assert_eq!(file["variants"][0]["samples_lost"], modem.device.lost());
    let total = format!("samples lost: total {} where none", modem.device.lost());
    assert!(
        variant.verdict.reasons[0].contains(&total),
        "{:?}",
        variant.verdict
    );
}

/// A driver that has not run again when the run is over has lost what its card went on to move, and its calls are as late as they are.
#[test]
fn what_a_modem_is_owed_at_the_end_of_the_run_counts() {
    let text = format!(
        "{SERVED}{SPINNERS}
[tasks.rogue]
kind = \"rogue\"
burst = \"300s\"
every = \"301s\"
after = \"300ms\"
priority = 26
[contracts.lossless]
limits = [{{ quantity = \"samples_lost\", at_most = 0 }}]
[contracts.in-time]
limits = [{{ quantity = \"response_time\", at_most = \"64ms\" }}]
[variants.starved]
placement = \"thread 24\"
contracts = [\"lossless\", \"in-time\"]
start = \"connected\"
transfer = \"any\"
"
    );
    let results = run(&text);
    let variant = only(&results);
    for contract in ["lossless", "in-time"] {
        let judged = outcome(variant, contract);
        assert_eq!(
            judged,
            Outcome::Violated,
            "{contract}: {:?}",
            variant.verdict
        );
    }
    let (_, modem) = variant.modems().next().unwrap();
    // Both directions stand still in the same bursts: neither loses half as much as the other.
    let device = &modem.device;
    let both = [device.samples_overwritten, device.samples_underrun];
    assert!(both[0] < 2 * both[1] && both[1] < 2 * both[0], "{both:?}");
    assert_eq!(modem.device.lost(), modem.device.samples_lost_undisturbed);
}

/// A task on an executor, below a thread that takes the processor; what it was granted, and by whom it is judged.
fn on_an_executor(above: &str, variant: &str) -> String {
    let judged = match variant.contains("contracts = []") {
        true => "",
        false => {
            "[contracts.in-time]\nsubject = \"a\"\nlimits = [{ quantity = \"deadline_misses\", at_most = 0 }]"
        }
    };
    format!(
        "[quick]
idle = \"2s\"
[executors.shared]
policy = \"edf\"
placement = \"reserved 2ms/8ms\"
outside = \"confined\"
[tasks.a]
kind = \"periodic\"
period = \"40ms\"
service = \"2ms\"
on = \"shared\"
[tasks.above]
{above}
[variants.v]
tasks = [\"a\", \"above\"]
{variant}
{judged}
"
    )
}

/// Of a thread above the slots nobody says that it keeps its work short.
#[test]
fn nothing_is_enforced_below_a_thread_whose_work_is_not_declared() {
    let spinner = "kind = \"spinner\"\ncount = 1\npriority = 31";
    for (variant, expected) in [
        ("", false),
        ("grade = \"enforced\"", false),
        ("grade = \"unenforced\"\ncontracts = []", true),
    ] {
        let results = run(&on_an_executor(spinner, variant));
        let variant = only(&results);
        assert_eq!(
            variant.grade.as_deref(),
            Some("unenforced"),
            "{:?}",
            variant.verdict
        );
        assert_eq!(variant.as_expected, expected, "{:?}", variant.verdict);
    }
}

#[test]
fn more_work_above_is_never_admitted_where_less_is_refused() {
    let admitted = |service: &str| {
        let above = format!(
            "kind = \"periodic\"\nperiod = \"4ms\"\nservice = \"{service}\"\npriority = 31"
        );
        let text = on_an_executor(&above, "").replace("period = \"40ms\"", "period = \"16ms\"");
        runner::run(
            &resolved(&text),
            On::Twin { threads: 1 },
            Vec::new(),
            &mut Silent,
        )
        .is_ok()
    };
    let answers = ["0.4ms", "0.6ms", "0.66ms", "0.7ms", "1.9ms", "2.6ms"].map(admitted);
    assert!(
        answers.is_sorted_by(|less, more| less >= more),
        "{answers:?}"
    );
    assert!(!answers[5]);
}

#[test]
fn an_executor_has_room_for_so_many_and_says_so() {
    let task = |n: usize| {
        format!(
            "[tasks.t{n}]\nkind = \"periodic\"\nperiod = \"1s\"\nservice = \"1ms\"\non = \"q\"\n"
        )
    };
    let tasks: String = (0..129).map(task).collect();
    let names: Vec<String> = (0..129).map(|n| format!("\"t{n}\"")).collect();
    let text = format!(
        "[executors.q]\npolicy = \"edf\"\nplacement = \"thread 20\"\n{tasks}[variants.v]\ntasks = [{}]\n",
        names.join(",")
    );
    let refused = runner::run(
        &resolved(&text),
        On::Twin { threads: 1 },
        Vec::new(),
        &mut Silent,
    );
    let text = refused.err().expect("there is no room").to_string();
    assert!(
        text.contains("129 activities") && text.contains("128"),
        "{text}"
    );
}

/// Whoever has not run again when the run is over has waited since, in a thread of its own and on an executor.
#[test]
fn a_task_that_is_starved_to_the_end_has_missed_its_deadlines() {
    let own =
        "[tasks.t]\nkind = \"periodic\"\nperiod = \"20ms\"\nservice = \"1ms\"\npriority = 10\n";
    let shared = "[executors.q]\npolicy = \"fcfs\"\nplacement = \"thread 10\"\n[tasks.t]\nkind = \"periodic\"\nperiod = \"20ms\"\nservice = \"1ms\"\non = \"q\"\n";
    let limits = [
        ("deadline_misses", "0"),
        ("service_gap", "\"30ms\""),
        ("wakeup_gap", "\"30ms\""),
        ("wakeup_latency", "\"30ms\""),
        ("response_time", "\"30ms\""),
    ];
    for task in [own, shared] {
        let mut text = format!(
            "[quick]\nidle = \"3s\"\n{task}[tasks.rogue]\nkind = \"rogue\"\nburst = \"20s\"\nevery = \"21s\"\nafter = \"505ms\"\npriority = 26\n"
        );
        for (quantity, most) in limits {
            text += &format!(
                "[contracts.{quantity}]\nsubject = \"t\"\nlimits = [{{ quantity = \"{quantity}\", at_most = {most} }}]\n"
            );
        }
        let names = limits
            .map(|(quantity, _)| format!("\"{quantity}\""))
            .join(",");
        text += &format!("[variants.v]\ntasks = [\"t\", \"rogue\"]\ncontracts = [{names}]\n");
        let results = run(&text);
        for (quantity, _) in limits {
            let judged = outcome(only(&results), quantity);
            assert_eq!(
                judged,
                Outcome::Violated,
                "{quantity}: {:?}",
                only(&results).verdict
            );
        }
    }
}

#[test]
fn a_task_that_never_runs_is_not_excused_by_a_device_that_does() {
    let text = format!(
        "{SERVED}[tasks.starved]
kind = \"periodic\"
period = \"20ms\"
service = \"1ms\"
priority = 5
[tasks.spin]
kind = \"spinner\"
count = 1
priority = 20
[contracts.excused]
subject = \"starved\"
limits = [{{ quantity = \"response_time\", at_most = \"1ms\", holds_if_seen = \"interrupt_period\" }}]
[variants.v]
placement = {{ served = \"thread 24\" }}
tasks = [\"starved\", \"spin\"]
contracts = [\"excused\"]
"
    );
    let results = run(&text);
    assert_eq!(outcome(only(&results), "excused"), Outcome::Violated);
}
