//! Frames: in which order they leave, how many are out of reach, and that each is told.

use std::sync::Arc;

use laxity_model::nif::link::{Link, LinkError};
use laxity_model::nif::registry::Circuits;
use laxity_model::nif::transmit::ByPriority;
use laxity_model::{Instant, Priority};
use laxity_net::buffers::{Gathered, Message as _, Pool, PoolSize, Sending, Unavailable};
use laxity_net::driver::{Driver, Handed, Host, Interest, Limits, Scope};
use laxity_net::emulated::{End, Faults, Null, Wire};

use crate::support::{Keeper, Own};

type Memory = Box<[u8]>;

fn send(pool: &Pool<Memory>, priority: u8, tag: u64) {
    let filled = pool.take().unwrap().fill(&[tag as u8; 125]).unwrap();
    let sending = Sending {
        priority: Priority::new(priority).unwrap(),
        tag,
        ..Sending::default()
    };
    filled.send(sending).unwrap();
}

/// Over a device on which each of these frames takes a millisecond.
fn null(
    by_priority: bool,
    limits: Limits,
) -> (Driver<Null, Circuits>, Keeper<Memory>, Pool<Memory>) {
    let link = Null::new(1_000_000);
    let mut driver = if by_priority {
        let order = Box::new(ByPriority::new(limits.queue));
        Driver::with_order(link, Circuits::default(), limits, Host::default(), order).unwrap()
    } else {
        Driver::new(link, Circuits::default(), limits, Host::default()).unwrap()
    };
    let keeper = Keeper::default();
    let client = driver.register(Interest::Nothing, PoolSize::fixed(40), keeper.clone());
    (driver, keeper, client.unwrap().pool)
}

#[test]
fn every_frame_is_told_once_and_in_its_order() {
    for by_priority in [false, true] {
        for reach in [1, 2, 5] {
            let limits = Limits {
                reach,
                ..Limits::default()
            };
            let (mut driver, keeper, pool) = null(by_priority, limits);
            driver.poll(Instant::ZERO, &mut ()).unwrap();
            for tag in 0..30 {
                send(&pool, tag as u8 % 3, tag);
            }
            let mut told = Vec::new();
            for millisecond in 0..31 {
                driver
                    .poll(Instant::from_millis(millisecond), &mut ())
                    .unwrap();
                assert_eq!(u64::from(pool.census().sending), 30 - millisecond);
                told.extend(keeper.sent());
            }
            let mut expected: Vec<u64> = (0..30).collect();
            if by_priority {
                expected.sort_by_key(|tag| 2 - tag % 3);
            }
            let expected: Vec<_> = expected.into_iter().map(|tag| (tag, Ok(()))).collect();
            assert_eq!(told, expected);
            assert_eq!(pool.census().free, 40);
        }
    }
}

/// Where nobody tells that there is room again, whoever polls when it was asked to has everything sent, and soon.
#[test]
fn an_interface_that_does_not_tell_is_looked_at_until_all_has_left() {
    let limits = Limits {
        reach: 2,
        ..Limits::default()
    };
    let (mut driver, keeper, pool) = null(false, limits);
    for tag in 0..30 {
        send(&pool, 0, tag);
    }
    let (mut now, mut polls) = (Instant::ZERO, 0);
    loop {
        let polled = driver.poll(now, &mut ()).unwrap();
        polls += 1;
        match (polled.is_more, polled.again) {
            (true, _) => {}
            (false, Some(again)) => now = again,
            (false, None) => break,
        }
    }
    assert_eq!(keeper.sent().len(), 30);
    // A frame takes 1 ms, and is looked for five times meanwhile at the most.
    assert!(
        now <= Instant::from_millis(50) && polls < 200,
        "{now:?} {polls}"
    );
}

