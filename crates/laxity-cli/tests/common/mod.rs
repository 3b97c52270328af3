//! What the tests of the command share: a place to run it in, and what a live test waits for and skips.
#![allow(dead_code, reason = "each test binary uses its part")]

pub(crate) mod disk;
pub(crate) mod machine;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use laxity::doctor::rights::{self, Right, skip};
use rustix::process::{Resource, getrlimit};
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
use tempfile::TempDir;

/// The user `nobody`, and its group.
const NOBODY: u32 = 65_534;

/// An empty directory in which the command runs, so that everything it writes is seen.
pub(crate) struct Bench(TempDir);

impl Bench {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("a directory for temporary files"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap_or_else(|error| panic!("{name}: {error}"));
        path
    }

    /// The names of all that is there, hidden files included.
    pub(crate) fn files(&self) -> Vec<String> {
        names(self.0.path())
    }

    /// The command, to be run here.
    pub(crate) fn command(&self) -> Command {
        self.start(Path::new(env!("CARGO_BIN_EXE_laxity")))
    }

    fn start(&self, binary: &Path) -> Command {
        let mut command = Command::new(binary);
        command.current_dir(self.0.path());
        command
    }

    /// Runs the command here with these arguments.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.command();
        command.args(arguments).output().expect("laxity starts")
    }

    /// The command, to be run here by somebody who may not use real-time policies; `None`, with the reason said, where nobody can be made
    /// of that kind.
    pub(crate) fn command_without_rights(&self, programs: &Self) -> Option<Command> {
        let limit = getrlimit(Resource::Rtprio);
        if limit.current != Some(0) || limit.maximum != Some(0) {
            skip("RLIMIT_RTPRIO lets every user have a real-time priority");
            return None;
        }
        if !rustix::process::geteuid().is_root() {
            if rights::missing(Right::RealTime).is_some() {
                return Some(self.command());
            }
            skip("this user has a capability, and only root can become another");
            return None;
        }
        // The binary may lie where only its builder can read it.
        let binary = programs.path("laxity");
        // By a process of its own: whatever another test starts meanwhile would inherit the file, open for writing, and keep it from being
        // executed.
        let copied = Command::new("cp")
            .arg(env!("CARGO_BIN_EXE_laxity"))
            .arg(&binary)
            .status();
        assert!(
            copied.is_ok_and(|status| status.success()),
            "the binary can be copied"
        );
        for directory in [&self.0, &programs.0] {
            let everybody = fs::Permissions::from_mode(0o777);
            fs::set_permissions(directory.path(), everybody).expect("the directory is ours");
        }
        let mut command = self.start(&binary);
        command.uid(NOBODY).gid(NOBODY);
        Some(command)
    }
}

/// The exit code of a command on a terminal on which its user types this, and all that is shown there.
pub(crate) fn on_a_terminal(mut command: Command, typed: &str) -> (i32, String) {
    let own = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    unlockpt(&own).expect("ours");
    let name = ptsname(&own, Vec::new()).expect("it has a name");
    let open = || {
        let path = name.to_str().expect("digits");
        let mut options = File::options();
        options.read(true).write(true).open(path).expect("ours")
    };
    command.stdin(open()).stderr(open()).stdout(open());
    let mut own = File::from(own);
    // The line waits in the terminal until it is read.
    own.write_all(typed.as_bytes()).expect("a terminal");
    let mut child = command.spawn().expect("laxity starts");
    // So that the terminal is at its end when the child is gone.
    drop(command);
    let mut said = Vec::new();
    let mut part = [0; 4096];
    while let Ok(length @ 1..) = own.read(&mut part) {
        said.extend_from_slice(&part[..length]);
    }
    let status = child.wait().expect("our child");
    let said = String::from_utf8_lossy(&said).into_owned();
    (status.code().expect("it exits"), said)
}

/// The names of all that is in a directory, hidden files included, in order.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("the directory can be read");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("it can be read").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The text of a scenario that laxity comes with.
pub(crate) fn shipped_text(name: &str) -> String {
    fs::read_to_string(shipped(name)).expect("the scenario is there")
}

/// The path of a scenario that laxity comes with.
pub(crate) fn shipped(name: &str) -> String {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    format!("{directory}/{name}")
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Checks the exit code; fails with all that was said.
#[track_caller]
pub(crate) fn assert_code(output: &Output, code: i32) {
    assert_eq!(
        output.status.code(),
        Some(code),
        "{}\n--- stdout\n{}\n--- stderr\n{}",
        output.status,
        stdout(output),
        stderr(output)
    );
}

/// Checks that all these words are in the text.
#[track_caller]
pub(crate) fn assert_says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "`{word}` is not in:\n{text}");
    }
}

/// A text as it was before it was broken into lines.
pub(crate) fn unbroken(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Asks again and again until the answer is yes; `false` if that takes longer than `patience`.
pub(crate) fn comes_true(patience: Duration, mut happened: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    loop {
        if happened() {
            return true;
        }
        if begin.elapsed() > patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until something is so.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let latest = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < latest, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// What was said on standard error.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether what was received was enforced, or in doubt only because the machine held the processor for so long that nobody knows that it was it.
pub(crate) fn is_enforced(received: &serde_json::Value) -> bool {
    let reason = received["grade_reason"].as_str().unwrap_or_default();
    let in_doubt = received["grade"] == "uncertain" && reason.contains("nobody was found");
    received["grade"] == "enforced" || in_doubt
}

/// A file of JSON.
pub(crate) fn json(bench: &Bench, name: &str) -> serde_json::Value {
    serde_json::from_slice(&bench.read(name)).unwrap()
}
