//! Bodies of frames of every kind, with any values that they may have.

use std::num::{NonZeroU16, NonZeroU32, NonZeroU64};

use laxity_net::channels::frame::signal::{
    Beat, Cause, Confirm, Content, Digest, Echo, Hold, LISTED, Life, List, MOST_HOSTS, MOST_NAME,
    Message, Name, Nearest, Open, Refusal, Resource, Signal, Spec,
};
use laxity_net::channels::frame::{Answer, Body, ChannelId, Cipher, Data, First};
use proptest::prelude::*;

/// The lists of a body, which a body only borrows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lists {
    payload: Vec<u8>,
    hosts: Vec<u32>,
    spans: Vec<u64>,
    names: Vec<(u32, u32, u32)>,
    name: String,
}

/// What a body is made of: any numbers, and lists of any length that one may have.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    kind: u8,
    numbers: [u64; 12],
    lists: Lists,
}

/// Lists as they are on the wire.
pub(crate) struct OnWire {
    route: Vec<zerocopy::network_endian::U32>,
    spans: Vec<zerocopy::network_endian::U64>,
    names: Vec<Name>,
}

/// So many kinds of bodies.
pub(crate) const KINDS: u8 = 26;

pub(crate) fn parts() -> impl Strategy<Value = Parts> {
    let lists = (
        prop::collection::vec(any::<u8>(), 1..200),
        prop::collection::vec(any::<u32>(), 2..=MOST_HOSTS),
        prop::collection::vec(any::<u64>(), 1..=MOST_HOSTS),
        prop::collection::btree_set(any::<(u32, u32, u32)>(), 0..=LISTED),
        "[a-zä/]{1,32}",
    );
    let lists = lists.prop_map(|(payload, hosts, spans, names, name)| Lists {
        payload,
        hosts,
        spans,
        names: names.into_iter().collect(),
        name,
    });
    let number = prop_oneof![any::<u64>(), 0..4_u64];
    let numbers = prop::array::uniform12(number);
    (0..KINDS, numbers, lists).prop_map(|(kind, numbers, lists)| Parts {
        kind,
        numbers,
        lists,
    })
}

/// The smallest numbers that tell fields apart, for an example of each kind.
pub(crate) fn example(kind: u8) -> Parts {
    Parts {
        kind,
        numbers: std::array::from_fn(|place| place as u64 + 1),
        lists: Lists {
            payload: b"laxity".to_vec(),
            hosts: vec![1, 2, 3],
            spans: vec![127_680, 96_000],
            names: vec![(1, 2, 3), (1, 2, 4)],
            name: "arm/joints".to_owned(),
        },
    }
}

impl Parts {
    pub(crate) fn on_wire(&self) -> OnWire {
        let names = self.lists.names.iter();
        OnWire {
            route: self.lists.hosts.iter().map(|&host| host.into()).collect(),
            spans: self.lists.spans.iter().map(|&span| span.into()).collect(),
            names: names.map(|&(a, b, c)| name(a, b, c)).collect(),
        }
    }

    fn number(&self, place: usize) -> u32 {
        self.numbers[place] as u32
    }

    /// The body, with these lists.
    pub(crate) fn body<'a>(&'a self, lists: &'a OnWire) -> Body<'a> {
        match self.kind {
            0 => Body::Data(self.data(false)),
            1 => Body::Data(self.data(true)),
            2 => Body::First(First {
                session: session(self.number(0)),
                cipher: [Cipher::AesGcm, Cipher::ChaChaPoly][self.number(1) as usize % 2],
                noise: std::array::from_fn(|place| {
                    (place as u8).wrapping_add(self.number(2) as u8)
                }),
                mac: [self.number(3) as u8; _],
            }),
            3 => Body::Answer(Answer {
                session: session(self.number(0)),
                to: session(self.number(1)),
                noise: std::array::from_fn(|place| {
                    (place as u8).wrapping_add(self.number(2) as u8)
                }),
                mac: [self.number(3) as u8; _],
            }),
            _ => Body::Signal(Signal {
                from: self.life(0),
                to: self.kind.is_multiple_of(2).then(|| self.life(1)),
                heard: self.numbers[2],
                content: self.content(lists),
            }),
        }
    }

