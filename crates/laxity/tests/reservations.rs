//! What `reserve` grants is real, what it refuses says why, and what it changed is as before. Needs the right to use `SCHED_DEADLINE`.

use std::error::Error as _;
use std::sync::Barrier;
use std::thread;

use laxity::doctor::Cause;
use laxity::upcalls::{Options, Rank, Upcalls};
use laxity::{
    Delivery, Error, Grade, Reservation, ReservationError, Reserved, Service, Span, reserve,
};
use laxity_linux::doctor::ParameterError;
use laxity_linux::doctor::rights::{self, LiveTest, Right};
use laxity_linux::os::cpuset::CpuSet;
use laxity_linux::os::proc;
use laxity_linux::os::sched::{self, Policy, Tid};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

const PERIOD: Span = Span::from_millis(8);

fn two_of_eight() -> Result<Reserved, Error> {
    reserve(Service::from_millis(2), PERIOD)
}

fn live() -> Option<LiveTest> {
    rights::require(&[Right::Deadline])
}

/// What a reservation changes of the calling thread.
fn state() -> (Policy, CpuSet) {
    let own = Tid::current();
    (sched::policy(own).unwrap(), sched::affinity(own).unwrap())
}

/// In a thread of its own that lacks these capabilities.
fn without<T: Send>(lacking: CapabilitySet, work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut sets = capabilities(None).unwrap();
            sets.effective -= lacking;
            sets.permitted -= lacking;
            set_capabilities(None, sets).unwrap();
            work()
        });
        thread.join().unwrap()
    })
}

/// What the error says: the cause, and the kernel's number.
fn refusal(error: &Error) -> (Cause, Option<i32>) {
    let diagnosis = error.diagnosis().expect("the kernel said no");
    let shown = error.to_string();
    for part in [&diagnosis.what, &diagnosis.remedy] {
        assert!(!part.is_empty() && shown.contains(part), "{shown}");
    }
    let call = error.source().expect("a call failed").to_string();
    let debug = format!("{error:?}");
    assert!(call.contains("sched_setattr"), "{call}");
    assert!(debug.contains(&shown) && debug.contains(&call), "{debug}");
    (diagnosis.cause.clone(), error.errno())
}

#[test]
fn numbers_that_are_no_reservation_are_refused_before_the_kernel_is_asked() {
    let ms = Service::from_millis;
    let cases = [
        (Service::ZERO, PERIOD, ReservationError::NoService),
        (ms(2), Span::ZERO, ReservationError::NoPeriod),
        (
            ms(9),
            PERIOD,
            ReservationError::MoreThanAProcessor {
                service: ms(9),
                period: PERIOD,
            },
        ),
    ];
    for (service, period, reason) in cases {
        let before = state();
        let error = reserve(service, period).unwrap_err();
        assert_eq!(error, Error::NoReservation(reason));
        assert_eq!(error.to_string(), reason.to_string());
        assert_eq!((error.errno(), state()), (None, before));
    }
}

#[test]
fn a_grant_is_real_and_dropping_it_restores_the_thread() {
    let Some(_live) = live() else { return };
    thread::spawn(|| {
        let own = Tid::current();
        let first = state().1.iter().next().unwrap();
        sched::set_affinity(own, &CpuSet::single(first)).unwrap();
        sched::set_policy(own, Policy::Batch { nice: 3 }).unwrap();
        let before = state();
        let reserved = two_of_eight().unwrap();
        let asked = Reservation::new(Service::from_millis(2), PERIOD).unwrap();
        assert_eq!(sched::policy(own).unwrap(), Policy::Deadline(asked.into()));
        assert_eq!(reserved.reservation(), asked);
        assert_eq!(reserved.grade(), Grade::Enforced);
        drop(reserved);
        assert_eq!(state(), before);
    })
    .join()
    .unwrap();
}