#[test]
fn frames_of_several_clients_leave_in_the_order_in_which_they_were_sent() {
    let (mut driver, _, first) = null(false, Limits::default());
    let size = PoolSize::fixed(20);
    let second = driver.register(Interest::Nothing, size, Keeper::<Memory>::default());
    let second = second.unwrap().pool;
    let tap = Keeper::<Own>::default();
    driver.tap(Scope::All, tap.clone());
    for tag in 0..40 {
        // Not one after the other: each sends some in turn.
        let pool = if tag % 7 < 4 { &first } else { &second };
        send(pool, 1, tag);
    }
    for millisecond in 0..41 {
        let now = Instant::from_millis(millisecond);
        driver.poll(now, &mut ()).unwrap();
    }
    let left: Vec<u8> = tap.bytes().iter().map(|frame| frame[0]).collect();
    let sent: Vec<u8> = (0..40).collect();
    assert_eq!(left, sent);
}

#[test]
fn an_urgent_frame_waits_for_no_more_than_the_reach() {
    for reach in 1..4 {
        let limits = Limits {
            reach,
            ..Limits::default()
        };
        let (mut driver, keeper, pool) = null(true, limits);
        (0..10).for_each(|tag| send(&pool, 1, tag));
        driver.poll(Instant::ZERO, &mut ()).unwrap();
        send(&pool, 31, 99);
        for millisecond in 1..12 {
            driver
                .poll(Instant::from_millis(millisecond), &mut ())
                .unwrap();
        }
        let before = keeper.sent().iter().position(|(tag, _)| *tag == 99);
        assert_eq!(before, Some(reach));
    }
}

#[test]
fn what_does_not_fit_into_the_queue_or_the_interface_is_told_so() {
    let limits = Limits {
        queue: 3,
        ..Limits::default()
    };
    let (mut driver, keeper, pool) = null(false, limits);
    (0..5).for_each(|tag| send(&pool, 1, tag));
    let polled = driver.poll(Instant::ZERO, &mut ()).unwrap();
    assert_eq!(polled.refused, 2);
    let full = |tag| (tag, Err(LinkError::Full));
    assert_eq!(keeper.sent(), [full(3), full(4)]);
    let room = pool.take().unwrap().filled(1514).unwrap();
    room.send(Sending::default()).unwrap();
    driver.poll(Instant::from_millis(9), &mut ()).unwrap();
    driver.poll(Instant::from_millis(99), &mut ()).unwrap();
    assert_eq!(keeper.sent().len(), 4);
    assert_eq!(pool.census().free, 40);
}

/// A client of one buffer over a wire that copies, and cannot gather.
fn gathering() -> (Driver<End, Circuits>, Pool<Memory>, End) {
    let (_wire, near, far) = Wire::new(Faults::default(), 1);
    let limits = Limits::default();
    let mut driver = Driver::new(near, Circuits::default(), limits, Host::default()).unwrap();
    let size = PoolSize::fixed(1);
    let client = driver.register(Interest::Nothing, size, Keeper::default());
    (driver, client.unwrap().pool, far)
}

/// The one packet that has arrived.
fn arrived(far: &mut End) -> Vec<u8> {
    for memory in far.allocate(1).unwrap() {
        far.post(memory).unwrap();
    }
    let packet = far.receive(Instant::ZERO).unwrap().unwrap();
    packet.memory[..packet.length].to_vec()
}

#[test]
fn a_gathered_message_leaves_as_one_packet() {
    let (mut driver, pool, mut far) = gathering();
    let payload = vec![3; 50];
    let message = Gathered::default().with([1, 2]).with(&payload);
    let filled = pool.take().unwrap().fill_with(&message).unwrap();
    filled.send(Sending::default()).unwrap();
    driver.poll(Instant::ZERO, &mut ()).unwrap();
    assert_eq!(arrived(&mut far), [&[1, 2][..], &payload].concat());
    let handed = Handed {
        frames: 1,
        gathered: 0,
        copies: 1,
    };
    assert_eq!(driver.handed(), handed);
}

