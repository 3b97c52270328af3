//! What cannot be is refused, and a first release counts from when it was asked for.

use laxity::upcalls::Policy;

use super::*;

/// A call that is at work takes the place of the next release, unless all late ones are called.
#[test]
fn nobody_is_due_after_a_release_that_may_come_to_nothing() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let first = upcalls.create(spec("first", MS * 16), |_| ()).unwrap();
    let chained = Spec::after(&first, Service::from_micros(1)).pace;
    for pace in [Pace::Timer, Pace::Arrivals, chained.clone()] {
        let ask = |deadline, at_most| {
            let mut asked = spec("lo", MS * 16);
            (asked.deadline, asked.pace) = (Some(deadline), pace.clone());
            asked.timing.on_overrun = OnOverrun::CatchUp { at_most };
            upcalls.create(asked, |_| ()).map(drop)
        };
        assert_eq!(
            ask(MS * 40, u32::MAX - 1).unwrap_err().to_string(),
            "lo cannot be an upcall: it is to be due in 40ms, and the next is released 16ms after it, which may come to nothing then: have it due by then, or all late ones called, 4294967295 in a row"
        );
        assert_eq!(ask(MS * 16, 0), Ok(()));
        assert_eq!(ask(MS * 40, u32::MAX), Ok(()));
    }
    // Of those that do not come by time no more wait than there is room for.
    for (pace, fits) in [
        (Pace::Timer, true),
        (Pace::Arrivals, false),
        (chained, false),
    ] {
        let ask = |deadline| {
            let mut asked = spec("lo", MS * 16);
            (asked.deadline, asked.pace) = (Some(deadline), pace.clone());
            asked.timing.on_overrun = OnOverrun::CatchUp { at_most: u32::MAX };
            upcalls.create(asked, |_| ()).map(drop)
        };
        assert_eq!(ask(MS * 16 * 16), Ok(()));
        let later = ask(MS * 16 * 16 + MS);
        assert_eq!(later.is_ok(), fits, "{later:?}");
        let why = later.map_err(|no| no.to_string()).err().unwrap_or_default();
        assert!(
            fits || why.ends_with("have it due in 256ms, or make room for more"),
            "{why}"
        );
    }
}

/// Only its own executor tells when it is not active any more.
#[test]
fn nobody_waits_for_an_upcall_of_another_executor() {
    let [own, other] = [(), ()].map(|()| Upcalls::start(fair()).unwrap());
    let there = other.create(spec("there", MS), |_| ()).unwrap();
    let here = own.create(spec("here", MS), |_| ()).unwrap();
    let past = Instant::ZERO;
    assert_eq!(own.sleep_until(&[&here, &there], past), Err(Error::NotHere));
    assert_eq!(own.sleep_until(&[&here], past), Ok(vec![0]));
}

/// However long a quantum is at work before the command is heard.
#[test]
fn the_first_release_counts_from_the_command() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let (tell, told) = mpsc::channel();
    let period = MS * 200;
    let late = upcalls.create(spec("late", period), move |call| {
        tell.send(call.paced.release).unwrap();
        call.end();
    });
    let late = Arc::new(late.unwrap());
    let (runs, asked) = (Arc::clone(&late), mpsc::channel());
    let busy = upcalls.create(spec("busy", MS), move |call| {
        let before = now();
        runs.run().unwrap();
        let after = now();
        asked.0.send([before, after]).unwrap();
        while now() == after {}
        call.end();
    });
    let busy = busy.unwrap();
    busy.run().unwrap();
    let [earliest, latest] = asked.1.recv().unwrap().map(|asked| asked + period);
    let first = told.recv().unwrap();
    assert!((earliest..=latest).contains(&first));
}

/// It is asked what its upcalls take, and has none.
#[test]
fn who_has_ended_has_no_bounds() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let upcall = upcalls.create(spec("upcall", MS), |_| ()).unwrap();
    assert!(upcalls.bound(&upcall).is_ok());
    upcalls.end(Span::from_secs(60)).unwrap();
    assert_eq!(upcalls.bound(&upcall), Err(Error::Over));
}

/// It is there until it is closed, and is not called any more: its time is whoever's asks for it.
#[test]
fn who_has_ended_is_counted_no_more() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let most = |name| Spec {
        service: Service::from_micros(800),
        ..spec(name, MS)
    };
    let ends = upcalls.create(most("ends"), |call| {
        call.end();
    });
    let ends = ends.unwrap();
    let after = Spec::after(&ends, Service::from_micros(1));
    ends.run().unwrap();
    assert_eq!(rests(&upcalls, &ends), State::Ended);
    assert_eq!(upcalls.bound(&ends), Err(Error::Ended));
    let refused = upcalls.create(after, |_| ()).map(drop);
    assert_eq!(refused, Err(Error::NotHere));
    let panics = upcalls.create(most("panics"), |_| panic!("that is all"));
    let panics = panics.unwrap();
    panics.run().unwrap();
    assert!(matches!(rests(&upcalls, &panics), State::Panicked(_)));
    assert_eq!(upcalls.bound(&panics), Err(Error::Ended));
    let last = upcalls.create(most("last"), |_| ()).unwrap();
    assert!(upcalls.bound(&last).is_ok());
    let names: Vec<String> = upcalls.list().into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["ends", "panics", "last"]);
    // What is closed then is no more than before.
    assert_eq!(ends.close().unwrap().calls, 1);
    assert!(upcalls.bound(&last).is_ok());
    let least = upcalls.create(spec("least", MS), |_| ()).unwrap();
    assert!(upcalls.bound(&least).is_ok());
}

/// It is admitted, and nothing is said of how long it may take.
#[test]
fn by_deadline_no_upcall_has_a_bound_of_its_own() {
    let upcalls = Upcalls::start(Options {
        policy: Policy::Edf,
        ..fair()
    });
    let upcalls = upcalls.unwrap();
    let one = upcalls.create(spec("one", MS), |_| ()).unwrap();
    let no = upcalls.bound(&one).unwrap_err();
    assert_eq!(no, Error::NoBound);
    assert!(no.to_string().ends_with("each is over by its deadline"));
}
