//! `laxity exec`: the program is the program, and what it received is told beside it. Needs the rights to schedule.

mod common;
#[path = "exec/words.rs"]
mod words;

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

use common::{Bench, eventually, is_enforced, json, said};
use laxity_linux::doctor::rights::{self, LiveTest, Right};
use rustix::process::{Pid, Signal, kill_process};

const SPIN: &str = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";

fn live() -> Option<LiveTest> {
    rights::require(&[Right::RealTime, Right::Deadline])
}

fn exec(bench: &Bench, options: &[&str], program: &[&str]) -> Output {
    let mut command = bench.command();
    command.arg("exec").args(options).arg("--").args(program);
    command.output().unwrap()
}

fn shell(text: &str) -> [&str; 3] {
    ["sh", "-c", text]
}

#[test]
fn what_the_program_says_and_how_it_ends_is_its_own() {
    let Some(_live) = live() else { return };
    let bench = Bench::new();
    let options = [
        "--reserve",
        "2ms/8ms",
        "--json=r.json",
        "--html=r.html",
        "--status-json=s.json",
    ];
    let output = exec(
        &bench,
        &options,
        &shell(&format!("{SPIN}; echo out; exit 7")),
    );
    assert_eq!(output.status.code(), Some(7), "{}", said(&output));
    assert_eq!(output.stdout, b"out\n");
    let line = said(&output);
    assert!(
        line.starts_with("laxity: 2ms/8ms by slots on processor"),
        "{line}"
    );
    assert_eq!(line.lines().count(), 1, "{line}");
    let received = json(&bench, "r.json");
    assert_eq!(received["service_reserved_ns"], 2_000_000);
    assert!(is_enforced(&received), "{received}");
    let figure = |name: &str| received["received"][name].as_u64().unwrap();
    assert!(figure("periods_kept") <= figure("periods"));
    assert!(
        figure("overruns") > 0,
        "a spinner always wants more: {received}"
    );
    assert!(figure("service_ns") > 0, "{received}");
    let status = json(&bench, "s.json");
    assert_eq!(
        (&status["by"], &status["exit_code"]),
        (&"program".into(), &7.into())
    );
    let page = String::from_utf8(bench.read("r.html")).unwrap();
    assert!(page.contains("largest gap"), "{page}");
}

/// Of a processor that there is not.
const MISSING: &str = "processor 900 may not be used, only 0";

#[test]
fn what_is_ours_is_told_from_what_is_the_programs() {
    let Some(_live) = live() else { return };
    let bench = Bench::new();
    let file = bench.write("not-executable", "");
    let slots = "--reserve=2ms/8ms";
    let deadline = "--enforcer=deadline";
    let file = file.to_str().unwrap();
    let cases: [(&[&str], &str, i32, &str); 9] = [
        (&[slots], "./no-such-program", 127, "No such file"),
        (&[slots], file, 126, "Permission denied"),
        (&["--reserve=7900us/8ms"], "true", 125, "would fit"),
        (&[slots, deadline, "-a0"], "true", 125, "--processor"),
        (
            &["--reserve=1ns/5ms", deadline],
            "true",
            125,
            "ask for at least 1024 ns",
        ),
        (&[], "true", 125, "--reserve X/Y, or a policy"),
        (&[slots, "-a900"], "true", 125, "900"),
        (&["-a900"], "true", 125, MISSING),
        (&["-a0,900"], "true", 125, MISSING),
    ];
    for (options, program, code, why) in cases {
        let options = [options, &["--status-json=s.json"]].concat();
        let output = exec(&bench, &options, &[program]);
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        assert!(said(&output).contains(why), "{}", said(&output));
        let status = json(&bench, "s.json");
        assert_eq!(
            (&status["by"], &status["exit_code"]),
            (&"laxity".into(), &code.into())
        );
    }
    let usage = exec(&bench, &["--reserve", "2/8"], &["true"]);
    assert_eq!(usage.status.code(), Some(125));
    let options = [slots, "--status-json=s.json"];
    let own = exec(&bench, &options, &shell("exit 125"));
    assert_eq!(own.status.code(), Some(125));
    assert_eq!(json(&bench, "s.json")["by"], "program");
}

