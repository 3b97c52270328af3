//! What an end sends, symbol by symbol, and the QAM modulator that shapes it for the card.

use core::f64::consts::TAU;

use super::fir::{DelayLine, dot};
use super::handshake::PumpState;
use super::line::{CARD_RMS, round};
use super::mapper::{Code, DOWN_CODES, UP_CODES, digits};
use super::receiver::{Block, Direction};
use super::training::{Message, Symbol};
use crate::bits::BitSource;
use crate::signal::root_raised_cosine;

/// What the handshake wants to be sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Want {
    Silence,
    /// Superframes, for a receiver that is not trained.
    Superframes,
    /// Frames only.
    Frames,
    Data,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    Silence,
    /// Symbol of the known part.
    Known(usize),
    /// Symbol of a frame.
    Frame(usize),
    Data,
}

/// The source of symbols of one direction.
#[derive(Debug, Clone)]
pub(crate) struct Transmitter {
    direction: Direction,
    mode: Mode,
    frame: u64,
    block: Block,
    /// The rate that follows the frame being sent.
    then: Option<u8>,
}

impl Transmitter {
    pub(crate) fn new(direction: Direction) -> Self {
        Self {
            mode: Mode::Silence,
            frame: 0,
            block: direction.block(direction.codes[0]),
            then: None,
            direction,
        }
    }

    /// The next symbol. `message` is what a frame that begins now says; the rate is returned when
    /// data at that rate begins with the next symbol.
    pub(crate) fn next(
        &mut self,
        want: Want,
        message: Message,
        source: &mut dyn BitSource,
    ) -> (Symbol, Option<u8>) {
        self.mode = match (want, self.mode) {
            (Want::Silence, _) => Mode::Silence,
            (Want::Superframes, Mode::Silence | Mode::Data) => Mode::Known(0),
            (Want::Frames, Mode::Silence | Mode::Data | Mode::Known(_)) => Mode::Frame(0),
            (_, mode) => mode,
        };
        match self.mode {
            Mode::Silence => ([0.0; 2], None),
            Mode::Known(index) => {
                let known = &self.direction.superframe.known;
                self.mode = if index + 1 < known.len() {
                    Mode::Known(index + 1)
                } else {
                    Mode::Frame(0)
                };
                (known[index], None)
            }
            Mode::Frame(index) => self.frame_symbol(index, want, message),
            Mode::Data => (self.data_symbol(source), None),
        }
    }

    fn frame_symbol(&mut self, index: usize, want: Want, message: Message) -> (Symbol, Option<u8>) {
        if index == 0 {
            self.frame = message.encode();
            self.then = message.last.then_some(message.heard);
        }
        let symbol = self.direction.superframe.frame_symbol(self.frame, index);
        let mut started = None;
        self.mode = if index + 1 < self.direction.superframe.frame_symbols() {
            Mode::Frame(index + 1)
        } else if let Some((rate, code)) = self
            .then
            .and_then(|rate| Some((rate, self.direction.code(rate)?)))
        {
            self.block = self.direction.block(code);
            started = Some(rate);
            Mode::Data
        } else if want == Want::Superframes {
            Mode::Known(0)
        } else {
            Mode::Frame(0)
        };
        (symbol, started)
    }

    fn data_symbol(&mut self, source: &mut dyn BitSource) -> Symbol {
        let block = &mut self.block;
        if block.at == 0 {
            let bits = (0..block.code.bits).fold(0, |bits, i| {
                bits | u64::from(block.scrambler.scramble(source.next_bit())) << i
            });
            block.digits = digits(block.code, bits);
        }
        let mut symbol = [0.0; 2];
        for coordinate in &mut symbol[..self.direction.superframe.dimensions] {
            *coordinate = block.levels.amplitude(block.digits[block.at]);
            block.at = (block.at + 1) % self.direction.coordinates;
        }
        symbol
    }
}

/// Symbols to samples, at one end of a line.
pub trait Modulator: Clone + Send {
    /// A sample that this end sends or receives.
    type Sample: Copy + Into<f32>;

    /// The next value to send; takes a symbol from `next` when it needs one.
    fn sample(&mut self, next: impl FnMut() -> Symbol) -> f32;

    /// The sample of a value to send.
    fn sent(value: f32) -> Self::Sample;

