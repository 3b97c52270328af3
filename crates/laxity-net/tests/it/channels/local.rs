//! What an application and its node say: what is written is parsed, what is parsed would be written so, and the examples of `docs/local.md` are what is written. And what a user may do, against a slow count.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use laxity_model::Span;
use laxity_model::channels::admission::Traffic;
use laxity_model::channels::asked::{Fits, Name, Scarce, Shortage};
use laxity_model::channels::ring::{MOST_BUFFERS, Shape};
use laxity_model::channels::signalling::message::MOST_HOSTS;
use laxity_model::channels::signalling::{Cause, ChannelId, HostId, Refusal};
use laxity_model::channels::source::Excess;
use laxity_net::channels::frame::Malformed;
use laxity_net::channels::local::{
    Answer, Ask, Forbidden, Grade, Granted, Held, Hop, MOST_BYTES, MOST_REASON, NODES, Refused,
    Spec, Takes, User, Users, VERSION,
};
use proptest::prelude::*;

use super::golden::golden;

#[derive(Clone, PartialEq, Eq, Debug)]
enum Said {
    Ask(Ask),
    Answer(Answer),
}

impl Said {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Ask(ask) => ask.bytes(),
            Self::Answer(answer) => answer.bytes(),
        }
    }

    /// As whoever is told it hears it.
    fn parse(&self, bytes: &[u8]) -> Result<Self, Malformed> {
        match self {
            Self::Ask(_) => Ask::parse(bytes).map(Self::Ask),
            Self::Answer(_) => Answer::parse(bytes).map(Self::Answer),
        }
    }
}

/// So many kinds of what is said.
const KINDS: usize = 20;

/// So many of them an application says.
const ASKS: usize = 8;

/// Numbers and texts of what is said.
struct Parts<'a> {
    numbers: &'a [u64; 10],
    text: &'a str,
    reason: &'a str,
}

/// One of each kind.
fn said(kind: usize, parts: &Parts<'_>) -> Said {
    match kind.checked_sub(ASKS) {
        None => Said::Ask(parts.ask(kind)),
        Some(kind) => Said::Answer(parts.answer(kind)),
    }
}

