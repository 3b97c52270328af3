//! What befalls a process at a call of one of its upcalls.

#![allow(unsafe_code, reason = "pages that are missing, debuggers and forks")]

use std::os::unix::process::CommandExt as _;
use std::process::{self, Command};
use std::sync::mpsc::{self, Sender};
use std::time::Duration;
use std::{io, ptr, thread};

use laxity::upcalls::{Call, State, Upcalls};
use laxity::{Instant, now};
use laxity_linux::os::clock;
use rustix::ioctl::{Updater, ioctl, opcode};
use rustix::mm::{
    Advice, MapFlags, ProtFlags, UserfaultfdFlags, madvise, mmap_anonymous, munlock, userfaultfd,
};
use rustix::process::{Pid, Signal, kill_process};

use crate::{MS, NAP, spec};

/// So long it is away.
const AWAY: Duration = Duration::from_millis(200);
/// Before why something cannot befall anybody here.
pub(crate) const CANNOT: &str = "cannot: ";
/// Before how long a fork took, in ns.
pub(crate) const FORKED: &str = "forked ";

/// At a call of the slower of two upcalls this happens, just when one of the test's own process is released.
pub(crate) fn befallen(upcalls: &Upcalls, first: Instant, hit: &str) {
    let (tell, told) = mpsc::channel();
    let said = tell.clone();
    let fast = upcalls.create(spec("fast", 10, first), move |call: &mut Call<'_>| {
        let times = [call.paced.release, call.began].map(Instant::as_nanos);
        let _ = said.send(format!("fast {} {}", times[0], times[1]));
    });
    let page = (hit == "faults").then(missing_page);
    let (mut calls, hit) = (0, hit.to_owned());
    let slow = upcalls.create(spec("slow", 20, first), move |call: &mut Call<'_>| {
        calls += 1;
        if calls == 6 {
            let _ = tell.send("hit".to_owned());
            match (&*hit, &page) {
                ("faults", Some(Ok(page))) => read(*page),
                ("faults", page) => drop(tell.send(format!("{CANNOT}{page:?}"))),
                // The child has no upcalls: its handler returns to nobody.
                ("forks", _) => {
                    let began = now();
                    if is_forked() {
                        return thread::sleep(AWAY);
                    }
                    let took = now().saturating_since(began);
                    let _ = tell.send(format!("{FORKED}{}", took.as_nanos()));
                }
                (hit, _) => happens(hit, first, &tell),
            }
            let _ = tell.send("back".to_owned());
        }
        if calls == 9 {
            call.end();
        }
    });
    let (fast, slow) = (fast.unwrap(), slow.unwrap());
    fast.run().unwrap();
    slow.run().unwrap();
    println!("ready");
    upcalls.sleep(&[&slow]).unwrap();
    drop(fast);
    if let Some(why) = upcalls.failure() {
        println!("{why}");
    }
    told.try_iter().for_each(|said| println!("{said}"));
    println!("{:?}", slow.state() == State::Ended);
}

fn happens(hit: &str, first: Instant, tell: &Sender<String>) {
    let own = Pid::from_raw(process::id().cast_signed()).unwrap();
    match hit {
        "sleeps" => thread::sleep(AWAY),
        "naps" => {
            let back = now() + NAP;
            let _ = tell.send(format!("naps {}", back.as_nanos()));
            clock::sleep_until(back);
        }
        "strays" => {
            thread::sleep(Duration::from_millis(30));
            while now() < first + MS * 1_500 {}
        }
        "stops" => kill_process(own, Signal::STOP).unwrap(),
        "dies" => kill_process(own, Signal::KILL).unwrap(),
        "spins" => while now() < first + MS * 1_500 {},
        "execs" => panic!(
            "{}",
            Command::new("sh")
                .args(["-c", "while :; do :; done"])
                .exec()
        ),
        "traced" => {
            // As at a breakpoint: whoever traces the thread is told, and has it stopped.
            // SAFETY: it takes a number.
            unsafe { libc::raise(libc::SIGTRAP) };
        }
        other => panic!("{other}"),
    }
}

