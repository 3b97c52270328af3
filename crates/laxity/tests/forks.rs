//! A thread that holds a reservation forks: what it holds is the parent's alone, and the child may have its own. Needs the right to schedule.
#![allow(unsafe_code, reason = "forks without another program")]

use laxity::{Enforcer, Error, Grade, Request, Reserved, Service, Span, now};
use laxity_linux::doctor::rights::{self, Right};
use laxity_linux::os::cpuset::CpuSet;
use laxity_linux::os::sched::{self, Policy, Tid};

const MS: fn(u64) -> Span = Span::from_millis;

/// A child that panics exits, too, and is no second test.
struct Exits;

impl Drop for Exits {
    fn drop(&mut self) {
        // SAFETY: takes a number.
        unsafe { libc::_exit(99) }
    }
}

fn work_for(span: Span) {
    let until = now() + span;
    while now() < until {
        std::hint::spin_loop();
    }
}

/// What a child finds that inherits this, as the number with which it exits; 0 is what it ought to.
fn found_by_a_child(request: &Request, inherited: Reserved, processors: &CpuSet) -> i32 {
    if inherited.delivery().is_ok() || inherited.grade() == Grade::Enforced {
        return 1;
    }
    let own = Tid::current();
    if !matches!(sched::policy(own), Ok(Policy::Other { .. })) {
        return 2;
    }
    // It has those of the slots, as all that a holder starts.
    if sched::set_affinity(own, processors).is_err() {
        return 3;
    }
    let Ok(reserved) = request.reserve() else {
        return 4;
    };
    // What is forgotten then is not what the child holds.
    drop(inherited);
    if !matches!(request.reserve(), Err(Error::AlreadyReserved { .. })) {
        return 5;
    }
    work_for(MS(100));
    match reserved.delivery() {
        Ok(seen) if seen.service > Service::ZERO => {}
        _ => return 6,
    }
    drop(reserved);
    match request.reserve() {
        Ok(_) => 0,
        Err(_) => 7,
    }
}

#[test]
fn what_a_thread_holds_is_not_what_its_child_holds() {
    let needed = [Right::RealTime, Right::Deadline, Right::Processors(2)];
    let Some(_live) = rights::require(&needed) else {
        return;
    };
    let asked = Request::new(Service::from_millis(2), MS(8)).unwrap();
    let slots = || asked.clone().by(Enforcer::Slots);
    for request in [asked.clone(), slots(), slots().confined()] {
        let processors = sched::affinity(Tid::current()).unwrap();
        let reserved = request.reserve().unwrap();
        // SAFETY: the child calls nothing that another thread may hold a lock of, and exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let _exits = Exits;
            // SAFETY: both take numbers.
            unsafe {
                libc::alarm(20);
                libc::_exit(found_by_a_child(&request, reserved, &processors))
            }
        }
        let mut status = -1;
        // SAFETY: the number is there.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!((waited, status), (child, 0), "{request:?}");
        let before = reserved.delivery().unwrap().service;
        work_for(MS(100));
        assert!(reserved.delivery().unwrap().service > before);
        drop(reserved);
        assert_eq!(sched::affinity(Tid::current()).unwrap(), processors);
    }
}
