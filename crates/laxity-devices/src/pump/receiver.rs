//! A receiver from samples to bits: search, training, frames, data.

use super::acquire::{Acquisition, Found};
use super::equalizer::{CARRIER, Equalizer, PamEqualizer, QamEqualizer};
use super::mapper::{Code, DOWN_CODES, Levels, MAX_COORDINATES, UP_CODES, value};
use super::quality::{AGREED_POWER, Quality, RANDOM_ERROR, Suspicion, TWO_LEVEL_RUN};
use super::resample::Resampler;
use super::scrambler::{Polynomial, Scrambler};
use super::training::{Message, Superframe, Symbol};
use crate::bits::BitSink;

/// What a receiver noticed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Event {
    /// Trained; this is the slicer's signal-to-noise ratio in dB.
    Trained(f32),
    /// The other end's message. Data follows at once if it is the last.
    Frame(Message),
    /// The signal went bad.
    Degraded,
    /// In the midst of data, the other end trains.
    PeerTrains,
}

/// The constants of a direction.
#[derive(Debug, Clone)]
pub(crate) struct Direction {
    pub(crate) superframe: Superframe,
    pub(crate) codes: &'static [Code],
    /// Coordinates in a block of bits.
    pub(crate) coordinates: usize,
    pub(crate) polynomial: Polynomial,
}

impl Direction {
    pub(crate) fn down() -> Self {
        Self {
            superframe: Superframe::new(1024, 1, 0xD0_3A11),
            codes: &DOWN_CODES,
            coordinates: 6,
            polynomial: Polynomial::Downstream,
        }
    }

    pub(crate) fn up() -> Self {
        Self {
            superframe: Superframe::new(400, 2, 0x0B_3A11),
            codes: &UP_CODES,
            coordinates: 8,
            polynomial: Polynomial::Upstream,
        }
    }

    /// The code of a rate, numbered from 1.
    pub(crate) fn code(&self, rate: u8) -> Option<Code> {
        self.codes.get(usize::from(rate).checked_sub(1)?).copied()
    }

    /// The first block of data in this code.
    pub(crate) fn block(&self, code: Code) -> Block {
        Block {
            code,
            levels: Levels::new(code.levels),
            digits: [0; MAX_COORDINATES],
            at: 0,
            scrambler: Scrambler::new(self.polynomial),
        }
    }
}

/// The coordinates of a block of data, which an end sends or has received one by one.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub(crate) code: Code,
    pub(crate) levels: Levels,
    pub(crate) digits: [u16; MAX_COORDINATES],
    /// The next of them.
    pub(crate) at: usize,
    pub(crate) scrambler: Scrambler,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    Off,
    Search,
    /// Least squares on the known part; the index of the next symbol in its superframe, symbols
    /// until equations count, and equations still wanted.
    Fit {
        index: usize,
        skip: usize,
        wanted: usize,
    },
    /// Frames on two levels; symbols until the receiver counts as trained.
    Frames {
        settling: usize,
    },
    Data,
}

/// One direction's receiver. Cheap to clone in data mode: a clone taken then goes on by itself,
/// with its own equalizer, loops and descrambler.
#[derive(Debug, Clone)]
pub struct Receiver<E> {
    direction: Direction,
    resampler: Resampler,
    nominal_step: f64,
    nominal_gain: f32,
    gain: f32,
    stage: Stage,
    acquisition: Acquisition,
    equalizer: E,
    /// Samples until the next symbol.
    countdown: usize,
    quality: Quality,
    block: Block,
    /// The last bits of the line while frames are expected.
    frame_bits: u64,
    /// Symbols since the last frame.
    unheard: usize,
    /// Symbols in a row near two levels while data is expected.
    run: u32,
    suspicion: Suspicion,
    /// Whether a training that falls short of the fastest rate is repeated.
    again: bool,
}

/// The near end's receiver: the card's 16 kHz samples to at most 50,667 bit/s.
pub type PamReceiver = Receiver<PamEqualizer>;
/// The far end's receiver: the network's 8 kHz samples to at most 31,200 bit/s.
pub(super) type QamReceiver = Receiver<QamEqualizer>;

impl PamReceiver {
    /// A receiver that ignores its input until it is started.
    pub(crate) fn new() -> Self {
        let resampler = Resampler::new(16, 1.0, 8.0, 1.0);
        Self::with(
            Direction::down(),
            PamEqualizer::new(),
            resampler,
            0.0,
            1.0 / 4000.0,
        )
    }

    /// Takes samples of the card, in blocks of any length, and gives the decided bits to `sink`.
    /// About 11 µs per 200 samples in data mode, without allocation; up to 0.8 ms in training,
    /// which allocates.
    pub fn process(&mut self, samples: &[i16], sink: &mut dyn BitSink) {
        for sample in samples {
            self.push(f32::from(*sample), sink);
        }
    }
}

