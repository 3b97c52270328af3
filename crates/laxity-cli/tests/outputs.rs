//! Where results go: looked at before anything starts, and none lost for another.

mod common;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

use common::{Bench, assert_code, assert_says, shipped, stderr, stdout};
use laxity::doctor::rights::{self, Right};
use rustix::process::{Resource, Rlimit, setrlimit};

const REPORT: &str = "laxity-report.html";
const TRACE: &str = "laxity-trace.pftrace";

fn run(bench: &Bench, arguments: &[&str]) -> Output {
    let scenario = shipped("soft-modem.toml");
    bench.run(
        &[
            &["run", "--on", "twin", "--variant", "none"],
            arguments,
            &[&scenario],
        ]
        .concat(),
    )
}

#[test]
fn two_outputs_are_never_the_same_file_by_whatever_name() {
    let bench = Bench::new();
    bench.write("there", "old");
    fs::create_dir(bench.path("sub")).expect("our directory");
    symlink("there", bench.path("link")).expect("a link");
    symlink("sub", bench.path("other-sub")).expect("a link");
    symlink("not-there", bench.path("dangling")).expect("a link");
    fs::hard_link(bench.path("there"), bench.path("hard")).expect("a link");
    let before = bench.files();
    for (html, json) in [
        ("a", "a"),
        ("a", "./sub/../a"),
        ("there", "link"),
        ("there", "hard"),
        ("sub/x", "other-sub/x"),
        ("not-there", "dangling"),
        ("-", "-"),
    ] {
        let output = run(&bench, &["--html", html, &format!("--json={json}")]);
        assert_code(&output, 64);
        let words: &[&str] = match html {
            "-" => &["both --html and --json name standard output"],
            _ => &[
                "--json names the same file as --html",
                "nothing was started",
            ],
        };
        assert_says(&stderr(&output), words);
        assert_eq!(stdout(&output), "");
        assert_eq!(bench.files(), before, "{html} {json}");
    }
    assert_eq!(bench.read("there"), b"old");
}

/// What a program or laxity itself says there would be lost.
#[test]
fn where_standard_error_goes_is_no_output() {
    let bench = Bench::new();
    let there = bench.path("there");
    let both = fs::File::create(&there).expect("our file");
    let mut command = bench.command();
    command.args(["run", "--on", "twin", "--variant", "none", "--html=there"]);
    command.arg(shipped("soft-modem.toml"));
    let output = command.stderr(both).output().expect("laxity runs");
    assert_code(&output, 64);
    let said = bench.read("there");
    let said = String::from_utf8_lossy(&said);
    assert_says(&said, &["--html names the same file as standard error"]);
}

/// A pipe, or a file that is named nowhere.
#[test]
fn standard_output_is_one_output_by_whatever_name() {
    let bench = Bench::new();
    symlink("/dev/stdout", bench.path("link")).expect("a link");
    let pairs = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"];
    let pairs = pairs.map(|name| ("-", name)).into_iter();
    let pairs = pairs.chain([("/dev/fd/1", "-"), ("/dev/stdout", "link")]);
    for (html, json) in pairs {
        let outputs = ["--html", html, &format!("--json={json}")];
        let piped = run(&bench, &outputs);
        let file = fs::File::create(bench.path("out")).expect("ours");
        let scenario = shipped("soft-modem.toml");
        let mut command = bench.command();
        command.args(["run", "--on", "twin", "--variant", "none"]);
        command.args(outputs).arg(scenario).stdout(file);
        for refused in [piped, command.output().expect("laxity starts")] {
            assert_code(&refused, 64);
            let words = ["both --html and --json name standard output"];
            assert_says(&stderr(&refused), &words);
            assert_eq!(stdout(&refused), "");
        }
        assert_eq!(bench.read("out"), b"", "{html} {json}");
    }
    // What nobody reads is no place where two could meet.
    let mut nowhere = bench.command();
    nowhere.args(["run", "--on=twin", "--json=-", "--html=/dev/null"]);
    nowhere.arg(shipped("reserved-minimal.toml"));
    let output = nowhere.stdout(Stdio::null()).output();
    assert_code(&output.expect("laxity starts"), 0);
}

