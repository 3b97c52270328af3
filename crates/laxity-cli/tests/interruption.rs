//! A run that is stopped from outside, by a signal it can answer or by one it cannot, leaves the machine as it was.
//!
//! Each test waits for an event that shows the run to be under way (a thread with a real-time policy, a process, a file), not for a time.

mod common;
#[path = "interruption/networks.rs"]
mod networks;

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use common::machine::{DEADLINE, FIFO, Machine, Scheduling, marked_processes, threads_of};
use common::{Bench, assert_says, comes_true, shipped};
use laxity::doctor::rights::{self, Right};
use rustix::process::{Pid, Signal, kill_process};

/// A run may take so long to get where it is waited for; it needs a few seconds.
const UNDER_WAY: Duration = Duration::from_secs(40);
/// So long what was stopped may take to end, and the kernel and the guardian to clear up.
const CLEARED_UP: Duration = Duration::from_secs(10);

/// A device in each place that a run can be stopped in. Whatever its load is, is right: to meet one, the machine's speed would have to rest.
const PLACES: &str = r#"
[quick]
idle = "1.1s"

[devices.player]
kind = "audio"
load = "10 % ± 9.9"

[tasks.rogue]
kind = "rogue"
burst = "100ms"
every = "250ms"
fifo = 90

[defaults]
on = "live"

[variants.thread]
placement = "thread 24"

[variants.slots]
placement = "reserved 4ms/8ms"

[variants.rogue-above-slots]
placement = "reserved 4ms/8ms"
tasks = ["rogue"]

[variants.deadline]
placement = "reserved 4ms/8ms"
enforcer = "deadline"
"#;

/// A program that starts another one: both have to go.
const WITH_COMMAND: &str = r#"
[quick]
bytes = 4_000
phases = "short"
limit = "6.5s"
idle = "1.1s"

[devices.modem]
kind = "soft-modem"
load = "14.7 % ± 9.9"

[tasks.sleepers]
kind = "command"
argv = ["sh", "-c", "setsid sleep 1000 & exec sleep 1000"]

[variants.beside-a-command]
on = "live"
placement = "thread 24"
"#;

/// A live run in a process of its own, which everything that it starts can be told by.
struct LiveRun {
    child: Child,
    mark: (String, String),
    bench: Bench,
    said: Bench,
}

impl LiveRun {
    /// Starts a run of the variants of a scenario; none named: of all.
    fn start(scenario: &str, variants: &[&str]) -> Self {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let number = RUNS.fetch_add(1, Ordering::Relaxed);
        let value = format!("{}-{number}", std::process::id());
        let mark = ("LAXITY_TEST_RUN".to_owned(), value);
        let (bench, said) = (Bench::new(), Bench::new());
        let stream = |name| File::create(said.path(name)).expect("the directory is ours");
        let mut command = bench.command();
        command.args(["run", "--on", "linux", "--allow-commands"]);
        command.args(["--json=out.json", scenario]);
        for variant in variants {
            command.args(["--variant", variant]);
        }
        command.env(&mark.0, &mark.1);
        command.stdout(stream("stdout")).stderr(stream("stderr"));
        let child = command.spawn().expect("laxity starts");
        Self {
            child,
            mark,
            bench,
            said,
        }
    }

    fn said(&self) -> String {
        String::from_utf8_lossy(&self.said.read("stderr")).into_owned()
    }

    /// Starts one of those in [`PLACES`].
    fn start_in_places(variants: &[&str]) -> Self {
        let scenarios = Bench::new();
        let scenario = scenarios.write("places.toml", PLACES);
        let mut run = Self::start(&scenario.display().to_string(), variants);
        let has_begun = run.reaches("its beginning", |run| !run.said().is_empty());
        assert!(has_begun, "it says so before it ends");
        run
    }

    /// Waits until something is so; fails if the run ends before. Where the machine stands still too often to calibrate a load the run ends
    /// inconclusive, and the test is skipped: `false`.
    #[must_use]
    fn reaches(&mut self, what: &str, mut is_so: impl FnMut(&Self) -> bool) -> bool {
        let (mut so, mut ended) = (false, None);
        let came = comes_true(UNDER_WAY, || {
            so = is_so(self);
            ended = self.child.try_wait().expect("it is our child");
            so || ended.is_some()
        });
        let said = self.said();
        assert!(came, "never came: {what}\n{said}");
        if !so {
            let stood_still = "the machine itself stood still";
            let code = ended.and_then(|ended| ended.code());
            assert!(
                code == Some(5) && said.contains(stood_still),
                "{ended:?} before {what}: {said}"
            );
            rights::skip(said.lines().last().unwrap_or(stood_still));
        }
        so
    }

    /// Waits until the run has a thread that is scheduled so.
    #[must_use]
    fn reaches_thread(&mut self, what: &str, wanted: impl Fn(&Scheduling) -> bool) -> bool {
        self.reaches(what, |run| threads_of(run.child.id()).iter().any(&wanted))
    }

