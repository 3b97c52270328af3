//! One host and its link, frame by frame: what is believed of who sends, and what becomes of what cannot leave.

use core::num::NonZeroU16;

use laxity_model::channels::admission::Traffic;
use laxity_model::channels::handler::{self, Costs, Late, Looks};
use laxity_model::channels::signalling::Label;
use laxity_model::channels::source::{self, Excess};
use laxity_model::policy::multiclass::{By, Early};
use laxity_model::{Instant, Span};
use laxity_net::channels::frame::{Data, Left};
use laxity_net::channels::path::{
    Effect, Forwarded, Full, Granted, Handed, Lane, Limits, Next, Offer, Pace, Queue, Relay, WayOut,
};
use proptest::prelude::*;

use super::world::nonzero;

const DELAY: Span = Span::from_nanos(50);
const EARLIEST: Span = Span::from_nanos(40);
const NEXT: Label = Label {
    index: 7,
    generation: 3,
};

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

/// A link on which a byte takes a nanosecond.
fn way_out(packets: u32) -> WayOut<Vec<u8>> {
    WayOut::new(Limits {
        channels: 2,
        packets,
        reach: 2,
        early: Early::Held {
            horizon: Span::ZERO,
        },
        by: By::Deadline,
        rate: 8_000_000_000,
        overhead: 0,
    })
}

const fn granted(late: Late) -> Granted {
    Granted {
        next: NEXT,
        delay: DELAY,
        late,
    }
}

/// Messages of two packets, each in 100 ns.
fn traffic() -> Traffic {
    Traffic::new(20, (1, Span::from_nanos(100)), 1).expect("traffic")
}

fn relay(real_time: u32, unseen: Span) -> Relay {
    let pace = Pace::new(&traffic(), nonzero(2), unseen);
    Relay::new(nonzero(10), [real_time, 1], EARLIEST, pace)
}

fn data(message: u64, earliness: i64, payload: &[u8]) -> Data<'_> {
    Data {
        channel: Label {
            index: 0,
            generation: 0,
        },
        message,
        part: 0,
        parts: NonZeroU16::MIN,
        earliness,
        left: Left::UNKNOWN,
        best_effort: false,
        payload,
    }
}

/// What leaves now: which message, its earliness and bytes.
fn take(way_out: &mut WayOut<Vec<u8>>, now: u64) -> Result<(u64, i64, Vec<u8>), Next> {
    let mut left = None;
    let next = way_out.take(
        at(now),
        |data| {
            assert_eq!(data.channel, NEXT);
            left = Some((data.message, data.earliness, data.payload.to_vec()));
            Handed::Taken
        },
        drop,
    );
    left.ok_or(next)
}

#[test]
fn a_frame_is_not_sent_before_it_is_current_and_not_believed_to_be_earlier_than_it_can_be() {
    let mut way_out = way_out(10);
    let channel = way_out
        .pass(granted(Late::Deliver), relay(4, Span::ZERO))
        .expect("there is room");
    for (message, earliness) in [(0, 30), (1, i64::MAX)] {
        let data = data(message, earliness, b"12345");
        let forwarded = way_out.forward(channel, at(100), at(100), &data);
        assert_eq!(forwarded, Forwarded::Queued);
    }
    assert_eq!(take(&mut way_out, 100), Err(Next::NotBefore(at(130))));
    // It is due at 180, and its last bit leaves at 135.
    assert_eq!(take(&mut way_out, 130), Ok((0, 45, b"12345".to_vec())));
    assert_eq!(take(&mut way_out, 130), Err(Next::NotBefore(at(140))));
    // As if it had left the host before at once; the one before has not left yet, as far as anybody knows.
    assert_eq!(take(&mut way_out, 140), Ok((1, 45, b"12345".to_vec())));
    let passed = way_out.passed(channel, Lane::RealTime).expect("it passes");
    assert_eq!((passed.came, passed.disbelieved), (2, 1));
}

