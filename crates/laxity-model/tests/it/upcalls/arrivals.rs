//! What becomes of arrivals that wait: for one that is suspended, or that is too slow for them.

use std::sync::Arc;

use laxity_model::executor::pacing::OnOverrun;
use laxity_model::executor::rmdp::Rmdp;
use laxity_model::program::upcall::Timing;
use laxity_model::program::upcalls::{Command, Control, STOP, turns};
use laxity_model::{Service, Span, Step};

use crate::upcalls::machine::{
    COMMANDS, DOORBELL, MICRO, ROOM, Virtual, boards, events, keep, order, run, timing, us,
};

/// What waits for an upcall that does not run arrives when it is to run, whatever is chosen for those that come late.
#[test]
fn what_arrived_while_it_was_suspended_is_released_from_the_command_on() {
    for at_most in [0, 1, u32::MAX] {
        let own = Timing {
            on_overrun: OnOverrun::CatchUp { at_most },
            ..timing(0, 100, 1, 1)
        };
        let keep = keep(vec![(own, Some(events(0)))], |_| Step::Charge(MICRO));
        let boards = boards();
        let mut script: Vec<_> = [200, 300, 400, 1_310, 1_320]
            .map(|at| (us(at), events(0), [at, 0]))
            .into();
        for (at, command) in [
            (10, Command::Create),
            (1_000, Command::Run),
            (1_300, Command::Suspend),
            (1_350, Command::Run),
        ] {
            script.push(order(at, 0, command, 0));
        }
        run(&keep, &boards, script, 3_000);
        let calls = keep.calls.lock().unwrap().clone();
        let released = [1_000, 1_100, 1_200, 1_350, 1_450];
        assert_eq!(calls, released.map(|at| (0, us(at))), "{at_most}");
        let counts = boards[0].counts();
        assert_eq!((counts.late, counts.missed, counts.overruns), (0, 0, 0));
        assert_eq!(counts.most_late, Span::ZERO);
    }
}

/// Each call takes one and a half times as long as from one arrival to the next: what is too much finds no room, and is counted.
#[test]
fn what_waits_for_one_that_is_too_slow_is_bounded() {
    for at_most in [8, 2 * ROOM, u32::MAX] {
        let own = Timing {
            on_overrun: OnOverrun::CatchUp { at_most },
            ..timing(0, 10, 1, 1)
        };
        let keep = keep(vec![(own, Some(events(0)))], |_| {
            Step::Charge(Service::from_micros(15))
        });
        let arrivals = (1..=10_000_u64).map(|at| (us(10 * at), events(0), [at, 0]));
        let mut script: Vec<_> = arrivals.collect();
        let commands = [Command::Create, Command::Run];
        script.extend(commands.map(|command| order(1, 0, command, 0)));
        script.push((us(100_000), COMMANDS, STOP));
        let boards = boards();
        let control = Control::new([COMMANDS, events(0)], Arc::clone(&boards), keep.clone());
        let mut body = turns(Rmdp::default(), DOORBELL, Box::new(control), false);
        let mut machine = Virtual::new(script);
        machine.run(&mut *body);
        let usage = machine.usage(events(0));
        let counts = boards[0].counts();
        let held = usage.taken - counts.calls - counts.missed;
        assert!(held <= u64::from(ROOM), "{held} of {usage:?}");
        assert!(counts.calls > 6_000, "{counts:?}");
        if at_most == u32::MAX {
            assert_eq!(counts.missed, 0);
            assert!(usage.dropped > 3_000, "{usage:?}");
        }
    }
}