impl QamReceiver {
    /// A receiver that ignores its input until it is started.
    pub(crate) fn new() -> Self {
        // From 8000 to 9600 samples/s; a narrow transition, because the signal reaches 3.7 kHz.
        let resampler = Resampler::new(48, 1.0, 6.0, 8000.0 / 9600.0);
        Self::with(
            Direction::up(),
            QamEqualizer::new(),
            resampler,
            CARRIER,
            1.0,
        )
    }
}

impl<E: Equalizer> Receiver<E> {
    fn with(
        direction: Direction,
        equalizer: E,
        resampler: Resampler,
        carrier: f64,
        gain: f32,
    ) -> Self {
        Self {
            acquisition: Acquisition::new(direction.superframe.clone(), E::SPACING, carrier),
            block: direction.block(direction.codes[0]),
            direction,
            nominal_step: resampler.step(),
            resampler,
            nominal_gain: gain,
            gain,
            stage: Stage::Off,
            equalizer,
            countdown: E::SPACING,
            quality: Quality {
                weight: 1.0,
                error: 1.0,
                power: 1.0,
            },
            frame_bits: 0,
            unheard: 0,
            run: 0,
            suspicion: Suspicion::default(),
            again: false,
        }
    }

    /// Searches for the training signal, from nothing.
    pub(crate) fn start(&mut self) {
        self.again = true;
        self.search();
    }

    fn search(&mut self) {
        self.resampler.set_step(self.nominal_step);
        self.gain = self.nominal_gain;
        self.acquisition.restart();
        self.stage = Stage::Search;
    }

    /// Ignores what comes.
    pub(crate) fn stop(&mut self) {
        self.stage = Stage::Off;
    }

    /// By how much the sender's clock is faster than this receiver's, in parts per million, as far
    /// as known.
    pub fn clock_ppm(&self) -> f64 {
        (self.nominal_step / self.resampler.step() - 1.0) * 1e6
    }

    /// Takes one sample at the receiver's own rate.
    #[inline]
    pub(crate) fn push(&mut self, sample: f32, sink: &mut dyn BitSink) -> Option<Event> {
        if self.stage == Stage::Off {
            return None;
        }
        let mut event = None;
        self.resampler.push(sample * self.gain);
        while let Some(sample) = self.resampler.next() {
            self.equalizer.push(sample);
            if self.stage == Stage::Search {
                if let Some(found) = self.acquisition.push(sample) {
                    self.begin_fit(found);
                }
                continue;
            }
            self.countdown -= 1;
            if self.countdown == 0 {
                self.countdown = E::SPACING;
                event = self.symbol(sink).or(event);
            }
        }
        event
    }

    fn begin_fit(&mut self, found: Found) {
        self.resampler.set_step(self.resampler.step() * found.step);
        self.gain /= found.rms;
        self.equalizer.begin(found.carrier);
        // Symbol k is decided LOOK_AHEAD samples after its echo; `age` counts the newest sample.
        let next = (found.age - 1).saturating_sub(E::LOOK_AHEAD) / E::SPACING + 1;
        self.countdown = next * E::SPACING + E::LOOK_AHEAD - (found.age - 1);
        self.stage = Stage::Fit {
            index: next % self.direction.superframe.period(),
            // The filter's memory still holds samples of another gain and step.
            skip: 96,
            wanted: E::EQUATIONS,
        };
    }

    fn symbol(&mut self, sink: &mut dyn BitSink) -> Option<Event> {
        match self.stage {
            Stage::Fit {
                index,
                skip,
                wanted,
            } => {
                self.fit(index, skip, wanted);
                None
            }
            Stage::Frames { settling } => self.frames(settling),
            Stage::Data => self.data(sink),
            Stage::Off | Stage::Search => None,
        }
    }

    fn fit(&mut self, index: usize, skip: usize, wanted: usize) {
        let known = &self.direction.superframe.known;
        let symbol = known.get(index).copied().unwrap_or_default();
        let usable = skip == 0 && index >= E::MEMORY && index < known.len();
        self.equalizer.observe(symbol, usable);
        let wanted = wanted - usize::from(usable);
        if wanted > 0 {
            let index = (index + 1) % self.direction.superframe.period();
            self.stage = Stage::Fit {
                index,
                skip: skip.saturating_sub(1),
                wanted,
            };
        } else if self.equalizer.solve() {
            let settling = 800 / (E::DIMENSIONS * E::DIMENSIONS);
            // The first errors count fully, then ever less.
            self.quality = Quality {
                weight: 1.0,
                error: 0.0,
                power: 1.0,
            };
            self.frame_bits = 0;
            self.unheard = 0;
            self.stage = Stage::Frames { settling };
        } else {
            self.search();
        }
    }

