//! What is left when the process that confined others is killed: nothing.
//!
//! A program of its own instead of tests in the usual frame, since it starts itself again as the process to be killed.

mod common;

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::guardian_of;
use laxity_linux::doctor::rights::{self, Right};
use laxity_linux::enforce::confine::{FairQuota, Freezer};
use laxity_linux::enforce::guardian;
use laxity_linux::host::command::{ProcessGroup, RunningCommand};
use laxity_linux::os::proc::stat_of;
use laxity_linux::os::sched::{self, Policy, Tid};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

type Outcome = Result<(), Box<dyn Error>>;

/// Long enough for any machine; what is waited for is an event, and comes in milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

fn main() -> Outcome {
    if let Some(process) = std::env::args().skip_while(|arg| arg != "--confine").nth(1) {
        return confine_and_wait(process.parse()?);
    }
    // First of all: who asks for rights may start one.
    check("one_that_could_not_start_starts_later", started_later)?;
    let Some(_live) = rights::require(&[Right::Freezer, Right::RealTime]) else {
        return Ok(());
    };
    check(
        "a_killed_process_leaves_no_frozen_process_and_no_group",
        killed_parent,
    )?;
    check(
        "a_killed_guardian_is_replaced_and_nothing_is_lost",
        killed_guardian,
    )?;
    check("a_freezer_stops_lets_go_and_vanishes", freezer_in_peace)?;
    if rights::missing(Right::FairQuota).is_none() {
        check("a_quota_confines_to_a_thousandth", quota)?;
    }
    Ok(())
}

fn check(name: &str, test: fn() -> Outcome) -> Outcome {
    test().map_err(|error| format!("{name}: {error}"))?;
    println!("test {name} ... ok");
    Ok(())
}

/// Nobody has started one here.
fn started_later() -> Outcome {
    let limits = getrlimit(Resource::Nofile);
    let current = Some(0);
    setrlimit(Resource::Nofile, Rlimit { current, ..limits })?;
    let refused = guardian::start().is_err();
    setrlimit(Resource::Nofile, limits)?;
    expect(refused, "no descriptor was left, and it started")?;
    guardian::start()?;
    Ok(())
}

