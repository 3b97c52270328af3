//! `laxity exec` of programs that run already: they are held, and let go as they were. Needs the rights to schedule.

mod common;

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

use common::{Bench, comes_true, eventually, json, said};
use laxity_linux::doctor::rights::{self, LiveTest, Right};
use laxity_linux::os::cpuset::CpuSet;
use laxity_linux::os::proc::stat_of;
use laxity_linux::os::sched::{self, Policy, Tid};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};

fn live() -> Option<LiveTest> {
    rights::require(&[Right::RealTime, Right::Deadline, Right::Processors(2)])
}

/// A signal that nobody ignores, as a shell's background jobs do SIGINT.
fn end(child: &Child) {
    let pid = Pid::from_raw(child.id().cast_signed()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
}

/// Spins, and tells the thread's number.
fn spin(number: &AtomicI32, done: &AtomicBool) {
    number.store(Tid::current().0, Ordering::SeqCst);
    while !done.load(Ordering::SeqCst) {
        std::hint::spin_loop();
    }
}

/// Lets spinning threads end with this, also where the test fails: whoever waits for them would wait for ever.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_running_program_is_adopted_thread_by_name_and_let_go_as_it_was() {
    let Some(_live) = live() else { return };
    let bench = Bench::new();
    let numbers = [AtomicI32::new(0), AtomicI32::new(0)];
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let spinning = Done(&done);
        for (name, number) in ["worker", "other"].into_iter().zip(&numbers) {
            let builder = thread::Builder::new().name(name.to_owned());
            builder.spawn_scoped(scope, || spin(number, &done)).unwrap();
        }
        eventually("both spin", || {
            numbers.iter().all(|n| n.load(Ordering::SeqCst) != 0)
        });
        let [worker, other] = [0, 1].map(|n| Tid(numbers[n].load(Ordering::SeqCst)));
        let state = |tid| (sched::policy(tid).unwrap(), sched::affinity(tid).unwrap());
        let before = state(worker);
        let mut command = bench.command();
        let own = std::process::id().to_string();
        command.args([
            "exec",
            "--reserve",
            "2ms/8ms",
            "--processor",
            "0",
            "--pid",
            &own,
        ]);
        command.args(["--threads", "worker", "--json=r.json"]);
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        // Whoever looks on the processor of the slots runs between them, and never sees one.
        sched::set_affinity(Tid::current(), &CpuSet::single(1)).unwrap();
        let has_slots = || state(worker) == (Policy::Fifo(80), CpuSet::single(0));
        if !comes_true(Duration::from_secs(20), has_slots) {
            end(&child);
            panic!("no slots: {}", said(&child.wait_with_output().unwrap()));
        }
        assert_eq!(state(other), before, "not meant");
        thread::sleep(Duration::from_millis(500));
        end(&child);
        let output = child.wait_with_output().unwrap();
        let after = state(worker);
        drop(spinning);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        assert_eq!(after, before, "as it was");
        let periods = json(&bench, "r.json")["received"]["periods"]
            .as_u64()
            .unwrap();
        assert!(periods > 30, "{}", said(&output));
    });
}

/// Nothing is asked of the kernel for them, so no right is needed to see it.
#[test]
fn who_all_depend_on_is_not_held() {
    let bench = Bench::new();
    let mut all = vec![("--pid", 1, "the first process")];
    // In a PID namespace of its own there is none to be seen.
    let kernels = fs::read_to_string("/proc/2/comm").is_ok_and(|name| name == "kthreadd\n");
    if kernels {
        let of_kernel = "a thread of the kernel";
        all.extend([("--pid", 2, of_kernel), ("--tid", 2, of_kernel)]);
    }
    for (option, number, whose) in all {
        for enforcer in ["slots", "deadline"] {
            let number = number.to_string();
            let options = ["exec", "--reserve", "1ms/8ms", "--enforcer", enforcer];
            let output = bench.run(&[&options[..], &[option, &number]].concat());
            let told = said(&output);
            assert_eq!(output.status.code(), Some(125), "{told}");
            let all = [whose, "nothing was changed"];
            assert!(all.iter().all(|part| told.contains(part)), "{told}");
        }
    }
}

