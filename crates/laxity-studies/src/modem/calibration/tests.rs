use laxity_lab::evidence::results::Provenance;
use laxity_lab::runner::{self, On, Silent};
use laxity_lab::scenario::{Length, parse};

use super::*;
use crate::modem::tables::{QuotedTable, TABLES};
use crate::register::Kind;

#[test]
fn what_is_calibrated_says_by_what() {
    for constant in REGISTER.iter() {
        let says = !constant.chosen_by.is_empty();
        assert!(says || constant.kind != Kind::Calibrated, "{constant:?}");
        let is_chosen = [Kind::Calibrated, Kind::Reading].contains(&constant.kind);
        assert!(!says || is_chosen, "{constant:?}");
    }
}

/// What spans a range around a constant was chosen by all that chose it.
#[test]
fn what_follows_from_a_calibrated_constant_is_calibrated_by_the_same_rows() {
    let of = |value: &str| {
        let mut all = REGISTER.iter();
        all.find(|constant| constant.value == value)
            .expect("it is listed")
    };
    let [lasting, drawn] = ["training-lasts", "patience"].map(of);
    assert_eq!([lasting.kind, drawn.kind], [Kind::Calibrated; 2]);
    let is_said = |row: &String| drawn.chosen_by.contains(row);
    assert!(lasting.chosen_by.iter().all(is_said), "{drawn:?}");
}

/// How slow a row is that retrains, and whether it gets through at all.
#[test]
fn what_decides_how_slow_a_degraded_row_is_is_listed() {
    let listed: Vec<&str> = REGISTER.iter().map(|of| of.value.as_str()).collect();
    let retraining = ["error", "power", "windows", "run"].map(|of| format!("retrain-{of}"));
    assert!(retraining.iter().all(|key| listed.contains(&key.as_str())));
    for key in [
        "lapm",
        "training",
        "dial-tone-heard",
        "digits",
        "ringing",
        "answer-tone",
        "begins",
        "crystal-swept",
        "bytes-swept",
        "hurried",
        "priority-outside",
        "starvation-after",
        "timer-boost",
    ] {
        assert!(listed.contains(&key), "{key}");
    }
    // No second copy of a number: what is shown is what the link is given.
    let beside = Span::from_millis(250);
    let lapm = format!(
        "k 15, N401 128, N400 12, T401 the frames' own time and {beside}, T403 {}",
        Span::from_secs(5)
    );
    assert_eq!(of_error_correction(lapm::Config::default()), lapm);
}

/// What is shown is what a call is given, and not what error correction would take by itself.
#[test]
fn what_error_correction_takes_in_is_what_the_link_makes_of_it() {
    let link = endpoint::Config::default();
    assert!(link.send_octets() > link.lapm.send_octets);
    let shown = of_link().into_iter().find(|(key, _)| *key == "send-octets");
    assert_eq!(shown.map(|(_, value)| value), Some(Value::Count(6_000)));
}

#[test]
fn what_the_stress_run_the_line_the_link_and_the_queue_of_calls_assume_is_listed() {
    let listed: Vec<&str> = REGISTER.iter().map(|of| of.value.as_str()).collect();
    let disk = [
        "disk-request",
        "disk-search",
        "disk-handler",
        "disk-deferred",
    ];
    let line = [
        "distortion",
        "highpass",
        "line-clock",
        "deferred-dispatch",
        "far-delay",
        "far-pieces",
        "tones",
    ];
    let link = of_link().map(|(key, _)| key);
    for key in disk.into_iter().chain(line).chain(link) {
        assert!(listed.contains(&key), "{key}");
    }
}

/// Words that name a reservation: `3/16`.
fn reservations(text: &str) -> impl Iterator<Item = &str> {
    let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let words = text.split(|c: char| !c.is_ascii_digit() && c != '/' && c != '.');
    words
        .map(|word| word.trim_matches('.'))
        .filter(move |word| {
            let parts: Vec<&str> = word.split('/').collect();
            parts.len() == 2 && parts.into_iter().all(number)
        })
}

fn reserved(name: &str) -> Place {
    Place::try_from(format!("RES {name}")).expect("a reservation")
}

