//! What becomes of upcalls and of their process: overruns that end it, forks, other programs, threads that end; and many that come and go.

use std::io::{Read, Seek as _, Write as _, pipe};
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{fs, panic, process, thread};

use laxity::upcall::{First, OnOverrun};
use laxity::upcalls::{
    Call, Error, Guard, Options, Pace, Region, State, Upcall, Upcalls, VirtualCall,
};
use laxity::{Service, Span, now};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{MS, fair, rests, spec};

const CHILD: &str = "LAXITY_TEST_CHILD";

/// Whether this is a process of the test's own.
pub(crate) fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// The test of this name in a process of its own.
fn child(name: &str) -> Output {
    command(name).output().unwrap()
}

fn command(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
    command.env(CHILD, "1");
    command
}

pub(crate) fn succeeds(name: &str) {
    let output = child(name);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// One that is called every millisecond, and how often it was.
pub(crate) fn ticking(upcalls: &Upcalls) -> (Upcall, Arc<AtomicU64>) {
    let calls = Arc::new(AtomicU64::new(0));
    let own = Arc::clone(&calls);
    let work = move |_: &mut Call| {
        own.fetch_add(1, Ordering::Relaxed);
    };
    let upcall = upcalls.create(spec("ticking", MS), work).unwrap();
    upcall.run().unwrap();
    (upcall, calls)
}

/// It is called another ten times.
pub(crate) fn goes_on(upcalls: &Upcalls, calls: &AtomicU64) {
    let until = calls.load(Ordering::Relaxed) + 10;
    while calls.load(Ordering::Relaxed) < until {
        assert_eq!(upcalls.sleep_until(&[], now()), Ok(vec![]));
        thread::yield_now();
    }
}

#[test]
fn an_overrun_ends_the_process_where_that_was_chosen() {
    if is_child() {
        let upcalls = Upcalls::start(fair()).unwrap();
        let mut spec = spec("long", MS);
        spec.timing.on_overrun = OnOverrun::EndProcess;
        let long = upcalls.create(spec, |call| {
            let until = call.paced.release + MS * 5;
            while now() < until {}
        });
        let long = long.unwrap();
        long.run().unwrap();
        upcalls.sleep(&[&long]).unwrap();
        loop {
            thread::park();
        }
    }
    let output = child("endings::an_overrun_ends_the_process_where_that_was_chosen");
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("long overran, and was to end its process"),
        "{said}"
    );
}

/// Whether anybody reads what is said of it or not, and whatever that is.
#[test]
fn an_overrun_ends_the_process_whatever_standard_error_is() {
    let (full, broken, read) = (pipe().unwrap(), pipe().unwrap().1, pipe().unwrap());
    let flags = fcntl_getfl(&full.1).unwrap();
    fcntl_setfl(&full.1, flags | OFlags::NONBLOCK).unwrap();
    while (&full.1).write(&[0; 4_096]).is_ok() {}
    fcntl_setfl(&full.1, flags).unwrap();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"before\n").unwrap();
    let (mut socket, other) = UnixStream::pair().unwrap();
    let ends: [OwnedFd; 5] = [
        full.1.into(),
        broken.into(),
        read.1.into(),
        file.try_clone().unwrap().into(),
        other.into(),
    ];
    for stderr in ends {
        let mut child = command("endings::an_overrun_ends_the_process_where_that_was_chosen")
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .unwrap();
        let until = now() + Span::from_secs(60);
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status,
                None if now() > until => child.kill().unwrap(),
                None => thread::sleep(Duration::from_millis(1)),
            }
        };
        assert_eq!(status.signal(), Some(libc::SIGABRT));
    }
    let said = |from: &mut dyn Read| {
        let mut said = String::new();
        from.read_to_string(&mut said).unwrap();
        said
    };
    file.rewind().unwrap();
    let line = "laxity: long overran, and was to end its process then\n";
    assert_eq!(said(&mut file), format!("before\n{line}"));
    assert_eq!(said(&mut socket), line);
    let mut read = read.0;
    assert_eq!(said(&mut read), line);
}

