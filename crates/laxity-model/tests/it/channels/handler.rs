//! A channel's handler against the list of all packets that its messages have.

use std::num::NonZeroU32;

use laxity_model::channels::handler::{Costs, Handler, Late, Limits, Looks, Message, Next};
use laxity_model::channels::source::{self, Excess, Source};
use laxity_model::nif::urgency::Stated;
use laxity_model::policy::three_classes::Early;
use laxity_model::{Instant, Service, Span};
use proptest::prelude::*;

struct Bytes(u32);

impl Message for Bytes {
    fn bytes(&self) -> u32 {
        self.0
    }
}

fn number(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap()
}

const PERIOD: u64 = 100;
const DELAY: u64 = 70;
const SIZE: u32 = 10;
const COSTS: Costs = Costs {
    message: Service::from_nanos(7),
    packet: Service::from_nanos(3),
    kilobyte: Service::from_nanos(1_024),
};

fn source(packets: u32) -> Source<Bytes> {
    Source::new(source::Limits {
        stated: Stated::new(1, Span::from_nanos(PERIOD), 1, Span::from_nanos(DELAY)).unwrap(),
        packets: number(packets),
        room: number(1_000),
        excess: Excess::Shape,
    })
}

fn limits(packets: u32, looks: Looks) -> Limits {
    Limits {
        packet_bytes: number(SIZE),
        packets: number(packets),
        room: number(1_000),
        looks,
        early: Early::Held {
            horizon: Span::ZERO,
        },
        late: Late::Deliver,
        costs: COSTS,
    }
}

fn handler(limits: Limits) -> Handler {
    Handler::new(limits, number(1_000))
}

/// A packet: its message, part and bytes, its logical arrival, whether it is the last, and what it takes.
type Made = (u64, u32, u32, u64, bool, u64);

/// The oracle: of each message all of its packets, each with what the words of the module say of it.
fn all(messages: &[(u64, u32)], packets: u32) -> Vec<Made> {
    let (mut logical, mut made) = (0, Vec::new());
    for (message, (at, bytes)) in (0..).zip(messages) {
        let mut bytes_left = *bytes;
        let count = bytes.div_ceil(SIZE).max(1);
        for packet in 0..count {
            if packet % packets == 0 {
                logical = (*at).max(logical);
                logical += PERIOD;
            }
            let own = bytes_left.min(SIZE);
            bytes_left -= own;
            let first = if packet == 0 { 7 } else { 0 };
            let work = first + 3 + u64::from(own);
            made.push((
                message,
                packet / packets,
                own,
                logical - PERIOD,
                packet + 1 == count,
                work,
            ));
        }
    }
    made
}

proptest! {
    #[test]
    fn makes_all_packets_in_order_and_looks_and_inherits_in_between(
        gaps in proptest::collection::vec((0..300_u64, 0..95_u32), 1..12),
        packets in 1..5_u32,
        after in 1..5_u32,
        room in 1..6_u32,
        leave in proptest::collection::vec(0..3_u32, 200),
    ) {
        let mut source = source(packets);
        let mut now = 0;
        let mut messages = Vec::new();
        for (gap, bytes) in gaps {
            now += gap;
            messages.push((now, bytes));
            source.offer(Instant::from_nanos(now), number(bytes.div_ceil(SIZE).max(1)), Bytes(bytes), drop);
        }
        let limits = Limits { room: number(room), ..limits(packets, Looks::After(number(after))) };
        let mut handler = handler(limits);
        let mut expected = all(&messages, packets).into_iter().peekable();
        let (mut below, mut since, mut inherited, mut leave) = (0, 0, None, leave.into_iter().cycle());
        loop {
            match handler.next(&mut source, Instant::from_nanos(now)) {
                Next::Idle => break,
                Next::Inherits { due, from } => {
                    prop_assert_eq!((due.logical, due.deadline), (from, from + Span::from_nanos(DELAY)));
                    (since, inherited) = (0, Some(due.logical));
                }
                Next::Blocked => {
                    prop_assert_eq!(below, room);
                    prop_assert!(handler.left());
                    (below, since, inherited) = (below - 1, 0, None);
                }
                Next::Look => {
                    prop_assert_eq!(since, after);
                    since = 0;
                }
                Next::Discards(_) => prop_assert!(false, "nothing is to be discarded"),
                Next::Packet(packet, work) => {
                    prop_assert!(since < after && below < room);
                    prop_assert_eq!(inherited, Some(packet.due.logical), "it is the job that it has");
                    let made = (packet.message, packet.part, packet.bytes, packet.due.logical.as_nanos(), packet.is_last, work.as_nanos());
                    prop_assert_eq!(Some(made), expected.next());
                    let ends_part = expected.peek().is_none_or(|next| (next.0, next.1) != (packet.message, packet.part));
                    if ends_part {
                        inherited = None;
                    }
                    (since, below) = (since + 1, below + 1);
                    for _ in 0..leave.next().unwrap().min(below) {
                        prop_assert!(!handler.left(), "it is not blocked");
                        below -= 1;
                    }
                }
            }
            prop_assert_eq!(handler.below(), below);
        }
        prop_assert_eq!(expected.next(), None);
    }
}

