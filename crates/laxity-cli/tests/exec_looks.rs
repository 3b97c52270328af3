//! `laxity exec` while the program runs: when it looks at who could take from it, and what becomes of the slots in which it is measured. Needs the rights
//! to schedule.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{Bench, comes_true, eventually, json, said};
use laxity_linux::doctor::rights::{self, Right};
use laxity_linux::os::cpuset::CpuSet;
use laxity_linux::os::sched::{self, Policy, Tid};
use rustix::process::{Pid, Signal, kill_process};

/// The looks at a program are a period apart; those who could take from it are looked for all the time.
#[test]
fn over_a_long_period_nobody_is_blind() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let bench = Bench::new();
    let options = ["exec", "--reserve=100ms/1s", "--json=r.json", "--"];
    let spin = "while :; do :; done";
    let program = ["timeout", "3.5", "sh", "-c", spin];
    let output = bench.run(&[&options[..], &program].concat());
    let told = said(&output);
    let received = json(&bench, "r.json");
    let reason = received["grade_reason"].as_str().unwrap_or_default();
    // What the machine itself does is told in other words, or as a standstill of less than a period.
    let blind = reason.strip_prefix("nobody looked for ");
    let blind = blind.and_then(|rest| rest.split_once("ms").map(|(ms, _)| ms.parse::<f64>()));
    assert!(
        blind.is_none_or(|ms| ms.is_ok_and(|ms| ms < 750.0)),
        "{told}"
    );
    let figure = |name: &str| received["received"][name].as_u64().unwrap();
    let counted = ["periods", "periods_disturbed", "periods_unseen"].map(figure);
    assert!(counted.iter().sum::<u64>() >= 2, "{told}");
}

/// Between the ranks of slots and dispatcher somebody holds the processor, and the program, told to end meanwhile, does so as soon as it has it again.
#[test]
fn a_wait_in_which_the_program_was_told_to_end_is_not_forgotten() {
    let Some(_live) = rights::require(&[Right::RealTime, Right::Processors(2)]) else {
        return;
    };
    let bench = Bench::new();
    let usable = sched::affinity(Tid::current()).unwrap();
    let cpu = usable.iter().next().unwrap();
    let mut command = bench.command();
    command.args([
        "exec",
        "--reserve=2ms/8ms",
        "--judge",
        "--json=r.json",
        "-a",
    ]);
    let spin = "echo $$ > begun.new; mv begun.new begun; while :; do :; done";
    command.args([cpu.to_string().as_str(), "--", "sh", "-c", spin]);
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    let begun = bench.path("begun");
    eventually("it runs", || begun.exists());
    let program = fs::read_to_string(begun).unwrap().trim().parse().unwrap();
    let program = Pid::from_raw(program).unwrap();
    thread::sleep(Duration::from_millis(200));
    let stranger = thread::spawn(move || {
        let own = Tid::current();
        sched::set_affinity(own, &CpuSet::single(cpu)).unwrap();
        sched::set_policy(own, Policy::Fifo(85)).unwrap();
        kill_process(program, Signal::TERM).unwrap();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(120) {}
    });
    stranger.join().unwrap();
    let output = child.wait_with_output().unwrap();
    let told = said(&output);
    let received = json(&bench, "r.json");
    assert_ne!(received["grade"], "enforced", "{told}");
    assert_ne!(received["verdict"], "met", "{told}");
}