    fn frames(&mut self, settling: usize) -> Option<Event> {
        let output = self.equalizer.output();
        let decision = [
            1.0_f32.copysign(output[0]),
            if E::DIMENSIONS == 2 {
                1.0_f32.copysign(output[1])
            } else {
                0.0
            },
        ];
        self.track(decision, output, 1.0);
        self.quality.weight = (self.quality.weight / (1.0 + self.quality.weight)).max(Self::WEIGHT);
        for coordinate in &decision[..E::DIMENSIONS] {
            self.frame_bits = self.frame_bits << 1 | u64::from(*coordinate > 0.0);
        }
        self.unheard += 1;
        // Lost samples may also turn the carrier by a quarter: clean symbols, but never a frame.
        let deaf = self.unheard > 2 * self.direction.superframe.period();
        let unclean = self.quality.snr_db() < 8.0 && self.quality.weight < 0.02;
        if deaf || unclean {
            self.search();
            return Some(Event::Degraded);
        }
        if settling > 0 {
            self.stage = Stage::Frames {
                settling: settling - 1,
            };
            if settling == 1 {
                return self.settled();
            }
        }
        let message = Message::decode(self.frame_bits & 0xFFFF_FFFF_FFFF)?;
        self.unheard = 0;
        if message.last
            && let Some(code) = self.direction.code(message.heard)
        {
            self.begin_data(code);
        }
        Some(Event::Frame(message))
    }

    /// Training is done. Samples lost in its midst spoil it, and the rate would stay low for the
    /// whole call: where the fastest is not within reach, it takes a second look.
    fn settled(&mut self) -> Option<Event> {
        let snr_db = self.quality.snr_db();
        if self.again && snr_db < self.direction.codes[0].required_snr_db() {
            self.again = false;
            self.search();
            return None;
        }
        Some(Event::Trained(snr_db))
    }

    fn begin_data(&mut self, code: Code) {
        self.block = self.direction.block(code);
        self.run = 0;
        self.suspicion = Suspicion::default();
        self.stage = Stage::Data;
    }

    fn data(&mut self, sink: &mut dyn BitSink) -> Option<Event> {
        let output = self.equalizer.output();
        let mut decision = [0.0; 2];
        let mut two_level = true;
        let half = self.block.levels.half_spacing();
        let mut impossible = false;
        for dimension in 0..E::DIMENSIONS {
            let digit = self.block.levels.slice(output[dimension]);
            decision[dimension] = self.block.levels.amplitude(digit);
            self.block.digits[self.block.at] = digit;
            self.block.at += 1;
            two_level &= (output[dimension].abs() - 1.0).abs() < 0.15;
            impossible |= (output[dimension] - decision[dimension]).abs() > 1.05 * half;
        }
        self.track(decision, output, half);
        if self.block.at == self.direction.coordinates {
            self.block.at = 0;
            let digits = &self.block.digits[..self.direction.coordinates];
            let bits = value(self.block.code, digits);
            impossible |= bits.is_none();
            let bits = bits.unwrap_or_default();
            for bit in 0..self.block.code.bits {
                sink.push_bit(self.block.scrambler.descramble(bits >> bit & 1 == 1));
            }
        }
        self.run = if two_level { self.run + 1 } else { 0 };
        if self.run == TWO_LEVEL_RUN {
            return Some(Event::PeerTrains);
        }
        let bad = self.quality.error > RANDOM_ERROR * half * half
            || !AGREED_POWER.contains(&self.quality.power)
            || self.suspicion.update(impossible, Self::WINDOW);
        bad.then_some(Event::Degraded)
    }

    /// Symbols in 16 ms.
    const WINDOW: u32 = if E::DIMENSIONS == 1 { 128 } else { 51 };
    /// Weight of a symbol in the running means: 64 ms.
    const WEIGHT: f32 = if E::DIMENSIONS == 1 {
        1.0 / 512.0
    } else {
        1.0 / 205.0
    };

    /// Adapts equalizer, clock and quality to a decision among levels `half` of whose spacing is
    /// given.
    #[inline]
    fn track(&mut self, decision: Symbol, mut output: Symbol, half: f32) {
        let (mut error, mut power) = (0.0, 0.0);
        for (output, decision) in output.iter_mut().zip(&decision).take(E::DIMENSIONS) {
            // Only garbage lies further out; it must not tear the coefficients away.
            let difference = (*output - decision).clamp(-half, half);
            *output = decision + difference;
            error += difference * difference;
            power += decision * decision;
        }
        let share = 1.0 / E::DIMENSIONS as f32;
        self.quality.update(error * share, power * share);
        let late = f64::from(self.equalizer.adapt(decision, output));
        // In input samples per symbol.
        let symbol = self.nominal_step * E::SPACING as f64;
        self.resampler.shift(TIMING_GAIN * late * symbol);
        // Never further than any two clocks can be apart.
        let step = self.resampler.step() / self.nominal_step + TIMING_INTEGRAL * late;
        self.resampler
            .set_step(self.nominal_step * step.clamp(1.0 - 1e-3, 1.0 + 1e-3));
    }
}

const TIMING_GAIN: f64 = 4e-3;
const TIMING_INTEGRAL: f64 = 4e-6;
