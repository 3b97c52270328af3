//! Programs that are started: what they have when they begin, how their end is told, and what is left of them: nothing.
#![allow(unsafe_code)]

mod common;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, PipeReader, Read, pipe};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use laxity_linux::doctor::rights::{self, Right};
use laxity_linux::host::command::{
    EndError, Ended, Held, ProcessGroup, RunningCommand, StartError,
};
use laxity_linux::os::clock;
use laxity_linux::os::cpuset::CpuSet;
use laxity_linux::os::proc::stat_of;
use laxity_linux::os::sched;
use laxity_model::{HostError, Scheduling, Service};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{
    CapabilitySet, capabilities, configure_capability_in_ambient_set, set_capabilities,
};

fn nowhere(_: &Held) -> Result<(), HostError> {
    Ok(())
}

/// A shell with this script, and what it and all that it starts print.
fn shell(
    script: &str,
    place: impl FnOnce(&Held) -> Result<(), HostError>,
) -> (RunningCommand, BufReader<PipeReader>) {
    let (reader, writer) = pipe().expect("a pipe");
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdout(writer);
    let running = RunningCommand::start(command, ProcessGroup::Own, place).expect("a shell");
    (running, BufReader::new(reader))
}

fn line(output: &mut BufReader<PipeReader>) -> String {
    let mut line = String::new();
    output.read_line(&mut line).expect("a pipe can be read");
    line.trim_end().to_owned()
}

/// How it ended by itself, once everything has ended.
fn by_itself(running: RunningCommand) -> Result<Option<Ended>, EndError> {
    running.end().map(|end| end.by_itself)
}

/// Waits until it has ended by itself.
fn ended(running: &mut RunningCommand) -> Ended {
    let mut how = None;
    common::until("it has ended", || {
        how = running.ended().expect("its keeper lives");
        how.is_some()
    });
    how.expect("it has ended")
}

#[test]
fn it_and_its_first_children_run_where_and_as_it_was_placed() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let own = sched::affinity(sched::Tid::current()).expect("ours");
    let cpu = own.iter().last().expect("one at least");
    for _ in 0..20 {
        // Forked before anybody outside could see the shell.
        let script = "cat /proc/self/stat & cat /proc/self/stat; wait; grep Cpus_allowed_list /proc/self/status";
        let (running, mut output) = shell(script, |held| {
            held.schedule(Scheduling::Fifo(7), &CpuSet::single(cpu))
        });
        for _ in 0..2 {
            let stat = line(&mut output);
            let (_, fields) = stat.rsplit_once(") ").expect("a name");
            let fields: Vec<&str> = fields.split(' ').collect();
            // Priority and policy are the fields 40 and 41 of proc_pid_stat(5); the third is the first here.
            assert_eq!((fields[37], fields[38]), ("7", "1"), "{stat}");
        }
        let allowed = line(&mut output);
        assert_eq!(allowed.split_whitespace().last(), Some(&*cpu.to_string()));
        drop(running);
    }
}

#[test]
fn whatever_it_started_ends_with_it() {
    // A daemon, a session of its own, and a chain of orphans; none of them in its group or below it.
    let script = "
        (setsid sh -c 'sleep 1000 & echo daemon; exec sleep 1000' &)
        setsid setsid sh -c 'echo session; (sleep 1000; echo late) & exec sleep 1000' &
        (((sleep 1000 & echo orphan) &) &)
        exec sleep 1000";
    let (running, mut output) = shell(script, nowhere);
    let mut there: Vec<String> = (0..3).map(|_| line(&mut output)).collect();
    there.sort();
    assert_eq!(there, ["daemon", "orphan", "session"]);
    assert_eq!(by_itself(running), Ok(None));
    // The pipe ends when nobody holds its other end: when all are gone. Otherwise this test never ends.
    assert_eq!(line(&mut output), "");
}

