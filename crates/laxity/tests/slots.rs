//! Slots for the caller's own thread: what is granted is real, seen, and given back. Needs the right to schedule.

use std::panic;
use std::process::{Child, Command};
use std::sync::Barrier;
use std::thread;

use laxity::{
    Delivery, Enforcer, Error, Grade, HostError, Instant, Request, Reserved, Service, Span, now,
    sleep_until,
};
use laxity_linux::doctor::rights::{self, LiveTest, Right};
use laxity_linux::os::cpuset::CpuSet;
use laxity_linux::os::sched::{self, Policy, Tid};

const MS: fn(u64) -> Span = Span::from_millis;
const PERIOD: Span = Span::from_millis(8);

fn two_of_eight() -> Request {
    let request = Request::new(Service::from_millis(2), PERIOD).unwrap();
    request.by(Enforcer::Slots)
}

fn live() -> Option<LiveTest> {
    rights::require(&[Right::RealTime])
}

fn state() -> (Policy, CpuSet) {
    let own = Tid::current();
    (sched::policy(own).unwrap(), sched::affinity(own).unwrap())
}

fn first_processor() -> usize {
    state().1.iter().next().unwrap()
}

/// Uses processor time until this instant.
fn spin_until(until: Instant) {
    while now() < until {
        std::hint::spin_loop();
    }
}

/// Uses so much processor time of its own, however long that takes.
fn work(reserved: &Reserved, span: Span) {
    let _ = reserved;
    let until = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let nanos = |time: rustix::time::Timespec| time.tv_sec * 1_000_000_000 + time.tv_nsec;
    let until = nanos(until) + span.as_nanos().cast_signed();
    while nanos(rustix::time::clock_gettime(
        rustix::time::ClockId::ThreadCPUTime,
    )) < until
    {}
}

/// Spinning threads on a processor, until this is dropped.
struct Spinners(Vec<Child>);

impl Spinners {
    fn on(processor: usize) -> Self {
        let spinner = |_| {
            let mut command = Command::new("taskset");
            command.args([
                "-c",
                &processor.to_string(),
                "sh",
                "-c",
                "while :; do :; done",
            ]);
            command.spawn().unwrap()
        };
        Self((0..4).map(spinner).collect())
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It ends by this signal alone.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The share of undisturbed periods that were kept.
fn kept_percent(seen: &Delivery) -> u64 {
    assert!(seen.periods > 0, "{seen:?}");
    seen.kept * 100 / seen.periods
}

#[test]
fn a_spinning_thread_gets_its_slots_beside_spinners_and_nothing_else() {
    let Some(_live) = live() else { return };
    let processor = first_processor();
    let _spinners = Spinners::on(processor);
    let reserved = two_of_eight().on(processor).confined().reserve().unwrap();
    spin_until(now() + Span::from_secs(2));
    let (seen, grade) = (reserved.delivery().unwrap(), reserved.grade());
    assert_eq!(reserved.processor(), Some(processor));
    drop(reserved);
    eprintln!("{seen:?} {grade}");
    assert_eq!(grade, Grade::Enforced);
    assert!(seen.periods + seen.disturbed >= 240, "{seen:?}");
    assert!(kept_percent(&seen) >= 90, "{seen:?}");
    assert!(seen.overruns >= 230, "it always wants more: {seen:?}");
    assert!(seen.largest_gap >= MS(5), "{seen:?}");
    // The kernel counts the way in and out of each slot and a tick as its own too: of 2 ms no more than an eighth, see the conformance suite.
    let most = Service::from_millis(2) * (seen.periods + seen.disturbed + 1) * 112 / 100;
    assert!(seen.service <= most, "{seen:?}");
}

#[test]
fn outside_its_slots_a_thread_competes_as_before() {
    let Some(_live) = live() else { return };
    let reserved = two_of_eight().reserve().unwrap();
    let begun = now();
    spin_until(begun + MS(500));
    let seen = reserved.delivery().unwrap();
    assert!(seen.service > Service::from_millis(200), "{seen:?}");
}

#[test]
fn who_sleeps_is_not_deprived_and_who_works_too_long_is_counted() {
    let Some(_live) = live() else { return };
    let reserved = two_of_eight().confined().reserve().unwrap();
    let mut due = now();
    for job in 0..100 {
        // One in ten takes 3 ms: it uses up one slot and has some of the next.
        work(&reserved, if job % 10 == 9 { MS(3) } else { MS(1) });
        due += PERIOD * 3;
        sleep_until(due);
    }
    let seen = reserved.delivery().unwrap();
    drop(reserved);
    eprintln!("{seen:?}");
    if seen.disturbed > seen.periods {
        // Jobs that it stood still in are in no period where they ought to be.
        return rights::skip("the machine itself stood still in most periods");
    }
    // Where the machine stood still in a slot, the kernel counts that as work, or less than a slot was had of one that is used up: each such period may have one more or less.
    let overruns = 9_u64.saturating_sub(seen.disturbed)..=11 + seen.disturbed;
    assert!(overruns.contains(&seen.overruns), "{seen:?}");
    assert!(kept_percent(&seen) >= 90, "{seen:?}");
    assert!(seen.service >= Service::from_millis(110), "{seen:?}");
}

#[test]
fn dropping_it_restores_the_thread_and_a_panic_too() {
    let Some(_live) = live() else { return };
    thread::spawn(|| {
        let own = Tid::current();
        let first = CpuSet::single(first_processor());
        sched::set_affinity(own, &first).unwrap();
        sched::set_policy(own, Policy::Batch { nice: 3 }).unwrap();
        let before = state();
        for request in [two_of_eight(), two_of_eight().confined()] {
            let reserved = request.reserve().unwrap();
            assert_eq!(reserved.grade(), Grade::Enforced);
            drop(reserved);
            assert_eq!(state(), before);
            let panicked = panic::catch_unwind(|| {
                let _reserved = request.reserve().unwrap();
                spin_until(now() + MS(20));
                panic::resume_unwind(Box::new("on purpose"));
            });
            assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"on purpose"));
            assert_eq!(state(), before);
        }
    })
    .join()
    .unwrap();
}

