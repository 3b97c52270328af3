//! Those of other processes that were admitted beside one that takes more than it was admitted with are in time, whatever it takes.

use std::collections::BTreeMap;

use laxity_model::executor::linked::Linked;
use laxity_model::executor::pacing::OnOverrun;
use laxity_model::program::coordinator::{Answer, Item, Registry, Terms, Who};
use laxity_model::program::together::{Standing, detection};
use laxity_model::{Service, Span};
use proptest::prelude::*;

use crate::together::machine::{LIMIT, Machine};
use crate::together::process::{Done, Held, Misbehaves, Spec};
use crate::together::{arrivals, machine_of, specs, upcall};

const END: u64 = 8_000;

fn terms() -> Terms {
    Terms {
        longest: LIMIT,
        tolerance: Service::from_micros(10),
        // It sees a microsecond's work at once.
        switches: Span::from_micros(2),
        pass: Service::ZERO,
        share_ppm: u64::MAX,
        quotas: BTreeMap::new(),
        seats_of_one: 4,
        kept: Span::ZERO,
    }
}

fn held() -> Held {
    let most = Service::from_nanos(detection(LIMIT).as_nanos());
    Some((terms().tolerance, most))
}

/// Who has what, where all of these are admitted together, and within how many microseconds of its release each is promised to be over.
fn admitted(specs: &[Spec]) -> Option<(Registry, Vec<u64>)> {
    let mut registry = Registry::new(terms());
    let last = specs.iter().map(|spec| spec.process).max()?;
    for process in 0..=last {
        let seat = process as u16;
        let who = Who {
            process: process as u32 + 1,
            user: 1,
        };
        registry.joins(seat, who, "");
        let answer = registry.holds(seat, items(specs, process), true);
        if !matches!(answer, Answer::Held(_)) {
            return None;
        }
    }
    let mut promised = vec![0; specs.len()];
    for process in 0..=last {
        let held = registry.holds(process as u16, items(specs, process), false);
        let Answer::Held(bounds) = held else {
            panic!("{held:?} of what is granted");
        };
        let own = (0..specs.len()).filter(|index| specs[*index].process == process);
        for (index, bound) in own.zip(bounds) {
            promised[index] = bound.as_nanos().div_ceil(1_000);
        }
    }
    Some((registry, promised))
}

fn items(specs: &[Spec], process: usize) -> Vec<Item> {
    let own = specs.iter().filter(|spec| spec.process == process);
    let item = |spec: &Spec| Item {
        name: String::new(),
        linked: Linked::alone(spec.task()),
    };
    own.map(item).collect()
}

fn limited(mut machine: Machine, registry: &Registry) -> Machine {
    for (seat, limit) in registry.limits() {
        machine.limit(usize::from(seat), limit);
    }
    machine
}

/// The first call of another process than this one that was not over when that was promised, or did not come.
fn late(specs: &[Spec], promised: &[u64], process: usize, done: &[Done]) -> Option<(usize, u64)> {
    let others = specs.iter().enumerate();
    others
        .filter(|(_, spec)| spec.process != process)
        .find_map(|(index, spec)| {
            let mut calls: BTreeMap<u64, (u32, u64)> = BTreeMap::new();
            for (_, release, _, began) in done.iter().filter(|done| done.0 == index) {
                let call = calls.entry(*release).or_default();
                *call = (call.0 + 1, began + spec.takes);
            }
            let quanta = spec.batch.div_ceil(spec.quantum);
            let in_time = |release: &u64| {
                let (done, ended) = calls.get(release).copied().unwrap_or_default();
                done == quanta && ended <= release + promised[index]
            };
            let grid = (spec.first..END).step_by(spec.period as usize);
            let came = if spec.is_event {
                calls.keys().copied().collect()
            } else {
                grid.collect::<Vec<u64>>()
            };
            let mut due = came.iter().filter(|release| *release + spec.period < END);
            due.find(|release| !in_time(release))
                .map(|release| (index, *release))
        })
}

fn on_overrun() -> impl Strategy<Value = OnOverrun> {
    prop_oneof![
        Just(OnOverrun::SKIP),
        Just(OnOverrun::CatchUp { at_most: 1 }),
        Just(OnOverrun::CatchUp { at_most: u32::MAX }),
        Just(OnOverrun::Suspend),
    ]
}

/// Some of which nobody sees who looks for one that does not come back, and some of which it may.
fn takes() -> impl Strategy<Value = Vec<u64>> {
    let one = prop_oneof![1..40_u64, 1..20_u64, 20..300_u64];
    proptest::collection::vec(one, 1..12)
}

/// One that is called often, by time or by what arrives, of a process that has another one too, and one or two of another process that take long.
fn often() -> impl Strategy<Value = Vec<Spec>> {
    let urgent = (60..160_u64, 1..8_u64, 0..60_u64, any::<bool>());
    let long = || (200..700_u64, 4..40_u32, 2..9_u64, 0..200_u64);
    let own = (150..400_u64, 1..4_u32, 1..8_u64);
    (urgent, own, proptest::collection::vec(long(), 1..3)).prop_map(|(urgent, own, long)| {
        let (period, takes, first, is_event) = urgent;
        let first = 100 + first;
        let urgent = Spec {
            first,
            ..upcall(0, period, (1, takes), is_event)
        };
        let own = upcall(0, own.0, (own.1, own.2), false);
        let long = long.into_iter().map(|(period, batch, takes, first)| {
            let first = 100 + first;
            Spec {
                first,
                ..upcall(1, period, (batch, takes), false)
            }
        });
        [own, urgent].into_iter().chain(long).collect()
    })
}

