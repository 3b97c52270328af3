//! What `laxity lab` promises to whoever calls it.

mod common;

use common::{Bench, assert_code, assert_says, stderr, stdout, unbroken};
use laxity::doctor::rights::{self, Right};
use laxity_lab::bench::{Experiment, Text};
use laxity_studies::STUDIES;
use serde_json::Value;

const PAGE: &str = "laxity-acceptance.html";

#[test]
fn without_a_name_the_experiments_are_listed() {
    let bench = Bench::new();
    let output = bench.run(&["lab"]);
    assert_code(&output, 0);
    let listed = stdout(&output);
    let longest = listed.lines().map(|line| line.chars().count()).max();
    assert!(longest <= Some(80), "{listed}");
    let listed = unbroken(&listed);
    assert_says(&listed, &["Experiments:", "acceptance"]);
    for study in STUDIES.map(Experiment::text) {
        assert_says(&listed, &[&study.name, &study.summary]);
        for figure in &study.figures {
            assert_says(&listed, &[&figure.key, &figure.shows]);
        }
    }
    assert!(bench.files().is_empty());
}

#[test]
fn help_has_examples_and_exit_codes() {
    let bench = Bench::new();
    for arguments in [&["lab", "--help"][..], &["lab", "acceptance", "--help"]] {
        let help = bench.run(arguments);
        assert_code(&help, 0);
        assert_says(&stdout(&help), &["Usage: laxity lab", "Examples:"]);
    }
    let help = stdout(&bench.run(&["lab", "acceptance", "--help"]));
    assert_says(
        &help,
        &["Exit codes", "--sets", "--seed", "[default: 2000]"],
    );
    assert!(!help.contains("--on"), "nothing of it is measured: {help}");
    let measured = STUDIES.map(Experiment::text).into_iter();
    for study in measured.filter(|study| study.measures) {
        let output = bench.run(&["lab", &study.name, "--help"]);
        assert_code(&output, 0);
        // Help is broken into lines.
        let help = stdout(&output)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let usage = format!("Usage: laxity lab {}", study.name);
        let example = format!("laxity lab {} --on twin", study.name);
        assert_says(&help, &[&study.summary, &usage, &example, "Exit codes"]);
        for figure in &study.figures {
            assert_says(&help, &[&figure.key]);
        }
        assert_eq!(help.contains("--full"), study.lengths, "{help}");
    }
    let full = bench.run(&["lab", "acceptance", "--full"]);
    assert_code(&full, 64);
}

/// A study of which something can be measured.
fn measured() -> &'static str {
    let mut texts = STUDIES.into_iter().map(Experiment::text);
    let measured = texts.find(|text| text.measures);
    &measured.expect("a study measures").name
}

/// A study with figures, and the first of them.
fn with_figures() -> Option<(&'static str, &'static str)> {
    let texts = STUDIES.into_iter().map(Experiment::text);
    let mut named = texts.filter_map(|text| Some((text.name.as_str(), text.figures.first()?)));
    named
        .next()
        .map(|(name, figure)| (name, figure.key.as_str()))
}

#[test]
fn an_unknown_figure_is_told_with_the_nearest_and_the_list() {
    let bench = Bench::new();
    let (name, key) = with_figures().expect("a study has figures");
    let wrong = format!("{key}x");
    let output = bench.run(&["lab", name, &wrong, "--on", "twin"]);
    assert_code(&output, 64);
    let nearest = format!("'{key}'");
    assert_says(
        &stderr(&output),
        &[&wrong, &nearest, "possible values", "--help"],
    );
    assert_eq!(stdout(&output), "");
    assert!(bench.files().is_empty());
}

#[test]
fn what_a_study_cannot_be_asked_for_is_a_usage_error() {
    let bench = Bench::new();
    for study in STUDIES.map(Experiment::text) {
        for wrong in [
            "--repeats=0",
            "--seed=x",
            "--threads=-1",
            "--on=mars",
            "--stars=1",
        ] {
            let output = bench.run(&["lab", &study.name, wrong]);
            assert_code(&output, 64);
            assert_says(&stderr(&output), &["--help"]);
        }
        let both = ["lab", &study.name, "--on=twin", "--json=-", "--html=-"];
        let output = bench.run(&both);
        assert_code(&output, 64);
        assert_says(&stderr(&output), &["--json", "--html", "standard output"]);
    }
    assert!(bench.files().is_empty());
}

/// The cheapest part of a study.
const PART: [&str; 5] = ["lab", "modem", "figure-10", "--on", "twin"];