/// Its number is there until its parent has asked how it ended.
#[test]
fn who_has_ended_is_not_held() {
    let bench = Bench::new();
    let mut program = Command::new("true").spawn().unwrap();
    let number = program.id();
    let state = || stat_of::<char>(Tid(number.cast_signed()), 3);
    eventually("it has ended", || state() == Ok('Z'));
    for option in ["--pid", "--tid"] {
        for enforcer in ["slots", "deadline"] {
            let options = ["exec", "--reserve=2ms/8ms", "--enforcer", enforcer];
            let output = bench.run(&[&options[..], &[option, &number.to_string()]].concat());
            let told = said(&output);
            assert_eq!(output.status.code(), Some(125), "{told}");
            assert!(told.contains("no such program: it has ended"), "{told}");
        }
    }
    program.wait().unwrap();
}

#[test]
fn a_running_program_without_a_thread_of_each_name_is_not_held() {
    let Some(_live) = live() else { return };
    let mut program = Command::new("sleep").arg("1000").spawn().unwrap();
    let process = program.id().to_string();
    let outputs = ["slots", "deadline"].map(|enforcer| {
        let (enforcer, process) = (format!("--enforcer={enforcer}"), &*process);
        let options = ["exec", "--reserve=2ms/8ms", "--threads=sleep,mixer"];
        Bench::new().run(&[&options[..], &[&enforcer, "--pid", process]].concat())
    });
    let policy = sched::policy(Tid(program.id().cast_signed()));
    program.kill().unwrap();
    program.wait().unwrap();
    for output in outputs {
        let told = said(&output);
        assert_eq!(output.status.code(), Some(125), "{told}");
        assert!(
            told.contains("no thread named \"mixer\": there is \"sleep\""),
            "{told}"
        );
    }
    assert!(policy.is_ok_and(|policy| !policy.is_real_time()));
}

/// Audio servers are limited so, and would be ended in their slots.
#[test]
fn who_is_limited_in_real_time_has_no_slots() {
    let Some(_live) = live() else { return };
    let bench = Bench::new();
    let mut program = Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = Pid::from_child(&program);
    let limit = Rlimit {
        current: Some(20_000),
        maximum: None,
    };
    prlimit(Some(pid), Resource::Rttime, limit).unwrap();
    let number = program.id().to_string();
    let output = bench.run(&["exec", "--reserve", "2ms/8ms", "--pid", &number]);
    let told = said(&output);
    let policy = sched::policy(Tid(program.id().cast_signed()));
    program.kill().unwrap();
    program.wait().unwrap();
    assert_eq!(output.status.code(), Some(125), "{told}");
    let remedy = format!("prlimit --pid {number} --rttime=unlimited");
    assert!(told.contains("SIGXCPU") && told.contains(&remedy), "{told}");
    assert_eq!(policy, Ok(Policy::Other { nice: 0 }));
}