impl Parts<'_> {
    fn word(&self, place: usize) -> u32 {
        self.numbers[place] as u32
    }

    /// Numbers of a channel: by the application, by the node, by any of the two.
    fn channels(&self) -> [u32; 3] {
        let word = self.word(0);
        [word % (NODES - 1) + 1, word | NODES, word.max(1)]
    }

    fn name(&self) -> Name {
        Name::new(self.text).expect("a name")
    }

    fn traffic(&self) -> Traffic {
        let rate = self.word(2).max(1);
        let per = Span::from_nanos(self.numbers[3].max(rate.into()));
        let traffic = Traffic::new(self.word(5).max(1), (rate, per), self.word(4).max(1));
        traffic.expect("a message a nanosecond at most")
    }

    fn spec(&self) -> Spec {
        Spec {
            to: HostId(self.word(1)),
            traffic: self.traffic(),
            discard: self.numbers[6] % 2 == 1,
            within: Span::from_nanos(self.numbers[7]),
            over: [
                Excess::Shape,
                Excess::Block,
                Excess::Demote,
                Excess::DropNewest,
                Excess::DropOldest,
            ][self.word(8) as usize % 5],
        }
    }

    fn ask(&self, kind: usize) -> Ask {
        let [number, node, any] = self.channels();
        let (name, spec) = (self.name(), self.spec());
        match kind {
            0 => Ask::Hello,
            1 | 2 => Ask::Open {
                number,
                name,
                spec: (kind == 1).then_some(spec),
            },
            3 => Ask::Change { number, spec },
            4 => Ask::Close { number: any },
            5 => Ask::Listen { number, name },
            6 => Ask::Agree {
                number: node,
                takes: Takes {
                    largest: NonZeroU32::new(self.word(1)).unwrap_or(NonZeroU32::MIN),
                    room: NonZeroU32::new(self.word(2)).unwrap_or(NonZeroU32::MIN),
                    patience: Span::from_nanos(self.numbers[3]),
                },
            },
            _ => Ask::Decline {
                number: node,
                why: self.word(1),
            },
        }
    }

    fn answer(&self, kind: usize) -> Answer {
        let [_, node, number] = self.channels();
        let host = HostId(self.word(1));
        match kind {
            0 => Answer::Welcome { host },
            1..=3 => Answer::Granted {
                number,
                granted: self.granted(kind),
            },
            4..=8 => Answer::Refused {
                number,
                why: self.refused(kind),
            },
            9 => Answer::Incoming {
                number: node,
                name: self.name(),
                from: host,
                traffic: self.traffic(),
                discard: self.numbers[6] % 2 == 1,
            },
            10 => Answer::Listens {
                number: self.channels()[0],
            },
            _ => {
                let silent = HostId(self.word(2));
                let cause = Cause::Lost { by: host, silent };
                Answer::Ended { number, cause }
            }
        }
    }

    fn granted(&self, kind: usize) -> Granted {
        let hop = |place: u32| Hop {
            host: HostId(place),
            delay: Span::from_nanos(self.numbers[2] ^ u64::from(place)),
        };
        let shape = Shape::new(self.word(3) % MOST_BUFFERS + 1, self.word(4) % 60_000 + 1);
        Granted {
            channel: ChannelId {
                origin: HostId(self.word(7)),
                generation: self.word(8),
                number: self.word(9),
            },
            ring: (kind < 3).then(|| shape.expect("a ring")),
            propagation: Span::from_nanos(self.numbers[5]),
            hops: (1..=self.word(6) % (MOST_HOSTS as u32 + 1))
                .map(hop)
                .collect(),
            grade: match kind {
                2 => Grade::Unenforced(self.reason.to_owned()),
                _ => Grade::Enforced,
            },
        }
    }

    fn refused(&self, kind: usize) -> Refused {
        let short = Shortage {
            of: Scarce::Link,
            lacks: self.numbers[2],
            fits: Fits {
                within: Some(Span::from_nanos(self.numbers[3].max(1))),
                interval: None,
                size: NonZeroU32::new(self.word(5)),
            },
        };
        let at = HostId(self.word(1));
        match kind {
            4 => Refused::Host(Refusal::Short { at, short }),
            5 => Refused::Forbidden,
            6 => Refused::Unnamed,
            7 => Refused::Listened,
            _ => Refused::Number,
        }
    }
}

fn any_said() -> impl Strategy<Value = Said> {
    let number = prop_oneof![any::<u64>(), 0..4_u64];
    let numbers = prop::array::uniform10(number);
    (0..KINDS, numbers, "[a-zA-Z0-9._/-]{1,64}", ".{1,60}").prop_map(
        |(kind, numbers, text, reason)| {
            let (numbers, text, reason) = (&numbers, &*text, &*reason);
            said(
                kind,
                &Parts {
                    numbers,
                    text,
                    reason,
                },
            )
        },
    )
}

/// The smallest numbers that tell fields apart.
fn example(kind: usize) -> Said {
    let numbers = std::array::from_fn(|place| place as u64 + 1);
    let parts = Parts {
        numbers: &numbers,
        text: "arm/joints",
        reason: "the link is not owned",
    };
    said(kind, &parts)
}

