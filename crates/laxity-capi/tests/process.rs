//! What upcalls become when something is done to their process: its main thread blocks or ends, it is stopped, traced, killed, forks or executes another program.
#![allow(unsafe_code)]
#![allow(dead_code, reason = "of the common part")]

mod common;

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use laxity::upcalls::{Error, Options, Rank, Spec, State, Upcall, Upcalls};
use laxity::{Instant, Service, Span, now, sleep_until};
use laxity_linux::doctor::rights::{self, Right};
use laxity_linux::os::idle::LATENCY_FILE;
use tempfile::TempDir;

use common::{C11, can_compile, compile, install, shared};

/// Of `process.c`.
const PERIOD: Span = Span::from_millis(2);

/// One call, as it was told.
#[derive(Clone, Copy, Debug)]
struct Called {
    release: Instant,
    began: Instant,
    missed: u64,
}

/// `process.c`, to which something is done. It is killed when this is dropped.
struct Victim {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    _installed: TempDir,
}

impl Victim {
    /// `None` where there is no compiler, which is said.
    fn start(arguments: &[&str]) -> Option<Self> {
        if !can_compile() {
            return None;
        }
        let installed = tempfile::tempdir().unwrap();
        let prefix = installed.path();
        install(prefix);
        let program = compile(prefix, "tests/process.c", C11, &shared(prefix));
        let mut command = Command::new(program);
        command.args(arguments).process_group(0);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = piped.spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Some(Self {
            process,
            lines,
            _installed: installed,
        })
    }

    fn line(&mut self) -> Option<String> {
        self.lines.next().map(Result::unwrap)
    }

    /// The next call; `None` after the last.
    fn call(&mut self) -> Option<Called> {
        let line = self.line()?;
        let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        let [release, began, missed] = numbers[..] else {
            panic!("{line}");
        };
        let [release, began] = [release, began].map(Instant::from_nanos);
        Some(Called {
            release,
            began,
            missed,
        })
    }

    fn calls(&mut self, count: usize) -> Vec<Called> {
        let calls: Vec<Called> = (0..count).map_while(|_| self.call()).collect();
        assert_eq!(calls.len(), count);
        calls
    }

    fn proc(&self, path: &str) -> PathBuf {
        Path::new("/proc")
            .join(self.process.id().to_string())
            .join(path)
    }

    fn signal(&self, signal: i32) {
        // SAFETY: takes numbers; the process is ours and not reaped yet.
        assert_eq!(unsafe { libc::kill(self.process.id() as i32, signal) }, 0);
    }

