//! What others wrote, shown: nothing of it steers the terminal or forges a line; and nothing of it is executed unasked.

mod common;

use common::{Bench, assert_code, assert_says, on_a_terminal, shipped_text, stderr, stdout};
use laxity::doctor::rights::{self, Right};

/// Clears the screen, sets the title, forges a verdict, turns the writing round.
const EVIL: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\nverdict: met\r\u{9b}31m\u{202e}txt";

/// Fails if a byte of the text is more than text, or a line begins as the forged one.
#[track_caller]
fn assert_plain(text: &str) {
    let steers = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!text.chars().any(steers), "{text:?}");
    assert!(
        !text.lines().any(|line| line.starts_with("verdict: met")),
        "{text}"
    );
}

fn toml(text: &str) -> String {
    // TOML's escapes for these characters are JSON's.
    let mut escaped = String::new();
    for character in text.chars() {
        match u32::from(character) {
            code @ (0..0x20 | 0x7f..0xa0 | 0x2028..0x2030) => {
                escaped.push_str(&format!("\\u{code:04x}"));
            }
            _ => escaped.push(character),
        }
    }
    escaped
}

#[test]
fn texts_of_a_scenario_are_one_line_of_text() {
    let bench = Bench::new();
    let scenario = shipped_text("reserved-minimal.toml");
    let evil = toml(EVIL);
    for text in [
        format!("title = \"{evil}\"\n{scenario}"),
        scenario.replace("placement =", &format!("about = \"{evil}\"\nplacement =")),
        scenario.replace("variants.reserved", &format!("variants.\"{evil}\"")),
        scenario.replace("\"spinner\"", &format!("\"{evil}\"")),
        scenario.replace("2ms/8ms", &evil),
        format!("\"{evil}\" = 1\n{scenario}"),
        format!("[{EVIL}]\n{scenario}"),
        format!("title = {EVIL}\n{scenario}"),
    ] {
        bench.write("evil.toml", &text);
        for command in ["run", "plan"] {
            let output = bench.run(&[command, "--on", "twin", "evil.toml"]);
            assert_code(&output, 64);
            assert_plain(&stdout(&output));
            assert_plain(&stderr(&output));
        }
    }
}

#[test]
fn names_of_files_are_written_out() {
    let bench = Bench::new();
    let scenario = shipped_text("reserved-minimal.toml");
    let name = format!("{EVIL}.toml");
    bench.write(&name, &scenario);
    let page = format!("{EVIL}.html");
    let trace = format!("{EVIL}.trace");
    let output = bench.run(&[
        "run",
        "--on=twin",
        "--html",
        &page,
        "--trace",
        &trace,
        &name,
    ]);
    assert_code(&output, 0);
    // The own verdict is there, once.
    let said = stdout(&output);
    assert_eq!(
        said.lines()
            .filter(|line| line.starts_with("verdict: met"))
            .count(),
        1
    );
    assert_plain(&said.replace("\nverdict: met", "\nverdict"));
    assert_says(&said, &[r"\u{1b}[2J"]);
    for arguments in [
        &["plan", "--on=twin", &name][..],
        &["plan", EVIL],
        &["run", "--variant", EVIL, &name],
        &[
            "run",
            "--html",
            "x",
            &format!("--json={EVIL}"),
            "--trace",
            EVIL,
            &name,
        ],
        &["run", &format!("--json={EVIL}/x"), &name],
        &[EVIL],
        &["run", &format!("--{EVIL}")],
        &["lab", EVIL],
        &["plan", "--on", EVIL, &name],
        &["plan", "--supply", EVIL, &name],
    ] {
        let output = bench.run(arguments);
        assert_plain(&stdout(&output));
        assert_plain(&stderr(&output));
    }
}

