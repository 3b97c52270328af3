//! Where little is allowed: of few files that may be open `laxity exec` runs the program or says why not, and never waits for what cannot come; of a small
//! stack every command says so.

mod common;

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{Bench, assert_says, comes_true, said};
use laxity::doctor::rights::{self, Right};
use rustix::process::{Resource, Rlimit, setrlimit};

/// Fewer than a process starts with, up to more than anybody needs here.
fn limits() -> impl Iterator<Item = u64> {
    (4..=32).chain([48, 63, 64, 65, 66, 67, 80, 100])
}

/// The command, which may have no more of this.
fn limited(bench: &Bench, resource: Resource, most: u64) -> Command {
    let mut command = bench.command();
    let limit = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    // SAFETY: one system call between fork and exec.
    #[allow(unsafe_code)]
    unsafe {
        command.pre_exec(move || Ok(setrlimit(resource, limit)?));
    }
    command
}

/// How it ends where so many files may be open: its exit code, and what is said.
fn end_with(bench: &Bench, asked: &str, files: u64) -> (Option<i32>, String) {
    let mut command = limited(bench, Resource::Nofile, files);
    command.args(["exec", "--quiet", asked, "--", "true"]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("laxity starts");
    let has_ended = || child.try_wait().expect("our child").is_some();
    let ends = comes_true(Duration::from_secs(20), has_ended);
    if !ends {
        child.kill().expect("our child");
    }
    let output = child.wait_with_output().expect("our child");
    assert!(ends, "{asked} with {files} files: {}", said(&output));
    (output.status.code(), said(&output))
}

#[test]
fn where_too_few_files_may_be_open_that_is_said_and_nothing_waits() {
    let bench = Bench::new();
    let mut asked = vec!["--nice=5"];
    let alone = rights::require(&[Right::RealTime]);
    asked.extend(alone.as_ref().map(|_| "--reserve=2ms/8ms"));
    for asked in asked {
        let mut runs = Vec::new();
        for files in limits() {
            let (code, said) = end_with(&bench, asked, files);
            runs.push(code == Some(0));
            if code == Some(0) {
                continue;
            }
            // With very few the system's own loader cannot open what it needs.
            if !said.contains("shared libraries") {
                assert_eq!(code, Some(125), "{asked} with {files} files: {said}");
                assert_says(&said, &["files may be open at once", "ulimit -n"]);
            }
        }
        assert!(!runs[0] && runs.ends_with(&[true; 8]), "{asked} {runs:?}");
    }
}

#[test]
fn a_stack_that_is_too_small_is_told_and_overflows_nowhere() {
    let bench = Bench::new();
    let cases: [(&[&str], i32); 3] = [
        (&["exec", "--nice=5", "--", "true"], 125),
        (&["doctor"], 4),
        (&["--version"], 4),
    ];
    for (arguments, code) in cases {
        let mut command = limited(&bench, Resource::Stack, 64 << 10);
        let output = command.args(arguments).output().expect("laxity starts");
        let said = said(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert_says(&said, &["a stack of 64 KiB is too small", "ulimit -s"]);
    }
    let mut command = limited(&bench, Resource::Stack, 512 << 10);
    let output = command.arg("--version").output().expect("laxity starts");
    assert!(output.status.success(), "{}", said(&output));
}
