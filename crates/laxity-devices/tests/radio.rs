//! The radio: bursts arrive; slots that are read late do not, and show.

mod streams;

use std::sync::Arc;

use laxity_devices::card::{Block, Card, Repeated, Report, Served, StreamUnit};
use laxity_devices::radio::{AirConfig, FORMAT, Receiver, record};
use laxity_model::{Instant, Service};
use streams::Bench;

fn bench() -> Bench {
    let air = AirConfig::default();
    Bench::new(FORMAT, Some(record(&air)), move || {
        Box::new(Receiver::new(air.slots))
    })
}

/// Good and damaged bursts of a whole recording.
fn receive(air: AirConfig) -> (u32, u32) {
    let mut receiver = Receiver::new(air.slots);
    let samples = record(&air);
    let slots = samples.chunks_exact(FORMAT.block as usize).zip(0..);
    let checked = slots.map(|(samples, number)| receiver.process(number, samples, &mut []));
    checked.fold((0, 0), |sum, slot| {
        (sum.0 + slot.good, sum.1 + slot.damaged)
    })
}

#[test]
fn good_air_brings_every_burst_and_bad_air_damages_them() {
    assert_eq!(receive(AirConfig::default()), (251, 0));
    let off = AirConfig {
        carrier_offset_hz: -10_000.0,
        ..AirConfig::default()
    };
    assert_eq!(receive(off), (251, 0));
    let noisy = AirConfig {
        snr_db: 10.0,
        ..AirConfig::default()
    };
    let (_, damaged) = receive(noisy);
    assert!(damaged > 125, "{damaged} of 251 at 10 dB");
}

#[test]
fn a_burst_is_damaged_when_its_block_is_and_no_other() {
    streams::damage_and_errors_agree(&bench, 6);
}

#[test]
fn the_same_air_gives_the_same_bits() {
    let bits = |seed| {
        let air = AirConfig {
            seed,
            ..AirConfig::default()
        };
        let mut receiver = Receiver::new(air.slots);
        let samples = record(&air);
        let slots = samples.chunks_exact(FORMAT.block as usize).zip(0..);
        let digests: Vec<u32> = slots
            .map(|(samples, number)| receiver.process(number, samples, &mut []).digest)
            .collect();
        (streams::checksum(&samples), digests)
    };
    assert_eq!(bits(3), bits(3));
    assert_ne!(bits(3), bits(4));
}

#[test]
fn a_block_that_was_taken_is_lost_no_more() {
    let air = AirConfig::default();
    let card = Arc::new(Card::capture(FORMAT.setting(), record(&air)));
    let report = Arc::new(Report::default());
    let work = Repeated::new(0, || Box::new(Receiver::new(air.slots)));
    let (on, account) = (Arc::clone(&card), Arc::clone(&report));
    let mut unit = StreamUnit::new(on, FORMAT, account, work, Service::from_micros(1));
    let half = FORMAT.block / 2;
    let after = |samples| Instant::ZERO + FORMAT.setting().duration(samples);
    let now = after(FORMAT.ring() + half);
    while card.due() <= now {
        card.raise();
    }
    assert_eq!(unit.unserved(now).lost, half);
    unit.begin(now);
    assert_eq!(
        (report.samples_lost.get(), unit.unserved(now).lost),
        (half, 0)
    );
    // While its call is at work, the next block is written over.
    let end = after(FORMAT.ring() + FORMAT.block + half);
    assert_eq!(unit.unserved(end).lost, half);
}
