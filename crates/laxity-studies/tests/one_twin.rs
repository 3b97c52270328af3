//! A profile's name means one twin: what a scenario's run shows of a reservation is what the study of figure 17 and table 3 shows of it, and what
//! `plan` says beforehand.

use laxity_lab::bench::{Request, make};
use laxity_lab::evidence::results::RunResults;
use laxity_lab::machine_file::Known;
use laxity_lab::plan::scenario as plan;
use laxity_lab::runner::{self, On, Silent};
use laxity_lab::scenario::{Length, Resolved, parse};
use laxity_studies::modem::{Modem, map};

const TWIN: On = On::Twin { threads: 0 };

/// The rows of the study's table 3: whether all, some or none of its transfers came through at full speed.
const TABLE_3: [(&str, &str); 12] = [
    ("1/7", "all"),
    ("1/8", "none"),
    ("2/13", "all"),
    ("2/14", "some"),
    ("2/15", "none"),
    ("3/15", "all"),
    ("3/16", "some"),
    ("3/17", "none"),
    ("4/16", "all"),
    ("4/17", "none"),
    ("7/20", "none"),
    ("8/20", "all"),
];

fn scenario(text: &str) -> Resolved {
    let parsed = parse(text, "a test").unwrap_or_else(|wrong| panic!("{wrong:?}"));
    parsed.resolve(Length::Full)
}

/// A modem with each of these reservations and nothing besides, and one in its interrupt handler.
fn confined<'a>(reservations: impl IntoIterator<Item = &'a str>) -> Resolved {
    let mut text = String::from(
        "[full]\nrepeats = 1\nbytes = 200_000\nlimit = \"400s\"\n\
         [devices.modem]\nkind = \"soft-modem\"\n\
         [tasks.spinner]\nkind = \"spinner\"\ncount = 1\n\
         [defaults]\ncontracts = []\n[variants.INT]\nplacement = \"interrupt\"\n",
    );
    for name in reservations {
        let (x, y) = name.split_once('/').expect("X/Y");
        text += &format!(
            "[variants.{}-of-{y}]\nplacement = \"reserved {x}ms/{y}ms\"\noutside = \"confined\"\n",
            x.replace('.', "_")
        );
    }
    scenario(&text)
}

fn run(resolved: &Resolved) -> RunResults {
    let finished = runner::run(resolved, TWIN, Vec::new(), &mut Silent);
    finished.expect("the twin runs everywhere").results
}

/// How long each variant's transfer took, in nanoseconds; `None` where it did not come through.
fn took(results: &RunResults) -> Vec<Option<u64>> {
    let variants = results.variants.iter();
    let modem = variants.map(|variant| variant.modems().next().expect("it has a modem").1);
    modem
        .map(|modem| {
            let transfer = &modem.transfer;
            transfer.duration_ns.filter(|_| transfer.completed)
        })
        .collect()
}

#[test]
fn what_a_scenario_runs_is_what_the_study_found() {
    let took = took(&run(&confined(TABLE_3.map(|(name, _)| name))));
    let (int, rows) = took.split_first().expect("INT");
    let int = int.expect("it comes through");
    for ((name, class), took) in TABLE_3.iter().zip(rows) {
        let fast = took.is_some_and(|took| took * 10 <= int * 11);
        match *class {
            "all" => assert!(fast, "{name}: {took:?}, INT {int}"),
            "none" => assert_eq!(*took, None, "{name}"),
            _ => assert!(!fast, "{name}: {took:?}, INT {int}"),
        }
    }
}

/// What a plan calls too late and the twin serves: their worst case was not met.
const DENIED: [&str; 6] = ["1/7", "0.43/3", "0.87/6", "1.31/9", "9.5/22", "17.5/30"];

/// What it calls served once connected, and too late before that, for the one long call; the twin serves it all the same.
const DENIED_BEFORE: [&str; 15] = [
    "2/13", "3/15", "0.8/5", "1/6", "1.5/9", "2/11", "2/12", "3/13", "3/14", "0.73/5", "1.46/10",
    "1.6/11", "2.5/15", "3.5/16", "5.6/18",
];

