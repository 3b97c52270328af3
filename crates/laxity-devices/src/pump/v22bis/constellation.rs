//! Bits to points and back: differential quadrants and 16 points (V.22bis, "Encoding").
//!
//! The first two bits of a symbol say by how much the quadrant changes, the other two which of its
//! four points is sent; the points of a quadrant are those of the first one, turned. At 1200 bit/s
//! there are only the first two bits, and the point is always `01`.

use super::Rate;
use crate::signal::Complex;

/// Mean power of the 16 points, and of the four of 1200 bit/s.
pub(super) const MEAN_POWER: f32 = 10.0;
/// The second two bits at 1200 bit/s.
const LOW_RATE_POINT: u8 = 0b01;

/// The right angles the quadrant turns by, for the first two bits (first bit high).
const TURNS: [u8; 4] = [1, 0, 2, 3];

/// `z` turned by so many right angles, counter-clockwise.
fn quarter_turns(z: Complex, quarters: u8) -> Complex {
    match quarters & 3 {
        0 => z,
        1 => Complex::new(-z.im, z.re),
        2 => -z,
        _ => Complex::new(z.im, -z.re),
    }
}

fn point(quadrant: u8, low: u8) -> Complex {
    let level = |bit: u8| if bit == 0 { 1.0 } else { 3.0 };
    quarter_turns(Complex::new(level(low & 1), level(low >> 1)), quadrant)
}

/// Chooses points.
#[derive(Debug, Clone, Default)]
pub(super) struct Encoder {
    quadrant: u8,
}

impl Encoder {
    /// The point for two or four bits, the first one highest.
    pub(super) fn encode(&mut self, rate: Rate, bits: u8) -> Complex {
        let (turn, low) = match rate {
            Rate::Bps1200 => (bits, LOW_RATE_POINT),
            Rate::Bps2400 => (bits >> 2, bits & 3),
        };
        self.quadrant = (self.quadrant + TURNS[usize::from(turn & 3)]) & 3;
        point(self.quadrant, low)
    }
}

/// The nearest point and its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decision {
    pub(super) point: Complex,
    quadrant: u8,
    low: u8,
}

impl Decision {
    /// The point nearest to `z`; of four points, the nearest in angle, whatever the gain.
    pub(super) fn nearest(rate: Rate, z: Complex) -> Self {
        // Of four points the quadrants are bounded by their bisectors, not by the axes.
        let direction = match rate {
            Rate::Bps1200 => z * Complex::new(2.0, 1.0),
            Rate::Bps2400 => z,
        };
        let quadrant = match (direction.re >= 0.0, direction.im >= 0.0) {
            (true, true) => 0,
            (false, true) => 1,
            (false, false) => 2,
            (true, false) => 3,
        };
        let low = match rate {
            Rate::Bps1200 => LOW_RATE_POINT,
            Rate::Bps2400 => {
                let first = quarter_turns(z, 4 - quadrant);
                u8::from(first.im > 2.0) << 1 | u8::from(first.re > 2.0)
            }
        };
        Self {
            point: point(quadrant, low),
            quadrant,
            low,
        }
    }

    /// The two or four bits that lead from the quadrant of `previous` here, the first one highest.
    pub(super) fn bits_after(self, rate: Rate, previous: u8) -> u8 {
        let turn = (self.quadrant + 4 - previous) & 3;
        let high = [0b01, 0b00, 0b10, 0b11][usize::from(turn)];
        match rate {
            Rate::Bps1200 => high,
            Rate::Bps2400 => high << 2 | self.low,
        }
    }

    pub(super) fn quadrant(self) -> u8 {
        self.quadrant
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_symbol_survives_any_quarter_turn_and_a_small_error() {
        for rate in [Rate::Bps1200, Rate::Bps2400] {
            let symbols: Vec<u8> = (0..500_u32)
                .map(|i| (i * 7 + i * i / 3) as u8 & ((1 << rate.bits()) - 1))
                .collect();
            for turn in 0..4 {
                let (mut encoder, mut previous) = (Encoder::default(), turn);
                for symbol in &symbols {
                    let sent = quarter_turns(encoder.encode(rate, *symbol), turn);
                    let decision = Decision::nearest(rate, sent + Complex::new(0.7, -0.7));
                    assert_eq!(decision.point, sent);
                    assert_eq!(decision.bits_after(rate, previous), *symbol);
                    previous = decision.quadrant();
                }
            }
        }
    }

    #[test]
    fn mean_power_is_that_of_either_rate() {
        let sum: f32 = (0..16).map(|i| point(i >> 2, i & 3).norm_sqr()).sum();
        assert_eq!(sum / 16.0, MEAN_POWER);
        assert!((0..4).all(|quadrant| point(quadrant, LOW_RATE_POINT).norm_sqr() == MEAN_POWER));
    }
}
