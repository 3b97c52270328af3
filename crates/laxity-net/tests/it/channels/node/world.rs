//! A line of hosts with nodes, and a cable from each to the next.

use core::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

use laxity_model::analysis::supply::Dedicated;
use laxity_model::channels::admission::{Costs, Host, LinkCosts, ProcessorCosts, Traffic};
use laxity_model::channels::asked::{Asked, Name};
use laxity_model::channels::clocks::Delivered;
use laxity_model::channels::handler::{self, Looks};
use laxity_model::channels::signalling::node::Neighbour;
use laxity_model::channels::signalling::{ChannelId, HostId, LinkId, Terms};
use laxity_model::channels::source::Excess;
use laxity_model::nif::wire::Faults;
use laxity_model::policy::multiclass::{By, Early};
use laxity_model::{Instant, Span};
use laxity_net::channels::frame::{CHECKSUM, Cipher, DATA, HEADER, TAG};
use laxity_net::channels::node::{
    Event, Handler, Handlers, Link, Listens, Node, NotOpen, Opening, Sends, Setup, Trust,
};
use laxity_net::channels::path::{Label, Lane, Offer};
use laxity_net::channels::session::{self, Budget, Identity, Peer};
use laxity_net::emulated::hosts::{Applications, Hosts, TwinNode, When};

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
/// What a frame of the kernel's takes of a wire: 1,514 bytes, and what Ethernet has around them.
pub(super) const KERNELS: usize = 1_514 + AROUND;
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
    /// As on a live host: a thread with these costs, two frames out of reach, and in front of each wire the kernel's other traffic, which never ends.
    pub(super) live: Option<ProcessorCosts>,
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
            live: None,
        }
    }
}

impl Manner {
    /// H.
    pub(super) const fn overhead(&self) -> u32 {
        let trailer = if self.sealed { TAG } else { CHECKSUM };
        (HEADER + DATA + trailer + AROUND) as u32
    }

    /// So long before its logical arrival a message may leave a host: what live nodes take it to be.
    const fn horizon(&self) -> Span {
        match self.live {
            Some(_) => Span::from_millis(20),
            None => Span::ZERO,
        }
    }

    /// q, and the largest frame in front of which nothing goes.
    const fn before(&self) -> (u32, u32) {
        match (self.live, self.best_effort) {
            (Some(_), _) => (2, KERNELS as u32),
            (None, 0) => (0, 0),
            (None, _) => (0, PACKET + self.overhead()),
        }
    }
}

pub(super) type Live = TwinNode<Dedicated>;

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

pub(super) struct World {
    pub(super) hosts: Hosts<Dedicated>,
    pub(super) manner: Manner,
    pub(super) seen: Vec<Seen>,
    pub(super) listens: Listens,
    count: usize,
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
        let mut world = Self {
            hosts: Hosts::new(hosts),
            manner,
            seen: (0..hosts).map(|_| Seen::default()).collect(),
            listens: Listens {
                unseen: manner.unseen * (hosts as u64 - 1),
                ..LISTENS
            },
            count: hosts,
            incarnation: 0,
        };
        for near in 0..hosts - 1 {
            let seed = seed ^ (2 * near) as u64;
            let between = [near, near + 1];
            (world.hosts).connect(between, AROUND, manner.faults, seed);
        }
        for (host, ahead) in (0..hosts).zip(AHEAD) {
            let says = world.now() + ahead;
            world.hosts.set_clock(host, says, 0);
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
        let mut admission = Host::new(nonzero(PACKET), 1_000, self.manner.horizon());
        if let Some(costs) = self.manner.live {
            let processor = Costs::Processor(costs);
            admission = (admission.through(processor, Dedicated, By::Deadline)).expect("it fits");
            self.hosts.set_costs(host, costs);
        }
        let (queued, best_effort) = self.manner.before();
        let costs = Costs::Link(LinkCosts {
            rate: NonZeroU64::new(RATE).expect("not 0"),
            overhead: self.manner.overhead(),
            queued,
            best_effort,
        });
        for link in 0..neighbours.len() {
            let link = LinkId(link as u16);
            admission = (admission.over(link, costs, Dedicated, By::Deadline)).expect("it fits");
        }
        let kernels = self.manner.live.map_or(0, |_| neighbours.len() as u16);
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
        self.hosts.start(host, node.expect("it fits"));
        for link in 0..kernels {
            self.hosts.bulk(host, LinkId(link), KERNELS);
        }
    }

    fn neighbours(&self, host: usize) -> impl Iterator<Item = usize> {
        let before = host.checked_sub(1);
        let behind = (host + 1 < self.count).then_some(host + 1);
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
            reach: self.manner.before().0.max(1) as usize,
            early: Early::Held {
                horizon: self.manner.horizon(),
            },
            by: By::Deadline,
            rate: RATE,
            overhead: self.manner.overhead(),
            unseen: self.manner.unseen,
        }
    }

    pub(super) const fn now(&self) -> Instant {
        self.hosts.now()
    }

    /// What the clock of a host says.
    pub(super) fn local(&self, host: usize) -> Instant {
        self.hosts.local(host)
    }

    pub(super) fn node(&mut self, host: usize) -> &mut Live {
        self.hosts.node_mut(host).expect("it lives")
    }

    /// Those that live.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &Live> {
        (0..self.count).filter_map(|host| self.hosts.node(host))
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
        self.hosts.sends(at, host, end, bytes);
    }

    /// So much time passes.
    pub(super) fn run(&mut self, span: Span) {
        let until = self.now() + span;
        let mut still = 0;
        loop {
            let before = self.now();
            let mut applications = Told {
                seen: &mut self.seen,
                listens: self.listens,
            };
            if !self.hosts.step(until, &mut applications) {
                break;
            }
            still = if self.now() > before { 0 } else { still + 1 };
            assert!(still < 1_000, "nothing goes on at {before:?}");
        }
    }

    /// Applications are told what has happened by now.
    pub(super) fn told(&mut self) {
        self.run(Span::ZERO);
    }
}

/// Applications, which note what they are told, and answer.
struct Told<'a> {
    seen: &'a mut [Seen],
    listens: Listens,
}

impl Applications<Dedicated> for Told<'_> {
    fn told(&mut self, when: When, node: &mut Live, event: Event<Vec<u8>>) {
        let seen = &mut self.seen[when.host];
        match &event {
            Event::Asked(hold, _) => node.answer(when.local, *hold, Ok(self.listens)),
            Event::Back(_) => seen.back += 1,
            Event::Handler(handler) => runs(node, when.local, *handler),
            Event::Received(end) => {
                let received = node.receive(*end).expect("it was told");
                let bytes = node.bytes(*end, &received).expect("it is there");
                seen.got.push(Got {
                    at: when.at,
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
            seen.events.push((when.at, event));
        }
    }

    fn offered(&mut self, when: When, _: Label, offer: Result<Offer<Vec<u8>>, NotOpen<Vec<u8>>>) {
        if !matches!(offer, Ok(Offer::Waits | Offer::Demoted)) {
            self.seen[when.host].refused += 1;
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
