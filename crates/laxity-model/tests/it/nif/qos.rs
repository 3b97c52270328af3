//! What modules make of what clients report, against who is to go first in any order of all.

use std::collections::BTreeMap;

use laxity_model::nif::qos::{
    AtArrival, LeastLaxity, Module, Moment, Ranks, Reported, Standing, Terms,
};
use laxity_model::nif::urgency::{Stated, Unit, Urgency};
use laxity_model::policy::Rank;
use laxity_model::{ActivityId, Instant, Priority, Service, Span};
use proptest::prelude::*;

const NOW: Instant = Instant::from_millis(100);

fn level(level: u8) -> Priority {
    Priority::new(level).expect("below 32")
}

const fn thread(critical: Priority, workahead: Priority) -> Ranks {
    Ranks::Thread {
        critical,
        workahead,
    }
}

/// Some have nothing, some have come before their time, and some have more to do than there is time.
fn standings() -> impl Strategy<Value = Vec<Standing>> {
    let one = (any::<bool>(), 0_u32..4, 0_u64..40, 90_u64..110, 0_u64..30);
    let standing =
        |number: usize, (is_thread, packets, work, logical, delay): (bool, u32, u64, u64, u64)| {
            let logical = Instant::from_millis(logical);
            Standing {
                activity: ActivityId(number as u16),
                ranks: if is_thread {
                    thread(level(24), level(8))
                } else {
                    Ranks::Handler
                },
                packets,
                work: Service::from_millis(work),
                logical,
                deadline: logical + Span::from_millis(delay),
            }
        };
    let all = prop::collection::vec(one, 1..12);
    all.prop_map(move |all| {
        (0..)
            .zip(all)
            .map(|(number, one)| standing(number, one))
            .collect()
    })
}

/// As urgent as each that anything is said of is now, and what is arranged for it.
type Said = BTreeMap<ActivityId, (Option<Rank>, Option<(Instant, Rank)>)>;

fn said(module: &impl Module, reported: &Reported<'_>) -> Said {
    let mut said = Said::new();
    module.decide(reported, &mut |activity, rank, at| {
        let (now, later) = said.entry(activity).or_default();
        *later = (at > reported.now).then_some((at, rank));
        if at <= reported.now {
            *now = Some(rank);
        }
    });
    said
}

/// Nanoseconds to spare, of which there may be less than none.
fn spare(one: &Standing) -> i128 {
    let nanos = |nanos: u64| i128::from(nanos);
    nanos(one.deadline.as_nanos()) - nanos(NOW.as_nanos()) - nanos(one.work.as_nanos())
}