#[test]
fn what_is_out_of_reach_leaves_first_and_what_it_takes_is_known() {
    let mut way_out = way_out(10);
    let channel = way_out
        .pass(granted(Late::Deliver), relay(4, Span::ZERO))
        .expect("there is room");
    for (message, came) in [(0, 100), (1, 101)] {
        way_out.forward(
            channel,
            at(came),
            at(came),
            &data(message, 0, b"1234567890"),
        );
    }
    assert_eq!(take(&mut way_out, 101).map(|left| left.1), Ok(39));
    assert_eq!(take(&mut way_out, 101).map(|left| left.1), Ok(30));
    // q = 2.
    assert_eq!(take(&mut way_out, 101), Err(Next::Nothing));
    assert_eq!(way_out.depth(), (0, 2));
    assert!(way_out.sent(at(111), drop) && way_out.sent(at(115), drop));
    assert!(!way_out.sent(at(115), drop));
    assert_eq!(way_out.there(channel), 0);
}

#[test]
fn each_reason_why_a_frame_does_not_go_on_is_counted() {
    let mut way_out = way_out(10);
    let channel = way_out
        .pass(granted(Late::Discard), relay(1, Span::ZERO))
        .expect("there is room");
    let mut forward = |now: u64, data: &Data<'_>| way_out.forward(channel, at(now), at(now), data);
    assert_eq!(forward(100, &data(0, 0, &[0; 11])), Forwarded::Malformed);
    assert_eq!(forward(100, &data(0, -51, b"")), Forwarded::Late);
    // Due by now, to the nanosecond.
    assert_eq!(forward(100, &data(0, -50, b"1")), Forwarded::Queued);
    assert_eq!(forward(100, &data(0, 0, b"2")), Forwarded::NoBuffer);
    let best_effort = Data {
        best_effort: true,
        ..data(0, 0, b"3")
    };
    assert_eq!(forward(100, &best_effort), Forwarded::Queued);
    assert_eq!(forward(100, &best_effort), Forwarded::NoBuffer);
    let [real_time, best_effort] =
        Lane::ALL.map(|lane| way_out.passed(channel, lane).expect("it passes"));
    assert_eq!((real_time.came, real_time.dropped()), (4, 3));
    assert_eq!(
        (real_time.malformed, real_time.late, real_time.no_buffer),
        (1, 1, 1)
    );
    assert_eq!((best_effort.came, best_effort.no_buffer), (2, 1));
    // It would be late when it has left, and this is the first to know.
    let left = take(&mut way_out, 100).expect("best effort goes");
    assert_eq!(left, (0, 0, b"3".to_vec()));
    let packets = way_out
        .packets(channel, Lane::RealTime)
        .expect("it is open");
    assert_eq!((packets.queued, packets.sent, packets.discarded), (1, 0, 1));
    // So is one that came in time.
    way_out.sent(at(101), drop);
    let data = data(1, 0, b"1234567890");
    assert_eq!(
        way_out.forward(channel, at(300), at(300), &data),
        Forwarded::Queued
    );
    assert_eq!(take(&mut way_out, 341), Err(Next::Nothing));
    let packets = way_out
        .packets(channel, Lane::RealTime)
        .expect("it is open");
    assert_eq!((packets.queued, packets.discarded), (2, 2));
}

/// Whoever is before sends ten times as much as the channel was granted: only that much goes on, and the other channel's frames do when they would.
#[test]
fn a_host_that_sends_more_of_a_channel_than_was_granted_harms_no_other() {
    let run = |often: u64| {
        let mut way_out = way_out(100);
        let granted = granted(Late::Deliver);
        let hostile = way_out
            .pass(granted, relay(50, Span::ZERO))
            .expect("there is room");
        let other = way_out
            .pass(granted, relay(4, Span::ZERO))
            .expect("there is room");
        let mut left = Vec::new();
        for round in 0..50 {
            let now = 1_000 + 100 * round;
            for number in 0..2 * often {
                let data = data(round * 100 + number, 0, b"12345678");
                way_out.forward(hostile, at(now), at(now), &data);
            }
            way_out.forward(
                other,
                at(now + 1),
                at(now + 1),
                &data(round, 20, b"1234567890"),
            );
            for now in now..now + 100 {
                while let Ok((message, earliness, bytes)) = take(&mut way_out, now) {
                    if bytes.len() == 10 {
                        left.push((now, message, earliness));
                    }
                    way_out.sent(at(now + bytes.len() as u64), drop);
                }
            }
        }
        let passed = way_out.passed(hostile, Lane::RealTime).expect("it passes");
        assert_eq!(passed.came - passed.dropped(), 100);
        (left, passed.excess)
    };
    let (keeps, floods) = (run(1), run(10));
    assert_eq!(keeps.0, floods.0);
    assert_eq!((keeps.0.len(), keeps.1, floods.1), (50, 0, 900));
}

