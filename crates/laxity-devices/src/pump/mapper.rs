//! Bits to levels and back: a block of bits as a number written with `levels` digits.
//!
//! 38 bits are one of 2³⁸ numbers, which six digits to the base 81 can write (81⁶ > 2³⁸): 6⅓ bits a
//! symbol, where a power of two of levels would stop at 6.

/// How many bits a block carries, and on how many levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code {
    /// Amplitude levels of one coordinate.
    pub(crate) levels: u16,
    /// Bits in a block of coordinates.
    pub(crate) bits: u8,
}

impl Code {
    const fn new(levels: u16, bits: u8) -> Self {
        Self { levels, bits }
    }

    /// The signal-to-noise ratio in dB under which this code would no longer be error-free with
    /// margin: half the distance of two levels is 5.2 σ (2·10⁻⁷ symbol errors), and 0.7 dB more.
    pub(crate) fn required_snr_db(self) -> f32 {
        let levels = f32::from(self.levels);
        10.0 * libm::log10f((levels * levels - 1.0) / 3.0 * 5.2 * 5.2) + 0.7
    }
}

/// The downstream codes, fastest first: six symbols of one coordinate in a block.
pub(crate) const DOWN_CODES: [Code; 7] = [
    Code::new(81, 38),
    Code::new(64, 36),
    Code::new(51, 34),
    Code::new(41, 32),
    Code::new(32, 30),
    Code::new(16, 24),
    Code::new(8, 18),
];

/// The upstream codes, fastest first: four symbols of two coordinates in a block. None uses all of
/// its points: blocks that cannot be betray a carrier that locked a quarter turn off.
pub(crate) const UP_CODES: [Code; 6] = [
    Code::new(30, 39),
    Code::new(23, 36),
    Code::new(18, 33),
    Code::new(14, 30),
    Code::new(9, 24),
    Code::new(5, 16),
];

/// Coordinates in a block at most.
pub(crate) const MAX_COORDINATES: usize = 8;

/// Levels of one coordinate, evenly spaced, with mean square one.
#[derive(Debug, Clone)]
pub(crate) struct Levels {
    count: u16,
    spacing: f32,
    per_spacing: f32,
}

impl Levels {
    pub(crate) fn new(count: u16) -> Self {
        let n = f32::from(count);
        let spacing = (12.0 / (n * n - 1.0)).sqrt();
        Self {
            count,
            spacing,
            per_spacing: 1.0 / spacing,
        }
    }

    #[inline]
    pub(crate) fn amplitude(&self, digit: u16) -> f32 {
        (f32::from(digit) - 0.5 * f32::from(self.count - 1)) * self.spacing
    }

    /// The digit whose level is nearest.
    #[inline]
    pub(crate) fn slice(&self, amplitude: f32) -> u16 {
        let position = amplitude * self.per_spacing + 0.5 * f32::from(self.count);
        // The cast takes negative values and NaN to 0.
        (position as u16).min(self.count - 1)
    }

    /// Half the distance of two levels.
    pub(crate) fn half_spacing(&self) -> f32 {
        0.5 * self.spacing
    }
}

/// The digits of a block of bits, least significant first.
pub(crate) fn digits(code: Code, mut value: u64) -> [u16; MAX_COORDINATES] {
    let mut digits = [0; MAX_COORDINATES];
    for digit in &mut digits {
        *digit = (value % u64::from(code.levels)) as u16;
        value /= u64::from(code.levels);
    }
    digits
}

/// The block of bits that `digits` write, or `None` if they write a number beyond it, which no
/// transmitter sends.
pub(crate) fn value(code: Code, digits: &[u16]) -> Option<u64> {
    let number = digits
        .iter()
        .rev()
        .fold(0_u64, |sum, d| sum * u64::from(code.levels) + u64::from(*d));
    (number >> code.bits == 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_code_fits_its_block() {
        for (codes, coordinates) in [(&DOWN_CODES[..], 6), (&UP_CODES[..], 8)] {
            for code in codes {
                assert!(
                    u128::from(code.levels).pow(coordinates) >= 1 << code.bits,
                    "{code:?}"
                );
            }
            assert!(codes.is_sorted_by(|a, b| a.bits > b.bits));
        }
    }

    proptest! {
        #[test]
        fn bits_survive_levels_and_noise_below_half_a_spacing(
            number: u64, index in 0_usize..13, noise in -0.49_f32..0.49
        ) {
            let (code, coordinates) = if index < 7 {
                (DOWN_CODES[index], 6)
            } else {
                (UP_CODES[index - 7], 8)
            };
            let number = number & ((1 << code.bits) - 1);
            let levels = Levels::new(code.levels);
            let sliced: Vec<u16> = digits(code, number)[..coordinates]
                .iter()
                .map(|d| levels.slice(levels.amplitude(*d) + noise * levels.spacing))
                .collect();
            prop_assert_eq!(value(code, &sliced), Some(number));
        }

        #[test]
        fn slicing_takes_the_nearest_level(amplitude in -3.0_f32..3.0, count in 2_u16..100) {
            let levels = Levels::new(count);
            let nearest = (0..count)
                .map(|d| (levels.amplitude(d) - amplitude).abs())
                .fold(f32::INFINITY, f32::min);
            let sliced = (levels.amplitude(levels.slice(amplitude)) - amplitude).abs();
            prop_assert!(sliced <= nearest + 1e-5);
        }
    }

    #[test]
    fn levels_have_unit_power() {
        for count in [2_u16, 8, 30, 81] {
            let levels = Levels::new(count);
            let power: f32 = (0..count).map(|d| levels.amplitude(d).powi(2)).sum();
            assert!((power / f32::from(count) - 1.0).abs() < 1e-4);
        }
    }
}
