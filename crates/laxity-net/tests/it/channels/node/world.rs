//! A line of hosts with nodes, a wire from each to the next, and one calendar.

use core::num::{NonZeroU32, NonZeroU64};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use laxity_model::analysis::supply::Dedicated;
use laxity_model::channels::admission::{Costs, Host, LinkCosts, Traffic};
use laxity_model::channels::asked::{Asked, Name};
use laxity_model::channels::clocks::Delivered;
use laxity_model::channels::handler::{self, Looks};
use laxity_model::channels::signalling::node::Neighbour;
use laxity_model::channels::signalling::{ChannelId, HostId, LinkId, Terms};
use laxity_model::channels::source::Excess;
use laxity_model::nif::wire::{Faults, Framing, WHOLE, Way};
use laxity_model::policy::multiclass::{By, Early};
use laxity_model::{Instant, Span};
use laxity_net::channels::frame::{CHECKSUM, Cipher, DATA, HEADER, LONGEST, TAG};
use laxity_net::channels::node::{
    Event, Filled, Handler, Handlers, Link, Listens, Node, Opening, Sends, Setup, Trust,
};
use laxity_net::channels::path::{Handed, Label, Lane, Offer};
use laxity_net::channels::session::{self, Budget, Identity, Peer};

use crate::channels::hosts::identity;

/// S.
pub(super) const PACKET: u32 = 1_000;
pub(super) const RATE: u64 = 100_000_000;
pub(super) const WIRE: Span = Span::from_micros(13);
/// So far the clock of each host is ahead.
const AHEAD: [Span; 4] = [
    Span::ZERO,
    Span::from_secs(3_600),
    Span::from_millis(7),
    Span::from_secs(86_400),
];
/// What a frame takes of a wire beside its bytes.
const AROUND: usize = 24;

pub(super) const fn nonzero(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).expect("not 0")
}

/// How a world is.
#[derive(Clone, Copy)]
pub(super) struct Manner {
    pub(super) sealed: bool,
    pub(super) handlers: Handlers,
    pub(super) faults: Faults,
    /// Packets of best effort of each channel at each host.
    pub(super) best_effort: u32,
    pub(super) unseen: Span,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            sealed: true,
            handlers: Handlers::AtOnce,
            faults: Faults {
                rate: RATE,
                delay: WIRE,
                ..Faults::default()
            },
            best_effort: 0,
            unseen: Span::ZERO,
        }
    }
}

impl Manner {
    /// H.
    pub(super) const fn overhead(&self) -> u32 {
        let trailer = if self.sealed { TAG } else { CHECKSUM };
        (HEADER + DATA + trailer + AROUND) as u32
    }
}

pub(super) type Live = Node<Vec<u8>, Dedicated>;

/// A message that was delivered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Got {
    pub(super) at: Instant,
    pub(super) end: Label,
    pub(super) lane: Lane,
    pub(super) message: u64,
    pub(super) bytes: Vec<u8>,
    pub(super) verdict: Option<Delivered>,
}

#[derive(Default)]
pub(super) struct Seen {
    pub(super) events: Vec<(Instant, Event<Vec<u8>>)>,
    pub(super) got: Vec<Got>,
    /// Bytes that came back.
    pub(super) back: u64,
    pub(super) refused: u64,
}

/// A wire from one host to the next, with what is on its way each way.
struct Cable {
    ways: [Way; 2],
    busy: [Option<Instant>; 2],
    is_cut: bool,
}

pub(super) struct World {
    pub(super) now: Instant,
    pub(super) manner: Manner,
    pub(super) nodes: Vec<Option<Live>>,
    pub(super) seen: Vec<Seen>,
    cables: Vec<Cable>,
    sends: BTreeMap<(Instant, u64), (usize, Label, Vec<u8>)>,
    pub(super) listens: Listens,
    /// What each wire does beside.
    pub(super) worse: Vec<Faults>,
    /// Frames that left a host for the next one, and for the one before.
    pub(super) wire: Vec<[VecDeque<Vec<u8>>; 2]>,
    incarnation: u32,
}

