//! Executors of one process: what one is admitted for, another does not have.

use laxity::upcalls::{Error, Guard, Options, Rank, Region, Spec, Upcall, Upcalls};
use laxity::{Enforcer, Request, Service, Span};
use laxity_linux::doctor::rights::{self, Right};
use laxity_linux::os::sched::{self, Tid};

use crate::{MS, fair};

/// Of this name, so many tenths of every 10 ms, due after so long.
fn tenths(upcalls: &Upcalls, name: &str, tenths: u64, deadline: Span) -> Result<Upcall, Error> {
    let spec = Spec {
        name: name.to_owned(),
        deadline: Some(deadline),
        ..Spec::each(MS * 10, Service::from_millis(tenths))
    };
    upcalls.create(spec, |_| ())
}

/// Who would be late.
fn late(refused: Result<Upcall, Error>) -> String {
    match refused {
        Err(Error::NotAdmitted(no)) => no.bottleneck,
        other => panic!("{other:?}"),
    }
}

fn fifo(priority: u8, processor: Option<usize>) -> Upcalls {
    let rank = Rank::Fifo {
        priority,
        processor,
    };
    let options = Options {
        rank,
        ..Options::default()
    };
    Upcalls::start(options).unwrap()
}

#[test]
fn executors_on_one_processor_have_it_once() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let all = sched::affinity(Tid::current()).unwrap();
    let here = all.iter().next();
    let [first, equal, below] = [50, 50, 40].map(|priority| fifo(priority, here));
    let much = tenths(&first, "much", 7, MS * 10).unwrap();
    assert_eq!(late(tenths(&equal, "as much", 7, MS * 10)), "as much");
    assert_eq!(late(tenths(&below, "below", 7, MS * 10)), "below");
    // One that is outranked waits for one call of the other, and gets the rest.
    let rest = tenths(&below, "rest", 2, MS * 10).unwrap();
    assert_eq!(below.bound(&rest), Ok(MS * 9 + Span::from_micros(105)));
    // Whom it would make late is told, and what would fit.
    assert_eq!(late(tenths(&first, "more", 2, MS * 10)), "rest");
    assert_eq!(late(tenths(&equal, "more", 2, MS * 10)), "more");
    drop((much, rest));
    let [one, other] = [&first, &equal].map(|at| tenths(at, "some", 4, MS * 10));
    assert_eq!(late(other), "some");
    drop(one);
    // Of two that do not outrank each other each may have to wait for all that the other may have left to do in time, and what it does next.
    let [one, other] = [&first, &equal].map(|at| tenths(at, "less", 2, MS * 10).unwrap());
    let bounds = [first.bound(&one), equal.bound(&other)];
    assert_eq!(bounds, [const { Ok(Span::from_nanos(6_107_500)) }; 2]);
    drop((one, other));
    assert!(tenths(&equal, "all again", 7, MS * 10).is_ok());
}

#[test]
fn executors_that_need_not_share_a_processor_do_not() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let all = sched::affinity(Tid::current()).unwrap();
    let [Some(here), Some(there)] = [all.iter().next(), all.iter().nth(1)] else {
        return rights::skip("there is one processor");
    };
    let (one, other) = (fifo(50, Some(here)), fifo(50, Some(there)));
    let most = |at: &Upcalls| tenths(at, "most", 7, MS * 10);
    let both = (most(&one).unwrap(), most(&other).unwrap());
    // A third one would be where one of them is, if there are no more.
    if all.len() == 2 {
        assert_eq!(late(most(&fifo(50, None))), "most");
    }
    drop(both);
    let _one = most(&fifo(50, None)).unwrap();
    assert!(most(&one).is_ok());
}

#[test]
fn what_is_above_slots_is_taken_from_them() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let all = sched::affinity(Tid::current()).unwrap();
    let here = all.iter().next().unwrap();
    let request = Request::new(Service::from_millis(5), MS * 10).unwrap();
    let slots = Upcalls::start(Options {
        rank: Rank::Reserved(request.by(Enforcer::Slots).on(here)),
        ..Options::default()
    });
    let (slots, above) = (slots.unwrap(), fifo(90, Some(here)));
    let much = tenths(&above, "much", 5, MS * 10).unwrap();
    assert_eq!(late(tenths(&slots, "as much", 4, MS * 10)), "as much");
    drop(much);
    assert!(tenths(&slots, "again", 4, MS * 10).is_ok());
}

#[test]
fn seats_of_one_region_are_admitted_together() {
    let guard = Guard::without_threads(&Region::create().unwrap());
    let [one, other] = [0; 2].map(|_| {
        let together = guard.give(std::process::id()).map(Into::into);
        Upcalls::start(Options { together, ..fair() }).unwrap()
    });
    let first = tenths(&one, "first", 6, MS * 10).unwrap();
    assert_eq!(late(tenths(&other, "second", 6, MS * 10)), "second");
    let second = tenths(&other, "second", 3, MS * 10).unwrap();
    assert_eq!(one.bound(&first), other.bound(&second));
    assert_eq!(late(tenths(&one, "third", 3, MS * 10)), "first");
    drop((first, second));
    // A call is not interrupted by one that is due sooner.
    let _first = tenths(&one, "first", 6, MS * 7).unwrap();
    assert_eq!(late(tenths(&other, "second", 2, MS * 10)), "first");
}
