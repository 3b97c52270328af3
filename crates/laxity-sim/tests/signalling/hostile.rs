//! A wire that loses, doubles and reorders, and hosts that die, begin anew and stand still at any step.

use laxity_model::channels::signalling::{ChannelId, HostId};
use laxity_model::nif::wire::Faults;
use laxity_model::{Instant, Span};
use proptest::prelude::*;

use super::admission::asked;
use super::world::{Manner, SHARE, World};

const WITHIN: Span = Span::from_millis(10);
/// Longer than all that may be left of anything takes to be gone: an answer that does not come, and three refreshes.
const LONG: Span = Span::from_secs(4);

/// At every step of opening a channel, or of changing an open one, each host dies, stays dead or begins anew soon or later, stands still, or loses a link.
fn at_every_step(hosts: u32, changes: bool, hurt: impl Fn(&mut World, HostId)) {
    for victim in (0..hosts).map(HostId) {
        for steps in 0.. {
            let mut world = World::line(hosts);
            world.run(Span::from_millis(20));
            let mut channel = world.open(0, hosts - 1, asked(SHARE), WITHIN);
            if let (Some(channel), true) = (channel, changes) {
                world.run(Span::from_millis(5));
                world.change(channel, asked(SHARE * 2), WITHIN);
            }
            let until = world.network.now() + Span::from_millis(20);
            let mut left = steps;
            while left > 0 && world.network.step(until) {
                world.listen();
                left -= 1;
            }
            hurt(&mut world, victim);
            world.run(LONG);
            world.settled();
            for host in (0..hosts).map(HostId) {
                if !world.alive[host.0 as usize] {
                    world.start(host);
                }
            }
            world.run(LONG);
            world.settled();
            if let Some(channel) = channel.take() {
                world.close(HostId(0), channel, false);
            }
            world.run(Span::from_millis(100));
            world.settled();
            assert!(world.is_empty(), "{victim} after {steps} steps");
            if left > 0 {
                break;
            }
        }
    }
}

#[test]
fn a_host_dies_at_every_step() {
    at_every_step(4, false, World::kill);
    at_every_step(3, true, World::kill);
}

#[test]
fn a_host_begins_anew_at_every_step() {
    for after in [0, 20, 300] {
        let again = |world: &mut World, host| {
            world.kill(host);
            world.run(Span::from_millis(after));
            world.start(host);
        };
        at_every_step(3, false, again);
        at_every_step(3, true, again);
    }
}

#[test]
fn a_host_stands_still_at_every_step() {
    for length in [60, 170, 240, 1_500] {
        let still = |world: &mut World, host| {
            world.network.stand_still(host, Span::from_millis(length));
        };
        at_every_step(3, false, still);
        at_every_step(3, true, still);
    }
}

#[test]
fn a_link_is_cut_at_every_step() {
    for length in [100, 400] {
        let cut = |world: &mut World, host: HostId| {
            let other = HostId(if host.0 == 0 { 1 } else { host.0 - 1 });
            world.network.cut(host, other, true);
            world.run(Span::from_millis(length));
            world.network.cut(host, other, false);
        };
        at_every_step(3, false, cut);
        at_every_step(3, true, cut);
    }
}

/// What a test does, and how many milliseconds pass then. Numbers are taken modulo how many there are.
#[derive(Clone, Copy, Debug)]
enum Op {
    Open(u32, u32, u32),
    Change(usize, u32),
    Close(usize, bool, bool),
    Kill(u32),
    Start(u32),
    Still(u32, u64),
    Cut(u32, bool),
    SetClock(u32, u64, i32),
}

fn op() -> impl Strategy<Value = Op> {
    let share = 1..40_u32;
    prop_oneof![
        8 => (0..8_u32, 0..8_u32, share.clone()).prop_map(|(from, to, share)| Op::Open(from, to, share)),
        3 => (0..20_usize, share).prop_map(|(which, share)| Op::Change(which, share)),
        2 => (0..20_usize, any::<bool>(), any::<bool>()).prop_map(|(which, far, died)| Op::Close(which, far, died)),
        1 => (0..8_u32).prop_map(Op::Kill),
        2 => (0..8_u32).prop_map(Op::Start),
        1 => (0..8_u32, 0..400_u64).prop_map(|(host, length)| Op::Still(host, length)),
        1 => (1..8_u32, any::<bool>()).prop_map(|(host, is_cut)| Op::Cut(host, is_cut)),
        1 => (0..8_u32, 0..8_000_u64, -100_000..100_000).prop_map(|(host, says, ppb)| Op::SetClock(host, says, ppb)),
    ]
}

