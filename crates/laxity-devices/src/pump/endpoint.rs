//! The two ends of a line: a receiver, a transmitter and their handshake, sample by sample.

use super::equalizer::{Equalizer, PamEqualizer, QamEqualizer};
use super::handshake::{Effect, Handshake, HandshakeConfig, PumpState};
use super::line::round;
use super::mapper::{Code, DOWN_CODES, UP_CODES};
use super::receiver::{Direction, PamReceiver, QamReceiver, Receiver};
use super::transmitter::{Modulator, PamModulator, QamModulator, Transmitter};
use crate::bits::{BitSink, BitSource};

/// What both ends have in common. For each sample sent one was received, by one clock; it may have been lost on the way here.
#[derive(Debug, Clone)]
struct Endpoint<E, M> {
    receiver: Receiver<E>,
    transmitter: Transmitter,
    modulator: M,
    handshake: Handshake,
}

impl<E: Equalizer, M: Modulator> Endpoint<E, M> {
    fn start(&mut self) {
        let effect = self.handshake.start();
        self.apply(Some(effect));
    }

    fn apply(&mut self, effect: Option<Effect>) {
        match effect {
            Some(Effect::Restart) => self.receiver.start(),
            Some(Effect::Stop) => self.receiver.stop(),
            None => {}
        }
    }

    #[inline]
    fn step(
        &mut self,
        received: Option<f32>,
        source: &mut dyn BitSource,
        sink: &mut dyn BitSink,
    ) -> f32 {
        if let Some(event) = received.and_then(|sample| self.receiver.push(sample, sink)) {
            let effect = self.handshake.receive(event);
            self.apply(effect);
        }
        let effect = self.handshake.tick();
        self.apply(effect);
        let (transmitter, handshake) = (&mut self.transmitter, &mut self.handshake);
        self.modulator.sample(|| {
            let (want, message) = (handshake.want(), handshake.message());
            let (symbol, started) = transmitter.next(want, message, source);
            if let Some(rate) = started {
                handshake.sending(rate);
            }
            symbol
        })
    }
}

/// Bits per second of a rate, numbered from 1.
fn bit_rate(codes: &[Code], rate: u8, blocks_per_3_seconds: u32) -> u32 {
    let bits = usize::from(rate)
        .checked_sub(1)
        .and_then(|i| codes.get(i))
        .map_or(0, |c| c.bits);
    (u32::from(bits) * blocks_per_3_seconds + 1) / 3
}

fn down_rate(rate: u8) -> u32 {
    bit_rate(&DOWN_CODES, rate, 4000)
}

fn up_rate(rate: u8) -> u32 {
    bit_rate(&UP_CODES, rate, 2400)
}

/// One end of a line as card or network see it, whose samples are of type `S`.
pub trait Pump<S>: Send {
    /// Begins to train, from any state.
    fn start(&mut self);

    /// Takes the samples received and fills `transmit`, both by one clock. In data mode bits come from `source` and go to `sink`.
    /// Blocks of any length; how a stream is cut does not matter. Of a block whose samples were lost in part, only those are passed that
    /// are left.
    ///
    /// # Panics
    ///
    /// If more samples were received than are to be sent.
    fn process(
        &mut self,
        received: &[S],
        transmit: &mut [S],
        source: &mut dyn BitSource,
        sink: &mut dyn BitSink,
    );

    /// What this end is doing.
    fn state(&self) -> PumpState;

    /// How often data mode was left for training.
    fn retrainings(&self) -> u32;

    /// The receiver, for further ones to be cloned from, where there can be further ones.
    fn receiver(&self) -> Option<&PamReceiver>;
}

/// The samples received, one for each of those that are to be sent; `None` for those that were lost.
fn heard<S: Copy>(received: &[S], sent: usize) -> impl Iterator<Item = Option<S>> {
    assert!(
        received.len() <= sent,
        "what is sent and what is received have one clock"
    );
    let received = received.iter().copied().map(Some);
    received.chain(core::iter::repeat(None))
}

/// The analog end, behind a card at 16 kHz: sends QAM, receives PAM.
#[derive(Debug, Clone)]
pub struct NearPump(Endpoint<PamEqualizer, QamModulator>);

impl NearPump {
    /// An idle end.
    #[must_use]
    pub fn new(config: HandshakeConfig) -> Self {
        Self(Endpoint {
            receiver: PamReceiver::new(),
            transmitter: Transmitter::new(Direction::up()),
            modulator: QamModulator::new(),
            handshake: Handshake::new(config, 16, &DOWN_CODES),
        })
    }
}

impl Pump<i16> for NearPump {
    fn start(&mut self) {
        self.0.start();
    }

    fn process(
        &mut self,
        received: &[i16],
        transmit: &mut [i16],
        source: &mut dyn BitSource,
        sink: &mut dyn BitSink,
    ) {
        for (received, transmit) in heard(received, transmit.len()).zip(transmit) {
            *transmit = round(self.0.step(received.map(f32::from), source, sink));
        }
    }

    fn state(&self) -> PumpState {
        self.0.handshake.state(|sent, received| PumpState::Data {
            down_rate: down_rate(received),
            up_rate: up_rate(sent),
        })
    }

    fn retrainings(&self) -> u32 {
        self.0.handshake.retrainings()
    }

    fn receiver(&self) -> Option<&PamReceiver> {
        Some(&self.0.receiver)
    }
}

/// The digital end, in the network at 8 kHz: sends PAM of mean square one, receives QAM.
#[derive(Debug, Clone)]
pub struct FarPump(Endpoint<QamEqualizer, PamModulator>);

impl FarPump {
    /// An idle end.
    #[must_use]
    pub fn new(config: HandshakeConfig) -> Self {
        Self(Endpoint {
            receiver: QamReceiver::new(),
            transmitter: Transmitter::new(Direction::down()),
            modulator: PamModulator,
            handshake: Handshake::new(config, 8, &UP_CODES),
        })
    }
}

impl Pump<f32> for FarPump {
    fn start(&mut self) {
        self.0.start();
    }

    fn process(
        &mut self,
        received: &[f32],
        transmit: &mut [f32],
        source: &mut dyn BitSource,
        sink: &mut dyn BitSink,
    ) {
        for (received, transmit) in heard(received, transmit.len()).zip(transmit) {
            *transmit = self.0.step(received, source, sink);
        }
    }

    fn state(&self) -> PumpState {
        self.0.handshake.state(|sent, received| PumpState::Data {
            down_rate: down_rate(sent),
            up_rate: up_rate(received),
        })
    }

    fn retrainings(&self) -> u32 {
        self.0.handshake.retrainings()
    }

    fn receiver(&self) -> Option<&PamReceiver> {
        None
    }
}
