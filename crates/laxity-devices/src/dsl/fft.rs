//! The discrete Fourier transform of a power of two, in plain arithmetic of fixed order: the same bits on every machine.
//!
//! Libraries for it choose vector instructions when they run, or compute their factors with the system's mathematics.

use core::ops::{Add, Mul, Sub};

/// A complex number.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Complex {
    /// Real part.
    pub re: f32,
    /// Imaginary part.
    pub im: f32,
}

impl Complex {
    /// From its parts.
    #[must_use]
    pub const fn new(re: f32, im: f32) -> Self {
        Self { re, im }
    }

    /// e^(j·`radians`).
    #[must_use]
    pub fn unit(radians: f64) -> Self {
        let (sin, cos) = libm::sincos(radians);
        Self::new(cos as f32, sin as f32)
    }

    /// Mirrored at the real axis.
    #[must_use]
    pub const fn conjugate(self) -> Self {
        Self::new(self.re, -self.im)
    }

    /// |z|².
    #[must_use]
    pub fn power(self) -> f32 {
        self.re * self.re + self.im * self.im
    }

    /// 1/z; not a number for zero.
    #[must_use]
    pub fn inverse(self) -> Self {
        let power = self.power();
        Self::new(self.re / power, -self.im / power)
    }

    /// z·`factor`.
    #[must_use]
    pub fn scale(self, factor: f32) -> Self {
        Self::new(self.re * factor, self.im * factor)
    }
}

impl Add for Complex {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::new(self.re + other.re, self.im + other.im)
    }
}

impl Sub for Complex {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self::new(self.re - other.re, self.im - other.im)
    }
}

impl Mul for Complex {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self::new(
            self.re * other.re - self.im * other.im,
            self.re * other.im + self.im * other.re,
        )
    }
}

/// A transform of one length.
#[derive(Clone, Debug)]
pub struct Fft {
    /// e^(−2πj·k/n) for k below n/2.
    factors: Vec<Complex>,
    bits: u32,
}

impl Fft {
    /// A transform of 2^`bits` values, at least 2.
    #[must_use]
    pub fn new(bits: u32) -> Self {
        let n = 1_usize << bits.max(1);
        let turn = -2.0 * core::f64::consts::PI / n as f64;
        Self {
            factors: (0..n / 2).map(|k| Complex::unit(turn * k as f64)).collect(),
            bits: bits.max(1),
        }
    }

    /// How many values it transforms.
    #[must_use]
    pub fn length(&self) -> usize {
        1 << self.bits
    }

    /// X\[k\] = Σ x\[i\]·e^(−2πj·i·k/n), in place. The length must be [`Self::length`]. O(n log n).
    pub fn forward(&self, values: &mut [Complex]) {
        let n = values.len();
        debug_assert_eq!(n, self.length());
        for i in 0..n {
            let mirrored = i.reverse_bits() >> (usize::BITS - self.bits);
            if i < mirrored {
                values.swap(i, mirrored);
            }
        }
        let mut half = 1;
        while half < n {
            let stride = n / (2 * half);
            for group in values.chunks_exact_mut(2 * half) {
                let (low, high) = group.split_at_mut(half);
                let factors = self.factors.iter().step_by(stride);
                for ((a, b), factor) in low.iter_mut().zip(high).zip(factors) {
                    let turned = *b * *factor;
                    (*a, *b) = (*a + turned, *a - turned);
                }
            }
            half *= 2;
        }
    }

    /// x\[i\] = Σ X\[k\]·e^(2πj·i·k/n), in place and not divided by n. The length must be [`Self::length`].
    pub fn inverse(&self, values: &mut [Complex]) {
        values.iter_mut().for_each(|v| *v = v.conjugate());
        self.forward(values);
        values.iter_mut().for_each(|v| *v = v.conjugate());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition.
    fn oracle(values: &[Complex]) -> Vec<(f64, f64)> {
        let n = values.len();
        let turn = -2.0 * core::f64::consts::PI / n as f64;
        let value = |k: usize| {
            let terms = values.iter().enumerate().map(|(i, x)| {
                let (sin, cos) = libm::sincos(turn * ((i * k) % n) as f64);
                let (re, im) = (f64::from(x.re), f64::from(x.im));
                (re * cos - im * sin, re * sin + im * cos)
            });
            terms.fold((0.0, 0.0), |sum, term| (sum.0 + term.0, sum.1 + term.1))
        };
        (0..n).map(value).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn it_is_the_transform_and_its_inverse_undoes_it(
            bits in 1_u32..10,
            parts in proptest::collection::vec((-1.0_f32..1.0, -1.0_f32..1.0), 512),
        ) {
            let fft = Fft::new(bits);
            let n = fft.length();
            let values: Vec<Complex> =
                parts[..n].iter().map(|(re, im)| Complex::new(*re, *im)).collect();
            let mut transformed = values.clone();
            fft.forward(&mut transformed);
            for (fast, slow) in transformed.iter().zip(oracle(&values)) {
                prop_assert!((f64::from(fast.re) - slow.0).abs() < 1e-3);
                prop_assert!((f64::from(fast.im) - slow.1).abs() < 1e-3);
            }
            fft.inverse(&mut transformed);
            for (back, value) in transformed.iter().zip(&values) {
                prop_assert!((back.re / n as f32 - value.re).abs() < 1e-4);
                prop_assert!((back.im / n as f32 - value.im).abs() < 1e-4);
            }
        }
    }
}