/// Whatever it is that cannot be had, and by whichever call the kernel says so.
#[test]
fn what_the_kernel_refuses_is_told_with_its_cause_and_remedy() {
    let no_right = ["has no CAP_SYS_NICE", "remedy: run as root"];
    let deadline = "--enforcer=deadline";
    let cases: [(&[&str], [&str; 2]); 10] = [
        (&["-f", "50"], no_right),
        (&["-r", "10"], no_right),
        (&["-n", "-5"], no_right),
        (&["-d", "-T", "2ms", "-P", "8ms"], no_right),
        (&["-d", "-T", "2ms", "-D", "4ms", "-P", "8ms"], no_right),
        (&["--reserve", "2ms/8ms", deadline], no_right),
        (
            &["--reserve", "2ms/8ms", deadline, "--judge"],
            ["has no CAP_SYS_NICE", "no limit makes up for it"],
        ),
        (
            &["--reserve", "2us/5us", deadline],
            ["under this machine's least", "ask for a period of at least"],
        ),
        (
            &["--reserve", "1s/100s", deadline],
            ["over this machine's most", "ask for a period of at most"],
        ),
        (
            &["-d", "-T", "1", "-P", "5ms"],
            ["under the kernel's least", "ask for at least 1024 ns"],
        ),
    ];
    let (bench, programs) = (Bench::new(), Bench::new());
    for (options, told) in cases {
        let Some(mut command) = bench.command_without_rights(&programs) else {
            return;
        };
        command.arg("exec").args(options).args(["--", "true"]);
        let output = command.output().unwrap();
        let said = said(&output);
        assert_eq!(output.status.code(), Some(125), "{options:?}: {said}");
        let is_told = told.iter().all(|part| said.contains(part));
        assert!(is_told && !said.contains("os error"), "{options:?}: {said}");
    }
}

#[test]
fn signals_go_through_both_ways() {
    let Some(_live) = live() else { return };
    let bench = Bench::new();
    let killed = exec(&bench, &["--reserve", "2ms/8ms"], &shell("kill -USR1 $$"));
    assert_eq!(killed.status.signal(), Some(10), "{:?}", killed.status);
    for options in [
        &["--reserve", "2ms/8ms"][..],
        &["--reserve", "2ms/8ms", "--confine=freeze"],
    ] {
        let mut command = bench.command();
        let trap = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.01; done";
        command
            .arg("exec")
            .args(options)
            .arg("--")
            .args(shell(trap));
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut out, &mut ready).unwrap();
        let pid = Pid::from_raw(child.id().cast_signed()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(9));
    }
}

#[test]
fn a_confined_program_gets_its_share_and_no_more_with_all_it_starts() {
    let Some(_live) = live() else { return };
    let bench = Bench::new();
    let program = format!("({SPIN}) & {SPIN}; wait");
    let means = [("freeze", Right::Freezer), ("quota", Right::FairQuota)];
    for (confine, right) in means {
        if let Some(why) = rights::missing(right) {
            eprintln!("skipped {confine}: {why}");
            continue;
        }
        let confine = format!("--confine={confine}");
        let options = ["--reserve", "2ms/8ms", "--json=r.json", &confine];
        let output = exec(&bench, &options, &shell(&program));
        assert!(output.status.success(), "{}", said(&output));
        let received = json(&bench, "r.json");
        let figure = |name: &str| received["received"][name].as_u64().unwrap();
        let (periods, kept) = (figure("periods"), figure("periods_kept"));
        assert!(
            periods > 50 && kept * 100 >= periods * 85,
            "{}",
            said(&output)
        );
        let share = figure("service_ns") * 1_000 / received["took_ns"].as_u64().unwrap();
        assert!(
            (200..=270).contains(&share),
            "{share} of 1000: {}",
            said(&output)
        );
    }
}

/// Prints `followed` when what it started has the kernel's reservation, and `alone` if it never has.
const CHILD: &str = "sleep 100 & c=$!
for i in $(seq 50); do
    chrt -p $c | grep -q DEADLINE && { kill $c; echo followed; exit; }
    sleep 0.02
done
kill $c; echo alone";

#[test]
fn what_the_program_starts_is_followed_as_the_user_says() {
    let Some(_live) = live() else { return };
    let bench = Bench::new();
    for (follow, expected) in [
        ("children", "followed\n"),
        ("threads", "alone\n"),
        ("none", "alone\n"),
    ] {
        let follow = format!("--follow={follow}");
        let options = ["--reserve", "1ms/20ms", "--enforcer", "deadline", &follow];
        let output = exec(&bench, &options, &shell(CHILD));
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            expected,
            "{follow}: {}",
            said(&output)
        );
    }
}

/// Its child and its first thread have ended, and nobody has waited for them: each tells a reservation of nothing.
#[test]
fn who_has_ended_was_not_taken_out_of_its_reservation() {
    let Some(_live) = live() else { return };
    let bench = Bench::new();
    let options = ["--reserve", "1ms/20ms", "--enforcer", "deadline"];
    let options = [&options[..], &["--judge"]].concat();
    let output = exec(&bench, &options, &shell("true & exec sleep 0.3"));
    let told = said(&output);
    assert!(!told.contains("was taken out"), "{told}");
}