    /// It is let come to its end, which must be a good one.
    fn ends_well(mut self) {
        drop(self.process.stdin.take());
        while self.line().is_some() {}
        let status = self.process.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // One that has ended is no error.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// No release is called twice or forgotten: each is called, or missed and counted.
fn are_on_one_grid(calls: &[Called]) {
    for two in calls.windows(2) {
        let passed = two[0].release + PERIOD * (two[1].missed + 1);
        assert_eq!(two[1].release, passed, "{calls:?}");
        assert!(two[1].began >= two[1].release, "{calls:?}");
    }
}

#[test]
fn a_main_program_that_blocks_holds_no_upcall_up() {
    let Some(mut victim) = Victim::start(&["blocks"]) else {
        return;
    };
    assert!(victim.line().unwrap().starts_with("policy 0"));
    // Its main thread waits for what is written only after these.
    are_on_one_grid(&victim.calls(50));
    victim.ends_well();
}

#[test]
fn upcalls_go_on_when_the_main_thread_ends() {
    let Some(mut victim) = Victim::start(&["main-ends"]) else {
        return;
    };
    victim.line().unwrap();
    let stat = victim.proc("stat");
    let mut calls = victim.calls(1);
    let is_zombie = || std::fs::read_to_string(&stat).unwrap().contains(") Z ");
    while !is_zombie() {
        calls.extend(victim.calls(1));
    }
    calls.extend(victim.calls(20));
    while let Some(call) = victim.call() {
        calls.push(call);
    }
    assert_eq!(calls.len(), 400);
    are_on_one_grid(&calls);
    victim.ends_well();
}

/// What lets a process go on that is held.
type LetGo = Box<dyn FnOnce(&Victim)>;

/// Releases that come while a process is held are missed; the one that it waited for is late, and no other.
fn releases_are_missed_while(hold: fn(&Victim) -> Option<LetGo>) {
    let Some(mut victim) = Victim::start(&["blocks"]) else {
        return;
    };
    victim.line().unwrap();
    let mut calls = victim.calls(5);
    let Some(let_go) = hold(&victim) else {
        return;
    };
    let held = now();
    sleep_until(held + PERIOD * 40);
    let free = now();
    let_go(&victim);
    while calls
        .last()
        .is_some_and(|last| last.release < free + PERIOD * 10)
    {
        calls.extend(victim.calls(1));
    }
    are_on_one_grid(&calls);
    let late = calls
        .iter()
        .filter(|call| call.began >= free && call.release < free);
    assert!(late.count() <= 1, "{calls:?}");
    let meanwhile = calls
        .iter()
        .filter(|call| call.began > held && call.began < free);
    assert_eq!(meanwhile.count(), 0, "{calls:?}");
    assert!(calls.iter().any(|call| call.missed >= 38), "{calls:?}");
    victim.ends_well();
}

#[test]
fn a_stopped_process_misses_releases_and_makes_up_for_none() {
    releases_are_missed_while(|victim| {
        victim.signal(libc::SIGSTOP);
        let mut status = 0;
        // SAFETY: the number is there; one that is stopped is not reaped.
        let found =
            unsafe { libc::waitpid(victim.process.id() as i32, &raw mut status, libc::WUNTRACED) };
        assert!(found > 0 && libc::WIFSTOPPED(status), "{status}");
        Some(Box::new(|victim| victim.signal(libc::SIGCONT)))
    });
}

#[test]
fn a_traced_process_misses_releases_and_makes_up_for_none() {
    releases_are_missed_while(|victim| {
        let mut gdb = Command::new("gdb");
        gdb.args(["-q", "-nx", "-iex", "set auto-solib-add off", "-p"])
            .arg(victim.process.id().to_string());
        let piped = gdb.stdin(Stdio::piped()).stdout(Stdio::piped());
        let Ok(mut gdb) = piped.stderr(Stdio::null()).spawn() else {
            rights::skip("gdb is not here");
            return None;
        };
        let mut ask = gdb.stdin.take().unwrap();
        ask.write_all(b"echo it-is-held\\n\n").unwrap();
        let mut told = BufReader::new(gdb.stdout.take().unwrap()).lines();
        assert!(told.any(|line| line.unwrap().contains("it-is-held")));
        let status = std::fs::read_to_string(victim.proc("status")).unwrap();
        if status.contains("TracerPid:\t0\n") {
            rights::skip("gdb may trace no process here");
            let _ = (gdb.kill(), gdb.wait());
            return None;
        }
        Some(Box::new(move |_| {
            ask.write_all(b"detach\nquit\n").unwrap();
            told.for_each(drop);
            assert!(gdb.wait().unwrap().success());
        }))
    });
}

/// What is done while a handler hangs, which returns then. It takes the ten seconds for which a handler is waited for.
fn while_a_handler_hangs(what: &str) {
    let Some(mut victim) = Victim::start(&[what]) else {
        return;
    };
    victim.line().unwrap();
    assert_eq!(victim.line().unwrap(), "hangs");
    victim
        .process
        .stdin
        .as_mut()
        .unwrap()
        .write_all(b"x")
        .unwrap();
    victim.ends_well();
}

#[test]
fn an_upcall_whose_handler_hangs_is_closed_when_that_returns() {
    while_a_handler_hangs("hangs");
}

#[test]
fn an_executor_whose_handler_hangs_has_ended_when_that_returns() {
    while_a_handler_hangs("ends-hanging");
}

#[test]
fn nothing_of_a_killed_process_goes_on() {
    let Some(mut victim) = Victim::start(&["blocks"]) else {
        return;
    };
    victim.line().unwrap();
    victim.calls(5);
    victim.process.kill().unwrap();
    let status = victim.process.wait().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGKILL));
    // SAFETY: takes numbers, and sends nothing.
    let others = unsafe { libc::kill(-(victim.process.id() as i32), 0) };
    let error = std::io::Error::last_os_error().raw_os_error();
    assert_eq!((others, error), (-1, Some(libc::ESRCH)));
}