/// Whether this is the child, of the two that return.
fn is_forked() -> bool {
    // SAFETY: the child allocates nothing and takes no lock.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "{}", io::Error::last_os_error());
    pid == 0
}

/// What the kernel is told of faults, by `linux/userfaultfd.h`: the version; of which pages; which page is one of zeros.
type Api = [u64; 3];
type Register = [u64; 4];
type Zeros = [u64; 4];

const GROUP: u8 = 0xaa;
/// Faults of programs only, which no right is needed for.
const USER_MODE_ONLY: u32 = 1;
/// Of pages that are not there.
const MISSING: u64 = 1;

/// The address of a page that is not there: whoever reads it sleeps, and it comes so long after.
fn missing_page() -> io::Result<usize> {
    let size = rustix::param::page_size();
    let flags = UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::from_bits_retain(USER_MODE_ONLY);
    // SAFETY: only the page that is mapped here is ever registered there.
    let faults = unsafe { userfaultfd(flags) }?;
    let (read_write, private) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new mapping, which overlaps nothing.
    let page = unsafe { mmap_anonymous(ptr::null_mut(), size, read_write, private) }?;
    let range = [page as u64, size as u64];
    let mut api: Api = [GROUP.into(), 0, 0];
    let mut register: Register = [range[0], range[1], MISSING, 0];
    // SAFETY: the codes are those of these structures, and the page is ours. Where the process's memory is locked it came with its mapping, and goes again: there is nothing in it.
    unsafe {
        ioctl(
            &faults,
            Updater::<{ opcode::read_write::<Api>(GROUP, 0x3f) }, Api>::new(&mut api),
        )?;
        ioctl(
            &faults,
            Updater::<{ opcode::read_write::<Register>(GROUP, 0) }, Register>::new(&mut register),
        )?;
        munlock(page, size)?;
        madvise(page, size, Advice::LinuxDontNeed)?;
    }
    thread::spawn(move || {
        // One message for the one fault.
        let mut message = [0; 32];
        rustix::io::read(&faults, &mut message).unwrap();
        thread::sleep(AWAY);
        let mut zeros: Zeros = [range[0], range[1], 0, 0];
        // SAFETY: the code is that of this structure, and the page is not there.
        let brought = unsafe {
            ioctl(
                &faults,
                Updater::<{ opcode::read_write::<Zeros>(GROUP, 4) }, Zeros>::new(&mut zeros),
            )
        };
        brought.unwrap();
    });
    Ok(page as usize)
}

fn read(page: usize) {
    // SAFETY: it is mapped as long as the process lives.
    let _ = unsafe { (page as *const u8).read_volatile() };
}

/// A debugger of one thread, as the thread of the test that has it is.
pub(crate) struct Tracer(i32);

impl Tracer {
    /// `None` where nobody may be traced.
    pub(crate) fn seize(thread: u32) -> Option<Self> {
        let thread = thread.cast_signed();
        // SAFETY: it takes numbers, and the thread goes on.
        let seized = unsafe { libc::ptrace(libc::PTRACE_SEIZE, thread, 0, 0) };
        (seized == 0).then_some(Self(thread))
    }

    /// It was stopped, and goes on as if there had been no signal.
    pub(crate) fn lets_go(self) {
        let mut status = 0;
        let at_once = libc::WNOHANG | libc::__WALL;
        // SAFETY: a thread that is traced, and a number of ours.
        let stopped = unsafe { libc::waitpid(self.0, &raw mut status, at_once) };
        assert!(
            stopped == self.0 && libc::WIFSTOPPED(status),
            "{stopped}: {status}"
        );
        // SAFETY: it takes numbers.
        let gone = unsafe { libc::ptrace(libc::PTRACE_DETACH, self.0, 0, 0) };
        assert_eq!(gone, 0, "{}", io::Error::last_os_error());
    }
}
