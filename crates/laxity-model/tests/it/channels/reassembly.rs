//! Packets of a channel through whatever may befall them, put together again.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use laxity_model::Instant;
use laxity_model::channels::reassembly::{Arrived, Fragment, GivenUp, Reassembly, Why};
use proptest::prelude::*;

fn number(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap()
}

fn fragment(message: u64, part: u32, parts: u32) -> Fragment {
    Fragment {
        message,
        part,
        parts: number(parts),
    }
}

const NEVER: Instant = Instant::MAX;

fn nobody(given_up: GivenUp) {
    panic!("{given_up:?}");
}

#[test]
fn a_message_is_complete_with_its_last_part_whichever_that_is() {
    let mut assembly = Reassembly::new(number(1), number(70));
    for part in (1..70).rev() {
        let stored = assembly.arrived(fragment(0, part, 70), NEVER, nobody);
        assert_eq!(stored, Arrived::Stored(0));
    }
    assert_eq!(
        assembly.arrived(fragment(0, 69, 70), NEVER, nobody),
        Arrived::Doubled
    );
    assert_eq!(
        assembly.arrived(fragment(0, 0, 70), NEVER, nobody),
        Arrived::Complete(0)
    );
    assert_eq!(
        assembly.arrived(fragment(0, 0, 70), NEVER, nobody),
        Arrived::Stale
    );
    // Somebody has the only buffer.
    assert_eq!(
        assembly.arrived(fragment(1, 0, 1), NEVER, nobody),
        Arrived::NoBuffer
    );
    assembly.give_back(0);
    assert_eq!(
        assembly.arrived(fragment(1, 0, 1), NEVER, nobody),
        Arrived::Complete(0)
    );
}

#[test]
fn what_is_there_stays_where_buffers_become_more_and_larger() {
    let mut assembly = Reassembly::new(number(2), number(3));
    for message in 0..2 {
        let stored = assembly.arrived(fragment(message, 1, 3), NEVER, nobody);
        assert_eq!(stored, Arrived::Stored(message as u32));
    }
    let longer = assembly.arrived(fragment(2, 0, 70), NEVER, nobody);
    assert_eq!(longer, Arrived::Malformed);
    assembly.grow(number(3), number(70));
    let longer = assembly.arrived(fragment(2, 69, 70), NEVER, nobody);
    assert_eq!(longer, Arrived::Stored(2));
    for (message, part, stored) in [
        (0, 1, Arrived::Doubled),
        (0, 0, Arrived::Stored(0)),
        (0, 2, Arrived::Complete(0)),
        (1, 0, Arrived::Stored(1)),
        (1, 2, Arrived::Complete(1)),
        (2, 69, Arrived::Doubled),
        (2, 68, Arrived::Stored(2)),
    ] {
        let came = assembly.arrived(
            fragment(message, part, [3, 3, 70][message as usize]),
            NEVER,
            nobody,
        );
        assert_eq!(came, stored, "{message}: {part}");
    }
}

#[test]
fn what_is_not_complete_is_given_up_for_one_behind_it_and_when_it_is_due() {
    let mut assembly = Reassembly::new(number(2), number(4));
    let mut gone = Vec::new();
    assembly.arrived(fragment(0, 0, 2), Instant::from_nanos(5), nobody);
    assembly.arrived(fragment(1, 0, 1), NEVER, |one| gone.push(one));
    assembly.give_back(1);
    assembly.arrived(fragment(2, 0, 2), Instant::from_nanos(9), nobody);
    assembly.arrived(fragment(3, 0, 2), Instant::from_nanos(10), nobody);
    assembly.arrived(fragment(4, 0, 2), Instant::from_nanos(11), |one| {
        gone.push(one);
    });
    assert_eq!(assembly.first_due(), Some(Instant::from_nanos(10)));
    assembly.expire(Instant::from_nanos(10), |one| gone.push(one));
    let gone: Vec<_> = gone
        .iter()
        .map(|one| (one.message, one.came, one.why))
        .collect();
    assert_eq!(
        gone,
        [
            (0, 1, Why::Overtaken),
            (2, 1, Why::NoBuffer),
            (3, 1, Why::Due)
        ]
    );
    assert_eq!(
        assembly.arrived(fragment(3, 1, 2), NEVER, nobody),
        Arrived::Stale
    );
}