pub(super) const LISTENS: Listens = Listens {
    room: nonzero(2),
    largest: 0,
    patience: Span::from_millis(50),
    unseen: Span::ZERO,
};

pub(super) const SENDS: Sends = Sends {
    excess: Excess::Shape,
    room: nonzero(16),
    largest: 0,
    is_due: true,
};

pub(super) fn asked(traffic: Traffic) -> Asked {
    Asked {
        name: Name::new("test/one").expect("a name"),
        traffic,
        discard: false,
    }
}

impl World {
    /// So many hosts, whose neighbours are known to each other before this returns.
    pub(super) fn new(hosts: usize, manner: Manner, seed: u64) -> Self {
        let cable = |number: usize| Cable {
            ways: [0, 1].map(|way| Way::new(seed ^ (2 * number + way) as u64)),
            busy: [None; 2],
            is_cut: false,
        };
        let mut world = Self {
            now: Instant::from_secs(1),
            manner,
            nodes: (0..hosts).map(|_| None).collect(),
            seen: (0..hosts).map(|_| Seen::default()).collect(),
            cables: (0..hosts - 1).map(cable).collect(),
            sends: BTreeMap::new(),
            listens: Listens {
                unseen: manner.unseen * (hosts as u64 - 1),
                ..LISTENS
            },
            wire: (0..hosts - 1).map(|_| Default::default()).collect(),
            worse: vec![manner.faults; hosts - 1],
            incarnation: 0,
        };
        for host in 0..hosts {
            world.start(host);
        }
        world.run(Span::from_millis(200));
        world
    }

    /// A host begins anew.
    pub(super) fn start(&mut self, host: usize) {
        self.incarnation += 1;
        let number = HostId(host as u32);
        let neighbours: Vec<usize> = self.neighbours(host).collect();
        let mut admission = Host::new(nonzero(PACKET), 1_000, Span::ZERO);
        let costs = Costs::Link(LinkCosts {
            rate: NonZeroU64::new(RATE).expect("not 0"),
            overhead: self.manner.overhead(),
            queued: 0,
            best_effort: match self.manner.best_effort {
                0 => 0,
                _ => PACKET + self.manner.overhead(),
            },
        });
        for link in 0..neighbours.len() {
            let link = LinkId(link as u16);
            admission = (admission.over(link, costs, Dedicated, By::Deadline)).expect("it fits");
        }
        let links = neighbours.iter().map(|next| self.link(host, *next));
        let setup = Setup {
            host: number,
            incarnation: self.incarnation,
            terms: Terms::default(),
            channels: 64,
            best_effort: self.manner.best_effort,
            budget: Budget::new(100, 10).expect("a budget"),
            handlers: self.manner.handlers,
            looks: Looks::After(nonzero(4)),
            costs: handler::Costs::default(),
        };
        let node = Node::new(setup, links.collect(), admission, self.local(host));
        self.nodes[host] = Some(node.expect("it fits"));
    }

    fn neighbours(&self, host: usize) -> impl Iterator<Item = usize> {
        let before = host.checked_sub(1);
        let behind = (host < self.cables.len()).then_some(host + 1);
        before.into_iter().chain(behind)
    }

    fn link(&self, host: usize, next: usize) -> Link {
        let key = |host: usize| -> Arc<Identity> {
            identity(char::from_digit(host as u32 + 1, 10).expect("few hosts"))
        };
        let neighbour = session::Neighbour {
            key: key(next).public(),
            number: 6,
            cipher: Cipher::AesGcm,
        };
        let terms = session::Terms::default();
        let stamp = u64::from(self.incarnation) << 16;
        let peer = Peer::new(key(host), neighbour, terms, stamp, self.local(host));
        Link {
            neighbour: Neighbour {
                host: HostId(next as u32),
                propagation: WIRE,
            },
            trust: match self.manner.sealed {
                true => Trust::Sealed(Box::new(peer.expect("another host"))),
                false => Trust::Checked,
            },
            reach: 1,
            early: Early::Held {
                horizon: Span::ZERO,
            },
            by: By::Deadline,
            rate: RATE,
            overhead: self.manner.overhead(),
            unseen: self.manner.unseen,
        }
    }

