//! The emulated wire against its definition.

use laxity_model::base::random::SplitMix64;
use laxity_model::nif::link::Link;
use laxity_model::{Instant, Span};
use laxity_net::emulated::{End, Faults, Wire};
use proptest::prelude::*;

const SEED: u64 = 3;

/// All that arrives until then.
fn received(end: &mut End, now: Instant) -> Vec<(Instant, Vec<u8>)> {
    let mut all = Vec::new();
    while let Some(packet) = end.receive(now).unwrap() {
        all.push((packet.at, packet.memory[..packet.length].to_vec()));
        end.post(packet.memory).unwrap();
    }
    all
}

fn with_memory(mut end: End, packets: usize) -> End {
    for memory in end.allocate(packets).unwrap() {
        end.post(memory).unwrap();
    }
    end
}

/// What should arrive of frames, each with when it is sent.
fn definition(faults: Faults, frames: &[(Instant, Vec<u8>)]) -> Vec<(Instant, Vec<u8>)> {
    let mut random = SplitMix64::new(seed_of_far_way());
    let mut free = 0;
    let mut arriving = Vec::new();
    for (at, frame) in frames {
        let nanos = frame.len() as u64 * 8_000_000_000;
        free = at.as_nanos().max(free) + nanos.checked_div(faults.rate).unwrap_or(0);
        let drawn: Vec<u64> = (0..4).map(|_| random.draw()).collect();
        let happens = |number: usize, of: u32| drawn[number] % 1_000_000 < u64::from(of);
        if happens(0, faults.lost) {
            continue;
        }
        let usual = free + faults.delay.as_nanos();
        let mut bytes = frame.clone();
        if happens(3, faults.corrupted) {
            let bit = drawn[3] / 1_000_000 % (frame.len() as u64 * 8);
            bytes[bit as usize / 8] ^= 1 << (bit % 8);
        }
        let late = if happens(2, faults.late) {
            faults.late_by.as_nanos()
        } else {
            0
        };
        arriving.push((Instant::from_nanos(usual + late), bytes));
        if happens(1, faults.doubled) {
            arriving.push((Instant::from_nanos(usual), frame.clone()));
        }
    }
    arriving.sort_by_key(|(at, _)| *at);
    arriving
}

/// Frames towards the far end follow from the second number of the wire's seed.
fn seed_of_far_way() -> u64 {
    let mut seeds = SplitMix64::new(SEED);
    seeds.draw();
    seeds.draw()
}

proptest! {
    #[test]
    fn frames_arrive_as_defined(
        rate in prop_oneof![Just(0), 1_000_000..1_000_000_000_u64],
        delay in 0..10_000_000_u64,
        faults in [0..500_000_u32, 0..500_000, 0..500_000, 0..500_000],
        frames in proptest::collection::vec((0..1_000_000_u64, 1..200_usize), 0..60),
    ) {
        let [lost, doubled, late, corrupted] = faults;
        let faults = Faults {
            rate,
            delay: Span::from_nanos(delay),
            lost,
            doubled,
            late,
            late_by: Span::from_micros(300),
            corrupted,
        };
        let mut now = Instant::ZERO;
        let mut numbered = Vec::new();
        for (number, (pause, length)) in (0_u8..).zip(frames) {
            now = now.checked_add(Span::from_nanos(pause)).unwrap();
            numbered.push((now, vec![number; length]));
        }
        let (_wire, near, far) = Wire::new(faults, SEED);
        let (mut near, mut far) = (with_memory(near, 0), with_memory(far, 130));
        for (at, frame) in &numbered {
            let mut memory = near.allocate(1).unwrap().remove(0);
            memory[..frame.len()].copy_from_slice(frame);
            near.send(memory, frame.len(), *at).unwrap();
        }
        prop_assert_eq!(received(&mut far, Instant::MAX), definition(faults, &numbered));
    }
}

#[test]
fn faults_come_as_often_as_they_are_asked_for() {
    let faults = Faults {
        lost: 50_000,
        doubled: 100_000,
        late: 200_000,
        late_by: Span::from_micros(5),
        corrupted: 10_000,
        ..Faults::default()
    };
    let frames: Vec<_> = (0..100_000_u64)
        .map(|number| (Instant::from_micros(number), number.to_le_bytes().to_vec()))
        .collect();
    let (_wire, near, far) = Wire::new(faults, SEED);
    let (mut near, mut far) = (near, with_memory(far, 2));
    let mut memory = near.allocate(1).unwrap().remove(0);
    let mut arrived = Vec::new();
    for (at, frame) in &frames {
        memory[..8].copy_from_slice(frame);
        near.send(memory, 8, *at).unwrap();
        memory = near.sent(*at).unwrap();
        arrived.extend(received(&mut far, *at));
    }
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let share = |count: usize, of: usize, expected: f64| {
        let share = count as f64 / of as f64;
        assert!(
            (share / expected - 1.0).abs() < 0.1,
            "{share}, not {expected}"
        );
    };
    // Lost ones are missing, doubled ones come once more: 0.95 × 1.1.
    share(arrived.len(), frames.len(), 1.045);
    // Three quarters of the bits are such as no frame has.
    let wrong = arrived.iter().filter(|(_, bytes)| number(bytes) >= 100_000);
    assert!(wrong.count() > 500);
    let overtaken = arrived.windows(2).filter(|pair| {
        let [first, second] = [&pair[0].1, &pair[1].1].map(|bytes| number(bytes));
        second < first && first < 100_000
    });
    assert!(overtaken.count() > 5_000);
}

#[test]
fn what_finds_no_memory_is_the_interfaces_loss() {
    let (_wire, mut near, far) = Wire::new(Faults::default(), SEED);
    let mut far = with_memory(far, 1);
    for memory in near.allocate(3).unwrap() {
        near.send(memory, 60, Instant::ZERO).unwrap();
    }
    assert!(far.receive(Instant::ZERO).unwrap().is_some());
    // Each look takes one at the most, or who takes no more than so many could not count them.
    for lost in [1, 2, 2] {
        let before = far.losses().no_room;
        assert!(far.receive(Instant::ZERO).unwrap().is_none());
        assert_eq!(far.losses().no_room, lost);
        assert_eq!(far.has_discarded(), lost > before);
    }
}
