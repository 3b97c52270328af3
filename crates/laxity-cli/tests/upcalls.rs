//! `laxity upcalls`: executors of several processes with a coordinator that the first of them starts. This test starts itself again as the processes.

mod common;
#[path = "upcalls/endings.rs"]
mod endings;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::num::NonZeroU32;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

use common::Bench;
use laxity::doctor::rights::{self, LiveTest, Right};
use laxity::upcalls::{Call, Coordinated, Departed, Options, Rank, Spec, Upcall, Upcalls};
use laxity::{Service, Span};
use laxity_linux::os::sched::{self, Tid};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Which processor a process is told that this test starts.
const TOLD: &str = "LAXITY_TEST_COORDINATED";
/// Told where its executor is to be an ordinary thread.
const ORDINARY: &str = "LAXITY_TEST_ORDINARY";
/// Which processor one is told that only says why it has no coordinator.
const TOLD_ORDINARY: &str = "LAXITY_TEST_COORDINATED_ORDINARY";

/// A process with an executor, which does what it is told.
struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

/// What its upcalls have in common: one more than a millisecond every 10.
fn tenths(name: &str, count: u32) -> Spec {
    let mut spec = Spec::each(Span::from_millis(10), Service::from_micros(250));
    spec.name = name.to_owned();
    spec.timing.batch = NonZeroU32::new(4 * count).unwrap();
    spec
}

/// One of the processes, where this test is started as that.
#[test]
fn another_process() {
    let Ok(processor) = env::var(TOLD) else {
        return;
    };
    let rank = Rank::Fifo {
        priority: 90,
        processor: None,
    };
    let options = Options {
        rank: env::var_os(ORDINARY).map_or(rank, |_| Rank::Fair),
        together: Some(Coordinated::on(processor.parse().unwrap()).into()),
        ..Options::default()
    };
    let upcalls = Upcalls::start(options).unwrap();
    let mut all: BTreeMap<String, Upcall> = BTreeMap::new();
    let mut gone: Vec<Departed> = Vec::new();
    println!("ready");
    for line in io::stdin().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["create", name, count] => {
                let spec = tenths(name, count.parse().unwrap());
                match upcalls.create(spec, |_: &mut Call<'_>| ()) {
                    Ok(upcall) => {
                        upcall.run().unwrap();
                        all.insert(name.to_owned(), upcall);
                        println!("created");
                    }
                    Err(error) => println!("{error}"),
                }
            }
            ["calls", name] => println!("{}", all[name].counts().calls),
            ["grade"] => println!("{}", upcalls.grade()),
            ["departed"] => {
                gone.extend(upcalls.departed());
                let gone: Vec<u32> = gone.iter().map(Departed::process).collect();
                println!("{gone:?}");
            }
            ["settle"] => {
                gone.clear();
                println!("settled");
            }
            _ => break,
        }
    }
}

/// Where the processes and their coordinator are.
struct House {
    bench: Bench,
    processor: String,
    _live: LiveTest,
}

impl House {
    fn open() -> Option<Self> {
        let live = rights::require(&[Right::RealTime])?;
        let processor = sched::affinity(Tid::current()).unwrap().iter().last();
        Some(Self {
            bench: Bench::new(),
            processor: processor.unwrap().to_string(),
            _live: live,
        })
    }

    fn start(&self) -> Process {
        self.start_by(Command::new(env::current_exe().unwrap()))
    }

