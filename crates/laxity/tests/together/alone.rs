//! What needs no other process: executors of one process, mostly as ordinary threads, and what a seat cannot do.

use std::num::NonZeroU32;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::{env, fs, process, thread};

use laxity::upcall::OnOverrun;
use laxity::upcalls::{
    Call, Error, Guard, Options, Pace, Rank, Region, RegionError, Seat, Spec, Upcalls,
};
use laxity::{Service, Span};
use laxity_linux::doctor::rights;
use laxity_model::program::together::{Standing, Terms};

use crate::MS;

#[test]
fn what_a_seat_cannot_do_is_refused() {
    let region = Region::create().unwrap();
    let fair = |seat: &Seat| Options {
        rank: Rank::Fair,
        together: Some(seat.clone().into()),
        ..Options::default()
    };
    let guard = Guard::without_threads(&region);
    let seat = guard.give(process::id()).unwrap();
    let edf = Upcalls::start(Options {
        policy: laxity::upcalls::Policy::Edf,
        ..fair(&seat)
    });
    assert_eq!(edf.err(), Some(Error::Order));
    let upcalls = Upcalls::start(fair(&seat)).unwrap();
    assert_eq!(Upcalls::start(fair(&seat)).err(), Some(Error::NoSeat));
    drop(upcalls);
    assert_eq!(region.standing(seat.number), Some(Standing::Left));
}

/// An ordinary thread, which needs no right.
fn executor(guard: &Guard) -> Upcalls {
    let options = Options {
        rank: Rank::Fair,
        together: guard.give(process::id()).map(Into::into),
        ..Options::default()
    };
    Upcalls::start(options).unwrap()
}

/// In one process two executors take turns as those of two do; here as ordinary threads.
#[test]
fn arrivals_and_commands_reach_who_has_no_turn() {
    let guard = Guard::without_threads(&Region::create().unwrap());
    let (one, other) = (executor(&guard), executor(&guard));
    let make = |upcalls: &Upcalls| {
        let (tell, told) = mpsc::channel();
        let mut spec = Spec::each(Span::from_micros(300), Service::from_micros(1));
        spec.pace = Pace::Arrivals;
        // One that comes while a call is at work is called for, too.
        spec.timing.on_overrun = OnOverrun::CatchUp { at_most: u32::MAX };
        let upcall = upcalls.create(spec, move |call: &mut Call<'_>| {
            tell.send(call.arrived.map(|[number, _]| number)).unwrap();
        });
        let upcall = upcall.unwrap();
        upcall.run().unwrap();
        (upcall, told)
    };
    let all = [make(&one), make(&other)];
    for number in 0..1_000 {
        for (upcall, told) in &all {
            upcall.release([number, 0]).unwrap();
            assert_eq!(told.recv().unwrap(), Some(number));
        }
    }
}

/// However many there are, and whether there is room for them: whoever has the baton goes on, but for those that the other waits for.
#[test]
fn what_arrives_for_who_does_not_wait_for_it_makes_nobody_yield() {
    const UNITS: u32 = 5_000;
    let guard = Guard::without_threads(&Region::create().unwrap());
    let (called, other) = (executor(&guard), executor(&guard));
    for is_suspended in [true, false] {
        // More urgent than the other, and called once while that is at work.
        let mut urgent = Spec::each(MS * 30_000, Service::from_micros(1));
        urgent.pace = Pace::Arrivals;
        let urgent = called.create(urgent, |_: &mut Call<'_>| ()).unwrap();
        urgent.run().unwrap();
        if is_suspended {
            urgent.suspend().unwrap();
        }
        let mut long = Spec::each(MS * 60_000, Service::from_micros(1));
        long.timing.batch = NonZeroU32::new(UNITS).unwrap();
        long.pace = Pace::Arrivals;
        // Closed by nobody who has the baton.
        let urgent = Arc::new(urgent);
        let released = Arc::clone(&urgent);
        let long = other.create(long, move |call: &mut Call<'_>| {
            let _ = released.release([0; 2]);
            if call.done() == UNITS - 1 {
                call.end();
            }
        });
        let long = long.unwrap();
        long.run().unwrap();
        long.release([0; 2]).unwrap();
        other.sleep(&[&long]).unwrap();
        let counts = long.close().unwrap();
        assert_eq!(counts.units, u64::from(UNITS));
        assert_eq!(urgent.counts().calls, u64::from(!is_suspended));
        // It waits for the first, and once that call is over for the second, which is for 30 s later.
        let at_most = if is_suspended { 0 } else { 4 };
        assert!(counts.yields <= at_most, "{} times", counts.yields);
    }
}