#[test]
fn what_a_reason_names_is_counted_as_chosen_by() {
    for constant in REGISTER.iter() {
        for reservation in reservations(&constant.reason) {
            assert!(chose(&reserved(reservation), false), "{constant:?}");
        }
        for (at, _) in constant.reason.match_indices("figure ") {
            let digits = |c: &char| c.is_ascii_digit();
            let number: String = constant.reason[at + 7..]
                .chars()
                .take_while(digits)
                .collect();
            let figure = format!("figure {number}");
            let says = |row: &String| row.split(':').next() == Some(&figure);
            assert!(constant.chosen_by.iter().any(says), "{constant:?}");
        }
    }
}

#[test]
fn rows_that_a_constant_was_chosen_by_are_known_in_every_table() {
    let of_table = |table: &QuotedTable| -> Vec<String> {
        let places = table.rows.iter().map(|row| &row.place);
        let chosen = places.filter(|place| chose(place, table.confined));
        chosen.map(|place| place.name().to_owned()).collect()
    };
    let [first, second, third] = [0, 1, 2].map(|table| of_table(&TABLES[table]));
    assert_eq!(first, ["RES 2/16", "RES 3/16", "RES 1/8"]);
    assert_eq!(second, first);
    let all = ["1/7", "2/13", "2/14", "3/16", "4/17", "7/20"];
    assert_eq!(third, all.map(|row| format!("RES {row}")));
    // No constant was chosen by a row that the study does not have.
    for constant in REGISTER.iter() {
        for chosen in constant
            .chosen_by
            .iter()
            .flat_map(|words| reservations(words))
        {
            let chosen = format!("RES {chosen}");
            assert!(
                third.contains(&chosen) || first.contains(&chosen),
                "{constant:?}"
            );
        }
    }
}

/// Without the entry that the line of gaps has in the register no row would count as decided by it.
#[test]
fn the_line_of_gaps_chose_a_constant() {
    assert!(chosen_by().any(|of| of == LINE_OF_GAPS));
}

#[test]
fn a_constant_keeps_its_value_wherever_it_stands() {
    let rows = rows().expect("each has a value");
    let mut swapped = REGISTER.clone();
    swapped.reverse();
    let mut again = rows_of(&swapped).expect("each has a value");
    again.reverse();
    assert_eq!(rows, again);
}

#[test]
fn a_value_that_is_none_is_not_shown() {
    let mut register = REGISTER.clone();
    let left_out = register.pop().expect("there are constants");
    let error = rows_of(&register).expect_err("a value is left").to_string();
    assert!(error.contains(&left_out.value), "{error}");
    register.push(Constant {
        value: "no-such".into(),
        ..left_out
    });
    assert!(rows_of(&register).is_err());
    register.pop();
    register.push(register[0].clone());
    assert!(rows_of(&register).is_err(), "one value twice");
}

/// What a scenario's run in this twin says of where its figures come from is what the register says of the same constants.
#[test]
fn a_run_says_of_what_is_put_in_what_the_register_says() {
    let of = |load: &str| {
        let text = format!(
            "[full]\nrepeats = 1\nbytes = 1_000\nlimit = \"60s\"\n\
             [devices.modem]\nkind = \"soft-modem\"\n{load}\n\
             [defaults]\ncontracts = []\n\
             [variants.INT]\nplacement = \"interrupt\"\nstart = \"connected\"\n"
        );
        let parsed = parse(&text, "a test").unwrap_or_else(|wrong| panic!("{wrong:?}"));
        let resolved = parsed.resolve(Length::Full);
        let finished = runner::run(&resolved, On::Twin { threads: 1 }, Vec::new(), &mut Silent);
        finished
            .expect("the twin runs everywhere")
            .results
            .provenance
    };
    let chosen_by = |key: &str| {
        let constant = REGISTER.iter().find(|constant| constant.value == key);
        constant.expect("it is listed").chosen_by.join(", ")
    };
    let is_by = |from: &Provenance, key: &str| match from {
        Provenance::Calibrated { to } => to.contains(&chosen_by(key)),
        _ => false,
    };
    let (usual, stated) = (of(""), of("load = \"55 %\""));
    for figure in ["processing_ns", "cpu_share"] {
        assert!(is_by(&usual[figure], "call-unlogged"), "{usual:?}");
        let from = &stated[figure];
        assert!(matches!(from, Provenance::Charged { .. }), "{from:?}");
    }
    for all in [usual, stated] {
        assert!(is_by(&all["output_lead"], "output-lead"), "{all:?}");
    }
}
