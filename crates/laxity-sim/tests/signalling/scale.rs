//! Many channels between many hosts, over a tree of relays: opened, refreshed, some relays killed, and closed.
//!
//! 10⁵ between 10³: `LAXITY_SIGNALLING_HOSTS=1000 LAXITY_SIGNALLING_CHANNELS=100000 cargo test --release -p laxity-sim --test signalling many_channels -- --nocapture`, and `admitted_exactly` instead of `many_channels`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use laxity_model::base::random::SplitMix64;
use laxity_model::channels::signalling::{
    Admits, Cause, ChannelId, Effect, HostId, Refusal, Terms,
};
use laxity_model::nif::wire::Faults;
use laxity_model::{Instant, Span};
use laxity_sim::nodes::Network;

use super::admission;
use super::counted::Counted;

/// So many relays each has below it.
const BRANCHES: u32 = 4;
/// Both ends are told within this.
const TOLD: Span = Span::from_millis(250);

fn given(name: &str, else_: u32) -> u32 {
    let given = std::env::var(name).ok();
    given.and_then(|given| given.parse().ok()).unwrap_or(else_)
}

/// What was told of a channel.
#[derive(Clone, Default)]
struct Life {
    route: Option<Arc<[HostId]>>,
    opened: u32,
    refused: u32,
    /// At the origin and at the far end.
    ended: [Option<(Instant, Cause)>; 2],
}

struct Many<A: Admits> {
    network: Network<A>,
    hosts: u32,
    relays: u32,
    asked: A::Asked,
    random: SplitMix64,
    lives: BTreeMap<ChannelId, Life>,
    killed: Vec<HostId>,
}

impl<A: Admits> Many<A> {
    /// Relays come first, then hosts, each at a relay that is drawn.
    fn new(hosts: u32, asked: A::Asked, admission: impl Fn() -> A) -> Self {
        let relays = (hosts * 3 / 10).max(2);
        let mut random = SplitMix64::new(7);
        let mut network = Network::new(relays + hosts, Terms::default(), Faults::default(), 1);
        let propagation = Span::from_micros(20);
        for relay in 1..relays {
            let parent = HostId((relay - 1) / BRANCHES);
            network.link(parent, HostId(relay), propagation);
        }
        for host in relays..relays + hosts {
            let relay = random.draw() % u64::from(relays);
            network.link(HostId(relay as u32), HostId(host), propagation);
        }
        for host in 0..relays + hosts {
            network.start(HostId(host), admission());
        }
        Self {
            network,
            hosts,
            relays,
            asked,
            random,
            lives: BTreeMap::new(),
            killed: Vec::new(),
        }
    }

    fn up(&self, host: HostId) -> Vec<HostId> {
        let mut all = vec![host];
        let mut last = host;
        while last != HostId(0) {
            last = match last.0 < self.relays {
                true => HostId((last.0 - 1) / BRANCHES),
                false => self.relay_of(last),
            };
            all.push(last);
        }
        all
    }

    fn relay_of(&self, host: HostId) -> HostId {
        let node = self.network.node(host).expect("no host is killed");
        node.neighbours()[0].host
    }

    fn route(&self, from: HostId, to: HostId) -> Arc<[HostId]> {
        let (mut up, mut down) = (self.up(from), self.up(to));
        while up.len() > 1 && down.len() > 1 && up[up.len() - 2] == down[down.len() - 2] {
            up.pop();
            down.pop();
        }
        down.pop();
        up.into_iter().chain(down.into_iter().rev()).collect()
    }

    fn host(&mut self) -> HostId {
        HostId(self.relays + (self.random.draw() % u64::from(self.hosts)) as u32)
    }

    fn open(&mut self) {
        let from = self.host();
        let mut to = self.host();
        while to == from {
            to = self.host();
        }
        let route = self.route(from, to);
        let asked = self.asked.clone();
        let taken = route.clone();
        let channel = self.network.call(from, |node, now, out| {
            node.open(now, asked, taken, Span::from_millis(400), out)
        });
        let life = Life {
            route: Some(route),
            ..Life::default()
        };
        self.lives.insert(channel.expect("no host is killed"), life);
    }

    fn run(&mut self, length: Span) {
        let until = self.network.now() + length;
        while self.network.step(until) {
            self.listen();
        }
    }

    fn life(&mut self, channel: ChannelId) -> &mut Life {
        self.lives.entry(channel).or_default()
    }

    fn listen(&mut self) {
        for told in self.network.told() {
            match told.effect {
                Effect::Asked(hold, _) => {
                    let agrees = Ok(());
                    self.network.call(told.host, |node, now, out| {
                        node.answer(now, hold, agrees, out);
                    });
                }
                Effect::Opened { hold, .. } => self.life(hold.channel).opened += 1,
                Effect::Refused(hold, refusal) => {
                    assert!(matches!(refusal, Refusal::Short { .. }), "{refusal:?}");
                    self.life(hold.channel).refused += 1;
                }
                Effect::Ended(channel, cause) => {
                    let end = usize::from(channel.origin != told.host);
                    let before = self.life(channel).ended[end].replace((told.at, cause));
                    assert_eq!(before, None, "{channel} ended twice");
                }
                _ => {}
            }
        }
    }

