//! Bodies of frames of every kind, with any values that they may have.

use std::num::{NonZeroU16, NonZeroU32};

use laxity_model::channels::admission::Traffic;
use laxity_model::channels::asked::{Asked, Fits, MOST_NAME, Name, Scarce, Shortage};
use laxity_model::channels::clocks::{Echo, Place, Stamp};
use laxity_model::channels::signalling::link::Content;
use laxity_model::channels::signalling::message::{LISTED, MOST_HOSTS};
use laxity_model::channels::signalling::{
    Cause, ChannelId, Confirm, Digest, Hold, HostId, Label, List, Message, Open, Refusal, Session,
    Summary,
};
use laxity_model::{Instant, Span};
use laxity_net::channels::frame::{Answer, Body, Cipher, Data, First, Left, Signal};
use proptest::prelude::*;

/// The lists of a body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lists {
    payload: Vec<u8>,
    hosts: Vec<u32>,
    spans: Vec<u64>,
    pub(crate) names: Vec<(u32, u32, u32)>,
    name: String,
}

/// What a body is made of: any numbers, and lists of any length that one may have.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    kind: u8,
    numbers: [u64; 12],
    pub(crate) lists: Lists,
}

/// So many kinds of bodies.
pub(crate) const KINDS: u8 = 27;

pub(crate) fn parts() -> impl Strategy<Value = Parts> {
    let lists = (
        prop::collection::vec(any::<u8>(), 1..200),
        prop::collection::vec(any::<u32>(), 2..=MOST_HOSTS),
        prop::collection::vec(any::<u64>(), 1..=MOST_HOSTS),
        prop::collection::btree_set(any::<(u32, u32, u32)>(), 0..=LISTED),
        "[a-zA-Z0-9._/-]{1,64}",
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
    fn number(&self, place: usize) -> u32 {
        self.numbers[place] as u32
    }

    fn span(&self, place: usize) -> Span {
        Span::from_nanos(self.numbers[place])
    }

    fn spans(&self, most: usize) -> Vec<Span> {
        let spans = self.lists.spans.iter().take(most);
        spans.map(|&span| Span::from_nanos(span)).collect()
    }

    /// The body.
    pub(crate) fn body(&self) -> Body<'_> {
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
                from: self.session(0),
                to: self.kind.is_multiple_of(2).then(|| self.session(1)),
                heard: self.numbers[2],
                content: self.content(),
            }),
        }
    }

    fn data(&self, best_effort: bool) -> Data<'_> {
        let parts = NonZeroU16::new(self.number(4) as u16).unwrap_or(NonZeroU16::MAX);
        Data {
            channel: Label {
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
            left: if best_effort {
                Left::UNKNOWN
            } else {
                self.left()
            },
            best_effort,
            payload: &self.lists.payload,
        }
    }

    fn left(&self) -> Left {
        let place = self.numbers[8] as u8;
        Left {
            at: Instant::from_nanos(self.numbers[6]),
            error: match self.number(7) {
                u32::MAX => Span::MAX,
                error => Span::from_nanos(error.into()),
            },
            late: match self.number(9) % 3 {
                0 => None,
                1 => Some(Place::Host(place)),
                _ => Some(Place::Link(place)),
            },
        }
    }

    fn session(&self, place: usize) -> Session {
        Session {
            incarnation: self.number(place),
            count: self.number(place + 3),
        }
    }

    fn content(&self) -> Content<Message<Asked, Shortage>> {
        let channel = named(self.number(4), self.number(5), self.number(6));
        let hold = Hold {
            channel,
            version: self.number(7),
        };
        let message = match self.kind {
            4 | 5 => {
                let echo = Echo {
                    sent: Instant::from_nanos(self.numbers[4]),
                    held: self.span(5),
                };
                return Content::Heartbeat(Stamp {
                    sent: Instant::from_nanos(self.numbers[6]),
                    echo: (self.kind == 5).then_some(echo),
                });
            }
            6 => return Content::Heard,
            7 => Message::Open(Box::new(self.open(hold))),
            8 => Message::Confirm(Box::new(Confirm {
                hold,
                label: Label {
                    index: self.number(8),
                    generation: self.number(9),
                },
                propagation: self.span(10),
                delays: self.spans(MOST_HOSTS),
            })),
            9 => Message::Settle(hold),
            10 => Message::Tear(channel, self.cause()),
            11 => Message::Ended(channel, self.cause()),
            12 => Message::Summary(Summary {
                digest: Digest {
                    count: self.numbers[8],
                    sum: self.numbers[10],
                },
                heard: self.numbers[9],
            }),
            13 => Message::Differs,
            14 | 15 => Message::List(List {
                channels: self
                    .lists
                    .names
                    .iter()
                    .map(|&(a, b, c)| named(a, b, c))
                    .collect(),
                last: self.kind == 15,
            }),
            _ => Message::Refuse(hold, Box::new(self.refusal())),
        };
        Content::Message(self.numbers[3], message)
    }

    fn open(&self, hold: Hold) -> Open<Asked> {
        assert!(self.lists.name.len() <= MOST_NAME);
        let messages = self.number(0).max(1);
        let period = self.numbers[1].max(messages.into());
        let rate = (messages, Span::from_nanos(period));
        let traffic = Traffic::new(self.number(3).max(1), rate, self.number(2).max(1));
        Open {
            hold,
            asked: Asked {
                name: Name::new(&self.lists.name).expect("a name"),
                traffic: traffic.expect("a message a nanosecond at most"),
                discard: self.number(8) % 2 == 1,
            },
            within: self.span(10),
            propagation: self.span(11),
            route: self.lists.hosts.iter().copied().map(HostId).collect(),
            least: self.spans(self.lists.hosts.len() - 1),
        }
    }

    fn cause(&self) -> Cause {
        let host = HostId(self.number(8));
        [
            Cause::Closed(host),
            Cause::Died(host),
            Cause::Lost {
                by: host,
                silent: HostId(self.number(9)),
            },
            Cause::Restarted(host),
            Cause::Unanswered(host),
            Cause::Unrefreshed(host),
            Cause::Unknown(host),
            Cause::Nonsense(host),
        ][self.number(10) as usize % 8]
    }

    fn refusal(&self) -> Refusal<Shortage> {
        let at = HostId(self.number(8));
        let lacks = self.numbers[9];
        let fits = |place| Some(self.span(place)).filter(|span| !span.is_zero());
        let short = |of| Refusal::Short {
            at,
            short: Shortage {
                of,
                lacks,
                fits: Fits {
                    within: fits(10),
                    interval: fits(11),
                    size: NonZeroU32::new(self.number(0)),
                },
            },
        };
        match self.kind {
            16 => short(Scarce::Processor),
            17 => short(Scarce::Link),
            18 => short(Scarce::Buffers),
            19 => short(Scarce::Quota),
            20 => Refusal::Time {
                at,
                lacks: self.span(9),
            },
            21 => Refusal::NoLink {
                at,
                to: HostId(self.number(11)),
            },
            22 => Refusal::Busy { at },
            23 => Refusal::Nonsense { at },
            24 => Refusal::Declined(at.0),
            25 => Refusal::Ended(self.cause()),
            _ => short(Scarce::Search),
        }
    }
}

const fn named(origin: u32, generation: u32, number: u32) -> ChannelId {
    ChannelId {
        origin: HostId(origin),
        generation,
        number,
    }
}

fn session(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap_or(NonZeroU32::MAX)
}
