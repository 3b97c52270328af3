//! What is left when the process that confined others is killed: nothing.
//!
//! A program of its own instead of tests in the usual frame, since it starts itself again as the process to be killed.

mod common;

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use laxity_linux::doctor::rights::{self, Right};
use laxity_linux::enforce::confine::{FairQuota, Freezer};
use laxity_linux::host::command::RunningCommand;
use laxity_linux::os::proc;
use laxity_linux::os::sched::{self, Policy, Tid};

type Outcome = Result<(), Box<dyn Error>>;

/// Long enough for any machine; what is waited for is an event, and comes in milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

fn main() -> Outcome {
    if let Some(process) = std::env::args().skip_while(|arg| arg != "--confine").nth(1) {
        return confine_and_wait(process.parse()?);
    }
    let _among_tests = common::live_lock();
    let Some(_live) = rights::require(&[Right::Freezer, Right::RealTime]) else {
        return Ok(());
    };
    check(
        "a_killed_process_leaves_no_frozen_process_and_no_group",
        killed_parent,
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

/// The process to be killed: freezes a foreign process and a child of its own, says so, and waits.
fn confine_and_wait(process: i32) -> Outcome {
    let freezer = Freezer::create("test")?;
    let child = RunningCommand::start(Command::new("sleep").arg("1000"))?;
    freezer.add(process)?;
    freezer.add(child.id().0)?;
    freezer.freeze()?;
    until("all frozen", || freezer.is_frozen().unwrap_or(false))?;
    println!("{} {}", child.id(), group_of(process)?);
    loop {
        std::thread::park();
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

fn killed_parent() -> Outcome {
    let foreign = Sleeper::start("sleep", &["1000"])?;
    let home = group_of(foreign.id())?;
    let mut victim = Command::new(std::env::current_exe()?)
        .args(["--confine", &foreign.id().to_string()])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    let stdout = victim.stdout.take().ok_or("no pipe")?;
    BufReader::new(stdout).read_line(&mut line)?;
    let (child, group) = line.trim().split_once(' ').ok_or("the victim failed")?;
    let directory = mount_point()?.join(group.trim_start_matches('/'));
    expect(group != home, "the foreign process was moved")?;
    expect(frozen(&directory), "its group is frozen")?;

    victim.kill()?;
    victim.wait()?;
    until("the group is gone", || !directory.exists())?;
    until("the foreign process is home", || {
        group_of(foreign.id()).is_ok_and(|group| group == home)
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
    until("frozen", || freezer.is_frozen().unwrap_or(false))?;
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
    let threads = proc::threads_of(spinner.0.id())?;
    FairQuota::enter(&threads)?;
    expect(
        sched::policy(Tid(spinner.id()))? == Policy::Fifo(80),
        "real-time in the slot",
    )?;
    FairQuota::leave(&threads)?;
    let before = processor_ticks(spinner.id())?;
    std::thread::sleep(Duration::from_secs(1));
    let used = processor_ticks(spinner.id())? - before;
    // 1 ms in a second, in slices of up to 5 ms for each of two periods: at most one tick of 10 ms, and one for rounding.
    expect(
        used <= 2,
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

fn mount_point() -> Result<std::path::PathBuf, Box<dyn Error>> {
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
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let (_, fields) = stat.rsplit_once(") ").ok_or("no name")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let field = |index: usize| fields.get(index).ok_or("too short");
    Ok(field(11)?.parse::<u64>()? + field(12)?.parse::<u64>()?)
}