#[test]
fn a_processor_has_slots_for_one_thread_of_a_process() {
    let Some(_live) = live() else { return };
    let (processor, all) = (first_processor(), state().1);
    let held = two_of_eight().on(processor).reserve().unwrap();
    let refused = thread::spawn(move || two_of_eight().on(processor).reserve().unwrap_err());
    let refused = refused.join().unwrap();
    let Error::Host {
        source: HostError::Refused(why),
        ..
    } = &refused
    else {
        panic!("{refused}");
    };
    assert!(why.contains("one holder a processor"), "{why}");
    // The holder may run there alone, and so may what it starts.
    assert!(!why.contains("name another processor"), "{why}");
    let is_one_of_many = all.len() > 1;
    assert_eq!(
        why.contains("allow who asks other processors"),
        is_one_of_many,
        "{why}"
    );
    if is_one_of_many {
        let wider = thread::spawn(move || {
            sched::set_affinity(Tid::current(), &all).unwrap();
            two_of_eight().on(processor).reserve().unwrap_err()
        });
        let why = wider.join().unwrap().to_string();
        assert!(why.contains("name another processor"), "{why}");
    }
    drop(held);
    let again = thread::spawn(move || two_of_eight().on(processor).reserve().map(drop));
    again.join().unwrap().unwrap();
}

#[test]
fn too_much_is_refused_with_what_would_fit() {
    let Some(_live) = live() else { return };
    let before = state();
    let request = Request::new(Service::from_micros(7_900), PERIOD).unwrap();
    let refused = request.by(Enforcer::Slots).reserve().unwrap_err();
    let shown = refused.to_string();
    assert!(shown.contains("would fit"), "{shown}");
    assert_eq!(state(), before);
}

#[test]
fn a_thread_of_the_same_process_that_outranks_the_slots_is_named() {
    let Some(_live) = live() else { return };
    let processor = first_processor();
    let reserved = two_of_eight().on(processor).reserve().unwrap();
    assert_eq!(reserved.grade(), Grade::Enforced);
    let (ranked, took) = (Barrier::new(2), Barrier::new(2));
    let (seen, grade) = thread::scope(|scope| {
        let rogue = thread::Builder::new().name("rogue".to_owned());
        rogue
            .spawn_scoped(scope, || {
                sched::set_affinity(Tid::current(), &CpuSet::single(processor)).unwrap();
                sched::set_policy(Tid::current(), Policy::Fifo(85)).unwrap();
                ranked.wait();
                took.wait();
                // Others are looked for every tenth of a second.
                spin_until(now() + MS(300));
                took.wait();
                took.wait();
            })
            .unwrap();
        ranked.wait();
        let seen = reserved.grade();
        took.wait();
        took.wait();
        let grade = reserved.grade();
        took.wait();
        (seen, grade)
    });
    for grade in [&seen, &grade] {
        let Grade::Unenforced { reason } = grade else {
            panic!("somebody outranks it");
        };
        assert!(reason.contains("rogue"), "{reason}");
    }
    assert_eq!(reserved.grade(), grade, "the worst moment stays");
}
