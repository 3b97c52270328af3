//! Every broken scenario in `broken/` gets the diagnostics that stand beside it, and every good one is read as it is meant.
//!
//! `broken/<name>.toml` is the input, `broken/<name>.txt` what a person sees.

use laxity_lab::scenario::{
    Chosen, Diagnostic, ExpectedGrade, Length, LengthSpec, Loss, Outcome, Phases, Placing, Rank,
    Scenario, Severity, Style, TaskKind, parse,
};
use laxity_model::analysis::devices::Open;
use laxity_model::verify::contract::{Bound, Expectation, Quantity, Statistic};
use laxity_model::{Enforcer, Outside, Priority, Span};
use proptest::prelude::*;

use crate::golden::{assert_told, explained, path, read};

fn errors(text: &str, file: &str) -> Vec<Diagnostic> {
    parse(text, file).expect_err("this scenario is broken")
}

/// A shipped scenario; panics with what is wrong.
fn shipped(name: &str) -> Scenario {
    let text = read(&path("../../scenarios").join(name));
    parse(&text, name).unwrap_or_else(|errors| {
        let rendered: Vec<_> = errors.iter().map(ToString::to_string).collect();
        panic!("{}", rendered.join("\n\n"))
    })
}

#[test]
fn every_broken_scenario_is_explained() {
    assert_told("broken", 40, |text, name| {
        explained(text, name, &errors(text, name))
    });
}

#[test]
fn several_mistakes_are_told_at_once() {
    let text = "sede = 1\n[devices.modem]\nkind = \"soft-modm\"\n[tasks.s]\nkind = \"spinner\"\ncount = 0\n";
    let lines: Vec<_> = errors(text, "x.toml").iter().map(|one| one.line).collect();
    assert_eq!(lines, [1, 1, 3, 6]);
}

/// A device of which it is not known where it is, is not absent, and whoever else takes part is not missing: one slip is one error.
#[test]
fn nothing_follows_from_a_line_that_could_not_be_read() {
    let text = read(&path("../../scenarios").join("soft-modem.toml"));
    let slips = [
        ("placement = ", "placement = \"reserved 9ms/8ms\""),
        ("on = ", "on = \"liv\""),
        ("tasks = ", "tasks = [\"spiners\", \"cothread\"]"),
        ("kind = \"soft-modem\"", "kind = \"soft-modm\""),
        ("kind = \"periodic\"", "kind = \"periodc\""),
    ];
    for (key, slip) in slips {
        let lines = text.lines().enumerate();
        let lines = lines.filter(|(_, line)| line.starts_with(key));
        let lines: Vec<usize> = lines.map(|(number, _)| number).collect();
        assert!(!lines.is_empty(), "{key}");
        for number in lines {
            let with_slip = |(at, line)| if at == number { slip } else { line };
            let wrong: Vec<&str> = text.lines().enumerate().map(with_slip).collect();
            let found = errors(&wrong.join("\n"), "x.toml");
            let found: Vec<_> = found.iter().map(|one| (one.line, &one.cause)).collect();
            let is_the_slip = matches!(found.as_slice(), [(line, _)] if *line == number + 1);
            assert!(is_the_slip, "line {} as {slip}: {found:?}", number + 1);
        }
    }
}

#[test]
fn the_minimal_scenario_has_the_defaults_that_it_needs() {
    let minimal = shipped("reserved-minimal.toml");
    assert_eq!(minimal.notes, []);
    let run = minimal.resolve(Length::Quick);
    assert_eq!(run.variants.len(), 1);
    let variant = &run.variants[0];
    assert_eq!((variant.devices.len(), variant.tasks.len()), (1, 1));
    assert!(variant.live && variant.twin);
    let Placing::Reserved(request, before) = variant.devices[0].placing else {
        panic!("{:?} is not reserved", variant.devices[0].placing);
    };
    assert_eq!(request.reservation.to_string(), "2ms/8ms");
    assert_eq!(
        (request.enforcer, request.outside),
        (Enforcer::Slots, Outside::Timesharing(Priority::NORMAL))
    );
    assert!(!request.begins_at_start);
    assert_eq!(before.level(), 24);
    assert_eq!(variant.devices[0].load.to_string(), "14.7 % ± 0.7 %");
    assert_eq!(
        (variant.expect.lost, variant.expect.transfer),
        (Loss::None, Outcome::Complete)
    );
    assert_eq!(variant.expect.grade, Some(ExpectedGrade::Enforced));
    let judged: Vec<_> = variant
        .contracts
        .iter()
        .map(|(c, e)| (c.name.as_str(), *e))
        .collect();
    assert_eq!(judged, [("pc99", Expectation::Met)]);
}

