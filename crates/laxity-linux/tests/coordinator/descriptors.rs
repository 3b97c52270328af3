//! A coordinator that has no descriptors left.

use std::env;
use std::os::fd::AsRawFd as _;
use std::process::Command;
use std::time::{Duration, Instant};

use laxity_linux::host::coordinator::Coordinator;
use laxity_model::Span;
use laxity_model::program::coordinator::{Answer, Ask};
use rustix::io::dup;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;

use crate::{Own, Stranger, settings, two};

/// What the process is told that has no descriptors left.
const WITHOUT: &str = "LAXITY_TEST_WITHOUT_DESCRIPTORS";

/// Runs a test in a process of its own; whether this is that.
fn is_own_process(test: &str) -> bool {
    let is_own = env::var_os(WITHOUT).is_some();
    if !is_own {
        let mut own = Command::new(env::current_exe().unwrap());
        own.args([test, "--exact"]);
        let output = own.env(WITHOUT, "").output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    is_own
}

/// No more descriptors may be open than are; what was allowed before.
fn allow_no_more(open: &Stranger) -> Rlimit {
    let before = getrlimit(Resource::Nofile);
    let next = dup(&open.0).unwrap().as_raw_fd() as u64;
    let current = Some(next);
    setrlimit(Resource::Nofile, Rlimit { current, ..before }).unwrap();
    before
}

#[test]
fn without_descriptors_it_waits() {
    if !is_own_process("descriptors::without_descriptors_it_waits") {
        return;
    }
    let directory = TempDir::new().unwrap();
    let mut settings = settings(&directory);
    settings.linger = Span::from_secs(1_000);
    let mut coordinator = Coordinator::open(settings).unwrap();
    let stranger = Stranger::of(&directory);
    assert!(stranger.send(&Ask::List(0).encode(), &[]));
    let before = allow_no_more(&stranger);
    let (began, mut rounds) = (Instant::now(), 0);
    let mut round = || {
        let heard = coordinator.hear().unwrap().unwrap();
        coordinator.answer(heard);
    };
    while began.elapsed() < Duration::from_secs(1) {
        round();
        rounds += 1;
    }
    // Twice in each wait, at the most.
    assert!(rounds <= 100, "{rounds}");
    setrlimit(Resource::Nofile, before).unwrap();
    let answer = loop {
        round();
        if let Some((answer, _)) = stranger.heard() {
            break answer;
        }
    };
    assert_eq!(answer, Answer::End);
}

/// No file may have a byte more, nor memory that is one; what was allowed before.
#[allow(
    unsafe_code,
    reason = "the signal that comes with it ends who does not ignore it"
)]
fn allow_no_byte() -> Rlimit {
    let before = getrlimit(Resource::Fsize);
    // SAFETY: no handler is set, and the process is a test's own.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let current = Some(0);
    setrlimit(Resource::Fsize, Rlimit { current, ..before }).unwrap();
    before
}

/// Those who had seats have ended, and nobody is awaited.
#[test]
fn who_joins_where_there_can_be_no_memory_is_told_that() {
    if !is_own_process("descriptors::who_joins_where_there_can_be_no_memory_is_told_that") {
        return;
    }
    let directory = TempDir::new().unwrap();
    let ended = two(&directory);
    let mut next = Own::open(&directory);
    let stranger = Stranger::of(&directory);
    // It is let in.
    next.asks(&stranger, &Ask::List(0), &[]);
    drop(ended);
    let before = allow_no_byte();
    let join = Ask::Join {
        name: "one".to_owned(),
    };
    let mut told = Vec::new();
    let words = ["the memory that processes share", "File too large"];
    let is_told = |answer: &Answer| matches!(answer, Answer::NotYet(why) if words.iter().all(|word| why.contains(word)));
    // The first looks find who has ended.
    while told.len() < 10 && !told.last().is_some_and(is_told) {
        told.push(next.asks(&stranger, &join, &[]).0);
    }
    assert!(told.last().is_some_and(is_told), "{told:?}");
    setrlimit(Resource::Fsize, before).unwrap();
    let mut answers = (0..10).map(|_| next.asks(&stranger, &join, &[]).0);
    assert!(answers.any(|answer| matches!(answer, Answer::Welcome { .. })));
}
