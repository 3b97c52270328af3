//! The emulated wire against its definition.

use std::sync::atomic::Ordering::SeqCst;

use laxity_model::base::random::SplitMix64;
use laxity_model::nif::link::{Link, Stamp};
use laxity_model::{Instant, Span};
use laxity_net::emulated::{End, Faults, Faulty, Wire};
use proptest::prelude::*;

use crate::support::CountedEnd;

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
    defined_by(seed_of_far_way(), faults, frames)
}

/// The same of a way with this seed.
fn defined_by(seed: u64, faults: Faults, frames: &[(Instant, Vec<u8>)]) -> Vec<(Instant, Vec<u8>)> {
    let mut random = SplitMix64::new(seed);
    let mut free = 0;
    let mut arriving = Vec::new();
    for (at, frame) in frames {
        let nanos = frame.len() as u64 * 8_000_000_000;
        free = at.as_nanos().max(free) + nanos.checked_div(faults.rate).unwrap_or(0);
        let happens = |drawn: u64, of: u32| drawn % 1_000_000 < u64::from(of);
        let [lost, doubled, late, wrong] = [(); 4].map(|()| random.draw());
        if happens(lost, faults.lost) {
            continue;
        }
        let mut copies = vec![[late, wrong]];
        if happens(doubled, faults.doubled) {
            let mut own = SplitMix64::new(doubled);
            copies.push([(); 2].map(|()| own.draw()));
        }
        for [late, wrong] in copies {
            let mut at = free + faults.delay.as_nanos();
            let mut bytes = frame.clone();
            if happens(wrong, faults.corrupted) {
                let bit = wrong / 1_000_000 % (frame.len() as u64 * 8);
                bytes[bit as usize / 8] ^= 1 << (bit % 8);
            }
            if happens(late, faults.late) {
                at += faults.late_by.as_nanos();
            }
            arriving.push((Instant::from_nanos(at), bytes));
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

/// What leaves an interface behind faults, and what arrives there, is what would over a wire that has them, and no memory is lost.
#[test]
fn faults_in_front_of_an_interface_are_those_of_a_wire() {
    let faults = Faults {
        lost: 200_000,
        doubled: 200_000,
        late: 200_000,
        late_by: Span::from_micros(7),
        corrupted: 200_000,
        ..Faults::default()
    };
    let (_plain, near, far) = Wire::new(Faults::default(), 1);
    let mut near = with_memory(near, 16);
    let mut faulty = Faulty::new(far, faults, SEED, 16).unwrap();
    for memory in faulty.allocate(16).unwrap() {
        faulty.post(memory).unwrap();
    }
    let again = faulty.again();
    let frame = |number: u64| vec![number as u8; 60 + number as usize % 40];
    let frames: Vec<_> = (0..400_u64)
        .map(|number| (Instant::from_micros(number * 3), frame(number)))
        .collect();
    let (mut memory, mut came, mut went) = (near.allocate(1).unwrap(), Vec::new(), Vec::new());
    let mut there = faulty.allocate(1).unwrap();
    for step in 0..420_u64 {
        let now = Instant::from_micros(step * 3);
        if let Some((at, frame)) = frames.get(step as usize) {
            let mut one = memory.pop().unwrap();
            one[..frame.len()].copy_from_slice(frame);
            near.send(one, frame.len(), *at).unwrap();
            let mut other = there.pop().unwrap();
            other[..frame.len()].copy_from_slice(frame);
            faulty.send(other, frame.len(), *at).unwrap();
        }
        while let Some(packet) = faulty.receive(now).unwrap() {
            came.push((packet.at, packet.memory[..packet.length].to_vec()));
            faulty.post(packet.memory).unwrap();
        }
        faulty.flush(now).unwrap();
        memory.extend(near.sent(now));
        there.extend(faulty.sent(now));
        went.extend(received(&mut near, now).into_iter().map(|(_, bytes)| bytes));
        // Somebody is told to look while anything is late.
        assert!(again.at().is_none_or(|at| at >= now));
    }
    assert_eq!((memory.len(), there.len(), again.at()), (1, 1, None));
    let mut seeds = SplitMix64::new(SEED);
    let [inward, outward] = [(); 2].map(|()| seeds.draw());
    assert_eq!(came, defined_by(inward, faults, &frames));
    let outward = defined_by(outward, faults, &frames);
    assert_eq!(
        went,
        outward
            .into_iter()
            .map(|(_, bytes)| bytes)
            .collect::<Vec<_>>()
    );
    assert!(
        went.len() > 300
            && came.len() > 300
            && went != came.into_iter().map(|(_, bytes)| bytes).collect::<Vec<_>>()
    );
}

/// Who says when a packet arrived, and what is not in it yet, is told behind faults as in front of them; what the interface does not take then is counted.
#[test]
fn what_an_interface_behind_faults_says_is_not_lost() {
    let (wire, mut near, far) = Wire::new(Faults::default(), SEED);
    let mut far = CountedEnd::new(far);
    far.stamp = Stamp::Read;
    far.is_begun.store(true, SeqCst);
    let mut faulty = Faulty::new(far, Faults::default(), SEED, 4).unwrap();
    for memory in faulty.allocate(1).unwrap() {
        assert!(faulty.post(memory).is_ok());
    }
    let now = Instant::ZERO;
    let memory = near.allocate(1).unwrap().remove(0);
    near.send(memory, 60, now).unwrap();
    let packet = faulty.receive(now).unwrap().unwrap();
    assert_eq!((packet.stamp, packet.left.checksum), (Stamp::Read, true));
    wire.go_down();
    assert!(faulty.send(packet.memory, 60, now).is_ok());
    faulty.flush(now).unwrap();
    assert!(faulty.sent(now).is_some());
    assert_eq!(faulty.unsent(), 1);
}