    fn start_by(&self, mut command: Command) -> Process {
        command.args(["another_process", "--exact", "--nocapture"]);
        command.env(TOLD, &self.processor);
        command.env("LAXITY_COORDINATOR", env!("CARGO_BIN_EXE_laxity"));
        command.env("LAXITY_COORDINATOR_DIRECTORY", self.bench.path("sockets"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut process = Process { child, lines };
        while process.line() != "ready" {}
        process
    }

    fn upcalls(&self, arguments: &[&str]) -> Command {
        let mut command = self.bench.command();
        command.arg("upcalls").args(arguments);
        command.arg("--directory").arg(self.bench.path("sockets"));
        command
    }

    /// What is listed of each process: its number, whether it is there, and its upcalls' names.
    fn list(&self) -> Vec<(u64, String, Vec<String>)> {
        let output = self.upcalls(&["list", "--json"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        let all = json["coordinators"].as_array().unwrap().iter();
        let all = all.flat_map(|one| one["processes"].as_array().unwrap());
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let told = |one: &Value| {
            let upcalls = one["upcalls"].as_array().unwrap().iter();
            let names = upcalls.map(|upcall| text(&upcall["name"])).collect();
            (
                one["process"].as_u64().unwrap(),
                text(&one["presence"]),
                names,
            )
        };
        all.map(told).collect()
    }

    /// Their names alone, of all processes.
    fn names(&self) -> Vec<String> {
        let all = self.list().into_iter();
        all.flat_map(|(_, _, names)| names).collect()
    }

    /// The coordinator that a process has started.
    fn coordinator(&self) -> Option<Pid> {
        let directory = self.bench.path("sockets");
        let directory = directory.to_str().unwrap();
        let all = fs::read_dir("/proc").unwrap().flatten();
        let serves = |path: &Path| {
            let line = fs::read(path.join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            line.contains("\0serve\0") && line.contains(directory)
        };
        let mut found = all.map(|file| file.path()).filter(|path| serves(path));
        let number = found.next()?.file_name()?.to_str()?.parse().ok()?;
        Pid::from_raw(number)
    }
}

impl Process {
    fn line(&mut self) -> String {
        self.lines.next().expect("it says more").unwrap()
    }

    fn is_told(&mut self, what: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{what}").unwrap();
    }

    fn does(&mut self, what: &str) -> String {
        self.is_told(what);
        self.line()
    }

    fn calls(&mut self, name: &str) -> u64 {
        self.does(&format!("calls {name}")).parse().unwrap()
    }

    fn number(&self) -> u64 {
        self.child.id().into()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Until this is so; what does not become so in a minute is wrong.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Whoever looks all the time leaves nobody anything.
#[test]
fn a_watchdog_that_cannot_be_is_refused() {
    let bench = Bench::new();
    for longest in ["0us", "9us", "11ms"] {
        let mut command = bench.command();
        command.args(["upcalls", "serve", "--processor", "0", "--longest", longest]);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(64), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("from 10us to 10ms"));
    }
}

#[test]
fn a_processor_that_is_not_there_is_not_served() {
    let bench = Bench::new();
    let directory = bench.path("sockets");
    for kind in [None, Some("--ordinary")] {
        let mut command = bench.command();
        command.args(["upcalls", "serve", "--processor", "1023", "--directory"]);
        let output = command.arg(&directory).args(kind).output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("there is no processor 1023"), "{error}");
    }
    assert!(!directory.exists(), "nothing was left");
}

/// Shares are written as everywhere else.
#[test]
fn two_quotas_of_one_user_are_refused() {
    let bench = Bench::new();
    let mut command = bench.command();
    command.args(["upcalls", "serve", "--processor", "0"]);
    command.args([
        "--share",
        "12.5 %",
        "--quota",
        "1000=12.5%",
        "--quota",
        "1000=20%",
    ]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(64), "{output:?}");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("two quotas of user 1000"), "{error}");
}

/// A program that would start this one, or where it is `None`, the command of a path on which there is none.
fn started_by(starts: Option<&Path>, kept: &Bench) -> String {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["an_ordinary_process", "--exact", "--nocapture"]);
    command.env(TOLD_ORDINARY, "0").env("PATH", kept.path(""));
    command.env("LAXITY_COORDINATOR_DIRECTORY", kept.path("sockets"));
    match starts {
        Some(program) => command.env("LAXITY_COORDINATOR", program),
        None => command.env_remove("LAXITY_COORDINATOR"),
    };
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// One that says why it has no coordinator, where this test is started as that.
#[test]
fn an_ordinary_process() {
    let Ok(processor) = env::var(TOLD_ORDINARY) else {
        return;
    };
    let options = Options {
        rank: Rank::Fair,
        together: Some(Coordinated::on(processor.parse().unwrap()).into()),
        ..Options::default()
    };
    match Upcalls::start(options) {
        Err(error) => println!("it says: {error}"),
        Ok(_) => println!("there is a coordinator"),
    }
}

#[test]
fn where_no_coordinator_can_be_started_it_is_said_what_was_tried() {
    let bench = Bench::new();
    let own = env::current_exe().unwrap();
    let beside = own.parent().unwrap().join("laxity");
    assert!(!beside.exists(), "{beside:?}");
    let cases = [
        (
            None,
            vec![
                beside.to_str().unwrap(),
                "PATH",
                "LAXITY_COORDINATOR",
                "cargo install",
            ],
        ),
        (
            Some("/nonexistent/laxity"),
            vec![
                "`/nonexistent/laxity`",
                "No such file",
                "LAXITY_COORDINATOR",
            ],
        ),
        (
            Some("/bin/false"),
            vec!["`/bin/false`", "exit status: 1", "LAXITY_COORDINATOR"],
        ),
        (
            Some("/bin/true"),
            vec!["`/bin/true`", "exit status: 0", "LAXITY_COORDINATOR"],
        ),
    ];
    for (starts, parts) in cases {
        let said = started_by(starts.map(Path::new), &bench);
        for part in parts {
            assert!(said.contains(part), "{part} is not in {said}");
        }
    }
}

#[test]
fn where_nobody_serves_it_is_said_where_that_was_looked_for() {
    let bench = Bench::new();
    let sockets = bench.path("sockets");
    fs::create_dir(&sockets).unwrap();
    let list = |arguments: &[&str]| {
        let mut command = bench.command();
        command
            .args(["upcalls", "list", "--directory"])
            .arg(&sockets);
        let output = command.args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let directory = sockets.to_str().unwrap();
    assert_eq!(
        list(&[]),
        format!("No coordinator serves in {directory}.\n")
    );
    let of_one = format!("No coordinator serves processor 1 in {directory}.\n");
    assert_eq!(list(&["--processor", "1"]), of_one);
    let json: Value = serde_json::from_str(&list(&["--json"])).unwrap();
    assert_eq!(json["directory"], directory);
    assert_eq!(json["coordinators"], Value::Array(Vec::new()));
}

/// Nothing is listed of a directory that is not there, is none, or cannot be read: nobody knows who serves there.
#[test]
fn a_directory_that_tells_nothing_is_an_error() {
    let (bench, programs) = (Bench::new(), Bench::new());
    let (missing, file, closed) = (
        bench.path("missing"),
        bench.path("file"),
        bench.path("closed"),
    );
    fs::write(&file, "").unwrap();
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let list = |mut command: Command, directory: &Path, arguments: &[&str]| {
        command
            .args(["upcalls", "list", "--directory"])
            .arg(directory);
        let output = command.args(arguments).output().unwrap();
        assert_eq!(output.stdout, b"", "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(directory.to_str().unwrap()), "{said}");
        said
    };
    let all: [&[&str]; 3] = [&[], &["--json"], &["--processor", "1"]];
    for arguments in all {
        let said = list(bench.command(), &missing, arguments);
        assert!(said.contains("No such file or directory"), "{said}");
        let said = list(bench.command(), &file, arguments);
        assert!(said.contains("it is no directory"), "{said}");
        // Root may look everywhere.
        if let Some(command) = bench.command_without_rights(&programs) {
            let said = list(command, &closed, arguments);
            assert!(said.contains("Permission denied"), "{said}");
        }
    }
}

#[test]
fn a_process_that_is_stopped_is_shown_as_that() {
    let Some(house) = House::open() else {
        return;
    };
    let (mut one, other) = (house.start(), house.start());
    assert_eq!(one.does("create big 5"), "created");
    let all = || -> Vec<String> { house.list().into_iter().map(|told| told.1).collect() };
    assert_eq!(all(), ["here", "here"]);
    let pid = Pid::from_child(&other.child);
    kill_process(pid, Signal::STOP).unwrap();
    until("it is stopped", || all() == ["here", "stopped"]);
    kill_process(pid, Signal::CONT).unwrap();
    until("it goes on", || all() == ["here", "here"]);
}

#[test]
fn a_coordinator_is_started_on_demand_admits_for_all_and_ends_by_itself() {
    let Some(house) = House::open() else {
        return;
    };
    let (mut one, mut other) = (house.start(), house.start());
    assert_eq!(one.does("create big 5"), "created");
    assert_eq!(other.does("create small 2"), "created");
    let here = || "here".to_owned();
    assert_eq!(
        house.list(),
        [
            (one.number(), here(), vec!["big".to_owned()]),
            (other.number(), here(), vec!["small".to_owned()])
        ]
    );
    let shown = house.upcalls(&["list"]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains("2 processes, 2 upcalls") && shown.contains("small"),
        "{shown}"
    );
    let refused = other.does("create more 3");
    assert!(refused.starts_with("not admitted"), "{refused}");
    until("both are called", || {
        one.calls("big") > 3 && other.calls("small") > 3
    });
    // Another one is not needed, and is not an error.
    let second = house
        .upcalls(&["serve", "--processor", &house.processor])
        .output()
        .unwrap();
    assert!(second.status.success(), "{second:?}");
    assert!(String::from_utf8_lossy(&second.stderr).contains("has a coordinator already"));
    drop((one, other));
    until("the coordinator ends", || house.coordinator().is_none());
    let shown = house.upcalls(&["list"]).output().unwrap();
    assert!(shown.stdout.starts_with(b"No coordinator serves in "));
}

#[test]
fn a_dead_process_is_told_to_its_peers_and_what_it_had_is_theirs_when_they_have_settled_that() {
    let Some(house) = House::open() else {
        return;
    };
    let (mut one, mut other) = (house.start(), house.start());
    assert_eq!(one.does("create big 5"), "created");
    assert_eq!(other.does("create small 2"), "created");
    let dead = one.number();
    drop(one);
    until("it is told", || {
        other.does("departed") == format!("[{dead}]")
    });
    assert_eq!(other.does("settle"), "settled");
    until("what it had is free", || {
        other.does("create more 5") == "created"
    });
    assert_eq!(house.list().len(), 1);
}

/// Killed five times, each time just before one of them asks.
#[test]
fn where_the_coordinator_is_killed_all_goes_on_and_no_more_is_granted_than_there_is() {
    let Some(house) = House::open() else {
        return;
    };
    let (mut one, mut other) = (house.start(), house.start());
    assert_eq!(one.does("create big 5"), "created");
    for round in 0..5 {
        let calls = one.calls("big");
        kill_process(house.coordinator().expect("it serves"), Signal::KILL).unwrap();
        let name = format!("small-{round}");
        let answer = other.does(&format!("create {name} {}", if round == 0 { 2 } else { 3 }));
        match round {
            0 => assert_eq!(answer, "created"),
            _ => assert!(answer.starts_with("not admitted"), "{answer}"),
        }
        until("it is called still", || one.calls("big") > calls + 2);
        until("another one serves", || house.coordinator().is_some());
    }
    assert_eq!(house.names(), ["big", "small-0"]);
}
