//! Upcalls on this machine: called on their grid, one after the other, and told what became of each. What needs no rank is tried as an ordinary thread.

mod beside;
mod endings;
#[path = "../together/halts.rs"]
mod halts;
mod late;
mod links;
mod looks;
mod rank;
mod refusals;
mod time_of_day;
mod virtual_time;

use std::cell::Cell;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::thread;

use laxity::upcall::{First, OnOverrun};
use laxity::upcalls::{Call, Error, Options, Pace, Rank, Spec, State, Upcall, Upcalls};
use laxity::{Instant, Service, Span, now};

const MS: Span = Span::from_millis(1);

fn fair() -> Options {
    Options {
        rank: Rank::Fair,
        ..Options::default()
    }
}

fn spec(name: &str, period: Span) -> Spec {
    let mut spec = Spec::each(period, Service::from_micros(10));
    spec.name = name.to_owned();
    spec
}

/// Waits until it is not active any more; a minute is for ever.
fn rests<S: 'static>(upcalls: &Upcalls<S>, upcall: &Upcall) -> State {
    let idle = upcalls.sleep_until(&[upcall], now() + Span::from_secs(60));
    assert_eq!(idle, Ok(vec![0]));
    upcall.state()
}

#[test]
fn every_call_is_on_the_grid_and_told_what_was_missed() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let (tell, told) = mpsc::channel();
    let mut spec = spec("grid", MS);
    let first = now() + MS * 3;
    spec.timing.first = First::At(first);
    let upcall = upcalls.create(spec, move |call| {
        tell.send((call.paced, call.began, call.previous_ended))
            .unwrap();
        if call.paced.release >= first + MS * 40 {
            call.end();
        }
    });
    let upcall = upcall.unwrap();
    assert_eq!(upcall.state(), State::Suspended);
    upcall.run().unwrap();
    assert_eq!(rests(&upcalls, &upcall), State::Ended);
    assert_eq!(upcall.run(), Err(Error::Ended));
    let counts = upcall.close().unwrap();
    let calls: Vec<_> = told.iter().collect();
    assert_eq!(counts.calls, calls.len() as u64);
    let index = |at: Instant| {
        let since = at.saturating_since(first).as_nanos();
        assert_eq!(since % MS.as_nanos(), 0);
        since / MS.as_nanos()
    };
    let mut expected = index(calls[0].0.release);
    let mut ended = None;
    for (paced, began, previous_ended) in calls {
        expected += paced.missed;
        assert_eq!(index(paced.release), expected);
        assert!(began >= paced.release && previous_ended >= ended);
        (expected, ended) = (expected + 1, previous_ended);
    }
}

/// They share what no other thread may have, and no lock: the compiler agrees.
#[test]
fn handlers_share_what_is_of_their_thread() {
    let upcalls = Upcalls::sharing(fair(), || Rc::new(Cell::new(0))).unwrap();
    let counts = |most: u32| {
        move |shared: &mut Rc<Cell<u32>>| {
            let own = Rc::clone(shared);
            move |call: &mut Call<'_, Rc<Cell<u32>>>| {
                assert!(Rc::ptr_eq(&own, call.shared));
                own.set(own.get() + 1);
                if own.get() >= most {
                    call.suspend();
                }
            }
        }
    };
    let one = upcalls.create_there(spec("one", MS), counts(10)).unwrap();
    let other = upcalls
        .create_there(spec("other", MS * 2), counts(10))
        .unwrap();
    one.run().unwrap();
    other.run().unwrap();
    let states = [&one, &other].map(|upcall| rests(&upcalls, upcall));
    assert_eq!(states, [State::Suspended, State::Suspended]);
    // The second to see it was called once more.
    assert_eq!(one.counts().calls + other.counts().calls, 11);
}

/// Who would be late is said, and who asked for that.
#[test]
fn a_refusal_names_both() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let of = |name: &str, period: u64, service: u64| Spec {
        name: name.to_owned(),
        ..Spec::each(MS * period, Service::from_millis(service))
    };
    let _video = upcalls.create(of("video", 10, 6), |_| ()).unwrap();
    let refused = |spec| upcalls.create(spec, |_| ()).unwrap_err().to_string();
    let other = refused(of("audio", 9, 5));
    let begins = "not admitted: video may be late if audio is admitted: ";
    assert!(other.starts_with(begins), "{other}");
    let own = refused(of("control", 5, 1));
    assert!(
        own.starts_with("not admitted: control may be late: "),
        "{own}"
    );
}

