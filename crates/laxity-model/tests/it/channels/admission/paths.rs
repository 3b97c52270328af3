//! Channels that come, change and go on paths through a network: nothing is ever over-committed, a refusal changes nothing, and each of its offers is granted.

use std::num::{NonZeroU32, NonZeroU64};

use laxity_model::analysis::supply::Dedicated;
use laxity_model::base::random::SplitMix64;
use laxity_model::channels::admission::{
    Arrival, Costs, Give, Held, Hop, LinkCosts, Nearest, Path, ProcessorCosts, Reason, Refusal,
    Request, Traffic,
};
use laxity_model::policy::three_classes::By;
use laxity_model::{Service, Span};

use crate::edf_support::cases;

type Network = Vec<Hop<Dedicated>>;

fn payload() -> NonZeroU32 {
    NonZeroU32::new(1_400).unwrap()
}

fn processor() -> Costs {
    let micros = Service::from_micros;
    Costs::Processor(ProcessorCosts {
        message: micros(5),
        packet: micros(4),
        byte_ps: 300,
        look: micros(1),
        switch: micros(2),
        cache_miss: micros(3),
        wake_up: micros(60),
        completion: micros(2),
        interrupt: micros(3),
        packets_at_once: NonZeroU32::new(4).unwrap(),
        carries_best_effort: true,
    })
}

fn link() -> Costs {
    Costs::Link(LinkCosts {
        rate: NonZeroU64::new(100_000_000).unwrap(),
        overhead: 66,
        queued: 2,
        best_effort: 1_466,
    })
}

fn network(by: By, hops: usize, buffers: u64) -> Network {
    let stage = |costs: Costs| costs.stage(payload(), Dedicated, by).unwrap();
    let hop = |_| Hop::new(payload(), vec![stage(processor()), stage(link())], buffers);
    (0..hops).map(hop).collect()
}

fn request(largest: u32, interval_us: u64, burst: u32, within_us: u64) -> Request {
    Request {
        traffic: Traffic::new(largest, (1, Span::from_micros(interval_us)), burst).unwrap(),
        within: Span::from_micros(within_us),
        propagation: Span::from_micros(10),
        horizon: Span::ZERO,
    }
}

/// All that anybody has anywhere.
fn everything(network: &Network) -> Vec<(u64, Held, Vec<u64>)> {
    let of_hop = |hop: &Hop<Dedicated>| {
        let places = |channel: u64| {
            let place = |members: &[laxity_model::channels::admission::Member]| {
                members
                    .iter()
                    .position(|member| member.channel == channel)
                    .unwrap() as u64
            };
            hop.stages()
                .iter()
                .map(|stage| place(stage.resource().members()))
                .collect()
        };
        hop.channels()
            .map(|(channel, held)| (channel, held.clone(), places(channel)))
            .collect::<Vec<_>>()
    };
    network.iter().flat_map(of_hop).collect()
}

/// All deadlines are met from scratch, all delays and buffers are what they should be.
fn is_not_over_committed(network: &Network) {
    for hop in network {
        let (taken, most) = hop.buffers();
        assert_eq!(
            taken,
            hop.channels().map(|(_, held)| held.buffers).sum::<u64>()
        );
        assert!(taken <= most);
        for (stage, of) in hop.stages().iter().enumerate() {
            assert_eq!(of.resource().is_met(), Ok(true));
            assert_eq!(of.resource().members().len(), hop.channels().count());
            for member in of.resource().members() {
                assert_eq!(
                    member.delay,
                    hop.held(member.channel).unwrap().delays[stage]
                );
            }
        }
    }
}