fn queue(room: u32) -> Queue {
    Queue {
        source: source::Limits {
            stated: traffic().stated(DELAY).expect("traffic"),
            packets: nonzero(2),
            room: nonzero(3),
            excess: Excess::Shape,
        },
        handler: handler::Limits {
            packet_bytes: nonzero(10),
            packets: nonzero(2),
            room: nonzero(room),
            looks: Looks::BetweenMessages,
            early: Early::Held {
                horizon: Span::ZERO,
            },
            late: Late::Deliver,
            costs: Costs::default(),
        },
        largest: 20,
    }
}

#[test]
fn a_handler_without_a_buffer_waits_until_a_packet_has_left_and_bytes_come_back_behind_the_last() {
    let mut way_out = way_out(10);
    let lanes = [Some(queue(1)), None];
    let channel = way_out
        .begin(granted(Late::Deliver), lanes)
        .expect("there is room");
    let message = b"1234567890abc".to_vec();
    assert_eq!(
        way_out.offer(channel, at(100), message.clone(), drop),
        Offer::Waits
    );
    assert_eq!(way_out.run(channel, at(100), drop), None);
    assert_eq!(take(&mut way_out, 100), Ok((0, 40, b"1234567890".to_vec())));
    let mut effects = Vec::new();
    way_out.sent(at(110), |effect| effects.push(effect));
    assert_eq!(effects, [Effect::Wakes(channel, Lane::RealTime)]);
    assert_eq!(way_out.run(channel, at(110), drop), None);
    // The interface has no room, and so it leaves later.
    let next = way_out.take(at(110), |_| Handed::NoRoom, drop);
    assert_eq!(next, Next::NoRoom);
    assert_eq!(take(&mut way_out, 120), Ok((0, 27, b"abc".to_vec())));
    effects.clear();
    way_out.sent(at(123), |effect| effects.push(effect));
    assert_eq!(effects, [Effect::Back(message)]);
}

#[test]
fn who_waits_for_room_is_told_once_when_there_is_some() {
    let mut way_out = way_out(10);
    let mut queue = queue(4);
    queue.source.excess = Excess::Block;
    queue.source.room = nonzero(1);
    let stated = Traffic::new(20, (1, Span::from_nanos(100)), 3).expect("traffic");
    queue.source.stated = stated.stated(DELAY).expect("traffic");
    let lanes = [Some(queue), None];
    let channel = way_out
        .begin(granted(Late::Deliver), lanes)
        .expect("there is room");
    let mut offer = |number: u8| way_out.offer(channel, at(100), vec![number], drop);
    assert_eq!(offer(0), Offer::Waits);
    assert_eq!(offer(1), Offer::Blocked(vec![1], None));
    let mut effects = Vec::new();
    way_out.run(channel, at(100), |effect| effects.push(effect));
    assert_eq!(effects, [Effect::Room(channel)]);
    assert_eq!(way_out.offer(channel, at(100), vec![1], drop), Offer::Waits);
    way_out.run(channel, at(200), |effect| effects.push(effect));
    assert_eq!(effects.len(), 1);
}

#[test]
fn what_the_interface_refuses_is_counted_and_comes_back() {
    let mut way_out = way_out(10);
    let lanes = [Some(queue(4)), None];
    let channel = way_out
        .begin(granted(Late::Deliver), lanes)
        .expect("there is room");
    way_out.offer(channel, at(100), b"1".to_vec(), drop);
    way_out.run(channel, at(100), drop);
    let mut back = Vec::new();
    let next = way_out.take(at(100), |_| Handed::Refused, |effect| back.push(effect));
    assert_eq!(next, Next::Nothing);
    assert_eq!(back, [Effect::Back(b"1".to_vec())]);
    let packets = way_out
        .packets(channel, Lane::RealTime)
        .expect("it is open");
    assert_eq!((packets.queued, packets.refused, packets.sent), (1, 1, 0));
}