/// A child has no executor: what it asks for it is told so at once, and dropping what it has waits for nobody. The parent goes on.
#[test]
#[allow(unsafe_code, reason = "a fork without another program")]
fn a_forked_child_has_no_upcalls_and_its_parent_goes_on() {
    if !is_child() {
        return succeeds("endings::a_forked_child_has_no_upcalls_and_its_parent_goes_on");
    }
    let upcalls = Upcalls::start(fair()).unwrap();
    let (upcall, calls) = ticking(&upcalls);
    goes_on(&upcalls, &calls);
    let virtual_one = upcalls.create_virtual(VirtualCall::suspend);
    virtual_one.run();
    // SAFETY: the child allocates, which the C library makes safe after a fork, and takes no lock that another thread may hold.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let threads = fs::read_dir("/proc/self/task").unwrap().count();
        let refused = upcall.run() == Err(Error::Over) && upcalls.serve() == 0;
        let refused = refused && upcalls.bound(&upcall) == Err(Error::Over);
        let refused = refused && upcalls.list().is_empty() && upcalls.departed().is_empty();
        drop((upcall, virtual_one));
        drop(upcalls);
        // SAFETY: ends the child without what is to be done at an exit of the parent's.
        unsafe { libc::_exit(i32::from(threads != 1 || !refused)) };
    }
    let mut status = -1;
    // SAFETY: the child that was forked, and a number of ours.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!((waited, status), (pid, 0));
    goes_on(&upcalls, &calls);
    assert_eq!(upcall.state(), State::Active);
}

/// What it has done may make others later until nobody has anything to do; then its time is whoever's asks for it, who waits for that.
#[test]
fn whoever_is_closed_counts_until_nobody_has_anything_to_do() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let half = |name| {
        let mut spec = spec(name, MS);
        spec.service = Service::from_micros(500);
        spec
    };
    let first = upcalls.create(half("first"), |_| ()).unwrap();
    first.run().unwrap();
    while first.counts().calls == 0 {
        thread::yield_now();
    }
    let mut long = spec("long", MS * 1_000);
    long.timing.batch = NonZeroU32::new(2).unwrap();
    long.timing.first = First::At(now() + MS);
    let (tell, told) = mpsc::channel();
    let (go, goes) = mpsc::channel::<()>();
    let mut first = Some(first);
    let long = upcalls.create(long, move |call| {
        if let Some(first) = first.take() {
            return drop(first);
        }
        tell.send(()).unwrap();
        goes.recv().unwrap();
        call.suspend();
    });
    let long = long.unwrap();
    let bound = || upcalls.bound(&long).unwrap();
    let beside = bound();
    long.run().unwrap();
    // It is in its second quantum, and closed the other in its first.
    told.recv().unwrap();
    assert_eq!(upcalls.list().len(), 1);
    assert_eq!(bound(), beside);
    go.send(()).unwrap();
    drop(upcalls.create(half("second"), |_| ()).unwrap());
    assert!(bound() < beside);
}

/// A handler forks and returns in both. The child has called nobody when it ends, which it does there and then; its look for a yield is none of its parent's.
#[test]
#[allow(unsafe_code, reason = "a fork without another program")]
fn a_child_that_a_handler_forks_calls_none_and_ends_with_its_quantum() {
    if !is_child() {
        return succeeds(
            "endings::a_child_that_a_handler_forks_calls_none_and_ends_with_its_quantum",
        );
    }
    let guard = Guard::without_threads(&Region::create().unwrap());
    for together in [None, guard.give(process::id()).map(Into::into)] {
        let options = Options { together, ..fair() };
        let upcalls = Upcalls::start(options).unwrap();
        let (upcall, calls) = ticking(&upcalls);
        goes_on(&upcalls, &calls);
        let (reader, writer) = pipe().unwrap();
        let (tell, told) = mpsc::channel();
        let mut forked = false;
        let forks = upcalls.create(spec("forks", MS), move |call| {
            (&writer).write_all(&process::id().to_ne_bytes()).unwrap();
            if !std::mem::replace(&mut forked, true) {
                // SAFETY: the child allocates nothing and takes no lock.
                let pid = unsafe { libc::fork() };
                if pid == 0 {
                    let _ = call.should_yield();
                } else {
                    tell.send(pid).unwrap();
                }
            }
        });
        let forks = forks.unwrap();
        forks.run().unwrap();
        let (pid, mut status) = (told.recv().unwrap(), -1);
        let until = now() + Span::from_secs(60);
        // SAFETY: the child that was forked, and a number of ours.
        while unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } == 0 {
            if now() > until {
                // SAFETY: the child that was forked.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
            thread::yield_now();
        }
        assert_eq!(status, 0, "it ends by itself");
        goes_on(&upcalls, &calls);
        for upcall in [&upcall, &forks] {
            assert_eq!(upcall.state(), State::Active);
        }
        drop((forks, upcall, upcalls));
        let mut ids = Vec::new();
        (&reader).read_to_end(&mut ids).unwrap();
        let own = process::id().to_ne_bytes();
        assert!(ids.chunks(4).all(|id| id == own), "a child's was called");
    }
}

