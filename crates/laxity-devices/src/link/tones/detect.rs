//! Detectors.

use super::{ANSWER_HZ, DIAL_TONE_HZ, DTMF_COLUMNS_HZ, DTMF_KEYS, DTMF_ROWS_HZ, RINGING_HZ, peak};

/// The power of a signal at one frequency (Goertzel, *An algorithm for the evaluation of finite
/// trigonometric series*, 1958).
#[derive(Debug, Clone, Copy)]
struct Goertzel {
    coefficient: f64,
    last: f64,
    before: f64,
}

impl Goertzel {
    fn new(rate_hz: u32, frequency_hz: f64) -> Self {
        let angle = core::f64::consts::TAU * frequency_hz / f64::from(rate_hz.max(1));
        Self {
            coefficient: 2.0 * libm::cos(angle),
            last: 0.0,
            before: 0.0,
        }
    }

    fn push(&mut self, sample: f64) {
        let next = sample + self.coefficient * self.last - self.before;
        (self.before, self.last) = (self.last, next);
    }

    /// The share of a window's energy that a sine of this frequency explains; begins a new window.
    fn take_energy(&mut self, samples: u32) -> f64 {
        let (a, b) = (self.last, self.before);
        (self.last, self.before) = (0.0, 0.0);
        (a * a + b * b - self.coefficient * a * b) * 2.0 / f64::from(samples)
    }
}

/// Energies at some frequencies in one window after another.
#[derive(Debug, Clone)]
struct Bank<const N: usize> {
    goertzels: [Goertzel; N],
    window: u32,
    filled: u32,
    energy: f64,
}

/// What a [`Bank`] found in a window.
struct Found<const N: usize> {
    at: [f64; N],
    total: f64,
    mean_square: f64,
}

impl<const N: usize> Bank<N> {
    fn new(rate_hz: u32, frequencies_hz: [f64; N], window: u32, filled: u32) -> Self {
        let goertzels = frequencies_hz.map(|frequency| Goertzel::new(rate_hz, frequency));
        Self {
            goertzels,
            window,
            filled,
            energy: 0.0,
        }
    }

    fn push(&mut self, sample: f64) -> Option<Found<N>> {
        for goertzel in &mut self.goertzels {
            goertzel.push(sample);
        }
        self.energy += sample * sample;
        self.filled += 1;
        if self.filled < self.window {
            return None;
        }
        self.filled = 0;
        let total = core::mem::take(&mut self.energy);
        let window = self.window;
        let at = core::array::from_fn(|index| self.goertzels[index].take_energy(window));
        Some(Found {
            at,
            total,
            mean_square: total / f64::from(window),
        })
    }
}

/// How much of a window's energy the expected tones must explain: a window three fifths full of
/// them does it.
pub const TONE_SHARE: f64 = 0.6;

/// Windows in a row with a digit until it counts.
pub const DIGIT_WINDOWS: u32 = 4;
/// Windows in a row without a digit until it is over.
pub const PAUSE_WINDOWS: u32 = 3;

/// Hears dialled digits.
///
/// Windows of 12.75 ms overlap by half. A digit counts after four in a row: it takes 38.3 ms to be
/// sure to be heard, and below 21 ms it is not (ITU-T Q.24, annex A, asks for 40 and 20 to 24
/// ms). It ends with three windows without it, so that a gap of 10 ms does not make two of it. The
/// column may be up to 4 dB above the row and 8 dB below.
#[derive(Debug, Clone)]
pub(crate) struct DtmfDecoder {
    banks: [Bank<8>; 2],
    minimum: f64,
    candidate: Option<char>,
    run: u32,
    current: Option<char>,
    misses: u32,
}

impl DtmfDecoder {
    /// A decoder for samples at `rate_hz`, which should be at least 4000.
    #[must_use]
    pub(crate) fn new(rate_hz: u32) -> Self {
        let [a, b, c, d] = DTMF_ROWS_HZ;
        let [e, f, g, h] = DTMF_COLUMNS_HZ;
        let half = (rate_hz.min(1_000_000) * 51 / 8_000).max(1);
        let bank = |filled| Bank::new(rate_hz, [a, b, c, d, e, f, g, h], 2 * half, filled);
        let quietest = peak(-30.0);
        Self {
            banks: [bank(0), bank(half)],
            minimum: quietest * quietest / 2.0,
            candidate: None,
            run: 0,
            current: None,
            misses: 0,
        }
    }

