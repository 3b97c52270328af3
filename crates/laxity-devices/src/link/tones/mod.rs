//! What is on the line before the modems train: dial tone, ringing, dialled digits, answer tone.
//!
//! Generators and detectors work at any sample rate, on blocks of any size, on 16-bit samples whose
//! full scale is a sine of +3.14 dBm0, as in ITU-T G.711. Sines are computed by rotation from
//! values that `libm` gave when they were set up, so all machines hear the same.

mod detect;
mod generate;

pub use detect::{DIGIT_WINDOWS, PAUSE_WINDOWS, TONE_SHARE};
pub(crate) use detect::{DtmfDecoder, ToneDetector};
pub(crate) use generate::Generator;

/// The level of a sine that just fits into 16 bits, in dBm0 (ITU-T G.711, table 1).
#[expect(clippy::approx_constant, reason = "a level, not a ratio of circles")]
const FULL_SCALE_DBM0: f64 = 3.14;

/// Rows of digits, as on a telephone's keys.
const DTMF_KEYS: [[char; 4]; 4] = [
    ['1', '2', '3', 'A'],
    ['4', '5', '6', 'B'],
    ['7', '8', '9', 'C'],
    ['*', '0', '#', 'D'],
];
/// Frequencies of the rows, in Hz (ITU-T Q.23).
const DTMF_ROWS_HZ: [f64; 4] = [697.0, 770.0, 852.0, 941.0];
/// Frequencies of the columns, in Hz (ITU-T Q.23).
const DTMF_COLUMNS_HZ: [f64; 4] = [1209.0, 1336.0, 1477.0, 1633.0];

/// North America's precise tone plan, in Hz.
const DIAL_TONE_HZ: [f64; 2] = [350.0, 440.0];
const RINGBACK_HZ: [f64; 2] = [440.0, 480.0];
const BUSY_HZ: [f64; 2] = [480.0, 620.0];
/// The current that rings the bell, as the card sees it.
const RINGING_HZ: f64 = 20.0;
/// ITU-T V.25.
const ANSWER_HZ: f64 = 2100.0;