/// Where the interface cannot gather, pieces are copied together, and that is counted; whose they were has them back with the buffer, not before.
#[test]
fn pieces_leave_as_one_packet_and_are_let_go_of_when_the_buffer_is_taken_next() {
    let (mut driver, pool, mut far) = gathering();
    let payload: Arc<[u8]> = vec![3; 50].into();
    let message = |payload: &Arc<[u8]>| Gathered::default().with([2]).with(Arc::clone(payload));
    let tap = Keeper::<Own>::default();
    for copies in [2, 4] {
        if copies == 4 {
            // Who peeks sees the same, in one piece.
            driver.tap(Scope::All, tap.clone());
        }
        let filled = pool.take().unwrap().fill(&[1, 1]).unwrap();
        filled
            .send_gathered(message(&payload), Sending::default())
            .unwrap();
        driver.poll(Instant::ZERO, &mut ()).unwrap();
        assert_eq!(arrived(&mut far), [&[1, 1, 2][..], &payload].concat());
        let handed = driver.handed();
        assert_eq!((handed.gathered, handed.copies), (handed.frames, copies));
        driver.poll(Instant::ZERO, &mut ()).unwrap();
        assert_eq!((pool.census().free, Arc::strong_count(&payload)), (1, 2));
        match copies {
            2 => drop(pool.take().unwrap()),
            _ => assert_eq!(pool.give(1), 1),
        }
        assert_eq!(Arc::strong_count(&payload), 1);
    }
    assert_eq!(tap.bytes(), [[&[1, 1, 2][..], &payload].concat()]);
}

#[test]
fn pieces_that_are_too_many_or_too_long_come_back_with_the_buffer() {
    let (mut driver, pool, _far) = gathering();
    let mut filled = pool.take().unwrap().fill(&[1]).unwrap();
    let many = (0..9).fold(Gathered::default(), |all, byte| all.with([byte]));
    let (length, room) = (1515, 1514);
    for (message, why) in [
        (many, Unavailable::TooManyPieces(9)),
        (
            Gathered::default().with([0; 1514]),
            Unavailable::TooLong { length, room },
        ),
    ] {
        let long = message.length();
        let back = filled.send_gathered(message, Sending::default());
        let back = back.unwrap_err();
        assert_eq!((back.why, back.buffer.1.length()), (why, long));
        filled = back.buffer.0;
    }
    pool.close();
    let back = filled.send_gathered(Gathered::default(), Sending::default());
    assert_eq!(back.unwrap_err().why, Unavailable::Closed);
    driver.poll(Instant::ZERO, &mut ()).unwrap();
    assert_eq!(driver.handed(), Handed::default());
}

/// What a piece is made of is its client's, who may have made a mistake.
#[test]
fn a_piece_that_panics_is_not_sent_and_its_buffer_comes_home() {
    struct Bad;
    impl AsRef<[u8]> for Bad {
        fn as_ref(&self) -> &[u8] {
            if std::thread::current().name() == Some("driver") {
                std::panic::resume_unwind(Box::new(()));
            }
            &[1]
        }
    }
    let (mut driver, pool, _far) = gathering();
    let filled = pool.take().unwrap().fill(&[1]).unwrap();
    let message = Gathered::default().with(Bad);
    filled.send_gathered(message, Sending::default()).unwrap();
    let thread = std::thread::Builder::new().name("driver".to_owned());
    let polls = thread.spawn(move || driver.poll(Instant::ZERO, &mut ()).unwrap().refused);
    assert_eq!(polls.unwrap().join().unwrap(), 1);
    assert_eq!(pool.census().free, 1);
}

/// However little is taken at a time, neither those who send nor those who receive wait for the others to have nothing to do.
#[test]
fn where_little_may_be_taken_both_ways_have_half_of_it() {
    for most in [1, 2, 5] {
        let (_, near, mut far) = Wire::new(Faults::default(), 1);
        let limits = Limits {
            posted: 64,
            reach: 64,
            ..Limits::default()
        };
        let mut driver = Driver::new(near, Circuits::default(), limits, Host::default()).unwrap();
        let keeper = Keeper::<Memory>::default();
        let client = driver.register(Interest::Nothing, PoolSize::fixed(40), keeper);
        let pool = client.unwrap().pool;
        for tag in 0..40 {
            send(&pool, 1, tag);
        }
        for memory in far.allocate(64).unwrap() {
            far.send(memory, 100, Instant::ZERO).unwrap();
        }
        let (mut arrived, mut sent) = (0, 0);
        while arrived + sent < 40 {
            let polled = driver.poll_at_most(Instant::ZERO, &mut (), most).unwrap();
            assert!(polled.arrived + polled.sent <= most && polled.is_more);
            arrived += polled.arrived;
            sent += polled.sent;
        }
        assert!(arrived.min(sent) >= 15, "{most}: {arrived} {sent}");
    }
}

