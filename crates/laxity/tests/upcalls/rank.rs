//! What the executor's thread is, and who goes first there.

use std::num::NonZeroU32;
use std::sync::mpsc;
use std::thread;

use laxity::doctor::Cause;
use laxity::upcall::First;
use laxity::upcalls::{Error, Options, Policy, Rank, Upcalls};
use laxity::{Grade, Request, Service, Span, now};
use laxity_linux::doctor::rights::{self, Right};
use laxity_linux::os::cpuset::CpuSet;
use laxity_linux::os::sched::{self, Tid};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use crate::{MS, fair, spec};

#[test]
fn without_the_right_it_says_why_and_an_ordinary_thread_is_unenforced() {
    let (refused, fair) = thread::spawn(|| {
        let mut sets = capabilities(None).unwrap();
        sets.effective -= CapabilitySet::SYS_NICE;
        sets.permitted -= CapabilitySet::SYS_NICE;
        set_capabilities(None, sets).unwrap();
        let refused = Upcalls::start(Options::default()).map(drop).unwrap_err();
        (refused, Upcalls::start(fair()).unwrap().grade())
    })
    .join()
    .unwrap();
    assert!(matches!(fair, Grade::Unenforced { .. }));
    if rights::missing(Right::RealTime).is_some() {
        return rights::skip("there is no right that could be taken away");
    }
    let cause = &refused.diagnosis().expect("a right is missing").cause;
    assert_eq!(*cause, Cause::NoCapability("CAP_SYS_NICE"));
    assert!(refused.to_string().contains("remedy"), "{refused}");
}

/// What the executor's thread has, as a handler sees it.
fn seen_by_a_handler(options: Options) -> (sched::Policy, CpuSet, Grade) {
    let upcalls = Upcalls::start(options).unwrap();
    let (tell, told) = mpsc::channel();
    let looks = upcalls.create(spec("looks", MS * 100), move |call| {
        let own = Tid::current();
        let seen = (sched::policy(own).unwrap(), sched::affinity(own).unwrap());
        tell.send(seen).unwrap();
        call.suspend();
    });
    let looks = looks.unwrap();
    looks.run().unwrap();
    let (policy, cpus) = told.recv().unwrap();
    (policy, cpus, upcalls.grade())
}

/// A thread that is left behind is in nobody's way.
#[test]
fn one_that_does_not_come_back_has_its_rank_no_more() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let upcalls = Upcalls::start(Options::default()).unwrap();
    let (tell, told) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let stuck = upcalls.create(spec("stuck", MS), move |_| {
        tell.send(Tid::current()).unwrap();
        let _ = goes_on.recv();
    });
    let stuck = stuck.unwrap();
    stuck.run().unwrap();
    let thread = told.recv().unwrap();
    assert_eq!(sched::policy(thread), Ok(sched::Policy::Fifo(90)));
    assert_eq!(upcalls.close(MS), Err(Error::NoAnswer(MS)));
    assert_eq!(sched::policy(thread), Ok(sched::Policy::Other { nice: 0 }));
    drop(go_on);
}

#[test]
fn its_thread_is_what_was_asked_for_and_the_caller_stays_what_it_is() {
    let Some(_live) = rights::require(&[Right::RealTime, Right::Deadline]) else {
        return;
    };
    let own = Tid::current();
    let state = || (sched::policy(own).unwrap(), sched::affinity(own).unwrap());
    let before = state();
    let cpu = before.1.iter().next().unwrap();
    let fifo = Options {
        rank: Rank::Fifo {
            priority: 42,
            processor: Some(cpu),
        },
        policy: Policy::Edf,
        ..Options::default()
    };
    let expected = (
        sched::Policy::Fifo(42),
        CpuSet::single(cpu),
        Grade::Enforced,
    );
    assert_eq!(seen_by_a_handler(fifo), expected);
    let request = Request::new(Service::from_millis(2), Span::from_millis(8)).unwrap();
    let reserved = Options {
        rank: Rank::Reserved(request),
        ..Options::default()
    };
    let (policy, _, grade) = seen_by_a_handler(reserved);
    assert!(matches!(policy, sched::Policy::Deadline(_)), "{policy}");
    assert_eq!(grade, Grade::Enforced);
    assert_eq!(state(), before);
}