/// Of a channel that is closed at whatever point, all bytes come back once, nothing leaves any more, and the place is another's.
#[test]
fn a_channel_that_is_closed_gives_all_back() {
    for steps in 0..5 {
        let mut way_out = way_out(4);
        let lanes = [Some(queue(2)), None];
        let channel = way_out
            .begin(granted(Late::Deliver), lanes)
            .expect("there is room");
        let mut back = Vec::new();
        let mut effect = |effect: Effect<Vec<u8>>| {
            if let Effect::Back(bytes) = effect {
                back.push(bytes[0]);
            }
        };
        for number in 0..3 {
            way_out.offer(channel, at(100), vec![number; 20], &mut effect);
        }
        if steps > 0 {
            let is_made = |next| matches!(next, handler::Next::Packet(..));
            let lane = (channel, Lane::RealTime);
            while !is_made(way_out.next(lane, at(100), &mut effect)) {}
            // One that is made and not queued is none.
            if steps > 1 {
                assert!(way_out.queue(lane, at(100)));
                way_out.run(channel, at(100), &mut effect);
            }
        }
        if steps > 2 {
            way_out.take(at(100), |_| Handed::Taken, &mut effect);
        }
        if steps > 3 {
            way_out.sent(at(110), &mut effect);
        }
        way_out.close(channel, &mut effect);
        let mut left = 0;
        while !matches!(
            way_out.take(at(1_000), |_| Handed::NoRoom, &mut effect),
            Next::Nothing
        ) {
            left += 1;
        }
        way_out.sent(at(1_000), &mut effect);
        back.sort_unstable();
        assert_eq!((back, left), (vec![0, 1, 2], 0), "after {steps} steps");
        assert_eq!(way_out.packets(channel, Lane::RealTime), None);
        assert_eq!(
            way_out.begin(granted(Late::Deliver), [Some(queue(4)), None]),
            Ok(channel)
        );
        let full = Full::Packets { needed: 1, free: 0 };
        assert_eq!(
            way_out.begin(granted(Late::Deliver), [Some(queue(1)), None]),
            Err(full)
        );
    }
}

/// In no interval are more packets current than were granted, whatever comes; and of who keeps the promise all are, though links take as much as they may.
mod pace {
    use super::*;

    const INTERVAL: u64 = 100;
    const UNSEEN: u64 = 30;

    fn admitted(pace: &mut Pace, logicals: &[u64]) -> Vec<u64> {
        let all = logicals.iter().copied();
        all.filter(|logical| pace.admits(at(*logical))).collect()
    }

    proptest! {
        #[test]
        fn no_more_than_was_granted(
            logicals in proptest::collection::vec(1_000..3_000_u64, 0..200),
            packets in 1..5_u32,
        ) {
            let mut pace = Pace::new(&traffic(), nonzero(packets), Span::from_nanos(UNSEEN));
            let mut all = admitted(&mut pace, &logicals);
            all.sort_unstable();
            // Windows that are shorter than the interval by what is not seen.
            for from in &all {
                let until = from + INTERVAL - UNSEEN;
                let inside = all.iter().filter(|one| (*from..until).contains(*one)).count();
                prop_assert!(inside <= packets as usize, "{inside} from {from}: {all:?}");
            }
        }

        #[test]
        fn whoever_keeps_the_promise_is_let_through(
            messages in proptest::collection::vec((1..5_usize, 0..50_u64), 0..50),
            unseen in proptest::collection::vec(0..=UNSEEN, 4),
        ) {
            let mut pace = Pace::new(&traffic(), nonzero(4), Span::from_nanos(UNSEEN));
            let mut logical = 1_000;
            for (packets, pause) in messages {
                let seen: Vec<u64> = (0..packets).map(|packet| logical + unseen[packet]).collect();
                prop_assert_eq!(admitted(&mut pace, &seen), seen);
                logical += INTERVAL + pause;
            }
        }
    }
}