    fn data(&self, best_effort: bool) -> Data<'_> {
        let parts = NonZeroU16::new(self.number(4) as u16).unwrap_or(NonZeroU16::MAX);
        Data {
            channel: ChannelId {
                index: self.number(0),
                generation: self.number(1),
            },
            message: self.numbers[2],
            part: self.number(3) as u16 % parts,
            parts,
            earliness: if best_effort {
                0
            } else {
                self.numbers[5] as i64
            },
            best_effort,
            payload: &self.lists.payload,
        }
    }

    fn life(&self, place: usize) -> Life {
        Life {
            incarnation: self.number(place),
            count: self.number(place + 3),
        }
    }

    fn content<'a>(&'a self, lists: &'a OnWire) -> Content<'a> {
        let name = name(self.number(4), self.number(5), self.number(6));
        let hold = Hold {
            channel: name,
            version: self.number(7).into(),
        };
        let message = match self.kind {
            4 | 5 => {
                let echo = Echo {
                    sent: self.numbers[4],
                    held: self.numbers[5],
                };
                return Content::Heartbeat(Beat {
                    sent: self.numbers[6],
                    echo: (self.kind == 5).then_some(echo),
                });
            }
            6 => return Content::Heard,
            7 => Message::Open(self.open(hold, lists)),
            8 => Message::Confirm(Confirm {
                hold,
                label: ChannelId {
                    index: self.number(8),
                    generation: self.number(9),
                },
                propagation: self.numbers[10],
                delays: &lists.spans,
            }),
            9 => Message::Settle(hold),
            10 => Message::Tear(name, self.cause()),
            11 => Message::Ended(name, self.cause()),
            12 => Message::Summary {
                digest: Digest {
                    count: self.numbers[8].into(),
                    sum: self.numbers[10].into(),
                },
                heard: self.numbers[9],
            },
            13 => Message::Differs,
            14 | 15 => Message::List(List {
                channels: &lists.names,
                last: self.kind == 15,
            }),
            _ => Message::Refuse(hold, self.refusal()),
        };
        Content::Message(self.numbers[3], message)
    }

    fn open<'a>(&'a self, hold: Hold, lists: &'a OnWire) -> Open<'a> {
        let hops = self.lists.spans.len().min(self.lists.hosts.len() - 1);
        assert!(self.lists.name.len() <= MOST_NAME);
        Open {
            hold,
            spec: Spec {
                amount: self.number(0).max(1).into(),
                period: self.numbers[1].max(1).into(),
                burst: self.number(2).max(1).into(),
                size: self.number(3).into(),
                discard: (self.number(8) % 2).into(),
            },
            within: self.numbers[10],
            propagation: self.numbers[11],
            route: &lists.route,
            least: &lists.spans[..hops],
            name: &self.lists.name,
        }
    }

    fn cause(&self) -> Cause {
        let host = self.number(8);
        [
            Cause::Closed(host),
            Cause::Died(host),
            Cause::Lost {
                by: host,
                silent: self.number(9),
            },
            Cause::Restarted(host),
            Cause::Unanswered(host),
            Cause::Unrefreshed(host),
            Cause::Unknown(host),
            Cause::Nonsense(host),
        ][self.number(10) as usize % 8]
    }

    fn refusal(&self) -> Refusal {
        let at = self.number(8);
        let lacks = self.numbers[9];
        let short = |resource| Refusal::Short {
            at,
            resource,
            lacks,
            nearest: Nearest {
                within: NonZeroU64::new(self.numbers[10]),
                interval: NonZeroU64::new(self.numbers[11]),
                size: NonZeroU64::new(self.numbers[0]),
            },
        };
        match self.kind {
            16 => short(Resource::Processor),
            17 => short(Resource::Link),
            18 => short(Resource::Buffers),
            19 => short(Resource::Quota),
            20 => Refusal::Time { at, lacks },
            21 => Refusal::NoLink {
                at,
                to: self.number(11),
            },
            22 => Refusal::Busy { at },
            23 => Refusal::Nonsense { at },
            24 => Refusal::Declined(at),
            _ => Refusal::Ended(self.cause()),
        }
    }
}

fn name(origin: u32, generation: u32, number: u32) -> Name {
    Name {
        origin: origin.into(),
        generation: generation.into(),
        number: number.into(),
    }
}

fn session(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap_or(NonZeroU32::MAX)
}
