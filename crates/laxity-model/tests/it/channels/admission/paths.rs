//! Channels that come and go on paths through a network: nothing is ever over-committed, a refusal changes nothing, and each of its offers is granted.

use laxity_model::Span;
use laxity_model::analysis::supply::Dedicated;
use laxity_model::base::random::SplitMix64;
use laxity_model::channels::admission::{
    Give, Held, Host, Member, Nearest, Path, Reason, Refusal, Request, Traffic,
};
use laxity_model::channels::signalling::{ChannelId, Hold, LinkId, Place};
use laxity_model::policy::multiclass::By;

use super::channel;
use crate::edf_support::cases;

type Network = Vec<Host<Dedicated>>;
type Opened = Result<Vec<Held>, Refusal>;

fn network(by: By, hosts: usize, buffers: u64) -> Network {
    let buffers = (buffers, Span::ZERO);
    let host = |_| super::host(super::processor(), &[super::link(2, 1_466)], by, buffers);
    (0..hosts).map(host).collect()
}

fn request(largest: u32, interval_us: u64, burst: u32, within_us: u64) -> Request {
    Request {
        channel: channel(0),
        traffic: Traffic::new(largest, (1, Span::from_micros(interval_us)), burst).unwrap(),
        within: Span::from_micros(within_us),
        propagation: Span::from_micros(10),
    }
}

/// Over these hosts. At each all go over its link, but for the last one where the receiver is there.
fn way(hosts: &[usize], is_there: bool) -> Vec<(usize, Place)> {
    let last = hosts.len() - 1;
    let place = |(at, host): (usize, &usize)| {
        let place = Place {
            from: (at > 0).then_some(LinkId(1)),
            to: (at < last || !is_there).then_some(LinkId(0)),
        };
        (*host, place)
    };
    hosts.iter().enumerate().map(place).collect()
}

fn open(network: &mut Network, way: &[(usize, Place)], request: &Request) -> Opened {
    Path { network, way }.open(request)
}

/// All that anybody has anywhere, and his places.
fn everything(network: &Network) -> Vec<(Held, Vec<Option<usize>>)> {
    let of_host = |host: &Host<Dedicated>| {
        let places = |channel: ChannelId| {
            let is_one = |one: &Member| one.channel == channel;
            let stages = host.stages().iter();
            stages
                .map(|stage| stage.resource().members().position(is_one))
                .collect()
        };
        let all = host.channels();
        all.flat_map(|(channel, held)| held.iter().map(move |held| (channel, held)))
            .map(|(channel, held)| (held.clone(), places(channel)))
            .collect::<Vec<_>>()
    };
    network.iter().flat_map(of_host).collect()
}

/// All deadlines are met from scratch, all delays and buffers are what they should be.
fn is_not_over_committed(network: &Network) {
    for host in network {
        let (taken, most) = host.buffers();
        let all = || host.channels().map(|(_, versions)| &versions[0]);
        assert_eq!(taken, all().map(|held| held.buffers).sum::<u64>());
        assert!(taken <= most);
        for (stage, of) in host.stages().iter().enumerate() {
            assert_eq!(of.resource().is_met(), Ok(true));
            let goes = |held: &&Held| stage == 0 || held.place.to.is_some();
            assert_eq!(of.resource().members().len(), all().filter(goes).count());
            for member in of.resource().members() {
                let held = &host.held(member.channel)[0];
                assert_eq!(held.stages[stage], (stage, member.delay));
            }
        }
    }
}

/// What was offered is done in a copy, and the request comes again.
fn is_granted_with(
    network: &Network,
    way: &[(usize, Place)],
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
            let host = &mut copy[refusal.hop];
            let mut held = host.held(channel)[0].clone();
            match give {
                Give::Delay(delay) => held.stages[refusal.stage.unwrap()].1 = delay,
                Give::Each(interval) => {
                    held.traffic = held.traffic.with_interval(interval).unwrap();
                }
            }
            let version = held.version;
            let (hold, place) = (Hold { channel, version }, held.place);
            let delay = |stage: usize| held.stages[stage].1;
            host.grant_these(hold, place, &held.traffic, held.delays.before, delay)
                .unwrap();
        }
    }
    let opened = open(&mut copy, way, &again);
    assert!(
        opened.is_ok(),
        "{nearest} is refused: {opened:?}, after {refusal:?}"
    );
}

