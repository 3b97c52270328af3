//! Devices that are only received or only played, in scenarios, in the study's twin: each is judged by its own losses and shown in its own
//! columns, alone and beside others.

use laxity_lab::evidence::results::VariantResults;
use laxity_lab::evidence::subjects::{Figures, StreamFigures, SubjectResults};
use laxity_lab::report::page;
use laxity_lab::report::run::{report, table};
use laxity_model::verify::contract::Outcome;

use crate::common::run;

const KINDS: [&str; 3] = ["audio", "dsl", "radio"];

/// Threads that never stop, beside whom a driver of less than their priority gets nothing.
const SPINNERS: &str = "[tasks.spinners]\nkind = \"spinner\"\ncount = 2\npriority = 20\n";

fn stream<'r>(variant: &'r VariantResults, name: &str) -> (&'r SubjectResults, &'r StreamFigures) {
    let mut streams = variant.streams();
    streams.find(|(subject, _)| subject.name == name).unwrap()
}

fn outcome(variant: &VariantResults, contract: &str) -> Outcome {
    let mut judged = variant.contracts.iter();
    let judged = judged.find(|judged| judged.name == contract).unwrap();
    judged.verdict.result
}

#[test]
fn each_kind_loses_nothing_where_it_is_served_and_is_convicted_where_it_is_not() {
    for kind in KINDS {
        let results = run(&format!(
            "[devices.card]\nkind = \"{kind}\"\n{SPINNERS}
[variants.served]
placement = \"thread 24\"
[variants.starved]
placement = \"thread 8\"
expect = \"violated\"
lost = \"some\"
"
        ));
        assert_eq!(results.exit_code, 0, "{:?}", results.verdict);
        let served = results.variant("served").unwrap();
        assert_eq!(outcome(served, "lossless"), Outcome::Met, "{kind}");
        let (subject, figures) = stream(served, "card");
        assert_eq!(subject.kind, kind);
        assert_eq!(figures.device.lost() + figures.frames_lost, 0, "{kind}");
        assert!(figures.frames_good > 50, "{kind}: {}", figures.frames_good);
        let starved = results.variant("starved").unwrap();
        assert_eq!(outcome(starved, "lossless"), Outcome::Violated, "{kind}");
        let (subject, figures) = stream(starved, "card");
        assert!(figures.device.lost() > 0, "{kind}");
        assert!(figures.frames_lost > 0, "{kind}");
        let told = &subject.quantities["samples_lost"];
        let bucketed: u64 = told.buckets.iter().map(|(_, count)| count).sum();
        assert_eq!(bucketed, told.count, "{kind}");
        // What is lost has a direction.
        let played = kind == "audio";
        assert_eq!(figures.device.samples_underrun > 0, played, "{kind}");
        assert_eq!(figures.device.samples_overwritten > 0, !played, "{kind}");
    }
}

#[test]
fn the_twin_charges_the_load_that_is_asked_for() {
    // With the second seed the card begins 0.19 s after the run.
    let kinds = [("audio", 30, 100_000), ("dsl", 10, 250_000)];
    for ((kind, load, usual), seed) in kinds.into_iter().flat_map(|one| [(one, 1), (one, 9)]) {
        let share = |load: &str| {
            let results = run(&format!(
                "seed = {seed}\n[devices.card]\nkind = \"{kind}\"\n{load}\n[variants.a]\nplacement = \"thread 24\"\n"
            ));
            let (_, figures) = stream(&results.variants[0], "card");
            (figures.device.cpu_share.expect("it was at work") * 1e6) as u64
        };
        let usual_share = share("");
        assert!(
            usual_share.abs_diff(usual) < usual / 20,
            "{kind}: {usual_share}"
        );
        let asked = load * 10_000;
        let own = share(&format!("load = \"{load} %\""));
        assert!(own.abs_diff(asked) < asked / 20, "{kind}: {own}");
    }
}

