//! Executors of several processes take turns as one would that had all their upcalls, whatever becomes of one of them.

mod guards;
mod held;
mod machine;
mod process;

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use laxity_model::executor::rmdp::Rmdp;
use laxity_model::program::together::{Act, Member, Standing};
use laxity_model::program::upcalls::{Command, turns};
use laxity_model::{Body, Context, Instant, PortId, Service, Span, Step};
use machine::{GRACE, LIMIT, Machine, Shared};
use process::{Ask, Done, Fault, Held, Misbehaves, Own, Spec};
use proptest::prelude::*;

/// Upcalls of three processes, no two of one rate, that leave some time.
fn specs() -> impl Strategy<Value = Vec<Spec>> {
    let one = (
        0..3_usize,
        0..400_u64,
        1..6_u32,
        1..4_u32,
        1..8_u64,
        any::<bool>(),
    );
    let periods = Just((1..12_u64).map(|step| 100 + 90 * step).collect::<Vec<_>>()).prop_shuffle();
    (proptest::collection::vec(one, 1..8), periods).prop_map(|(all, periods)| {
        let all = all.into_iter().zip(periods);
        all.map(
            |((process, first, batch, quantum, takes, is_event), period)| Spec {
                process,
                first: 100 + first,
                period,
                batch,
                quantum,
                takes,
                is_event,
            },
        )
        .collect()
    })
}

fn arrivals() -> impl Strategy<Value = Vec<(u64, usize)>> {
    proptest::collection::vec((100..4_000_u64, 0..8_usize), 0..20)
}

/// The place of an upcall in its process, or in the one that has all.
fn place(specs: &[Spec], upcall: usize, alone: bool) -> u16 {
    let before = specs[..upcall].iter();
    let beside = before.filter(|other| alone || other.process == specs[upcall].process);
    beside.count() as u16
}

fn machine(specs: &[Spec], arrivals: &[(u64, usize)], alone: bool) -> Machine {
    machine_of(specs, arrivals, alone, (None, None))
}

fn machine_of(
    specs: &[Spec],
    arrivals: &[(u64, usize)],
    alone: bool,
    held: (Option<Misbehaves>, Held),
) -> Machine {
    let mut machine = Machine::held(specs, alone, held);
    for (at, upcall) in arrivals {
        let upcall = upcall % specs.len();
        if specs[upcall].is_event {
            let process = if alone { 0 } else { specs[upcall].process };
            machine.arrives(*at, process, place(specs, upcall, alone));
        }
    }
    machine
}

const END: u64 = 4_000;

