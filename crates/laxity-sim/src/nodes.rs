//! A lighter calendar: the signalling of many hosts in virtual time, without processors. A node takes no time; a link takes what it is said to, and does to frames what it is told to.
//!
//! Each host has its own clock, which may go wrong or be set. A host may die, begin a new life, or stand still: then what comes waits for it. Same seed, same run.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use laxity_model::base::clock::Clock;
use laxity_model::base::random::SplitMix64;
use laxity_model::channels::signalling::node::{Effects, Neighbour, Said};
use laxity_model::channels::signalling::{Admits, Effect, HostId, LinkId, Node, Terms};
use laxity_model::nif::wire::Faults;
use laxity_model::{Instant, Span};

/// One way of a link.
#[derive(Clone, Copy, Debug)]
struct Way {
    to: usize,
    /// As the other host counts it.
    link: LinkId,
    propagation: Span,
    is_cut: bool,
}

struct Host<A: Admits> {
    node: Option<Node<A>>,
    ways: Vec<Way>,
    clock: Clock,
    wakes: Instant,
    /// It stands still until then.
    still: Instant,
}

enum What<A: Admits> {
    Wake,
    Frame(LinkId, Box<Said<A>>),
}

struct Due<A: Admits> {
    at: Instant,
    number: u64,
    host: usize,
    what: What<A>,
}

impl<A: Admits> Due<A> {
    const fn key(&self) -> (Instant, u64) {
        (self.at, self.number)
    }
}

impl<A: Admits> PartialEq for Due<A> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<A: Admits> Eq for Due<A> {}

impl<A: Admits> PartialOrd for Due<A> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<A: Admits> Ord for Due<A> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// What a node wants done that is no frame.
#[derive(Clone, Debug)]
pub struct Told<A: Admits> {
    /// By the calendar.
    pub at: Instant,
    /// Whose node.
    pub host: HostId,
    /// What.
    pub effect: Effect<A::Asked, A::Short>,
}

/// Hosts and the links between them.
pub struct Network<A: Admits> {
    now: Instant,
    number: u64,
    calendar: BinaryHeap<Reverse<Due<A>>>,
    hosts: Vec<Host<A>>,
    terms: Terms,
    /// What all links do to frames beside their propagation. One that comes corrupted is lost, as its check or seal says.
    pub faults: Faults,
    random: SplitMix64,
    told: Vec<Told<A>>,
    effects: Effects<A>,
    lives: BTreeMap<usize, u32>,
    happened: u64,
}

impl<A: Admits> Network<A> {
    /// So many hosts, none of which lives, and no links.
    #[must_use]
    pub fn new(hosts: u32, terms: Terms, faults: Faults, seed: u64) -> Self {
        let now = Instant::from_secs(1);
        let host = |_| Host {
            node: None,
            ways: Vec::new(),
            clock: Clock::right(),
            wakes: Instant::MAX,
            still: Instant::ZERO,
        };
        Self {
            now,
            number: 0,
            calendar: BinaryHeap::new(),
            hosts: (0..hosts).map(host).collect(),
            terms,
            faults,
            random: SplitMix64::new(seed),
            told: Vec::new(),
            effects: Vec::new(),
            lives: BTreeMap::new(),
            happened: 0,
        }
    }

    /// A link between two hosts that have none yet, before they live.
    pub fn link(&mut self, one: HostId, other: HostId, propagation: Span) {
        let [one, other] = [one, other].map(|host| host.0 as usize);
        let numbers = [one, other].map(|host| LinkId(self.hosts[host].ways.len() as u16));
        for (from, to, link) in [(one, other, numbers[1]), (other, one, numbers[0])] {
            self.hosts[from].ways.push(Way {
                to,
                link,
                propagation,
                is_cut: false,
            });
        }
    }

    /// What a host's clock says now, and by how many billionths it is too fast from here on.
    pub fn set_clock(&mut self, host: HostId, says: Instant, ppb: i32) {
        self.hosts[host.0 as usize].clock = Clock::set(says, self.now, ppb);
        self.plans(host.0 as usize);
    }

    /// What a host's clock says now.
    #[must_use]
    pub fn clock(&self, host: HostId) -> Instant {
        self.hosts[host.0 as usize].clock.says(self.now)
    }

    /// A host begins a new life, with nothing reserved.
    pub fn start(&mut self, host: HostId, admission: A) {
        let number = host.0 as usize;
        let life = self.lives.entry(number).or_insert(0);
        *life += 1;
        let neighbour = |way: &Way| Neighbour {
            host: HostId(way.to as u32),
            propagation: way.propagation,
        };
        let neighbours = self.hosts[number].ways.iter().map(neighbour).collect();
        let clock = self.hosts[number].clock.says(self.now);
        let node = Node::new((host, *life), neighbours, admission, self.terms, clock);
        self.hosts[number].node = Some(node);
        self.hosts[number].still = Instant::ZERO;
        self.plans(number);
    }

    /// A host dies, and all that it knew.
    pub fn kill(&mut self, host: HostId) {
        let host = &mut self.hosts[host.0 as usize];
        (host.node, host.wakes) = (None, Instant::MAX);
    }