/// Each with what is wrong, and nobody is asked about it.
#[test]
fn what_can_be_no_upcall_is_told_apart_from_what_does_not_fit() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let refused = |spec: Spec| upcalls.create(spec, |_| ()).unwrap_err().to_string();
    let nul = "\"a\\0b\" is no name: there is a NUL in it";
    assert_eq!(refused(spec("a\0b", MS)), nul);
    let group = upcalls.group("a\0b", Service::from_micros(1), MS);
    assert_eq!(group.unwrap_err().to_string(), nul);
    let named = Options {
        name: "a\0b".to_owned(),
        ..fair()
    };
    assert_eq!(Upcalls::start(named).err().unwrap().to_string(), nul);
    let never = refused(spec("never", Span::ZERO));
    assert_eq!(
        never,
        "never cannot be an upcall: the period must be more than zero"
    );
    // A quantum of more units than there are is all of them.
    let mut long = spec("long", MS);
    long.timing.quantum = 2.try_into().unwrap();
    assert!(upcalls.create(long, |_| ()).is_ok());
    let other = Upcalls::start(fair()).unwrap();
    let foreign = other.create(spec("foreign", MS), |_| ()).unwrap();
    let bound = upcalls.bound(&foreign).unwrap_err();
    assert_eq!(bound, Error::NotHere);
    assert!(bound.to_string().contains("of another executor"), "{bound}");
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let mut half = spec("half", MS * 10);
    half.service = Service::from_millis(5);
    let first = upcalls.create(half.clone(), |_| ()).unwrap();
    let mut most = half.clone();
    (most.name, most.service) = ("most".to_owned(), Service::from_millis(6));
    let before = upcalls.list();
    let Err(Error::NotAdmitted(no)) = upcalls.create(most.clone(), |_| ()) else {
        panic!("more was admitted than there is");
    };
    assert_eq!(upcalls.list(), before);
    let fits = no.fits.expect("there is something left");
    assert!(
        fits < Service::from_millis(5) && fits > Service::from_millis(4),
        "{no}"
    );
    let said = no.to_string();
    assert!(
        no.asked == "most" && said.contains(" a unit most would fit"),
        "{said}"
    );
    most.service = fits;
    let second = upcalls.create(most.clone(), |_| ()).unwrap();
    assert!(matches!(
        upcalls.create(half.clone(), |_| ()),
        Err(Error::NotAdmitted(_))
    ));
    // What is closed gives its room back.
    second.close().unwrap();
    drop(first);
    most.service = Service::from_millis(6);
    let alone = upcalls.create(most, |_| ()).unwrap();
    let names: Vec<String> = upcalls.list().into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["most"]);
    drop(alone);
    assert_eq!(upcalls.list(), []);
}

#[test]
fn who_is_suspended_is_not_called_and_keeps_its_phase() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let (tell, told) = mpsc::channel();
    let upcall = upcalls.create(spec("phased", MS * 2), move |call| {
        tell.send(call.paced.release).unwrap();
    });
    let upcall = upcall.unwrap();
    upcall.run().unwrap();
    let first = told.recv().unwrap();
    upcall.suspend().unwrap();
    let before = upcall.counts();
    assert_eq!(before.calls, 1 + told.try_iter().count() as u64);
    // Another one passes the time.
    let mut left = 10;
    let clock = upcalls.create(spec("clock", MS), move |call| {
        left -= 1;
        if left == 0 {
            call.suspend();
        }
    });
    let clock = clock.unwrap();
    clock.run().unwrap();
    assert_eq!(rests(&upcalls, &clock), State::Suspended);
    assert_eq!(
        (upcall.counts(), upcall.state()),
        (before, State::Suspended)
    );
    upcall.run().unwrap();
    let later = told.recv().unwrap();
    assert!(later > first + MS * 8);
    assert_eq!((later - first).as_nanos() % (MS * 2).as_nanos(), 0);
}