#[test]
fn the_main_scenario_says_what_it_must_show() {
    let scenario = shipped("soft-modem.toml");
    assert_eq!(scenario.notes, []);
    let run = scenario.resolve(Length::Quick);
    let names: Vec<_> = run
        .variants
        .iter()
        .map(|variant| variant.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "none",
            "interrupt",
            "deferred",
            "thread-24",
            "thread-8",
            "reserved-slots",
            "reserved-deadline",
            "none-cothread-reserved",
            "reserved-deadline-cothread",
            "rogue-thread",
            "rogue-deadline",
            "rogue-slots",
            "rogue-above-slots",
        ]
    );
}

#[test]
fn the_main_scenario_compares_and_judges_as_it_must() {
    let scenario = shipped("soft-modem.toml");
    let run = scenario.resolve(Length::Quick);
    let names: Vec<_> = run.variants.iter().map(|v| v.name.as_str()).collect();
    let control = |name: &str| {
        let variant = run.variants.iter().find(|variant| variant.name == name);
        variant
            .and_then(|variant| variant.control)
            .map(|index| names[index])
    };
    assert_eq!(control("none"), None);
    assert_eq!(control("interrupt"), Some("none"));
    assert_eq!(control("rogue-thread"), Some("none"));
    assert_eq!(
        control("reserved-deadline-cothread"),
        Some("none-cothread-reserved")
    );
    let live_only = run.variants.iter().filter(|variant| !variant.twin);
    let live_only: Vec<_> = live_only.map(|variant| variant.name.as_str()).collect();
    assert_eq!(
        live_only,
        [
            "reserved-deadline",
            "none-cothread-reserved",
            "reserved-deadline-cothread",
            "rogue-deadline",
            "rogue-above-slots",
        ]
    );
    let above = &run.variants[12];
    assert_eq!(above.expect.grade, Some(ExpectedGrade::Unenforced));
    let fifo = |kind: &TaskKind| {
        matches!(
            kind,
            TaskKind::Rogue {
                rank: Rank::Foreign { fifo: 90 },
                ..
            }
        )
    };
    assert!(above.tasks.iter().any(|task| fifo(&task.kind)));
}

/// What the main scenario asks of its co-thread's gaps.
#[test]
fn the_main_scenario_limits_gaps_by_those_of_the_control() {
    let run = shipped("soft-modem.toml").resolve(Length::Quick);
    let mut contracts = run.variants.iter().flat_map(|variant| &variant.contracts);
    let (own, _) = contracts
        .find(|(contract, _)| contract.name != "pc99")
        .expect("one");
    let limits = &own.limits;
    let statistics: Vec<_> = limits.iter().map(|limit| limit.statistic).collect();
    assert_eq!(
        statistics,
        [
            Statistic::Percentile(990_000),
            Statistic::Percentile(999_000),
            Statistic::Maximum
        ]
    );
    for limit in limits {
        assert_eq!(limit.quantity, Quantity::WAKEUP_GAP);
        assert_eq!(
            limit.bound,
            Bound::AtMostTimesControl {
                ratio_ppm: 1_050_000
            }
        );
    }
}