/// The process to be killed: freezes a foreign process and a child of its own, says so, and waits.
fn confine_and_wait(process: i32) -> Outcome {
    let freezer = Freezer::create("test")?;
    let mut sleep = Command::new("sleep");
    sleep.arg("1000");
    let child = RunningCommand::start(sleep, ProcessGroup::Own, |_| Ok(()))?;
    freezer.add(process)?;
    // As whoever is started in slots has it, seen or not.
    sched::set_policy_inherited(Tid(process), Policy::Fifo(80))?;
    freezer.add(child.id().0)?;
    freezer.freeze()?;
    let group = group_of(process)?;
    let directory = mount_point()?.join(group.trim_start_matches('/'));
    until("all frozen", || frozen(&directory))?;
    println!("{} {group}", child.id());
    // Looks after its guardian as a run does.
    let guardian = guardian::start()?;
    loop {
        if guardian.replace_if_dead()? {
            println!("another");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A child that is killed and reaped with this.
struct Sleeper(Child);

impl Sleeper {
    fn start(program: &str, args: &[&str]) -> Result<Self, Box<dyn Error>> {
        Ok(Self(Command::new(program).args(args).spawn()?))
    }

    fn id(&self) -> i32 {
        self.0.id() as i32
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        // A child that has ended already is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The first guardian is killed, then the process that it guarded; everything is given back all the same.
fn killed_guardian() -> Outcome {
    killed(|victim, told| {
        let mut guardian = None;
        until("it has taken its name", || {
            guardian = guardian_of(victim);
            guardian.is_some()
        })?;
        let guardian = guardian.ok_or("no guardian")?;
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(guardian).ok_or("no process")?,
            rustix::process::Signal::KILL,
        )?;
        let mut line = String::new();
        told.read_line(&mut line)?;
        expect(line == "another\n", "its death is noticed")?;
        // It begins its life by taking its name.
        until(
            "another has taken its place",
            || matches!(guardian_of(victim), Some(another) if another != guardian),
        )
    })
}

fn killed_parent() -> Outcome {
    killed(|_, _| Ok(()))
}

/// A process that froze others is killed, after something was done to it: nothing of what it did stays behind.
fn killed(before: impl FnOnce(u32, &mut dyn BufRead) -> Outcome) -> Outcome {
    let foreign = Sleeper::start("sleep", &["1000"])?;
    let home = group_of(foreign.id())?;
    let mut victim = Command::new(std::env::current_exe()?)
        .args(["--confine", &foreign.id().to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .map(Sleeper)?;
    let mut line = String::new();
    let mut stdout = BufReader::new(victim.0.stdout.take().ok_or("no pipe")?);
    stdout.read_line(&mut line)?;
    let (child, group) = line.trim().split_once(' ').ok_or("the victim failed")?;
    let directory = mount_point()?.join(group.trim_start_matches('/'));
    expect(group != home, "the foreign process was moved")?;
    expect(frozen(&directory), "its group is frozen")?;
    before(victim.0.id(), &mut stdout)?;

    drop(victim);
    until("the group is gone", || !directory.exists())?;
    until("the foreign process is home", || {
        group_of(foreign.id()).is_ok_and(|group| group == home)
    })?;
    until("the foreign process has no rank", || {
        sched::policy(Tid(foreign.id())).is_ok_and(|policy| !policy.is_real_time())
    })?;
    let child = format!("/proc/{child}");
    until("the victim's child is gone", || !Path::new(&child).exists())?;
    // A process that is not frozen takes a signal at once.
    drop(foreign);
    Ok(())
}

fn freezer_in_peace() -> Outcome {
    let spinner = Sleeper::start("sh", &["-c", "while :; do :; done"])?;
    let freezer = Freezer::create("test")?;
    freezer.add(spinner.id())?;
    let directory = mount_point()?.join(group_of(spinner.id())?.trim_start_matches('/'));
    freezer.freeze()?;
    until("frozen", || frozen(&directory))?;
    let stopped = processor_ticks(spinner.id())?;
    std::thread::sleep(Duration::from_millis(60));
    expect(
        processor_ticks(spinner.id())? == stopped,
        "no time while frozen",
    )?;
    freezer.thaw()?;
    until("it runs again", || {
        processor_ticks(spinner.id()).is_ok_and(|ticks| ticks > stopped)
    })?;
    let elsewhere = Freezer::create("other")?;
    expect(
        elsewhere.add(spinner.id()).is_err(),
        "a process of another group is refused",
    )?;
    drop(freezer);
    expect(!directory.exists(), "the group is removed")?;
    expect(
        Path::new(&format!("/proc/{}", spinner.id())).exists(),
        "the process lives on",
    )
}

fn quota() -> Outcome {
    let spinner = Sleeper::start("sh", &["-c", "while :; do :; done"])?;
    let quota = FairQuota::create("test", 100_000)?;
    quota.add(spinner.id())?;
    // Real-time it runs whatever the quota says.
    let (own, before) = (Tid(spinner.id()), processor_ticks(spinner.id())?);
    sched::set_policy(own, Policy::Fifo(80))?;
    until("it runs in the slot", || {
        processor_ticks(spinner.id()).is_ok_and(|ticks| ticks > before + 4)
    })?;
    sched::set_policy(own, Policy::Other { nice: 0 })?;
    let before = processor_ticks(spinner.id())?;
    std::thread::sleep(Duration::from_secs(1));
    let used = processor_ticks(spinner.id())? - before;
    // 1 ms in a second, in slices of up to 5 ms for each of two periods: one or two ticks of 10 ms. The rest is for halts of the machine, which whoever runs then is charged; without a quota it
    // takes what there is.
    expect(
        used <= 20,
        &format!("{used} ticks of 10 ms in a second outside the slot"),
    )
}

/// Waits for something that must come.
fn until(what: &str, mut condition: impl FnMut() -> bool) -> Outcome {
    let begun = Instant::now();
    while !condition() {
        if begun.elapsed() > PATIENCE {
            return Err(format!("in vain: {what}").into());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

fn expect(condition: bool, what: &str) -> Outcome {
    if condition {
        Ok(())
    } else {
        Err(format!("not so: {what}").into())
    }
}

/// The cgroup of version 2 that a process is in.
fn group_of(process: i32) -> Result<String, Box<dyn Error>> {
    let groups = fs::read_to_string(format!("/proc/{process}/cgroup"))?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"));
    Ok(own.ok_or("no cgroup of version 2")?.to_owned())
}

fn mount_point() -> Result<PathBuf, Box<dyn Error>> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let line = mounts
        .lines()
        .find(|line| line.split(' ').nth(2) == Some("cgroup2"));
    Ok(line
        .and_then(|line| line.split(' ').nth(1))
        .ok_or("not mounted")?
        .into())
}

fn frozen(directory: &Path) -> bool {
    fs::read_to_string(directory.join("cgroup.events"))
        .is_ok_and(|text| text.lines().any(|line| line == "frozen 1"))
}

/// User and system time of a process, in ticks of 10 ms.
fn processor_ticks(process: i32) -> Result<u64, Box<dyn Error>> {
    let ticks = |field| stat_of::<u64>(Tid(process), field);
    Ok(ticks(14)? + ticks(15)?)
}
