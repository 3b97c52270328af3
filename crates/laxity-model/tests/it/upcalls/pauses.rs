//! Handlers that let others go first in the middle of a quantum, against what admission promised of all; and who waits for a quantum.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use laxity_model::analysis::supply::Dedicated;
use laxity_model::executor::linked::{Linked, bounds};
use laxity_model::executor::rmdp::Rmdp;
use laxity_model::program::upcall::{Call, Timing};
use laxity_model::program::upcalls::{
    Command, Control, Entrant, Keeper, Overhead, STOP, admit_among, task, turns,
};
use laxity_model::{Service, Span, Step};
use proptest::prelude::*;

use crate::upcalls::by_rate;
use crate::upcalls::machine::timing;
use crate::upcalls::machine::{
    COMMANDS, DOORBELL, MICRO, PLACES, Virtual, boards, events, order, us,
};

/// Where a quantum ends early: after so many of its units, and half of the next if that is so.
type Pause = Option<(u32, bool)>;

#[derive(Clone, Debug)]
struct One {
    timing: Timing,
    unit: Service,
    pauses: Vec<Pause>,
}

impl One {
    fn work(&self) -> impl FnMut(&mut Call) -> Service + Send + use<> {
        let (unit, mut pauses) = (self.unit, self.pauses.clone().into_iter().cycle());
        // Of the unit that is under way so much is done.
        let mut begun = Service::ZERO;
        move |call| {
            let (units, rest) = match pauses.next().flatten() {
                Some((units, half)) if call.now() > 0 => {
                    let half = if half { unit / 2 } else { Service::ZERO };
                    (units % call.now(), half)
                }
                _ => (call.now(), Service::ZERO),
            };
            let upto = unit * u64::from(units) + rest;
            if upto <= begun {
                // Nothing would be done.
                let all = (unit * u64::from(call.now())).saturating_sub(begun);
                begun = Service::ZERO;
                return all;
            }
            call.pause_after(units);
            let took = upto.saturating_sub(begun);
            begun = rest;
            took
        }
    }
}

struct Pausing(Vec<One>);

impl Keeper for Pausing {
    fn make(&mut self, _: u16) -> bool {
        true
    }

    fn enter(&mut self, place: u16) -> Option<Entrant> {
        let one = &self.0[usize::from(place)];
        let mut work = one.work();
        Some(Entrant {
            timing: one.timing.clone(),
            paced_by: None,
            deadline: one.timing.period,
            unit: one.unit,
            share: None,
            account: None,
            work: Box::new(move |_, call| Step::Charge(work(call))),
        })
    }

    fn discard(&mut self, _: u16) {}

    fn changed(&self) -> Arc<dyn Fn() + Send + Sync> {
        Arc::new(|| ())
    }
}

fn pausing() -> impl Strategy<Value = Vec<One>> {
    let pauses = proptest::collection::vec(proptest::option::of((0..4_u32, any::<bool>())), 1..4);
    let work = (1..5_u64, 1..6_u32, 1..6_u32);
    let one = (0..40_u64, 10..80_u64, work, pauses, any::<bool>());
    let one = one.prop_map(
        |(first, period, (unit, batch, quantum), pauses, says)| One {
            timing: Timing {
                pauses: says,
                ..timing(first, period, batch, quantum)
            },
            unit: MICRO * (2 * unit),
            pauses,
        },
    );
    proptest::collection::vec(one, 2..=usize::from(PLACES))
}

proptest! {
    /// Whatever the phases, and wherever quanta end: nobody is later than was promised, and nobody took longer than was declared.
    #[test]
    fn whoever_pauses_is_late_no_more_than_whoever_does_not(all in pausing()) {
        let linked = |one: &One| Linked::alone(task(&one.timing, one.unit, one.timing.period).unwrap());
        let Ok(bounds) = bounds(&all.iter().map(linked).collect::<Vec<_>>(), &Dedicated) else {
            return Ok(());
        };
        let commands = |place| [Command::Create, Command::Run].map(|what| order(0, place, what, 0));
        let mut script: Vec<_> = (0..all.len() as u16).flat_map(commands).collect();
        script.push((us(4_000), COMMANDS, STOP));
        let boards = boards();
        let control = Control::new([COMMANDS, events(0)], Arc::clone(&boards), Pausing(all));
        let mut body = turns(Rmdp::default(), DOORBELL, Box::new(control), false);
        Virtual::new(script).run(&mut *body);
        for (board, bound) in boards.iter().zip(bounds) {
            let counts = board.counts();
            prop_assert!(counts.longest_response <= bound, "{bound}: {counts:?}");
            prop_assert_eq!((counts.over_service, counts.missed), (0, 0));
        }
    }
}

