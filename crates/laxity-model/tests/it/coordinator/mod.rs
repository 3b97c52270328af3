//! Who has what of a processor that several processes share, and what they say to each other about it.

mod messages;

use std::collections::BTreeMap;

use laxity_model::analysis::supply::Dedicated;
use laxity_model::analysis::{Preemption, Task};
use laxity_model::executor::linked::{self, Linked};
use laxity_model::program::coordinator::{
    Answer, Bottleneck, Item, MOST_ITEMS, Presence, Registry, Terms, Who, share_ppm,
};
use laxity_model::{Instant, Service, Span};
use proptest::collection::vec;
use proptest::prelude::*;

use messages::any_items;

const MS: Span = Span::from_millis(1);

fn terms() -> Terms {
    Terms {
        longest: Service::from_micros(500),
        tolerance: Service::ZERO,
        switches: Span::from_micros(575),
        pass: Service::from_micros(10),
        share_ppm: u64::MAX,
        quotas: BTreeMap::from([(7, 300_000)]),
        seats_of_one: 3,
        kept: MS * 100,
    }
}

fn who(process: u32) -> Who {
    Who { process, user: 1 }
}

/// So much every so many milliseconds, without a look for 0.2 ms.
fn item(name: &str, micros: u64, millis: u64) -> Item {
    let longest = Service::from_micros(micros.min(200));
    let task = Task::new(Service::from_micros(micros), MS * millis).unwrap();
    let regions = Preemption::Fixed {
        longest,
        last: longest,
    };
    Item {
        name: name.to_owned(),
        linked: Linked::alone(task.with_preemption(regions).unwrap()),
    }
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + MS * millis
}

/// Each of them is found in a while, and all of them together in many times that.
#[test]
fn what_takes_too_long_to_decide_is_refused() {
    let mut registry = Registry::new(terms());
    registry.joins(0, who(10), "one");
    let never = |cost, period, due| {
        let task = Task::new(Service::from_nanos(cost), Span::from_nanos(period)).unwrap();
        let task = task.with_deadline(Span::from_nanos(due)).unwrap();
        let linked = Linked::alone(task.with_preemption(Preemption::Never).unwrap());
        Item {
            name: "slow".to_owned(),
            linked,
        }
    };
    let each = |index: u64| never(1_000, 40_000_000 + 7 * index, 1 << 58);
    let mut items: Vec<Item> = (0..126).map(each).collect();
    let mut woken = never(1_279, 1 << 60, 1 << 60);
    woken.linked.wakes = 40_000_000;
    items.push(woken);
    let answer = registry.holds(0, items, true);
    let Answer::No { reason, .. } = answer else {
        panic!("it is decided");
    };
    assert_eq!(reason, "the busy window is too long to be searched");
}

#[test]
fn what_is_told_of_a_process_and_its_upcalls_steers_nothing() {
    let (forged, plain) = ("a\u{1b}[31m\nb", r"a\u{1b}[31m\nb");
    let mut registry = Registry::new(terms());
    registry.joins(0, who(10), forged);
    registry.joins(1, who(11), "other");
    registry.holds(0, vec![item(forged, 12_000, 20)], true);
    let answer = registry.holds(1, vec![item("urgent", 5_500, 15)], true);
    let Answer::No { bottleneck, .. } = answer else {
        panic!("{answer:?}");
    };
    let other = format!("{plain} of process 10");
    assert_eq!(bottleneck, Bottleneck::Other(other));
    let told = &registry.list()[0];
    assert_eq!([&*told.name, &told.items[0].name], [plain; 2]);
    let mut next = Registry::new(terms());
    next.awaits(0, who(10));
    let items = vec![item(forged, 12_000, 20)];
    next.resumes(0, who(10), forged, items).unwrap();
    assert_eq!(next.list()[0].name, plain);
    assert_eq!(next.list()[0].items[0].name, plain);
}

/// Two processes, of seats 0 and 1, the first of which has more than half.
fn two() -> Registry {
    let mut registry = Registry::new(terms());
    registry.joins(0, who(10), "one");
    registry.joins(1, who(11), "other");
    let held = registry.holds(0, vec![item("big", 12_000, 20)], true);
    // Alone it has nobody to wait for.
    assert_eq!(held, Answer::Held(vec![Span::from_millis(12)]));
    registry
}

