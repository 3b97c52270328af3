//! What is granted is kept: no message is above its bound, and no buffer is missing.

use core::num::NonZeroU64;

use laxity_model::analysis::supply::Dedicated;
use laxity_model::base::random::SplitMix64;
use laxity_model::channels::admission::{Costs, Host, LinkCosts, Path, Request, Traffic};
use laxity_model::channels::clocks::Timeliness;
use laxity_model::channels::handler::Late;
use laxity_model::channels::signalling::{ChannelId, HostId, LinkId, Place};
use laxity_model::channels::source::Excess;
use laxity_model::nif::wire::Faults;
use laxity_model::policy::multiclass::By;
use laxity_model::{Instant, Span};
use laxity_net::channels::path::Lane;

use super::world::{Channel, OVERHEAD, PACKET, World, message, nonzero};

const HOSTS: usize = 4;
const RATE: u64 = 100_000_000;
const WIRE: Span = Span::from_micros(13);
const MESSAGES: u64 = 25;

fn network() -> Vec<Host<Dedicated>> {
    let link = Costs::Link(LinkCosts {
        rate: NonZeroU64::new(RATE).expect("not 0"),
        overhead: OVERHEAD,
        queued: 0,
        best_effort: PACKET + OVERHEAD,
    });
    let host = |_| {
        let host = Host::new(nonzero(PACKET), 1_000, Span::ZERO);
        let over = host.over(LinkId(0), link, Dedicated, By::Deadline);
        over.expect("it fits")
    };
    (0..HOSTS - 1).map(host).collect()
}

/// A number from 0 to below this.
fn below(random: &mut SplitMix64, most: u64) -> u64 {
    random.draw() % most
}

/// Asks for a channel, and answers it with its bound if it is granted.
fn granted(
    network: &mut [Host<Dedicated>],
    number: u32,
    random: &mut SplitMix64,
) -> Option<(Channel, Span)> {
    let from = below(random, HOSTS as u64 - 1) as usize;
    let to = from + 1 + below(random, (HOSTS - 1 - from) as u64) as usize;
    let bytes = 1 + below(random, 12_000) as u32;
    let rate = (
        1 + below(random, 3) as u32,
        Span::from_micros(3_000 + below(random, 30_000)),
    );
    let traffic = Traffic::new(bytes, rate, 1 + below(random, 4) as u32).expect("traffic");
    let links = (to - from) as u64;
    let request = Request {
        channel: ChannelId {
            origin: HostId(0),
            generation: 0,
            number,
        },
        traffic,
        within: Span::from_micros(500 + below(random, 20_000)) * links,
        propagation: WIRE * links,
    };
    let way = (from..to).map(|host| {
        let place = Place {
            from: (host > from).then_some(LinkId(1)),
            to: Some(LinkId(0)),
        };
        (host, place)
    });
    let way: Vec<_> = way.collect();
    let mut path = Path { network, way: &way };
    let held = path.open(&request).ok()?;
    let hops = held
        .iter()
        .map(|held| (held.delays.own, held.buffers as u32));
    let hops: Vec<(Span, u32)> = hops.collect();
    let packets = bytes.div_ceil(PACKET);
    let bound = hops.iter().map(|(delay, _)| *delay).sum::<Span>() + request.propagation;
    assert!(bound <= request.within);
    let channel = Channel {
        from,
        to,
        traffic,
        excess: Excess::DropNewest,
        late: Late::Deliver,
        room: hops[0].1 / packets,
        hops,
        largest: bytes,
        buffers: 2,
        is_due: true,
        best_effort: 0,
        unseen: Span::ZERO,
    };
    Some((channel, bound))
}

/// Best effort that never ends, over one link.
fn bulk(from: usize) -> Channel {
    Channel {
        from,
        to: from + 1,
        traffic: Traffic::new(8_000, (1, Span::from_millis(1)), 1).expect("traffic"),
        hops: vec![(Span::ZERO, 0)],
        excess: Excess::DropNewest,
        late: Late::Deliver,
        room: 16,
        largest: 8_000,
        buffers: 2,
        is_due: false,
        best_effort: 30,
        unseen: Span::ZERO,
    }
}

