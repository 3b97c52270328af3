//! What the planner of slots refuses: nothing small that can be kept, and nothing at length.

use std::collections::BTreeSet;

use laxity_model::policy::slots::{PlanCosts, plan};
use laxity_model::request::Shortage;
use laxity_model::{Reservation, Service, Span};

use crate::slot_oracle;

/// Switches cost nothing, as in the twin.
const FREE: PlanCosts = PlanCosts {
    per_slot: Service::ZERO,
    max_share_ppm: 1_000_000,
    other_ppm: 0,
    granularity: Span::from_micros(1),
};

fn every(service_us: u64, period_us: u64) -> Reservation {
    Reservation::new(
        Service::from_micros(service_us),
        Span::from_micros(period_us),
    )
    .unwrap()
}

/// Whether ticks can be given away one by one for ever so that every X in `requests` is in every window of Y ticks: all ways to give them
/// away are tried, each until what matters of the past is as it was before. For small numbers only.
fn has_table_of_ticks(requests: &[(u32, u32)]) -> bool {
    // As if everybody had had all of the past: no worse than any other.
    let begin: Vec<u32> = requests
        .iter()
        .map(|(_, window)| (1 << (window - 1)) - 1)
        .collect();
    go_on(&begin, requests, &mut Vec::new(), &mut BTreeSet::new())
}

/// Whether it can go on for ever after this; of each request, which of the last Y − 1 ticks it had, the last one lowest.
fn go_on(
    past: &[u32],
    requests: &[(u32, u32)],
    on_the_way: &mut Vec<Vec<u32>>,
    dead: &mut BTreeSet<Vec<u32>>,
) -> bool {
    if on_the_way.iter().any(|before| before == past) {
        return true;
    }
    if dead.contains(past) {
        return false;
    }
    on_the_way.push(past.to_vec());
    let lives = (0..requests.len()).any(|chosen| {
        let mut next = Vec::new();
        for (index, (service, window)) in requests.iter().enumerate() {
            let had = past[index] << 1 | u32::from(index == chosen);
            if had.count_ones() < *service {
                return false;
            }
            next.push(had & ((1 << (window - 1)) - 1));
        }
        go_on(&next, requests, on_the_way, dead)
    });
    on_the_way.pop();
    if !lives {
        dead.insert(past.to_vec());
    }
    lives
}

/// All sets of two and three requests with windows of up to 12 ms, and of four up to 6 ms, with whole milliseconds of service, that leave no more than
/// a sixth: where
/// giving milliseconds away one by one can keep them, there is a table; of those that fill the processor, too.
#[test]
fn of_small_sets_that_can_be_kept_none_is_refused() {
    let sizes = [2, 3, 4, 5, 6, 8, 10, 12_u32];
    let sizes = sizes
        .into_iter()
        .flat_map(|window| (1..window).map(move |service| (service, window)));
    let sizes: Vec<(u32, u32)> = sizes.collect();
    // The load in parts of 120.
    let load = |set: &[(u32, u32)]| set.iter().map(|(x, y)| 120 * x / y).sum::<u32>();
    let (mut kept, mut full) = (0, 0);
    let mut check = |set: &[(u32, u32)]| {
        let load = load(set);
        if !(100..=120).contains(&load) || !has_table_of_ticks(set) {
            return;
        }
        let ms = |ticks: u32| u64::from(ticks) * 1_000;
        let requests: Vec<Reservation> = set.iter().map(|(x, y)| every(ms(*x), ms(*y))).collect();
        assert!(
            plan(&requests, &FREE).is_ok(),
            "{set:?}: {:?}",
            plan(&requests, &FREE)
        );
        kept += 1;
        full += u32::from(load == 120);
    };
    for (first, a) in sizes.iter().enumerate() {
        for (second, b) in sizes.iter().enumerate().skip(first) {
            check(&[*a, *b]);
            for (third, c) in sizes.iter().enumerate().skip(second) {
                check(&[*a, *b, *c]);
                let more = sizes[third..].iter().filter(|(_, window)| *window <= 6);
                more.for_each(|d| check(&[*a, *b, *c, *d]));
            }
        }
    }
    assert!(kept > 700 && full > 200, "{kept} {full}");
}

