//! Wires that lose, double, delay and damage frames, and neighbours that make them up.

use core::num::NonZeroU16;

use laxity_model::Span;
use laxity_model::channels::admission::Traffic;
use laxity_model::channels::signalling::LinkId;
use laxity_model::nif::wire::Faults;
use laxity_net::channels::frame::{Body, Data, LONGEST, Left, checked};
use laxity_net::channels::node::Event;
use laxity_net::channels::path::{Event as Missed, Label};

use super::world::{Manner, RATE, WIRE, World};
use crate::channels::path::world::message;

fn traffic() -> Traffic {
    Traffic::new(4_500, (1, Span::from_millis(5)), 3).expect("traffic")
}

/// What arrives is what was sent, in order, and of all else it is told that it is lost; every frame is in one count.
fn bears(sealed: bool, faults: Faults, seed: u64) -> (World, usize) {
    let manner = Manner {
        sealed,
        faults,
        unseen: faults.late_by,
        ..Manner::default()
    };
    let mut world = World::new(3, manner, seed);
    let opening = World::opening(0, 2, traffic(), Span::from_millis(30));
    let (_, [from, to], _) = world.open(opening).expect("granted");
    for number in 0..200 {
        let at = world.now() + Span::from_millis(5) * number;
        world.sends(
            at,
            0,
            from,
            message(0, number, 1 + (number * 37 % 4_500) as u32),
        );
    }
    world.run(Span::from_millis(1_200));
    world.adds_up();
    let mut behind = 0;
    for one in &world.seen[2].got {
        assert_eq!(one.end, to);
        assert!(one.message >= behind, "in order");
        behind = one.message + 1;
        let sent = message(0, one.message, 1 + (one.message * 37 % 4_500) as u32);
        assert!(one.bytes == sent, "message {}", one.message);
    }
    let mut missed = 0;
    for (_, event) in &world.seen[2].events {
        if let Event::Missed(_, Missed::Lost { first, count, .. }) = event {
            missed += count;
            behind = behind.max(first + count);
        }
    }
    assert_eq!(world.seen[2].got.len() as u64 + missed, behind);
    let got = world.seen[2].got.len();
    (world, got)
}

const QUIET: Faults = Faults {
    rate: RATE,
    delay: WIRE,
    lost: 0,
    doubled: 0,
    late: 0,
    late_by: Span::ZERO,
    corrupted: 0,
};

#[test]
fn frames_that_come_twice_count_once() {
    let doubled = Faults {
        doubled: 200_000,
        ..QUIET
    };
    let (world, got) = bears(true, doubled, 3);
    assert_eq!(got, 200);
    let counts = (world.hosts)
        .node(1)
        .and_then(|node| node.link_counts(LinkId(0)));
    assert!(counts.expect("a link").repeated > 50);
}

#[test]
fn frames_out_of_order_cost_no_other_channel() {
    let late = Faults {
        late: 100_000,
        late_by: Span::from_micros(700),
        ..QUIET
    };
    for seed in 0..4 {
        bears(true, late, seed);
        bears(false, late, seed);
    }
}

#[test]
fn frames_that_are_lost_or_damaged_cost_their_messages() {
    let worse = Faults {
        lost: 10_000,
        corrupted: 20_000,
        doubled: 10_000,
        ..QUIET
    };
    for seed in 0..4 {
        let (world, got) = bears(true, worse, seed);
        assert!(got < 200 && got > 100, "{got}");
        let counts = (world.hosts)
            .node(2)
            .and_then(|node| node.link_counts(LinkId(0)));
        let counts = counts.expect("a link");
        assert!(
            counts.forged + counts.malformed + counts.refused > 0,
            "{counts:?}"
        );
        bears(false, worse, seed);
    }
}

/// A frame that a stranger makes up.
fn made_up(channel: Label) -> Vec<u8> {
    let body = Body::Data(Data {
        channel,
        message: 7,
        part: 0,
        parts: NonZeroU16::MIN,
        earliness: 0,
        left: Left::UNKNOWN,
        best_effort: false,
        payload: b"something",
    });
    let mut frame = vec![0; LONGEST];
    let length = checked(&body, &mut frame).expect("there is room");
    frame.truncate(length);
    frame
}

#[test]
fn what_is_not_sealed_counts_for_nothing_where_all_is() {
    let mut world = World::new(3, Manner::default(), 1);
    let opening = World::opening(0, 2, traffic(), Span::from_millis(30));
    let (_, [_, to], _) = world.open(opening).expect("granted");
    let now = world.local(2);
    let before = world.node(2).link_counts(LinkId(0)).expect("a link");
    world.node(2).came(now, LinkId(0), now, &mut made_up(to));
    world.told();
    assert!(world.seen[2].got.is_empty());
    let counts = world.node(2).link_counts(LinkId(0)).expect("a link");
    assert_eq!((counts.refused - before.refused, counts.data), (1, 0));
    world.adds_up();
}

#[test]
fn a_frame_that_comes_over_another_link_than_its_channel_is_not_its_channels() {
    let manner = Manner {
        sealed: false,
        ..Manner::default()
    };
    let mut world = World::new(4, manner, 1);
    let opening = World::opening(0, 2, traffic(), Span::from_millis(30));
    let (_, [from, to], _) = world.open(opening).expect("granted");
    for (host, link, end) in [(2, LinkId(1), to), (0, LinkId(0), from)] {
        let now = world.local(host);
        world.node(host).came(now, link, now, &mut made_up(end));
    }
    world.told();
    assert!(world.seen[2].got.is_empty());
    let counts = world.node(2).link_counts(LinkId(1)).expect("a link");
    assert_eq!((counts.misdirected, counts.nobodys), (1, 0));
    let counts = world.node(0).link_counts(LinkId(0)).expect("a link");
    assert_eq!((counts.misdirected, counts.nobodys), (0, 1));
    world.adds_up();
}
