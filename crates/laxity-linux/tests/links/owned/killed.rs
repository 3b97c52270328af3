//! An owner that ends without putting back what it owned: its guardian does, in the interface's namespace, in which it never was.
#![allow(unsafe_code, reason = "a thread enters a namespace by a system call")]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use laxity_linux::enforce::guardian;
use laxity_linux::net::egress::Owned;
use rustix::process::{Pid, Signal, kill_process};

use super::super::common::{guardian_of, until};
use super::super::namespace::pair;
use super::{egress, state};

/// By which this program is started as the owner: behind it a namespace, and how it ends.
const AS_OWNER: &str = "--own";

pub(super) const TESTS: [(&str, fn()); 3] = [
    (
        "who_is_ended_by_a_signal_leaves_it_as_it_was",
        ended_by_signals,
    ),
    ("who_ends_at_once_leaves_it_as_it_was", ends_at_once),
    (
        "a_guardian_in_the_place_of_another_puts_it_back",
        another_guardian,
    ),
];

/// The owner, if this process was started to be it.
pub(crate) fn own_and_wait() {
    let mut arguments = std::env::args().skip_while(|argument| argument != AS_OWNER);
    let Some([namespace, how]) = arguments.nth(1).zip(arguments.next()).map(<[_; 2]>::from) else {
        return;
    };
    // Of another namespace, as most of a process with several are.
    enter(&format!(
        "/proc/{}/ns/net",
        rustix::process::getppid().map_or(1, Pid::as_raw_pid)
    ));
    let guardian = guardian::start().unwrap();
    enter(&namespace);
    let _owned = Owned::take("near", egress(100_000_000)).unwrap();
    println!("owned");
    match &*how {
        "exit" => std::process::exit(0),
        "abort" => std::process::abort(),
        _ => {}
    }
    loop {
        if guardian.replace_if_dead().unwrap() {
            println!("another");
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn enter(namespace: &str) {
    let namespace = File::open(namespace).unwrap();
    // SAFETY: it takes a descriptor that is open, and concerns this thread alone.
    let entered = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
    assert_eq!(entered, 0, "{}", std::io::Error::last_os_error());
}

/// An owner, killed and reaped with this.
struct Owner(Child, BufReader<ChildStdout>);

impl Owner {
    /// One that has said that it owns.
    fn start(how: &str) -> Self {
        let own = File::open("/proc/thread-self/ns/net").unwrap();
        let path = format!("/proc/{}/fd/{}", std::process::id(), own.as_raw_fd());
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([AS_OWNER, &path, how]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let told = BufReader::new(child.stdout.take().unwrap());
        let mut owner = Self(child, told);
        owner.says("owned");
        owner
    }

    fn says(&mut self, word: &str) {
        let mut line = String::new();
        self.1.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), word);
    }

    fn id(&self) -> i32 {
        self.0.id() as i32
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // One that has ended already is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn send(process: i32, signal: Signal) {
    kill_process(Pid::from_raw(process).unwrap(), signal).unwrap();
}

/// Waits until the interface is as it was.
fn is_again(before: &[String; 3], by: &str) {
    let begin = Instant::now();
    loop {
        let now = state("near");
        if now == *before {
            return;
        }
        assert!(
            begin.elapsed() < Duration::from_secs(20),
            "by {by}: {now:?} where {before:?} was"
        );
        thread::sleep(Duration::from_millis(1));
    }
}

fn ended_by_signals() {
    pair("near", "far");
    let before = state("near");
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let owner = Owner::start("wait");
        assert_ne!(state("near"), before);
        send(owner.id(), signal);
        is_again(&before, &format!("{signal:?}"));
    }
}

fn ends_at_once() {
    pair("near", "far");
    let before = state("near");
    for how in ["exit", "abort"] {
        let _owner = Owner::start(how);
        is_again(&before, how);
    }
}

fn another_guardian() {
    pair("near", "far");
    let before = state("near");
    let mut owner = Owner::start("wait");
    let mut found = None;
    until("it has a guardian", || {
        found = guardian_of(owner.0.id());
        found.is_some()
    });
    send(found.unwrap(), Signal::KILL);
    owner.says("another");
    assert_ne!(state("near"), before);
    send(owner.id(), Signal::KILL);
    is_again(&before, "another guardian");
}