/// A program that the process starts, and one that it becomes, have one thread; the first leaves the upcalls as they are.
#[test]
fn other_programs_have_none_of_the_upcalls() {
    let list = "ls /proc/self/task | wc -l";
    let count = |output: Output| String::from_utf8(output.stdout).unwrap().trim().to_owned();
    let upcalls = Upcalls::start(fair()).unwrap();
    let (_upcall, calls) = ticking(&upcalls);
    goes_on(&upcalls, &calls);
    if is_child() {
        // Nothing of this process is left, if it can be done.
        panic!("{}", Command::new("sh").args(["-c", list]).exec());
    }
    let started = Command::new("sh").args(["-c", list]).output().unwrap();
    assert_eq!(count(started), "1");
    goes_on(&upcalls, &calls);
    let became = child("endings::other_programs_have_none_of_the_upcalls");
    assert!(became.status.success());
    assert!(count(became).ends_with(" 1"));
}

#[test]
fn upcalls_outlive_the_thread_that_made_them() {
    let made = thread::spawn(|| {
        let upcalls = Upcalls::start(fair()).unwrap();
        let made = ticking(&upcalls);
        (upcalls, made)
    });
    let (upcalls, (upcall, calls)) = made.join().unwrap();
    goes_on(&upcalls, &calls);
    assert!(upcall.close().unwrap().calls >= 10);
}

/// Told at once since when it is at work; whoever ends its executor meanwhile waits no longer than it likes, and leaves what the handler has until that comes back.
#[test]
fn a_handler_that_does_not_come_back_is_seen_and_left() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let (begins, begun) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let (dropped, drops) = mpsc::channel::<()>();
    let before = now();
    let stuck = upcalls.create(spec("stuck", MS), move |call| {
        let _kept = &dropped;
        begins.send(call.began).unwrap();
        let _ = goes_on.recv();
    });
    let stuck = stuck.unwrap();
    assert_eq!(stuck.counts().at_work_since, None);
    stuck.run().unwrap();
    let since = begun.recv().unwrap();
    assert!(since >= before);
    assert_eq!(stuck.counts().at_work_since, Some(since));
    assert_eq!(upcalls.list()[0].2.at_work_since, Some(since));
    assert_eq!(upcalls.close(MS * 20), Err(Error::NoAnswer(MS * 20)));
    assert_eq!(stuck.state(), State::Closed);
    assert_eq!(stuck.run(), Err(Error::Over));
    assert_eq!(drops.try_recv(), Err(mpsc::TryRecvError::Empty));
    go_on.send(()).unwrap();
    assert_eq!(drops.recv(), Err(mpsc::RecvError));
    assert_eq!(stuck.counts().calls, 1);
}

/// One that comes back in time has all that was its own dropped.
#[test]
fn an_executor_is_closed_when_its_handlers_are_dropped() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let (dropped, drops) = mpsc::channel::<()>();
    let upcall = upcalls.create(spec("kept", MS), move |_| drop(dropped.clone()));
    let upcall = upcall.unwrap();
    upcall.run().unwrap();
    upcalls.close(MS * 60_000).unwrap();
    assert_eq!(drops.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    assert_eq!(upcall.state(), State::Closed);
}