/// What was offered is done in a copy, and the request comes again.
fn is_granted_with(
    network: &Network,
    way: &[usize],
    request: &Request,
    refusal: &Refusal,
    nearest: Nearest,
) {
    let (mut copy, mut again) = (network.clone(), *request);
    match nearest {
        Nearest::Within(within) => again.within = within,
        Nearest::Each(interval) => again.traffic = again.traffic.with_interval(interval).unwrap(),
        Nearest::Largest(largest) => again.traffic = again.traffic.with_largest(largest),
        Nearest::Give { channel, give } => {
            let hop = &mut copy[refusal.hop];
            let mut held = hop.held(channel).unwrap().clone();
            match give {
                Give::Delay(delay) => held.delays[refusal.stage.unwrap()] = delay,
                Give::Each(interval) => {
                    held.traffic = held.traffic.with_interval(interval).unwrap();
                }
            }
            hop.release(channel);
            hop.reserve_these(channel, &held.traffic, held.delays, Arrival::AtSource)
                .unwrap();
        }
    }
    let opened = Path {
        network: &mut copy,
        way,
    }
    .open(u64::MAX, &again);
    assert!(
        opened.is_ok(),
        "{nearest} is refused: {opened:?}, after {refusal:?}"
    );
}

/// As near as it can be: a little nearer, and it is refused.
fn is_nearest(network: &Network, way: &[usize], request: &Request, nearest: Nearest) {
    let (mut copy, mut again) = (network.clone(), *request);
    let one = Span::from_nanos(1);
    match nearest {
        Nearest::Within(within) => again.within = within - one,
        Nearest::Each(interval) => {
            again.traffic = again.traffic.with_interval(interval - one).unwrap();
        }
        Nearest::Largest(largest) => {
            again.traffic = again.traffic.with_largest(largest.checked_add(1).unwrap());
        }
        Nearest::Give { .. } => return,
    }
    let opened = Path {
        network: &mut copy,
        way,
    }
    .open(u64::MAX, &again);
    assert!(opened.is_err(), "more than {nearest} is granted");
}

fn random_request(random: &mut SplitMix64) -> Request {
    let mut one = |low: u64, high: u64| low + random.draw() % (high - low + 1);
    let largest = if one(0, 1) == 0 {
        one(16, 1_400)
    } else {
        one(1_401, 60_000)
    };
    request(
        largest as u32,
        one(1_000, 60_000),
        one(1, 4) as u32,
        one(1_000, 60_000),
    )
}

/// The ways that channels take.
const WAYS: [&[usize]; 4] = [&[0, 1, 2], &[0], &[1, 2], &[2, 0]];

/// One that is there goes, or asks for something else.
fn goes_or_changes(
    network: &mut Network,
    open: &mut Vec<(u64, usize)>,
    picked: usize,
    request: Option<&Request>,
) {
    let (channel, way) = open[picked];
    let way = WAYS[way];
    let Some(request) = request else {
        open.swap_remove(picked);
        assert!(Path { network, way }.close(channel));
        return;
    };
    let before = everything(network);
    let changed = Path { network, way }.change(channel, request);
    if changed.is_err() {
        assert_eq!(everything(network), before);
    }
}

/// How many were opened and refused, and how many offers were made to these.
fn comes_and_goes(by: By, seed: u64, steps: u32) -> [usize; 3] {
    let mut random = SplitMix64::new(seed);
    let mut network = network(by, 3, 3_000);
    let mut open: Vec<(u64, usize)> = Vec::new();
    let mut counts = [0; 3];
    for channel in 0..u64::from(steps) {
        let request = random_request(&mut random);
        let which = (random.draw() % 4) as usize;
        let change = random.draw() % 8;
        if change < 2 && !open.is_empty() {
            let picked = (random.draw() % open.len() as u64) as usize;
            let request = Some(&request).filter(|_| change == 1);
            goes_or_changes(&mut network, &mut open, picked, request);
            is_not_over_committed(&network);
            continue;
        }
        let (before, way) = (everything(&network), WAYS[which]);
        let opened = Path {
            network: &mut network,
            way,
        }
        .open(channel, &request);
        is_not_over_committed(&network);
        match opened {
            Ok(held) => {
                counts[0] += 1;
                open.push((channel, which));
                let sum: Span = held.iter().flat_map(|held| &held.delays).copied().sum();
                assert!(sum + request.propagation <= request.within);
            }
            Err(refusal) => {
                counts[1] += 1;
                counts[2] += refusal.nearest.len();
                assert_eq!(everything(&network), before);
                for nearest in &refusal.nearest {
                    if by == By::Deadline || !matches!(nearest, Nearest::Give { .. }) {
                        is_granted_with(&network, way, &request, &refusal, *nearest);
                    }
                    is_nearest(&network, way, &request, *nearest);
                }
            }
        }
    }
    counts
}

