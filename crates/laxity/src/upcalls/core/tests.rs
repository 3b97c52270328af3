//! How long an upcall counts, where several executors share a processor.

use std::sync::mpsc::channel;

use laxity_linux::doctor::rights::{self, Right};
use laxity_linux::os::sched::{self, Tid};
use laxity_model::Service;

use super::super::{Options, Rank, Spec, Upcalls};
use super::*;

/// An executor of this priority on the first processor that the test may use.
fn fifo(priority: u8) -> Upcalls {
    let processor = sched::affinity(Tid::current()).unwrap().iter().next();
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

/// What is done of it may make late who is less urgent on its processor, and that one may be behind still when its own executor has nothing to do.
#[test]
fn one_that_is_closed_counts_until_all_have_rested_whom_it_delayed() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let [upper, lower] = [41, 40].map(fifo);
    let spec = || Spec::each(Span::from_millis(10), Service::from_millis(1));
    let (begins, begun) = channel();
    let (go_on, goes_on) = channel::<()>();
    let at_work = lower.create(spec(), move |call| {
        let _ = begins.send(());
        let _ = goes_on.recv();
        call.end();
    });
    let at_work = at_work.unwrap();
    at_work.run().unwrap();
    begun.recv().unwrap();
    let ends = |call: &mut crate::upcalls::Call<'_>| {
        call.end();
    };
    let brief = upper.create(spec(), ends).unwrap();
    brief.run().unwrap();
    upper.sleep(&[&brief]).unwrap();
    brief.close().unwrap();
    let until = Some(crate::now() + PATIENCE);
    let is_done = || upper.core.is_done(0).then_some(());
    upper.core.bell.wait_for(until, is_done).unwrap();
    assert_eq!(beside::closed(&upper.core)[0].len(), 1);
    // Nobody whom it may have delayed, and nobody at all, is waited for here.
    assert_eq!(beside::closed(&lower.core)[0].len(), 0);
    go_on.send(()).unwrap();
    let rested = || beside::closed(&upper.core)[0].is_empty().then_some(());
    beside::CHANGED.wait_for(until, rested).unwrap();
}

/// Whoever asks another executor for that time is who asks whether it is free.
#[test]
fn time_of_one_that_has_ended_on_another_executor_is_had_at_once() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let [one, other] = [40, 40].map(fifo);
    let most = || Spec::each(Span::from_millis(10), Service::from_millis(6));
    let ends = one.create(most(), |call: &mut crate::upcalls::Call<'_>| {
        call.end();
    });
    let ends = ends.unwrap();
    let refused = other.create(most(), |_| ()).map(drop);
    assert!(matches!(refused, Err(Error::NotAdmitted(_))), "{refused:?}");
    ends.run().unwrap();
    one.sleep(&[&ends]).unwrap();
    let last = other.create(most(), |_| ()).unwrap();
    assert!(other.bound(&last).is_ok());
}

/// What it waits for comes when it has returned.
#[test]
fn a_handler_that_asks_another_executor_for_such_time_waits_for_nobody() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let [one, other] = [40, 40].map(fifo);
    let other = Arc::new(other);
    let of_ten = |millis| Spec::each(Span::from_millis(10), Service::from_millis(millis));
    let ends = one.create(of_ten(8), |call: &mut crate::upcalls::Call<'_>| {
        call.end();
    });
    let ends = ends.unwrap();
    let (tell, told) = channel();
    let there = Arc::clone(&other);
    let asks = one.create(of_ten(1), move |call| {
        let begun = crate::now();
        let refused = there.create(of_ten(3), |_| ()).map(drop);
        let _ = tell.send((refused, crate::now() - begun));
        call.end();
    });
    let asks = asks.unwrap();
    // Nobody has asked for a rest before.
    ends.run().unwrap();
    one.sleep(&[&ends]).unwrap();
    asks.run().unwrap();
    let (refused, waited) = told.recv().unwrap();
    assert!(matches!(refused, Err(Error::NotAdmitted(_))), "{refused:?}");
    assert!(waited < PATIENCE, "{waited}");
}