/// Whoever has the right may change that, and who was admitted beside it counts on where it runs.
#[test]
fn one_that_may_run_elsewhere_is_not_what_was_asked_for() {
    let Some(_live) = rights::require(&[Right::RealTime, Right::Processors(2)]) else {
        return;
    };
    let usable = sched::affinity(Tid::current()).unwrap();
    let each: Vec<usize> = usable.iter().collect();
    let [own, other] = [each[0], each[1]].map(CpuSet::single);
    let named = Rank::Fifo {
        priority: 42,
        processor: Some(each[0]),
    };
    let anywhere = Rank::Fifo {
        priority: 42,
        processor: None,
    };
    for (rank, own) in [(named, own), (anywhere, usable)] {
        let options = Options {
            rank,
            ..Options::default()
        };
        let upcalls = Upcalls::start(options).unwrap();
        let (tell, told) = mpsc::channel();
        let tells = upcalls.create(spec("tells", MS * 100), move |call| {
            tell.send(Tid::current()).unwrap();
            call.suspend();
        });
        let tells = tells.unwrap();
        tells.run().unwrap();
        let thread = told.recv().unwrap();
        assert_eq!(upcalls.grade(), Grade::Enforced);
        sched::set_affinity(thread, &other).unwrap();
        let Grade::Unenforced { reason } = upcalls.grade() else {
            panic!("it runs on {other} alone, and not on {own}");
        };
        let told = format!("on processors {other}, and not {own}");
        assert!(reason.ends_with(&told), "{reason}");
        sched::set_affinity(thread, &own).unwrap();
        assert_eq!(upcalls.grade(), Grade::Enforced);
    }
}

/// What is shared may take long to make: no other thread waits for that.
#[test]
fn what_is_shared_is_made_before_its_thread_is_real_time() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let seen = || sched::policy(Tid::current()).unwrap();
    let upcalls = Upcalls::sharing(Options::default(), seen).unwrap();
    let (tell, told) = mpsc::channel();
    let looks = upcalls.create(spec("looks", MS * 100), move |call| {
        tell.send((*call.shared, seen())).unwrap();
        call.suspend();
    });
    let looks = looks.unwrap();
    looks.run().unwrap();
    let (made, called) = told.recv().unwrap();
    assert_eq!(
        (made.is_real_time(), called),
        (false, sched::Policy::Fifo(90))
    );
}

#[test]
fn a_batch_yields_to_who_is_more_urgent_between_its_quanta() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let upcalls = Upcalls::sharing(Options::default(), Vec::<(&str, u32)>::new).unwrap();
    let mut bulk = spec("bulk", MS * 100);
    bulk.service = Service::from_millis(1);
    bulk.timing.batch = NonZeroU32::new(20).unwrap();
    bulk.timing.quantum = NonZeroU32::new(2).unwrap();
    let first = now() + MS * 10;
    bulk.timing.first = First::At(first);
    let mut quick = spec("quick", MS * 10);
    quick.timing.first = First::At(first + MS * 5);
    let (tell, told) = mpsc::channel();
    let bulk = upcalls.create(bulk, move |call| {
        let until = now() + MS * u64::from(call.now());
        while now() < until {}
        let done = call.done();
        call.shared.push(("bulk", done));
        if done + call.now() == 20 {
            tell.send(std::mem::take(call.shared)).unwrap();
            call.suspend();
        }
    });
    let quick = upcalls.create(quick, |call| call.shared.push(("quick", call.done())));
    let (bulk, quick) = (bulk.unwrap(), quick.unwrap());
    quick.run().unwrap();
    bulk.run().unwrap();
    let order = told.recv().unwrap();
    let quanta: Vec<u32> = order
        .iter()
        .filter(|(who, _)| *who == "bulk")
        .map(|(_, done)| *done)
        .collect();
    assert_eq!(
        quanta,
        (0..10).map(|quantum| quantum * 2).collect::<Vec<_>>()
    );
    // Released 5 and 15 ms after the batch began, which takes 20 at the least.
    let begun = order.iter().position(|(who, _)| *who == "bulk").unwrap();
    let between = order[begun..]
        .iter()
        .filter(|(who, _)| *who == "quick")
        .count();
    assert!(between >= 2, "{order:?}");
    assert!(bulk.counts().yields >= 2, "{:?}", bulk.counts());
}
