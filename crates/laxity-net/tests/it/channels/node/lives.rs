//! A channel from its opening to its end.

use laxity_model::channels::admission::Traffic;
use laxity_model::channels::clocks::Timeliness;
use laxity_model::channels::signalling::{Cause, HostId, Refusal};
use laxity_model::channels::source::Excess;
use laxity_model::{Instant, Span};
use laxity_net::channels::node::{Event, Handlers, Opening};
use laxity_net::channels::path::Lane;

use super::world::{Manner, SENDS, World, asked};
use crate::channels::path::world::message;

fn traffic(bytes: u32, millis: u64) -> Traffic {
    Traffic::new(bytes, (1, Span::from_millis(millis)), 3).expect("traffic")
}

/// Opens, sends, changes, sends more and larger ones, and closes.
fn lives(manner: Manner) {
    let mut world = World::new(3, manner, 1);
    let within = Span::from_millis(30);
    let opening = World::opening(0, 2, traffic(2_500, 10), within);
    let (channel, [from, to], bound) = world.open(opening).expect("granted");
    assert!(bound <= within, "{bound}");
    let begin = world.now();
    for number in 0..50 {
        let at = begin + Span::from_millis(10) * number;
        world.sends(at, 0, from, message(0, number, 2_500));
    }
    world.run(Span::from_millis(250));
    let now = world.now();
    let (larger, sooner) = (asked(traffic(9_000, 5)), Span::from_millis(20));
    let hold = world.node(0).change(now, channel, larger, sooner);
    let hold = hold.expect("it is open");
    world.run(Span::from_millis(300));
    for number in 50..150 {
        let at = world.now() + Span::from_millis(5) * (number - 50);
        world.sends(at, 0, from, message(0, number, 9_000));
    }
    world.run(Span::from_millis(600));
    let opened = |event: &Event<_>| matches!(event, Event::Opened { hold: of, end, .. } if *of == hold && *end == from);
    let listens = |event: &Event<_>| matches!(event, Event::Listening { hold: of, end } if *of == hold && *end == to);
    for (host, was) in [(0, &opened as &dyn Fn(&Event<_>) -> bool), (2, &listens)] {
        let all = world.seen[host].events.iter();
        assert_eq!(all.filter(|(_, event)| was(event)).count(), 1, "at {host}");
    }
    assert_eq!(world.seen[0].back, 150);
    let got = &world.seen[2].got;
    let missed: Vec<_> = world.seen[2]
        .events
        .iter()
        .filter(|(_, event)| matches!(event, Event::Missed(..)))
        .collect();
    assert_eq!((got.len(), missed), (150, Vec::new()));
    for (number, one) in (0..).zip(got) {
        let bytes = if number < 50 { 2_500 } else { 9_000 };
        assert_eq!((one.message, one.end), (number, to));
        assert!(one.bytes == message(0, number, bytes), "{number}");
        let verdict = one.verdict.expect("it is due");
        assert_eq!(verdict.timeliness, Timeliness::InTime, "{number}");
    }
    world.adds_up();
    let now = world.now();
    world.node(0).close(now, channel, false);
    world.run(Span::from_millis(20));
    for host in [0, 2] {
        let ended = Event::Ended(channel, Cause::Closed(HostId(0)));
        let all = world.seen[host].events.iter();
        assert_eq!(all.filter(|(_, event)| *event == ended).count(), 1);
    }
    world.is_empty();
}

#[test]
fn a_channel_opens_carries_changes_and_ends() {
    lives(Manner::default());
}

#[test]
fn the_same_unsealed_and_with_handlers_that_are_called() {
    lives(Manner {
        sealed: false,
        handlers: Handlers::Called,
        ..Manner::default()
    });
}

/// What a link's own signals were granted leaves room for others' frames, also where there is no best effort.
#[test]
fn signals_are_in_nobodys_way() {
    let mut world = World::new(2, Manner::default(), 1);
    let opening = World::opening(0, 1, traffic(12_000, 10), Span::from_micros(1_500));
    assert!(world.open(opening).is_some());
    world.adds_up();
}

#[test]
fn what_does_not_fit_is_refused_with_what_would() {
    let mut world = World::new(3, Manner::default(), 1);
    let much = Traffic::new(200_000, (1, Span::from_millis(10)), 1).expect("traffic");
    let opening = World::opening(0, 2, much, Span::from_millis(30));
    assert_eq!(world.open(opening), None);
    let refused = world.seen[0]
        .events
        .iter()
        .find_map(|(_, event)| match event {
            Event::Refused(_, Refusal::Short { at, short }) => Some((*at, *short)),
            _ => None,
        });
    let (at, short) = refused.expect("it says why");
    assert_eq!(at, HostId(0));
    let interval = short.fits.interval.expect("slower ones fit");
    let slower = much.with_interval(interval).expect("not 0");
    assert!(
        world
            .open(World::opening(0, 2, slower, Span::from_millis(200)))
            .is_some()
    );
    world.adds_up();
}

/// Best effort of two channels never ends; a third one is opened all the same, and in time.
#[test]
fn a_link_that_is_full_of_best_effort_still_opens() {
    let manner = Manner {
        best_effort: 40,
        ..Manner::default()
    };
    let mut world = World::new(3, manner, 1);
    let bulk = Opening {
        sends: laxity_net::channels::node::Sends {
            is_due: false,
            excess: Excess::DropNewest,
            ..SENDS
        },
        ..World::opening(0, 2, traffic(8_000, 1_000), Span::from_secs(1))
    };
    for _ in 0..2 {
        let (_, [from, _], _) = world.open(bulk.clone()).expect("granted");
        for number in 0..4_000 {
            let at = world.now() + Span::from_micros(250) * number;
            world.sends(at, 0, from, message(1, number, 8_000));
        }
    }
    world.run(Span::from_millis(100));
    let asked_at = world.now();
    let opening = World::opening(0, 2, traffic(1_000, 10), Span::from_millis(10));
    let (channel, ..) = world.open(opening).expect("granted");
    let opened = world.seen[0]
        .events
        .iter()
        .find_map(|(at, event)| match event {
            Event::Opened { hold, .. } if hold.channel == channel => Some(*at),
            _ => None,
        });
    let took = opened.expect("it opened").saturating_since(asked_at);
    assert!(took < Span::from_millis(25), "{took}");
    let busy = |end: Instant| end > asked_at;
    assert!(
        world.seen[2]
            .got
            .iter()
            .any(|one| busy(one.at) && one.lane == Lane::BestEffort)
    );
    world.adds_up();
}