/// Switches cost nothing, and the shortest slot is the millisecond in which all is asked for.
const TICKS: PlanCosts = PlanCosts {
    granularity: Span::from_millis(1),
    ..FREE
};

/// Requests of X ms in every Y ms.
fn of_ms(set: &[(u32, u32)]) -> Vec<Reservation> {
    let us = |ticks: &u32| u64::from(*ticks) * 1_000;
    set.iter().map(|(x, y)| every(us(x), us(y))).collect()
}

/// What fills the processor, of periods that are no multiples of one another.
#[test]
fn what_takes_turns_millisecond_by_millisecond_has_a_table() {
    for set in [
        &[(1, 6), (2, 6), (4, 8)][..],
        &[(1, 4), (1, 4), (1, 6), (2, 6)],
        &[(1, 3), (1, 5), (2, 5)],
        &[(2, 5), (2, 7), (2, 7)],
    ] {
        for costs in [FREE, TICKS] {
            let requests = of_ms(set);
            let table = plan(&requests, &costs).unwrap();
            for (owner, request) in requests.iter().enumerate() {
                let least =
                    slot_oracle::least_service_in_any_window(&table, owner, request.period());
                assert!(least >= request.service(), "{request}: {least}");
            }
        }
    }
}

/// All sets of up to three requests with windows of up to 8 ms, of whatever load: none is refused that has a table in whole milliseconds, of
/// however long a cycle, though no slot is shorter; none is granted a table that does not keep it; and what is said to be missing is.
#[test]
fn of_sets_of_up_to_eight_ticks_none_is_refused_that_has_a_table_of_ticks() {
    let sizes: Vec<(u32, u32)> = (2..=8)
        .flat_map(|window| (1..window).map(move |service| (service, window)))
        .collect();
    let (mut kept, mut refused) = (0, 0);
    let mut check = |set: &[(u32, u32)]| {
        // The load in parts of 840.
        let load: u32 = set.iter().map(|(x, y)| 840 * x / y).sum();
        let requests = of_ms(set);
        match plan(&requests, &TICKS) {
            Ok(table) => {
                for (owner, request) in requests.iter().enumerate() {
                    let least =
                        slot_oracle::least_service_in_any_window(&table, owner, request.period());
                    assert!(least >= request.service(), "{set:?}: {request}: {least}");
                }
                kept += 1;
            }
            Err(refusal) => {
                assert!(load > 840 || !has_table_of_ticks(set), "{set:?}: {refusal}");
                let lacks_time = matches!(refusal.shortage, Shortage::ProcessorTime { .. });
                assert!(!lacks_time || load > 840, "{set:?}: {refusal}");
                refused += 1;
            }
        }
    };
    for (first, a) in sizes.iter().enumerate() {
        for (second, b) in sizes.iter().enumerate().skip(first) {
            check(&[*a, *b]);
            // What is more by far than there is, is refused by two of them.
            let third = sizes.iter().skip(second);
            let light =
                third.filter(|c| [a, b, *c].iter().map(|(x, y)| 840 * x / y).sum::<u32>() <= 900);
            light.for_each(|c| check(&[*a, *b, *c]));
        }
    }
    assert!(kept > 600 && refused > 300, "{kept} {refused}");
}

/// So many requests that take the processor as good as whole together, no two windows alike.
fn crowd(count: u64) -> Vec<Reservation> {
    let windows = (0..count).map(|i| 2_003 + 61_001 * i % 97_000);
    windows
        .map(|window| every(window * 99 / 100 / count, window))
        .collect()
}

#[test]
fn what_a_refusal_looks_at_is_limited_and_it_says_so() {
    let few = plan(&[every(2_000, 4_000), every(4_000, 6_000)], &FREE).unwrap_err();
    assert!(!few.is_cut_short && !few.nearest.is_empty(), "{few}");
    let many = plan(&crowd(40), &FREE).unwrap_err();
    assert!(many.is_cut_short && !many.nearest.is_empty(), "{many}");
    assert!(
        many.to_string()
            .ends_with("; not all that might fit was looked at")
    );
    for nearest in &many.nearest {
        assert!(plan(&nearest.requests, &FREE).is_ok(), "{nearest}");
    }
    // It fits without the one that is refused.
    assert!(plan(&crowd(40)[..many.request], &FREE).is_ok());
}
