//! What the signal processing of several devices has in common: complex numbers, a pulse, steps of phase.

use core::f64::consts::{FRAC_1_SQRT_2, PI};

use crc::{CRC_16_IBM_SDLC, Crc};

pub(crate) use rustfft::num_complex::Complex32 as Complex;

/// e^(j·`radians`), the same bits on every machine.
pub(crate) fn unit(radians: f64) -> Complex {
    let (sin, cos) = libm::sincos(radians);
    Complex::new(cos as f32, sin as f32)
}

/// The root-raised-cosine pulse of unit energy a symbol, at `t` symbols from its middle.
pub(crate) fn root_raised_cosine(t: f64, roll_off: f64) -> f64 {
    let b = roll_off;
    if t.abs() < 1e-9 {
        return 1.0 - b + 4.0 * b / PI;
    }
    let denominator = PI * t * (1.0 - (4.0 * b * t) * (4.0 * b * t));
    if denominator.abs() < 1e-9 {
        let (sin, cos) = libm::sincos(PI / (4.0 * b));
        return b * FRAC_1_SQRT_2 * ((1.0 + 2.0 / PI) * sin + (1.0 - 2.0 / PI) * cos);
    }
    (libm::sin(PI * t * (1.0 - b)) + 4.0 * b * t * libm::cos(PI * t * (1.0 + b))) / denominator
}

/// The two bits of the step of phase that is nearest, in a right angle; neighbouring steps differ in one bit.
pub(crate) fn nearest_step(step: Complex) -> u8 {
    match (step.re.abs() >= step.im.abs(), step.re < 0.0, step.im < 0.0) {
        (true, false, _) => 0b00,
        (false, _, false) => 0b01,
        (true, true, _) => 0b11,
        (false, _, true) => 0b10,
    }
}

/// By how many right angles two bits step the phase on.
pub(crate) const fn right_angles(bits: u8) -> u8 {
    bits ^ bits >> 1
}

/// The CRC of the frame or burst of this number, which both ends count and nobody sends.
pub(crate) fn numbered_crc(number: u32, payload: &[u8]) -> u16 {
    static CRC: Crc<u16> = Crc::<u16>::new(&CRC_16_IBM_SDLC);
    let mut digest = CRC.digest();
    digest.update(&number.to_le_bytes());
    digest.update(payload);
    digest.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_decided_as_itself() {
        for bits in 0..4 {
            let turned = f64::from(right_angles(bits)) * core::f64::consts::FRAC_PI_2;
            assert_eq!(nearest_step(unit(turned)), bits);
        }
    }

    #[test]
    fn pulse_and_matched_filter_have_no_intersymbol_interference() {
        const PER_SYMBOL: i32 = 16;
        for roll_off in [0.1, 0.5, 0.75] {
            for lag in 0..6 {
                let pulse = |t| root_raised_cosine(t, roll_off);
                let sum: f64 = (-40 * PER_SYMBOL..=40 * PER_SYMBOL)
                    .map(|i| f64::from(i) / f64::from(PER_SYMBOL))
                    .map(|t| pulse(t) * pulse(t - f64::from(lag)))
                    .sum();
                let expected = if lag == 0 { 1.0 } else { 0.0 };
                let error = sum / f64::from(PER_SYMBOL) - expected;
                assert!(error.abs() < 2e-3, "{roll_off}, {lag}: {error}");
            }
        }
    }
}