#[test]
fn an_output_is_never_the_input() {
    let bench = Bench::new();
    let text = common::shipped_text("reserved-minimal.toml");
    bench.write("s.toml", &text);
    fs::hard_link(bench.path("s.toml"), bench.path("hard")).expect("a link");
    for arguments in [
        ["plan", "--json=s.toml", "--machine=hard", "other.toml"],
        ["run", "--on=twin", "--html=s.toml", "s.toml"],
        ["run", "--on=twin", "--trace=hard", "s.toml"],
        ["plan", "--on=twin", "--json=./s.toml", "s.toml"],
        ["run", "--on=twin", "--html=hard", "-"],
        ["plan", "--on=twin", "--json=s.toml", "-"],
        [
            "net",
            "replay",
            "--json=hard",
            "s.toml udp:127.0.0.1:0-127.0.0.1:9",
        ],
    ] {
        let arguments = arguments.iter().flat_map(|words| words.split(' '));
        let input = fs::File::open(bench.path("s.toml")).expect("it is there");
        let mut command = bench.command();
        let output = command.args(arguments).stdin(input).output();
        let output = output.expect("laxity starts");
        assert_code(&output, 64);
        assert_says(&stderr(&output), &["the same file as the input"]);
    }
    assert_eq!(bench.read("s.toml"), text.as_bytes());
}

/// The names of drawings follow from the study and its figures, and not from the command line.
#[test]
fn a_drawing_is_written_over_no_other_output_and_no_input() {
    let bench = Bench::new();
    for directory in ["d", "d/modem-figure-11.svg"] {
        fs::create_dir(bench.path(directory)).expect("ours");
    }
    let set = |name: &str| bench.write(name, "old");
    let page = set("page");
    symlink(page, bench.path("d/modem-figure-12.svg")).expect("a link");
    let lab = |study: &str, figure: &str, options: &[&str]| {
        let lab = ["lab", study, figure, "--on=twin", "--svg=d"];
        bench.run(&[&lab[..], options].concat())
    };
    for (figure, output) in [
        ("figure-10", "--html=d/modem-figure-10.svg"),
        ("figure-10", "--json=./d/../d/modem-figure-10.svg"),
        // As a second drawing of it would be called.
        ("figure-10", "--html=d/modem-figure-10-2.svg"),
        ("figure-12", "--html=page"),
    ] {
        let refused = lab("modem", figure, &[output]);
        assert_code(&refused, 64);
        let words = ["--svg names the same file as --", "nothing was started"];
        assert_says(&stderr(&refused), &words);
    }
    let machine = "d/prediction-idle.svg";
    set(machine);
    let refused = lab("prediction", "idle", &["--machine", machine]);
    assert_code(&refused, 64);
    assert_says(
        &stderr(&refused),
        &["--svg names the same file as the input"],
    );
    let refused = lab("modem", "figure-11", &["--html=page"]);
    assert_code(&refused, 1);
    assert_says(
        &stderr(&refused),
        &["--svg", "Is a directory", "nothing was started"],
    );
    let nowhere = ["lab", "modem", "figure-11", "--on=twin", "--svg=none"];
    let refused = bench.run(&nowhere);
    assert_code(&refused, 1);
    let words = ["--svg: there is no directory none; remedy: `mkdir -p none`"];
    assert_says(&stderr(&refused), &words);
    for kept in ["page", machine] {
        assert_eq!(bench.read(kept), b"old", "{kept}");
    }
    let beside = lab("modem", "figure-10", &["--html=d/page.svg", "--json=page"]);
    assert!(matches!(beside.status.code(), Some(0 | 2)));
    assert!(bench.read("d/page.svg").starts_with(b"<!"), "a page");
}