/// However much a client has sent at once.
#[test]
fn what_finds_no_room_in_the_queue_is_refused_as_far_as_a_poll_goes() {
    let limits = Limits {
        queue: 8,
        ..Limits::default()
    };
    let link = Null::new(1_000_000);
    let mut driver = Driver::new(link, Circuits::default(), limits, Host::default()).unwrap();
    let keeper = Keeper::<Memory>::default();
    let size = PoolSize::fixed(500);
    let client = driver.register(Interest::Nothing, size, keeper.clone());
    let pool = client.unwrap().pool;
    (0..500).for_each(|tag| send(&pool, 1, tag));
    let (mut sent, mut refused) = (Vec::new(), Vec::new());
    // What has not been refused has a place that becomes free.
    for poll in 0..=250 {
        let now = Instant::from_millis(poll / 50);
        let polled = driver.poll_at_most(now, &mut (), 2).unwrap();
        assert!(polled.all() <= 2);
        // What has just been handed over may have left already.
        assert_eq!(polled.is_more, poll < 246 || polled.sent > 0, "{poll}");
        for (tag, outcome) in keeper.sent() {
            match outcome {
                Ok(()) => sent.push(tag),
                Err(error) => {
                    assert_eq!(error, LinkError::Full);
                    refused.push(tag);
                }
            }
        }
    }
    assert!(sent.is_sorted() && refused.is_sorted());
    assert_eq!((sent.len(), refused.len()), (5, 500 - 5 - 7));
    // What waits when the driver ends is told so, too.
    (0..20).for_each(|tag| send(&pool, 1, tag));
    drop(driver);
    assert_eq!(pool.census().free, 500);
    assert_eq!(keeper.sent().len(), 7 + 20);
}

/// Whoever lets go of a piece last does so in the driver's thread where its buffer leaves the pool.
#[test]
fn a_piece_that_panics_as_it_is_dropped_does_not_take_the_driver_with_it() {
    struct Bad;
    impl AsRef<[u8]> for Bad {
        fn as_ref(&self) -> &[u8] {
            &[1]
        }
    }
    impl Drop for Bad {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new(()));
        }
    }
    let (mut driver, pool, _far) = gathering();
    let filled = pool.take().unwrap().fill(&[1]).unwrap();
    let message = Gathered::default().with(Bad);
    filled.send_gathered(message, Sending::default()).unwrap();
    driver.poll(Instant::ZERO, &mut ()).unwrap();
    pool.shrink(1);
    driver.poll(Instant::ZERO, &mut ()).unwrap();
    assert_eq!(pool.census().total(), 0);
}

/// Who is told that a frame was refused is called for that, as for one that was sent.
#[test]
fn what_is_refused_is_bounded_as_what_is_taken() {
    let (wire, near, _far) = Wire::new(Faults::default(), 1);
    let limits = Limits::default();
    let mut driver = Driver::new(near, Circuits::default(), limits, Host::default()).unwrap();
    let keeper = Keeper::<Memory>::default();
    let client = driver.register(Interest::Nothing, PoolSize::fixed(5), keeper.clone());
    let pool = client.unwrap().pool;
    wire.go_down();
    // That is told once.
    driver.poll(Instant::ZERO, &mut ()).ok();
    (0..5).for_each(|tag| send(&pool, 1, tag));
    for refused in [2, 2, 1, 0] {
        let polled = driver.poll_at_most(Instant::ZERO, &mut (), 2).unwrap();
        assert_eq!((polled.refused, polled.sent), (refused, 0));
        assert_eq!((keeper.sent().len(), polled.all()), (refused, refused));
    }
}