/// For one of these, so closely that it is mostly released as soon as it may be, and else at any time.
fn dense(upcall: usize) -> impl Strategy<Value = Vec<(u64, usize)>> {
    let gaps = proptest::collection::vec(prop_oneof![0..100_u64, 0..300_u64], 100);
    gaps.prop_map(move |gaps| {
        let mut at = 100;
        let arrivals = gaps.into_iter().map(|gap| {
            at += gap;
            (at, upcall)
        });
        arrivals.collect()
    })
}

/// As many of these, from the first on, as are admitted together; then the one at `upcall` does otherwise. Who of another process is late, if anybody is.
fn misled(specs: &[Spec], arrivals: &[(u64, usize)], wrong: &Misbehaves) -> Option<(usize, u64)> {
    let mut upto = specs.len();
    let (registry, promised) = loop {
        match admitted(&specs[..upto]) {
            Some(admitted) => break admitted,
            None => upto -= 1,
        }
    };
    let specs = &specs[..upto];
    let upcall = wrong.upcall % upto;
    let wrong = Misbehaves {
        upcall,
        ..wrong.clone()
    };
    let machine = machine_of(specs, arrivals, false, (Some(wrong), held()));
    let (done, _) = limited(machine, &registry).run(END);
    late(specs, &promised, specs[upcall].process, &done)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn nobody_else_is_late_whatever_one_upcall_takes(
        specs in specs(),
        arrivals in arrivals(),
        (upcall, takes, on_overrun) in (0..8_usize, takes(), on_overrun()),
    ) {
        let wrong = Misbehaves { upcall, takes, on_overrun };
        prop_assert_eq!(misled(&specs, &arrivals, &wrong), None);
    }

    #[test]
    fn nor_is_anybody_where_that_one_is_called_often(
        specs in often(),
        // In the order of `often` the second.
        arrivals in dense(1),
        (takes, on_overrun) in (takes(), on_overrun()),
    ) {
        let wrong = Misbehaves { upcall: 1, takes, on_overrun };
        prop_assert_eq!(misled(&specs, &arrivals, &wrong), None);
    }

    /// Nobody waits or is removed who keeps to what was declared.
    #[test]
    fn who_keeps_to_what_was_declared_is_held_up_by_nothing(specs in specs(), arrivals in arrivals()) {
        prop_assume!(admitted(&specs).is_some());
        let (free, _) = machine_of(&specs, &arrivals, false, (None, None)).run(END);
        let (registry, _) = admitted(&specs).unwrap();
        let machine = machine_of(&specs, &arrivals, false, (None, held()));
        let (kept, machine) = limited(machine, &registry).run(END);
        prop_assert_eq!(free, kept);
        for process in 0..machine.processes() {
            prop_assert!(machine.standing(process) != Some(Standing::Removed));
        }
    }
}

/// One that takes ninefold in each call, of which the watchdog sees none, beside one that has a tenth of that to spare.
fn ninefold(is_held: bool) -> Option<(usize, u64)> {
    let specs = [
        upcall(0, 100, (1, 5), false),
        upcall(1, 200, (15, 8), false),
    ];
    let (_, promised) = admitted(&specs).unwrap();
    let wrong = Misbehaves {
        upcall: 0,
        takes: vec![45],
        on_overrun: OnOverrun::SKIP,
    };
    let held = held().filter(|_| is_held);
    let (done, _) = machine_of(&specs, &[], false, (Some(wrong), held)).run(END);
    late(&specs, &promised, 0, &done)
}

#[test]
fn who_takes_more_in_each_call_has_to_make_up_for_it() {
    assert_eq!(ninefold(true), None);
    // So that can fail.
    assert!(ninefold(false).is_some());
}

/// It harms nobody where the others have nothing to do, unless it was to be suspended.
#[test]
fn who_takes_more_goes_on_behind_all_others_or_is_suspended() {
    let specs = [
        upcall(0, 100, (1, 5), false),
        upcall(0, 200, (1, 5), false),
        upcall(1, 400, (2, 8), false),
    ];
    let (_, promised) = admitted(&specs).unwrap();
    let calls = |on_overrun| {
        let wrong = Misbehaves {
            upcall: 0,
            takes: vec![45],
            on_overrun,
        };
        let (done, _) = machine_of(&specs, &[], false, (Some(wrong), held())).run(END);
        assert_eq!(late(&specs, &promised, 0, &done), None);
        let of = |index| done.iter().filter(move |done| done.0 == index);
        // Before its own, too, as soon as it owes anything.
        let waited = of(1).skip(1).map(|(_, release, _, began)| began - release);
        assert!(waited.max() <= Some(45), "{:?}", of(1).collect::<Vec<_>>());
        of(0).count()
    };
    let releases = (END - 100).div_ceil(100) as usize;
    assert_eq!(calls(OnOverrun::SKIP), releases);
    // The second has to wait for its next release, and what was chosen for that becomes of it.
    assert_eq!(calls(OnOverrun::Suspend), 2);
}

/// What is longer than what its process was admitted with, though not than what others may be.
#[test]
fn who_does_not_come_back_is_removed_by_the_limit_of_its_own_process() {
    let specs = [upcall(0, 200, (1, 2), false), upcall(1, 300, (1, 2), false)];
    let (registry, _) = admitted(&specs).unwrap();
    let run = |is_limited: bool| {
        let wrong = Misbehaves {
            upcall: 1,
            takes: vec![2, 40],
            on_overrun: OnOverrun::SKIP,
        };
        let machine = machine_of(&specs, &[], false, (Some(wrong), None));
        let machine = match is_limited {
            true => limited(machine, &registry),
            false => machine,
        };
        machine.run(END).1.standing(1)
    };
    assert_eq!(run(true), Some(Standing::Removed));
    assert_ne!(run(false), Some(Standing::Removed));
}