/// Messages as early as the channel may send them, and pauses of all lengths. Answers the logical arrival of each, rounded down.
fn offers(world: &mut World, channel: usize, random: &mut SplitMix64) -> Vec<Instant> {
    let traffic = world.channels[channel].traffic;
    let (messages, per) = traffic.rate();
    let bytes = traffic.largest().get();
    // In parts of a nanosecond, of which each has as many as there are messages in a period.
    let (parts, per) = (u64::from(messages.get()), per.as_nanos());
    let ahead = per * u64::from(traffic.burst().get() - 1);
    let (mut next, mut from) = (0_u64, below(random, 5_000_000));
    let arrive = |number| {
        let at = from.max(next.saturating_sub(ahead).div_ceil(parts));
        world.offers(
            Instant::from_nanos(at),
            channel,
            message(channel, number, bytes),
        );
        let logical = next.max(at * parts);
        next = logical + per;
        if below(random, 10) == 0 {
            from = at + below(random, 60_000_000);
        }
        Instant::from_nanos(logical / parts)
    };
    (0..MESSAGES).map(arrive).collect()
}

/// 200 sets that are drawn, admitted one channel after the other, on three links full of best effort.
#[test]
fn nothing_is_above_the_bound_that_was_granted() {
    let faults = Faults {
        rate: RATE,
        delay: WIRE,
        ..Faults::default()
    };
    let (mut channels, mut relayed, mut closest) = (0, 0, Span::MAX);
    for seed in 0..200 {
        let random = &mut SplitMix64::new(seed);
        let mut network = network();
        let asked = 1 + below(random, 12) as u32;
        let all: Vec<_> = (0..asked)
            .filter_map(|number| granted(&mut network, number, random))
            .collect();
        let real_time = all.iter().map(|(channel, _)| channel.clone());
        let bulk = (0..HOSTS - 1).map(bulk);
        let mut world = World::new(HOSTS, faults, real_time.chain(bulk).collect(), seed);
        let logical: Vec<_> = (0..all.len())
            .map(|channel| offers(&mut world, channel, random))
            .collect();
        for channel in all.len()..all.len() + HOSTS - 1 {
            for number in 0..700 {
                let at = Instant::ZERO + Span::from_micros(500) * number;
                world.offers(at, channel, message(channel, number, 8_000));
            }
        }
        world.run();
        world.adds_up(true);
        for (number, (channel, bound)) in all.iter().enumerate() {
            let seen = &world.seen[number];
            assert_eq!(
                seen.delivered.len(),
                logical[number].len(),
                "seed {seed}, {channel:?}"
            );
            for (one, logical) in seen.delivered.iter().zip(&logical[number]) {
                // The logical arrival is rounded up, by less than a nanosecond.
                let due = *logical + *bound + Span::from_nanos(1);
                assert!(one.at <= due, "seed {seed}, {one:?} after {due:?}");
                closest = closest.min(due - one.at);
                let verdict = one.verdict.expect("it is due");
                assert_eq!(verdict.timeliness, Timeliness::InTime, "seed {seed}");
            }
            for host in channel.from + 1..channel.to {
                let passed = world.hosts[host]
                    .way_out
                    .passed(world.numbers[number][host], Lane::RealTime);
                let passed = passed.expect("it passes");
                assert_eq!(
                    (passed.dropped(), passed.disbelieved),
                    (0, 0),
                    "seed {seed}"
                );
                relayed += 1;
            }
            channels += 1;
        }
    }
    // They are not all trivial: some come within a tenth of a millisecond of their bounds.
    assert!(channels > 600 && relayed > 300, "{channels}, {relayed}");
    assert!(closest < Span::from_micros(100), "{closest}");
}
