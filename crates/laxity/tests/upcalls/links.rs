//! Chains, groups, queues and overruns on this machine: what is counted and told, and in which order.

use std::sync::mpsc;

use laxity::upcall::OnOverrun;
use laxity::upcalls::{Call, Error, Options, Pace, Policy, Spec, State, Upcalls, WhenFull};
use laxity::{Service, Span, now};

use crate::{MS, fair, rests, spec};

/// Of one that can call more than it does: no more than this is asked for, so that all that is called in a row is to be seen.
fn caught_up(name: &str, at_most: u32) -> Spec {
    let mut spec = spec(name, MS);
    spec.pace = Pace::Arrivals;
    spec.timing.on_overrun = OnOverrun::CatchUp { at_most };
    spec
}

#[test]
fn what_arrives_for_a_full_queue_is_dropped_as_was_chosen_and_counted() {
    let options = Options {
        events: 3,
        ..fair()
    };
    let upcalls = Upcalls::start(options).unwrap();
    let busy = Err(Error::Busy);
    for (when_full, puts, calls) in [
        (WhenFull::Reject, [Ok(()), busy.clone(), busy], [0, 1, 2]),
        (WhenFull::DropOldest, [Ok(()), Ok(()), Ok(())], [2, 3, 4]),
        (WhenFull::Warn, [Ok(()), Ok(()), Ok(())], [0, 1, 2]),
    ] {
        let (tell, told) = mpsc::channel();
        let mut spec = caught_up("fed", 10);
        spec.when_full = when_full;
        let fed = upcalls.create(spec, move |call| {
            tell.send((call.arrived.unwrap()[0], call.dropped)).unwrap();
        });
        let fed = fed.unwrap();
        let put: Vec<_> = (0..5).map(|number| fed.release([number, 0])).collect();
        assert_eq!(put[2..], puts, "{when_full:?}");
        assert_eq!(fed.counts().dropped, 2);
        fed.run().unwrap();
        let seen: Vec<_> = told.iter().take(3).collect();
        assert_eq!(seen, [(calls[0], 2), (calls[1], 0), (calls[2], 0)]);
        assert_eq!(fed.close().unwrap().dropped, 2);
    }
    let timed = upcalls.create(spec("timed", MS), |_| ()).unwrap();
    assert_eq!(timed.release([0; 2]), Err(Error::NoArrivals));
}

/// All of a chain are called once for each call of the first, each after the one before, and are told when that was released.
#[test]
fn a_chain_is_called_in_its_order_from_release_to_end() {
    let upcalls = Upcalls::sharing(fair(), Vec::<(usize, laxity::Instant)>::new).unwrap();
    let unit = Service::from_micros(10);
    let (tell, told) = mpsc::channel();
    let first = upcalls.create(spec("first", MS), |call| {
        assert_eq!(call.origin, call.paced.release);
        call.shared.push((0, call.origin));
        if call.shared.len() > 60 {
            call.suspend();
        }
    });
    let first = first.unwrap();
    let mut spec = Spec::after(&first, unit);
    spec.name = "second".to_owned();
    spec.timing.on_overrun = OnOverrun::CatchUp { at_most: 1_000 };
    let second = upcalls.create(spec, |call| call.shared.push((1, call.origin)));
    let second = second.unwrap();
    let mut spec = Spec::after(&second, unit);
    spec.name = "third".to_owned();
    spec.timing.on_overrun = OnOverrun::CatchUp { at_most: 1_000 };
    let third = upcalls.create(spec, move |call| {
        call.shared.push((2, call.origin));
        if call.shared.len() > 60 {
            tell.send(call.shared.clone()).unwrap();
            call.suspend();
        }
    });
    let third = third.unwrap();
    // What a chain takes at most is more than what its first does, and grows with what else there is.
    let bounds = [&first, &second, &third].map(|upcall| upcalls.bound(upcall).unwrap());
    assert!(bounds.is_sorted() && bounds[2] <= MS, "{bounds:?}");
    let mut more = self::spec("more", MS * 2);
    more.deadline = Some(MS / 2);
    let more = upcalls.create(more, |_| ()).unwrap();
    assert!(upcalls.bound(&third).unwrap() > bounds[2]);
    more.close().unwrap();
    assert_eq!(upcalls.bound(&third), Ok(bounds[2]));
    third.run().unwrap();
    second.run().unwrap();
    first.run().unwrap();
    let order = told.recv().unwrap();
    let of = |who: usize| {
        let own = order.iter().filter(|(one, _)| *one == who);
        own.map(|(_, origin)| *origin).collect::<Vec<_>>()
    };
    let [firsts, seconds, thirds] = [0, 1, 2].map(of);
    assert!(thirds.len() >= 15 && firsts.windows(2).all(|two| two[0] < two[1]));
    assert_eq!(seconds, firsts[..seconds.len()]);
    assert_eq!(thirds, firsts[..thirds.len()]);
    for origin in &thirds {
        let at = |who| order.iter().position(|one| *one == (who, *origin));
        assert!(at(0) < at(1) && at(1) < at(2));
    }
    assert!(third.counts().longest_end_to_end >= third.counts().longest_response);
}

