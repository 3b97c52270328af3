//! `laxity exec` beside others who hinder it, and where it has little room: its grade tells. Needs the rights to schedule.

mod common;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use common::{Bench, comes_true, eventually, is_enforced, json, said};
use laxity_linux::doctor::rights::{self, LiveTest, Right};
use laxity_linux::os::cpuset::CpuSet;
use laxity_linux::os::proc::stat_of;
use laxity_linux::os::sched::{self, Policy, Restore, Tid};
use laxity_linux::os::schedstat::counted;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};

fn live(processors: usize) -> Option<LiveTest> {
    rights::require(&[Right::RealTime, Right::Processors(processors)])
}

/// A program that tells its number, and spins until it is told to end.
const SPINNER: &str =
    "echo $$ > started.new; mv started.new started; while [ ! -e stop ]; do :; done";

/// The processors that this process may use, in order.
fn processors() -> Vec<usize> {
    sched::affinity(Tid::current()).unwrap().iter().collect()
}

/// `exec` of the spinner with slots on a processor.
fn start(bench: &Bench, cpu: usize) -> Child {
    start_with(bench, cpu, "2ms/8ms")
}

fn start_with(bench: &Bench, cpu: usize, reservation: &str) -> Child {
    let mut command = bench.command();
    let cpu = cpu.to_string();
    command
        .args([
            "exec",
            "--reserve",
            reservation,
            "--judge",
            "--json=r.json",
            "-a",
            &cpu,
        ])
        .args(["--", "sh", "-c", SPINNER])
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// The spinner's number, once it runs.
fn program(bench: &Bench) -> Tid {
    number(bench, "started")
}

/// Lets it run for some periods.
fn wait(millis: u64) {
    thread::sleep(Duration::from_millis(millis));
}

/// Tells it to end; what was told of it.
fn end(bench: &Bench, child: Child) -> (Output, serde_json::Value) {
    bench.write("stop", "");
    let output = child.wait_with_output().unwrap();
    let received = json(bench, "r.json");
    (output, received)
}

#[test]
fn on_one_processor_nobody_of_laxity_is_in_its_own_way() {
    let Some(_live) = live(1) else { return };
    let bench = Bench::new();
    let own = Tid::current();
    let cpu = processors()[0];
    let child = {
        let _restore = Restore::of(own).unwrap();
        sched::set_affinity(own, &CpuSet::single(cpu)).unwrap();
        start(&bench, cpu)
    };
    program(&bench);
    wait(300);
    let (output, received) = end(&bench, child);
    assert!(is_enforced(&received), "{}", said(&output));
    let periods = received["received"]["periods"].as_u64().unwrap();
    assert!(periods > 10, "{received}");
}

/// What stood still then was laxity, and not the machine, which would excuse the periods.
#[test]
fn who_stops_laxity_itself_leaves_the_verdict_open() {
    let Some(_live) = live(2) else { return };
    let bench = Bench::new();
    let child = start(&bench, processors()[0]);
    program(&bench);
    for _ in 0..3 {
        wait(40);
        send(Signal::STOP, child.id());
        wait(40);
        send(Signal::CONT, child.id());
    }
    wait(100);
    let (output, received) = end(&bench, child);
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    assert_eq!(received["grade"], "uncertain", "{}", said(&output));
    let reason = received["grade_reason"].as_str().unwrap();
    assert!(
        reason.contains("somebody stopped laxity itself"),
        "{reason}"
    );
    // None of them passes for the machine's.
    let received = &received["received"];
    let counted = |name: &str| received[name].as_u64().unwrap();
    assert_eq!(counted("stops"), 3, "{}", said(&output));
    assert!(counted("stops_longest_ns") >= 30_000_000);
    assert!(counted("halts_total_ns") < counted("stops_total_ns"));
    assert!(counted("periods_disturbed_by_stops") >= 3);
    assert!(said(&output).contains("while laxity itself was stopped"));
}

/// Between the ranks of slots and dispatcher it delays nobody who would tell, and is there for less than lies between two looks: it is seen, or what it took is.
#[test]
fn who_held_the_processor_and_has_gone_leaves_nothing_enforced() {
    let Some(_live) = live(2) else { return };
    let bench = Bench::new();
    let cpu = processors()[0];
    let child = start(&bench, cpu);
    program(&bench);
    wait(230);
    let stranger = thread::spawn(move || {
        let own = Tid::current();
        sched::set_affinity(own, &CpuSet::single(cpu)).unwrap();
        sched::set_policy(own, Policy::Fifo(90)).unwrap();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(60) {}
    });
    stranger.join().unwrap();
    wait(230);
    let (output, received) = end(&bench, child);
    let line = said(&output);
    assert_ne!(received["grade"], "enforced", "{line}");
    assert_ne!(output.status.code(), Some(0), "{line}");
    let reason = received["grade_reason"].as_str().unwrap();
    let (seen, inferred) = ("ranked above the slot", "kept from its processor for");
    assert!(reason.contains(seen) || reason.contains(inferred), "{line}");
}

#[test]
fn a_program_that_is_moved_from_its_slots_is_named() {
    let Some(_live) = live(2) else { return };
    let bench = Bench::new();
    let all = processors();
    let child = start(&bench, all[0]);
    let thread = program(&bench);
    sched::set_affinity(thread, &CpuSet::single(all[1])).unwrap();
    wait(100);
    let (output, received) = end(&bench, child);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let reason = received["grade_reason"].as_str().unwrap();
    let told = format!(
        "\"sh\" of the program was taken from its slots: it might run on processors {} instead of {}",
        all[1], all[0]
    );
    assert!(
        reason.starts_with(&format!("thread {thread} ")) && reason.contains(&told),
        "{reason}"
    );
}

/// The dispatcher, which it outranks, finds it at the end of no slot.
#[test]
fn a_program_that_gives_itself_a_rank_above_the_dispatcher_is_named() {
    let Some(_live) = live(2) else { return };
    let bench = Bench::new();
    let child = start(&bench, processors()[0]);
    let thread = program(&bench);
    wait(50);
    sched::set_policy(thread, Policy::Fifo(99)).unwrap();
    wait(100);
    let (output, received) = end(&bench, child);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert_eq!(received["grade"], "unenforced", "{}", said(&output));
    let reason = received["grade_reason"].as_str().unwrap();
    let told = "\"sh\" of the program was taken out of its reservation: it had SCHED_FIFO priority 99 instead of SCHED_FIFO priority 80";
    assert!(
        reason.starts_with(&format!("thread {thread} ")) && reason.contains(told),
        "{reason}"
    );
}

#[test]
fn while_nobody_can_look_nothing_is_enforced_and_nothing_kept() {
    let Some(_live) = live(2) else { return };
    let bench = Bench::new();
    let all = processors();
    // Who looks is on the last of the others.
    let (cpu, others) = (all[0], all[all.len() - 1]);
    let child = start(&bench, cpu);
    program(&bench);
    // Beside nobody the spinner would have its processor all the time, whoever looks.
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let (tell, told) = mpsc::channel();
    let rival = thread::spawn(move || {
        sched::set_affinity(Tid::current(), &CpuSet::single(cpu)).unwrap();
        tell.send(()).unwrap();
        while !over.load(Ordering::Relaxed) {}
    });
    // It is there, and does not begin on the processor that is taken from all next.
    told.recv().unwrap();
    let starving = thread::spawn(move || {
        let own = Tid::current();
        sched::set_affinity(own, &CpuSet::single(others)).unwrap();
        sched::set_policy(own, Policy::Fifo(50)).unwrap();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(600) {}
    });
    starving.join().unwrap();
    wait(100);
    let (output, received) = end(&bench, child);
    is_over.store(true, Ordering::Relaxed);
    rival.join().unwrap();
    let line = said(&output);
    assert_eq!(output.status.code(), Some(2), "{line}");
    let reason = received["grade_reason"].as_str().unwrap();
    assert!(
        reason.contains("cannot see who outranks the slot: nobody looked for"),
        "{reason}"
    );
    // 600 ms of a spinner that waits in each period: what it had in which, nobody knows.
    let unseen = received["received"]["periods_unseen"].as_u64().unwrap();
    assert!(unseen > 40, "{unseen}: {line}");
}

/// The thread of laxity that has this name.
fn thread_of(child: &Child, name: &str) -> Tid {
    let all = laxity_linux::os::proc::threads_of(child.id()).unwrap();
    let is_it = |thread: &Tid| {
        let found = fs::read_to_string(format!("/proc/{thread}/comm"));
        found.is_ok_and(|found| found.trim() == name)
    };
    all.into_iter().find(is_it).expect("it is there")
}

#[test]
fn who_looks_and_is_demoted_says_so() {
    let Some(_live) = live(2) else { return };
    let bench = Bench::new();
    let child = start(&bench, processors()[0]);
    program(&bench);
    let watcher = thread_of(&child, "laxity-watcher");
    sched::set_policy(watcher, Policy::Batch { nice: 0 }).unwrap();
    wait(300);
    let (output, received) = end(&bench, child);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let reason = received["grade_reason"].as_str().unwrap();
    let told = "had SCHED_BATCH nice 0 instead of SCHED_FIFO priority 1";
    assert!(
        reason.starts_with("the lookout of processor ") && reason.contains(told),
        "{reason}"
    );
}

/// No look has seen it before it had slots; without them it would go on.
#[test]
fn a_program_that_its_limit_ends_in_its_slots_is_not_told_as_one_that_ended() {
    let Some(_live) = live(2) else { return };
    let bench = Bench::new();
    // More than half of the time, so that the kernel, which counts at its ticks, finds it there.
    let child = start_with(&bench, processors()[0], "6ms/10ms");
    let program = program(&bench);
    let limit = Rlimit {
        current: Some(50_000),
        maximum: None,
    };
    prlimit(Pid::from_raw(program.0), Resource::Rttime, limit).unwrap();
    let output = child.wait_with_output().unwrap();
    let received = json(&bench, "r.json");
    let line = said(&output);
    assert_eq!(
        output.status.signal(),
        Some(Signal::XCPU.as_raw()),
        "{line}"
    );
    assert_eq!(received["grade"], "uncertain", "{line}");
    assert_ne!(received["verdict"], "met", "{line}");
    let reason = received["grade_reason"].as_str().unwrap();
    let told = format!("process {program} ");
    assert!(
        reason.contains("RLIMIT_RTTIME") && reason.contains(&told),
        "{reason}"
    );
    assert!(line.contains(reason), "{line}");
}

/// It has its rank again before anybody looks at it from outside.
#[test]
fn a_dispatcher_that_is_demoted_for_a_moment_says_so() {
    let Some(_live) = live(2) else { return };
    let bench = Bench::new();
    let cpu = processors()[0];
    let child = start(&bench, cpu);
    let program = program(&bench);
    // In its slot the program would outrank it for ever.
    send(Signal::STOP, program.0.cast_unsigned());
    let dispatcher = thread_of(&child, &format!("dispatcher/{cpu}"));
    let account = format!("/proc/{dispatcher}/schedstat");
    let turns = || {
        counted(&fs::read_to_string(&account).unwrap())
            .unwrap()
            .turns
    };
    sched::set_policy(dispatcher, Policy::Batch { nice: 0 }).unwrap();
    let before = turns();
    let has_run = comes_true(Duration::from_secs(20), || turns() > before + 2);
    sched::set_policy(dispatcher, Policy::Fifo(98)).unwrap();
    send(Signal::CONT, program.0.cast_unsigned());
    wait(300);
    let (output, received) = end(&bench, child);
    assert!(has_run, "{}", said(&output));
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let reason = received["grade_reason"].as_str().unwrap();
    let told = format!(
        "the dispatcher of processor {cpu} had SCHED_BATCH nice 0 instead of SCHED_FIFO priority 98"
    );
    assert!(reason.contains(&told), "{reason}");
}

/// Works through children that end before anybody looks, one after the other, until it is told to end; each is so short that few are seen on a slow machine too.
const THROUGH_CHILDREN: &str = "echo $$ > started.new; mv started.new started
while [ ! -e stop ]; do sh -c 'i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done'; done";

/// `exec` of that, with slots on the first processor and these options.
fn through_children(bench: &Bench, options: &[&str]) -> Child {
    let mut command = bench.command();
    let cpu = processors()[0].to_string();
    command
        .args(["exec", "--judge", "--json=r.json", "-a", &cpu])
        .args(options)
        .args(["--", "sh", "-c", THROUGH_CHILDREN])
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn what_children_had_that_nobody_saw_is_told_and_leaves_the_verdict_open() {
    let Some(_live) = live(2) else { return };
    let bench = Bench::new();
    // Beside somebody each child takes many periods.
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let rival = thread::spawn(move || {
        let first = CpuSet::single(processors()[0]);
        sched::set_affinity(Tid::current(), &first).unwrap();
        while !over.load(Ordering::Relaxed) {}
    });
    let child = through_children(&bench, &["--reserve", "2ms/8ms"]);
    program(&bench);
    wait(1_500);
    let (output, received) = end(&bench, child);
    is_over.store(true, Ordering::Relaxed);
    rival.join().unwrap();
    let line = said(&output);
    // Where the machine is so slow that a child is seen, it had little: never is it met.
    assert!(matches!(output.status.code(), Some(2 | 5)), "{line}");
    let figure = |name: &str| received[name].as_u64().unwrap_or_else(|| panic!("{line}"));
    let (used, unseen) = (figure("service_used_ns"), figure("service_unseen_ns"));
    let seen = received["received"]["service_ns"].as_u64().unwrap();
    assert_eq!(used, seen + unseen, "{line}");
    assert!(line.contains("that nobody saw) in "), "{line}");
    assert!(line.contains("\n  nobody saw "), "{line}");
}

#[test]
fn what_is_stopped_with_the_program_is_no_stranger_and_who_has_its_rank_besides_is() {
    let Some(_live) = live(2) else { return };
    if let Some(why) = rights::missing(Right::Freezer) {
        return rights::lacks(&why);
    }
    let bench = Bench::new();
    for (follow, beside) in [("children", false), ("threads", false), ("children", true)] {
        let options = ["--reserve", "6ms/8ms", "--confine", "freeze"];
        let follow = format!("--follow={follow}");
        let child = through_children(&bench, &[&options[..], &[&follow]].concat());
        program(&bench);
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        // It has the rank that the program and its children have in a slot, and works now and again.
        let stranger = beside.then(|| {
            thread::spawn(move || {
                let own = Tid::current();
                sched::set_affinity(own, &CpuSet::single(processors()[0])).unwrap();
                sched::set_policy(own, Policy::Fifo(80)).unwrap();
                while !over.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    while begun.elapsed() < Duration::from_millis(1) {}
                    wait(20);
                }
                own
            })
        });
        wait(700);
        is_over.store(true, Ordering::Relaxed);
        let (output, received) = end(&bench, child);
        let named = stranger.map(|stranger| {
            let thread = stranger.join().unwrap();
            format!("thread {thread} ")
        });
        let told = received["grade_reason"].as_str().unwrap_or_default();
        let ranked = told.matches("(SCHED_FIFO priority 80)").count();
        match named {
            None => assert_eq!(ranked, 0, "{}", said(&output)),
            Some(named) => assert!(told.contains(&named) && ranked == 1, "{}", said(&output)),
        }
        for file in ["started", "stop"] {
            fs::remove_file(bench.path(file)).unwrap();
        }
    }
}

/// Starts one that stays, with a session of its own and without a parent, and tells its number and its own; and works.
const STAYING: &str =
    "(setsid sh -c 'echo $$ > staying.new; mv staying.new staying; exec sleep 1000' &)
while [ ! -e staying ]; do sleep 0.01; done; echo $$ > started.new; mv started.new started
while [ ! -e stop ]; do sleep 0.01; done";

/// The number in a file that was moved to its place.
fn number(bench: &Bench, file: &str) -> Tid {
    eventually(file, || bench.files().contains(&file.to_owned()));
    let number = String::from_utf8(bench.read(file)).unwrap();
    Tid(number.trim().parse().unwrap())
}

fn send(signal: Signal, process: u32) {
    let process = Pid::from_raw(process.cast_signed()).unwrap();
    kill_process(process, signal).unwrap();
}

/// Who is stopped with the program has its rank from it, from the moment on at which it is started; and not for long where what the program starts is not followed.
#[test]
fn what_a_program_leaves_behind_has_no_rank_whoever_was_killed() {
    let Some(_live) = live(2) else { return };
    if let Some(why) = rights::missing(Right::Freezer) {
        return rights::lacks(&why);
    }
    let own = Tid::current();
    let state = |tid| (sched::policy(tid).unwrap(), sched::affinity(tid).unwrap());
    for follow in ["children", "none"] {
        // The keeper, and laxity itself.
        for kills in [[false, false], [true, false], [true, true]] {
            let bench = Bench::new();
            let mut command = bench.command();
            command.args(["exec", "--reserve", "2ms/8ms", "--confine=freeze"]);
            command.args(["--follow", follow, "--", "sh", "-c", STAYING]);
            let mut child = command.stderr(Stdio::null()).spawn().unwrap();
            let (program, staying) = (number(&bench, "started"), number(&bench, "staying"));
            // A look comes every 20 ms.
            wait(200);
            let had = sched::policy(staying).unwrap();
            let keeper = stat_of(program, 4).unwrap();
            if kills[1] {
                // Else it would put all in order, or its keeper end all, before the other is killed.
                send(Signal::STOP, child.id());
            }
            if kills[0] {
                send(Signal::KILL, keeper);
            }
            if kills[1] {
                child.kill().unwrap();
            }
            bench.write("stop", "");
            child.wait().unwrap();
            let is_as_before = || match kills[1] {
                // Where it might run the guardian is not told.
                true => state(staying).0 == state(own).0,
                false => state(staying) == state(own),
            };
            let restored = comes_true(Duration::from_secs(20), is_as_before);
            let left = state(staying);
            send(Signal::KILL, staying.0.cast_unsigned());
            let in_slots = match follow {
                "children" => Policy::Fifo(80),
                _ => state(own).0,
            };
            assert_eq!(had, in_slots, "{follow} {kills:?}");
            assert!(restored, "{follow} {kills:?}: {left:?}");
        }
    }
}