    /// Every node has just the channels that are open and go over it, and has reserved just these. How many that are in all.
    fn agrees(&self) -> usize {
        let mut expected: BTreeMap<HostId, Vec<ChannelId>> = BTreeMap::new();
        let is_open = |life: &&Life| life.opened == 1 && life.ended == [None; 2];
        for (channel, life) in &self.lives {
            for host in is_open(&life).then_some(&life.route).into_iter().flatten() {
                host.iter()
                    .for_each(|host| expected.entry(*host).or_default().push(*channel));
            }
        }
        for host in (0..self.relays + self.hosts).map(HostId) {
            let Some(node) = self.network.node(host) else {
                assert!(!expected.contains_key(&host));
                continue;
            };
            assert!(node.agrees(), "{host} has reserved what it has not");
            assert_eq!(node.differed(), 0, "a summary was wrong at {host}");
            let there: Vec<ChannelId> = node.channels().map(|one| one.channel).collect();
            let expected = expected.get(&host).map_or(&[][..], Vec::as_slice);
            assert_eq!(there, expected, "{host}");
        }
        self.lives.values().filter(is_open).count()
    }

    /// One of a hundred relays is killed. Tells how many channels went over one.
    fn kill(&mut self) -> usize {
        while self.killed.len() < self.relays.div_ceil(100) as usize {
            let relay = HostId((self.random.draw() % u64::from(self.relays)) as u32);
            if !self.killed.contains(&relay) {
                self.network.kill(relay);
                self.killed.push(relay);
            }
        }
        let at = self.network.now();
        self.run(TOLD);
        let mut hit = 0;
        for (channel, life) in &self.lives {
            let over = life.route.iter().flat_map(|route| route.iter());
            let is_hit = over.filter(|host| self.killed.contains(host)).count() > 0;
            if life.refused == 1 || !is_hit {
                assert_eq!(life.ended, [None; 2], "{channel}");
                continue;
            }
            hit += 1;
            for ended in life.ended {
                let (told, cause) = ended.expect("both ends are told");
                assert!(told <= at + TOLD);
                let Cause::Lost { silent, .. } = cause else {
                    panic!("{channel}: {cause:?}")
                };
                assert!(self.killed.contains(&silent), "{channel}: {cause:?}");
            }
        }
        hit
    }

    fn close(&mut self) {
        let all: Vec<ChannelId> = self.lives.keys().copied().collect();
        for channels in all.chunks(100) {
            for channel in channels {
                self.network.call(channel.origin, |node, now, out| {
                    node.close(now, *channel, false, out);
                });
            }
            self.run(Span::from_millis(5));
        }
    }
}

/// What this thread has taken of a processor, and its process's most memory so far in KiB; zero where nothing tells.
fn taken() -> (Duration, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let most = most.and_then(|most| most.split_whitespace().next()?.parse().ok());
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = times
        .split_whitespace()
        .next()
        .and_then(|nanos| nanos.parse().ok());
    (Duration::from_nanos(nanos.unwrap_or(0)), most.unwrap_or(0))
}

fn come_and_go<A: Admits>(mut many: Many<A>, channels: u32) {
    let began = std::time::Instant::now();
    many.run(Span::from_millis(100));
    for _ in 0..channels {
        many.open();
        many.run(Span::from_micros(50));
    }
    many.run(Terms::default().refresh * 4);
    let opened = many.agrees();
    let refused: u32 = many.lives.values().map(|life| life.refused).sum();
    assert_eq!(opened + refused as usize, channels as usize);
    assert!(refused > 0 && opened > channels as usize / 2);
    let hit = many.kill();
    assert_eq!(many.agrees(), opened - hit);
    many.run(Terms::default().refresh * 4);
    assert_eq!(many.agrees(), opened - hit);
    many.close();
    many.run(Span::from_millis(100));
    assert_eq!(many.agrees(), 0);
    let (took, most) = taken();
    println!(
        "{channels} channels between {} hosts over {} relays: {opened} opened, {refused} refused, {hit} ended by {} relays; {} frames and wake-ups; {:.1?}, {took:.1?} of a processor, {} MiB",
        many.hosts,
        many.relays,
        many.killed.len(),
        many.network.happened(),
        began.elapsed(),
        most / 1_024,
    );
}

/// How many hosts, and how many channels: a link has room for a fifth of these, so that those near the root refuse some.
fn size() -> (u32, u32) {
    let hosts = given("LAXITY_SIGNALLING_HOSTS", 30);
    (hosts, given("LAXITY_SIGNALLING_CHANNELS", 1_000))
}

#[test]
fn many_channels_are_opened_refreshed_and_nothing_of_those_is_left_whose_relay_dies() {
    let (hosts, channels) = size();
    let many = Many::new(hosts, (), || Counted::new(channels / 5));
    come_and_go(many, channels);
}

#[test]
fn admitted_exactly_they_are_as_well() {
    let (hosts, channels) = size();
    let each = Span::from_millis(10);
    let bytes = each.as_nanos() as u32 / (channels / 5);
    let mut asked = admission::asked(bytes);
    asked.traffic = asked.traffic.with_interval(each).expect("an interval");
    come_and_go(Many::new(hosts, asked, || admission::links(64)), channels);
}
