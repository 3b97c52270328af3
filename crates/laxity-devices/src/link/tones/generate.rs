//! Generators.

use laxity_model::Span;

use super::{
    ANSWER_HZ, BUSY_HZ, DIAL_TONE_HZ, DTMF_COLUMNS_HZ, DTMF_KEYS, DTMF_ROWS_HZ, RINGBACK_HZ, peak,
};

/// A sine, made by rotating a vector by one step a sample.
#[derive(Debug, Clone, Copy)]
struct Oscillator {
    position: (f64, f64),
    step: (f64, f64),
}

impl Oscillator {
    fn new(rate_hz: u32, frequency_hz: f64, peak: f64) -> Self {
        let angle = core::f64::consts::TAU * frequency_hz / f64::from(rate_hz.max(1));
        // Rounding moves the peak by less than 1e-9 in an hour: no need to correct it.
        Self {
            position: (peak, 0.0),
            step: (libm::cos(angle), libm::sin(angle)),
        }
    }

    fn next(&mut self) -> f64 {
        let ((x, y), (cos, sin)) = (self.position, self.step);
        self.position = (x * cos - y * sin, x * sin + y * cos);
        y
    }
}

/// A piece of a sequence: up to two sines, or silence.
#[derive(Debug, Clone)]
struct Segment {
    oscillators: Vec<Oscillator>,
    samples: u64,
}

/// Tones and pauses, one after another: once, or again and again.
///
/// Phases go on from block to block, so it does not matter how a signal is cut.
#[derive(Debug, Clone)]
pub(crate) struct Generator {
    rate_hz: u32,
    segments: Vec<Segment>,
    repeats: bool,
    index: usize,
    /// Samples of the current segment already out.
    position: u64,
}

impl Generator {
    fn sequence(rate_hz: u32, repeats: bool) -> Self {
        Self {
            rate_hz,
            segments: Vec::new(),
            repeats,
            index: 0,
            position: 0,
        }
    }

    fn then(mut self, frequencies_hz: &[f64], level_dbm0: f64, span: Span) -> Self {
        let peak = peak(level_dbm0);
        let oscillators = frequencies_hz
            .iter()
            .map(|&frequency| Oscillator::new(self.rate_hz, frequency, peak))
            .collect();
        let samples = u128::from(span.as_nanos()) * u128::from(self.rate_hz) / 1_000_000_000;
        self.segments.push(Segment {
            oscillators,
            samples: u64::try_from(samples).unwrap_or(u64::MAX),
        });
        self
    }

    /// Sines that do not end, each of the given level.
    #[must_use]
    pub(crate) fn tones(rate_hz: u32, frequencies_hz: &[f64], level_dbm0: f64) -> Self {
        Self::sequence(rate_hz, false).then(frequencies_hz, level_dbm0, Span::from_nanos(u64::MAX))
    }

    /// The exchange listens: 350 and 440 Hz of −13 dBm0 each, without end.
    #[must_use]
    pub(crate) fn dial_tone(rate_hz: u32) -> Self {
        Self::tones(rate_hz, &DIAL_TONE_HZ, -13.0)
    }

    /// The other side's telephone rings: 440 and 480 Hz of −19 dBm0 each, 2 s in 6.
    #[must_use]
    pub(crate) fn ringback(rate_hz: u32) -> Self {
        Self::cadence(rate_hz, &RINGBACK_HZ, -19.0, [2_000, 4_000])
    }

    /// The other side is engaged: 480 and 620 Hz of −24 dBm0 each, 0.5 s in 1.
    #[must_use]
    pub(crate) fn busy(rate_hz: u32) -> Self {
        Self::cadence(rate_hz, &BUSY_HZ, -24.0, [500; 2])
    }

    /// The called modem answers: 2100 Hz of −12 dBm0 (ITU-T V.25), without end.
    #[must_use]
    pub(crate) fn answer_tone(rate_hz: u32) -> Self {
        Self::tones(rate_hz, &[ANSWER_HZ], -12.0)
    }

    /// The digits of a number, each `digit` long and followed by as long a silence: −8 dBm0 the rows, as much the columns.
    #[must_use]
    pub(crate) fn dial(rate_hz: u32, number: &str, digit: Span) -> Self {
        let pairs = number.chars().filter_map(frequencies);
        pairs.fold(Self::sequence(rate_hz, false), |sequence, pair| {
            sequence.then(&pair, -8.0, digit).then(&[], 0.0, digit)
        })
    }

    fn cadence(rate_hz: u32, frequencies_hz: &[f64], level_dbm0: f64, on_off_ms: [u64; 2]) -> Self {
        let [on, off] = on_off_ms.map(Span::from_millis);
        Self::sequence(rate_hz, true)
            .then(frequencies_hz, level_dbm0, on)
            .then(&[], 0.0, off)
    }

    /// Whether only silence is to come.
    pub(crate) fn is_finished(&self) -> bool {
        self.index == self.segments.len()
    }

    /// Writes the next samples; silence after the end.
    pub(crate) fn fill(&mut self, block: &mut [i16]) {
        for sample in block {
            *sample = self.next();
        }
    }

    fn next(&mut self) -> i16 {
        // A sequence in which every segment is empty has none to stop at: look at each once.
        for _ in 0..=self.segments.len() {
            let Some(segment) = self.segments.get_mut(self.index) else {
                return 0;
            };
            if self.position < segment.samples {
                self.position += 1;
                let sum: f64 = segment.oscillators.iter_mut().map(Oscillator::next).sum();
                // A conversion from floating point stops at the ends of the range.
                return sum as i16;
            }
            self.position = 0;
            self.index += 1;
            if self.repeats && self.index == self.segments.len() {
                self.index = 0;
            }
        }
        0
    }
}

fn frequencies(digit: char) -> Option<[f64; 2]> {
    DTMF_KEYS.iter().zip(DTMF_ROWS_HZ).find_map(|(keys, row)| {
        let column = keys.iter().position(|&key| key == digit)?;
        Some([row, DTMF_COLUMNS_HZ[column]])
    })
}
