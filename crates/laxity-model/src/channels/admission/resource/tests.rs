//! What the grid lets a resource say at once, and the exact test of all.

extern crate std;

use core::cell::Cell;

use alloc::vec::Vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::{Demand, Member, Resource};
use crate::analysis::supply::{BoundedDelay, Dedicated, SupplyBound};
use crate::analysis::{Budget, Doubt, Fraction, Search, edf};
use crate::channels::admission::Need;
use crate::channels::signalling::{ChannelId, HostId};
use crate::policy::multiclass::By;
use crate::{Service, Span};

/// A channel that is asked for: with which delay beyond its cost, and who goes before it comes.
#[derive(Clone, Debug)]
struct Asked {
    demand: Demand,
    delay: u64,
    gone: Option<usize>,
}

/// Small and large messages, from a hundredth of all there is to nearly all of it in one; delays below and beyond the interval.
fn asked(most: u64) -> impl Strategy<Value = Asked> {
    let period = prop_oneof![Just(12_000), 100..40_000_u64];
    period.prop_flat_map(move |period| {
        let cost = 1..=(period / most).max(1);
        let delay = prop_oneof![0..period / 4, 0..3 * period];
        let gone = prop_oneof![3 => Just(None), 1 => any::<usize>().prop_map(Some)];
        let all = (Just(period), cost, 1..=100_u64, delay, gone);
        all.prop_map(|(period, cost, percent, delay, gone)| {
            let region = Service::from_nanos((cost * percent).div_ceil(100));
            let demand = Demand {
                need: Need {
                    cost: Service::from_nanos(cost),
                    region,
                    last: region,
                },
                interval: Span::from_nanos(period),
            };
            Asked {
                demand,
                delay: cost + delay,
                gone,
            }
        })
    })
}

fn sets() -> impl Strategy<Value = (Vec<Asked>, u64, u64, bool)> {
    let all = prop_oneof![Just(2_u64), Just(8), Just(40)];
    let all = all.prop_flat_map(|most| prop::collection::vec(asked(most), 1..(3 * most as usize)));
    (all, 0..300_u64, 0..300_u64, any::<bool>())
}

/// How many questions there were, and how many of these were answered without a look at everybody.
#[derive(Default)]
struct Counts {
    least: [Cell<u32>; 2],
    met: [Cell<u32>; 2],
}

fn count(of: &[Cell<u32>; 2], is_answered: bool) {
    of[0].set(of[0].get() + 1);
    of[1].set(of[1].get() + u32::from(is_answered));
}

const fn named(number: u32) -> ChannelId {
    ChannelId {
        origin: HostId(0),
        generation: 0,
        number,
    }
}

/// The least delay without one of those that are there, and with one that has more time: as if that were there instead.
fn were_one_changed<S: SupplyBound>(
    resource: &Resource<S>,
    there: &[Member],
    which: usize,
    asked: &Asked,
) -> Result<(), TestCaseError> {
    let newcomer = asked.demand.task(asked.demand.interval).expect("a task");
    let least = |members: &[Member]| {
        let tasks = members.iter().map(|one| one.task().expect("a task"));
        let tasks: Vec<_> = tasks.collect();
        let (never_due, supply) = (resource.never_due, &resource.supply);
        let least = edf::least_deadline(&tasks, &newcomer, never_due, supply).expect("fits");
        least.found()
    };
    let mut all = there.to_vec();
    all[which].delay += Span::from_nanos(asked.delay);
    let beside = resource.found_beside(&all[which], &asked.demand, &Budget::default());
    prop_assert_eq!(beside, least(&all));
    let gone = all.swap_remove(which).channel;
    let without = resource.found_without(gone, &asked.demand, &Budget::default());
    prop_assert_eq!(without, least(&all));
    Ok(())
}