    /// A host stands still for so long.
    pub fn stand_still(&mut self, host: HostId, length: Span) {
        let number = host.0 as usize;
        self.hosts[number].still = self.now + length;
        self.plans(number);
    }

    /// A link carries nothing from now on, or everything again.
    pub fn cut(&mut self, one: HostId, other: HostId, is_cut: bool) {
        for (from, to) in [(one, other), (other, one)] {
            let ways = self.hosts[from.0 as usize].ways.iter_mut();
            for way in ways.filter(|way| way.to == to.0 as usize) {
                way.is_cut = is_cut;
            }
        }
    }

    /// The node of a host, if it lives.
    #[must_use]
    pub fn node(&self, host: HostId) -> Option<&Node<A>> {
        self.hosts[host.0 as usize].node.as_ref()
    }

    /// An application of a host that lives asks something of its node, at what its clock says.
    pub fn call<R>(
        &mut self,
        host: HostId,
        ask: impl FnOnce(&mut Node<A>, Instant, &mut Effects<A>) -> R,
    ) -> Option<R> {
        let number = host.0 as usize;
        let mut effects = std::mem::take(&mut self.effects);
        let clock = self.hosts[number].clock.says(self.now);
        let node = self.hosts[number].node.as_mut()?;
        let answer = ask(node, clock, &mut effects);
        self.carries_out(number, &mut effects);
        self.effects = effects;
        Some(answer)
    }

    /// A frame comes to a host, from whomever it may be.
    pub fn deliver(&mut self, host: HostId, link: LinkId, frame: Said<A>) {
        self.call(host, |node, now, out| node.receive(now, link, frame, out));
    }

    /// The time now.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// How many frames and wake-ups there were.
    #[must_use]
    pub const fn happened(&self) -> u64 {
        self.happened
    }

    /// What nodes wanted done since this was asked, but for frames.
    pub fn told(&mut self) -> Vec<Told<A>> {
        std::mem::take(&mut self.told)
    }

    /// The next thing happens, if it does before that instant. What nodes then want done may be more than nothing.
    pub fn step(&mut self, until: Instant) -> bool {
        let is_due = |first: &Reverse<Due<A>>| first.0.at < until;
        if !self.calendar.peek().is_some_and(is_due) {
            self.now = self.now.max(until);
            return false;
        }
        let Some(Reverse(due)) = self.calendar.pop() else {
            return false;
        };
        self.now = self.now.max(due.at);
        let host = &mut self.hosts[due.host];
        match due.what {
            What::Wake if host.wakes != due.at || host.node.is_none() => {}
            // What has come meanwhile was before it in the calendar.
            What::Wake => {
                host.wakes = Instant::MAX;
                self.happened += 1;
                self.call(HostId(due.host as u32), Node::wake);
            }
            What::Frame(..) if host.still > self.now => {
                let at = host.still;
                self.plan(at, due.host, due.what);
            }
            What::Frame(link, frame) => {
                self.happened += 1;
                self.deliver(HostId(due.host as u32), link, *frame);
            }
        }
        true
    }

    /// Everything happens that does before that instant.
    pub fn run(&mut self, until: Instant) {
        while self.step(until) {}
    }

    fn plan(&mut self, at: Instant, host: usize, what: What<A>) {
        let number = self.number;
        self.number += 1;
        self.calendar.push(Reverse(Due {
            at,
            number,
            host,
            what,
        }));
    }

    /// When a host is woken follows from what its node says. One that stood still is woken after what has come.
    fn plans(&mut self, number: usize) {
        let host = &mut self.hosts[number];
        let Some(node) = &host.node else {
            return;
        };
        let mut at = host.clock.reaches(node.next()).max(self.now);
        if at < host.still {
            at = host.still + Span::from_nanos(1);
        }
        if at != host.wakes {
            host.wakes = at;
            if at < Instant::MAX {
                self.plan(at, number, What::Wake);
            }
        }
    }

    fn carries_out(&mut self, number: usize, effects: &mut Effects<A>) {
        for effect in effects.drain(..) {
            match effect {
                Effect::Send(link, frame) => self.sends(number, link, &frame),
                effect => self.told.push(Told {
                    at: self.now,
                    host: HostId(number as u32),
                    effect,
                }),
            }
        }
        self.plans(number);
    }

    fn sends(&mut self, number: usize, link: LinkId, frame: &Said<A>) {
        let way = self.hosts[number].ways[link.index()];
        let faults = self.faults;
        let mut happens = |of_a_million: u32| {
            of_a_million > 0 && self.random.draw() % 1_000_000 < u64::from(of_a_million)
        };
        let is_lost = happens(faults.lost) || happens(faults.corrupted);
        let copies = 1 + usize::from(happens(faults.doubled));
        let late: Vec<bool> = (0..copies).map(|_| happens(faults.late)).collect();
        if is_lost || way.is_cut {
            return;
        }
        for is_late in late {
            let mut at = self.now + way.propagation + faults.delay;
            if is_late {
                at += faults.late_by;
            }
            self.plan(at, way.to, What::Frame(way.link, Box::new(frame.clone())));
        }
    }
}