    /// Waits until slots are given out: there is a dispatcher, and the witness, which is there only while a variant runs.
    #[must_use]
    fn reaches_slots(&mut self) -> bool {
        self.reaches("slots", |run| {
            let threads = threads_of(run.child.id());
            let has = |name| {
                let mut named = threads
                    .iter()
                    .filter(|thread| thread.name.starts_with(name));
                named.any(|thread| thread.policy == FIFO)
            };
            has("dispatcher") && has("witness")
        })
    }

    fn kill(&self, signal: Signal) {
        let process = Pid::from_child(&self.child);
        kill_process(process, signal).expect("it is our child, and not waited for");
    }

    fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        let ended = comes_true(CLEARED_UP, || {
            status = self.child.try_wait().expect("it is our child");
            status.is_some()
        });
        assert!(ended, "still there: {:?}", threads_of(self.child.id()));
        status.expect("it has ended")
    }

    /// Stops the run, checks that it said what had come to it, and that nothing is left of it.
    fn interrupt(mut self, signal: Signal, name: &str, before: &Machine) {
        self.kill(signal);
        let status = self.ended();
        let said = self.said();
        assert_eq!(status.code(), Some(1), "{status}: {said}");
        let restored = "everything is as it was before";
        assert_says(&said, &[&format!("interrupted by {name}"), restored]);
        self.assert_nothing_left(before);
    }

    /// Kills the run, which can do nothing about it, and checks that nothing is left of it.
    fn murder(mut self, before: &Machine) {
        self.kill(Signal::KILL);
        assert_eq!(self.ended().signal(), Some(Signal::KILL.as_raw()));
        self.assert_nothing_left(before);
    }

    fn assert_nothing_left(self, before: &Machine) {
        self.assert_cleared(before);
        let files = self.bench.files();
        assert!(files.is_empty(), "written: {files:?}");
        assert_eq!(self.said.read("stdout"), b"");
    }

    fn assert_cleared(&self, before: &Machine) {
        // The guardian clears up after its master's death, and then ends too.
        let gone = comes_true(CLEARED_UP, || marked_processes(&self.mark).is_empty());
        assert!(gone, "left: {:?}", marked_processes(&self.mark));
        let restored = comes_true(CLEARED_UP, || before.changes().is_empty());
        assert!(restored, "changed: {:#?}", before.changes());
    }
}

impl Drop for LiveRun {
    fn drop(&mut self) {
        // Where a test has failed; otherwise it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            for (process, _) in marked_processes(&self.mark) {
                if let Some(process) = Pid::from_raw(process) {
                    let _ = kill_process(process, Signal::KILL);
                }
            }
        }
    }
}

#[test]
fn interrupted_while_a_slot_is_held() {
    let Some(_alone) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let before = Machine::now();
    let mut run = LiveRun::start_in_places(&["thread", "slots"]);
    let has_begun = run.reaches("the second variant", |run| {
        run.said().lines().any(|line| line.ends_with("  slots"))
    });
    if !has_begun || !run.reaches_slots() {
        return;
    }
    run.interrupt(Signal::INT, "SIGINT", &before);
}

/// What stood still then was laxity, and not the machine. Stopped before the witness looks, nothing of the run stands still.
#[test]
fn that_it_was_stopped_and_continued_is_told() {
    let Some(_alone) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let mut run = LiveRun::start_in_places(&["slots"]);
    let has_looked = |thread: &Scheduling| thread.name.starts_with("witness") && thread.turns > 100;
    if !run.reaches_slots() || !run.reaches_thread("looks of the witness", has_looked) {
        return;
    }
    run.kill(Signal::STOP);
    // As long as that takes it: a period and more.
    assert!(!comes_true(Duration::from_millis(200), || false));
    run.kill(Signal::CONT);
    assert!(comes_true(UNDER_WAY, || run
        .child
        .try_wait()
        .unwrap()
        .is_some()));
    let written = String::from_utf8_lossy(&run.bench.read("out.json")).into_owned();
    assert_says(&written, &["somebody stopped laxity itself"]);
}

#[test]
fn terminated_while_a_rogue_outranks_the_slots() {
    let Some(_alone) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let before = Machine::now();
    let mut run = LiveRun::start_in_places(&["rogue-above-slots"]);
    let has_rogue = run.reaches_thread("the rogue", |thread| {
        thread.policy == FIFO && thread.priority == 90
    });
    if !has_rogue || !run.reaches_slots() {
        return;
    }
    run.interrupt(Signal::TERM, "SIGTERM", &before);
}

#[test]
fn interrupted_while_the_switch_between_slots_is_calibrated() {
    let Some(_alone) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let before = Machine::now();
    let mut run = LiveRun::start_in_places(&["slots"]);
    if !run.reaches_thread("the calibration", |thread| thread.name == "calibration") {
        return;
    }
    run.interrupt(Signal::INT, "SIGINT", &before);
}