    /// Takes samples, and gives the digits that were recognised in them.
    pub(crate) fn push(&mut self, samples: &[i16]) -> Vec<char> {
        let mut digits = Vec::new();
        for &sample in samples {
            let sample = f64::from(sample);
            for index in 0..self.banks.len() {
                if let Some(found) = self.banks[index].push(sample) {
                    let key = key(&found, self.minimum);
                    digits.extend(self.on_window(key));
                }
            }
        }
        digits
    }

    fn on_window(&mut self, key: Option<char>) -> Option<char> {
        self.run = if key == self.candidate {
            self.run.saturating_add(1)
        } else {
            1
        };
        self.candidate = key;
        if self.current.is_some() {
            self.misses = if key == self.current {
                0
            } else {
                self.misses + 1
            };
            if self.misses >= PAUSE_WINDOWS {
                self.current = None;
            }
        }
        if key.is_none() || key == self.current || self.run < DIGIT_WINDOWS {
            return None;
        }
        self.current = key;
        self.misses = 0;
        key
    }
}

fn key(found: &Found<8>, minimum: f64) -> Option<char> {
    let (rows, columns) = found.at.split_at(4);
    let (row, row_energy) = strongest(rows)?;
    let (column, column_energy) = strongest(columns)?;
    // 10^0.4 and 10^0.8: 4 and 8 dB.
    let twist_ok = column_energy <= row_energy * 2.512 && row_energy <= column_energy * 6.310;
    let clean = row_energy + column_energy >= found.total * TONE_SHARE;
    (found.mean_square >= minimum && twist_ok && clean).then_some(DTMF_KEYS[row][column])
}

/// The strongest of a group, if it is 6 dB above the others.
fn strongest(energies: &[f64]) -> Option<(usize, f64)> {
    let (best, &energy) = energies
        .iter()
        .enumerate()
        .max_by(|a, b| a.1.total_cmp(b.1))?;
    energies
        .iter()
        .enumerate()
        .all(|(index, &other)| index == best || other * 4.0 < energy)
        .then_some((best, energy))
}

/// Hears a tone of one or two frequencies once it has lasted, and until it is gone for two windows.
#[derive(Debug, Clone)]
pub(crate) struct ToneDetector {
    bank: Bank<2>,
    /// Whether there are two frequencies, each with a fair share.
    dual: bool,
    minimum: f64,
    windows: u32,
    run: u32,
    misses: u32,
    present: bool,
}

impl ToneDetector {
    fn new(rate_hz: u32, frequencies_hz: [f64; 2], window_ms: u32, windows: u32) -> Self {
        let window = (u64::from(rate_hz) * u64::from(window_ms) / 1_000).max(1);
        let quietest = peak(-40.0);
        Self {
            bank: Bank::new(
                rate_hz,
                frequencies_hz,
                u32::try_from(window).unwrap_or(u32::MAX),
                0,
            ),
            dual: frequencies_hz[1] > 0.0,
            minimum: quietest * quietest / 2.0,
            windows,
            run: 0,
            misses: 0,
            present: false,
        }
    }

    /// Hears the dial tone after 0.4 s.
    #[must_use]
    pub(crate) fn dial_tone(rate_hz: u32) -> Self {
        Self::new(rate_hz, DIAL_TONE_HZ, 50, 8)
    }

    /// Hears the ringing current after 0.3 s.
    #[must_use]
    pub(crate) fn ringing(rate_hz: u32) -> Self {
        Self::new(rate_hz, [RINGING_HZ, 0.0], 100, 3)
    }

    /// Hears the answer tone after 0.5 s.
    #[must_use]
    pub(crate) fn answer_tone(rate_hz: u32) -> Self {
        Self::new(rate_hz, [ANSWER_HZ, 0.0], 25, 20)
    }

    /// Takes samples, and tells whether the tone was heard in any of them.
    pub(crate) fn push(&mut self, samples: &[i16]) -> bool {
        let mut heard = self.present;
        for &sample in samples {
            if let Some(found) = self.bank.push(f64::from(sample)) {
                self.on_window(&found);
                heard |= self.present;
            }
        }
        heard
    }

    /// Whether the tone is heard now.
    pub(crate) fn is_present(&self) -> bool {
        self.present
    }

    fn on_window(&mut self, found: &Found<2>) {
        let [first, second] = found.at;
        let tones = if self.dual { first + second } else { first };
        let balanced = !self.dual || (first * 4.0 >= second && second * 4.0 >= first);
        if found.mean_square >= self.minimum && tones >= found.total * TONE_SHARE && balanced {
            self.misses = 0;
            self.run = self.run.saturating_add(1);
            self.present |= self.run >= self.windows;
        } else {
            self.misses = self.misses.saturating_add(1);
            if self.misses >= 2 {
                self.run = 0;
                self.present = false;
            }
        }
    }
}
