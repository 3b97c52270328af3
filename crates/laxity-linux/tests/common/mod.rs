//! What the live tests of this crate share. In a test binary: `mod common;`, then
//!
//! * [`live_lock`] first in every test that takes a real-time policy, reserves bandwidth or measures time: it keeps the other live tests
//!   of the machine away until it is dropped, also those of other test binaries;
//! * [`lacks`] where a right is missing: the test returns after it, and fails instead where live tests are required;
//! * [`in_own_process`] for what a process cannot take back, as dropping a capability;
//! * [`until`] to wait for what the kernel does in its own time.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::fs::File;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Set to `1`, a live test that lacks a right fails instead of being skipped.
const REQUIRE_LIVE: &str = "LAXITY_REQUIRE_LIVE";
/// Tells a process started by [`in_own_process`] that it is that process.
const OWN_PROCESS: &str = "LAXITY_TEST_IN_OWN_PROCESS";
/// What such a process prints when its scenario came to its end.
const DONE: &str = "scenario came to its end";

/// Held while a live test runs; closing the file releases the lock.
pub(crate) struct LiveLock(Option<File>);

/// Waits until no other live test runs on this machine, in this process or another. In the process of [`in_own_process`] the test that
/// started it holds the lock already.
pub(crate) fn live_lock() -> LiveLock {
    if is_own_process() {
        return LiveLock(None);
    }
    let path = std::env::temp_dir().join("laxity-live-tests.lock");
    // Another user may have made it: then it can be read only, which is enough.
    let file = File::open(&path)
        .or_else(|_| File::create(&path))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    file.lock().expect("the file system locks files");
    LiveLock(Some(file))
}

/// Says that the calling test is skipped, and why. Panics where live tests are required.
pub(crate) fn lacks(reason: &str) {
    let required = std::env::var(REQUIRE_LIVE).is_ok_and(|value| value == "1");
    assert!(!required, "{REQUIRE_LIVE}=1, and {reason}");
    skip(reason);
}

/// Says that the calling test is skipped, and why, even where live tests are required: for what no right of the tester can cure.
pub(crate) fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
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
    command
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(OWN_PROCESS, "1");
    prepare(&mut command);
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

/// Asks every millisecond until the answer is yes; panics after five seconds.
pub(crate) fn until(what: &str, mut happened: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !happened() {
        assert!(begin.elapsed() < Duration::from_secs(5), "no end: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