proptest! {
    #[test]
    fn several_processes_are_as_one(specs in specs(), arrivals in arrivals()) {
        let (one, _) = machine(&specs, &arrivals, true).run(END);
        let (several, machine) = machine(&specs, &arrivals, false).run(END);
        prop_assert_eq!(one, several);
        // Nobody was taken for one who blocks.
        for process in 0..machine.processes() {
            prop_assert!(machine.standing(process) != Some(Standing::Withdrawn));
        }
    }

    /// Whatever becomes of one process, the others' upcalls are all called, as late as they may be where all have something to do, and the sentinel looks.
    #[test]
    fn nobody_is_held_up_by_one_that_blocks_stops_or_dies(
        specs in specs(),
        arrivals in arrivals(),
        (process, after, fault) in (0..3_usize, 1..20_u64, fault()),
    ) {
        let (untroubled, _) = machine(&specs, &arrivals, false).run(END);
        let mut machine = machine(&specs, &arrivals, false);
        let process = process % machine.processes();
        machine.befalls(process, after, fault);
        let (done, _) = machine.run(END);
        let others = |done: &[Done]| calls(done, |upcall| specs[upcall].process != process);
        let all: u64 = specs.iter().map(|spec| u64::from(spec.batch) * spec.takes).sum();
        let removal = match fault {
            // And what is left of a quantum when it is time to look.
            Fault::Strays(_) => 2 * LIMIT.as_nanos() / 1_000 + 8,
            _ => 0,
        };
        let bound = 2 * all + GRACE.as_nanos() / 1_000 + 1 + removal;
        let found = others(&done);
        for ((upcall, release), _) in others(&untroubled) {
            if release + bound > END {
                continue;
            }
            let began = found.get(&(upcall, release));
            prop_assert!(began.is_some_and(|began| began - release <= bound), "{upcall} at {release}: {began:?}");
        }
    }

    /// However many commands there are, which leave a process with no timer of its own.
    #[test]
    fn whoever_is_called_is_served(
        specs in specs(),
        arrivals in arrivals(),
        asked in proptest::collection::vec((100..2_500_u64, 0..8_usize, any::<bool>()), 1..20),
    ) {
        let mut machine = machine(&specs, &arrivals, false);
        let asks = asked.into_iter().zip(1..).map(|((at, upcall, runs), ticket)| {
            let upcall = upcall % specs.len();
            let command = if runs { Command::Run } else { Command::Suspend };
            (at, Ask { process: specs[upcall].process, place: place(&specs, upcall, false), command, ticket })
        });
        let mut asks: Vec<(u64, Ask)> = asks.collect();
        asks.sort_by_key(|(at, _)| *at);
        asks.iter().for_each(|(at, ask)| machine.asks(*at, ask));
        let (_, machine) = machine.run(END);
        // Of one place the last answer is known.
        let last: BTreeMap<_, _> = asks.iter().map(|(_, ask)| ((ask.process, ask.place), ask)).collect();
        for ask in last.values() {
            prop_assert!(machine.has_answered(ask), "{:?} of {}", ask.command, ask.process);
        }
    }

    /// One that comes back is called as before, and nothing else of it was called meanwhile.
    #[test]
    fn who_was_interrupted_goes_on_before_all_else_of_its_process(
        specs in specs(),
        (process, after, micros) in (0..3_usize, 1..10_u64, 1..600_u64),
    ) {
        let mut machine = machine(&specs, &[], false);
        let process = process % machine.processes();
        machine.befalls(process, after, Fault::Blocks(micros));
        let (done, machine) = machine.run(END);
        let own: Vec<&Done> = done.iter().filter(|done| specs[done.0].process == process).collect();
        if let Some(hit) = own.get(after as usize - 1) {
            let blocked = hit.3 + specs[hit.0].takes;
            if let Some(next) = own.get(after as usize) {
                prop_assert!(next.3 >= blocked + micros, "{next:?} within {blocked} and {micros} after it");
            }
            // It is not forgotten.
            let waits = matches!(machine.standing(process), Some(Standing::Waiting | Standing::Working));
            prop_assert!(waits || blocked + micros + 100 > END);
            let last = own.last().map_or(0, |last| last.3);
            let most = specs.iter().map(|spec| spec.period).max().unwrap_or(0);
            let has_timer = specs.iter().any(|spec| spec.process == process && !spec.is_event);
            prop_assert!(!has_timer || last.max(blocked + micros) + 2 * most > END, "last called at {last}");
        }
    }
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        (1..2_000_u64).prop_map(Fault::Blocks),
        (1..2_000_u64).prop_map(Fault::Stops),
        (1..2_000_u64).prop_map(Fault::Strays),
        Just(Fault::Dies),
    ]
}

/// When the calls of some upcalls began, by release.
fn calls(done: &[Done], of: impl Fn(usize) -> bool) -> BTreeMap<(usize, u64), u64> {
    let first = done
        .iter()
        .filter(|(upcall, _, units, _)| *units == 0 && of(*upcall));
    first
        .map(|(upcall, release, _, began)| ((*upcall, *release), *began))
        .collect()
}

/// What the sentinel is for.
#[test]
fn an_unguarded_region_waits_for_who_blocks() {
    let specs = [200, 300].map(|period| upcall(usize::from(period > 200), period, (1, 1), false));
    let after = |guarded: bool| {
        let mut machine = Machine::new(&specs, false);
        if !guarded {
            machine.leave_unguarded();
        }
        machine.befalls(0, 1, Fault::Blocks(1_000));
        let (done, _) = machine.run(END);
        let first = done.iter().find(|done| done.0 == 1);
        first.map(|(.., began)| *began)
    };
    assert_eq!(after(true), Some(105));
    assert_eq!(after(false), Some(1_101));
}

/// An upcall whose quanta are one unit each; arrivals release it, or time.
const fn upcall(process: usize, period: u64, (batch, takes): (u32, u64), is_event: bool) -> Spec {
    Spec {
        process,
        first: 100,
        period,
        batch,
        quantum: 1,
        takes,
        is_event,
    }
}

const fn suspends(process: usize, ticket: u64) -> Ask {
    Ask {
        process,
        place: 0,
        command: Command::Suspend,
        ticket,
    }
}

/// Before each step of anybody, whatever the other process has to do then.
#[test]
fn who_is_called_is_served_whenever_that_is() {
    let specs = [upcall(0, 80, (3, 5), false), upcall(1, 300, (3, 5), true)];
    for arrival in 90..180 {
        for step in 0..120 {
            let mut machine = Machine::new(&specs, false);
            machine.arrives(arrival, 1, 0);
            machine.asks_before(step, &suspends(1, 1));
            let (_, machine) = machine.run(3_000);
            assert!(
                machine.has_answered(&suspends(1, 1)),
                "asked before step {step}, with an arrival at {arrival}"
            );
        }
    }
}