#[test]
fn a_reservation_that_is_open_is_what_the_program_takes_and_a_quarter_more() {
    let Some(_live) = live() else { return };
    let bench = Bench::new();
    let options = ["--reserve", "auto/2ms", "--json=r.json"];
    // It starts nothing, and wants to read something every two milliseconds for more than two thousand periods: the first hundred have its beginning, and those after it the measurement.
    let program = "exec 3<> <(:); for i in {1..3200}; do read -t 0.002 -u 3; done; true";
    let output = exec(&bench, &options, &["bash", "-c", program]);
    assert!(output.status.success(), "{}", said(&output));
    if said(&output).contains("it ended before 1000 undisturbed periods") {
        return rights::skip(
            "the machine stood still in so many periods that a thousand others were not seen",
        );
    }
    assert!(
        said(&output).contains("a quarter more"),
        "{}",
        said(&output)
    );
    let received = json(&bench, "r.json");
    let beginning = "not used: the program had just begun";
    assert!(said(&output).contains(beginning), "{}", said(&output));
    let reserved = received["service_reserved_ns"].as_u64().unwrap();
    assert!((50_000..1_000_000).contains(&reserved), "{received}");
    let options = [&options[..], &["--judge"]].concat();
    let short = exec(&bench, &options, &["true"]);
    assert!(said(&short).contains("only measured"), "{}", said(&short));
    assert_eq!(short.status.code(), Some(5), "{}", said(&short));
    let measured = json(&bench, "r.json");
    assert_eq!(measured["held"], "measurement", "{measured}");
    assert_eq!(measured["verdict"], "inconclusive", "{measured}");
    let cases = [
        (["--reserve", "2ms/auto"], "only X"),
        (["--reserve", "auto/0ms"], "period"),
    ];
    for (options, why) in cases {
        let wrong = exec(&bench, &options, &["true"]);
        assert_eq!(wrong.status.code(), Some(125));
        assert!(said(&wrong).contains(why), "{}", said(&wrong));
    }
}

/// Measured in slots, and held by the kernel then: with what all threads took together, for each.
#[test]
fn what_is_open_is_found_for_the_kernel_too() {
    let Some(_live) = live() else { return };
    let bench = Bench::new();
    let options = ["--reserve=auto/2ms", "--enforcer=deadline", "--json=r.json"];
    let program = "exec 3<> <(:); for i in {1..3200}; do read -t 0.002 -u 3; done; true";
    let output = exec(&bench, &options, &["bash", "-c", program]);
    assert!(output.status.success(), "{}", said(&output));
    if said(&output).contains("it ended before 1000 undisturbed periods") {
        return rights::skip(
            "the machine stood still in so many periods that a thousand others were not seen",
        );
    }
    let received = json(&bench, "r.json");
    assert_eq!(received["held"], "reservation", "{received}");
    assert_eq!(received["enforcer"], "deadline", "{received}");
    let reserved = received["service_reserved_ns"].as_u64().unwrap();
    assert!((50_000..1_000_000).contains(&reserved), "{received}");
    let why = received["reserved_for"].as_str().unwrap();
    assert!(why.contains("each of which has that"), "{why}");
    let short = exec(&bench, &options, &["true"]);
    let line = said(&short);
    assert!(line.contains("1ms/2ms by slots"), "{line}");
}

/// Works until laxity has given up to find what it takes.
const RESTLESS: &str = "until grep -q 'nothing is reserved' said; do
i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; done";

#[test]
fn where_nothing_was_found_it_is_told_what_was_measured_and_why() {
    let Some(_live) = live() else { return };
    let bench = Bench::new();
    let options = ["--reserve", "auto/1ms", "--judge", "--json=r.json"];
    let options = [&options[..], &["--html=r.html", "--status-json=s.json"]].concat();
    let mut command = bench.command();
    command.arg("exec").args(options);
    command.args(["--", "timeout", "60", "sh", "-c", RESTLESS]);
    command.stderr(std::fs::File::create(bench.path("said")).unwrap());
    let status = command.status().unwrap();
    let said = std::fs::read_to_string(bench.path("said")).unwrap();
    assert_eq!(status.code(), Some(5), "{said}");
    let measured = json(&bench, "r.json");
    assert_eq!(measured["held"], "nothing", "{measured}");
    let why = measured["reserved_for"].as_str().unwrap();
    assert!(why.contains("name a reservation"), "{why}");
    assert!(measured["received"]["periods"].as_u64().unwrap() >= 1_000);
    assert_eq!(measured["contract"], serde_json::Value::Null);
    assert!(
        said.contains("laxity: nothing was reserved: it took"),
        "{said}"
    );
    assert!(bench.files().contains(&"r.html".to_owned()));
    assert_eq!(json(&bench, "s.json")["exit_code"], 5);
}

