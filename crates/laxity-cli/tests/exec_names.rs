//! `laxity exec --threads` of a program that laxity starts: its threads take their names later. Needs the rights to schedule.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use common::{Bench, is_enforced, json, said};
use laxity_linux::doctor::rights::{self, Right};
use laxity_linux::os::cpuset::CpuSet;
use laxity_linux::os::sched::{self, Tid};

/// It works under its shell's name, takes another, and works on.
const NAMED_LATER: &str = "work() { i=0; while [ $i -lt $1 ]; do i=$((i+1)); done; }
work 100000; sleep 0.3; echo audio > /proc/self/comm; work 300000";

#[test]
fn a_thread_that_takes_its_name_later_is_held_from_then_on() {
    let Some(_live) = rights::require(&[Right::RealTime, Right::Deadline]) else {
        return;
    };
    for enforcer in ["slots", "deadline"] {
        let bench = Bench::new();
        let enforced = format!("--enforcer={enforcer}");
        let options = ["exec", "--reserve=2ms/8ms", "--threads=gui,audio"];
        let rest = [&enforced, "--json=r.json", "--", "sh", "-c", NAMED_LATER];
        let output = bench.run(&[&options[..], &rest].concat());
        let told = said(&output);
        assert!(output.status.success(), "{enforcer}: {told}");
        let received = json(&bench, "r.json");
        let came_after = received["came_after_ns"].as_u64().expect(&told);
        assert!(came_after >= 300_000_000, "{told}");
        assert!(told.contains("; its thread came after "), "{told}");
        assert!(is_enforced(&received), "{told}");
        let figure = |name: &str| received["received"][name].as_u64().unwrap();
        let counted = ["periods", "periods_disturbed", "periods_unseen"].map(figure);
        let together = figure("periods_seen_as_one");
        let periods = counted.iter().sum::<u64>() * together;
        let took = received["took_ns"].as_u64().unwrap();
        // Of what was before it nothing is claimed; the first look may lie a stretch before it.
        assert!(counted[0] > 0, "{told}");
        assert!(
            periods * 8_000_000 <= took + 3 * together * 8_000_000,
            "{told}"
        );
    }
}

/// Before it executes, its only thread has the name of who starts it.
#[test]
fn the_name_of_the_program_is_that_which_it_has_when_it_executes() {
    let Some(_live) = rights::require(&[Right::RealTime, Right::Deadline]) else {
        return;
    };
    for enforcer in ["slots", "deadline"] {
        let bench = Bench::new();
        std::os::unix::fs::symlink("/bin/sh", bench.path("named")).unwrap();
        let enforcer = format!("--enforcer={enforcer}");
        let options = ["exec", "--reserve=2ms/8ms", "--threads=named", &enforcer];
        let program = ["--json=r.json", "--", "./named", "-c", NAMED_LATER];
        let output = bench.run(&[&options[..], &program].concat());
        assert!(output.status.success(), "{}", said(&output));
        let received = json(&bench, "r.json");
        let periods = received["received"]["periods"].as_u64();
        assert!(periods.is_some_and(|periods| periods > 0), "{received}");
    }
}

/// It starts one that takes a name, outranks it and works now and again; takes its own, and goes on for a while.
const BESIDE_ITS_ROGUE: &str =
    "sh -c 'sleep 0.1; printf rogue > /proc/$$/comm; chrt -f -p 90 $$; echo > up
while [ ! -e stop ]; do i=0; while [ $i -lt 300 ]; do i=$((i+1)); done; sleep 0.01; done' &
printf good > /proc/$$/comm; while [ ! -e up ]; do sleep 0.01; done; sleep 0.6; echo > stop; wait";

#[test]
fn what_the_program_starts_that_is_not_meant_and_outranks_it_is_named() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    for follow in ["--follow=children", "--follow=threads"] {
        let bench = Bench::new();
        let options = ["exec", "--reserve=2ms/8ms", "--threads=good", follow];
        let program = ["--judge", "--json=r.json", "--", "sh", "-c"];
        let output = bench.run(&[&options[..], &program, &[BESIDE_ITS_ROGUE]].concat());
        let told = said(&output);
        assert_ne!(output.status.code(), Some(0), "{follow}: {told}");
        let received = json(&bench, "r.json");
        assert_eq!(received["grade"], "unenforced", "{follow}: {told}");
        let reason = received["grade_reason"].as_str().unwrap();
        assert!(reason.contains("\"rogue\" of process"), "{reason}");
    }
}

