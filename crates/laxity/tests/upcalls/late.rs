//! What is asked of an executor that answers late, or has no room for it: it is done all the same, and leaves nothing behind.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use laxity::upcalls::{Error, Spec, State, Upcalls};
use laxity::{Service, now};

use crate::{MS, fair, rests, spec};

/// Whoever ends it again when the handler has come back knows that all that it had is dropped.
#[test]
fn an_executor_may_be_ended_again_until_its_handlers_are_dropped() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let (begins, begun) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let (dropped, drops) = mpsc::channel::<()>();
    let stuck = upcalls.create(spec("stuck", MS), move |_| {
        let _kept = &dropped;
        begins.send(()).unwrap();
        let _ = goes_on.recv();
    });
    stuck.as_ref().unwrap().run().unwrap();
    begun.recv().unwrap();
    for limit in [MS * 20, MS] {
        assert_eq!(upcalls.end(limit), Err(Error::NoAnswer(limit)));
    }
    assert_eq!(drops.try_recv(), Err(mpsc::TryRecvError::Empty));
    drop(go_on);
    upcalls.end(MS * 60_000).unwrap();
    assert_eq!(drops.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    upcalls.end(MS).unwrap();
}

/// What its handlers share is of the executor, too: where it does not come to an end, nor does that.
#[test]
fn an_executor_has_ended_when_what_is_shared_is_dropped() {
    struct Slow(mpsc::Receiver<()>);
    impl Drop for Slow {
        fn drop(&mut self) {
            let _ = self.0.recv();
        }
    }
    let (go_on, goes_on) = mpsc::channel::<()>();
    let upcalls = Upcalls::sharing(fair(), move || Slow(goes_on)).unwrap();
    assert_eq!(upcalls.end(MS * 20), Err(Error::NoAnswer(MS * 20)));
    drop(go_on);
    upcalls.end(MS * 60_000).unwrap();
}

/// It takes the ten seconds for which an answer is waited for, once.
#[test]
fn one_that_is_made_too_late_is_closed_and_leaves_its_share() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let of = |name: &str, percent| Spec {
        name: name.to_owned(),
        ..Spec::each(MS * 100, Service::from_millis(percent))
    };
    let (begins, begun) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let stuck = upcalls.create(of("stuck", 1), move |_| {
        let _ = begins.send(());
        let _ = goes_on.recv();
    });
    let stuck = stuck.unwrap();
    stuck.run().unwrap();
    begun.recv().unwrap();
    let before = now();
    let late = upcalls.create(of("late", 90), |_| ());
    assert_eq!(late.map(drop), Err(Error::NoAnswer(MS * 10_000)));
    assert!(now() - before < MS * 19_000);
    drop(go_on);
    stuck.suspend().unwrap();
    drop(upcalls.create(of("next", 90), |_| ()).unwrap());
    assert_eq!(upcalls.list().len(), 1);
}

/// It is closed when there is room to say so, which its handler tells by its end.
#[test]
fn one_that_is_dropped_while_there_is_no_room_for_commands_is_closed() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let (kept, gone) = mpsc::channel::<()>();
    let dropped = upcalls.create(spec("dropped", MS), move |_| {
        let _kept = &kept;
    });
    let mut dropped = Some(dropped.unwrap());
    let owner = upcalls.create(spec("owner", MS), move |call| {
        if let Some(dropped) = dropped.take() {
            while dropped.run().is_ok() {}
            assert_eq!(dropped.run(), Err(Error::Busy));
        }
        call.end();
    });
    let owner = owner.unwrap();
    owner.run().unwrap();
    assert_eq!(rests(&upcalls, &owner), State::Ended);
    let is_gone = gone.recv_timeout(Duration::from_secs(60));
    assert_eq!(is_gone, Err(mpsc::RecvTimeoutError::Disconnected));
    let names: Vec<String> = upcalls.list().into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["owner"]);
}

/// It was never made, and what it was to be made of goes with the answer.
#[test]
fn what_there_is_no_room_to_make_is_dropped() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let filler = Arc::new(upcalls.create(spec("filler", MS), |_| ()).unwrap());
    let (full, is_full) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let fills = Arc::clone(&filler);
    let owner = upcalls.create(spec("owner", MS), move |call| {
        while fills.run().is_ok() {}
        let _ = full.send(());
        let _ = goes_on.recv();
        call.end();
    });
    let owner = owner.unwrap();
    owner.run().unwrap();
    is_full.recv().unwrap();
    let (kept, dropped) = mpsc::channel::<()>();
    let refused = upcalls.create(spec("refused", MS), move |_| {
        let _kept = &kept;
    });
    assert_eq!(refused.map(drop), Err(Error::Busy));
    assert_eq!(dropped.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    drop(go_on);
    assert_eq!(rests(&upcalls, &owner), State::Ended);
}
