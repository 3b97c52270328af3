//! Two programs in C whose upcalls take turns on a processor, with a coordinator that a thread of the test is.
#![allow(dead_code, reason = "of the common part")]

mod common;

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::{self, JoinHandle};

use laxity::Span;
use laxity::upcalls::Watch;
use laxity::upcalls::coordinator::{At, Coordinator, Settings};
use laxity_linux::doctor::rights::{self, Right};

use tempfile::TempDir;

use common::{C11, CXX17, can_compile, compile, install, shared, text};

/// What a dead process had is kept for so long, which is longer than a test takes.
const KEPT: Span = Span::from_secs(1_000);

/// `coordinated.c`. It is killed when this is dropped.
struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(program: &Path, directory: &Path, rank: &str) -> Self {
        let mut command = command(program, directory);
        command
            .args(["0", rank])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut process = Self { child, lines };
        assert_eq!(process.line(), "0 yes");
        process
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("it says more").unwrap()
    }

    fn ask(&mut self, what: &str) -> String {
        writeln!(self.child.stdin.as_mut().unwrap(), "{what}").unwrap();
        self.line()
    }

    fn ends_well(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended is no error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A coordinator of processor 0 in this directory, until nobody is there any more.
fn serve(directory: &Path, watch: Option<Watch>) -> JoinHandle<()> {
    let coordinator = Coordinator::open(Settings {
        watch,
        kept: KEPT,
        ..Settings::new(At::new(0, Some(directory.to_owned())))
    });
    let coordinator = coordinator.unwrap();
    thread::spawn(move || coordinator.serve().unwrap())
}

/// Finds the coordinator there; what would be started where there is none says that another serves.
fn command(program: &Path, directory: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LAXITY_COORDINATOR_DIRECTORY", directory);
    command.env("LAXITY_COORDINATOR", "true");
    command
}

/// A source as a program in C and one in C++, and a directory for all that is made.
fn compiled(source: &str) -> (TempDir, [PathBuf; 2]) {
    let installed = tempfile::tempdir().unwrap();
    let prefix = installed.path();
    install(prefix);
    let shared = shared(prefix);
    let programs = [C11, CXX17].map(|language| compile(prefix, source, language, &shared));
    (installed, programs)
}

/// Two of them, at this rank.
fn share_a_processor(rank: &str, watch: Option<Watch>) {
    let (directory, programs) = compiled("tests/coordinated.c");
    let serving = serve(directory.path(), watch);
    let [mut one, mut other] =
        programs.map(|program| Process::start(&program, directory.path(), rank));
    let dies = one.child.id();
    assert_eq!(other.ask("fed"), "Success abc 4");
    assert_eq!(one.ask("more first 5"), "Success yes");
    let refused = other.ask("more second 5");
    assert!(
        refused.starts_with("EBUSY not admitted: second may be late"),
        "{refused}"
    );
    assert!(refused.contains("would fit"), "{refused}");
    assert_eq!(other.ask("more small 1"), "Success yes");
    one.child.kill().unwrap();
    one.child.wait().unwrap();
    assert_eq!(other.ask("gone"), format!("0 {dies}"));
    // What is told of is kept until it is settled, and told until then.
    let kept = other.ask("more second 5");
    assert!(kept.starts_with("EBUSY "), "{kept}");
    assert_eq!(other.ask("gone"), format!("0 {dies}"));
    assert_eq!(other.ask(&format!("settle {dies}")), "0 yes");
    assert_eq!(other.ask("more second 5"), "Success yes");
    let unknown = other.ask(&format!("settle {dies}"));
    assert!(
        unknown.starts_with(&format!("{} {dies} is no process", libc::EBADF)),
        "{unknown}"
    );
    if rank == "fifo" {
        let lost = other.ask("spin");
        assert!(lost.starts_with("ECANCELED 0 0 0 "), "{lost}");
        assert!(lost.contains("seat"), "{lost}");
    }
    other.ends_well();
    serving.join().unwrap();
}

/// Two of the example, at this rank; the third upcall of each is refused with these words.
fn run_the_example_twice(rank: &str, watch: Option<Watch>, refused: &str) {
    let (directory, programs) = compiled("examples/upcalls.c");
    let serving = serve(directory.path(), watch);
    let both = programs.map(|program| {
        let mut command = command(&program, directory.path());
        command.args([rank, "0"]).stdout(Stdio::piped());
        command.spawn().unwrap()
    });
    for process in both {
        let output = process.wait_with_output().unwrap();
        let said = text(&output);
        assert!(output.status.success(), "{said}");
        assert!(said.starts_with(refused), "{said}");
        assert!(said.contains("\nvideo: 10 calls, 160 PDUs\n"), "{said}");
    }
    serving.join().unwrap();
}

#[test]
fn ordinary_threads_are_admitted_together_and_one_process_inherits() {
    if can_compile() {
        share_a_processor("fair", None);
        run_the_example_twice("fair", None, "refused: not admitted: ");
    }
}

#[test]
fn so_are_real_time_threads() {
    if !can_compile() {
        return;
    }
    if let Some(_live) = rights::require(&[Right::RealTime]) {
        let watch = Some(Watch::default());
        share_a_processor("fifo", watch);
        run_the_example_twice("fifo", watch, "refused: a quantum of it takes 3ms");
    }
}