#[test]
fn parts_that_cannot_be_are_told_and_change_nothing() {
    let mut assembly = Reassembly::new(number(1), number(4));
    for wrong in [
        fragment(0, 4, 4),
        fragment(0, 0, 5),
        fragment(u64::MAX, 0, 1),
    ] {
        assert_eq!(assembly.arrived(wrong, NEVER, nobody), Arrived::Malformed);
    }
    assembly.arrived(fragment(7, 0, 2), NEVER, nobody);
    assert_eq!(
        assembly.arrived(fragment(7, 1, 3), NEVER, nobody),
        Arrived::Malformed
    );
    assert_eq!(
        assembly.arrived(fragment(7, 1, 2), NEVER, nobody),
        Arrived::Complete(0)
    );
}

/// Whoever was told that a message is lost is never given it: not where an older one is given up after it.
#[test]
fn what_was_given_up_is_not_begun_again() {
    let (mut assembly, mut given_up) = (Reassembly::new(number(2), number(2)), Vec::new());
    let soon = Instant::from_nanos(1);
    assembly.arrived(fragment(1, 0, 2), NEVER, nobody);
    assembly.arrived(fragment(3, 0, 2), soon, nobody);
    assembly.expire(soon, |one| given_up.push(one.message));
    assembly.arrived(fragment(4, 0, 2), NEVER, nobody);
    let arrived = assembly.arrived(fragment(5, 0, 2), NEVER, |one| given_up.push(one.message));
    assert_eq!((arrived, given_up), (Arrived::Stored(0), vec![3, 1]));
    let arrived = assembly.arrived(fragment(3, 0, 2), NEVER, nobody);
    assert_eq!(arrived, Arrived::Stale);
}

proptest! {
    #[test]
    fn messages_come_whole_once_and_in_order_whatever_befalls_their_packets(
        buffers in 1_u32..4,
        sizes in prop::collection::vec(1_u32..6, 1..30),
        fate in prop::collection::vec((0_u32..20, 0_usize..4, any::<bool>()), 200),
    ) {
        let all = sizes.iter().zip(0..).flat_map(|(parts, message)| {
            (0..*parts).map(move |part| fragment(message, part, *parts))
        });
        // Lost, doubled, or late by some places.
        let mut packets: Vec<(usize, Fragment)> = Vec::new();
        for ((place, packet), (lot, late, _)) in all.enumerate().zip(&fate) {
            let late = if *lot < 3 { *late } else { 0 };
            match lot {
                19 => {}
                18 => packets.extend([(place, packet), (place + late, packet)]),
                _ => packets.push((place + late, packet)),
            }
        }
        packets.sort_by_key(|(place, _)| *place);
        let mut assembly = Reassembly::new(number(buffers), number(5));
        let mut came: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
        let (mut complete, mut given_up, mut held) = (Vec::new(), Vec::new(), Vec::new());
        for ((_, packet), (_, _, gives_back)) in packets.iter().zip(&fate) {
            let arrived = assembly.arrived(*packet, NEVER, |one| given_up.push(one.message));
            if matches!(arrived, Arrived::Stored(_) | Arrived::Complete(_)) {
                prop_assert!(came.entry(packet.message).or_default().insert(packet.part), "{packet:?} twice");
            }
            if let Arrived::Complete(buffer) = arrived {
                prop_assert_eq!(came[&packet.message].len() as u32, packet.parts.get());
                prop_assert!(complete.last() < Some(&packet.message));
                complete.push(packet.message);
                prop_assert!(!held.contains(&buffer));
                held.push(buffer);
            }
            if *gives_back && let Some(buffer) = held.pop() {
                assembly.give_back(buffer);
            }
        }
        for message in &given_up {
            prop_assert!(!complete.contains(message), "{message} is both");
        }
        let is_untouched = packets.len() == sizes.iter().sum::<u32>() as usize
            && packets.windows(2).all(|pair| (pair[0].1.message, pair[0].1.part) < (pair[1].1.message, pair[1].1.part))
            && fate.iter().all(|(_, _, gives_back)| *gives_back);
        if is_untouched {
            prop_assert_eq!(complete.len(), sizes.len());
        }
    }
}
