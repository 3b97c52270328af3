//! Coordinators that are stopped or killed: what comes too late, what was not read, and who follows.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::{env, fs};

use laxity::doctor::rights;
use rustix::process::{Pid, Signal, kill_process};

use crate::{House, ORDINARY, until};

/// It is granted when the coordinator goes on, to a process that was told that there is no answer.
#[test]
fn what_is_granted_too_late_is_given_back() {
    let Some(house) = House::open() else {
        return;
    };
    let mut one = house.start();
    assert_eq!(one.does("create big 2"), "created");
    let coordinator = house.coordinator().expect("it serves");
    kill_process(coordinator, Signal::STOP).unwrap();
    let answer = one.does("create late 3");
    kill_process(coordinator, Signal::CONT).unwrap();
    assert!(answer.contains("does not answer"), "{answer}");
    // It has heard of that before it is asked for this.
    until("it is given back", || house.names() == ["big"]);
    let mut other = house.start();
    assert_eq!(other.does("create other 5"), "created");
    assert_eq!(one.does("create later 1"), "created");
    assert_eq!(house.names(), ["big", "later", "other"]);
}

/// Its guards do not look then, which who counts on them is told where he asks.
#[test]
fn while_a_coordinator_is_stopped_no_grade_is_enforced() {
    let Some(house) = House::open() else {
        return;
    };
    let mut one = house.start();
    let coordinator = house.coordinator().expect("it serves");
    for (signal, grade) in [(Signal::STOP, "unenforced"), (Signal::CONT, "enforced")] {
        kill_process(coordinator, signal).unwrap();
        until(grade, || one.does("grade") == grade);
    }
}

#[test]
fn a_coordinator_may_be_killed_with_a_question_that_it_has_not_read() {
    let Some(house) = House::open() else {
        return;
    };
    let (mut one, mut other) = (house.start(), house.start());
    assert_eq!(one.does("create big 5"), "created");
    let coordinator = house.coordinator().expect("it serves");
    kill_process(coordinator, Signal::STOP).unwrap();
    one.is_told("create more 1");
    other.is_told("create other 1");
    kill_process(coordinator, Signal::KILL).unwrap();
    assert_eq!([one.line(), other.line()], ["created", "created"]);
    assert_eq!(house.names(), ["big", "more", "other"]);
    let refused = other.does("create much 4");
    assert!(refused.starts_with("not admitted"), "{refused}");
}

/// A coordinator alone.
fn alone(house: &House) -> Command {
    let mut serve = house.upcalls(&["serve", "--ordinary", "--linger", "60s"]);
    serve.args(["--processor", &house.processor]);
    serve
}

#[test]
fn a_coordinator_that_is_told_to_end_takes_its_socket_along_and_one_that_is_killed_is_followed() {
    let Some(house) = House::open() else {
        return;
    };
    let socket = house.bench.path("sockets");
    let socket = socket.join(format!("cpu{}.sock", house.processor));
    for signal in [Signal::KILL, Signal::TERM, Signal::KILL, Signal::INT] {
        let mut serving = serves(&house, alone(&house));
        kill_process(Pid::from_child(&serving), signal).unwrap();
        let ended = serving.wait().unwrap();
        let is_killed = signal == Signal::KILL;
        assert_eq!((ended.success(), socket.exists()), (!is_killed, is_killed));
    }
}

/// Then nobody can tell it to end, which does not end it either.
#[test]
fn a_coordinator_whose_caller_ignores_signals_serves() {
    let Some(house) = House::open() else {
        return;
    };
    let serve = alone(&house);
    let mut ignoring = Command::new("env");
    ignoring.arg("--ignore-signal=INT,TERM");
    ignoring.arg(serve.get_program()).args(serve.get_args());
    let mut serving = serves(&house, ignoring);
    serving.kill().unwrap();
    assert!(!serving.wait().unwrap().success());
}

/// As where it is killed: what it guarded is guarded by its next one.
#[test]
fn where_a_coordinator_is_told_to_end_all_goes_on() {
    let Some(house) = House::open() else {
        return;
    };
    let mut one = house.start();
    assert_eq!(one.does("create big 5"), "created");
    for round in 0..3 {
        let calls = one.calls("big");
        kill_process(house.coordinator().expect("it serves"), Signal::TERM).unwrap();
        until("it is called still", || one.calls("big") > calls + 2);
        let mut other = house.start();
        assert_eq!(other.does("create small 2"), "created");
        let refused = other.does("create more 4");
        assert!(refused.starts_with("not admitted"), "{refused}");
        until("it is guarded", || one.does("grade") == "enforced");
        drop(other);
        until("that has gone", || house.names() == ["big"]);
        assert!(house.coordinator().is_some(), "round {round}");
    }
}

/// This test's program, where all users may execute it.
fn for_everybody(house: &House) -> PathBuf {
    let own = house.bench.path("process");
    fs::copy(env::current_exe().unwrap(), &own).unwrap();
    let everybody = fs::Permissions::from_mode(0o755);
    fs::set_permissions(house.bench.path("."), everybody).unwrap();
    own
}

/// A coordinator for all users, once it serves.
fn serve_with_quotas(house: &House) -> Child {
    let mut serve = house.upcalls(&["serve", "--ordinary", "--everyone"]);
    serve.args(["--processor", &house.processor, "--share", "60%"]);
    serve.args(["--quota", "1001=25%", "--linger", "100ms"]);
    serves(house, serve)
}

fn serves(house: &House, mut serve: Command) -> Child {
    let serving = serve.spawn().unwrap();
    until("it serves", || {
        let listed = house.upcalls(&["list"]).output().unwrap();
        listed.status.success() && !listed.stdout.starts_with(b"No")
    });
    serving
}

/// One that is root's, for all.
#[test]
fn each_user_has_what_it_may_and_keeps_that_when_another_coordinator_follows() {
    let Some(house) = House::open() else {
        return;
    };
    if !rustix::process::geteuid().is_root() {
        rights::skip("only root can become another user");
        return;
    }
    let own = for_everybody(&house);
    let mut serving = serve_with_quotas(&house);
    let [mut one, mut other] = [1_001, 1_002].map(|user| {
        let mut command = Command::new(&own);
        command
            .current_dir("/")
            .uid(user)
            .gid(user)
            .env(ORDINARY, "");
        house.start_by(command)
    });
    assert_eq!(one.does("create small 1"), "created");
    let refused = one.does("create more 1");
    assert!(
        refused.contains("user 1001 would keep") && refused.contains("may keep 25.00 %"),
        "{refused}"
    );
    assert_eq!(other.does("create big 3"), "created");
    serving.kill().unwrap();
    serving.wait().unwrap();
    let mut serving = serve_with_quotas(&house);
    let here = || {
        house
            .list()
            .iter()
            .filter(|(_, presence, _)| presence == "here")
            .count()
    };
    until("both have come back", || here() == 2);
    assert_eq!(house.names(), ["small", "big"]);
    let refused = one.does("create more 1");
    assert!(refused.contains("user 1001 would keep"), "{refused}");
    drop((one, other));
    assert!(serving.wait().unwrap().success());
}