#[test]
fn a_study_leaves_a_table_a_page_a_file_and_drawings() {
    let bench = Bench::new();
    let output = bench.run(&[&PART[..], &["--json=s.json", "--svg=."]].concat());
    let json: Value = serde_json::from_slice(&bench.read("s.json")).expect("JSON");
    let holds = json["holds"].as_bool().expect("a verdict");
    assert_code(&output, if holds { 0 } else { 2 });
    assert_eq!(json["experiment"], "modem");
    let figures = json["figures"].as_array().expect("figures");
    assert_eq!(figures.len(), 1, "only what was asked for");
    assert_eq!(figures[0]["key"], "figure-10");
    let title = figures[0]["title"].as_str().expect("a title");
    assert_says(&stdout(&output), &[title, "verdict: ", "laxity-modem.html"]);
    let page = String::from_utf8(bench.read("laxity-modem.html")).expect("text");
    assert_says(&page, &["<svg", title]);
    assert_eq!(
        bench.files(),
        ["laxity-modem.html", "modem-figure-10.svg", "s.json"]
    );
}

#[test]
fn a_studys_json_is_alone_on_standard_output_and_the_same_with_any_number_of_threads() {
    let bench = Bench::new();
    let with = |threads: &str| {
        let output = bench.run(
            &[
                &PART[..],
                &["--json=-", "--html=p.html", "--threads", threads],
            ]
            .concat(),
        );
        (output.status.code(), output.stdout)
    };
    let (code, json) = with("1");
    serde_json::from_slice::<Value>(&json).expect("JSON and nothing else");
    assert_eq!((code, json), with("2"));
}

/// What a study makes no use of is refused, and not passed over.
#[test]
fn a_study_is_asked_only_for_what_it_makes_use_of() {
    let bench = Bench::new();
    for study in STUDIES.map(Experiment::text) {
        let help = stdout(&bench.run(&["lab", &study.name, "--help"]));
        for (option, is_of_use) in [("--repeats", study.repeats), ("--machine", study.predicts)] {
            assert_eq!(help.contains(option), is_of_use, "{option}: {help}");
            if !is_of_use {
                let output = bench.run(&["lab", &study.name, option, "7"]);
                assert_code(&output, 64);
                assert_says(&stderr(&output), &["unexpected argument", option]);
            }
        }
    }
    let any = |of: fn(&Text) -> bool| STUDIES.map(Experiment::text).into_iter().any(of);
    assert!(any(|text| text.repeats) && any(|text| !text.repeats));
    assert!(any(|text| text.predicts) && any(|text| text.measures && !text.predicts));
    assert!(bench.files().is_empty());
}

/// A study that predicts what this machine does.
const PREDICTS: [&str; 2] = ["lab", "prediction"];

#[test]
fn a_machine_file_that_is_named_must_be_there() {
    let bench = Bench::new();
    let output = bench.run(&[&PREDICTS[..], &["--on=twin", "--machine=none.toml"]].concat());
    assert_code(&output, 64);
    assert_says(&stderr(&output), &["none.toml", "No such file"]);
    let without = bench.run(&[&PREDICTS[..], &["--on=twin", "--machine=none"]].concat());
    assert_code(&without, 4);
    assert_says(&stderr(&without), &["no machine is named"]);
    assert!(bench.files().is_empty());
}

/// As of `plan`: it is told in a line, and only by who would have read it.
#[test]
fn a_machine_file_that_was_left_and_cannot_be_read_ends_no_study() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let bench = Bench::new();
    std::fs::create_dir(bench.path("laxity")).expect("a directory");
    bench.write("laxity/machine.toml", "bad");
    // Of these nothing is run.
    for (study, figure, reads) in [
        ("upcalls", "constants", true),
        ("constraints", "answers", false),
    ] {
        let mut command = bench.command();
        command.args(["lab", study, figure, "--on=linux"]);
        let output = command.env("XDG_CONFIG_HOME", bench.path(".")).output();
        let output = output.expect("laxity starts");
        assert_code(&output, 0);
        let said = stderr(&output);
        let told =
            said.contains("Without predictions: ") && said.contains("machine.toml:1:4: not TOML");
        assert_eq!(
            (told, said.contains("machine.toml")),
            (reads, reads),
            "{said}"
        );
    }
}