/// As near as it can be: a little nearer, and it is refused.
fn is_nearest(network: &Network, way: &[(usize, Place)], request: &Request, nearest: Nearest) {
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
    let opened = open(&mut copy, way, &again);
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

/// How many were opened and refused, and how many offers were made to these.
fn comes_and_goes(by: By, seed: u64, steps: u32) -> [usize; 3] {
    let mut random = SplitMix64::new(seed);
    let mut network = network(by, 3, 3_000);
    let ways = [
        way(&[0, 1, 2], true),
        way(&[0], false),
        way(&[1, 2], false),
        way(&[2, 0], true),
    ];
    let mut there: Vec<(ChannelId, usize)> = Vec::new();
    let mut counts = [0; 3];
    for number in 0..u64::from(steps) {
        let mut request = random_request(&mut random);
        request.channel = channel(number);
        let which = (random.draw() % 4) as usize;
        if random.draw().is_multiple_of(8) && !there.is_empty() {
            let picked = (random.draw() % there.len() as u64) as usize;
            let (channel, which) = there.swap_remove(picked);
            let (network, way) = (&mut network, &ways[which][..]);
            Path { network, way }.close(channel);
            assert!(network.iter().all(|host| host.held(channel).is_empty()));
            is_not_over_committed(network);
            continue;
        }
        let (before, way) = (everything(&network), &ways[which]);
        let opened = open(&mut network, way, &request);
        is_not_over_committed(&network);
        match opened {
            Ok(held) => {
                counts[0] += 1;
                there.push((request.channel, which));
                let sum: Span = held.iter().map(|held| held.delays.own).sum();
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
    let counts = comes_and_goes(By::Priority, 6, cases(60));
    assert!(counts[0] > 5 && counts[1] > 5, "{counts:?}");
}

#[test]
fn a_refusal_says_where_and_how_much() {
    let mut network = network(By::Deadline, 2, 1_000);
    let way = way(&[0, 1], false);
    let video = request(20_000, 33_333, 3, 1_000);
    let refusal = open(&mut network, &way, &video).unwrap_err();
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
    let held = open(&mut network, &way, &slow).unwrap();
    let delays: Vec<Span> = held.iter().map(|held| held.delays.own).collect();
    let sum: Span = delays.iter().copied().sum();
    assert_eq!(sum + slow.propagation, slow.within);
    // At the source B_max messages and those of its own delay, then those of both delays.
    assert!(delays[0] + delays[1] < Span::from_micros(33_333));
    assert_eq!(
        held.iter().map(|held| held.buffers).collect::<Vec<_>>(),
        [3 * 15, 15]
    );
    let again = open(&mut network, &way, &slow).unwrap_err();
    assert_eq!(again.reason, Reason::Held);
}

#[test]
fn what_is_short_in_the_long_run_is_a_share_or_buffers() {
    let mut small = network(By::Deadline, 1, 1_000);
    let way = way(&[0], false);
    let half = request(60_000, 10_000, 1, 100_000);
    open(&mut small, &way, &half).unwrap();
    let other = Request {
        channel: channel(1),
        ..half
    };
    let refusal = open(&mut small, &way, &other).unwrap_err();
    let needed = "hop 0: stage 1: a share of 502704 ppm is needed, 497296 ppm are free: 5408 ppm are missing";
    assert_eq!(refusal.to_string(), needed);
    assert_eq!(refusal.nearest.len(), 3, "{:?}", refusal.nearest);
    let mut few = network(By::Deadline, 1, 100);
    let refusal = open(&mut few, &way, &request(60_000, 10_000, 4, 100_000)).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "hop 0: 172 packet buffers are needed, 100 are free: 72 are missing"
    );
    // The slack is used as far as there are buffers.
    let held = open(&mut few, &way, &request(14_000, 10_000, 4, 90_000)).unwrap();
    assert_eq!(held[0].buffers, 100);
    assert!(held[0].delays.own < Span::from_micros(70_000));
}