#[test]
fn an_end_by_itself_is_told_with_its_code_or_signal() {
    let before = clock::now();
    let (mut running, _output) = shell("exit 3", nowhere);
    let how = ended(&mut running);
    assert_eq!(how.status.code(), Some(3));
    assert!(before < how.at && how.at < clock::now());
    assert_eq!(by_itself(running), Ok(Some(how)));

    let (mut running, _output) = shell("sleep 1000 & kill -USR1 $$; wait", nowhere);
    let how = ended(&mut running);
    assert_eq!(how.status.signal(), Some(Signal::USR1.as_raw()));
    assert_eq!(by_itself(running), Ok(Some(how)));

    let (running, mut output) = shell("echo there; exec sleep 1000", nowhere);
    assert_eq!(line(&mut output), "there");
    running.signal(Signal::TERM).expect("ours");
    // From then on its keeper sees it, before it is told to end anything.
    let mut polled = [PollFd::new(&running, PollFlags::IN)];
    poll(&mut polled, None).expect("it can be polled");
    let how = by_itself(running).expect("kept").expect("by a signal");
    assert_eq!(how.status.signal(), Some(Signal::TERM.as_raw()));
}

#[test]
fn what_never_executes_is_an_error_and_leaves_nothing() {
    let start =
        |program, place| RunningCommand::start(Command::new(program), ProcessGroup::Own, place);
    let missing = start("/no/such/program", nowhere as fn(&Held) -> _).unwrap_err();
    assert!(matches!(missing, StartError::NotStarted(_)), "{missing}");
    assert!(missing.to_string().contains("No such file"), "{missing}");

    let directory = tempfile::tempdir().expect("a directory");
    let mark = directory.path().join("ran");
    let mut command = Command::new("touch");
    command.arg(&mark);
    let mut held_id = None;
    let refused = RunningCommand::start(command, ProcessGroup::Own, |held| {
        held_id = Some(held.id());
        Err(HostError::Refused("no room".into()))
    });
    let refused = refused.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "cannot be placed: not admitted: no room"
    );
    let held_id = held_id.expect("it was there");
    assert!(!Path::new(&format!("/proc/{held_id}")).exists());
    assert!(!mark.exists());
}

/// The kernel says that of none of them, and nothing where there are others besides.
#[test]
fn processors_that_may_not_be_used_are_told_with_those_that_may() {
    for asked in ["900", "0,900"] {
        let cpus = CpuSet::parse(asked).expect("numbers");
        let place = |held: &Held| held.schedule(sched::Policy::Other { nice: 19 }, &cpus);
        let refused = RunningCommand::start(Command::new("true"), ProcessGroup::Own, place);
        let told = refused.unwrap_err().to_string();
        let words = "processor 900 may not be used, only 0";
        assert!(told.contains(words), "{asked}: {told}");
    }
}

#[test]
fn others_can_be_left_alone() {
    let (mut running, mut output) = shell("sleep 1000 & echo $!", nowhere);
    let other: i32 = line(&mut output).parse().expect("a process");
    let how = ended(&mut running);
    assert_eq!(
        running.leave_others().map(|end| end.by_itself),
        Ok(Some(how))
    );
    let other = Pid::from_raw(other).expect("a process");
    // It is there to be killed.
    kill_process(other, Signal::KILL).expect("it is ours");
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("a pipe");
}

/// The process that looks after it.
fn keeper_of(running: &RunningCommand) -> Pid {
    let keeper: i32 = stat_of(running.id(), 4).expect("a parent");
    assert_ne!(keeper as u32, std::process::id());
    Pid::from_raw(keeper).expect("a process")
}

/// A program, and something of it in a session of its own.
fn two() -> (RunningCommand, BufReader<PipeReader>) {
    let script = "setsid sh -c 'echo session; exec sleep 1000' & exec sleep 1000";
    let (running, mut output) = shell(script, nowhere);
    assert_eq!(line(&mut output), "session");
    (running, output)
}