#[test]
fn by_deadline_nothing_is_over_committed_and_each_offer_is_granted() {
    let counts = comes_and_goes(By::Deadline, 5, cases(60));
    assert!(
        counts[0] > 10 && counts[1] > 10 && counts[2] > counts[1],
        "{counts:?}"
    );
}

#[test]
fn by_priority_nothing_is_over_committed_and_each_offer_is_granted() {
    let counts = comes_and_goes(By::Priority, 6, cases(40));
    assert!(counts[0] > 5 && counts[1] > 5, "{counts:?}");
}

#[test]
fn a_refusal_says_where_and_how_much() {
    let mut network = network(By::Deadline, 2, 1_000);
    let way = &[0, 1][..];
    let video = request(20_000, 33_333, 3, 1_000);
    let refusal = Path {
        network: &mut network,
        way,
    }
    .open(1, &video)
    .unwrap_err();
    let Reason::Time { within, least } = refusal.reason else {
        panic!("{refusal}");
    };
    assert_eq!((refusal.stage, within), (Some(1), Span::from_millis(1)));
    // Two links, and twice 2031.04 us on them.
    assert!(least > Span::from_nanos(2 * 2_031_040) && least < Span::from_nanos(2 * 2_300_000));
    assert_eq!(refusal.nearest[0], Nearest::Within(least));
    assert!(matches!(refusal.nearest[..], [_, Nearest::Largest(_)]));
    // With all the time there is, it is spread over the four stages.
    let slow = Request {
        within: Span::from_millis(10),
        ..video
    };
    let held = Path {
        network: &mut network,
        way,
    }
    .open(1, &slow)
    .unwrap();
    let sum: Span = held.iter().flat_map(|held| &held.delays).copied().sum();
    assert_eq!(sum + slow.propagation, slow.within);
    // At the source B_max messages and those of its own delay, then those of both delays.
    let delays: Vec<Span> = held
        .iter()
        .map(|held| held.delays.iter().copied().sum())
        .collect();
    assert!(delays[0] + delays[1] < Span::from_micros(33_333));
    assert_eq!(
        held.iter().map(|held| held.buffers).collect::<Vec<_>>(),
        [3 * 15, 15]
    );
    let again = Path {
        network: &mut network,
        way,
    }
    .open(1, &slow)
    .unwrap_err();
    assert!(matches!(
        again.reason,
        Reason::Lack(laxity_model::channels::admission::Lack::Held)
    ));
}

#[test]
fn what_is_short_in_the_long_run_is_a_share_or_buffers() {
    let mut small = network(By::Deadline, 1, 1_000);
    let path = |network: &mut Network, channel, request: &Request| {
        Path { network, way: &[0] }.open(channel, request)
    };
    let half = request(60_000, 10_000, 1, 100_000);
    path(&mut small, 1, &half).unwrap();
    let refusal = path(&mut small, 2, &half).unwrap_err();
    let needed = "hop 0: stage 1: a share of 502704 ppm is needed, 497296 ppm are free: 5408 ppm are missing";
    assert_eq!(refusal.to_string(), needed);
    assert_eq!(refusal.nearest.len(), 3, "{:?}", refusal.nearest);
    let mut few = network(By::Deadline, 1, 100);
    let refusal = path(&mut few, 1, &request(60_000, 10_000, 4, 100_000)).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "hop 0: 172 packet buffers are needed, 100 are free: 72 are missing"
    );
    // The slack is used as far as there are buffers.
    let held = path(&mut few, 1, &request(14_000, 10_000, 4, 90_000)).unwrap();
    assert_eq!(held[0].buffers, 100);
    assert!(held[0].delays.iter().copied().sum::<Span>() < Span::from_micros(70_000));
}
