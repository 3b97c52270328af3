//! What nodes grant each other is kept: no message is above its bound, and nothing is dropped on the way.

use laxity_model::base::random::SplitMix64;
use laxity_model::channels::admission::Traffic;
use laxity_model::channels::clocks::Timeliness;
use laxity_model::channels::source::Excess;
use laxity_model::{Instant, Span};
use laxity_net::channels::node::{EndCounts, Opening, Sends};
use laxity_net::channels::path::{Label, Lane};

use super::world::{Manner, SENDS, World, nonzero};
use crate::channels::path::world::message;

const HOSTS: usize = 4;
const MESSAGES: u64 = 25;

fn below(random: &mut SplitMix64, most: u64) -> u64 {
    random.draw() % most
}

struct Granted {
    from: usize,
    to: usize,
    ends: [Label; 2],
    bound: Span,
    traffic: Traffic,
    /// The logical arrival of each message, rounded down.
    logical: Vec<Instant>,
}

/// Asks for a channel that is drawn.
fn granted(world: &mut World, random: &mut SplitMix64) -> Option<Granted> {
    let from = below(random, HOSTS as u64 - 1) as usize;
    let to = from + 1 + below(random, (HOSTS - 1 - from) as u64) as usize;
    let rate = (
        1 + below(random, 3) as u32,
        Span::from_micros(3_000 + below(random, 30_000)),
    );
    let bytes = 1 + below(random, 12_000) as u32;
    let traffic = Traffic::new(bytes, rate, 1 + below(random, 4) as u32).expect("traffic");
    let within = Span::from_micros(500 + below(random, 20_000)) * (to - from) as u64;
    let opening = Opening {
        sends: Sends {
            excess: Excess::DropNewest,
            room: nonzero(traffic.burst().get() + 60),
            ..SENDS
        },
        ..World::opening(from, to, traffic, within)
    };
    let (_, ends, bound) = world.open(opening)?;
    assert!(bound <= within);
    let logical = Vec::new();
    Some(Granted {
        from,
        to,
        ends,
        bound,
        traffic,
        logical,
    })
}

/// Messages as early as the channel may send them, and pauses of all lengths.
fn sends(world: &mut World, channel: &mut Granted, number: usize, random: &mut SplitMix64) {
    let (messages, per) = channel.traffic.rate();
    let bytes = channel.traffic.largest().get();
    let begin = world.now().as_nanos();
    // In parts of a nanosecond, of which each has as many as there are messages in a period.
    let (parts, per) = (u64::from(messages.get()), per.as_nanos());
    let ahead = per * u64::from(channel.traffic.burst().get() - 1);
    let (mut next, mut from) = (0_u64, below(random, 5_000_000));
    for one in 0..MESSAGES {
        let at = from.max(next.saturating_sub(ahead).div_ceil(parts));
        let sent = message(number, one, bytes);
        world.sends(
            Instant::from_nanos(begin + at),
            channel.from,
            channel.ends[0],
            sent,
        );
        let logical = next.max(at * parts);
        next = logical + per;
        if below(random, 10) == 0 {
            from = at + below(random, 60_000_000);
        }
        channel
            .logical
            .push(Instant::from_nanos(begin + logical / parts));
    }
}

/// Best effort that never ends, over each link, where its channel is granted.
fn bulk(world: &mut World) {
    let traffic = Traffic::new(8_000, (1, Span::from_secs(60)), 1).expect("traffic");
    let sent = Sends {
        is_due: false,
        excess: Excess::DropNewest,
        ..SENDS
    };
    for from in 0..HOSTS - 1 {
        let opening = Opening {
            sends: sent,
            ..World::opening(from, from + 1, traffic, Span::from_secs(10))
        };
        let Some((_, [end, _], _)) = world.open(opening) else {
            continue;
        };
        for number in 0..700 {
            let at = world.now() + Span::from_micros(500) * number;
            world.sends(at, from, end, message(99, number, 8_000));
        }
    }
}

fn nothing_is_dropped(world: &World, seed: u64) {
    for node in world.nodes() {
        for channel in node.signalling().channels() {
            if let Some(EndCounts::Passes(passed, _)) = node.counts(channel.label, Lane::RealTime) {
                assert_eq!(
                    (passed.dropped(), passed.disbelieved),
                    (0, 0),
                    "seed {seed}"
                );
            }
        }
    }
}

/// Sets that are drawn, opened one channel after the other, on three links full of best effort that nodes carry.
#[test]
fn nothing_is_above_the_bound_that_was_granted() {
    let manner = Manner {
        sealed: false,
        best_effort: 30,
        ..Manner::default()
    };
    let (mut channels, mut relayed, mut closest) = (0, 0, Span::MAX);
    for seed in 0..40 {
        let random = &mut SplitMix64::new(seed);
        let mut world = World::new(HOSTS, manner, seed);
        let asked = 1 + below(random, 12);
        let mut all: Vec<_> = (0..asked)
            .filter_map(|_| granted(&mut world, random))
            .collect();
        bulk(&mut world);
        for (number, channel) in all.iter_mut().enumerate() {
            sends(&mut world, channel, number, random);
        }
        world.run(Span::from_secs(3));
        world.adds_up();
        for channel in &all {
            let (from, to) = (channel.from, channel.to);
            let got = world.seen[to].got.iter();
            let got: Vec<_> = got.filter(|one| one.end == channel.ends[1]).collect();
            assert_eq!(got.len(), channel.logical.len(), "seed {seed}");
            for (one, logical) in got.iter().zip(&channel.logical) {
                // The logical arrival is rounded up, by less than a nanosecond.
                let due = *logical + channel.bound + Span::from_nanos(1);
                assert!(one.at <= due, "seed {seed}, {:?} after {due:?}", one.at);
                closest = closest.min(due - one.at);
                let verdict = one.verdict.expect("it is due");
                assert_eq!(verdict.timeliness, Timeliness::InTime, "seed {seed}");
            }
            relayed += to - from - 1;
            channels += 1;
        }
        nothing_is_dropped(&world, seed);
    }
    // They are not all trivial: some come close to their bounds.
    assert!(channels > 120 && relayed > 60, "{channels}, {relayed}");
    assert!(closest < Span::from_micros(200), "{closest}");
}
