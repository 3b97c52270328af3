//! Two nodes with a channel that is open, and a wire between them that takes no time.

use std::num::{NonZeroU32, NonZeroU64};

use laxity_model::analysis::supply::Dedicated;
use laxity_model::channels::admission::{Costs, Host, LinkCosts, Traffic};
use laxity_model::channels::asked::{Asked, Name};
use laxity_model::channels::handler::{self, Looks};
use laxity_model::channels::signalling::node::Neighbour;
use laxity_model::channels::signalling::{HostId, LinkId, Terms};
use laxity_model::channels::source::Excess;
use laxity_model::policy::multiclass::{By, Early};
use laxity_model::{Instant, Span};
use laxity_net::channels::frame::LONGEST;
use laxity_net::channels::node::{
    Event, Filled, Handlers, Link, Listens, Node, Opening, Sends, Setup, Trust,
};
use laxity_net::channels::path::{Handed, Label, Offer};
use laxity_net::channels::session::Budget;

type Bytes = Box<[u8]>;

const LINK: LinkId = LinkId(0);

pub(crate) struct Pair {
    nodes: [Node<Bytes, Dedicated>; 2],
    now: Instant,
    end: Option<Label>,
    free: Vec<Bytes>,
    pub(crate) delivered: u64,
}

const fn nonzero(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).expect("not 0")
}

fn node(host: u32, now: Instant) -> Node<Bytes, Dedicated> {
    let costs = Costs::Link(LinkCosts {
        rate: NonZeroU64::new(100_000_000).expect("not 0"),
        overhead: 100,
        queued: 0,
        best_effort: 0,
    });
    let admission = Host::new(nonzero(1_000), 100, Span::ZERO);
    let admission = admission.over(LINK, costs, Dedicated, By::Deadline);
    let setup = Setup {
        host: HostId(host),
        incarnation: 1,
        terms: Terms::default(),
        channels: 4,
        best_effort: 4,
        budget: Budget::new(100, 10).expect("a budget"),
        handlers: Handlers::AtOnce,
        looks: Looks::BetweenMessages,
        costs: handler::Costs::default(),
    };
    let link = Link {
        neighbour: Neighbour {
            host: HostId(1 - host),
            propagation: Span::ZERO,
        },
        trust: Trust::Checked,
        reach: 1,
        early: Early::Held {
            horizon: Span::ZERO,
        },
        by: By::Deadline,
        rate: 0,
        overhead: 100,
        unseen: Span::ZERO,
    };
    let node = Node::new(setup, vec![link], admission.expect("it fits"), now);
    node.expect("it fits")
}

impl Pair {
    /// With a channel that is open.
    pub(crate) fn new() -> Self {
        let now = Instant::from_secs(1);
        let mut pair = Self {
            nodes: [node(0, now), node(1, now)],
            now,
            end: None,
            free: (0..30).map(|_| vec![7; 2_500].into()).collect(),
            delivered: 0,
        };
        pair.moves(100);
        let traffic = Traffic::new(2_500, (1, Span::from_millis(5)), 2).expect("traffic");
        let opening = Opening {
            asked: Asked {
                name: Name::new("test").expect("a name"),
                traffic,
                discard: false,
            },
            route: [HostId(0), HostId(1)].into(),
            within: Span::from_millis(20),
            sends: Sends {
                excess: Excess::DropNewest,
                room: nonzero(4),
                largest: 0,
                is_due: true,
            },
        };
        pair.nodes[0].open(pair.now, opening);
        pair.moves(100);
        assert!(pair.end.is_some());
        pair
    }

    /// As much time passes as one message is given.
    pub(crate) fn rests(&mut self) {
        self.moves(5);
    }

    /// A message is sent, and so many milliseconds pass, in which heartbeats go, too.
    pub(crate) fn carries(&mut self) {
        let (end, bytes) = (self.end.expect("open"), self.free.pop());
        let offer = self.nodes[0].send(self.now, end, bytes.expect("all come back"));
        assert!(matches!(offer, Ok(Offer::Waits)));
        self.moves(5);
    }

    fn moves(&mut self, millis: u64) {
        for _ in 0..10 * millis {
            self.now += Span::from_micros(100);
            for node in &mut self.nodes {
                if node.next() <= self.now {
                    node.wake(self.now);
                }
            }
            self.told();
            for from in 0..2 {
                self.leaves(from);
            }
            self.told();
        }
    }

    fn leaves(&mut self, from: usize) {
        let (now, mut buffer) = (self.now, [0; LONGEST]);
        loop {
            let mut length = 0;
            let filled = self.nodes[from].fill(now, LINK, &mut buffer, |frame| {
                length = frame.len();
                Handed::Taken
            });
            if filled != Filled::Handed {
                return;
            }
            assert!(self.nodes[from].left(now, LINK));
            self.nodes[1 - from].came(now, LINK, now, &mut buffer[..length]);
        }
    }

    fn told(&mut self) {
        for node in &mut self.nodes {
            while let Some(event) = node.event() {
                match event {
                    Event::Asked(hold, _) => {
                        let listens = Listens {
                            room: nonzero(2),
                            largest: 0,
                            patience: Span::ZERO,
                            unseen: Span::ZERO,
                        };
                        node.answer(self.now, hold, Ok(listens));
                    }
                    Event::Opened { end, .. } => self.end = Some(end),
                    Event::Back(bytes) => self.free.push(bytes),
                    Event::Received(end) => {
                        let message = node.receive(end).expect("it was told");
                        let bytes = node.bytes(end, &message).expect("it is there");
                        assert!(bytes.iter().all(|byte| *byte == 7));
                        node.give_back(end, message);
                        self.delivered += 1;
                    }
                    _ => {}
                }
            }
        }
    }
}
