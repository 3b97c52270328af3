//! The player: its sound is heard whole while it is in time, and heard to be broken when it is not.

mod streams;

use std::sync::Arc;

use laxity_devices::audio::{Ear, FORMAT, PERIOD_FRAMES, Player, Sound};
use laxity_devices::card::{Block, Listener};
use laxity_model::Instant;
use streams::Bench;

fn bench(seed: u64) -> Bench {
    let sound = Arc::new(Sound::new(seed));
    Bench::new(FORMAT, None, move || {
        Box::new(Player::new(Arc::clone(&sound)))
    })
}

/// Whether each of the first periods was heard whole, the calls being this late.
fn heard(late_permille: &[u64]) -> (Vec<bool>, Bench) {
    let mut bench = bench(1);
    let mut now = Instant::ZERO;
    for late in late_permille {
        bench.serve_one(&mut now, *late);
    }
    let mut ear = Ear::default();
    let silent = FORMAT.silent_blocks();
    let periods = (0..late_permille.len() as u64).map(|number| {
        let first = (number + silent) * FORMAT.block;
        let samples: Vec<i16> = (first..first + FORMAT.block)
            .map(|index| bench.card.departed(0, index))
            .collect();
        ear.hear(number, &samples)
    });
    (periods.collect(), bench)
}

#[test]
fn a_player_in_time_is_heard_whole() {
    // The card keeps eight rings of four periods.
    let (heard, bench) = heard(&[0; 30]);
    assert!(heard.iter().all(|whole| *whole), "{heard:?}");
    assert_eq!(bench.report.damage(), 0);
}

#[test]
fn a_period_that_is_late_is_heard_and_no_other() {
    let mut late = [0; 30];
    // A period is played from one period after its interrupt on; this one comes in the middle of it, its successor just in time.
    late[9] = 1_500;
    let (heard, bench) = heard(&late);
    let broken: Vec<usize> = (0..30).filter(|period| !heard[*period]).collect();
    assert_eq!(broken, [9]);
    assert_eq!(
        bench.report.samples_underrun.get(),
        PERIOD_FRAMES as u64 / 2
    );
    assert_eq!(bench.report.blocks_underrun.get(), 1);
}

#[test]
fn a_long_gap_is_heard_as_long_as_it_is() {
    let mut late = [0; 30];
    late[12] = 4_000;
    let (heard, bench) = heard(&late);
    let broken: Vec<usize> = (0..30).filter(|period| !heard[*period]).collect();
    // 40 ms late, 10 ms ahead: three periods are not played at all, the next one is just in time.
    assert_eq!(broken, [12, 13, 14]);
    assert_eq!(bench.report.blocks_underrun.get(), 3);
}

#[test]
fn the_resampler_keeps_the_tone() {
    let sound = Arc::new(Sound::new(1));
    let mut player = Player::new(sound);
    let mut power = 0.0;
    let mut period = [0; PERIOD_FRAMES];
    for number in 0..100 {
        player.process(number, &[], &mut period);
        power += period
            .iter()
            .map(|s| f64::from(*s) * f64::from(*s))
            .sum::<f64>();
    }
    // A sine of amplitude 12,000, its edges smeared where the phase steps.
    let mean = power / (100.0 * PERIOD_FRAMES as f64);
    let sine = 12_000.0 * 12_000.0 / 2.0;
    assert!((0.93..=1.01).contains(&(mean / sine)), "{}", mean / sine);
}

#[test]
fn the_same_sound_gives_the_same_samples() {
    let played = |seed| {
        let mut player = Player::new(Arc::new(Sound::new(seed)));
        let mut all = Vec::new();
        let mut period = [0; PERIOD_FRAMES];
        for number in 0..200 {
            player.process(number, &[], &mut period);
            all.extend(period);
        }
        streams::checksum(&all)
    };
    assert_eq!(played(1), played(1));
    assert_ne!(played(1), played(2));
}