/// What `process.c` says of itself: how it is without upcalls, and with some at this rank.
fn states(locked: bool) -> [String; 2] {
    let may = std::fs::File::options()
        .write(true)
        .open(LATENCY_FILE)
        .is_ok();
    let (awake, locked) = (u8::from(may), u8::from(locked));
    [
        "policy 0, locked 0, threads 1, awake 0".to_owned(),
        format!("policy 0, locked {locked}, threads 2, awake {awake}"),
    ]
}

/// What it writes until its end, which must be a good one.
fn said(arguments: &[&str]) -> Option<Vec<String>> {
    let mut victim = Victim::start(arguments)?;
    let said = std::iter::from_fn(|| victim.line()).collect();
    victim.ends_well();
    Some(said)
}

#[test]
fn a_forked_child_has_no_upcalls_and_may_make_its_own() {
    let [without, with] = states(false);
    if let Some(said) = said(&["forks"]) {
        assert_eq!(
            said,
            [&without, &without, &with, &without].map(String::as_str)
        );
    }
}

#[test]
fn what_an_executor_had_is_given_back_when_it_ends_or_its_process_is_another_program() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let Some(told) = said(&["gives-back", "fifo"]) else {
        return;
    };
    let is_locked = told[1].contains("locked 1");
    let [without, with] = states(is_locked);
    assert_eq!(
        told,
        [&without, &with, &without, &without].map(String::as_str)
    );
    let forked = said(&["forks", "fifo"]).unwrap();
    assert_eq!(
        forked,
        [&without, &without, &with, &without].map(String::as_str)
    );
}

#[test]
fn a_signal_that_the_programs_own_threads_block_is_theirs() {
    said(&["signals"]);
}

/// In a thread upcalls come and go meanwhile.
#[test]
fn a_forked_child_makes_its_own_upcalls_whatever_its_parent_was_doing() {
    said(&["forks-often"]);
}

#[test]
fn no_fork_waits_for_an_executor_that_is_being_started() {
    said(&["joins"]);
}

/// A child that panics exits, too, and is no second test.
struct Exits;

impl Drop for Exits {
    fn drop(&mut self) {
        // SAFETY: takes a number.
        unsafe { libc::_exit(99) }
    }
}

/// What a child finds, as the number with which it exits; 0 is what it ought to.
fn found_by_a_child(upcalls: Upcalls, ticking: Upcall) -> i32 {
    let spec = || Spec::each(PERIOD, Service::from_micros(10));
    if ticking.run() != Err(Error::Over) || ticking.state() != State::Closed {
        return 1;
    }
    if upcalls.create(spec(), |_| ()).map(drop) != Err(Error::Over) {
        return 2;
    }
    drop((ticking, upcalls));
    let own = Upcalls::start(fair()).and_then(|own| {
        let once = own.create(spec(), |call| {
            call.suspend();
        })?;
        once.run()?;
        own.sleep(&[&once])?;
        once.close()
    });
    match own {
        Ok(counts) if counts.calls == 1 => 0,
        _ => 3,
    }
}

fn fair() -> Options {
    Options {
        rank: Rank::Fair,
        ..Options::default()
    }
}

#[test]
fn in_a_forked_child_an_executor_is_over_and_nobody_waits_for_it() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let ticking = upcalls.create(Spec::each(PERIOD, Service::from_micros(10)), |_| ());
    let ticking = ticking.unwrap();
    ticking.run().unwrap();
    // SAFETY: the child calls nothing that another thread may hold a lock of, and exits.
    match unsafe { libc::fork() } {
        0 => {
            let _exits = Exits;
            let found = found_by_a_child(upcalls, ticking);
            // SAFETY: takes a number.
            unsafe { libc::_exit(found) }
        }
        child => {
            let mut status = -1;
            // SAFETY: the number is there.
            let found = unsafe { libc::waitpid(child, &raw mut status, 0) };
            assert_eq!((found, status), (child, 0));
            assert_eq!(ticking.state(), State::Active);
        }
    }
}
