//! DSL: what is sent through the line arrives; what is read late does not, and shows.

mod streams;

use laxity_devices::card::Block;
use laxity_devices::dsl::{self, FRAME_SYMBOLS, LineConfig, Rate, record};
use streams::Bench;

const RATES: [Rate; 2] = [Rate::GLite, Rate::Full];

fn bench(rate: Rate) -> Bench {
    let recording = record(rate, &LineConfig::default());
    Bench::new(dsl::format(rate), Some(recording.samples), move || {
        Box::new(recording.receiver.clone())
    })
}

/// Good and damaged frames of a whole recording.
fn receive(rate: Rate, snr_db: f64) -> (u32, u32) {
    let line = LineConfig {
        snr_db,
        ..LineConfig::default()
    };
    let mut recording = record(rate, &line);
    let frame = rate.symbol_samples() * FRAME_SYMBOLS;
    assert_eq!(recording.samples.len(), frame * line.frames as usize);
    let frames = recording.samples.chunks_exact(frame).zip(0..);
    let checked =
        frames.map(|(samples, number)| recording.receiver.process(number, samples, &mut []));
    checked.fold((0, 0), |sum, frame| {
        (sum.0 + frame.good, sum.1 + frame.damaged)
    })
}

#[test]
fn a_good_line_brings_every_frame_and_a_bad_one_damages_them() {
    for rate in RATES {
        assert_eq!(receive(rate, 30.0), (53, 0), "{}", rate.name());
        let (_, damaged) = receive(rate, 14.0);
        assert!(damaged > 40, "{}: {damaged} of 53 at 14 dB", rate.name());
    }
}

#[test]
fn a_frame_of_another_time_is_no_good_frame() {
    let mut recording = record(Rate::GLite, &LineConfig::default());
    let frame = Rate::GLite.symbol_samples() * FRAME_SYMBOLS;
    let first = &recording.samples[..frame];
    for number in 1..53 {
        assert_eq!(
            recording.receiver.process(number, first, &mut []).damaged,
            1
        );
    }
    assert_eq!(recording.receiver.process(53, first, &mut []).good, 1);
}

#[test]
fn served_in_time_nothing_is_lost() {
    for rate in RATES {
        let report = bench(rate).serve((0..150).map(|_| 0));
        assert_eq!(report.frames_good.get(), 150);
        assert_eq!(report.frames_lost() + report.damage(), 0);
    }
}

#[test]
fn a_frame_is_damaged_when_its_block_is_and_no_other() {
    streams::damage_and_errors_agree(&|| bench(Rate::GLite), 3);
}

#[test]
fn the_same_line_gives_the_same_bits_on_every_machine() {
    let bits = |rate, seed| {
        let line = LineConfig {
            seed,
            ..LineConfig::default()
        };
        let mut recording = record(rate, &line);
        let frame = rate.symbol_samples() * FRAME_SYMBOLS;
        let frames = recording.samples.chunks_exact(frame).zip(0..);
        let digest = frames.fold(0_u64, |sum, (samples, number)| {
            let checked = recording.receiver.process(number, samples, &mut []);
            sum.rotate_left(7) ^ u64::from(checked.digest)
        });
        (streams::checksum(&recording.samples), digest)
    };
    let known = (0x7307_bcd0_6e87_36dc, 0x03bd_a608_c016_d026);
    assert_eq!(bits(Rate::GLite, 7), known);
    let known = (0x194f_84fa_1241_016f, 0x7de5_fb02_af9d_60fb);
    assert_eq!(bits(Rate::Full, 7), known);
    assert_ne!(bits(Rate::Full, 7), bits(Rate::Full, 8));
}