    /// What the clock of a host says.
    pub(super) fn local(&self, host: usize) -> Instant {
        self.now + AHEAD[host]
    }

    pub(super) fn node(&mut self, host: usize) -> &mut Live {
        self.nodes[host].as_mut().expect("it lives")
    }

    pub(super) fn kill(&mut self, host: usize) {
        self.nodes[host] = None;
        for (cable, way) in Self::cables_of(host, self.cables.len()) {
            self.cables[cable].busy[way] = None;
        }
    }

    /// The wire from a host to the next one carries nothing.
    pub(super) fn cut(&mut self, host: usize) {
        self.cables[host].is_cut = true;
    }

    /// The cables of a host in the order of its links, and which way is the host's.
    fn cables_of(host: usize, cables: usize) -> impl Iterator<Item = (usize, usize)> {
        let before = host.checked_sub(1).map(|cable| (cable, 1));
        let behind = (host < cables).then_some((host, 0));
        before.into_iter().chain(behind)
    }

    pub(super) fn opening(from: usize, to: usize, traffic: Traffic, within: Span) -> Opening {
        let route: Vec<HostId> = (from..=to).map(|host| HostId(host as u32)).collect();
        Opening {
            asked: asked(traffic),
            route: route.into(),
            within,
            sends: SENDS,
        }
    }

    /// Asks for a channel, and waits until it is known whether it is granted: with its ends.
    pub(super) fn open(&mut self, opening: Opening) -> Option<(ChannelId, [Label; 2], Span)> {
        let from = opening.route[0].0 as usize;
        let to = opening.route[opening.route.len() - 1].0 as usize;
        let now = self.local(from);
        let channel = self.node(from).open(now, opening);
        self.told();
        for _ in 0..40 {
            self.run(Span::from_millis(5));
            let opened = self.seen[from]
                .events
                .iter()
                .find_map(|(_, event)| match event {
                    Event::Opened {
                        hold,
                        end,
                        bounds,
                        propagation,
                    } if hold.channel == channel && hold.version == 0 => {
                        Some((*end, bounds.iter().copied().sum::<Span>() + *propagation))
                    }
                    _ => None,
                });
            let listening = self.seen[to]
                .events
                .iter()
                .find_map(|(_, event)| match event {
                    Event::Listening { hold, end } if hold.channel == channel => Some(*end),
                    _ => None,
                });
            let is_refused = |(_, event): &(_, Event<Vec<u8>>)| matches!(event, Event::Refused(hold, _) if hold.channel == channel);
            if self.seen[from].events.iter().any(is_refused) {
                return None;
            }
            if let (Some((end, bound)), Some(other)) = (opened, listening) {
                return Some((channel, [end, other], bound));
            }
        }
        panic!("nobody answers for {channel}");
    }

    /// A message will be sent then.
    pub(super) fn sends(&mut self, at: Instant, host: usize, end: Label, bytes: Vec<u8>) {
        let number = self.sends.len() as u64;
        self.sends.insert((at, number), (host, end, bytes));
    }

    /// So much time passes.
    pub(super) fn run(&mut self, span: Span) {
        let until = self.now + span;
        let mut still = 0;
        while let Some(next) = self.next()
            && next <= until
        {
            still = if next > self.now { 0 } else { still + 1 };
            assert!(still < 1_000, "nothing goes on at {:?}", self.now);
            self.now = self.now.max(next);
            self.step();
        }
        self.now = until;
    }

    fn next(&self) -> Option<Instant> {
        let nodes = self.nodes.iter().zip(AHEAD);
        let nodes =
            nodes.filter_map(|(node, ahead)| Some(node.as_ref()?.next().saturating_sub(ahead)));
        let cables = self.cables.iter();
        let ways = cables.flat_map(|cable| cable.ways.iter().filter_map(Way::next));
        let busy = self.cables.iter().flat_map(|cable| cable.busy);
        let sends = self.sends.keys().next().map(|(at, _)| *at);
        nodes.chain(ways).chain(busy.flatten()).chain(sends).min()
    }