#[test]
fn what_others_have_is_not_granted_and_what_is_given_back_is() {
    let mut registry = two();
    let asked = || vec![item("mine", 7_500, 21)];
    let Answer::No { bottleneck, .. } = registry.holds(1, asked(), true) else {
        panic!("more than all is granted");
    };
    assert_eq!(bottleneck, Bottleneck::Own(0));
    let urgent = vec![item("urgent", 5_500, 15)];
    let Answer::No { bottleneck, reason } = registry.holds(1, urgent, true) else {
        panic!("more than all is granted");
    };
    let other = Bottleneck::Other("big of process 10".to_owned());
    assert_eq!(bottleneck, other, "{reason}");
    assert!(matches!(
        registry.holds(1, asked(), false),
        Answer::No { .. }
    ));
    registry.holds(0, Vec::new(), true);
    assert!(matches!(registry.holds(1, asked(), false), Answer::Held(_)));
    // Nothing was kept of that.
    assert!(matches!(
        registry.holds(0, vec![item("big", 12_000, 20)], true),
        Answer::Held(_)
    ));
}

#[test]
fn who_shares_a_processor_waits_for_the_detection_of_one_that_does_not_come_back() {
    let mut registry = Registry::new(terms());
    registry.joins(0, who(10), "one");
    registry.joins(1, who(11), "other");
    let small = || vec![item("small", 200, 1)];
    assert!(matches!(registry.holds(0, small(), true), Answer::Held(_)));
    let answer = registry.holds(1, vec![item("slow", 100, 50)], true);
    // The one that is there could not bear it.
    assert!(
        matches!(
            answer,
            Answer::No {
                bottleneck: Bottleneck::Other(_),
                ..
            }
        ),
        "{answer:?}"
    );
    registry.holds(0, vec![item("small", 100, 10)], true);
    let answer = registry.holds(1, vec![item("slow", 100, 50)], true);
    let Answer::Held(bounds) = answer else {
        panic!("{answer:?}");
    };
    // The detection of a quantum of 0.1 ms, both, and their passes.
    assert_eq!(
        bounds,
        [Span::from_nanos(2 * 106_250 + 575_000 + 2 * 110_000)]
    );
}

