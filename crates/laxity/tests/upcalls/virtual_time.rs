//! Upcalls of virtual time: called where their process sleeps or serves them, and what counts of what was asked meanwhile.

use std::sync::{Arc, mpsc};
use std::thread;

use laxity::now;
use laxity::upcalls::{State, Upcalls, Virtual};

use crate::endings::{goes_on, ticking};
use crate::{MS, fair, rests, spec};

/// Of what was asked during a call the last counts, and then what the call itself asked.
#[test]
fn one_of_virtual_time_that_ran_and_was_suspended_during_a_call_is_not_called_again() {
    let upcalls = Upcalls::start(fair()).unwrap();
    type Ask = fn(&Virtual);
    let asked: [(&[Ask], u64); 4] = [
        (&[], 1),
        (&[Virtual::run, Virtual::suspend], 1),
        (&[Virtual::suspend, Virtual::run], 2),
        (&[Virtual::run], 2),
    ];
    for (asked, calls) in asked {
        let ((tell, told), (go, goes)) = (mpsc::channel(), mpsc::channel::<()>());
        let one = upcalls.create_virtual(move |call| {
            call.suspend();
            tell.send(()).unwrap();
            assert!(goes.recv().is_err());
        });
        one.run();
        thread::scope(|scope| {
            let served = scope.spawn(|| upcalls.serve());
            told.recv().unwrap();
            for ask in asked {
                ask(&one);
            }
            drop(go);
            assert_eq!(served.join().unwrap(), calls);
        });
        assert_eq!((one.calls(), one.state()), (calls, State::Suspended));
    }
}

/// They are called where the process sleeps, in turns, in its own thread, and never at once.
#[test]
fn those_of_virtual_time_are_called_when_their_process_would_run() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let (tell, told) = mpsc::channel();
    let virtuals = [0, 1].map(|who| {
        let (tell, mut left) = (tell.clone(), 3);
        upcalls.create_virtual(move |call| {
            tell.send((who, thread::current().id())).unwrap();
            left -= 1;
            match left {
                0 => call.suspend(),
                -1 => call.end(),
                -2 => panic!("never"),
                _ => {}
            }
        })
    });
    let (upcall, calls) = ticking(&upcalls);
    for one in &virtuals {
        assert_eq!(one.state(), State::Suspended);
        one.run();
    }
    goes_on(&upcalls, &calls);
    assert!(told.try_recv().is_err(), "nobody slept");
    let slept = upcalls.sleep_until(&[&upcall], now() + MS * 5);
    assert_eq!(slept, Ok(vec![]));
    let own = thread::current().id();
    let expected = [0, 1, 0, 1, 0, 1].map(|who| (who, own));
    assert_eq!(told.try_iter().collect::<Vec<_>>(), expected);
    assert_eq!(
        virtuals.each_ref().map(Virtual::state),
        [State::Suspended, State::Suspended]
    );
    // A handler has one run, while somebody sleeps.
    let mut virtuals = virtuals.into_iter();
    let (first, second) = (virtuals.next().unwrap(), virtuals.next().unwrap());
    let first = Arc::new(first);
    let runs = Arc::clone(&first);
    let asks = upcalls.create(spec("asks", MS), move |call| {
        runs.run();
        if runs.state() == State::Ended {
            call.suspend();
        }
    });
    let asks = asks.unwrap();
    asks.run().unwrap();
    assert_eq!(rests(&upcalls, &asks), State::Suspended);
    assert_eq!((first.state(), first.calls()), (State::Ended, 4));
    let panics = upcalls.create_virtual(|_| panic!("on purpose"));
    panics.run();
    second.run();
    assert_eq!(upcalls.serve(), 2);
    assert_eq!(panics.state(), State::Panicked("on purpose".to_owned()));
    drop((first, second, panics));
    assert_eq!(upcalls.serve(), 0);
}