/// Two spin: one elsewhere, as anybody may, and one that takes a name and has nothing beside anybody but its slots.
const BESIDE_A_BUSY_ONE: &str = "taskset -c $0 sh -c 'while :; do :; done' &
exec chrt --idle 0 sh -c 'printf good > /proc/$$/comm; while :; do :; done'";

/// Says so when it is dropped, however that comes.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn what_a_thread_has_that_is_not_meant_shortens_no_slots() {
    let Some(_live) = rights::require(&[Right::RealTime, Right::Processors(2)]) else {
        return;
    };
    let bench = Bench::new();
    let all = sched::affinity(Tid::current()).unwrap();
    let [first, last] = [all.iter().next(), all.iter().last()].map(Option::unwrap);
    let ends = AtomicBool::new(false);
    let output = thread::scope(|scope| {
        let _ends = Ends(&ends);
        scope.spawn(|| {
            sched::set_affinity(Tid::current(), &CpuSet::single(first)).unwrap();
            while !ends.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let (on, elsewhere) = (format!("--processor={first}"), last.to_string());
        let options = ["exec", "--reserve=4ms/10ms", "--threads=good", &on];
        let program = ["--json=r.json", "--", "timeout", "2", "sh", "-c"];
        let program = [&program[..], &[BESIDE_A_BUSY_ONE, &elsewhere]].concat();
        bench.run(&[&options[..], &program].concat())
    });
    let told = said(&output);
    let received = json(&bench, "r.json");
    let figure = |name: &str| received["received"][name].as_u64().expect(&told);
    let (periods, kept) = (figure("periods"), figure("periods_kept"));
    assert!(periods > 20 && kept * 10 >= periods * 9, "{told}");
}

#[test]
fn where_no_such_thread_came_that_is_said_and_nothing_is_met() {
    let Some(_live) = rights::require(&[Right::RealTime, Right::Deadline]) else {
        return;
    };
    for enforcer in ["slots", "deadline"] {
        let bench = Bench::new();
        let enforcer = format!("--enforcer={enforcer}");
        let options = [
            "exec",
            "--reserve=2ms/8ms",
            "--threads=audio,gui",
            &enforcer,
        ];
        let program = ["--judge", "--json=r.json", "--", "sh", "-c", "echo ran"];
        let output = bench.run(&[&options[..], &program].concat());
        let told = said(&output);
        assert_eq!(output.status.code(), Some(5), "{told}");
        assert_eq!(output.stdout, b"ran\n", "the program itself runs");
        let nobody = "no thread that was named `audio` or `gui` came";
        assert!(told.contains(nobody), "{told}");
        let received = json(&bench, "r.json");
        assert_eq!(received["verdict"], "inconclusive", "{received}");
        assert_eq!(received["received"], serde_json::Value::Null);
    }
}

#[test]
fn of_several_names_each_that_nobody_came_by_is_told() {
    let Some(_live) = rights::require(&[Right::RealTime, Right::Deadline]) else {
        return;
    };
    for enforcer in ["slots", "deadline"] {
        let bench = Bench::new();
        let enforcer = format!("--enforcer={enforcer}");
        let options = ["exec", "--reserve=2ms/8ms", "--threads=mixer,audio"];
        let rest = [&enforcer, "--judge", "--json=r.json", "--html=r.html", "--"];
        let program = ["sh", "-c", NAMED_LATER];
        let output = bench.run(&[&options[..], &rest, &program].concat());
        let told = said(&output);
        // 5, or 2 where the machine was in the way.
        assert_ne!(output.status.code(), Some(0), "{told}");
        let nobody = "no thread that was named `mixer` came";
        assert!(told.contains(nobody), "{told}");
        let received = json(&bench, "r.json");
        assert_eq!(received["never_came"], serde_json::json!(["mixer"]));
        assert_ne!(received["verdict"], "met", "{told}");
        assert!(received["came_after_ns"].is_u64(), "{told}");
        let page = String::from_utf8(bench.read("r.html")).unwrap();
        assert!(page.contains(nobody), "{page}");
    }
}

/// What cannot be had at all is refused before the program begins, whoever is to have it later.
#[test]
fn a_reservation_that_the_kernel_would_not_give_is_refused_at_once() {
    let Some(_live) = rights::require(&[Right::RealTime, Right::Deadline]) else {
        return;
    };
    let bench = Bench::new();
    let options = ["exec", "--reserve=1ns/5ms", "--enforcer=deadline"];
    let program = ["--threads=audio", "--", "sh", "-c", "echo ran"];
    let output = bench.run(&[&options[..], &program].concat());
    assert_eq!(output.status.code(), Some(125), "{}", said(&output));
    assert!(output.stdout.is_empty(), "it was not executed");
}
