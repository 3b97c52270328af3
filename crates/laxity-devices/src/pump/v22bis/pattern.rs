//! Recognises the two signals that are not scrambled, before there is timing or carrier.
//!
//! With two samples a symbol, ones turn by a right angle a symbol, so that a sample is the opposite
//! of that two symbols before; S1 repeats after two symbols, but not after one.

use crate::signal::Complex;

/// Half symbols compared.
const WINDOW: usize = 24;
const HISTORY: usize = WINDOW + 4;
/// Correlation, of one, from which a signal is taken for periodic.
const PERIODIC: f32 = 0.85;
/// Correlation over one symbol up to which a signal is not just a carrier; that of S1 is about a third.
const NOT_A_CARRIER: f32 = 0.7;

/// What is on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pattern {
    Silence,
    /// Ones that are not scrambled.
    Ones,
    S1,
    /// Scrambled bits, or a change between two of the others.
    Other,
}

#[derive(Debug, Clone, Default)]
pub(super) struct PatternDetector {
    history: [Complex; HISTORY],
    at: usize,
    carrier: bool,
}

impl PatternDetector {
    /// Half symbols until a change has filled half of the window.
    pub(super) const LAG: usize = 6;

    #[inline]
    pub(super) fn push(&mut self, sample: Complex) {
        self.at = (self.at + 1) % HISTORY;
        self.history[self.at] = sample;
    }

    /// Looks at the last 14 symbols. A carrier is there from mean power `on`, until it is below half of that.
    pub(super) fn pattern(&mut self, on: f32) -> Pattern {
        let ago = |n: usize| self.history[(self.at + HISTORY - n) % HISTORY];
        let (mut power, mut one, mut two) = (0.0, Complex::ZERO, Complex::ZERO);
        for n in 0..WINDOW {
            let x = ago(n);
            power += x.norm_sqr();
            one += x * ago(n + 2).conj();
            two += x * ago(n + 4).conj();
        }
        let threshold = if self.carrier { 0.5 * on } else { on };
        self.carrier = power >= threshold * WINDOW as f32;
        let periodic = PERIODIC * power;
        if !self.carrier {
            Pattern::Silence
        } else if two.re < -periodic && one.im < -periodic {
            Pattern::Ones
        } else if two.re > periodic
            && one.norm_sqr() < NOT_A_CARRIER * NOT_A_CARRIER * power * power
        {
            Pattern::S1
        } else {
            Pattern::Other
        }
    }
}