#[test]
fn a_chain_that_may_be_late_is_refused_and_so_is_one_that_has_no_bound() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let mut half = spec("half", MS * 20);
    half.service = Service::from_millis(4);
    let first = upcalls.create(half.clone(), |_| ()).unwrap();
    let mut second = Spec::after(&first, Service::from_millis(4));
    second.deadline = Some(MS * 7);
    let Err(Error::NotAdmitted(no)) = upcalls.create(second.clone(), |_| ()) else {
        panic!("the second comes after 4 ms of the first");
    };
    second.service = no.fits.expect("there is time left");
    assert!(upcalls.create(second.clone(), |_| ()).is_ok(), "{no}");
    let why = |spec: Spec| match upcalls.create(spec, |_| ()) {
        Err(Error::NotAdmitted(no)) => no.reason,
        other => panic!("{other:?}"),
    };
    let mut rare = second.clone();
    rare.timing.period = MS * 21;
    assert!(why(rare).contains("as often as half, every 20ms"));
    let none = upcalls.group("none", Service::ZERO, MS);
    assert_eq!(none.map(drop), Err(Error::NoBudget(Service::ZERO, MS)));
    let group = upcalls.group("group", Service::from_millis(1), MS * 10);
    let group = group.unwrap();
    let mut shared = second.clone();
    shared.group = Some(group.clone());
    shared.service = Service::from_micros(1);
    shared.deadline = None;
    assert!(why(shared.clone()).contains("no bound"));
    shared.pace = Pace::Timer;
    shared.service = Service::from_millis(2);
    assert!(why(shared).contains("its group has 1ms a period"));
    // Those of another executor are not here, nor are those that are closed.
    let other = Upcalls::start(Options {
        policy: Policy::Edf,
        ..fair()
    });
    let other = other.unwrap();
    assert_eq!(
        other.create(second.clone(), |_| ()).map(drop),
        Err(Error::NotHere)
    );
    assert_eq!(other.bound(&first), Err(Error::NotHere));
    half.group = Some(group);
    half.service = Service::from_millis(1);
    assert_eq!(
        other.create(half.clone(), |_| ()).map(drop),
        Err(Error::NotHere)
    );
    first.close().unwrap();
    assert_eq!(
        upcalls.create(second, |_| ()).map(drop),
        Err(Error::NotHere)
    );
    half.group = None;
    let by_deadline = other.create(half, |_| ()).unwrap();
    let tail = Spec::after(&by_deadline, Service::from_millis(1));
    let Err(Error::NotAdmitted(no)) = other.create(tail, |_| ()) else {
        panic!("by deadline a chain has no bound");
    };
    assert!(no.reason.contains("by rate"), "{no}");
}