/// It has its slots' processor from who started it, and no slots: there it would compete with them, and with all that was put out of their way.
#[test]
fn who_is_started_by_a_holder_and_not_meant_may_run_where_it_might() {
    let Some(_live) = live() else { return };
    let bench = Bench::new();
    let numbers = [AtomicI32::new(0), AtomicI32::new(0)];
    let (held, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let state = |tid| (sched::policy(tid).unwrap(), sched::affinity(tid).unwrap());
    thread::scope(|scope| {
        let spinning = [Done(&held), Done(&done)];
        let worker = thread::Builder::new().name("worker".to_owned());
        let start = || {
            spin(&numbers[0], &held);
            let late = thread::Builder::new().name("late".to_owned());
            late.spawn_scoped(scope, || spin(&numbers[1], &done))
                .unwrap();
            spin(&numbers[0], &done);
        };
        worker.spawn_scoped(scope, start).unwrap();
        let number = |n: usize| Tid(numbers[n].load(Ordering::SeqCst));
        eventually("it spins", || number(0) != Tid(0));
        let before = state(number(0));
        let mut command = bench.command();
        let own = std::process::id().to_string();
        command.args(["exec", "--reserve", "2ms/8ms", "--processor", "0"]);
        command.args(["--pid", &own, "--threads", "worker", "--follow=none"]);
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        sched::set_affinity(Tid::current(), &CpuSet::single(1)).unwrap();
        let slots = (Policy::Fifo(80), CpuSet::single(0));
        let long = Duration::from_secs(20);
        let has_slots = comes_true(long, || state(number(0)) == slots);
        held.store(true, Ordering::SeqCst);
        // What is started in a slot is an ordinary thread.
        let is_free = || number(1) != Tid(0) && state(number(1)).1 == before.1;
        let is_free = comes_true(long, is_free);
        let late = state(number(1));
        end(&child);
        let output = child.wait_with_output().unwrap();
        drop(spinning);
        assert!(has_slots, "no slots: {}", said(&output));
        assert!(is_free, "{late:?} instead of {before:?}: {}", said(&output));
    });
}

/// Prints where what it started may run: on the processors that are named, or nowhere but in its slots.
const STARTS_ONE: &str = "may() { grep -q \"^Cpus_allowed_list:.$1\\$\" /proc/$2/status; }
for i in $(seq 500); do may 0 $$ && break; sleep 0.01; done
sleep 100 & c=$!
for i in $(seq 300); do may $1 $c && { kill $c; echo free; exit; }; sleep 0.01; done
may 0 $c && echo slots; kill $c";

/// The same of a process.
#[test]
fn what_the_program_starts_and_is_not_followed_may_run_where_the_program_might() {
    let Some(_live) = live() else { return };
    let bench = Bench::new();
    let own = sched::affinity(Tid::current()).unwrap().to_string();
    let cases = [
        ("none", "free\n"),
        ("threads", "free\n"),
        ("children", "slots\n"),
    ];
    for (follow, expected) in cases {
        let mut program = Command::new("sh");
        program.args(["-c", STARTS_ONE, "sh", &own]);
        let program = program.stdout(Stdio::piped()).spawn().unwrap();
        let number = program.id().to_string();
        let follow = format!("--follow={follow}");
        let options = ["exec", "--reserve", "2ms/8ms", "--processor", "0", &follow];
        let held = bench.run(&[&options[..], &["--pid", &number]].concat());
        let told = program.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        assert_eq!(told, expected, "{follow}: {}", said(&held));
    }
}

/// Has laxity hold for the shell that started it, and prints what policies laxity's own threads have meanwhile.
const ADOPTED_BY_ITS_CHILD: &str = "laxity=$1; shift
$laxity exec --reserve 2ms/8ms --processor 0 --pid $$ --json=r.json & own=$!
for i in $(seq 500); do chrt -a -p $own | grep -q 'priority: 98' && break; sleep 0.01; done
i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done
chrt -a -p $own | grep priority: ; kill -TERM $own; wait $own";

#[test]
fn who_gives_slots_is_no_holder_of_them_where_the_program_started_it() {
    let Some(_live) = live() else { return };
    let bench = Bench::new();
    let mut shell = Command::new("sh");
    shell.current_dir(bench.path("."));
    shell.args(["-c", ADOPTED_BY_ITS_CHILD, "sh"]);
    shell.arg(env!("CARGO_BIN_EXE_laxity"));
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let priorities = String::from_utf8_lossy(&output.stdout).into_owned();
    for rank in ["98", "99"] {
        let found = priorities.lines().any(|line| line.ends_with(rank));
        assert!(
            found,
            "dispatcher and witness are what they were: {priorities}"
        );
    }
    assert!(!priorities.contains("priority: 80"), "{priorities}");
    let received = json(&bench, "r.json");
    let figure = |name: &str| received["received"][name].as_u64().unwrap();
    assert!(figure("periods_kept") > 30, "{received}");
}

#[test]
fn what_a_killed_laxity_had_adopted_is_as_it_was() {
    let Some(_live) = live() else { return };
    let bench = Bench::new();
    let mut adopted = Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .spawn()
        .unwrap();
    let tid = Tid(adopted.id().cast_signed());
    let state = || (sched::policy(tid).unwrap(), sched::affinity(tid).unwrap());
    let before = state();
    for enforcer in ["slots", "deadline"] {
        let mut command = bench.command();
        command.args([
            "exec",
            "--reserve",
            "2ms/8ms",
            "--enforcer",
            enforcer,
            "--pid",
        ]);
        command.arg(adopted.id().to_string());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        eventually("it is held", || state().0.is_real_time());
        child.kill().unwrap();
        child.wait().unwrap();
        eventually("it is as it was", || state() == before);
    }
    adopted.kill().unwrap();
    adopted.wait().unwrap();
}

/// Holds a process by `deadline` until it is told to end.
fn hold(bench: &Bench, process: u32) -> Child {
    let mut command = bench.command();
    command.args(["exec", "--reserve", "2ms/8ms", "--enforcer", "deadline"]);
    command.args(["--pid", &process.to_string()]);
    command.stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn what_one_laxity_holds_no_other_takes_for_the_programs_own() {
    let Some(_live) = live() else { return };
    let bench = Bench::new();
    let mut adopted = Command::new("sleep").arg("1000").spawn().unwrap();
    let tid = Tid(adopted.id().cast_signed());
    let state = || (sched::policy(tid).unwrap(), sched::affinity(tid).unwrap());
    let before = state();
    let mut first = hold(&bench, adopted.id());
    eventually("it is held", || state().0.is_real_time());
    for enforcer in ["slots", "deadline"] {
        let mut second = bench.command();
        let pid = adopted.id().to_string();
        second.args(["exec", "--reserve", "1ms/8ms", "--enforcer", enforcer]);
        let second = second.args(["--pid", &pid]).output().unwrap();
        assert_eq!(second.status.code(), Some(125), "{}", said(&second));
        let told = format!(
            "thread {tid} is held already, by process {} \"laxity\"",
            first.id()
        );
        assert!(said(&second).contains(&told), "{}", said(&second));
    }
    // Whoever comes just after one was killed waits until the program is as it was.
    first.kill().unwrap();
    let third = hold(&bench, adopted.id());
    first.wait().unwrap();
    eventually("it is held again", || is_claimed_by(third.id(), tid));
    end(&third);
    let third = third.wait_with_output().unwrap();
    let after = state();
    adopted.kill().unwrap();
    adopted.wait().unwrap();
    assert_eq!(third.status.code(), Some(0), "{}", said(&third));
    assert_eq!(after, before, "as it was before the first");
}

#[test]
fn who_sleeps_or_is_stopped_all_the_time_gives_nothing_to_judge() {
    let Some(_live) = live() else { return };
    for enforcer in ["slots", "deadline"] {
        for figure in ["periods_asleep", "periods_stopped"] {
            let bench = Bench::new();
            let mut adopted = Command::new("sleep").arg("1000").spawn().unwrap();
            let tid = Tid(adopted.id().cast_signed());
            // It asks for something before it sleeps.
            thread::sleep(Duration::from_millis(200));
            if figure == "periods_stopped" {
                kill_process(Pid::from_child(&adopted), Signal::STOP).unwrap();
            }
            let mut command = bench.command();
            command.args(["exec", "--reserve", "2ms/8ms", "--judge", "--json=r.json"]);
            command.args(["--enforcer", enforcer, "--pid", &tid.to_string()]);
            let child = command.stderr(Stdio::piped()).spawn().unwrap();
            let held = || sched::policy(tid).unwrap().is_real_time();
            let was_held = comes_true(Duration::from_secs(20), held);
            thread::sleep(Duration::from_millis(500));
            end(&child);
            let output = child.wait_with_output().unwrap();
            adopted.kill().unwrap();
            adopted.wait().unwrap();
            assert!(was_held, "{}", said(&output));
            assert_eq!(output.status.code(), Some(5), "{}", said(&output));
            let received = json(&bench, "r.json");
            let seen = |name: &str| received["received"][name].as_u64().unwrap();
            assert!(seen(figure) > 0, "{}", said(&output));
            assert_eq!(seen("periods"), seen("periods_asleep"));
            if figure == "periods_stopped" {
                assert_eq!(seen("periods"), 0, "{}", said(&output));
            }
        }
    }
}

/// Its parent alone is told.
#[test]
fn how_an_adopted_program_ended_is_not_made_up() {
    let Some(_live) = live() else { return };
    for (how, judge) in [
        ("exit 7", None),
        ("kill -KILL $$", None),
        ("exit 7", Some("--judge")),
    ] {
        let bench = Bench::new();
        let mut adopted = Command::new("sh");
        let adopted = adopted.args(["-c", &format!("read nothing; {how}")]);
        let mut adopted = adopted.stdin(Stdio::piped()).spawn().unwrap();
        let tid = Tid(adopted.id().cast_signed());
        let mut command = bench.command();
        command.args(["exec", "--reserve", "2ms/8ms", "--enforcer", "deadline"]);
        command.args(["--status-json=s.json", "--pid", &tid.to_string()]);
        let child = command.args(judge).stderr(Stdio::piped()).spawn().unwrap();
        let held = || sched::policy(tid).unwrap().is_real_time();
        let was_held = comes_true(Duration::from_secs(20), held);
        // It ends when there is nothing to be read.
        drop(adopted.stdin.take());
        let output = child.wait_with_output().unwrap();
        adopted.wait().unwrap();
        assert!(was_held, "{}", said(&output));
        let status = json(&bench, "s.json");
        let message = "it has ended; how, its parent alone is told";
        assert_eq!(status["message"], message, "{status}");
        assert!(status["signal"].is_null(), "{status}");
        let code = output.status.code().unwrap();
        if judge.is_some() {
            assert!([0, 2, 5].contains(&code), "{}", said(&output));
            assert_eq!(
                (&status["by"], &status["exit_code"]),
                (&"verdict".into(), &code.into())
            );
        } else {
            assert_eq!(code, 0, "{}", said(&output));
            assert_eq!(status["by"], "program", "{status}");
            assert!(status["exit_code"].is_null(), "{status}");
        }
    }
}

/// Its process goes on, and nothing holds that: nobody is to wait for it.
#[test]
fn an_adopted_thread_is_let_go_when_it_ends() {
    let Some(_live) = live() else { return };
    let bench = Bench::new();
    let (number, done) = (AtomicI32::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let spinning = Done(&done);
        scope.spawn(|| spin(&number, &done));
        eventually("it spins", || number.load(Ordering::SeqCst) != 0);
        let tid = Tid(number.load(Ordering::SeqCst));
        let mut command = bench.command();
        command.args(["exec", "--reserve", "2ms/8ms", "--enforcer", "deadline"]);
        command.args(["--status-json=s.json", "--tid", &tid.to_string()]);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let held = || sched::policy(tid).unwrap().is_real_time();
        let was_held = comes_true(Duration::from_secs(20), held);
        drop(spinning);
        let has_ended = || child.try_wait().unwrap().is_some();
        let ended = comes_true(Duration::from_secs(20), has_ended);
        if !ended {
            end(&child);
        }
        let output = child.wait_with_output().unwrap();
        assert!(was_held && ended, "{}", said(&output));
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        assert_eq!(json(&bench, "s.json")["message"], "the program runs on");
    });
}

/// Whether this process has a lock on the thread's directory.
fn is_claimed_by(process: u32, thread: Tid) -> bool {
    use std::os::unix::fs::MetadataExt;
    let inode = fs::metadata(format!("/proc/{thread}")).unwrap().ino();
    let locks = fs::read_to_string("/proc/locks").unwrap();
    let mut lines = locks.lines();
    lines.any(|line| line.contains(&format!(" {process} ")) && line.contains(&format!(":{inode} ")))
}
