//! Whoever is in the way is named by every command in the same words. Needs the rights to schedule.

mod common;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::Bench;
use laxity_linux::doctor::rights::{self, LiveTest, Right};
use laxity_linux::os::proc;
use laxity_linux::os::sched::{self, Policy, Tid};
use serde_json::Value;

const RESERVED: &str = "\
title = \"A device with slots\"

[devices.modem]
kind = \"soft-modem\"

[variants.reserved]
placement = \"reserved 2ms/8ms\"
enforcer = \"slots\"
";

fn live() -> Option<LiveTest> {
    rights::require(&[Right::RealTime, Right::Processors(2)])
}

/// A program that is killed with this.
struct Program(Child);

impl Program {
    fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.stderr(Stdio::null()).spawn().expect("it starts"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // One that has ended already is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a real-time thread of a process has this name.
fn until_thread(process: u32, name: &str) {
    let latest = Instant::now() + Duration::from_secs(60);
    let is_it = |thread: &proc::RealTimeThread| thread.pid == process && thread.name == name;
    while !proc::real_time_threads().is_ok_and(|all| all.iter().any(is_it)) {
        assert!(Instant::now() < latest, "no thread {name} of {process}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// What the doctor says of who outranks slots.
fn by_doctor(bench: &Bench) -> String {
    let found = json(&bench.run(&["doctor", "--json=-"]));
    let findings = found["findings"].as_array().expect("findings");
    let finding = findings.iter().find(|one| one["name"] == "outranking");
    let cause = finding.and_then(|one| one["cause"].as_str());
    cause.expect("it is looked into").to_owned()
}

/// Every reason for which a plan says that something is unenforced.
fn by_plan(bench: &Bench) -> Vec<String> {
    fn reasons(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                let reason = fields.get("grade_reason").and_then(Value::as_str);
                found.extend(reason.map(str::to_owned));
                fields.values().for_each(|value| reasons(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| reasons(value, found)),
            _ => {}
        }
    }
    bench.write("s.toml", RESERVED);
    let plan = bench.run(&["plan", "--on", "linux", "--json=-", "s.toml"]);
    assert_eq!(plan.status.code(), Some(0), "{plan:?}");
    let mut found = Vec::new();
    reasons(&json(&plan), &mut found);
    found
}

#[test]
fn plan_and_doctor_name_the_same_culprit() {
    let Some(_live) = live() else { return };
    let bench = Bench::new();
    let named = |pid: u32| format!("of process {pid} (SCHED_FIFO priority 90)");
    let rogue = Program::start(Command::new("sleep").arg("1000"));
    let pid = rogue.0.id();
    assert!(!by_doctor(&bench).contains(&named(pid)));
    sched::set_policy(Tid(pid.cast_signed()), Policy::Fifo(90)).expect("a rank");
    let (doctor, plan) = (by_doctor(&bench), by_plan(&bench));
    assert!(doctor.contains(&named(pid)), "{doctor}");
    assert!(plan.iter().any(|why| why.contains(&named(pid))), "{plan:?}");
}

#[test]
fn another_laxity_is_named_as_that_by_whoever_comes_second() {
    let Some(_live) = live() else { return };
    let bench = Bench::new();
    let hold = ["exec", "--reserve", "2ms/8ms", "--processor", "0"];
    let mut first = bench.command();
    // Beside one that sleeps its dispatcher takes next to nothing, and on a fast machine that goes unnoticed.
    first
        .args(hold)
        .args(["--", "sh", "-c", "while :; do :; done"]);
    let first = Program::start(&mut first);
    let pid = first.0.id();
    until_thread(pid, "dispatcher/0");
    let named = format!("another laxity (process {pid})");
    let (doctor, plan) = (by_doctor(&bench), by_plan(&bench));
    assert!(doctor.contains(&named), "{doctor}");
    assert!(plan.iter().any(|why| why.contains(&named)), "{plan:?}");
    let mut second = bench.command();
    second.args(hold).args(["--", "touch", "started"]);
    let second = second.output().expect("laxity starts");
    let said = String::from_utf8_lossy(&second.stderr);
    let refused = format!("slots already, of {named} on processor 0");
    assert!(said.contains(&refused), "{said}");
    assert_eq!(second.status.code(), Some(125), "{said}");
    assert!(!bench.files().contains(&"started".to_owned()), "{said}");
    let run = ["run", "--on", "linux", "--json=out.json", "s.toml"];
    let run = bench.run(&run);
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(said.contains(&named), "{said}");
    assert_eq!(run.status.code(), Some(5), "{said}");
}

/// A command that outranks slots and works, beside a device with slots; and one beside a device without.
const WITH_COMMANDS: &str = r#"
title = "Commands of the scenario"

[quick]
idle = "0.4s"

[devices.player]
kind = "audio"
load = "10 % ± 8"

[tasks.hasty]
kind = "command"
argv = ["sh", "-c", "while :; do sleep 0.01; done"]

[defaults]
tasks = ["hasty"]
contracts = []
on = "live"

[variants.slots]
placement = { player = "reserved 3ms/8ms", hasty = "thread 31" }
enforcer = "slots"

[variants.deadline]
placement = { player = "reserved 3ms/8ms", hasty = { placement = "reserved 1ms/10ms", enforcer = "deadline" } }

[variants.none]
placement = { player = "thread 24", hasty = "reserved 1ms/10ms" }
enforcer = "deadline"
"#;

#[test]
fn a_command_of_the_scenario_goes_by_its_own_name() {
    let Some(_live) = rights::require(&[Right::RealTime, Right::Deadline, Right::Processors(2)])
    else {
        return;
    };
    let bench = Bench::new();
    bench.write("c.toml", WITH_COMMANDS);
    let run = [
        "run",
        "--on",
        "linux",
        "--allow-commands",
        "--json=-",
        "c.toml",
    ];
    let run = bench.run(&run);
    assert!(
        !run.stdout.is_empty(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let results = json(&run);
    let variants = results["variants"].as_array().expect("variants");
    for (variant, policy) in variants
        .iter()
        .zip(["SCHED_FIFO priority 95", "SCHED_DEADLINE"])
    {
        let grade = variant["grade_reason"].as_str().expect("unenforced");
        let named = format!("ranked above the slot on its processor: hasty ({policy})");
        assert!(grade.contains(&named), "{grade}");
    }
    for variant in variants {
        let told = variant.to_string();
        assert!(!told.contains("of process "), "it is no stranger: {told}");
    }
    let told = variants[2].to_string();
    assert!(!told.contains("ranked above"), "there is no slot: {told}");
}

/// Whoever begins outranks every slot until all stands: on a processor of its own it does so there alone.
#[test]
fn two_programs_on_processors_of_their_own_leave_each_other_alone() {
    let Some(_live) = rights::require(&[Right::RealTime, Right::Processors(2)]) else {
        return;
    };
    let bench = Bench::new();
    let reserve = |processor: &str, into: &str, program: &[&str]| {
        let mut command = bench.command();
        let options = [
            "exec",
            "--reserve",
            "2ms/8ms",
            "--processor",
            processor,
            into,
            "--",
        ];
        command.args(options).args(program);
        command
    };
    let mut first = reserve("0", "--json=a.json", &["sh", "-c", "echo up; read x"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut said = BufReader::new(first.stdout.take().unwrap());
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    for _ in 0..3 {
        let second = reserve("1", "--json=b.json", &["true"]).output().unwrap();
        assert!(second.status.success(), "{second:?}");
    }
    first.stdin.take().unwrap().write_all(b"\n").unwrap();
    first.wait().unwrap();
    let told = common::json(&bench, "a.json");
    assert_ne!(told["received"]["grade"], "unenforced", "{told}");
}

/// One that reserves slots, and whose program says so when it runs and ends with its input.
fn reserving(bench: &Bench, options: &[&str]) -> Child {
    let mut command = bench.command();
    command.args(["exec", "--reserve", "3ms/8ms"]).args(options);
    command.args(["--", "sh", "-c", "echo up; read x"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(Stdio::piped()).spawn().expect("it starts")
}

/// Whether its program runs; `false` once it has ended without.
fn is_up(child: &mut Child) -> bool {
    let mut line = String::new();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    said.read_line(&mut line).unwrap();
    line == "up\n"
}

/// Lets their programs end; what they said, and with what they ended.
fn end(both: [Child; 2]) -> [Output; 2] {
    both.map(|mut child| {
        // One that has ended reads nothing.
        let _ = child.stdin.take().unwrap().write_all(b"\n");
        child.wait_with_output().unwrap()
    })
}

/// Whether one of these could not begin, as the machine was too disturbed; says so.
fn could_not_begin(outputs: &[Output]) -> bool {
    let is_it = outputs.iter().any(|output| {
        String::from_utf8_lossy(&output.stderr).contains("nothing was started or changed")
    });
    if is_it {
        rights::skip("what switching costs could not be measured");
    }
    is_it
}

/// Neither can have seen the other's threads.
#[test]
fn of_two_that_begin_at_once_one_alone_has_slots_on_a_processor() {
    let Some(_live) = live() else { return };
    let bench = Bench::new();
    let mut both = [(); 2].map(|()| reserving(&bench, &["--processor", "0"]));
    let up = both.each_mut().map(is_up);
    let pids = both.each_ref().map(Child::id);
    let outputs = end(both);
    let (first, second) = match up {
        [true, true] => panic!("both have slots: {outputs:?}"),
        _ if could_not_begin(&outputs) => return,
        [true, false] => (0, 1),
        [false, true] => (1, 0),
        [false, false] => panic!("{up:?} {outputs:?}"),
    };
    let said = String::from_utf8_lossy(&outputs[second].stderr);
    let named = format!(
        "slots already, of another laxity (process {}) on processor 0",
        pids[first]
    );
    assert!(said.contains(&named), "{said}");
    let codes = [first, second].map(|of| outputs[of].status.code());
    assert_eq!(codes, [Some(0), Some(125)], "{outputs:?}");
}

#[test]
fn two_that_begin_at_once_have_a_processor_each() {
    let Some(_live) = live() else { return };
    let bench = Bench::new();
    let mut both = ["--json=a.json", "--json=b.json"].map(|into| reserving(&bench, &[into]));
    let up = both.each_mut().map(is_up);
    let outputs = end(both);
    if up != [true; 2] && could_not_begin(&outputs) {
        return;
    }
    assert_eq!(up, [true; 2], "{outputs:?}");
    let [one, other] = ["a.json", "b.json"].map(|from| {
        let told = common::json(&bench, from);
        told["processor"].as_u64().expect("a processor")
    });
    assert_ne!(one, other);
}