#[test]
fn one_in_a_group_has_no_deadline_of_its_own() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let group = upcalls.group("group", Service::from_millis(1), MS * 10);
    let group = group.unwrap();
    let due = |deadline| {
        let mut spec = spec("member", MS * 20);
        (spec.deadline, spec.group) = (deadline, Some(group.clone()));
        upcalls.create(spec, |_| ()).map(drop)
    };
    let said = due(Some(MS * 7)).unwrap_err().to_string();
    assert!(said.contains("due in 7ms"), "{said}");
    assert!(said.contains("period of 10ms"), "{said}");
    assert_eq!([due(None), due(Some(MS * 10))], [Ok(()), Ok(())]);
}

/// Two that would take all the time there is have what their group has, and no more.
#[test]
fn a_group_has_its_budget_and_is_listed_and_counted_by_its_name() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let budget = Service::from_millis(4);
    let group = upcalls.group("camera", budget, MS * 20).unwrap();
    let began = now();
    let member = |name: &str| {
        let mut spec = spec(name, MS * 5);
        spec.service = Service::from_millis(1);
        spec.timing.batch = std::num::NonZeroU32::new(4).unwrap();
        spec.group = Some(group.clone());
        let mut left = 12;
        let work = move |call: &mut Call| {
            let until = now() + MS;
            while now() < until {}
            left -= 1;
            if left == 0 {
                call.suspend();
            }
        };
        upcalls.create(spec, work).unwrap()
    };
    // Alone, each would take four fifths of the time; the group is admitted as one fifth.
    let members = [member("decode"), member("display")];
    let mut beside = spec("beside", MS * 20);
    beside.service = Service::from_millis(9);
    drop(upcalls.create(beside, |_| ()).unwrap());
    for one in &members {
        one.run().unwrap();
    }
    for one in &members {
        assert_eq!(rests(&upcalls, one), State::Suspended);
    }
    let periods = (now() - began).as_nanos() / (MS * 20).as_nanos() + 1;
    let used = group.counts().used;
    assert!(
        used >= MS * 24 && group.counts().waits > 0,
        "{:?}",
        group.counts()
    );
    // A quantum may last as long as this machine likes, and then the next ones pay.
    let longest = members
        .iter()
        .map(|one| one.counts().longest_quantum)
        .max()
        .unwrap();
    assert!(used <= MS * 4 * periods + longest, "{used} in {periods}");
    let names: Vec<String> = group.list().into_iter().map(|(name, ..)| name).collect();
    assert_eq!(
        (group.name(), names),
        ("camera", vec!["decode".to_owned(), "display".to_owned()])
    );
    let all: Span = group
        .list()
        .iter()
        .map(|(.., counts)| counts.longest_quantum)
        .max()
        .unwrap();
    assert_eq!(all, longest);
    drop(members);
    assert_eq!(group.list(), []);
    drop(upcalls);
    assert_eq!(group.list(), []);
}

#[test]
fn a_quantum_that_takes_longer_than_was_declared_is_told_with_its_name() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let (tell, told) = mpsc::channel();
    let mut calls = 0;
    let liar = upcalls.create(spec("liar", MS * 100), move |call| {
        tell.send(call.over_service).unwrap();
        let until = now() + MS;
        while now() < until {}
        calls += 1;
        if calls == 3 {
            call.suspend();
        }
    });
    let liar = liar.unwrap();
    let mut honest = spec("honest", MS * 200);
    // As long as this machine may take a processor away.
    honest.service = Service::from_millis(80);
    let honest = upcalls
        .create(honest, |call: &mut Call| {
            call.suspend();
        })
        .unwrap();
    liar.run().unwrap();
    honest.run().unwrap();
    assert_eq!(rests(&upcalls, &liar), State::Suspended);
    assert_eq!(rests(&upcalls, &honest), State::Suspended);
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [false, true, true]);
    assert_eq!(liar.counts().over_service, 3);
    assert!(liar.counts().longest_quantum >= MS);
    let over: Vec<String> = upcalls
        .list()
        .into_iter()
        .filter(|(.., counts)| counts.over_service > 0)
        .map(|(name, ..)| name)
        .collect();
    assert_eq!(over, ["liar"]);
}