    /// Data at the rates that this end sends and receives, numbered from 1.
    fn rates(sent: u8, received: u8) -> PumpState;
}

/// Bits per second of a rate numbered from 1.
fn bit_rate(codes: &[Code], rate: u8, blocks_per_3_seconds: u32) -> u32 {
    let code = usize::from(rate).checked_sub(1).and_then(|i| codes.get(i));
    (code.map_or(0, |code| u32::from(code.bits)) * blocks_per_3_seconds + 1) / 3
}

fn data(down: u8, up: u8) -> PumpState {
    PumpState::Data {
        down_rate: bit_rate(&DOWN_CODES, down, 4000),
        up_rate: bit_rate(&UP_CODES, up, 2400),
    }
}

/// Downstream, the network takes the levels as they are, one a sample.
#[derive(Debug, Clone)]
pub struct PamModulator;

impl Modulator for PamModulator {
    type Sample = f32;

    fn sample(&mut self, mut next: impl FnMut() -> Symbol) -> f32 {
        next()[0]
    }

    fn sent(value: f32) -> f32 {
        value
    }

    fn rates(sent: u8, received: u8) -> PumpState {
        data(sent, received)
    }
}

/// 3200 symbols/s on a carrier of 1920 Hz, five samples a symbol at 16 kHz, root raised cosine.
#[derive(Debug, Clone)]
pub struct QamModulator {
    re: DelayLine,
    im: DelayLine,
    /// In-phase and quadrature pulse for each of a symbol's samples.
    pulses: Vec<[Vec<f32>; 2]>,
    phase: usize,
    /// Symbols so far, modulo the five after which the carrier repeats.
    turn: usize,
    turns: [Symbol; 5],
}

/// Excess bandwidth of the upstream signal.
const ROLL_OFF: f64 = 0.1;
/// Symbols that the pulse spans.
const SPAN: usize = 32;

impl QamModulator {
    const SAMPLES: usize = 5;

    pub(crate) fn new() -> Self {
        let carrier = TAU * super::equalizer::CARRIER;
        // Coordinates of unit power each; the sample's mean square is then the square of CARD_RMS.
        let pulses = (0..Self::SAMPLES)
            .map(|phase| {
                let tap = |quadrature: bool| {
                    (0..SPAN)
                        .map(|k| {
                            // The newest symbol is last.
                            let t = (SPAN - 1 - k) as f64 + phase as f64 / Self::SAMPLES as f64
                                - 0.5 * SPAN as f64;
                            let angle = carrier * t;
                            let wave = if quadrature {
                                -libm::sin(angle)
                            } else {
                                libm::cos(angle)
                            };
                            let edge = super::resample::kaiser(2.0 * t / SPAN as f64, 3.0);
                            (f64::from(CARD_RMS) * root_raised_cosine(t, ROLL_OFF) * edge * wave)
                                as f32
                        })
                        .collect::<Vec<f32>>()
                };
                [tap(false), tap(true)]
            })
            .collect();
        let turns = [0.0, 1.0, 2.0, 3.0, 4.0]
            .map(|k| [libm::cos(carrier * k) as f32, libm::sin(carrier * k) as f32]);
        Self {
            re: DelayLine::new(SPAN),
            im: DelayLine::new(SPAN),
            pulses,
            phase: 0,
            turn: 0,
            turns,
        }
    }
}

impl Modulator for QamModulator {
    type Sample = i16;

    fn sent(value: f32) -> i16 {
        round(value)
    }

    fn rates(sent: u8, received: u8) -> PumpState {
        data(received, sent)
    }

    #[inline]
    fn sample(&mut self, mut next: impl FnMut() -> Symbol) -> f32 {
        if self.phase == 0 {
            let [re, im] = next();
            let [cos, sin] = self.turns[self.turn];
            self.turn = (self.turn + 1) % 5;
            self.re.push(re * cos - im * sin);
            self.im.push(re * sin + im * cos);
        }
        let [in_phase, quadrature] = &self.pulses[self.phase];
        self.phase = (self.phase + 1) % Self::SAMPLES;
        dot(in_phase, self.re.window(SPAN, 0)) + dot(quadrature, self.im.window(SPAN, 0))
    }
}