#[test]
fn a_panic_ends_one_handler_and_is_told() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let bad = upcalls
        .create(spec("bad", MS), |_| panic!("on purpose"))
        .unwrap();
    let good = upcalls.create(spec("good", MS), |_| ()).unwrap();
    good.run().unwrap();
    bad.run().unwrap();
    let panicked = State::Panicked("on purpose".to_owned());
    assert_eq!(rests(&upcalls, &bad), panicked);
    assert_eq!(bad.run(), Err(Error::Ended));
    assert_eq!(good.state(), State::Active);
    let made = upcalls.create_there(spec("worse", MS), |()| -> fn(&mut Call) {
        panic!("as it is made")
    });
    assert_eq!(
        made.map(drop),
        Err(Error::Panicked("as it is made".to_owned()))
    );
    assert_eq!(upcalls.list().len(), 2);
    let shared = Upcalls::sharing(fair(), || -> u32 { panic!("at once") });
    assert_eq!(shared.map(drop), Err(Error::Panicked("at once".to_owned())));
}

#[test]
fn an_overrun_is_counted_and_has_the_consequence_that_was_chosen() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let overruns = |on_overrun| {
        let mut spec = spec("long", MS);
        spec.timing.on_overrun = on_overrun;
        let upcall = upcalls.create(spec, |call| {
            let until = call.paced.release + MS * 5;
            while now() < until {}
        });
        let upcall = upcall.unwrap();
        upcall.run().unwrap();
        upcall
    };
    let suspended = overruns(OnOverrun::Suspend);
    assert_eq!(rests(&upcalls, &suspended), State::Overran);
    assert_eq!(suspended.counts().overruns, 1);
    suspended.run().unwrap();
    assert_eq!(rests(&upcalls, &suspended), State::Overran);
    assert_eq!(suspended.close().unwrap().overruns, 2);
    let ended = overruns(OnOverrun::End);
    assert_eq!(rests(&upcalls, &ended), State::Ended);
    assert_eq!(ended.run(), Err(Error::Ended));
}

#[test]
fn a_handler_may_ask_but_not_wait() {
    let upcalls = Upcalls::sharing(fair(), || None::<Upcall>).unwrap();
    let ticking = upcalls.create(spec("ticking", MS), |_| ()).unwrap();
    ticking.run().unwrap();
    let owner = upcalls.create_there(spec("owner", MS), move |shared| {
        *shared = Some(ticking);
        move |call: &mut Call<'_, Option<Upcall>>| match call.shared.take() {
            Some(own) if own.state() == State::Active => {
                own.suspend().unwrap();
                *call.shared = Some(own);
            }
            // It is not before this quantum is over, so it was asked in the one before.
            Some(own) => {
                drop(own);
                call.suspend();
            }
            None => call.end(),
        }
    });
    let owner = owner.unwrap();
    owner.run().unwrap();
    assert_eq!(rests(&upcalls, &owner), State::Suspended);
    let names: Vec<String> = upcalls.list().into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["owner"]);
}

#[test]
fn arrivals_release_it_and_are_bounded() {
    let options = Options {
        events: 4,
        ..fair()
    };
    let upcalls = Upcalls::start(options).unwrap();
    let (tell, told) = mpsc::channel();
    let mut spec = spec("fed", MS);
    spec.pace = Pace::Arrivals;
    // All are to be called, late or not.
    spec.timing.on_overrun = OnOverrun::CatchUp { at_most: 10 };
    let fed = upcalls.create(spec, move |call| {
        tell.send((call.arrived, call.paced.release)).unwrap();
    });
    let fed = fed.unwrap();
    let timed = upcalls.create(self::spec("timed", MS), |_| ()).unwrap();
    assert_eq!(timed.release([1, 2]), Err(Error::NoArrivals));
    let put: Vec<_> = (0..6).map(|number| fed.release([number, 7])).collect();
    assert_eq!(put[..4], vec![Ok(()); 4]);
    assert_eq!(put[4..], [Err(Error::Busy), Err(Error::Busy)]);
    fed.run().unwrap();
    let calls: Vec<_> = told.iter().take(4).collect();
    for (number, (arrived, _)) in (0..).zip(&calls) {
        assert_eq!(*arrived, Some([number, 7]));
    }
    assert!(calls.windows(2).all(|two| two[1].1 >= two[0].1 + MS));
    fed.release([9, 9]).unwrap();
    assert_eq!(told.recv().unwrap().0, Some([9, 9]));
}