/// The baton is on its way to the less urgent one when the other is released, and comes from there to it.
#[test]
fn who_waits_for_a_quantum_waits_for_the_way_of_the_baton_to_it() {
    let bound = |pass_us| {
        let mut registry = Registry::new(Terms {
            pass: Service::from_micros(pass_us),
            ..terms()
        });
        registry.joins(0, who(10), "one");
        registry.joins(1, who(11), "other");
        registry.holds(0, vec![item("slow", 400, 50)], true);
        match registry.holds(1, vec![item("urgent", 100, 10)], true) {
            Answer::Held(bounds) => bounds[0],
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(bound(30), bound(10) + Span::from_micros(40));
}

/// What it takes to see one that does not come back follows from the longest quantum that anybody was admitted with, and nobody is held to less than what he may do and a tolerance.
#[test]
fn all_wait_for_the_detection_of_the_longest_quantum_and_each_is_held_to_its_own() {
    let mut registry = Registry::new(Terms {
        tolerance: Service::from_micros(40),
        ..terms()
    });
    registry.joins(0, who(10), "one");
    registry.joins(1, who(11), "other");
    let limits = |registry: &Registry| {
        let limits = registry.limits().map(|(_, limit)| limit.as_nanos() / 1_000);
        limits.collect::<Vec<u64>>()
    };
    assert!(matches!(
        registry.holds(0, vec![item("small", 60, 10)], true),
        Answer::Held(_)
    ));
    // There is nobody to be kept from anything.
    assert_eq!(limits(&registry), [500, 500]);
    let answer = registry.holds(1, vec![item("large", 150, 50)], true);
    let seen = Span::from_micros(575 + 40);
    let both = Span::from_micros(60 + 150 + 2 * 10);
    assert_eq!(
        answer,
        Answer::Held(vec![Span::from_nanos(2 * 201_875) + seen + both])
    );
    assert_eq!(limits(&registry), [100, 190]);
    let mut item = item("long", 480, 50);
    item.linked.task = item.linked.task.with_preemption(Preemption::Never).unwrap();
    assert!(matches!(
        registry.holds(1, vec![item], true),
        Answer::Held(_)
    ));
    assert_eq!(limits(&registry), [100, 500]);
    // One of whom nobody knows what he has may have anything.
    registry.awaits(2, who(12));
    assert_eq!(limits(&registry), [100, 500, 500]);
    registry.joins(3, who(13), "none");
    assert_eq!(limits(&registry), [100, 500, 500, 40]);
}

#[test]
fn a_quantum_that_would_be_taken_for_a_runaway_is_refused() {
    let mut registry = two();
    let mut long = item("long", 900, 50);
    let longest = Service::from_micros(501);
    let regions = Preemption::Floating { longest };
    long.linked.task = long.linked.task.with_preemption(regions).unwrap();
    let answer = registry.holds(1, vec![long], true);
    let Answer::No { bottleneck, reason } = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(bottleneck, Bottleneck::Own(0));
    assert!(
        reason.contains("501us") && reason.contains("500us"),
        "{reason}"
    );
}

#[test]
fn a_user_has_a_share_and_no_more_in_all_processes_together() {
    let mut registry = Registry::new(terms());
    let who = |process| Who { process, user: 7 };
    registry.joins(0, who(10), "one");
    registry.joins(1, who(11), "other");
    let fifth = || vec![item("fifth", 4_000, 20)];
    assert!(matches!(registry.holds(0, fifth(), true), Answer::Held(_)));
    let Answer::No { reason, .. } = registry.holds(1, fifth(), true) else {
        panic!("two fifths of three tenths are granted");
    };
    assert_eq!(
        reason,
        // With 10 us of each for handing on, and 1 ms for who does not come back.
        "user 7 would keep 45.10 % of the processor from others, and may keep 30.00 %"
    );
    let small = vec![item("small", 500, 20)];
    assert!(matches!(registry.holds(1, small, true), Answer::Held(_)));
    assert!(registry.may_join(who(12)).is_ok());
    registry.joins(2, who(12), "third");
    let refused = registry.may_join(who(13)).unwrap_err();
    let reason = "user 7 has 3 processes here, and may not have more";
    assert_eq!(refused, Answer::Refused(reason.to_owned()));
}

/// Of little time what comes often, or is due at once, keeps others from much.
#[test]
fn a_quota_counts_what_is_kept_from_others_and_not_processor_time_alone() {
    let terms = Terms {
        switches: Span::ZERO,
        pass: Service::from_micros(100),
        ..terms()
    };
    let who = Who {
        process: 10,
        user: 7,
    };
    let mut registry = Registry::new(terms.clone());
    registry.joins(0, who, "alone");
    let mut asks = |change: fn(&mut Linked)| {
        let mut item = item("small", 3, 20);
        change(&mut item.linked);
        registry.holds(0, vec![item], false)
    };
    let refused = |answer: Answer| matches!(answer, Answer::No { reason, .. } if reason.contains("may keep 30.00 %"));
    assert!(matches!(asks(|_| ()), Answer::Held(_)));
    // 103 us of 300 with the pass: it would be 1 % of processor time, or next to nothing.
    assert!(refused(asks(|small| {
        let often = Task::new(Service::from_micros(3), Span::from_micros(300));
        small.task = often.unwrap();
    })));
    assert!(refused(asks(|small| {
        small.task = small.task.with_deadline(Span::from_micros(300)).unwrap();
    })));
    assert!(refused(asks(|small| small.calls = 70)));
    let switches = Span::from_millis(6);
    let mut registry = Registry::new(Terms { switches, ..terms });
    registry.joins(0, who, "alone");
    // What is kept free for who does not come back: 6 ms of 20.
    let small = || item("small", 3, 20);
    assert!(refused(registry.holds(0, vec![small()], false)));
    // That once, however many there are.
    let slow = || item("slow", 3, 25);
    let slow = vec![slow(), slow(), slow()];
    assert!(matches!(registry.holds(0, slow, false), Answer::Held(_)));
}

#[test]
fn who_wakes_for_what_arrives_is_charged_to_all() {
    let mut registry = two();
    let bounds = [0, 1].map(|wakes| {
        let mut fed = item("fed", 200, 20);
        fed.linked.wakes = wakes;
        registry.holds(1, vec![fed], true);
        registry.holds(0, vec![item("urgent", 200, 10)], true)
    });
    let is_later = matches!(&bounds, [Answer::Held(without), Answer::Held(with)] if with[0] >= without[0] + linked::WAKE.as_dedicated_span() * 2);
    assert!(is_later, "{bounds:?}");
}

#[test]
fn there_are_no_more_upcalls_than_can_be_analysed() {
    let mut registry = Registry::new(terms());
    for (seat, process) in (0..3).zip(10..) {
        registry.joins(seat, who(process), "one");
    }
    let asked = |count: usize| vec![item("small", 1, 10_000); count];
    for seat in 0..2 {
        let held = registry.holds(seat, asked(100), true);
        assert!(matches!(held, Answer::Held(_)), "{held:?}");
    }
    let Answer::No { bottleneck, reason } = registry.holds(2, asked(MOST_ITEMS - 199), true) else {
        panic!("more than {MOST_ITEMS} are granted");
    };
    assert_eq!(bottleneck, Bottleneck::All);
    let said = "there are 200 upcalls of others, and no room for more than 256";
    assert_eq!(reason, said);
    let held = registry.holds(2, asked(MOST_ITEMS - 200), true);
    assert!(matches!(held, Answer::Held(_)), "{held:?}");
}

#[test]
fn what_a_dead_process_had_is_kept_until_all_have_settled_or_a_limit_passes() {
    for settles in [true, false] {
        let mut registry = two();
        registry.joins(2, who(12), "third");
        assert_eq!(registry.goes(0, at(5)), [1, 2]);
        let asked = || vec![item("mine", 7_500, 21)];
        assert!(matches!(
            registry.holds(1, asked(), true),
            Answer::No { .. }
        ));
        registry.settles(1, 0);
        assert_eq!(registry.over(at(6)), []);
        assert_eq!(registry.next(), Some(at(105)));
        // Who dies has nothing to settle, and had nothing.
        match settles {
            true => assert_eq!(registry.goes(2, at(6)), []),
            false => assert_eq!(registry.over(at(104)), []),
        }
        let over = registry.over(if settles { at(6) } else { at(105) });
        assert!(over.contains(&(0, 10)), "{over:?}");
        registry.frees(0);
        assert!(matches!(registry.holds(1, asked(), true), Answer::Held(_)));
    }
}

/// Two processes have seats from the coordinator before.
fn awaiting() -> Registry {
    let mut registry = Registry::new(terms());
    registry.awaits(0, who(10));
    registry.awaits(1, who(11));
    registry
}

#[test]
fn a_new_coordinator_grants_nothing_before_all_have_said_what_they_have() {
    let mut registry = awaiting();
    let big = || vec![item("big", 12_000, 20)];
    let name = || "one".to_owned();
    // Only whoever has a seat, and that once.
    assert!(registry.resumes(0, who(11), &name(), big()).is_err());
    assert!(registry.resumes(2, who(10), &name(), big()).is_err());
    registry.resumes(0, who(10), &name(), big()).unwrap();
    assert!(registry.resumes(0, who(10), &name(), big()).is_err());
    let names =
        |answer: &Answer| matches!(answer, Answer::NotYet(reason) if reason.contains("process 11"));
    assert!(names(&registry.may_join(who(12)).unwrap_err()));
    let more = registry.holds(0, big(), true);
    assert!(names(&more));
    let presences = registry.list().into_iter().map(|told| told.presence);
    assert!(presences.eq([Presence::Here, Presence::Awaited]));
    registry.goes(1, at(0));
    registry.frees(1);
    assert!(registry.may_join(who(12)).is_ok());
    assert!(matches!(registry.holds(0, big(), true), Answer::Held(_)));
}

/// Each alone could have been granted that, and both together were not.
#[test]
fn who_resumes_with_more_than_there_is_beside_those_who_did_is_refused() {
    let mut registry = awaiting();
    let big = || vec![item("big", 12_000, 20)];
    registry.resumes(0, who(10), "one", big()).unwrap();
    let refused = registry.resumes(1, who(11), "liar", big()).unwrap_err();
    assert!(refused.contains("more than a whole processor"), "{refused}");
    let small = vec![item("small", 1_000, 20)];
    registry.resumes(1, who(11), "honest", small).unwrap();
    assert_eq!(registry.list()[1].items.len(), 1);
}

#[test]
fn who_resumes_with_more_than_its_user_may_have_is_refused() {
    let mut registry = Registry::new(terms());
    let who = Who {
        process: 10,
        user: 7,
    };
    registry.awaits(0, who);
    let big = vec![item("big", 12_000, 20)];
    assert!(registry.resumes(0, who, "liar", big).is_err());
}

proptest! {
    /// Whatever numbers are asked for: there is an answer.
    #[test]
    fn forged_items_have_an_answer(first in any_items(), second in any_items()) {
        let mut registry = Registry::new(Terms { longest: Service::MAX, share_ppm: u64::MAX, ..terms() });
        registry.joins(0, who(10), "");
        registry.joins(1, who(11), "");
        registry.holds(0, first, true);
        registry.holds(1, second, true);
        let total: u64 = registry.list().iter().map(|told| share_ppm(&told.items)).fold(0, u64::saturating_add);
        prop_assert!(total <= 1_000_100, "{total}");
    }

    /// Whatever is asked for in whatever order, by whoever comes and goes: what is granted at any time is in time all together.
    #[test]
    fn no_more_is_granted_than_there_is(steps in vec((0..4_u16, 0..6_u8, vec((1..8_u64, 5..60_u64), 0..4)), 1..60)) {
        let mut registry = Registry::new(Terms { kept: MS * 3, ..terms() });
        for (now, (seat, does, asked)) in (0..).zip(steps) {
            let items = asked.iter().map(|(cost, period)| item("item", cost * 700, *period)).collect();
            let is_there = registry.list().iter().any(|told| told.seat == seat);
            match does {
                0 if is_there => drop(registry.goes(seat, at(now))),
                1 => registry.settles(seat, (seat + 1) % 4),
                _ if is_there => drop(registry.holds(seat, items, does > 2)),
                _ => registry.joins(seat, Who { process: u32::from(seat), user: u32::from(seat) }, ""),
            }
            for (over, _) in registry.over(at(now)) {
                registry.frees(over);
            }
            let all: Vec<Linked> = registry.list().iter().flat_map(|told| told.items.iter().map(|item| item.linked)).collect();
            prop_assert!(linked::bounds(&all, &Dedicated).is_ok(), "{all:?}");
        }
    }
}

#[test]
fn who_gives_all_back_is_heard_before_all_have_said_what_they_have() {
    let mut registry = awaiting();
    let big = || vec![item("big", 12_000, 20)];
    registry.resumes(0, who(10), "one", big()).unwrap();
    assert!(matches!(
        registry.holds(0, Vec::new(), false),
        Answer::NotYet(_)
    ));
    let given_back = registry.holds(0, Vec::new(), true);
    assert_eq!(given_back, Answer::Held(Vec::new()));
    registry.resumes(1, who(11), "two", Vec::new()).unwrap();
    assert!(matches!(registry.holds(1, big(), true), Answer::Held(_)));
}

#[test]
fn who_gives_some_back_is_heard_as_early_and_who_asks_for_other_than_it_has_is_not() {
    let mut registry = awaiting();
    let [big, small] = [item("big", 9_000, 20), item("small", 1_000, 20)];
    let both = vec![big.clone(), small.clone()];
    registry.resumes(0, who(10), "one", both.clone()).unwrap();
    for more in [vec![small.clone(), big.clone()], vec![small.clone(); 2]] {
        assert!(matches!(registry.holds(0, more, true), Answer::NotYet(_)));
    }
    let given_back = registry.holds(0, vec![small.clone()], true);
    assert!(matches!(given_back, Answer::Held(bounds) if bounds.len() == 1));
    assert!(matches!(registry.holds(0, both, true), Answer::NotYet(_)));
}