#[test]
fn names_in_task_sets_are_one_line_of_text() {
    let bench = Bench::new();
    let json = serde_json::to_string(EVIL).expect("text");
    let of = |object: &str| format!(r#"{{ "tasks": {{ {object} }} }}"#);
    let texts = [
        format!("name,cost_us,period_us\n\"{EVIL}\",1,10\n"),
        format!("name,\"{EVIL}\",period_us\na,1,10\n"),
        format!("name,cost_us,period_us\na,\"{EVIL}\",10\n"),
    ];
    for text in &texts {
        bench.write("evil.csv", text);
        let output = bench.run(&["plan", "evil.csv"]);
        assert_code(&output, 64);
        assert_plain(&stderr(&output));
    }
    for text in [
        of(&format!(r#"{json}: {{ "run": 1, "sleep": 9 }}"#)),
        of(&format!(r#""a": {{ "policy": {json}, "run": 1 }}"#)),
        of(&format!(
            r#""a": {{ "run": 1, "timer": {{ "ref": "x", "period": 9 }}, "timer1": {{ "ref": {json}, "period": 9 }} }}"#
        )),
    ] {
        bench.write("evil.json", &text);
        let output = bench.run(&["plan", "evil.json"]);
        assert_plain(&stdout(&output));
        assert_plain(&stderr(&output));
    }
}

#[test]
fn a_program_and_what_it_is_to_have_are_named_in_a_line() {
    let bench = Bench::new();
    for option in [
        "--reserve=",
        "--reserve=2ms/",
        "--reserve=auto/",
        "--processor=",
        "--threads=",
    ] {
        let evil = format!("{option}2{EVIL}");
        let output = bench.run(&["exec", &evil, "--", "true"]);
        assert_code(&output, 125);
        assert_plain(&stderr(&output));
    }
    let Some(_alone) = rights::require(&[Right::RealTime]) else {
        return;
    };
    std::os::unix::fs::symlink("/bin/sh", bench.path(EVIL)).expect("a link");
    let program = format!("./{EVIL}");
    let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    let judged = ["exec", "--reserve=2ms/8ms", "--judge"];
    for options in [&[][..], &["--threads=a\nverdict: met"]] {
        let command = ["--", &program, "-c", busy];
        let output = bench.run(&[&judged[..], options, &command].concat());
        assert_plain(&stderr(&output));
    }
}

const WITH_COMMAND: &str = r#"
[quick]
idle = "0.3s"

[tasks.timer]
kind = "periodic"
period = "10ms"

[tasks.other]
kind = "command"
argv = ["sh", "-c", "touch executed; : \u001b[2J\nforged; exec sleep 1000"]

[variants.beside-it]
on = "live"
"#;

#[test]
fn a_scenarios_commands_are_shown_and_executed_only_when_allowed() {
    let bench = Bench::new();
    bench.write("s.toml", WITH_COMMAND);
    let shown = r"sh -c 'touch executed; : \u{1b}[2J\nforged; exec sleep 1000'";
    let Some(_alone) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let output = bench.run(&["plan", "--on", "linux", "s.toml"]);
    assert_code(&output, 0);
    assert_says(&stdout(&output), &["executes:", shown]);
    assert_plain(&stdout(&output));
    assert_eq!(bench.files(), ["s.toml"]);

    // Nobody can be asked here.
    let output = bench.run(&["run", "--on", "linux", "s.toml"]);
    assert_code(&output, 64);
    let words = [shown, "--allow-commands", "nothing was started"];
    assert_says(&stderr(&output), &words);
    assert_plain(&stderr(&output));
    assert_eq!(bench.files(), ["s.toml"]);

    let output = bench.run(&["run", "--on", "linux", "--allow-commands", "s.toml"]);
    assert_code(&output, 0);
    assert!(bench.files().contains(&"executed".to_owned()));
}

#[test]
fn on_a_terminal_the_user_is_asked_before_anything_is_executed() {
    let Some(_alone) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let command = |bench: &Bench| {
        let mut command = bench.command();
        command.args(["run", "--on", "linux", "s.toml"]);
        command
    };
    let shown = r"sh -c 'touch executed; : \u{1b}[2J\nforged; exec sleep 1000'";
    for answer in ["n\n", "\n", "perhaps\n"] {
        let bench = Bench::new();
        bench.write("s.toml", WITH_COMMAND);
        let (code, said) = on_a_terminal(command(&bench), answer);
        assert_eq!(code, 64, "{said}");
        assert_says(&said, &[shown, "Execute them?", "nothing was started"]);
        assert_eq!(bench.files(), ["s.toml"]);
    }
    let bench = Bench::new();
    bench.write("s.toml", WITH_COMMAND);
    let (code, said) = on_a_terminal(command(&bench), "y\n");
    assert_eq!(code, 0, "{said}");
    assert!(bench.files().contains(&"executed".to_owned()));
}