#[test]
fn the_verdict_is_the_exit_code_where_that_is_asked_for() {
    let Some(_live) = live() else { return };
    let bench = Bench::new();
    bench.write(
        "strict.toml",
        "limits = [{ quantity = \"overruns\", at_most = 0 }]\n",
    );
    bench.write(
        "easy.toml",
        "limits = [{ quantity = \"service_gap\", at_most = \"1s\" }]\n",
    );
    bench.write(
        "wrong.toml",
        "limits = [{ quantity = \"samples_lost\", at_most = 0 }]\n",
    );
    let judged = |contract: &str, program: &str| {
        let contract = format!("--contract={contract}");
        let options = ["--reserve", "2ms/8ms", "--status-json=s.json", &contract];
        exec(&bench, &options, &shell(program))
    };
    let strict = judged("strict.toml", SPIN);
    assert_eq!(strict.status.code(), Some(2), "{}", said(&strict));
    assert_eq!(json(&bench, "s.json")["by"], "verdict");
    assert!(said(&strict).contains("overruns"), "{}", said(&strict));
    let easy = judged("easy.toml", SPIN);
    assert!(matches!(easy.status.code(), Some(0 | 5)), "{}", said(&easy));
    let own = judged("strict.toml", &format!("{SPIN}; exit 3"));
    assert_eq!(own.status.code(), Some(3), "its own code is not covered up");
    let wrong = judged("wrong.toml", "touch started");
    assert_eq!(wrong.status.code(), Some(125), "{}", said(&wrong));
    assert!(said(&wrong).contains("samples_lost"), "{}", said(&wrong));
    assert!(
        !bench.files().contains(&"started".to_owned()),
        "nothing was started"
    );
    let unseen = exec(&bench, &["--reserve", "2ms/8ms", "--judge"], &["true"]);
    assert_eq!(unseen.status.code(), Some(5), "{}", said(&unseen));
}

#[test]
fn by_the_kernel_halts_of_the_machine_are_looked_for_where_that_is_judged() {
    let Some(_live) = live() else { return };
    let bench = Bench::new();
    let options = ["--reserve=2ms/8ms", "--enforcer=deadline", "--json=r.json"];
    for judge in [false, true] {
        let judged = judge.then_some("--judge");
        let options: Vec<&str> = options.into_iter().chain(judged).collect();
        let output = exec(&bench, &options, &["sleep", "1"]);
        let told = said(&output);
        assert!(matches!(output.status.code(), Some(0 | 5)), "{told}");
        let received = json(&bench, "r.json");
        assert_eq!(received["received"]["halts_seen"], judge, "{received}");
        assert_eq!(told.contains("halts of the machine are not seen"), !judge);
    }
}

#[test]
fn a_killed_laxity_takes_the_program_along_and_leaves_no_group() {
    let Some(_live) = live() else { return };
    if let Some(why) = rights::missing(Right::Freezer) {
        return rights::lacks(&why);
    }
    let bench = Bench::new();
    let mut command = bench.command();
    let program = shell("echo $$; while :; do :; done");
    command
        .args(["exec", "--reserve", "2ms/8ms", "--confine=freeze", "--"])
        .args(program);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    let program = line.trim().to_owned();
    child.kill().unwrap();
    child.wait().unwrap();
    let gone = || !std::fs::exists(format!("/proc/{program}")).unwrap();
    eventually("the program ends", gone);
    let group = format!("laxity-{}-", child.id());
    let find = || {
        let mut find = Command::new("find");
        find.args([
            "/sys/fs/cgroup",
            "-maxdepth",
            "4",
            "-name",
            &format!("{group}*"),
        ]);
        find.output().unwrap().stdout
    };
    eventually("its group is removed", || find().is_empty());
    // Who ended it all ranks above the slots of whoever comes next.
    let is_keeper = |entry: std::io::Result<std::fs::DirEntry>| {
        let name = std::fs::read(entry.unwrap().path().join("comm"));
        name.is_ok_and(|name| name == b"keeper\n")
    };
    let none_is = || !std::fs::read_dir("/proc").unwrap().any(is_keeper);
    eventually("its keeper ends", none_is);
}
