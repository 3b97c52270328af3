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

    fn stop(&mut self) {
        let effect = self.handshake.stop();
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

    /// Begins to train, from any state.
    pub fn start(&mut self) {
        self.0.start();
    }

    /// Falls silent and idle.
    pub fn stop(&mut self) {
        self.0.stop();
    }

    /// Takes the samples received and fills `transmit`, both at 16 kHz by one clock. In data mode bits
    /// come from `source` and go to `sink`. Blocks of any length; how a stream is cut does not matter.
    /// Of a block whose samples were lost in part, only those are passed that are left.
    ///
    /// # Panics
    /// If more samples were received than are to be sent.
    pub fn process(
        &mut self,
        received: &[i16],
        transmit: &mut [i16],
        source: &mut dyn BitSource,
        sink: &mut dyn BitSink,
    ) {
        assert!(
            received.len() <= transmit.len(),
            "the card plays and records by one clock"
        );
        let received = received.iter().map(|sample| Some(f32::from(*sample)));
        for (received, transmit) in received.chain(core::iter::repeat(None)).zip(transmit) {
            *transmit = round(self.0.step(received, source, sink));
        }
    }

    /// What this end is doing.
    #[must_use]
    pub fn state(&self) -> PumpState {
        self.0.handshake.state(|sent, received| PumpState::Data {
            down_rate: down_rate(received),
            up_rate: up_rate(sent),
        })
    }

    /// The signal-to-noise ratio at the slicer, dB.
    #[must_use]
    pub fn snr_db(&self) -> f32 {
        self.0.receiver.snr_db()
    }

    /// How often data mode was left for training.
    #[must_use]
    pub fn retrainings(&self) -> u32 {
        self.0.handshake.retrainings()
    }

    /// The receiver, for further ones to be cloned from.
    #[must_use]
    pub fn receiver(&self) -> &PamReceiver {
        &self.0.receiver
    }
}

/// The digital end, in the network at 8 kHz: sends PAM, receives QAM.
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

    /// Begins to train, from any state.
    pub fn start(&mut self) {
        self.0.start();
    }

    /// Falls silent and idle.
    pub fn stop(&mut self) {
        self.0.stop();
    }

    /// Takes the samples received and gives as many levels to transmit, at 8 kHz, mean square one.
    /// In data mode bits come from `source` and go to `sink`. Blocks of any length; how a stream is
    /// cut does not matter.
    ///
    /// # Panics
    /// If the two blocks differ in length.
    pub fn process(
        &mut self,
        received: &[f32],
        transmit: &mut [f32],
        source: &mut dyn BitSource,
        sink: &mut dyn BitSink,
    ) {
        assert_eq!(received.len(), transmit.len(), "the network has one clock");
        for (received, transmit) in received.iter().zip(transmit) {
            *transmit = self.0.step(Some(*received), source, sink);
        }
    }

    /// What this end is doing.
    #[must_use]
    pub fn state(&self) -> PumpState {
        self.0.handshake.state(|sent, received| PumpState::Data {
            down_rate: down_rate(sent),
            up_rate: up_rate(received),
        })
    }

    /// The signal-to-noise ratio at the slicer, dB.
    #[must_use]
    pub fn snr_db(&self) -> f32 {
        self.0.receiver.snr_db()
    }

    /// How often data mode was left for training.
    #[must_use]
    pub fn retrainings(&self) -> u32 {
        self.0.handshake.retrainings()
    }

    /// The receiver, for further ones to be cloned from.
    #[must_use]
    pub fn receiver(&self) -> &QamReceiver {
        &self.0.receiver
    }
}