#[test]
fn a_keeper_that_was_stopped_goes_on_and_leaves_nothing() {
    let (running, mut output) = two();
    kill_process(keeper_of(&running), Signal::STOP).expect("it is ours");
    let end = running.end().expect("it is let go on");
    assert!(end.by_itself.is_none() && end.keeper_was_stopped, "{end:?}");
    assert_eq!(line(&mut output), "");

    // What ends by itself is told, too.
    let (mut running, _output) = two();
    kill_process(keeper_of(&running), Signal::STOP).expect("it is ours");
    running.signal(Signal::TERM).expect("ours");
    assert_eq!(
        ended(&mut running).status.signal(),
        Some(Signal::TERM.as_raw())
    );
}

/// As one is that is frozen, or traced: it cannot be let go on.
#[test]
fn a_keeper_that_does_not_answer_is_ended_with_all_that_it_kept() {
    let (running, mut output) = two();
    let keeper = keeper_of(&running).as_raw_nonzero().get();
    // SAFETY: stops another process, until it is killed.
    let traced = unsafe {
        libc::ptrace(libc::PTRACE_SEIZE, keeper, 0, 0) == 0
            && libc::ptrace(libc::PTRACE_INTERRUPT, keeper, 0, 0) == 0
    };
    if !traced {
        rights::skip("processes may not be traced here");
        return;
    }
    assert_eq!(running.end(), Err(EndError::Silent));
    assert_eq!(line(&mut output), "");
}

#[test]
fn the_death_of_its_keeper_ends_it_and_is_told() {
    let (mut running, mut output) = shell("echo there; exec sleep 1000", nowhere);
    assert_eq!(line(&mut output), "there");
    kill_process(keeper_of(&running), Signal::KILL).expect("it is ours");
    // The pipe ends: the program is gone.
    assert_eq!(line(&mut output), "");
    common::until("it is told", || running.ended() == Err(EndError::Unwatched));
    assert_eq!(by_itself(running), Err(EndError::Unwatched));
}

#[test]
fn it_gets_no_right_that_its_user_has_not_got() {
    let own = capabilities(None).expect("ours");
    if !own
        .effective
        .contains(CapabilitySet::SETUID | CapabilitySet::SETPCAP)
    {
        rights::lacks("only root can become another user");
        return;
    }
    // A thread of its own: what it gives up cannot be had again. As of a file that is set-user-ID: another is the user, root acts.
    let nobody = 65_534;
    let status = std::thread::spawn(move || {
        let mut sets = own;
        sets.inheritable = CapabilitySet::SYS_NICE;
        set_capabilities(None, sets).expect("root may");
        configure_capability_in_ambient_set(CapabilitySet::SYS_NICE, true).expect("root may");
        // SAFETY: changes the rights of this thread only.
        let changed = unsafe { libc::syscall(libc::SYS_setresuid, nobody, 0, 0) };
        assert_eq!(changed, 0);
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("status");
        let mut command = Command::new("cat");
        let output = File::create(&path).expect("our directory");
        command.arg("/proc/self/status").stdout(output);
        let start = RunningCommand::start(command, ProcessGroup::Own, nowhere);
        let how = ended(&mut start.expect("cat"));
        assert!(how.status.success(), "{how:?}");
        fs::read_to_string(&path).expect("it was written")
    });
    let status = status.join().expect("no panic");
    let line = |name: &str| {
        let found = status.lines().find_map(|line| line.strip_prefix(name));
        found.expect(name).trim().to_owned()
    };
    assert_eq!(line("Uid:"), "65534\t65534\t65534\t65534");
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(line(set), "0000000000000000", "{set}");
    }
}

/// A loop of additions that ends by itself, in a process of its own, and one in a child that nobody waits for.
#[test]
fn what_it_and_all_it_started_took_is_told_at_the_end() {
    let spin = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done";
    let script =
        format!("({spin}); setsid sh -c '{spin}; echo late; exec sleep 1000' & exec sleep 1000");
    let (running, mut output) = shell(&script, nowhere);
    assert_eq!(line(&mut output), "late");
    let end = running.end().expect("kept");
    assert_eq!(end.by_itself, None);
    let service = end.service.expect("the kernel tells");
    assert!(service > Service::from_millis(2), "{service}");
}