/// One of the executor's own ends its wait for that of an upcall.
#[test]
fn where_no_descriptors_are_left_who_asks_is_told_and_the_others_go_on() {
    if !is_child() {
        return succeeds(
            "endings::where_no_descriptors_are_left_who_asks_is_told_and_the_others_go_on",
        );
    }
    let upcalls = Upcalls::start(fair()).unwrap();
    let (_ticking, calls) = ticking(&upcalls);
    let (reader, mut writer) = pipe().unwrap();
    let mut fed = spec("fed", MS);
    fed.pace = Pace::Descriptor(Arc::new(OwnedFd::from(reader)));
    let limits = getrlimit(Resource::Nofile);
    let current = Some(3);
    setrlimit(Resource::Nofile, Rlimit { current, ..limits }).unwrap();
    let refused = upcalls.create(fed.clone(), |_| ()).map(drop);
    setrlimit(Resource::Nofile, limits).unwrap();
    let errno = libc::EMFILE;
    assert_eq!(refused, Err(Error::Descriptor { errno }));
    goes_on(&upcalls, &calls);
    let fed = upcalls.create(fed, |call: &mut Call<'_>| call.end());
    let fed = fed.unwrap();
    fed.run().unwrap();
    writer.write_all(b"x").unwrap();
    assert_eq!(rests(&upcalls, &fed), State::Ended);
    goes_on(&upcalls, &calls);
}

/// Descriptors, and resident pages.
fn possessions() -> (usize, u64) {
    let mut statm = String::new();
    fs::File::open("/proc/self/statm")
        .unwrap()
        .read_to_string(&mut statm)
        .unwrap();
    let pages = statm.split(' ').nth(1).unwrap().parse().unwrap();
    (fs::read_dir("/proc/self/fd").unwrap().count(), pages)
}

#[test]
fn a_hundred_thousand_come_and_go_and_leave_nothing() {
    const EACH: u64 = 24_900;
    if !is_child() {
        return succeeds("endings::a_hundred_thousand_come_and_go_and_leave_nothing");
    }
    let upcalls = Upcalls::start(fair()).unwrap();
    let come_and_go = |times: u64| {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..times {
                        let upcall = upcalls.create(spec("brief", MS * 100), |_| ());
                        upcall.unwrap().close().unwrap();
                    }
                });
            }
        });
    };
    come_and_go(100);
    let before = possessions();
    come_and_go(EACH);
    let after = possessions();
    assert_eq!(after.0, before.0);
    // Pages of 4 KiB: a word lost for each would be 200 of them.
    assert!(after.1 <= before.1 + 150, "{before:?} {after:?}");
    assert_eq!(upcalls.list(), []);
    let brief = || upcalls.create(spec("brief", MS * 1_000), |_| ());
    let all: Vec<_> = std::iter::repeat_with(brief)
        .map_while(Result::ok)
        .collect();
    assert_eq!(all.len(), 127);
}

/// What a panic leaves panics as well where it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("and again");
    }
}

#[test]
fn what_a_panic_leaves_ends_no_executor() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let said = State::Panicked("it left no message".to_owned());
    let called = upcalls.create(spec("called", MS), |_| panic::panic_any(Bomb));
    let called = called.unwrap();
    called.run().unwrap();
    assert_eq!(rests(&upcalls, &called), said);
    let made = upcalls.create_there(spec("made", MS), |()| -> fn(&mut Call<'_>) {
        panic::panic_any(Bomb)
    });
    assert!(matches!(made, Err(Error::Panicked(_))));
    let dropped = upcalls.create(spec("dropped", MS), {
        let bomb = Bomb;
        move |_| {
            let _kept = &bomb;
        }
    });
    dropped.unwrap().close().unwrap();
    let lives = upcalls
        .create(spec("lives", MS), |call: &mut Call<'_>| call.end())
        .unwrap();
    lives.run().unwrap();
    assert_eq!(rests(&upcalls, &lives), State::Ended);
    drop((called, lives));
    let unmade = Upcalls::sharing(fair(), || panic::panic_any(Bomb));
    assert!(matches!(unmade, Err(Error::Panicked(_))));
}
