//! Complex numbers, as far as a modem needs them.

use core::ops::{Add, AddAssign, Mul, Sub};

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Complex {
    pub(super) re: f32,
    pub(super) im: f32,
}

impl Complex {
    pub(super) const ZERO: Self = Self::new(0.0, 0.0);
    pub(super) const ONE: Self = Self::new(1.0, 0.0);

    pub(super) const fn new(re: f32, im: f32) -> Self {
        Self { re, im }
    }

    /// e^(j `radians`)
    pub(super) fn unit(radians: f32) -> Self {
        Self::new(libm::cosf(radians), libm::sinf(radians))
    }

    #[inline]
    pub(super) fn conj(self) -> Self {
        Self::new(self.re, -self.im)
    }

    #[inline]
    pub(super) fn power(self) -> f32 {
        self.re * self.re + self.im * self.im
    }

    #[inline]
    pub(super) fn scale(self, factor: f32) -> Self {
        Self::new(self.re * factor, self.im * factor)
    }

    /// Turned by `quarters` right angles, counter-clockwise.
    #[inline]
    pub(super) fn quarter_turns(self, quarters: u8) -> Self {
        match quarters & 3 {
            0 => self,
            1 => Self::new(-self.im, self.re),
            2 => Self::new(-self.re, -self.im),
            _ => Self::new(self.im, -self.re),
        }
    }
}

impl Add for Complex {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self::new(self.re + other.re, self.im + other.im)
    }
}

impl AddAssign for Complex {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Complex {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self::new(self.re - other.re, self.im - other.im)
    }
}

impl Mul for Complex {
    type Output = Self;
    #[inline]
    fn mul(self, other: Self) -> Self {
        Self::new(
            self.re * other.re - self.im * other.im,
            self.re * other.im + self.im * other.re,
        )
    }
}