#[test]
fn terminated_while_the_load_is_calibrated() {
    let Some(_alone) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let before = Machine::now();
    let mut run = LiveRun::start(&shipped("soft-modem.toml"), &["thread-24"]);
    if !run.reaches_thread("a real-time thread", Scheduling::is_real_time) {
        return;
    }
    assert_says(&run.said(), &["calibrating"]);
    run.interrupt(Signal::TERM, "SIGTERM", &before);
}

#[test]
fn killed_while_a_slot_is_held() {
    let Some(_alone) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let before = Machine::now();
    let mut run = LiveRun::start_in_places(&["slots"]);
    if !run.reaches_slots() {
        return;
    }
    run.murder(&before);
}

#[test]
fn interrupted_and_killed_while_the_kernel_holds_a_reservation() {
    let Some(_alone) = rights::require(&[Right::RealTime, Right::Deadline]) else {
        return;
    };
    let before = Machine::now();
    for signal in [Signal::INT, Signal::KILL] {
        let mut run = LiveRun::start_in_places(&["deadline"]);
        if !run.reaches_thread("a reservation", |thread| thread.policy == DEADLINE) {
            return;
        }
        if signal == Signal::INT {
            run.interrupt(signal, "SIGINT", &before);
        } else {
            run.murder(&before);
        }
    }
}

/// A run whose command has started another program; `None` where the machine stands still too often for one.
fn run_with_command() -> Option<LiveRun> {
    let scenarios = Bench::new();
    let scenario = scenarios.write("command.toml", WITH_COMMAND);
    let mut run = LiveRun::start(&scenario.display().to_string(), &[]);
    let has_both = run.reaches("both programs", |run| {
        let marked = marked_processes(&run.mark);
        marked.iter().filter(|(_, name)| name == "sleep").count() == 2
    });
    has_both.then_some(run)
}

#[test]
fn an_interrupted_run_takes_its_commands_along() {
    let Some(_alone) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let before = Machine::now();
    if let Some(run) = run_with_command() {
        run.interrupt(Signal::INT, "SIGINT", &before);
    }
}

#[test]
fn a_killed_run_takes_its_commands_along() {
    let Some(_alone) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let before = Machine::now();
    if let Some(run) = run_with_command() {
        run.murder(&before);
    }
}

/// Whatever it is stopped in the middle of: there are whole files, and nothing else.
#[test]
fn stopped_while_it_writes() {
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let bench = Bench::new();
        let mut command = bench.command();
        command.args([
            "run",
            "--on",
            "twin",
            "--quiet",
            &shipped("soft-modem.toml"),
        ]);
        let mut child = command.spawn().expect("laxity starts");
        // The first sight of anything, by whatever name, is the begin of the writing; it may be over before we look.
        let mut ended = false;
        while !ended && bench.files().is_empty() {
            std::thread::sleep(Duration::from_micros(200));
            ended = child.try_wait().expect("it is our child").is_some();
        }
        if !ended {
            kill_process(Pid::from_child(&child), signal).expect("it is not waited for");
        }
        child.wait().expect("it is our child");
        for name in bench.files() {
            let whole = match name.as_str() {
                "laxity-report.html" => bench.read(&name).trim_ascii_end().ends_with(b"</html>"),
                "laxity-trace.pftrace" => true,
                _ => false,
            };
            assert!(whole, "{signal:?} left {name}");
        }
    }
}

/// The tests above would see what they look for.
#[test]
fn a_mark_is_inherited_and_a_change_is_seen() {
    let mark = (
        "LAXITY_TEST_RUN".to_owned(),
        format!("{}-own", std::process::id()),
    );
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "sleep 1000 & exec sleep 1000"]);
    shell.env(&mark.0, &mark.1);
    let mut child = shell.spawn().expect("a shell");
    let sleeping = || {
        let marked = marked_processes(&mark);
        marked.into_iter().filter(|(_, name)| name == "sleep")
    };
    let both = comes_true(CLEARED_UP, || sleeping().count() == 2);
    let before = Machine::now();
    let unchanged = before.changes();
    let niced = std::process::Command::new("renice")
        .args(["-n", "5", "-p", &child.id().to_string()])
        .output();
    let changed = before.changes();
    for (process, _) in sleeping() {
        let process = Pid::from_raw(process).expect("a process has a number");
        kill_process(process, Signal::KILL).expect("it is ours");
    }
    child.wait().expect("it is our child");
    assert!(both, "not both were seen");
    assert!(niced.is_ok_and(|output| output.status.success()));
    let named = format!("({}, ", child.id());
    let about = |changes: &[String]| changes.iter().any(|change| change.contains(&named));
    assert!(!about(&unchanged) && about(&changed), "{changed:?}");
    assert!(comes_true(CLEARED_UP, || sleeping().count() == 0));
}