/// What the main scenario writes out as defaults are the defaults.
#[test]
fn the_lengths_are_those_written_down() {
    let [main, minimal] = ["soft-modem.toml", "reserved-minimal.toml"].map(shipped);
    for length in [Length::Quick, Length::Full] {
        let [main, minimal] = [&main, &minimal].map(|one| one.clone().resolve(length));
        let written = LengthSpec {
            auto: None,
            ..main.run
        };
        assert_eq!(written, minimal.run);
        assert_eq!(
            (main.host, main.mss_bytes),
            (minimal.host, minimal.mss_bytes)
        );
        let reserved = main
            .variants
            .iter()
            .find(|one| one.name == "reserved-slots");
        let [own, other] = [
            &reserved.expect("a variant").devices,
            &minimal.variants[0].devices,
        ];
        match length {
            Length::Full => assert_eq!(format!("{own:?}"), format!("{other:?}")),
            // What it reserves is left to laxity.
            Length::Quick => {
                let open = Open::Service(Span::from_millis(8));
                assert_eq!(own[0].chosen, Chosen::Open(open));
                let shown = |device| format!("{device:?}");
                assert_eq!(own[0].load, other[0].load);
                assert_eq!(shown(&own[0].device), shown(&other[0].device));
            }
        }
    }
    let full = main.resolve(Length::Full);
    assert_eq!((full.run.bytes, full.run.repeats), (200_000, 5));
    assert_eq!(full.run.phases, Phases::STUDY);
    let modem = &full.variants[1].devices[0].device;
    let connected = modem.before_transfer(full.run.phases);
    assert_eq!(connected, Some(Span::from_secs(23)));
}

#[test]
fn each_thing_can_be_placed_by_name() {
    let text = r#"
        [host]
        processors = 2
        [devices.modem]
        kind = "soft-modem"
        phases = { training = "3 s" }
        [devices.second]
        kind = "soft-modem"
        processor = 1
        [tasks.player]
        kind = "command"
        argv = ["aplay", "song.wav"]
        [variants.all]
        on = "live"
        [variants.all.placement]
        modem = { placement = "reserved 2ms/8ms", enforcer = "deadline", outside = "confined" }
        second = "interrupt"
        player = { placement = "reserved 1ms/10ms", enforcer = "deadline" }
        [variants.some]
        on = "live"
        placement = { second = "thread 24" }
    "#;
    let scenario = parse(text, "x.toml").expect("this is right");
    // That `deadline` confines anyway is worth a note, and no error; so is a device that is left out.
    let notes = scenario.notes.iter();
    let notes: Vec<_> = notes.map(|note| (note.severity, note.line)).collect();
    assert_eq!(notes, [(Severity::Note, 16), (Severity::Note, 21)]);
    let (said, remedy) = (&scenario.notes[1].cause, &scenario.notes[1].remedy);
    assert!(said.contains("`modem` is not placed"), "{said}");
    assert!(remedy.contains("modem = \"absent\""), "{remedy}");
    let asked = |placing: Option<Placing>| placing?.request().map(|request| request.enforcer);
    let run = scenario.resolve(Length::Quick);
    let all = &run.variants[0];
    assert_eq!(
        asked(Some(all.devices[0].placing)),
        Some(Enforcer::Deadline)
    );
    let phases = Phases {
        training: Span::from_secs(3),
        ..Phases::SHORT
    };
    let before = all.devices[0].device.before_transfer(run.run.phases);
    assert_eq!(before, Some(phases.before_connection()));
    assert_eq!(all.devices[1].placing, Placing::Interrupt);
    assert_eq!(asked(all.tasks[0].placing), Some(Enforcer::Deadline));
    let some = &run.variants[1];
    assert_eq!(some.devices.len(), 1);
    assert_eq!(some.devices[0].name, "second");
    assert_eq!(
        some.tasks[0].placing,
        Some(Placing::Thread(Priority::NORMAL))
    );
}

/// What is not enforced is not met for its holder, and may be for everybody else.
#[test]
fn a_contract_of_others_can_be_met_beside_a_grant_that_is_not_enforced() {
    let name = "grade-unenforced-and-met-by-its-holder.toml";
    let text = read(&path("tests/broken").join(name));
    let text = text.replace("of-the-modem = \"met\"", "of-the-modem = \"violated\"");
    let run = parse(&text, "x.toml").expect("this is right");
    let contracts = &run.resolve(Length::Quick).variants[0].contracts;
    let expected: Vec<_> = contracts.iter().map(|(_, expected)| *expected).collect();
    assert_eq!(expected, [Expectation::Violated, Expectation::Met]);
}