/// All four kinds of devices, and a task with work, in one variant.
const ALL: &str = "
[devices.modem]
kind = \"soft-modem\"
[devices.player]
kind = \"audio\"
ahead = 2
[devices.line]
kind = \"dsl\"
snr = \"32 dB\"
[devices.air]
kind = \"radio\"
[tasks.control]
kind = \"periodic\"
period = \"5ms\"
service = \"0.5ms\"
[contracts.in-time]
kind = \"periodic\"
limits = [{ quantity = \"deadline_misses\", at_most = 0 }]
[variants.all]
placement = { modem = \"thread 24\", player = \"thread 22\", line = \"thread 26\", air = \"thread 28\" }
contracts = [\"lossless\", \"in-time\"]
[variants.without-modem]
placement = { modem = \"absent\", player = \"thread 22\", line = \"thread 26\", air = \"thread 28\" }
contracts = [\"lossless\", \"in-time\"]
";

#[test]
fn several_kinds_are_judged_each_by_itself_and_shown_in_their_own_columns() {
    let results = run(ALL);
    assert_eq!(results.exit_code, 0, "{:?}", results.verdict);
    let all = results.variant("all").unwrap();
    let kinds = all.subjects.iter().map(|subject| subject.kind.as_str());
    let kinds: Vec<&str> = kinds.collect();
    assert_eq!(kinds, ["soft-modem", "audio", "dsl", "radio", "periodic"]);
    for width in [80, 110] {
        let text = table(&results, width, None);
        assert!(
            text.lines().all(|line| line.chars().count() <= width),
            "{text}"
        );
    }
    let table = table(&results, 110, None);
    for there in [
        "transfer",
        "frames",
        "response,",
        "wall max ms",
        "call, wall",
        "missed",
        "gap ms",
        "player",
        "air",
    ] {
        assert!(table.contains(there), "{there}\n{table}");
    }
    let page = page::render(&report(&results, Vec::new())).unwrap();
    for there in [
        "frames that arrived",
        "player: of them underrun",
        "processing, wall time, p50/max",
        "response, wall time, max",
        "share of a processor, service",
    ] {
        assert!(page.contains(there), "{there}");
    }
}

#[test]
fn without_a_modem_no_column_is_a_modems() {
    let text = ALL.replace("[variants.all]\n", "[variants.unused]\non = \"live\"\n");
    let results = run(&text);
    let table = table(&results, 80, None);
    for absent in ["transfer", "underrun", "pend.", "receivers"] {
        assert!(!table.contains(absent), "{absent}\n{table}");
    }
    let json: serde_json::Value = serde_json::from_slice(&results.to_json()).unwrap();
    assert!(json["variants"][0].get("transfer").is_none());
    let subject = &json["variants"][0]["subjects"][0];
    assert_eq!(subject["kind"], "audio");
    for there in [
        "frames_good",
        "frames_lost",
        "samples_underrun",
        "cpu_share",
    ] {
        assert!(subject.get(there).is_some(), "{there}");
    }
    let frames = &subject["quantities"]["frames_lost"];
    assert_eq!(frames["unit"], "count");
}

#[test]
fn what_is_written_is_read_again() {
    let results = run(ALL);
    for variant in &results.variants {
        for subject in &variant.subjects {
            let text = serde_json::to_string(subject).unwrap();
            let again: SubjectResults = serde_json::from_str(&text).unwrap();
            assert_eq!(again, *subject, "{text}");
            let is_stream = matches!(again.figures, Figures::Stream(_));
            assert_eq!(is_stream, KINDS.contains(&again.kind.as_str()));
        }
    }
}

/// A driver that never runs loses all that its card moves, and nobody calls that nothing.
#[test]
fn who_never_runs_loses_all() {
    for kind in KINDS {
        let results = run(&format!(
            "[devices.card]\nkind = \"{kind}\"
[tasks.hog]\nkind = \"spinner\"\npriority = 31
[variants.never]\nplacement = \"thread 24\"\nexpect = \"violated\"\nlost = \"some\"
"
        ));
        let variant = &results.variants[0];
        assert_eq!(outcome(variant, "lossless"), Outcome::Violated, "{kind}");
        let (_, figures) = stream(variant, "card");
        assert_eq!(figures.frames_good, 0, "{kind}");
        assert!(figures.frames_lost > 50, "{kind}: {}", figures.frames_lost);
        assert_eq!(
            figures.device.lost(),
            figures.device.samples_lost_undisturbed
        );
    }
}

/// The scenario that is shipped comes as it expects.
#[test]
fn the_shipped_player_is_served_by_what_is_proposed() {
    let results = run(include_str!("../../../../scenarios/audio.toml"));
    assert_eq!(results.exit_code, 0, "{:?}", results.verdict);
    let (_, figures) = stream(results.variant("reserved").unwrap(), "player");
    let proposed = figures.device.proposed.as_ref().unwrap();
    assert!(proposed.calls >= 1_000, "{proposed:?}");
    assert!(
        proposed.times_least_ppm.unwrap() <= 1_300_000,
        "{proposed:?}"
    );
    assert_eq!(results.skipped.len(), 1, "the program is for Linux");
}

#[test]
fn what_the_first_call_received_is_part_of_why_a_player_lost_samples() {
    let results = run("[devices.player]
kind = \"audio\"
load = \"25 %\"
[tasks.spinner]
kind = \"spinner\"
priority = 8
[contracts.lossless]
limits = [{ quantity = \"samples_lost\", at_most = 0 }]
[variants.reserved]
placement = { player = { placement = \"reserved 2ms/8ms\", enforcer = \"slots\" } }
contracts = [\"lossless\"]
");
    let told = results.variants[0]
        .unexpected()
        .collect::<Vec<_>>()
        .join("\n");
    assert!(told.contains("a call of 2.5ms"), "{told}");
    assert!(!told.contains("less was received"), "{told}");
}
