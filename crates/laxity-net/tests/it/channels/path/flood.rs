//! Who sends too much, or too large, harms his own channel only.

use laxity_model::channels::admission::Traffic;
use laxity_model::channels::clocks::Timeliness;
use laxity_model::channels::handler::Late;
use laxity_model::channels::source::Excess;
use laxity_model::nif::wire::Faults;
use laxity_model::{Instant, Span};
use laxity_net::channels::path::Lane;

use super::world::{Channel, Delivered, World, message};

const FAULTS: Faults = Faults {
    rate: 100_000_000,
    delay: Span::from_micros(20),
    lost: 0,
    doubled: 0,
    late: 0,
    late_by: Span::ZERO,
    corrupted: 0,
};
const SECOND: u64 = 1_000;

fn channel(bytes: u32, millis: u64, delay_us: u64) -> Channel {
    let traffic = Traffic::new(bytes, (1, Span::from_millis(millis)), 1).expect("traffic");
    let packets = bytes.div_ceil(1_000);
    let hop = (Span::from_micros(delay_us), packets * 16);
    Channel {
        from: 0,
        to: 3,
        traffic,
        hops: vec![hop; 3],
        excess: Excess::Shape,
        late: Late::Deliver,
        room: 128,
        largest: bytes,
        buffers: 4,
        is_due: true,
        best_effort: 0,
        unseen: Span::ZERO,
    }
}

/// A control loop, a camera, best effort that never ends, and whoever misbehaves, as the last one.
fn channels(hostile: Channel) -> Vec<Channel> {
    let bulk = Channel {
        is_due: false,
        best_effort: 40,
        room: 4,
        ..channel(8_000, 10, 0)
    };
    vec![
        channel(64, 1, 1_000),
        channel(20_000, 33, 12_000),
        bulk,
        hostile,
    ]
}

/// What the hostile one does, in the second millisecond and on.
fn run(hostile: Channel, offers: impl Fn(&mut World)) -> World {
    let mut world = World::new(4, FAULTS, channels(hostile), 1);
    for at in 0..SECOND {
        let now = Instant::ZERO + Span::from_millis(at);
        world.offers(now, 0, message(0, at, 64));
        if at % 33 == 0 {
            world.offers(now, 1, message(1, at / 33, 20_000));
        }
        world.offers(now, 2, message(2, at, 8_000));
    }
    offers(&mut world);
    world.run();
    world.adds_up(true);
    world
}

/// The hostile channel's messages, so many of so many bytes at once, so often.
fn offers(world: &mut World, (count, bytes): (u64, u32), every: u64) {
    for at in (0..SECOND).step_by(every as usize) {
        for number in 0..count {
            let now = Instant::ZERO + Span::from_millis(at);
            world.offers(now, 3, message(3, at * count + number, bytes));
        }
    }
}

fn others(world: &World) -> Vec<&[Delivered]> {
    let seen = world.seen[..2].iter();
    seen.map(|seen| &*seen.delivered).collect()
}

/// All messages of the others have arrived, and in time.
fn are_in_time(world: &World) {
    let counts: Vec<usize> = others(world).iter().map(|all| all.len()).collect();
    assert_eq!(counts, [1_000, 31]);
    for one in others(world).into_iter().flatten() {
        let verdict = one.verdict.expect("it is due");
        assert_eq!(verdict.timeliness, Timeliness::InTime, "{verdict:?}");
    }
}

/// As long as it has something to send all the time, the others cannot tell how much more that is.
#[test]
fn ten_times_the_rate_is_to_others_as_the_rate() {
    let hostile = || channel(4_000, 4, 3_000);
    let keeps = run(hostile(), |world| offers(world, (1, 4_000), 4));
    are_in_time(&keeps);
    for excess in [Excess::Shape, Excess::Block, Excess::DropNewest] {
        let hostile = Channel {
            excess,
            ..hostile()
        };
        let floods = run(hostile, |world| offers(world, (10, 4_000), 4));
        are_in_time(&floods);
        let (counts, last) = (&floods.seen[3], SECOND / 4);
        // While it lasts; what is shaped goes on behind that.
        let until = Instant::ZERO + Span::from_millis(SECOND - 1);
        for (one, other) in others(&keeps).iter().zip(others(&floods)) {
            assert_eq!(one.len(), other.len());
            let before = |all: &[Delivered]| {
                let before = all.iter().filter(|one| one.at < until);
                before.cloned().collect::<Vec<_>>()
            };
            assert!(before(one) == before(other), "{excess:?}");
        }
        let delivered = counts.delivered.len() as u64;
        assert!(delivered >= last, "{delivered} with {excess:?}");
        let policed = counts.dropped + counts.blocked.len() as u64;
        assert_eq!(delivered + policed, 10 * last, "{excess:?}");
    }
}

#[test]
fn messages_ten_times_too_large_are_to_others_as_ten() {
    let hostile = || Channel {
        largest: 40_000,
        ..channel(4_000, 4, 3_000)
    };
    let keeps = run(hostile(), |world| offers(world, (1, 4_000), 4));
    let large = run(hostile(), |world| offers(world, (1, 40_000), 40));
    are_in_time(&large);
    assert!(others(&keeps) == others(&large));
    let seen = &large.seen[3];
    assert_eq!(seen.delivered.len(), 25);
    for (number, one) in (0..).zip(&seen.delivered) {
        assert!(one.bytes == message(3, number * 40, 40_000));
        let verdict = one.verdict.expect("it is due");
        assert_eq!(verdict.timeliness, Timeliness::InTime);
    }
    // What the far end cannot put together is not sent at all.
    let refused = run(channel(4_000, 4, 3_000), |world| {
        offers(world, (1, 40_000), 40);
    });
    assert_eq!(
        (refused.seen[3].dropped, refused.seen[3].delivered.len()),
        (25, 0)
    );
}

#[test]
fn bursts_of_a_hundred_harm_nobody_else() {
    for (excess, taken) in [
        (Excess::Shape, 10 * 100),
        (Excess::DropNewest, 10),
        (Excess::DropOldest, 10),
        (Excess::Demote, 10 * 100),
    ] {
        let hostile = Channel {
            excess,
            best_effort: 400,
            ..channel(1_000, 1, 1_500)
        };
        let world = run(hostile, |world| offers(world, (100, 1_000), 100));
        are_in_time(&world);
        let delivered = world.seen[3].delivered.len();
        assert_eq!(delivered, taken, "{excess:?}");
        let host = &world.hosts[0].way_out;
        let began = host.began(world.numbers[3][0], Lane::RealTime);
        let counts = began.expect("it is open").source;
        let policed = counts.demoted + counts.dropped + counts.displaced;
        assert_eq!(counts.offered, 1_000);
        assert_eq!(counts.taken + policed, 1_000, "{excess:?}");
    }
}
