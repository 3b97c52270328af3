//! `laxity upcalls`: executors of several processes with a coordinator that the first of them starts. This test starts itself again as the processes.

mod common;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::num::NonZeroU32;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
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
        coordinated: Some(Coordinated::on(processor.parse().unwrap())),
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
    assert_eq!(shown.stdout, b"No coordinator serves here.\n");
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
    let own = house.bench.path("process");
    let copied = Command::new("cp")
        .arg(env::current_exe().unwrap())
        .arg(&own)
        .status();
    assert!(copied.unwrap().success());
    let everybody = fs::Permissions::from_mode(0o755);
    fs::set_permissions(house.bench.path("."), everybody).unwrap();
    let quota = ["--share", "60%", "--quota", "1001=25%", "--linger", "100ms"];
    let mut serve = house.upcalls(&[
        "serve",
        "--ordinary",
        "--everyone",
        "--processor",
        &house.processor,
    ]);
    let mut serve = || {
        let child = serve.args(quota).spawn().unwrap();
        until("it serves", || {
            !house
                .upcalls(&["list"])
                .output()
                .unwrap()
                .stdout
                .starts_with(b"No")
        });
        child
    };
    let mut serving = serve();
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
    let mut serving = serve();
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
