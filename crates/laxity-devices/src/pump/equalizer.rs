//! The two adaptive equalizers behind one interface: what a receiver does once per symbol.

use super::fir::{DelayLine, axpy, dot, dot2};
use super::normal::NormalEquations;
use super::training::Symbol;

/// A fractionally spaced equalizer with carrier recovery, trained by least squares from known
/// symbols, then adapted by the stochastic gradient of its own decisions.
pub trait Equalizer: Clone + Send {
    /// Samples per symbol.
    const SPACING: usize;
    /// Samples that follow the strongest echo of a symbol when the symbol is decided.
    const LOOK_AHEAD: usize;
    /// Symbols that must be known before a symbol for it to serve in training.
    const MEMORY: usize;
    /// Coordinates of a symbol.
    const DIMENSIONS: usize;
    /// Equations to train with.
    const EQUATIONS: usize;

    /// Takes the next sample.
    fn push(&mut self, sample: f32);
    /// Begins to train; the carrier turns by `carrier` radians a symbol beyond its nominal
    /// frequency.
    fn begin(&mut self, carrier: f64);
    /// Adds the equation of a known symbol (if `usable`), and steps on by one symbol.
    fn observe(&mut self, symbol: Symbol, usable: bool);
    /// Ends the training. False if the equations were not sufficient.
    fn solve(&mut self) -> bool;
    /// The current symbol as received, carrier removed.
    fn output(&mut self) -> Symbol;
    /// Takes the decision on the output and adapts. Returns an estimate, in symbols, by how much
    /// later this or the previous symbol should have been sampled.
    fn adapt(&mut self, decision: Symbol, output: Symbol) -> f32;
}

const RIDGE: f64 = 1e-7;

/// Downstream: T/2-spaced feed-forward filter and decision feedback, all real.
#[derive(Debug, Clone)]
pub struct PamEqualizer {
    line: DelayLine,
    forward: Vec<f32>,
    feedback: Vec<f32>,
    decisions: DelayLine,
    equations: NormalEquations,
    /// Forward output half a symbol before the current and the previous symbol.
    halves: [f32; 2],
    /// Error of the previous symbol.
    error: f32,
}

impl PamEqualizer {
    const FORWARD: usize = 128;
    const FEEDBACK: usize = 96;
    /// Step of the gradient; with 224 coefficients of unit power, 1/90 of the largest stable one.
    const STEP: f32 = 1.0e-4;

    pub(crate) fn new() -> Self {
        Self {
            line: DelayLine::new(Self::FORWARD + 1),
            forward: vec![0.0; Self::FORWARD],
            feedback: vec![0.0; Self::FEEDBACK],
            decisions: DelayLine::new(Self::FEEDBACK),
            equations: NormalEquations::default(),
            halves: [0.0; 2],
            error: 0.0,
        }
    }
}

impl Equalizer for PamEqualizer {
    const SPACING: usize = 2;
    const LOOK_AHEAD: usize = 96;
    const MEMORY: usize = Self::FEEDBACK;
    const DIMENSIONS: usize = 1;
    const EQUATIONS: usize = 2400;

    #[inline]
    fn push(&mut self, sample: f32) {
        self.line.push(sample);
    }

    fn begin(&mut self, _: f64) {
        self.equations.begin(Self::FORWARD + Self::FEEDBACK);
        (self.halves, self.error) = ([0.0; 2], 0.0);
    }

    fn observe(&mut self, symbol: Symbol, usable: bool) {
        if usable {
            let window = self.line.window(Self::FORWARD, 0);
            let past = self.decisions.window(Self::FEEDBACK, 0);
            self.equations.add([window, past], [symbol[0], 0.0]);
        }
        self.decisions.push(symbol[0]);
    }

    fn solve(&mut self) -> bool {
        let solution = self.equations.solve(RIDGE);
        self.equations.clear();
        let Some([weights, _]) = solution else {
            return false;
        };
        self.forward.copy_from_slice(&weights[..Self::FORWARD]);
        self.feedback.copy_from_slice(&weights[Self::FORWARD..]);
        true
    }

    #[inline]
    fn output(&mut self) -> Symbol {
        let windows = [0, 1].map(|back| self.line.window(Self::FORWARD, back));
        let [forward, half] = dot2(windows, &self.forward);
        self.halves = [half, self.halves[0]];
        [
            forward + dot(&self.feedback, self.decisions.window(Self::FEEDBACK, 0)),
            0.0,
        ]
    }

    #[inline]
    fn adapt(&mut self, decision: Symbol, output: Symbol) -> f32 {
        // The slope of the forward filter's output at the previous symbol, from the outputs half a
        // symbol before and after it.
        let late = self.error * (self.halves[0] - self.halves[1]);
        let error = decision[0] - output[0];
        self.error = error;
        let gain = Self::STEP * error;
        axpy(gain, self.line.window(Self::FORWARD, 0), &mut self.forward);
        axpy(
            gain,
            self.decisions.window(Self::FEEDBACK, 0),
            &mut self.feedback,
        );
        self.decisions.push(decision[0]);
        // The mean square slope of a signal of unit power that fills its band is π²/3.
        late * (3.0 / (core::f32::consts::PI * core::f32::consts::PI))
    }
}