#[test]
fn a_panic_restores_the_thread_too() {
    let Some(_live) = live() else { return };
    let before = state();
    let panicked = std::panic::catch_unwind(|| {
        let _reserved = two_of_eight().unwrap();
        assert_ne!(state().0, before.0);
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    let payload = panicked.unwrap_err();
    assert_eq!(payload.downcast_ref(), Some(&"on purpose"));
    assert_eq!(state(), before);
    drop(two_of_eight().unwrap());
}

#[test]
fn a_thread_holds_one_reservation_at_a_time() {
    let Some(_live) = live() else { return };
    let before = state();
    let held = two_of_eight().unwrap();
    let error = reserve(Service::from_millis(1), PERIOD).unwrap_err();
    let reservation = held.reservation();
    assert_eq!(error, Error::AlreadyReserved { held: reservation });
    assert_eq!(held.grade(), Grade::Enforced);
    thread::spawn(|| drop(two_of_eight().unwrap()))
        .join()
        .unwrap();
    drop(held);
    assert_eq!(state(), before);
    drop(two_of_eight().unwrap());
}

#[test]
fn a_grant_that_somebody_took_away_is_called_unenforced() {
    let Some(_live) = live() else { return };
    let reserved = two_of_eight().unwrap();
    sched::set_policy(Tid::current(), Policy::Other { nice: 0 }).unwrap();
    let Grade::Unenforced { reason } = reserved.grade() else {
        panic!("the thread has no reservation any more");
    };
    assert!(reason.contains("SCHED_OTHER"), "{reason}");
}

#[test]
fn a_missing_capability_is_named() {
    let Some(_live) = live() else { return };
    without(CapabilitySet::SYS_NICE, || {
        let before = state();
        let error = two_of_eight().unwrap_err();
        let no_right = Cause::NoCapability("CAP_SYS_NICE");
        assert_eq!(
            refusal(&error),
            (no_right, Some(Errno::PERM.raw_os_error()))
        );
        assert_eq!(state(), before);
    });
}

#[test]
fn numbers_that_the_kernel_does_not_take_are_told_apart() {
    let Some(_live) = live() else { return };
    let before = state();
    let (ns, us) = (Service::from_nanos, Span::from_micros);
    for (service, period, bound) in [
        (ns(1_000), us(8_000), ParameterError::RuntimeTooShort),
        (ns(10_000), us(50), ParameterError::PeriodTooShort),
        (ns(10_000), us(5_000_000), ParameterError::PeriodTooLong),
    ] {
        let error = reserve(service, period).unwrap_err();
        let cause = Cause::OutOfRange(bound);
        assert_eq!(refusal(&error), (cause, Some(Errno::INVAL.raw_os_error())));
        assert_eq!(state(), before);
    }
}

#[test]
fn bandwidth_that_others_hold_is_missing() {
    let Some(_live) = live() else { return };
    let before = state();
    let most = || reserve(Service::from_millis(8), Span::from_millis(10));
    let holders = thread::available_parallelism().unwrap().get();
    let barrier = Barrier::new(holders + 1);
    let error = thread::scope(|scope| {
        for _ in 0..holders {
            scope.spawn(|| {
                let _held = most();
                barrier.wait();
                barrier.wait();
            });
        }
        barrier.wait();
        let error = most().err();
        barrier.wait();
        error
    });
    let error = error.expect("eight tenths a processor, and one time more, is more than there is");
    let (cause, errno) = refusal(&error);
    assert!(
        matches!(cause, Cause::NoBandwidthLeft { missing: Some(_) }),
        "{cause:?}"
    );
    assert_eq!((errno, state()), (Some(Errno::BUSY.raw_os_error()), before));
}

#[test]
fn memory_is_locked_while_it_is_held() {
    let Some(_live) = live() else { return };
    if capabilities(None)
        .unwrap()
        .effective
        .contains(CapabilitySet::IPC_LOCK)
    {
        let reserved = two_of_eight().unwrap();
        assert_eq!(reserved.memory_locked(), Ok(()));
        assert!(proc::locked_memory_kib().unwrap() > 0);
    }
    assert_eq!(proc::locked_memory_kib(), Some(0));
}

/// An executor of upcalls that is real-time waits for no page either.
#[test]
fn memory_is_locked_while_an_executor_is_there_that_is_real_time() {
    let Some(_live) = live() else { return };
    let locked = |options: Options| {
        let upcalls = Upcalls::<()>::start(options).unwrap();
        let kib = proc::locked_memory_kib().unwrap();
        drop(upcalls);
        kib
    };
    let fair = Options {
        rank: Rank::Fair,
        ..Options::default()
    };
    assert_eq!(locked(fair), 0);
    let own = capabilities(None).unwrap().effective;
    if own.contains(CapabilitySet::IPC_LOCK) {
        assert!(locked(Options::default()) > 0);
    }
    assert_eq!(proc::locked_memory_kib(), Some(0));
}

/// A limit on locked memory that is enough today would fail tomorrow's allocations.
#[test]
fn memory_under_a_limit_stays_unlocked_and_says_so() {
    let Some(_live) = live() else { return };
    let before = getrlimit(Resource::Memlock);
    for limit_bytes in [1 << 16, 1 << 40] {
        let lowered = Rlimit {
            current: Some(limit_bytes),
            maximum: before.maximum,
        };
        if before.maximum.is_some_and(|most| most < limit_bytes) {
            eprintln!("skipped: RLIMIT_MEMLOCK cannot be raised to {limit_bytes}");
            continue;
        }
        setrlimit(Resource::Memlock, lowered).unwrap();
        without(CapabilitySet::IPC_LOCK, || {
            let reserved = two_of_eight().unwrap();
            let cause = &reserved.memory_locked().unwrap_err().cause;
            assert!(
                matches!(cause, Cause::MemoryLockRefused { limit_bytes: found, .. } if *found == limit_bytes),
                "{cause:?}"
            );
            assert_eq!(proc::locked_memory_kib(), Some(0));
        });
        setrlimit(Resource::Memlock, before).unwrap();
    }
}

/// A half-used reservation keeps its bandwidth until its zero-lag time; two of these at once are more than there is beside another.
#[test]
fn what_was_given_back_can_be_had_again_a_thousand_times() {
    let Some(_live) = live() else { return };
    let before = state();
    let holders = thread::available_parallelism().unwrap().get() - 1;
    let barrier = Barrier::new(holders + 1);
    thread::scope(|scope| {
        for _ in 0..holders {
            scope.spawn(|| {
                let _held = reserve(Service::from_micros(1_600), Span::from_millis(2)).unwrap();
                barrier.wait();
                barrier.wait();
            });
        }
        barrier.wait();
        let outcome: Vec<Error> = (0..1_000)
            .filter_map(|_| reserve(Service::from_micros(1_600), Span::from_millis(2)).err())
            .collect();
        barrier.wait();
        assert_eq!(outcome, []);
    });
    assert_eq!(state(), before);
}

/// The middle of nine stretches: what the machine's own halts make of one of them is no matter of this test.
#[test]
fn what_a_thread_received_by_the_kernel_is_seen() {
    let Some(_live) = live() else { return };
    let stretch = || {
        let reserved = reserve(Service::from_millis(10), Span::from_millis(40)).unwrap();
        let until = laxity::now() + Span::from_millis(240);
        while laxity::now() < until {}
        reserved.delivery().unwrap()
    };
    let seen: Vec<_> = (0..9).map(|_| stretch()).collect();
    eprintln!("{seen:?}");
    let middle = |what: fn(&Delivery) -> u64| {
        let mut of_each: Vec<u64> = seen.iter().map(what).collect();
        of_each.sort_unstable();
        of_each[of_each.len() / 2]
    };
    assert!((4..=6).contains(&middle(|seen| seen.periods)));
    let overruns = middle(|seen| seen.overruns);
    assert!(overruns >= 4, "it always wants more: {overruns}");
    let a_period = middle(|seen| seen.service.as_micros() / seen.periods.max(1));
    assert!((8_000..16_000).contains(&a_period), "{a_period} us");
    // The kernel's own theory, and a tick.
    let gap = middle(|seen| seen.largest_gap.as_micros());
    assert!((20_000..=64_000).contains(&gap), "{gap} us");
}