proptest! {
    #[test]
    fn what_is_said_comes_out_as_it_went_in_and_broken_it_does_not(
        said in any_said(),
        (cut, at, other) in (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1..=255_u8),
    ) {
        let bytes = said.bytes();
        prop_assert!(bytes.len() <= MOST_BYTES);
        prop_assert_eq!(said.parse(&bytes), Ok(said.clone()));
        prop_assert!(said.parse(&bytes[..cut.index(bytes.len())]).is_err());
        prop_assert_eq!(said.parse(&[&*bytes, &[0]].concat()), Err(Malformed::Long));
        // Nobody takes what the other side says for what his own does.
        let heard = match &said {
            Said::Ask(_) => Answer::parse(&bytes).map(Said::Answer),
            Said::Answer(_) => Ask::parse(&bytes).map(Said::Ask),
        };
        prop_assert!(matches!(heard, Err(Malformed::Kind(_))));
        // Whatever is changed: it is something that would be written so, or nothing.
        let mut damaged = bytes;
        let at = at.index(damaged.len());
        damaged[at] ^= other;
        if let Ok(heard) = said.parse(&damaged) {
            prop_assert_eq!(heard.bytes(), damaged);
        }
    }

    #[test]
    fn any_bytes_are_what_would_be_written_or_nothing(
        kind in prop_oneof![any::<u8>(), 1..9_u8, 129..135_u8],
        content in prop::collection::vec(prop_oneof![any::<u8>(), 0..3_u8], 0..120),
    ) {
        let length = (8 + content.len()) as u8;
        let bytes = [&[VERSION, kind, 0, length, 0, 0, 0, 1][..], &content].concat();
        if let Ok(ask) = Ask::parse(&bytes) {
            prop_assert_eq!(ask.bytes(), bytes.clone());
        }
        if let Ok(answer) = Answer::parse(&bytes) {
            prop_assert_eq!(answer.bytes(), bytes);
        }
    }
}

#[test]
fn what_breaks_a_message_is_told() {
    let hello = Ask::Hello.bytes();
    let with = |at: usize, byte: u8| {
        let mut bytes = hello.clone();
        bytes[at] = byte;
        Ask::parse(&bytes)
    };
    let number = Malformed::Field("the number of a channel");
    assert_eq!(with(0, 2), Err(Malformed::Version(2)));
    assert_eq!(with(1, 9), Err(Malformed::Kind(9)));
    assert_eq!(with(3, 9), Err(Malformed::Short));
    assert_eq!(with(3, 7), Err(Malformed::Long));
    assert_eq!(with(7, 1), Err(number));
    let reason = "ä".repeat(MOST_REASON);
    let Said::Answer(Answer::Granted { granted, number }) = example(10) else {
        panic!("no grant");
    };
    let grade = Grade::Unenforced(reason.clone());
    let granted = Granted { grade, ..granted };
    let bytes = Answer::Granted { number, granted }.bytes();
    let Ok(Answer::Granted { granted, .. }) = Answer::parse(&bytes) else {
        panic!("no grant");
    };
    assert_eq!(
        granted.grade,
        Grade::Unenforced(reason[..MOST_REASON].to_owned())
    );
    assert_eq!(example(9).bytes().len(), bytes.len() - MOST_REASON);
}

/// What the examples are called, by their number.
const NAMES: [&str; KINDS] = [
    "hello",
    "open",
    "open-named",
    "change",
    "close",
    "listen",
    "agree",
    "decline",
    "welcome",
    "granted",
    "granted-unenforced",
    "granted-changed",
    "refused-host",
    "refused-forbidden",
    "refused-unnamed",
    "refused-listened",
    "refused-number",
    "incoming",
    "listens",
    "ended",
];

#[test]
fn the_page_of_local_messages_has_every_kind_as_it_is_written() {
    let mut page = golden("local.md");
    let garbled = Said::Answer(Answer::Refused {
        number: 0,
        why: Refused::Garbled,
    });
    let all = NAMES.iter().enumerate();
    let all = all.map(|(kind, name)| (*name, example(kind)));
    let mut wrong = Vec::new();
    for (name, said) in all.chain([("refused-garbled", garbled)]) {
        let bytes = said.bytes();
        if page.remove(name) != Some(bytes.clone()) {
            let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            wrong.push(format!("```golden {name}\n{}\n```", digits.join(" ")));
        }
    }
    assert!(wrong.is_empty(), "the page has not:\n{}", wrong.join("\n"));
    assert!(page.is_empty(), "nobody says {:?}", page.keys());
}

