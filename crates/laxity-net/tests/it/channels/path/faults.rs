//! Links that lose, double, delay and damage frames.

use laxity_model::channels::admission::Traffic;
use laxity_model::channels::clocks::{Place, Timeliness};
use laxity_model::channels::handler::Late;
use laxity_model::channels::source::Excess;
use laxity_model::nif::wire::Faults;
use laxity_model::{Instant, Span};
use laxity_net::channels::path::{Event, Lane, Lost};
use proptest::prelude::*;

use super::world::{Channel, World, message};

const RATE: u64 = 100_000_000;

/// A channel over all four hosts, which keeps its promise and has time enough.
fn channel(bytes: u32, late: Late, faults: &Faults) -> Channel {
    let traffic = Traffic::new(bytes, (1, Span::from_millis(5)), 3).expect("traffic");
    let hop = (Span::from_millis(4), 60);
    Channel {
        from: 0,
        to: 3,
        traffic,
        hops: vec![hop; 3],
        excess: Excess::Shape,
        late,
        room: 8,
        largest: bytes,
        buffers: 4,
        is_due: true,
        best_effort: 0,
        unseen: faults.late_by,
    }
}

/// Messages of random sizes, some closer than their interval.
fn offers(world: &mut World, sizes: &[Vec<u32>]) {
    for (channel, sizes) in sizes.iter().enumerate() {
        let mut at = Instant::ZERO;
        for (number, size) in (0..).zip(sizes) {
            world.offers(at, channel, message(channel, number, *size));
            let close = number % 3 == 0;
            at += Span::from_millis(if close { 1 } else { 9 });
        }
    }
}

fn faults() -> impl Strategy<Value = Faults> {
    let often = || prop_oneof![Just(0_u32), 1_000..80_000_u32];
    (often(), often(), often(), often(), 1..8_000_u64).prop_map(
        |(lost, doubled, late, corrupted, micros)| Faults {
            rate: RATE,
            delay: Span::from_micros(20),
            lost,
            doubled,
            late,
            late_by: Span::from_micros(if late > 0 { micros } else { 0 }),
            corrupted,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// What arrives is what was sent, in order, and of all else it is told once that it is lost or late; nothing is lost without a fault.
    #[test]
    fn what_arrives_is_whole_and_what_does_not_is_told_once(
        faults in faults(),
        seed in any::<u64>(),
        discards in any::<bool>(),
        sizes in proptest::collection::vec(proptest::collection::vec(0..9_500_u32, 1..60), 3),
    ) {
        let late = if discards { Late::Discard } else { Late::Deliver };
        let channels = (0..3).map(|_| channel(9_500, late, &faults)).collect();
        let mut world = World::new(4, faults, channels, seed);
        offers(&mut world, &sizes);
        world.run();
        world.adds_up(faults.lost + faults.doubled + faults.corrupted == 0);
        let offered: usize = sizes.iter().map(Vec::len).sum();
        prop_assert_eq!(world.back, offered as u64);
        for (number, (seen, sizes)) in world.seen.iter().zip(&sizes).enumerate() {
            let mut behind = 0;
            for one in &seen.delivered {
                let sent = message(number, one.message, sizes[one.message as usize]);
                prop_assert!(one.bytes == sent, "message {} of {}", one.message, number);
                prop_assert!(discards || one.gap == one.message - behind);
                behind = one.message + 1;
            }
            let is_good = faults.lost + faults.doubled + faults.late + faults.corrupted == 0;
            prop_assert!(!is_good || seen.delivered.len() == sizes.len());
            prop_assert!(!is_good || seen.events.is_empty());
        }
    }
}

#[test]
fn the_far_end_says_how_much_was_left_and_is_sure_of_it() {
    let faults = Faults {
        rate: RATE,
        delay: Span::from_micros(20),
        ..Faults::default()
    };
    let mut world = World::new(4, faults, vec![channel(2_000, Late::Deliver, &faults)], 1);
    world.offers(Instant::ZERO, 0, message(0, 0, 2_000));
    world.run();
    let one = &world.seen[0].delivered[0];
    // Current at each relay when it would have left the hop before at the latest, and 20 us on each wire; then two frames.
    let frame = Span::from_nanos((1_000 + 66) * 8 * 10);
    let at = Span::from_millis(8) + Span::from_micros(60) + frame * 2;
    assert_eq!(one.at, Instant::ZERO + at);
    let verdict = one.verdict.expect("it is due");
    let left = Span::from_millis(12) + Span::from_micros(60) - at;
    assert_eq!(verdict.laxity, left.as_nanos() as i64);
    assert_eq!(verdict.timeliness, Timeliness::InTime);
    assert_eq!(world.hosts[1].nobodys, 0);
}

/// One part of every message is lost for good: no message arrives, none of the others' is touched, and no buffer stays taken.
#[test]
fn a_part_of_every_message_that_is_lost_costs_these_messages_only() {
    let faults = Faults {
        rate: RATE,
        lost: 200_000,
        ..Faults::default()
    };
    let mut world = World::new(4, faults, vec![channel(9_500, Late::Deliver, &faults)], 3);
    for number in 0..200 {
        let at = Instant::ZERO + Span::from_millis(5) * number;
        world.offers(at, 0, message(0, number, 9_500));
    }
    world.run();
    world.adds_up(false);
    let seen = &world.seen[0];
    let incomplete = |event: &&Event| {
        matches!(
            event,
            Event::Lost {
                lane: Lane::RealTime,
                count: 1,
                why: Lost::Incomplete { .. },
                ..
            }
        )
    };
    let lost = seen.events.iter().filter(incomplete).count();
    assert!(lost > 180, "{lost} of 200");
    let (came, _) = world.ends[0].counts(Lane::RealTime);
    assert_eq!(came.no_buffer, 0);
}

/// One host has too little time for what it sends: all that is late was held up there and nowhere else, and the far end is told so.
#[test]
fn what_is_late_was_held_up_by_one_host() {
    let faults = Faults {
        rate: RATE,
        ..Faults::default()
    };
    for guilty in 0..3 {
        let mut late = channel(9_500, Late::Deliver, &faults);
        for (host, (delay, _)) in late.hops.iter_mut().enumerate() {
            // Ten frames take 853 us. Who has less behind the guilty one cannot make good for it, and did nothing else.
            *delay = Span::from_micros(if host < guilty { 853 } else { 100 });
        }
        let mut world = World::new(4, faults, vec![late], 1);
        for number in 0..10 {
            let at = Instant::ZERO + Span::from_millis(5) * number;
            world.offers(at, 0, message(0, number, 9_500));
        }
        world.run();
        world.adds_up(true);
        let held_up = (0..3).map(|host| {
            let way_out = &world.hosts[host].way_out;
            let packets = way_out.packets(world.numbers[0][host], Lane::RealTime);
            packets.expect("it is open").held_up
        });
        let held_up: Vec<u64> = held_up.collect();
        assert!(held_up[guilty] > 0, "{held_up:?}");
        let elsewhere: u64 = held_up.iter().sum::<u64>() - held_up[guilty];
        assert_eq!(elsewhere, 0, "{held_up:?}");
        let who = Some(Place::Host(guilty as u8));
        let is_late = |event: &Event| matches!(event, Event::Late { guilty, .. } if *guilty == who);
        assert_eq!(world.seen[0].events.len(), 10);
        assert!(world.seen[0].events.iter().all(is_late));
    }
}
