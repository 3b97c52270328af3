//! Where little is allowed: of few files that may be open `laxity exec` runs the program or says why not, never waits for what cannot come, and convicts nobody;
//! of a small stack every command says so.

mod common;

use std::env;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::{Bench, assert_says, comes_true, eventually, json, names, said};
use laxity::doctor::rights::{self, Right};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Fewer than a process starts with, up to more than anybody needs here.
fn limits() -> impl Iterator<Item = u64> {
    (4..=32).chain([48, 63, 64, 65, 66, 67, 80, 100])
}

/// The command, which may have no more of this, nor let itself have more than that.
fn limited(bench: &Bench, resource: Resource, [soft, hard]: [u64; 2]) -> Command {
    let mut command = bench.command();
    let limit = Rlimit {
        current: Some(soft),
        maximum: Some(hard),
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
    let mut command = limited(bench, Resource::Nofile, [files; 2]);
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

/// What a process is told that is to have many threads.
const MANY: &str = "LAXITY_TEST_MANY_THREADS";
/// So many, for each of which laxity opens up to four files.
const THREADS: usize = 400;

/// It says how many files it may have open, works, and ends with its input: where this test is started as that.
#[test]
fn a_program_of_many_threads() {
    if env::var_os(MANY).is_none() {
        return;
    }
    let all: Vec<_> = (0..THREADS).map(|_| thread::spawn(thread::park)).collect();
    println!("it may open {:?}", getrlimit(Resource::Nofile).current);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(2) {}
    io::stdin().read_to_end(&mut Vec::new()).unwrap();
    for one in all {
        one.thread().unpark();
        one.join().unwrap();
    }
}

/// The command line of such a program.
fn of_many_threads() -> Vec<String> {
    let own = env::current_exe().unwrap().display().to_string();
    let rest = ["a_program_of_many_threads", "--exact", "--nocapture"];
    [own].into_iter().chain(rest.map(str::to_owned)).collect()
}

/// Whether it ended before anything was held, as the machine was too disturbed; says so.
fn could_not_begin(output: &Output) -> bool {
    let is_it = output.status.code() == Some(125) && said(output).contains("is disturbed");
    if is_it {
        rights::skip("what switching costs could not be measured");
    }
    is_it
}

#[test]
fn threads_are_held_beyond_the_soft_limit_and_the_program_keeps_that() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let hard = getrlimit(Resource::Nofile).maximum;
    if hard.is_some_and(|hard| hard < 4_096) {
        return rights::skip("no more than 4,096 files may be open here");
    }
    let bench = Bench::new();
    let mut command = limited(&bench, Resource::Nofile, [512, 4_096]);
    command.args(["exec", "--reserve=2ms/8ms", "--json=r.json", "--"]);
    command.args(of_many_threads()).env(MANY, "");
    let output = command.stdin(Stdio::null()).output().unwrap();
    let told = said(&output);
    if could_not_begin(&output) {
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{told}");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_says(&printed, &["it may open Some(512)"]);
    assert!(!told.contains("open files"), "{told}");
    assert_eq!(json(&bench, "r.json")["not_seen"], serde_json::Value::Null);
}

#[test]
fn by_a_limit_of_laxitys_own_nobody_is_convicted() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let bench = Bench::new();
    let mut command = limited(&bench, Resource::Nofile, [256; 2]);
    command.args([
        "exec",
        "--reserve=2ms/8ms",
        "--judge",
        "--json=r.json",
        "--",
    ]);
    command.args(of_many_threads()).env(MANY, "");
    let output = command.stdin(Stdio::null()).output().unwrap();
    let told = said(&output);
    if could_not_begin(&output) {
        return;
    }
    assert_says(&told, &["only 256 files may be open", "ulimit -n 1024"]);
    let received = json(&bench, "r.json");
    let reason = received["grade_reason"].as_str().unwrap_or_default();
    // Whoever else was there, and ranked above it, is a reason of its own.
    let is_of_others = received["grade"] == "unenforced" && !reason.contains("open files");
    assert!(
        is_of_others || received["verdict"] == "inconclusive",
        "{told}"
    );
}

#[test]
fn a_running_program_of_too_many_threads_is_refused_with_what_would_do() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let bench = Bench::new();
    let program = of_many_threads();
    let mut many = Command::new(&program[0]);
    many.args(&program[1..]).env(MANY, "");
    many.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut many = many.spawn().unwrap();
    let task = format!("/proc/{}/task", many.id());
    eventually("they are all there", || {
        names(task.as_ref()).len() > THREADS
    });
    let mut command = limited(&bench, Resource::Nofile, [256; 2]);
    command.args(["exec", "--reserve=2ms/8ms", "--judge", "--pid"]);
    let output = command.arg(many.id().to_string()).output().unwrap();
    drop(many.stdin.take());
    let ended = many.wait().unwrap();
    let told = said(&output);
    if could_not_begin(&output) {
        return;
    }
    assert_eq!(output.status.code(), Some(125), "{told}");
    assert_says(&told, &["only 256 files may be open", "ulimit -n 1024"]);
    assert!(ended.success(), "{ended}");
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
        let mut command = limited(&bench, Resource::Stack, [64 << 10; 2]);
        let output = command.args(arguments).output().expect("laxity starts");
        let said = said(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert_says(&said, &["a stack of 64 KiB is too small", "ulimit -s"]);
    }
    let mut command = limited(&bench, Resource::Stack, [512 << 10; 2]);
    let output = command.arg("--version").output().expect("laxity starts");
    assert!(output.status.success(), "{}", said(&output));
}