/// While another has much to do that is less urgent, and does not sleep.
#[test]
fn an_urgent_upcall_of_one_that_comes_back_begins_within_a_quantum_of_another() {
    let long = Spec {
        first: 110,
        ..upcall(1, 900, (60, 7), false)
    };
    let specs = [
        upcall(0, 100, (1, 1), false),
        upcall(0, 1_000, (2, 2), false),
        long,
    ];
    let mut machine = Machine::new(&specs, false);
    machine.befalls(0, 2, Fault::Blocks(30));
    let (done, _) = machine.run(1_000);
    let fast = calls(&done, |upcall| upcall == 0);
    for ((_, release), began) in &fast {
        assert!(
            began - release <= 7,
            "released at {release}, began at {began}"
        );
    }
    assert_eq!(fast.len(), 9);
}

/// It was seen to work before the baton rested, and when somebody else is due.
#[test]
fn one_that_comes_back_to_a_handler_for_good_is_removed_within_twice_the_limit() {
    let specs = [upcall(0, 100, (1, 1), false), upcall(1, 300, (1, 1), false)];
    for blocked in 1..400 {
        let mut machine = Machine::new(&specs, false);
        machine.befalls(1, 1, Fault::Strays(blocked));
        let (done, machine) = machine.run(1_000);
        assert_eq!(
            machine.standing(1),
            Some(Standing::Removed),
            "blocked for {blocked}"
        );
        let calls = calls(&done, |upcall| upcall == 0);
        for ((_, release), began) in &calls {
            assert!(
                began - release <= 2 * LIMIT.as_nanos() / 1_000,
                "blocked for {blocked}: {release}, {began}"
            );
        }
        assert_eq!(calls.len(), 9);
    }
}

/// Of two with upcalls of one rate, each of which is asked something while it has work.
#[test]
fn two_that_are_asked_at_once_both_answer() {
    let specs = [0, 1].map(|process| upcall(process, 300, (2, 5), false));
    let asks = [0, 1].map(|process| suspends(process, 1));
    for first in 0..60 {
        for second in 0..60 {
            let mut machine = Machine::new(&specs, false);
            for (step, ask) in [first, second].into_iter().zip(&asks) {
                machine.asks_before(step, ask);
            }
            let (_, machine) = machine.run(3_000);
            let answered = asks.iter().all(|ask| machine.has_answered(ask));
            assert!(answered, "asked before steps {first} and {second}");
        }
    }
}

/// Waits for something to arrive at the second port, and then for so long, and counts how often it was called.
struct Naps(Span, Arc<AtomicU64>);

impl Body for Naps {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        match self.1.fetch_add(1, Ordering::Relaxed) % 2 {
            0 => Step::Wait(PortId(1)),
            _ => Step::SleepUntil(context.now() + self.0),
        }
    }
}

/// The clock goes on while an executor looks, so a release may come between any two of its readings.
#[test]
fn what_is_released_while_an_executor_looks_is_not_slept_through() {
    for nap in (0..200).map(Span::from_nanos) {
        let region = Arc::new(Shared::default());
        let seat = 0;
        region.gives(seat);
        let mut own = Own {
            now: Cell::new(Instant::from_micros(100)),
            reading: Span::from_nanos(10),
            received: Service::ZERO,
            ports: vec![VecDeque::new(); 2],
            rings: vec![None; 2],
            awaited: vec![false; 2],
            member: Member::sit(Arc::clone(&region), seat, 1),
        };
        let naps = Arc::new(AtomicU64::new(0));
        let first = Naps(nap, Arc::clone(&naps));
        let mut body = turns(Rmdp::default(), PortId(0), Box::new(first), true);
        while naps.load(Ordering::Relaxed) < 100 {
            let step = body.step(&mut own);
            if !matches!(step, Step::Wait(_) | Step::WaitUntil(..)) {
                continue;
            }
            loop {
                let now = own.now();
                match own.member.as_mut().unwrap().wait(now) {
                    Act::Sleep { until, .. } if until < Instant::MAX => own.now.set(until.max(now)),
                    Act::Sleep { .. } => {
                        let waits = naps.load(Ordering::Relaxed) % 2 == 1;
                        assert!(waits, "nobody wakes it after {nap}");
                        own.put(PortId(1), [0; 2]);
                        region.call(seat, now);
                    }
                    _ => break,
                }
            }
        }
    }
}