#[test]
fn a_descriptor_releases_it_for_as_long_as_it_can_be_read() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut taken = reader.try_clone().unwrap();
    let reader = Arc::new(OwnedFd::from(reader));
    let (tell, told) = mpsc::channel();
    let mut spec = spec("fed", MS);
    spec.pace = Pace::Descriptor(Arc::clone(&reader));
    let fed = upcalls.create(spec, move |call| {
        let mut byte = [0];
        let count = taken.read(&mut byte).unwrap();
        tell.send((&byte[..count] != b"", byte[0], call.paced.release))
            .unwrap();
        if count == 0 {
            call.suspend();
        }
    });
    let fed = fed.unwrap();
    fed.run().unwrap();
    writer.write_all(b"ab").unwrap();
    let [first, second] = [0; 2].map(|_| told.recv().unwrap());
    assert_eq!([first.1, second.1], *b"ab");
    assert!(second.2 >= first.2 + MS);
    writer.write_all(b"c").unwrap();
    assert_eq!(told.recv().unwrap().1, b'c');
    drop(writer);
    assert!(!told.recv().unwrap().0);
    assert_eq!(rests(&upcalls, &fed), State::Suspended);
    fed.close().unwrap();
    // The executor has looked at what feeds it again when it has answered for another one.
    drop(upcalls.create(self::spec("other", MS), |_| ()).unwrap());
    drop(upcalls);
    assert_eq!(Arc::strong_count(&reader), 1);
}

/// Of two that close it at once one does, and what takes its place is fed.
#[test]
fn who_closes_it_second_changes_nothing_of_the_next() {
    let upcalls = Upcalls::start(fair()).unwrap();
    for _ in 0..200 {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut fed = spec("fed", MS);
        fed.pace = Pace::Descriptor(Arc::new(OwnedFd::from(reader)));
        let first = upcalls.create(fed.clone(), |_| ()).unwrap();
        let (tell, told) = mpsc::channel();
        let close_and_make = || {
            let tell = tell.clone();
            first.end().ok().map(|_| {
                let next = upcalls.create(fed.clone(), move |call| {
                    tell.send(()).unwrap();
                    call.suspend();
                });
                next.unwrap()
            })
        };
        let made = thread::scope(|scope| {
            let other = scope.spawn(close_and_make);
            [close_and_make(), other.join().unwrap()]
        });
        assert_eq!(made.iter().flatten().count(), 1);
        for next in made.iter().flatten() {
            next.run().unwrap();
        }
        writer.write_all(b"a").unwrap();
        told.recv().unwrap();
    }
}

#[test]
fn a_caller_that_blocks_holds_no_upcall_up() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let ticks = upcalls.create(spec("ticks", MS), move |_| {
        (&writer).write_all(b"t").unwrap();
    });
    let ticks = ticks.unwrap();
    ticks.run().unwrap();
    // Blocks until the tenth call has written, and nobody else does.
    reader.read_exact(&mut [0; 10]).unwrap();
    assert!(ticks.counts().calls >= 10);
}

#[test]
fn closing_and_dropping_end_what_was_made_and_others_see_it() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let mut made = Vec::new();
    loop {
        match upcalls.create(spec("one of many", Span::from_secs(1)), |_| ()) {
            Ok(upcall) => made.push(upcall),
            Err(error) => break assert_eq!(error, Error::Full),
        }
    }
    assert_eq!(made.len(), 127);
    for upcall in &made {
        upcall.run().unwrap();
    }
    drop(made);
    assert_eq!(upcalls.list(), []);
    let last = upcalls.create(spec("last", MS), |_| ()).unwrap();
    last.run().unwrap();
    let waits = thread::scope(|scope| {
        let waits = scope.spawn(|| upcalls.sleep(&[&last]));
        last.end().unwrap();
        waits.join().unwrap()
    });
    assert_eq!((waits, last.end()), (Ok(vec![0]), Err(Error::Ended)));
    let orphan = upcalls.create(spec("orphan", MS), |_| ()).unwrap();
    drop(upcalls);
    assert_eq!(
        (orphan.run(), orphan.state()),
        (Err(Error::Over), State::Closed)
    );
}

#[test]
fn thousands_come_and_go_from_several_threads() {
    let upcalls = Upcalls::start(fair()).unwrap();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..1_000 {
                    let upcall = upcalls.create(spec("brief", MS * 100), |_| ()).unwrap();
                    upcall.run().unwrap();
                    upcall.close().unwrap();
                }
            });
        }
    });
    assert_eq!(upcalls.list(), []);
}