    fn step(&mut self) {
        let now = self.now;
        for host in 0..self.nodes.len() {
            let local = self.local(host);
            let links = Self::cables_of(host, self.cables.len());
            for (link, (cable, way)) in links.enumerate() {
                let link = LinkId(link as u16);
                let of = &mut self.cables[cable];
                if of.busy[way].take_if(|busy| *busy <= now).is_some()
                    && let Some(node) = &mut self.nodes[host]
                {
                    assert!(node.left(local, link));
                }
                while let Some(mut flying) = of.ways[1 - way].land(now) {
                    if let Some(node) = self.nodes[host].as_mut().filter(|_| !of.is_cut) {
                        node.came(local, link, local, &mut flying.bytes);
                    }
                }
            }
        }
        for (node, ahead) in self.nodes.iter_mut().zip(AHEAD) {
            if let Some(node) = node
                && node.next() <= now + ahead
            {
                node.wake(now + ahead);
            }
        }
        while let Some(first) = self.sends.first_entry()
            && first.key().0 <= now
        {
            let (host, end, bytes) = first.remove();
            self.send(host, end, bytes);
        }
        self.told();
        self.fills();
        self.told();
    }

    pub(super) fn send(&mut self, host: usize, end: Label, bytes: Vec<u8>) {
        let now = self.local(host);
        let Some(node) = &mut self.nodes[host] else {
            return;
        };
        match node.send(now, end, bytes) {
            Ok(Offer::Waits | Offer::Demoted) => {}
            Ok(_) | Err(_) => self.seen[host].refused += 1,
        }
    }

    fn fills(&mut self) {
        let now = self.now;
        let mut buffer = [0; LONGEST];
        for (host, node) in self.nodes.iter_mut().enumerate() {
            let local = now + AHEAD[host];
            let links = Self::cables_of(host, self.cables.len());
            for (link, (cable, way)) in links.enumerate() {
                let Some(node) = node else {
                    continue;
                };
                let Cable { ways, busy, .. } = &mut self.cables[cable];
                if busy[way].is_some() {
                    continue;
                }
                let (wire, faults) = (&mut self.wire[cable][way], self.worse[cable]);
                let filled = node.fill(local, LinkId(link as u16), &mut buffer, |frame| {
                    let leaves = now + Framing::Bare.takes(frame.len() + AROUND, faults.rate);
                    busy[way] = Some(leaves);
                    ways[way].fly(frame, leaves, WHOLE, &faults);
                    wire.push_back(frame.to_vec());
                    Handed::Taken
                });
                assert_ne!(filled, Filled::NoRoom);
                wire.truncate(4_000);
            }
        }
    }

    /// Applications are told, and answer; a caller with an executor runs handlers.
    pub(super) fn told(&mut self) {
        let now = self.now;
        for (host, seen) in self.seen.iter_mut().enumerate() {
            let local = now + AHEAD[host];
            let Some(node) = &mut self.nodes[host] else {
                continue;
            };
            while let Some(event) = node.event() {
                match &event {
                    Event::Asked(hold, _) => node.answer(local, *hold, Ok(self.listens)),
                    Event::Back(_) => seen.back += 1,
                    Event::Handler(handler) => runs(node, local, *handler),
                    Event::Received(end) => {
                        let received = node.receive(*end).expect("it was told");
                        let bytes = node.bytes(*end, &received).expect("it is there");
                        seen.got.push(Got {
                            at: now,
                            end: *end,
                            lane: received.lane,
                            message: received.message,
                            bytes: bytes.to_vec(),
                            verdict: received.delivered,
                        });
                        node.give_back(*end, received);
                    }
                    _ => {}
                }
                if !matches!(event, Event::Back(_) | Event::Received(_)) {
                    seen.events.push((now, event));
                }
            }
        }
    }
}

/// What a caller does who has the processor for nothing else.
fn runs(node: &mut Live, now: Instant, handler: Handler) {
    loop {
        match node.handle(now, handler) {
            handler::Next::Idle | handler::Next::Blocked => return,
            handler::Next::Packet(..) => assert!(node.made(now, handler)),
            handler::Next::Inherits { .. } | handler::Next::Look | handler::Next::Discards(_) => {}
        }
    }
}