#[cfg(not(feature = "v22bis"))]
#[test]
fn a_standard_that_was_not_built_is_refused_where_it_is_named() {
    let found = errors(
        &read(&path("../../scenarios").join("v22bis.toml")),
        "v22bis.toml",
    );
    let found: Vec<_> = found
        .iter()
        .map(|one| (one.line, one.cause.as_str()))
        .collect();
    assert_eq!(found, [(7, "this laxity was built without V.22bis")]);
}

/// Every character of the main scenario, one by one, replaced by each of a few that mean something: read, or explained.
#[test]
fn every_slip_of_one_character_is_read_or_explained() {
    let good = read(&path("../../scenarios").join("soft-modem.toml"));
    for (at, old) in good.char_indices() {
        // Comments are long, and a slip in them is none.
        let line = good[..at].rfind('\n').map_or(0, |newline| newline + 1);
        if good[line..at].contains('#') {
            continue;
        }
        for new in ["", "x", "\"", "-", "\n", "["] {
            let mut text = good.clone();
            text.replace_range(at..at + old.len_utf8(), new);
            if let Err(found) = parse(&text, "x.toml") {
                let error = |one: &Diagnostic| one.severity == Severity::Error;
                assert!(
                    found.iter().any(error),
                    "{new:?} for {old:?} at {at}: {found:?}"
                );
            }
        }
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "(?s).{0,200}") {
        let _ = parse(&text, "x.toml").map_err(|found| {
            found.iter().map(|one| one.render(Style::Coloured).len()).sum::<usize>()
        });
    }

    /// One change anywhere in the main scenario: read, or explained within the file.
    #[test]
    fn a_slip_in_a_good_file_is_read_or_explained(at: prop::sample::Index, insert in "[\\[\\]{}=\".0-9a-z \n±\t\r-]{0,3}", cut in 0_usize..4) {
        let mut text = read(&path("../../scenarios").join("soft-modem.toml"));
        let from = text.floor_char_boundary(at.index(text.len()));
        let until = text.ceil_char_boundary((from + cut).min(text.len()));
        text.replace_range(from..until, &insert);
        if let Err(found) = parse(&text, "x.toml") {
            prop_assert!(found.iter().any(|one| one.severity == Severity::Error));
            for one in found {
                prop_assert!(one.line <= text.split('\n').count());
                let shown = one.render(Style::Plain);
                prop_assert!(!shown.is_empty());
                prop_assert_eq!(laxity_lab::plain_lines(&shown), &*shown);
            }
        }
    }
}

/// The README says which shipped scenario explains which keys.
#[test]
fn every_key_stands_in_a_scenario_that_is_shipped() {
    let soft_modem = "title seed processors twin mss repeats bytes phases limit idle kind processor standard load line \
        snr_down snr_up clock_offset carrier_offset on_hook dialing training count priority period reservation burst every \
        after fifo quantity statistic at_most at_least severity holds_if_seen subject about on placement tasks contracts \
        expect lost transfer grade start enforcer outside before reserve_from control";
    let networks = "rate duplex delay interrupt packet packets bytes jitter block pause count interface flows \
        demultiplexing threads buffers clients in_every";
    let keys = [
        ("soft-modem.toml", soft_modem),
        ("turns.toml", "policy placement on service"),
        ("upcalls-chain.toml", "after group budget"),
        ("one-hour.toml", "argv exit placement"),
        ("video-and-ftp.toml", networks),
    ];
    for (file, keys) in keys {
        let text = read(&path("../../scenarios").join(file));
        for key in keys.split_whitespace() {
            let is_there =
                text.contains(&format!("{key} = ")) || text.contains(&format!("`{key}`"));
            assert!(is_there, "{key} in {file}");
        }
    }
}