fn faults() -> impl Strategy<Value = Faults> {
    (0..300_000_u32, 0..300_000_u32, 0..300_000_u32, 0..60_u64).prop_map(
        |(lost, doubled, late, late_by)| Faults {
            lost,
            doubled,
            late,
            late_by: Span::from_millis(late_by),
            ..Faults::default()
        },
    )
}

/// A host and, for each after the first, to which of those before it is linked.
fn tree() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(any::<u32>(), 2..8).prop_map(|drawn| {
        let parent = |(host, drawn): (u32, u32)| if host == 0 { 0 } else { drawn % host };
        (0..).zip(drawn).map(parent).collect()
    })
}

/// Does it, and tells a channel that was opened.
fn does(world: &mut World, channels: &[ChannelId], op: Op) -> Option<ChannelId> {
    let hosts = world.hosts;
    let which = |which: usize| channels.get(which % channels.len().max(1)).copied();
    match op {
        Op::Open(from, to, share) => {
            let (from, to) = (from % hosts, to % hosts);
            if from != to && world.alive[from as usize] {
                return world.open(from, to, asked(share * SHARE), WITHIN);
            }
        }
        Op::Change(number, share) => {
            if let Some(channel) = which(number) {
                world.change(channel, asked(share * SHARE), WITHIN * 2);
            }
        }
        Op::Close(number, at_far_end, has_died) => {
            if let Some(channel) = which(number) {
                let far = world.routes[&channel].last().copied();
                let host = far.filter(|_| at_far_end).unwrap_or(channel.origin);
                world.close(host, channel, has_died);
            }
        }
        Op::Kill(host) => world.kill(HostId(host % hosts)),
        Op::Start(host) => world.start(HostId(host % hosts)),
        Op::Still(host, length) => {
            let length = Span::from_millis(length);
            world.network.stand_still(HostId(host % hosts), length);
        }
        Op::Cut(host, is_cut) => {
            let host = host % (hosts - 1) + 1;
            let parent = world.parents[host as usize];
            world.network.cut(HostId(host), HostId(parent), is_cut);
        }
        Op::SetClock(host, says, ppb) => {
            let says = Instant::from_secs(says);
            world.network.set_clock(HostId(host % hosts), says, ppb);
        }
    }
    None
}

fn cases() -> u32 {
    let asked = std::env::var("LAXITY_SIGNALLING_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(48)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    /// Whatever happens: nothing is over-committed at any time; when it has ended, all is settled, and each end was told what became of its channel once.
    #[test]
    fn all_settles_whatever_the_wire_does_and_whoever_dies(
        parents in tree(),
        (size, manner) in (1..12_u64, prop_oneof![4 => Just(Manner::Agrees), 1 => Just(Manner::Declines), 1 => Just(Manner::Sleeps)]),
        faults in faults(),
        seed in any::<u64>(),
        ops in prop::collection::vec((op(), 0..120_u64), 0..40),
    ) {
        let mut world = World::new(&parents, [size * 100_000, size * 80_000, size * 20], faults, seed);
        world.manner = manner;
        world.run(Span::from_millis(200));
        let mut channels = Vec::new();
        for (op, passes) in ops {
            channels.extend(does(&mut world, &channels, op));
            world.run(Span::from_millis(passes));
            prop_assert!(world.agrees());
        }
        world.network.faults = Faults::default();
        for host in (0..world.hosts).map(HostId) {
            if !world.alive[host.0 as usize] {
                world.start(host);
            }
            if host.0 > 0 {
                let parent = world.parents[host.0 as usize];
                world.network.cut(host, HostId(parent), false);
            }
        }
        world.run(LONG);
        world.settled();
        for channel in channels {
            world.close(channel.origin, channel, false);
        }
        world.run(LONG);
        world.settled();
        prop_assert!(world.is_empty());
    }
}
