//! Square root of a raised cosine, roll-off 75 %, as V.22bis asks, and the ratios of its rates to 8 kHz.

use core::f64::consts::{FRAC_1_SQRT_2, PI};

const ROLL_OFF: f64 = 0.75;
/// Samples a symbol are 40/3: 8000 a second and 600 a second.
pub(super) const SAMPLES_PER_3_SYMBOLS: usize = 40;
/// The carriers' periods divide 20 samples.
pub(super) const CARRIER_TABLE: usize = 20;

/// The pulse at `t` symbols from its middle; its energy is one.
pub(super) fn pulse(t: f64) -> f64 {
    let beta = ROLL_OFF;
    let pole = 4.0 * beta * t;
    if t.abs() < 1e-9 {
        1.0 - beta + 4.0 * beta / PI
    } else if (pole.abs() - 1.0).abs() < 1e-9 {
        let angle = PI / (4.0 * beta);
        beta * FRAC_1_SQRT_2
            * ((1.0 + 2.0 / PI) * libm::sin(angle) + (1.0 - 2.0 / PI) * libm::cos(angle))
    } else {
        (libm::sin(PI * t * (1.0 - beta)) + pole * libm::cos(PI * t * (1.0 + beta)))
            / (PI * t * (1.0 - pole * pole))
    }
}

/// A cosine from one in the middle to zero at `half`, which calms the side lobes of the pulse cut
/// off there.
pub(super) fn window(t: f64, half: f64) -> f64 {
    if t.abs() >= half {
        0.0
    } else {
        libm::cos(0.5 * PI * t / half)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pulse_and_matched_filter_have_no_intersymbol_interference() {
        const PER_SYMBOL: i32 = 16;
        for lag in 0..6 {
            let sum: f64 = (-40 * PER_SYMBOL..=40 * PER_SYMBOL)
                .map(|i| f64::from(i) / f64::from(PER_SYMBOL))
                .map(|t| pulse(t) * pulse(t - f64::from(lag)))
                .sum();
            let expected = if lag == 0 { 1.0 } else { 0.0 };
            assert!(
                (sum / f64::from(PER_SYMBOL) - expected).abs() < 1e-4,
                "{lag}: {sum}"
            );
        }
    }
}