/// Those of its threads that give slots.
fn dispatchers(process: u32) -> BTreeSet<String> {
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    let numbers = threads.into_iter().flatten().flatten();
    let gives_slots =
        |name: std::io::Result<String>| name.is_ok_and(|it| it.starts_with("dispatcher/"));
    let given = numbers.filter(|one| gives_slots(fs::read_to_string(one.path().join("comm"))));
    given
        .map(|one| one.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Whether what the machine did left out more periods than were taken, whenever it was measured; or so many were taken at a time that something followed of
/// them, which was too much, and the last time was short.
fn is_excused(received: &serde_json::Value) -> bool {
    let all = received["measured"].as_array().expect("it was measured");
    let figure = |of: &serde_json::Value, name: &str| of[name].as_u64().unwrap();
    let each = |name: &'static str| all.iter().map(move |one| figure(one, name));
    let left_out = each("periods_disturbed").chain(each("periods_unseen"));
    let left_out: u64 = left_out.sum();
    left_out > each("periods").sum() || each("periods").any(|taken| taken >= 1_000)
}

/// Where one dispatcher ends and another begins the program has no slots in between, and is late.
#[test]
fn the_slots_in_which_it_is_measured_become_those_that_are_reserved() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let bench = Bench::new();
    let options = [
        "exec",
        "--reserve=auto/2ms",
        "--json=r.json",
        "--judge",
        "--",
    ];
    // It begins, is measured, and goes on for half a second or more.
    let program = "exec 3<> <(:); >begun; for i in {1..3200}; do read -t 0.002 -u 3; done; true";
    let mut command = bench.command();
    command.args(options).args(["bash", "-c", program]);
    command.stderr(fs::File::create(bench.path("said")).unwrap());
    let mut child = command.spawn().unwrap();
    let mut found = BTreeSet::new();
    let ended = comes_true(Duration::from_secs(60), || {
        if bench.path("begun").exists() {
            found.append(&mut dispatchers(child.id()));
        }
        child.try_wait().unwrap().is_some()
    });
    assert!(ended, "it ends by itself");
    let received = json(&bench, "r.json");
    let told = String::from_utf8(bench.read("said")).unwrap();
    if received["held"] != "reservation" {
        // It lasts for three times as many periods as are measured.
        assert_eq!(received["held"], "measurement", "{told}");
        assert!(is_excused(&received), "{told}");
        return rights::skip(
            "the machine stood still in so many periods that a thousand others were not seen",
        );
    }
    assert_eq!(found.len(), 1, "one gives all slots: {found:?}: {told}");
    let measured = received["measured"].as_array().unwrap();
    assert!(measured.len() >= 2, "{told}");
    let figure = |of: &serde_json::Value, name: &str| of[name].as_u64().unwrap();
    // What is told of each part is of that part alone.
    let beginning = figure(&measured[0], "periods");
    assert!((100..1_000).contains(&beginning), "{told}");
    let since = figure(&received["received"], "periods");
    let took = figure(&received, "took_ns");
    assert!(since > 0 && since * 2_000_000 <= took + 4_000_000, "{told}");
    assert_eq!(received["received"]["periods_seen_as_one"], 1, "{told}");
}

/// Works above all slots on a processor, 3 ms of each 50, until it is told to end.
fn hog(cpu: usize, ends: &AtomicBool) {
    let own = Tid::current();
    sched::set_affinity(own, &CpuSet::single(cpu)).unwrap();
    sched::set_policy(own, Policy::Fifo(99)).unwrap();
    while !ends.load(Ordering::Relaxed) {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(3) {}
        thread::sleep(Duration::from_millis(47));
    }
}

/// Whoever outranks it was there all the time, and the program ends before anybody looks at it.
#[test]
fn what_ends_before_anybody_looks_is_not_called_enforced() {
    let Some(_live) = rights::require(&[Right::RealTime, Right::Processors(2)]) else {
        return;
    };
    let bench = Bench::new();
    let cpu = sched::affinity(Tid::current()).unwrap().iter().next();
    let cpu = cpu.expect("a processor");
    let ends = AtomicBool::new(false);
    let output = thread::scope(|scope| {
        scope.spawn(|| hog(cpu, &ends));
        let on = format!("--processor={cpu}");
        let options = ["exec", "--reserve=2ms/8ms", "--json=r.json", &on, "--"];
        let output = bench.run(&[&options[..], &["true"]].concat());
        ends.store(true, Ordering::Relaxed);
        output
    });
    let told = said(&output);
    if output.status.code() == Some(125) && told.contains("is disturbed") {
        assert!(told.contains("nothing was started"), "{told}");
        return rights::skip("beside it nothing could be measured");
    }
    assert!(output.status.success(), "{told}");
    assert_ne!(json(&bench, "r.json")["grade"], "enforced", "{told}");
}

/// Where `/proc` names other threads than the kernel does here, a thread of a program might be somebody else's.
#[test]
fn where_proc_shows_another_namespace_nothing_is_reserved() {
    let Some(_live) = rights::require(&[Right::RealTime, Right::Processors(1)]) else {
        return;
    };
    let binary = env!("CARGO_BIN_EXE_laxity");
    let output = std::process::Command::new("unshare")
        .args([
            "--pid",
            "--fork",
            binary,
            "exec",
            "--reserve=2ms/8ms",
            "--",
            "true",
        ])
        .output();
    let output = output.expect("unshare runs");
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("unshare failed") {
        return rights::lacks("no PID namespace can be made");
    }
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("/proc shows another PID namespace"), "{said}");
}
