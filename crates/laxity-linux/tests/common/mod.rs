//! What the live tests of this crate share. In a test binary: `mod common;`, then
//!
//! * [`rights::require`], or [`live_turn`] where no right is needed or a test tells itself which, first in every test that takes a real-time
//!   policy, reserves bandwidth or measures time: it keeps the other live tests of the machine away until it is dropped;
//! * [`in_own_process`] for what a process cannot take back, as dropping a capability;
//! * [`until`] to wait for what the kernel does in its own time;
//! * [`guardian_of`] for who is there if a process dies;
//! * [`footprint`] for what a run may not leave behind.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use laxity_linux::doctor::rights::{self, LiveTest, lacks};
use laxity_linux::os::cpuset::CpuSet;
use laxity_linux::os::proc;
use laxity_linux::os::sched::{self, Policy, Tid};

/// Tells a process started by [`in_own_process`] that it is that process.
const OWN_PROCESS: &str = "LAXITY_TEST_IN_OWN_PROCESS";
/// What such a process prints when its scenario came to its end.
const DONE: &str = "scenario came to its end";

/// Waits until no other live test runs on this machine, in this process or another. In the process of [`in_own_process`] the test that
/// started it has its turn already.
pub(crate) fn live_turn() -> Option<LiveTest> {
    (!is_own_process()).then(rights::turn)
}

/// Whether this is the process that [`in_own_process`] started.
pub(crate) fn is_own_process() -> bool {
    std::env::var_os(OWN_PROCESS).is_some()
}

/// Runs `scenario` in a process of its own, as the test `name` (its full path within the test binary) of this binary; the calling test
/// fails if it fails there. Put nothing after it in the test.
pub(crate) fn in_own_process(name: &str, scenario: impl FnOnce()) {
    in_own_process_with(name, |_| (), scenario);
}

/// The same, with a last hand on the process to be started.
pub(crate) fn in_own_process_with(
    name: &str,
    prepare: impl FnOnce(&mut Command),
    scenario: impl FnOnce(),
) {
    if is_own_process() {
        scenario();
        println!("{DONE}");
        return;
    }
    let binary = std::env::current_exe().expect("a test binary knows its path");
    let mut command = Command::new(binary);
    prepare(&mut command);
    run_to_its_end(name, command);
}

/// The same in a process that a chain of commands leads to, as `unshare --pid --fork`. The test is skipped where that cannot be had.
pub(crate) fn in_own_process_under(name: &str, chain: &[&str], scenario: impl FnOnce()) {
    if is_own_process() {
        scenario();
        println!("{DONE}");
        return;
    }
    let binary = std::env::current_exe().expect("a test binary knows its path");
    let under = || {
        let mut command = Command::new(chain[0]);
        command.args(&chain[1..]);
        command
    };
    let probed = under().arg("true").output();
    if !probed.is_ok_and(|probed| probed.status.success()) {
        return lacks(&format!("`{}` cannot be had", chain.join(" ")));
    }
    let mut command = under();
    command.arg(binary);
    run_to_its_end(name, command);
}

fn run_to_its_end(name: &str, mut command: Command) {
    command
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(OWN_PROCESS, "1");
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("the test binary starts");
    let (stdout, stderr) = (
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr),
    );
    for line in stderr.lines().filter(|line| line.starts_with("skipped")) {
        eprintln!("{line}");
    }
    assert!(
        status.success() && stdout.contains(DONE),
        "{name} in its own process: {status}\n{stdout}\n{stderr}"
    );
}

/// Asks every millisecond until the answer is yes; panics after twenty seconds.
pub(crate) fn until(what: &str, mut happened: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !happened() {
        assert!(begin.elapsed() < Duration::from_secs(20), "no end: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The process that reads a pipe of this one, by the name that guardians have.
pub(crate) fn guardian_of(process: u32) -> Option<i32> {
    let pipes = |process: &str| -> Vec<PathBuf> {
        let entries = fs::read_dir(format!("/proc/{process}/fd")).into_iter();
        let links = entries.flatten().flatten();
        links
            .filter_map(|entry| fs::read_link(entry.path()).ok())
            .filter(|link| link.to_string_lossy().starts_with("pipe:"))
            .collect()
    };
    let own = pipes(&process.to_string());
    fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let comm = fs::read_to_string(format!("/proc/{name}/comm")).unwrap_or_default();
        let is_its =
            comm == "laxity-guardian\n" && pipes(&name).iter().any(|pipe| own.contains(pipe));
        is_its.then(|| name.parse().ok())?
    })
}

/// What must be the same after a run as before it; no thread of real time is left. The kernel lists one that was joined a moment longer.
pub(crate) fn footprint() -> (Policy, CpuSet, Option<u64>) {
    let own = Tid::current();
    until("no thread of real time is left", || {
        let all = proc::threads_of(std::process::id()).expect("own threads");
        let mut policies = all.into_iter().map(sched::policy);
        !policies.any(|policy| policy.is_ok_and(Policy::is_real_time))
    });
    (
        sched::policy(own).expect("own policy"),
        sched::affinity(own).expect("own affinity"),
        proc::locked_memory_kib(),
    )
}
