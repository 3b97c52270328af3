//! Who is told of whose death, and how soon.

use laxity_model::Span;
use laxity_model::channels::admission::Traffic;
use laxity_model::channels::signalling::{Cause, ChannelId, HostId};
use laxity_net::channels::node::Event;
use laxity_net::channels::path::Label;

use super::world::{Manner, World};
use crate::channels::path::world::message;

/// A line of four hosts with a channel over all of them, at work.
fn at_work(seed: u64) -> (World, ChannelId, [Label; 2]) {
    let mut world = World::new(4, Manner::default(), seed);
    let traffic = Traffic::new(2_000, (1, Span::from_millis(5)), 2).expect("traffic");
    let opening = World::opening(0, 3, traffic, Span::from_millis(20));
    let (channel, ends, _) = world.open(opening).expect("granted");
    for number in 0..100 {
        let at = world.now() + Span::from_millis(5) * number;
        world.sends(at, 0, ends[0], message(0, number, 2_000));
    }
    // Not at a heartbeat's instant.
    world.run(Span::from_micros(100_000 + seed * 7_919));
    (world, channel, ends)
}

/// Both ends are told once, within 250 ms, and by one of these.
fn are_told(world: &mut World, channel: ChannelId, causes: &[Cause]) {
    let died = world.now();
    world.run(Span::from_secs(3));
    for host in [0, 3] {
        let all = world.seen[host].events.iter();
        let ended = all.filter_map(|(at, event)| match event {
            Event::Ended(of, cause) if *of == channel => Some((*at, *cause)),
            _ => None,
        });
        let ended: Vec<_> = ended.collect();
        let [(at, cause)] = ended[..] else {
            panic!("host {host}: {ended:?}");
        };
        let took = at.saturating_since(died);
        assert!(took <= Span::from_millis(250), "host {host}: {took}");
        assert!(causes.contains(&cause), "host {host}: {cause:?}");
    }
    world.is_empty();
}

fn lost(by: u32, silent: u32) -> Cause {
    Cause::Lost {
        by: HostId(by),
        silent: HostId(silent),
    }
}

#[test]
fn both_ends_are_told_which_link_has_died() {
    for seed in 0..10 {
        let (mut world, channel, _) = at_work(seed);
        world.hosts.cut(1);
        are_told(&mut world, channel, &[lost(1, 2), lost(2, 1)]);
    }
}

#[test]
fn both_ends_are_told_which_host_has_died() {
    for seed in 0..10 {
        let (mut world, channel, _) = at_work(seed);
        world.hosts.kill(2);
        are_told(&mut world, channel, &[lost(1, 2), lost(3, 2)]);
    }
}

#[test]
fn a_host_that_begins_anew_knows_nothing_and_works_again() {
    let (mut world, channel, _) = at_work(1);
    world.hosts.kill(2);
    world.start(2);
    let causes = [Cause::Restarted(HostId(2)), lost(1, 2), lost(3, 2)];
    are_told(&mut world, channel, &causes);
    let traffic = Traffic::new(2_000, (1, Span::from_millis(5)), 2).expect("traffic");
    let opening = World::opening(0, 3, traffic, Span::from_millis(20));
    let (_, [from, to], _) = world.open(opening).expect("granted");
    world.sends(world.now(), 0, from, message(0, 0, 2_000));
    world.run(Span::from_millis(25));
    let last = world.seen[3].got.last().expect("it came");
    assert_eq!((last.end, last.message), (to, 0));
    world.adds_up();
}

#[test]
fn an_application_that_dies_ends_its_channel() {
    let (mut world, channel, _) = at_work(1);
    let now = world.local(3);
    world.node(3).close(now, channel, true);
    are_told(&mut world, channel, &[Cause::Died(HostId(3))]);
}
