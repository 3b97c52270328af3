//! Colour is where somebody reads on a terminal and has not said otherwise, and nowhere else: in verdicts and in every message.

mod common;

use std::process::Command;

use common::{Bench, assert_code, on_a_terminal, shipped, shipped_text, stderr, stdout};

/// Whether some of it has a colour or another style; a bar of progress clears its line by an escape too.
fn is_painted(text: &str) -> bool {
    let mut escapes = text.split("\u{1b}[").skip(1);
    escapes.any(|rest| {
        rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';')
            .starts_with('m')
    })
}

/// Commands that say something each, and their exit codes: a verdict, an error in a scenario, in a task set and in a machine file, a note, a wrong command
/// line, help, what is listed.
fn all(bench: &Bench) -> Vec<(Vec<String>, i32)> {
    let minimal = shipped_text("reserved-minimal.toml");
    bench.write("broken.toml", &minimal.replace("2ms/8ms", "2/8"));
    bench.write("broken.csv", "name,cost_us,period_us\na,1,x\n");
    let superfluous = "enforcer = \"deadline\"\noutside = \"confined\"\n";
    let noted = shipped_text("soft-modem.toml").replace("enforcer = \"deadline\"\n", superfluous);
    bench.write("noted.toml", &noted);
    let own = [
        "run --on=twin broken.toml",
        "plan --on=twin broken.toml",
        "plan broken.csv",
        "lab prediction --on=twin --machine=broken.toml",
        "run --wings",
    ];
    let wrong = own.map(|line| (line, 64));
    let noted = "run --on=twin --variant=none noted.toml";
    let right = [
        noted,
        "plan --on=twin --no-observe noted.toml",
        "plan --help",
    ];
    let lines = wrong.into_iter().chain(right.map(|line| (line, 0)));
    let words = |line: &str| line.split(' ').map(str::to_owned).collect();
    lines.map(|(line, code)| (words(line), code)).collect()
}

fn shown(bench: &Bench, arguments: &[String], options: &[&str], no_color: bool) -> (i32, String) {
    let mut command = bench.command();
    command.args(arguments).args(options);
    command.env("TERM", "xterm").env_remove("NO_COLOR");
    command.env_remove("CLICOLOR_FORCE").env_remove("CLICOLOR");
    if no_color {
        command.env("NO_COLOR", "1");
    }
    on_a_terminal(command, "")
}

#[test]
fn a_terminal_has_colour_unless_its_user_says_otherwise() {
    let bench = Bench::new();
    for (arguments, code) in all(&bench) {
        let (ended, coloured) = shown(&bench, &arguments, &[], false);
        assert_eq!(ended, code, "{arguments:?}: {coloured}");
        assert!(is_painted(&coloured), "{arguments:?}: {coloured}");
        for (options, no_color) in [
            (&["--color", "never"][..], false),
            (&["--color=never"], false),
            (&[], true),
        ] {
            let (ended, plain) = shown(&bench, &arguments, options, no_color);
            assert_eq!(ended, code, "{arguments:?}: {plain}");
            assert!(!is_painted(&plain), "{arguments:?} {options:?}: {plain:?}");
        }
    }
}

/// In a pipe only if that is asked for, and then whatever `NO_COLOR` says.
#[test]
fn a_pipe_has_colour_if_that_is_asked_for() {
    let bench = Bench::new();
    for (arguments, code) in all(&bench) {
        let with = |options: &[&str]| {
            let mut command: Command = bench.command();
            let output = command
                .args(&arguments)
                .args(options)
                .env("NO_COLOR", "1")
                .output();
            let output = output.expect("laxity starts");
            assert_code(&output, code);
            stdout(&output) + &stderr(&output)
        };
        let plain = with(&[]);
        assert!(!is_painted(&plain), "{plain}");
        let painted = with(&["--color=always"]);
        assert!(is_painted(&painted), "{arguments:?}: {painted}");
    }
}

/// The words and where they stand are the same.
#[test]
fn verdicts_are_painted_and_nothing_moves() {
    let bench = Bench::new();
    let scenario = shipped("soft-modem.toml");
    let with = |options: &[&str]| {
        let run = ["run", "--on", "twin", "--variant", "none", &scenario];
        let output = bench.run(&[&run, options].concat());
        assert_code(&output, 0);
        stdout(&output)
    };
    let (plain, painted) = (with(&[]), with(&["--color", "always"]));
    let green = "\u{1b}[32mas expected\u{1b}[0m";
    assert!(
        painted.contains(&format!("verdict: {green} (")),
        "{painted}"
    );
    assert_eq!(painted.replace(green, "as expected"), plain);
}