fn traffic(bytes: u32) -> Traffic {
    Traffic::new(bytes, (1, Span::from_secs(1)), 1).expect("traffic")
}

proptest! {
    /// The oracle adds up all that is open each time.
    #[test]
    fn a_user_has_no_more_than_he_may(
        (channels, bits) in (0..4_u32, 0..100_u64),
        acts in prop::collection::vec((0..4_u32, 1..8_u32, any::<bool>(), any::<prop::sample::Index>()), 1..40),
    ) {
        let named = |name: &str| Name::new(name).expect("a name");
        let may = User {
            channels,
            bits,
            open: BTreeSet::from([named("a"), named("b")]),
            listen: BTreeSet::from([named("c")]),
        };
        let mut users = Users::new(7, BTreeMap::from([(3, may)]));
        let mut open: Vec<(u32, u32)> = Vec::new();
        for (user, bytes, closes, which) in acts {
            // Root, who runs the node, one of whom it is said what he may, and one of whom nothing is.
            let uid = [0, 7, 3, 4][user as usize];
            if closes && !open.is_empty() {
                let (uid, bytes) = open.swap_remove(which.index(open.len()));
                users.closes(uid, &traffic(bytes));
            } else {
                // Every other time one that is there is changed.
                let before = open.iter().position(|(of, _)| *of == uid);
                let before = before.filter(|_| bytes % 2 == 0);
                let all = |but: Option<usize>| {
                    let own = open.iter().enumerate();
                    let own = own.filter(|(place, (of, _))| *of == uid && Some(*place) != but);
                    own.fold((0, 0), |(count, bits), (_, (_, bytes))| (count + 1, bits + 8 * u64::from(*bytes)))
                };
                let (count, sum) = all(before);
                let fits = count < channels && sum + 8 * u64::from(bytes) <= bits;
                let changed = before.map(|place| traffic(open[place].1));
                let opened = users.opens(uid, &named("b"), &traffic(bytes), changed.as_ref());
                match uid {
                    4 => prop_assert_eq!(opened, Err(Forbidden::Name)),
                    3 => prop_assert_eq!(opened.is_ok(), fits),
                    _ => prop_assert_eq!(opened, Ok(())),
                }
                if opened.is_ok() {
                    before.map(|place| open.swap_remove(place));
                    open.push((uid, bytes));
                }
            }
            for uid in [0, 7, 3, 4] {
                let own = open.iter().filter(|(of, _)| *of == uid);
                let held = own.fold(Held::default(), |held, (_, bytes)| Held {
                    channels: held.channels + 1,
                    bits: held.bits + 8 * u64::from(*bytes),
                });
                prop_assert_eq!(users.held(uid), held);
            }
        }
        prop_assert_eq!(users.opens(3, &named("c"), &traffic(1), None), Err(Forbidden::Name));
        prop_assert_eq!(users.may_listen(3, &named("c")), Ok(()));
        prop_assert_eq!(users.may_listen(3, &named("a")), Err(Forbidden::Name));
        prop_assert_eq!(users.may_listen(4, &named("c")), Err(Forbidden::Name));
        prop_assert_eq!(users.may_listen(7, &named("a")), Ok(()));
    }
}

#[test]
fn a_change_that_is_refused_counts_as_what_was_there() {
    let name = Name::new("b").expect("a name");
    let may = User {
        channels: 1,
        bits: 40,
        open: BTreeSet::from([name.clone()]),
        listen: BTreeSet::new(),
    };
    let mut users = Users::new(7, BTreeMap::from([(3, may)]));
    users.opens(3, &name, &traffic(2), None).expect("room");
    let changes = users.opens(3, &name, &traffic(4), Some(&traffic(2)));
    changes.expect("room");
    users.recounts(3, &traffic(2), &traffic(4));
    let held = Held {
        channels: 1,
        bits: 16,
    };
    assert_eq!(users.held(3), held);
    users.recounts(4, &traffic(2), &traffic(4));
    assert_eq!(users.held(4), Held::default());
}