/// What one hears while another goes first it has not done yet.
#[test]
fn creates_and_closes_of_two_at_once_are_all_answered() {
    let guard = Guard::without_threads(&Region::create().unwrap());
    let both = [executor(&guard), executor(&guard)];
    thread::scope(|scope| {
        for upcalls in &both {
            scope.spawn(|| {
                for _ in 0..300 {
                    let spec = Spec::each(Span::from_micros(300), Service::from_micros(1));
                    let upcall = upcalls.create(spec, |_: &mut Call<'_>| ()).unwrap();
                    upcall.run().unwrap();
                    upcall.close().unwrap();
                }
            });
        }
    });
}

#[test]
fn a_quantum_longer_than_the_guard_allows_is_refused() {
    let region = Region::create().unwrap();
    let upcalls = executor(&Guard::without_threads(&region));
    let create = |service, units| {
        let mut spec = Spec::each(MS * 100, Service::from_micros(service));
        let units = [8, units].map(|units| NonZeroU32::new(units).unwrap());
        [spec.timing.batch, spec.timing.quantum] = units;
        upcalls.create(spec, |_: &mut Call<'_>| ()).map(drop)
    };
    // As long as nobody guards it.
    assert_eq!(create(200, 3), Ok(()));
    region.limit(Terms {
        priority: 90,
        processor: 0,
        longest: Service::from_nanos(502_500),
        tolerance: Service::ZERO,
    });
    assert_eq!(create(250, 2), Ok(()));
    let refused = |service, units| create(service, units).unwrap_err().to_string();
    assert_eq!(
        refused(200, 3),
        "a quantum of it takes 600us, and one that takes turns with other processes is to take at most 500us: quanta of at most 2 units would fit"
    );
    assert!(refused(501, 2).ends_with("quanta of one unit, of at most 500us, would fit"));
    assert_eq!(create(500, 1), Ok(()));
}

/// What the process is told that is started in another time namespace.
const OTHER_CLOCK: &str = "LAXITY_TEST_OTHER_CLOCK";

/// What it wrote there would be other moments to the others: none of its releases would be seen, or all would go first.
#[test]
fn by_another_clock_there_is_no_seat() {
    if let Ok(path) = env::var(OTHER_CLOCK) {
        let file = fs::File::options().read(true).write(true).open(path);
        let attached = Region::attach(file.unwrap().into());
        assert!(
            matches!(attached, Err(RegionError::AnotherClock)),
            "{attached:?}"
        );
        return;
    }
    let region = Region::create().unwrap();
    let (own, file) = (process::id(), region.as_fd().as_raw_fd());
    let mut other = Command::new("unshare");
    other.args(["--time", "--fork", "--monotonic=1000"]);
    other.arg(env::current_exe().unwrap());
    other.args(["alone::by_another_clock_there_is_no_seat", "--exact"]);
    other.env(OTHER_CLOCK, format!("/proc/{own}/fd/{file}"));
    let output = match other.output() {
        Ok(output) => output,
        Err(error) => return rights::skip(&format!("unshare: {error}")),
    };
    let [said, wrong] = [&output.stdout, &output.stderr].map(|said| String::from_utf8_lossy(said));
    if wrong.contains("unshare: ") {
        return rights::lacks(&format!("no time namespace can be made: {wrong}"));
    }
    assert!(output.status.success(), "{said}{wrong}");
    assert!(said.contains("1 passed"), "{said}");
}