/// As a page names them.
fn named(all: &[&str]) -> String {
    let (last, others) = all.split_last().expect("there are some");
    format!("{} and {last}", others.join(", "))
}

#[test]
fn a_plan_says_of_a_reservation_what_the_study_predicts() {
    let request = Request {
        figures: vec!["figure-17".into()],
        seed: 1,
        repeats: Some(1),
        ..Request::default()
    };
    let made = make(&Modem, &request, &mut Silent).expect("the twin runs");
    let tried = map::surveyed(&made).expect("the analysis knows each of them");
    let names: Vec<&str> = tried
        .iter()
        .map(|one| one.name.trim_start_matches("RES "))
        .collect();
    assert_eq!(names.len(), 56, "all of figure 17");
    let (mut denied, mut denied_before) = (Vec::new(), Vec::new());
    for ((one, name), plan) in tried.iter().zip(&names).zip(planned(names.clone())) {
        let served = plan.served;
        assert_eq!(plan.lines, one.lines, "{name}");
        // A plan counts besides what the machine takes from the slots, and the one long call before the connection.
        assert!(one.exact || !served, "{name}");
        let mut rows = TABLE_3.iter();
        let class = rows.find(|(row, _)| row == name).map(|(_, class)| *class);
        assert!(
            !served || class.is_none_or(|class| class == "all"),
            "{name}"
        );
        let twin_serves = one.exact && one.served();
        if twin_serves && !served {
            denied.push(*name);
        } else if let Some(late) = plan.late_before.filter(|_| twin_serves) {
            assert!(late.contains(RECOGNITION), "{name}: {late}");
            denied_before.push(*name);
        } else {
            continue;
        }
        // Who reads no more than the headline reads it of both.
        assert!(
            plan.headline.contains(NOT_SURE),
            "{name}: {}",
            plan.headline
        );
    }
    assert_eq!(denied, DENIED);
    assert_eq!(denied_before, DENIED_BEFORE);
    // Those who read of it read of each.
    for page in [
        include_str!("../../../CAVEATS.md"),
        include_str!("../../../docs/soft-modem.md"),
    ] {
        for all in [&DENIED[..], &DENIED_BEFORE] {
            let all = named(all);
            assert!(page.contains(&all), "{all}");
        }
    }
}

/// The call before the connection for which a plan finds too little, and what its headline makes of that.
const RECOGNITION: &str = " of 8 of the call that recognises the answer";
const NOT_SURE: &str = "not sure to be served in time";

/// What a plan says of a reservation.
struct Planned {
    /// Whether the exact test says that the connected modem is served.
    served: bool,
    /// What may be late before.
    late_before: Option<String>,
    headline: String,
    /// What the two lines say.
    lines: bool,
}

fn planned<'a>(reservations: impl IntoIterator<Item = &'a str>) -> Vec<Planned> {
    let planned = plan::plan(
        &confined(reservations),
        (TWIN, false),
        &Known::Nothing,
        &mut Silent,
    );
    let planned = planned.expect("a plan");
    let text = plan::render(&planned, 10_000);
    let headline = |name: &str| {
        let begins = format!("{name}: ");
        let mut lines = text.lines();
        let line = lines.find(|line| line.starts_with(&begins));
        line.expect("each variant has a line").to_owned()
    };
    let variants = planned.variants.iter().skip(1);
    let said = variants.map(|variant| {
        let [device] = &variant.devices[..] else {
            panic!("{}: {:?}", variant.name, variant.refusals);
        };
        Planned {
            served: device.answer == "served",
            late_before: device.late_before.clone(),
            headline: headline(&variant.name),
            lines: device.is_enough && device.is_often_enough,
        }
    });
    said.collect()
}