/// Executes `./prog`.
const WITH_COMMAND: &str = "quick = { idle = \"0.3s\" }
tasks.other = { kind = \"command\", argv = [\"./prog\"] }
variants.it = { on = \"live\" }
";

#[test]
fn an_output_is_never_what_is_executed() {
    let bench = Bench::new();
    let program = "#!/bin/sh\ntouch executed\n";
    let path = bench.write("prog", program);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("ours");
    symlink("prog", bench.path("link")).expect("a link");
    fs::hard_link(&path, bench.path("hard")).expect("a link");
    bench.write("s.toml", WITH_COMMAND);
    let before = bench.files();
    let is_refused = |arguments: &[&str], code, words: &str| {
        let output = bench.run(arguments);
        assert_code(&output, code);
        let words = [words, "the same file as", "nothing was started"];
        assert_says(&stderr(&output), &words);
        assert_eq!(bench.files(), before, "{arguments:?}");
    };
    let program_is_meant = "the program that is to be executed";
    for (asked, output) in [
        ("--reserve=2ms/8ms", "--json=./prog"),
        ("--reserve=2ms/8ms", "--html=link"),
        ("--nice=5", "--status-json=hard"),
    ] {
        is_refused(
            &["exec", asked, output, "--", "./prog"],
            125,
            program_is_meant,
        );
    }
    if let Some(_alone) = rights::require(&[Right::RealTime]) {
        let run = ["run", "--on=linux", "--allow-commands", "--html=hard"];
        is_refused(&[&run[..], &["s.toml"]].concat(), 64, program_is_meant);
    }
    let there = fs::read_to_string(&path).expect("it is there");
    assert_eq!(there, program);
}

#[test]
fn an_output_is_never_laxity_itself() {
    let bench = Bench::new();
    // A copy, by a process of its own, as another test could inherit the file while it is open for writing.
    let binary = bench.path("laxity");
    let copied = Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_laxity"))
        .arg(&binary)
        .status();
    assert!(copied.is_ok_and(|status| status.success()));
    symlink("laxity", bench.path("link")).expect("a link");
    let is_there = fs::read(&binary).expect("it is there");
    let scenario = shipped("reserved-minimal.toml");
    for own in ["/proc/self/exe", "./laxity", "link"] {
        let json = format!("--json={own}");
        let all: [(&[&str], i32); 4] = [
            (
                &["exec", "--nice=5", "--status-json", own, "--", "true"],
                125,
            ),
            (&["run", "--on=twin", &json, &scenario], 64),
            (&["plan", &json, &scenario], 64),
            (&["doctor", &json], 64),
        ];
        for (arguments, code) in all {
            let mut command = Command::new(&binary);
            let output = command
                .args(arguments)
                .current_dir(bench.path("."))
                .output();
            let output = output.expect("laxity starts");
            assert_code(&output, code);
            let said = stderr(&output);
            assert_says(&said, &["the same file as laxity itself"]);
            assert_eq!(said.lines().count(), 1, "{said}");
            assert!(fs::read(&binary).expect("it is there") == is_there);
        }
    }
}

#[test]
fn what_cannot_be_written_is_told_before_anything_starts() {
    let bench = Bench::new();
    fs::create_dir(bench.path("directory")).expect("our directory");
    symlink("round", bench.path("round")).expect("a link");
    for (path, words) in [
        ("missing/x.json", "its directory must exist"),
        ("directory", "Is a directory"),
        ("round", "Too many levels of symbolic links"),
        ("/proc/x.json", "cannot write /proc/x.json"),
    ] {
        let output = run(&bench, &[&format!("--json={path}")]);
        assert_code(&output, 1);
        assert_says(&stderr(&output), &["--json", words]);
        assert_eq!(bench.files(), ["directory", "round"], "{path}");
    }
}

#[test]
fn what_happens_to_one_output_costs_no_other() {
    for full in ["--html=/dev/full", "--trace=/dev/full", "--json=/dev/full"] {
        let bench = Bench::new();
        let output = run(&bench, &["--json=out.json", "--html=page", "--trace=trace"]);
        assert_code(&output, 0);
        let all = bench.files();
        let bench = Bench::new();
        let mut arguments = vec!["--json=out.json", "--html=page", "--trace=trace"];
        let option = full.split('=').next().expect("an option");
        arguments.retain(|argument| !argument.starts_with(option));
        arguments.push(full);
        let output = run(&bench, &arguments);
        assert_code(&output, 1);
        let words = "not every output could be written: exit code 1";
        assert_says(&stdout(&output), &["verdict: as expected", words]);
        assert_says(
            &stderr(&output),
            &["cannot write /dev/full", "No space left"],
        );
        assert_eq!(bench.files().len(), all.len() - 1, "{full}");
    }
    // The first is the last that is said, and the others are not kept back.
    let bench = Bench::new();
    let output = run(&bench, &["--json=/dev/full", "--html=/dev/full"]);
    assert_code(&output, 1);
    assert_eq!(stderr(&output).matches("cannot write /dev/full").count(), 2);
    assert_eq!(bench.files(), [TRACE]);
}

#[test]
fn a_mode_is_kept_and_a_link_followed() {
    let bench = Bench::new();
    fs::create_dir(bench.path("results")).expect("our directory");
    let old = bench.write("results/old", "old");
    fs::set_permissions(&old, fs::Permissions::from_mode(0o640)).expect("ours");
    symlink("results/old", bench.path(REPORT)).expect("a link");
    symlink("results/new", bench.path(TRACE)).expect("a link");
    assert_code(&run(&bench, &[]), 0);
    for link in [REPORT, TRACE] {
        let is_link = fs::symlink_metadata(bench.path(link))
            .expect("there")
            .is_symlink();
        assert!(is_link, "{link}");
    }
    let mode = |name| {
        fs::metadata(bench.path(name))
            .expect("there")
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode("results/old"), 0o640);
    assert!(bench.read("results/old").len() > 1_000);
    assert!(bench.read("results/new").len() > 1_000);
}

#[test]
fn a_file_size_limit_has_a_message() {
    let bench = Bench::new();
    let mut command = bench.command();
    let scenario = shipped("soft-modem.toml");
    command.args(["run", "--on", "twin", "--variant", "none", &scenario]);
    let limit = Rlimit {
        current: Some(4_096),
        maximum: Some(4_096),
    };
    // SAFETY: one system call between fork and exec.
    #[allow(unsafe_code)]
    unsafe {
        command.pre_exec(move || Ok(setrlimit(Resource::Fsize, limit)?));
    }
    let output = command.output().expect("laxity starts");
    assert_code(&output, 1);
    assert_says(&stderr(&output), &["cannot write", "ulimit -f"]);
    assert_says(&stdout(&output), &["verdict: as expected"]);
    assert_eq!(bench.files(), Vec::<String>::new());
}

/// `--json` alone is JSON and nothing else on standard output; with a file, that is written beside what is shown without it.
#[test]
fn every_command_tells_json_in_the_same_way() {
    let bench = Bench::new();
    let [scenario, set] = ["soft-modem.toml", "upcalls-12.csv"].map(shipped);
    let commands: [&[&str]; 5] = [
        &["run", "--on=twin", "--variant=none", &scenario],
        &["plan", "--on=twin", "--no-observe", &scenario],
        &["plan", "--no-observe", &set],
        &["lab", "modem", "figure-10", "--on=twin"],
        &["doctor"],
    ];
    for arguments in commands {
        let with = |options: &[&str]| {
            let output = bench.run(&[arguments, options].concat());
            (output.status.code(), stdout(&output))
        };
        // What the hypervisor took since start is more each time that the doctor is asked.
        let constant = |(code, text): &(Option<i32>, String)| {
            let text: String = text.chars().filter(|c| !c.is_ascii_digit()).collect();
            (*code, text)
        };
        let shown = with(&[]);
        let [alone, named] = [&["--json"], &["--json=-"]].map(|options| with(options));
        assert_eq!(constant(&alone), constant(&named), "{arguments:?}");
        assert_eq!(alone.0, shown.0, "{arguments:?}");
        let beside = with(&["--json=r.json"]);
        assert_eq!(constant(&beside), constant(&shown), "{arguments:?}");
        let written = String::from_utf8(bench.read("r.json")).expect("text");
        for text in [alone.1, written] {
            let read: Result<serde_json::Value, _> = serde_json::from_str(&text);
            assert!(
                read.is_ok_and(|value| value.is_object()),
                "{arguments:?}: {text}"
            );
        }
    }
}