/// What it does until it has nothing more to do, a letter each.
fn course(handler: &mut Handler, source: &mut Source<Bytes>, now: u64) -> String {
    let mut course = String::new();
    loop {
        course.push(match handler.next(source, Instant::from_nanos(now)) {
            Next::Idle => return course,
            Next::Inherits { .. } => 'i',
            Next::Blocked => 'b',
            Next::Packet(..) => 'p',
            Next::Look => 'l',
            Next::Discards(_) => 'd',
        });
        if course.ends_with('b') {
            return course;
        }
    }
}

fn offered(count: u32) -> Source<Bytes> {
    let mut source = source(3);
    for _ in 0..count {
        source.offer(Instant::ZERO, number(3), Bytes(30), drop);
    }
    source
}

#[test]
fn looks_as_often_as_it_is_to() {
    for (looks, expected) in [
        (Looks::After(number(1)), "iplplpiplplp"),
        (Looks::After(number(2)), "ipplpipplp"),
        (Looks::BetweenMessages, "ipppippp"),
        (Looks::Never, "ipppppp"),
    ] {
        let mut handler = handler(limits(3, looks));
        assert_eq!(course(&mut handler, &mut offered(2), 500), expected);
        // Behind a pause it is another job.
        assert_eq!(course(&mut handler, &mut offered(0), 500), "");
        let course = course(&mut handler, &mut offered(1), 500);
        assert!(course.starts_with("ip"), "{looks:?}: {course}");
    }
}

#[test]
fn who_was_blocked_inherits_again_what_it_goes_on_with() {
    for looks in [Looks::After(number(4)), Looks::Never] {
        let mut handler = handler(Limits {
            room: number(2),
            ..limits(3, looks)
        });
        let mut source = offered(2);
        assert_eq!(course(&mut handler, &mut source, 0), "ippb");
        assert_eq!(course(&mut handler, &mut source, 0), "b");
        assert!(handler.left() && !handler.left());
        assert_eq!(course(&mut handler, &mut source, 0)[..2], *"ip");
        assert_eq!(handler.counts().blocked, 2);
    }
}

#[test]
fn what_is_late_is_delivered_or_given_up_and_the_next_one_is_not() {
    let of = |late| {
        let mut handler = handler(Limits {
            late,
            ..limits(3, Looks::BetweenMessages)
        });
        let mut source = offered(2);
        // The first is due at 70, the second at 170.
        let course = course(&mut handler, &mut source, 100);
        (course, handler.counts().discarded)
    };
    assert_eq!(of(Late::Deliver), ("ipppippp".to_owned(), 0));
    assert_eq!(of(Late::Discard), ("dippp".to_owned(), 3));
}

#[test]
fn what_is_early_is_held_or_competes() {
    for (early, from) in [
        (
            Early::Held {
                horizon: Span::from_nanos(30),
            },
            70,
        ),
        (Early::Last, 5),
        (Early::BeforeBestEffort, 5),
    ] {
        let mut handler = handler(Limits {
            early,
            ..limits(3, Looks::BetweenMessages)
        });
        let mut source = offered(2);
        let now = Instant::from_nanos(5);
        while !matches!(handler.next(&mut source, now), Next::Packet(packet, _) if packet.is_last) {
        }
        let Next::Inherits { due, from: told } = handler.next(&mut source, now) else {
            panic!("it begins the second");
        };
        assert_eq!(due.logical.as_nanos(), 100);
        assert_eq!(told.as_nanos(), from);
    }
}