/// The peak of a sine of `level_dbm0`, in steps of the 16-bit scale.
fn peak(level_dbm0: f64) -> f64 {
    f64::from(i16::MAX) * libm::pow(10.0, (level_dbm0 - FULL_SCALE_DBM0) / 20.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_model::Span;
    use proptest::prelude::*;

    fn dialled(rate: u32, digits: &str, digit_ms: u64) -> Vec<i16> {
        let mut generator = Generator::dial(rate, digits, Span::from_millis(digit_ms));
        let mut samples = vec![0; rate as usize / 50];
        while !generator.is_finished() {
            let start = samples.len();
            samples.resize(start + 90, 0);
            generator.fill(&mut samples[start..]);
        }
        samples.resize(samples.len() + rate as usize / 10, 0);
        samples
    }

    fn decoded(rate: u32, samples: &[i16], block: usize) -> String {
        let mut decoder = DtmfDecoder::new(rate);
        samples
            .chunks(block)
            .flat_map(|block| decoder.push(block))
            .collect()
    }

    /// Noise with the given peak.
    fn noisy(samples: &[i16], peak: i32, mut seed: u32) -> Vec<i16> {
        let add = |&sample: &i16| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = (seed >> 16) as i32 * 2 * peak / 65_536 - peak;
            (i32::from(sample) + noise).clamp(-32_768, 32_767) as i16
        };
        samples.iter().map(add).collect()
    }

    const ALL: &str = "123A456B789C*0#D1122";

    #[test]
    fn all_digits_are_heard_at_every_rate_and_block_size() {
        for rate in [7_200, 8_000, 16_000] {
            let samples = dialled(rate, ALL, 70);
            for block in [1, 18, 90, 105, 210, 4_096] {
                assert_eq!(
                    decoded(rate, &samples, block),
                    ALL,
                    "{rate} Hz, blocks of {block}"
                );
            }
        }
    }

    #[test]
    fn digits_of_40_ms_are_heard_and_of_20_ms_are_not() {
        assert_eq!(decoded(7_200, &dialled(7_200, ALL, 40), 90), ALL);
        assert_eq!(decoded(7_200, &dialled(7_200, ALL, 20), 90), "");
    }

    #[test]
    fn noise_of_20_db_below_does_no_harm_and_noise_alone_is_no_digit() {
        let samples = noisy(&dialled(7_200, ALL, 70), 500, 1);
        assert_eq!(decoded(7_200, &samples, 90), ALL);
        assert_eq!(decoded(7_200, &noisy(&vec![0; 72_000], 8_000, 1), 90), "");
    }

    #[test]
    fn twist_is_tolerated_within_limits() {
        let pair = |row_dbm0: f64, column_dbm0: f64| {
            let tone = |hz: f64, dbm0: f64| {
                let mut samples = vec![0; 720];
                Generator::tones(7_200, &[hz], dbm0).fill(&mut samples);
                samples
            };
            let sum = tone(770.0, row_dbm0)
                .iter()
                .zip(tone(1336.0, column_dbm0))
                .map(|(a, b)| a + b)
                .collect::<Vec<_>>();
            decoded(7_200, &sum, 90)
        };
        assert_eq!(pair(-10.0, -10.0), "5");
        assert_eq!(pair(-7.0, -14.0), "5");
        assert_eq!(pair(-7.0, -17.0), "", "column 10 dB below");
        assert_eq!(pair(-10.0, -7.0), "5");
        assert_eq!(pair(-13.0, -7.0), "", "column 6 dB above");
        assert_eq!(pair(-50.0, -50.0), "", "too quiet");
    }

    #[test]
    fn lost_samples_cost_digits() {
        // A card that overflows in every second digit: those are missed, and the number is wrong.
        let mut samples = dialled(7_200, "5551234", 70);
        let period = 7_200 * 140 / 1_000;
        let start = 7_200 / 50;
        for digit in [5, 3, 1] {
            let at = start + digit * period;
            samples.drain(at..at + 400);
        }
        assert_eq!(decoded(7_200, &samples, 90), "5524");
    }

    #[test]
    fn an_output_that_ran_dry_costs_digits() {
        let samples = dialled(7_200, "5551234", 70);
        // Of each 25 ms the card had 10 ms, then repeated silence.
        let holes = samples
            .iter()
            .enumerate()
            .map(|(i, &s)| if i % 180 < 72 { s } else { 0 })
            .collect::<Vec<_>>();
        assert_ne!(decoded(7_200, &holes, 90), "5551234");
    }

    fn detected(detector: &mut ToneDetector, samples: &[i16]) -> bool {
        samples.chunks(90).any(|block| detector.push(block))
    }

    #[test]
    fn each_tone_is_told_from_the_others() {
        for rate in [7_200, 8_000, 16_000] {
            let mut sources = [
                Generator::dial_tone(rate),
                Generator::answer_tone(rate),
                Generator::tones(rate, &[RINGING_HZ], 0.0),
                Generator::busy(rate),
                Generator::ringback(rate),
            ];
            for (index, source) in sources.iter_mut().enumerate() {
                let mut samples = vec![0; rate as usize * 3];
                source.fill(&mut samples);
                let samples = noisy(&samples, 300, 5);
                let heard = [
                    detected(&mut ToneDetector::dial_tone(rate), &samples),
                    detected(&mut ToneDetector::answer_tone(rate), &samples),
                    detected(&mut ToneDetector::ringing(rate), &samples),
                ];
                let expected = core::array::from_fn(|other| other == index);
                assert_eq!(heard, expected, "source {index} at {rate} Hz");
            }
        }
    }

    #[test]
    fn a_tone_that_ends_is_no_longer_heard() {
        let mut detector = ToneDetector::dial_tone(8_000);
        let mut samples = vec![0; 8_000];
        Generator::dial_tone(8_000).fill(&mut samples);
        detector.push(&samples);
        assert!(detector.is_present());
        detector.push(&vec![0; 4_000]);
        assert!(!detector.is_present());
    }

    proptest! {
        #[test]
        fn blocks_do_not_change_what_is_generated(
            cuts in proptest::collection::vec(1_usize..300, 1..40),
        ) {
            let (mut whole, mut pieces) = (Generator::ringback(7_200), Generator::ringback(7_200));
            let mut expected = vec![0; cuts.iter().sum()];
            whole.fill(&mut expected);
            let mut samples = Vec::new();
            for cut in cuts {
                let mut piece = vec![0; cut];
                pieces.fill(&mut piece);
                samples.extend(piece);
            }
            prop_assert_eq!(samples, expected);
        }

        #[test]
        fn any_samples_are_listened_to_without_panic(
            samples in proptest::collection::vec(any::<i16>(), 0..2_000),
            rate in 1_u32..20_000,
        ) {
            DtmfDecoder::new(rate).push(&samples);
            ToneDetector::dial_tone(rate).push(&samples);
        }
    }
}