proptest! {
    /// Each by its own packet alone, when it is the first or is taken, and nobody else.
    #[test]
    fn at_arrival_each_is_for_itself((all, who, is_taken) in (standings(), any::<prop::sample::Index>(), any::<bool>())) {
        let who = who.index(all.len());
        prop_assume!(all[who].packets > 0);
        let moment = if is_taken { Moment::Taken } else { Moment::Arrival };
        let said = said(&AtArrival, &Reported { all: &all, who, moment, now: NOW });
        let own = &all[who];
        if !is_taken && own.packets > 1 {
            prop_assert!(said.is_empty());
            return Ok(());
        }
        let [critical, workahead] = match own.ranks {
            Ranks::Thread { critical, workahead } => [critical, workahead].map(Rank::Priority),
            Ranks::Handler => [own.deadline, Instant::MAX].map(Rank::Deadline),
        };
        let is_to_be = if own.logical <= NOW {
            (Some(critical), None)
        } else {
            (Some(workahead), Some((own.logical, critical)))
        };
        prop_assert_eq!(said, Said::from([(own.activity, is_to_be)]));
    }

    /// The oracle asks of each two of the group who has less to spare. What has come before its time is behind all that is critical.
    #[test]
    fn of_what_is_critical_who_has_the_least_to_spare_is_first((all, who) in (standings(), any::<prop::sample::Index>())) {
        let who = who.index(all.len());
        prop_assume!(all[who].packets > 0);
        let said = said(&LeastLaxity, &Reported { all: &all, who, moment: Moment::Arrival, now: NOW });
        let rank = |one: &Standing| said.get(&one.activity).and_then(|(now, _)| *now);
        for one in &all {
            let is_thread = matches!(one.ranks, Ranks::Thread { .. });
            let is_said = one.packets > 0 && (is_thread || one.activity == all[who].activity);
            prop_assert_eq!(rank(one).is_some(), is_said);
        }
        for (one, other) in all.iter().flat_map(|one| all.iter().map(move |other| (one, other))) {
            let (Some(Rank::Priority(own)), Some(Rank::Priority(its))) = (rank(one), rank(other)) else {
                continue;
            };
            match [one, other].map(|one| one.logical <= NOW) {
                [true, true] if spare(one) < spare(other) => prop_assert!(own > its),
                [true, false] => prop_assert!(own > its),
                [false, _] => prop_assert_eq!(own, level(8)),
                _ => {}
            }
        }
        if let Some(Rank::Deadline(due)) = rank(&all[who]) {
            let own = &all[who];
            let begins = (own.deadline.as_nanos()).saturating_sub(own.work.as_nanos());
            let is_to_be = if own.logical <= NOW { Instant::from_nanos(begins) } else { Instant::MAX };
            prop_assert_eq!(due, is_to_be);
        }
    }

    /// What is left is that of all packets that are critical by now, counted one by one.
    #[test]
    fn work_is_left_of_what_is_critical(
        gaps in prop::collection::vec(0_u64..300, 1..20),
        amount in 1_u32..4,
        period in 1_u64..400,
        wait in 0_u64..2_000,
    ) {
        let stated = Stated::new(amount, Span::from_nanos(period), 9, Span::from_nanos(700)).expect("a rate");
        let terms = Terms {
            stated,
            unit: Unit::Packets,
            packet: Service::from_nanos(100),
            activity: ActivityId(0),
            ranks: Ranks::Handler,
        };
        let mut urgency = Urgency::new(stated);
        let mut at = Instant::ZERO;
        let dues: Vec<_> = gaps.iter().map(|gap| {
            at += Span::from_nanos(*gap);
            urgency.arrived(at, 1)
        }).collect();
        let now = at + Span::from_nanos(wait);
        let found = Standing::of(&terms, dues.len() as u32, dues[0].logical, now);
        let critical = dues.iter().filter(|due| due.logical <= now).count().max(1) as u64;
        // Who pauses has fewer than the rate allows.
        prop_assert!(found.work >= Service::from_nanos(100) * critical);
        if gaps.iter().skip(1).all(|gap| *gap == 0) {
            prop_assert_eq!(found.work, Service::from_nanos(100) * critical);
        }
        prop_assert_eq!(found.deadline, dues[0].deadline);
        let spare = found.deadline.as_nanos().checked_sub(now.as_nanos() + found.work.as_nanos());
        prop_assert_eq!(found.laxity(now), spare.map(Span::from_nanos));
    }
}

/// As many threads as there are priorities between the two, and one more.
#[test]
fn whoever_is_behind_too_many_is_still_above_what_has_come_before_its_time() {
    let one = |number: u16| Standing {
        activity: ActivityId(number),
        ranks: thread(level(11), level(8)),
        packets: 1,
        work: Service::ZERO,
        logical: NOW,
        deadline: NOW + Span::from_millis(u64::from(number)),
    };
    let all: Vec<_> = (0..4).map(one).collect();
    let said = said(
        &LeastLaxity,
        &Reported {
            all: &all,
            who: 2,
            moment: Moment::Taken,
            now: NOW,
        },
    );
    let levels: Vec<_> = said.values().map(|(now, _)| *now).collect();
    assert_eq!(
        levels,
        [11, 10, 9, 9].map(|of| Some(Rank::Priority(level(of))))
    );
}
