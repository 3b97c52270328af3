//! How good a signal is, and from when on it is so bad that a modem trains again.

/// Exponential means of what the slicer sees.
#[derive(Debug, Clone)]
pub(super) struct Quality {
    pub(super) weight: f32,
    /// Mean square error of a coordinate.
    pub(super) error: f32,
    /// Mean square of a coordinate.
    pub(super) power: f32,
}

impl Quality {
    pub(super) fn update(&mut self, error: f32, power: f32) {
        self.error += self.weight * (error - self.error);
        self.power += self.weight * (power - self.power);
    }

    pub(super) fn snr_db(&self) -> f32 {
        10.0 * libm::log10f(self.power / self.error.max(1e-12))
    }
}

/// Watches for what error-free data never contains.
///
/// A burst can leave a receiver in a state that is wrong for good and looks clean: the channel
/// passes no direct current, so decisions that are all one level off confirm themselves through
/// the feedback filter, and so does a carrier a quarter turn off. Then outputs lie beyond the
/// outermost level, or blocks write numbers that no transmitter sends: many a second.
#[derive(Debug, Clone, Default)]
pub(super) struct Suspicion {
    /// Symbols left of this window of 16 ms.
    left: u32,
    impossible: bool,
    /// Windows with something impossible, each a fifth less with every window since: 5 at most.
    windows: f32,
}

/// More windows of 16 ms than this that hold something impossible, and a modem trains again: a burst spoils a window or two; this many take about 100 ms.
pub const SUSPICIOUS_WINDOWS: f32 = 2.5;

impl Suspicion {
    #[inline]
    pub(super) fn update(&mut self, impossible: bool, window: u32) -> bool {
        self.impossible |= impossible;
        if self.left > 0 {
            self.left -= 1;
            return false;
        }
        self.windows = 0.8 * self.windows + if self.impossible { 1.0 } else { 0.0 };
        (self.left, self.impossible) = (window, false);
        self.windows > SUSPICIOUS_WINDOWS
    }
}

/// Above this mean square error, in half level spacings, decisions are as good as random: those
/// come to 1/3, error-free data stays under 0.05.
pub const RANDOM_ERROR: f32 = 0.15;
/// Outside of this mean power the signal is not the one that was agreed on; that has 1.
pub const AGREED_POWER: core::ops::Range<f32> = 0.5..2.0;
/// Symbols near two levels that prove that the other end trains: chance is under 0.25 each.
pub const TWO_LEVEL_RUN: u32 = 48;
