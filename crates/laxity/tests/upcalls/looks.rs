//! What costs nothing, or little: a look for a yield, a release that makes nobody yield, and to wake for one.

use std::io::{self, Read as _, Write as _, pipe};
use std::num::NonZeroU32;
use std::sync::mpsc;
use std::{fs, mem, process};

use laxity::upcall::First;
use laxity::upcalls::{Call, Guard, Options, Overhead, Region, Upcalls};
use laxity::{Service, Span, now};
use laxity_linux::doctor::rights::{self, Right};
use laxity_linux::os::usage;

use crate::endings::{is_child, succeeds};
use crate::{MS, fair, spec};

const LOOKS: u32 = 10_000;

/// Whether the C library reads the kernel's clock by itself here.
fn clock_needs_no_call() -> bool {
    let file = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source = fs::read_to_string(file).unwrap();
    ["tsc", "kvm-clock", "arch_sys_counter"].contains(&source.trim())
}

/// From now on the kernel ends the process at any system call of the calling thread but to read and to write.
#[allow(unsafe_code, reason = "nothing safe restricts a thread")]
fn call_nothing() -> io::Result<()> {
    let step = |code: u32, k: u32, jt: u8| libc::sock_filter {
        code: code as u16,
        jt,
        jf: 0,
        k,
    };
    let number = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let is_equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let mut steps = [
        step(number, 0, 0),
        step(is_equal, libc::SYS_read as u32, 2),
        step(is_equal, libc::SYS_write as u32, 1),
        step(libc::BPF_RET, libc::SECCOMP_RET_KILL_PROCESS, 0),
        step(libc::BPF_RET, libc::SECCOMP_RET_ALLOW, 0),
    ];
    let filter = libc::sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    let (zero, one): (libc::c_ulong, libc::c_ulong) = (0, 1);
    let mode = libc::c_ulong::from(libc::SECCOMP_MODE_FILTER);
    // SAFETY: the first takes numbers, the second a filter that lives until it returns; both are about this thread alone.
    let is_done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, one, zero, zero, zero) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter) == 0
    };
    match is_done {
        true => Ok(()),
        false => Err(io::Error::last_os_error()),
    }
}

/// The executor alone, and where others take turns with it; while nobody is more urgent, and when somebody is. So nobody is switched to for it either: nothing is asked for that waits, or wakes anybody.
#[test]
fn a_look_makes_no_system_call() {
    if !is_child() {
        if !clock_needs_no_call() {
            return rights::skip("the clock of this machine is read by a system call");
        }
        return succeeds("looks::a_look_makes_no_system_call");
    }
    let guard = Guard::without_threads(&Region::create().unwrap());
    for together in [None, guard.give(process::id()).map(Into::into)] {
        let upcalls = Upcalls::start(Options { together, ..fair() }).unwrap();
        let first = now() + MS * 20;
        let [mut urgent, mut long] = [spec("urgent", MS * 50), spec("long", MS * 100)];
        long.timing.first = First::At(first);
        urgent.timing.first = First::At(first + MS * 30);
        long.timing.pauses = true;
        let (mut told, tell) = pipe().unwrap();
        let (waits, ends) = pipe().unwrap();
        let urgent = upcalls.create(urgent, |_| ()).unwrap();
        let long = upcalls.create(long, move |call: &mut Call<'_>| {
            call_nothing().unwrap();
            for _ in 0..LOOKS {
                let _ = call.should_yield();
            }
            while !call.should_yield() {}
            for _ in 0..LOOKS {
                assert!(call.should_yield());
            }
            (&tell).write_all(b"x").unwrap();
            // For ever: what an executor does otherwise it may not do any more.
            let _ = (&waits).read(&mut [0]);
        });
        let long = long.unwrap();
        urgent.run().unwrap();
        long.run().unwrap();
        told.read_exact(&mut [0]).unwrap();
        // Nobody waits for its thread.
        mem::forget((upcalls, urgent, long, ends));
    }
}

/// The executor alone, and where others take turns with it. Somebody less urgent is released in the middle of each call, which looks all the time, and between its quanta: nobody is switched to for that, and no timer goes off. What an
/// interrupt or another thread does is no giving up of the processor; what a page fault does to a call is no matter.
#[test]
fn a_release_that_makes_nobody_yield_costs_no_switch() {
    const PARTS: u32 = 5;
    const CALLS: usize = 5;
    let guard = Guard::without_threads(&Region::create().unwrap());
    for together in [None, guard.give(process::id()).map(Into::into)] {
        let upcalls = Upcalls::start(Options { together, ..fair() }).unwrap();
        let first = now() + MS * 20;
        let [mut long, mut later] = ["long", "later"].map(|name| spec(name, MS * 50));
        long.timing.first = First::At(first);
        long.timing.batch = NonZeroU32::new(PARTS).unwrap();
        long.timing.pauses = true;
        long.service = Service::from_millis(2);
        long.deadline = Some(MS * 40);
        later.timing.first = First::At(first + MS * 2);
        let (tell, told) = mpsc::channel();
        let later = upcalls.create(later, |_| ()).unwrap();
        let (mut before, mut left) = (0, CALLS);
        let long = upcalls.create(long, move |call: &mut Call<'_>| {
            if call.done() == 0 {
                before = usage::waits();
            }
            let until = call.paced.release + MS * u64::from(call.done() + 1);
            while now() < until {
                assert!(!call.should_yield());
            }
            if call.done() + call.now() == PARTS {
                tell.send(usage::waits() - before).unwrap();
                left -= 1;
                if left == 0 {
                    call.suspend();
                }
            }
        });
        let long = long.unwrap();
        later.run().unwrap();
        long.run().unwrap();
        let mut waits: Vec<u64> = told.iter().take(CALLS).collect();
        waits.sort_unstable();
        assert_eq!(waits[CALLS / 2], 0, "{waits:?}");
        assert_eq!(long.close().unwrap().yields, 0);
        assert!(later.close().unwrap().calls > 0);
    }
}

/// Most calls begin within what admission adds for that; what the machine does to the others is no matter.
#[test]
fn most_calls_begin_as_soon_after_their_release_as_admission_expects() {
    const CALLS: usize = 400;
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let upcalls = Upcalls::start(Options::default()).unwrap();
    let (tell, told) = mpsc::channel();
    let ticks = upcalls.create(spec("ticks", MS), move |call| {
        let _ = tell.send(call.began.saturating_since(call.paced.release));
    });
    let ticks = ticks.unwrap();
    ticks.run().unwrap();
    let mut late: Vec<Span> = told.iter().take(CALLS).collect();
    ticks.close().unwrap();
    late.sort_unstable();
    let (usual, expected) = (late[CALLS / 2], Overhead::default().late);
    assert!(usual <= expected, "{usual}, where {expected} is expected");
}