/// What became of a modem with 2 ms in every 8 beside a spinner: whether its transfer came through, what it lost, and what its reservation is called.
fn beside_a_spinner(priority: u8, reserved: &str) -> (bool, u64, Option<String>) {
    let text = format!(
        "[devices.modem]\nkind = \"soft-modem\"\n[tasks.spinner]\nkind = \"spinner\"\n\
         count = 1\npriority = {priority}\n[defaults]\ncontracts = []\n[variants.reserved]\n\
         placement = \"reserved 2ms/8ms\"\n{reserved}\n"
    );
    let resolved = parse(&text, "a test").expect("a scenario");
    let results = run(&resolved.resolve(Length::Quick));
    let variant = &results.variants[0];
    let modems = variant.modems().map(|(_, modem)| modem);
    let lost = modems.map(|modem| modem.device.samples_lost_undisturbed);
    let came_through = took(&results)[0].is_some();
    (came_through, lost.sum(), variant.grade.clone())
}

/// The study says that threads of any priority leave a reservation its time (§6.4.1). Here those of 31 do not, as figure 16 asks for.
#[test]
fn a_spinner_of_priority_31_takes_a_reservation_and_one_of_30_does_not() {
    let from_the_start = |priority| beside_a_spinner(priority, "reserve_from = \"start\"");
    let grade = |name: &str| Some(name.to_owned());
    assert_eq!(from_the_start(30), (true, 0, grade("enforced")));
    let (came_through, lost, unenforced) = from_the_start(31);
    assert_eq!((came_through, unenforced), (false, grade("unenforced")));
    assert!(lost > 30_000, "{lost}");
}

/// In the study's own order the modem asks for its reservation when it dials, and on hook has nothing but priority 24 (§5.4): who is above that keeps it from
/// asking at all.
#[test]
fn on_hook_nothing_but_its_priority_keeps_a_modem_from_a_spinner() {
    let in_order = |priority| beside_a_spinner(priority, "");
    let enforced = || Some("enforced".to_owned());
    assert_eq!(in_order(20), (true, 0, enforced()));
    let equal = in_order(24);
    assert_eq!(equal, (true, 1_268, enforced()));
    let above = in_order(25);
    assert_eq!(above, (false, 74_703, None));
    assert_eq!(in_order(30), above);
    let page = include_str!("../../../docs/soft-modem.md");
    for lost in ["1,268", "74,703"] {
        assert!(page.contains(&format!("{lost} samples")), "{lost}");
    }
}

#[test]
fn a_load_that_a_scenario_states_is_what_its_modem_takes() {
    let share = |load: &str| {
        let text = format!(
            "[devices.modem]\nkind = \"soft-modem\"\n{load}\n[defaults]\ncontracts = []\n\
             [variants.thread]\nplacement = \"thread 24\"\n"
        );
        let resolved = parse(&text, "a test")
            .expect("a scenario")
            .resolve(Length::Quick);
        let results = run(&resolved);
        results.variants[0]
            .modems()
            .next()
            .expect("a modem")
            .1
            .device
            .cpu_share
            .expect("it was at work")
    };
    let near = |share: f64, wanted: f64| (share - wanted).abs() < 0.005;
    for (load, wanted) in [
        ("load = \"5 %\"", 0.05),
        ("load = \"40 %\"", 0.4),
        ("", 0.1422),
    ] {
        assert!(near(share(load), wanted), "{load}: {}", share(load));
    }
}

#[test]
fn a_seed_moves_phases_and_nothing_else_does() {
    let mut resolved = confined(["2/8"]);
    resolved.run.bytes = 4_000;
    let longest = |resolved: &Resolved| {
        let results = run(resolved);
        let mut variants = results.variants.iter();
        let reserved = variants.find(|variant| variant.name == "2-of-8");
        let figures = reserved.expect("it ran").modems().next().expect("a modem");
        figures.1.device.processing_ns.max
    };
    let first = longest(&resolved);
    assert_eq!(longest(&resolved), first);
    let all = (2..6).map(|seed| {
        resolved.seed = seed;
        longest(&resolved)
    });
    assert!(all.into_iter().any(|other| other != first));
}