fn both_agree<S: SupplyBound>(
    mut resource: Resource<S>,
    all: &[Asked],
    counts: &Counts,
) -> Result<(), TestCaseError> {
    let mut there: Vec<Member> = Vec::new();
    for (number, asked) in (0_u32..).zip(all) {
        if let Some(gone) = asked.gone.filter(|_| !there.is_empty()) {
            let gone = there.swap_remove(gone % there.len());
            prop_assert!(resource.remove(gone.channel));
        }
        let tasks: Vec<_> = there
            .iter()
            .map(|one| one.task().expect("a task"))
            .collect();
        let newcomer = asked.demand.task(asked.demand.interval).expect("a task");
        let never_due = resource.never_due;
        let exact = edf::least_deadline(&tasks, &newcomer, never_due, &resource.supply);
        let exact = exact.expect("fits");
        let quick = resource
            .search_until(&resource.all(), &asked.demand, &Budget::default())
            .expect("fits");
        count(&counts.least, quick.is_some());
        if let Some(quick) = quick.filter(|_| exact != Search::Unknown(Doubt::TooLong)) {
            prop_assert_eq!(quick, exact);
        }
        if let Some(which) = asked.gone.filter(|_| !there.is_empty()) {
            were_one_changed(&resource, &there, which % there.len(), asked)?;
        }
        let channel = named(number);
        let (demand, delay) = (asked.demand, Span::from_nanos(asked.delay));
        let member = Member {
            channel,
            demand,
            delay,
        };
        let task = member.task().expect("a task");
        let with: Vec<_> = tasks.iter().copied().chain([task]).collect();
        let is_met = edf::test_beside(&with, never_due, &resource.supply).expect("fits");
        let quick = resource
            .is_met_until(&task, &Budget::default())
            .expect("fits");
        count(&counts.met, quick.is_some());
        if let Some(quick) = quick {
            prop_assert_eq!(quick, is_met.is_schedulable());
        }
        prop_assert_eq!(resource.admit(member).is_ok(), is_met.is_schedulable());
        there.extend(is_met.is_schedulable().then_some(member));
        prop_assert!(resource.agrees(there.clone()));
    }
    Ok(())
}

/// Of so many cases, or as many times more as `LAXITY_CASES` says.
fn runner(cases: u32) -> TestRunner {
    let times = std::env::var("LAXITY_CASES").ok();
    let times = times.and_then(|times| times.parse().ok()).unwrap_or(1);
    TestRunner::new(ProptestConfig {
        cases: cases * times,
        failure_persistence: None,
        ..ProptestConfig::default()
    })
}

/// Whatever it answers, by which it was asked, and however the supply is: the exact test answers the same. And it answers most of what it is asked.
#[test]
fn what_is_certain_is_what_the_exact_test_says() {
    let counts = Counts::default();
    let mut runner = runner(256);
    let ran = runner.run(&sets(), |(all, never_due, delay, is_shared)| {
        let never_due = Service::from_nanos(never_due);
        if is_shared {
            let rate = Fraction::new(3, 4).expect("a rate");
            let supply = BoundedDelay::new(rate, Span::from_nanos(delay)).expect("a supply");
            both_agree(
                Resource::new(supply, By::Deadline, never_due),
                &all,
                &counts,
            )
        } else {
            both_agree(
                Resource::new(Dedicated, By::Deadline, never_due),
                &all,
                &counts,
            )
        }
    });
    ran.unwrap_or_else(|failure| panic!("{failure}"));
    let [least, met] = [&counts.least, &counts.met].map(|of| of.each_ref().map(Cell::get));
    std::println!(
        "least delays answered: {} of {}; delays: {} of {}",
        least[1],
        least[0],
        met[1],
        met[0]
    );
    assert!(least[1] * 10 > least[0] * 8 && met[1] * 10 > met[0] * 8);
}

/// By priority who comes and goes leaves everybody else in his place.
#[test]
fn by_priority_what_is_kept_is_what_is_there() {
    let mut runner = runner(64);
    let ran = runner.run(&sets(), |(all, never_due, ..)| {
        let never_due = Service::from_nanos(never_due);
        let mut resource = Resource::new(Dedicated, By::Priority, never_due);
        let mut there: Vec<Member> = Vec::new();
        for (number, asked) in (0_u32..).zip(&all) {
            if let Some(gone) = asked.gone.filter(|_| !there.is_empty()) {
                let gone = there.remove(gone % there.len());
                prop_assert!(resource.remove(gone.channel));
            }
            let member = Member {
                channel: named(number),
                demand: asked.demand,
                delay: Span::from_nanos(asked.delay),
            };
            if resource.admit(member).is_ok() {
                let is_new = |one: &Member| one.channel == member.channel;
                let place = resource.members().position(is_new).expect("it is there");
                there.insert(place, member);
            }
            prop_assert!(resource.members().eq(&there));
            prop_assert!(resource.agrees(there.clone()));
        }
        Ok(())
    });
    ran.unwrap_or_else(|failure| panic!("{failure}"));
}