/// Says of each quantum that nothing of it is done, which takes a microsecond; the one of the second place does its unit.
struct Idle(Timing, Arc<AtomicU64>);

impl Keeper for Idle {
    fn make(&mut self, _: u16) -> bool {
        true
    }

    fn enter(&mut self, place: u16) -> Option<Entrant> {
        let tried = (place == 0).then(|| Arc::clone(&self.1));
        let timing = tried
            .as_ref()
            .map_or(timing(0, 400, 1, 1), |_| self.0.clone());
        Some(Entrant {
            deadline: timing.period,
            timing,
            paced_by: None,
            unit: MICRO,
            share: None,
            account: None,
            work: Box::new(move |_, call| {
                if let Some(tried) = &tried {
                    assert!(
                        tried.fetch_add(1, Ordering::Relaxed) < 1_000,
                        "it goes on for ever"
                    );
                    call.pause_after(0);
                }
                Step::Charge(MICRO)
            }),
        })
    }

    fn discard(&mut self, _: u16) {}

    fn changed(&self) -> Arc<dyn Fn() + Send + Sync> {
        Arc::new(|| ())
    }
}

/// There is nobody whom it would let go first. It is called once more in case there was, and then at its next release: so the others are called, and what is asked is heard.
#[test]
fn who_does_nothing_has_nothing_to_do() {
    for (batch, quantum, pauses) in [(1, 1, false), (4, 2, false), (4, 2, true)] {
        let idle = Timing {
            pauses,
            ..timing(0, 100, batch, quantum)
        };
        let tried = Arc::new(AtomicU64::new(0));
        let commands = |place| [Command::Create, Command::Run].map(|what| order(0, place, what, 0));
        let mut script: Vec<_> = (0..2).flat_map(commands).collect();
        script.push((us(3_950), COMMANDS, STOP));
        let boards = boards();
        let keep = Idle(idle, Arc::clone(&tried));
        let control = Control::new([COMMANDS, events(0)], Arc::clone(&boards), keep);
        let mut body = turns(Rmdp::default(), DOORBELL, Box::new(control), false);
        Virtual::new(script).run(&mut *body);
        let [idle, other] = [0, 1].map(|place: usize| boards[place].counts());
        assert_eq!((idle.calls, idle.units, idle.missed), (40, 0, 0));
        assert_eq!(tried.load(Ordering::Relaxed), 2 * idle.calls);
        assert_eq!((other.calls, other.units, other.missed), (10, 10, 0));
    }
}

/// 10 us that are due in 63, beside a quantum of 50 of somebody less urgent: 62.5 us with what is charged for the call alone, and 65 with what the quantum takes beside its work.
#[test]
fn who_waits_for_a_quantum_waits_for_what_that_takes_beside_its_work() {
    let present = timing(0, 1_000, 4, 2);
    let present = task(&present, MICRO * 25, present.period).unwrap();
    let overhead = Overhead {
        late: Span::ZERO,
        ..Overhead::default()
    };
    let fits = |period_us| {
        let own = timing(0, period_us, 1, 1);
        let with = |own| [present, own].map(Linked::alone).to_vec();
        let asked = ("new", &own, MICRO * 10, own.period);
        admit_among((&["other"], &with), asked, overhead, &by_rate).is_ok()
    };
    assert!(fits(66));
    assert!(!fits(63));
}

/// A million units in 100 ms, of which timers and entering a call take 102.5 µs.
#[test]
fn less_than_a_microsecond_is_proposed_too() {
    let own = timing(0, 100_000, 1_000_000, 1_000_000);
    let asked = ("new", &own, MICRO, own.period);
    let with = |own| vec![Linked::alone(own)];
    let refused = admit_among((&[], &with), asked, Overhead::default(), &by_rate).unwrap_err();
    assert_eq!(refused.fits, Some(Service::from_nanos(99)));
}