/// Upstream: T/3-spaced, real samples of the passband and complex coefficients, so that it also
/// selects the signal's positive frequencies, and a carrier loop of second order behind it.
#[derive(Debug, Clone)]
pub struct QamEqualizer {
    line: DelayLine,
    re: Vec<f32>,
    im: Vec<f32>,
    equations: NormalEquations,
    /// The carrier at the current symbol.
    phasor: [f32; 2],
    /// Radians per symbol beyond the nominal carrier.
    frequency: f32,
}

/// Upstream carrier in cycles per symbol: 1920 Hz at 3200 symbols/s.
pub(crate) const CARRIER: f64 = 0.6;

#[inline]
fn multiply(a: Symbol, b: Symbol) -> Symbol {
    [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
}

#[inline]
fn conjugate(a: Symbol) -> Symbol {
    [a[0], -a[1]]
}

impl QamEqualizer {
    const TAPS: usize = 96;
    const STEP: f32 = 2.0e-4;
    /// Cosine and sine of 0.6 and of 0.2 cycles: the carrier's turn in one symbol and one sample.
    const PER_SYMBOL: Symbol = [-0.809_017, -0.587_785_25];
    const PER_SAMPLE: Symbol = [0.309_017, 0.951_056_5];

    pub(crate) fn new() -> Self {
        Self {
            line: DelayLine::new(Self::TAPS + 2),
            re: vec![0.0; Self::TAPS],
            im: vec![0.0; Self::TAPS],
            equations: NormalEquations::default(),
            phasor: [1.0, 0.0],
            frequency: 0.0,
        }
    }

    #[inline]
    fn passband(&self, back: usize) -> Symbol {
        let window = self.line.window(Self::TAPS, back);
        dot2([&self.re, &self.im], window)
    }

    /// Turns the carrier on by one symbol and `extra` radians.
    #[inline]
    fn turn(&mut self, extra: f32) {
        let angle = self.frequency + extra;
        let small = [1.0 - 0.5 * angle * angle, angle];
        let next = multiply(multiply(self.phasor, Self::PER_SYMBOL), small);
        let grow = 1.5 - 0.5 * (next[0] * next[0] + next[1] * next[1]);
        self.phasor = next.map(|v| v * grow);
    }
}

impl Equalizer for QamEqualizer {
    const SPACING: usize = 3;
    const LOOK_AHEAD: usize = 50;
    const MEMORY: usize = 0;
    const DIMENSIONS: usize = 2;
    const EQUATIONS: usize = 1000;

    #[inline]
    fn push(&mut self, sample: f32) {
        self.line.push(sample);
    }

    fn begin(&mut self, carrier: f64) {
        self.equations.begin(Self::TAPS);
        self.phasor = [1.0, 0.0];
        self.frequency = carrier as f32;
    }

    fn observe(&mut self, symbol: Symbol, usable: bool) {
        if usable {
            let target = multiply(symbol, self.phasor);
            self.equations
                .add([self.line.window(Self::TAPS, 1), &[]], target);
        }
        self.turn(0.0);
    }

    fn solve(&mut self) -> bool {
        let solution = self.equations.solve(RIDGE);
        self.equations.clear();
        let Some([re, im]) = solution else {
            return false;
        };
        (self.re, self.im) = (re, im);
        true
    }

    #[inline]
    fn output(&mut self) -> Symbol {
        multiply(self.passband(1), conjugate(self.phasor))
    }

    #[inline]
    fn adapt(&mut self, decision: Symbol, output: Symbol) -> f32 {
        let error = [decision[0] - output[0], decision[1] - output[1]];
        // A third of a symbol later and earlier, each with its own carrier removed.
        let carrier = conjugate(self.phasor);
        let after = multiply(
            multiply(self.passband(0), carrier),
            conjugate(Self::PER_SAMPLE),
        );
        let before = multiply(multiply(self.passband(2), carrier), Self::PER_SAMPLE);
        let late = error[0] * (after[0] - before[0]) + error[1] * (after[1] - before[1]);
        let turned = multiply(error, self.phasor);
        let window = self.line.window(Self::TAPS, 1);
        axpy(Self::STEP * turned[0], window, &mut self.re);
        axpy(Self::STEP * turned[1], window, &mut self.im);
        // An output ahead of its decision means that the phasor lags.
        let lag = multiply(output, conjugate(decision))[1] * 0.5;
        self.frequency += CARRIER_INTEGRAL * lag;
        self.turn(CARRIER_GAIN * lag);
        // Slope over 2/3 of a symbol, two coordinates.
        late * (1.5 * 0.5 * 3.0 / (core::f32::consts::PI * core::f32::consts::PI))
    }
}

const CARRIER_GAIN: f32 = 0.02;
const CARRIER_INTEGRAL: f32 = 1e-4;