/// A live check can never pass in the twin.
#[test]
fn linux_without_the_rights_exits_4_and_leaves_nothing() {
    let (bench, programs) = (Bench::new(), Bench::new());
    let Some(mut command) = bench.command_without_rights(&programs) else {
        return;
    };
    let output = command.args(["lab", measured(), "--on", "linux"]).output();
    let output = output.expect("laxity starts");
    assert_code(&output, 4);
    assert_says(&stderr(&output), &["cannot run on Linux here"]);
    assert!(bench.files().is_empty());
}

#[test]
fn what_cannot_be_asked_for_is_a_usage_error() {
    let bench = Bench::new();
    let wrong: [&[&str]; 8] = [
        &["lab", "levitation"],
        &["lab", "acceptance", "--sets", "0"],
        &["lab", "acceptance", "--sets", "1000001"],
        &["lab", "acceptance", "--sets=-1"],
        &["lab", "acceptance", "--tasks", "0"],
        &["lab", "acceptance", "--tasks", "65"],
        &["lab", "acceptance", "--seed", "x"],
        &["lab", "acceptance", "--on", "linux"],
    ];
    for arguments in wrong {
        let output = bench.run(arguments);
        assert_code(&output, 64);
        assert_says(&stderr(&output), &["--help"]);
        assert_eq!(stdout(&output), "", "{arguments:?}");
    }
    let both = ["lab", "acceptance", "--sets=1", "--json=-", "--html=-"];
    let output = bench.run(&both);
    assert_code(&output, 64);
    assert_says(&stderr(&output), &["--json", "--html", "standard output"]);
    assert!(bench.files().is_empty());
}

#[test]
fn json_is_alone_on_standard_output_and_adds_up() {
    let bench = Bench::new();
    let output = bench.run(&["lab", "acceptance", "--sets", "20", "--json=-"]);
    assert_code(&output, 0);
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    assert_eq!(json["file_version"], 1);
    assert_eq!(
        (&json["experiment"], &json["holds"]),
        (&"acceptance".into(), &true.into())
    );
    let figures = json["figures"].as_array().expect("figures");
    assert!(figures.len() >= 4);
    for row in figures.iter().flat_map(|figure| {
        let table = &figure["tables"][0];
        table["rows"].as_array().expect("rows")
    }) {
        let shares = &row.as_array().expect("cells")[1..];
        assert_eq!(shares.len(), 13);
        // Of twenty sets, whole ones.
        assert!(
            shares
                .iter()
                .all(|cell| cell["share_ppm"].as_u64().expect("a share") % 50_000 == 0)
        );
    }
    for check in json["checks"].as_array().expect("checks") {
        assert_eq!(check["held"], true, "{check}");
    }
    assert_eq!(bench.files(), [PAGE]);
}

#[test]
fn a_person_gets_a_table_and_a_page() {
    let bench = Bench::new();
    let output = bench.run(&["lab", "acceptance", "--sets", "5", "--tasks", "4"]);
    assert_code(&output, 0);
    let said = stdout(&output);
    assert_says(
        &said,
        &["Of 5 sets a point", "4 tasks", "seed: 1", "RMDP", PAGE],
    );
    assert_eq!(stderr(&output), "");
    let page = String::from_utf8(bench.read(PAGE)).expect("text");
    assert_says(&page, &["<svg", "RMDP", "Of 5 sets a point"]);
    let quiet = [
        "lab",
        "acceptance",
        "--sets=5",
        "--quiet",
        "--html=p.html",
        "--json=r.json",
    ];
    let output = bench.run(&quiet);
    assert_code(&output, 0);
    assert_eq!(
        (stdout(&output), stderr(&output)),
        (String::new(), String::new())
    );
    assert_eq!(bench.files(), [PAGE, "p.html", "r.json"]);
}

#[test]
fn the_number_of_threads_makes_no_difference() {
    let bench = Bench::new();
    for threads in ["1", "2"] {
        let (html, json) = (
            format!("--html={threads}.html"),
            format!("--json={threads}.json"),
        );
        let arguments = [
            "lab",
            "acceptance",
            "--sets=10",
            "--threads",
            threads,
            &html,
            &json,
        ];
        assert_code(&bench.run(&arguments), 0);
    }
    assert_eq!(bench.read("1.html"), bench.read("2.html"));
    assert_eq!(bench.read("1.json"), bench.read("2.json"));
}

#[test]
fn a_page_that_cannot_be_written_is_an_error() {
    let bench = Bench::new();
    let output = bench.run(&["lab", "acceptance", "--sets=1", "--html=none/page.html"]);
    assert_code(&output, 1);
    assert_says(
        &stderr(&output),
        &["none/page.html", "directory must exist"],
    );
}
