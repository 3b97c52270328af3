//! The two ends of a line: a receiver, a transmitter and their handshake, sample by sample.

use std::any::Any;

use super::equalizer::{Equalizer, PamEqualizer, QamEqualizer};
use super::handshake::{Effect, Handshake, HandshakeConfig, PumpState};
use super::mapper::{DOWN_CODES, UP_CODES};
use super::receiver::{Direction, PamReceiver, QamReceiver, Receiver};
use super::transmitter::{Modulator, PamModulator, QamModulator, Transmitter};
use crate::bits::{BitSink, BitSource};

/// Either end. For each sample sent one was received, by one clock; it may have been lost on the way here.
#[derive(Debug, Clone)]
pub struct End<E, M> {
    receiver: Receiver<E>,
    transmitter: Transmitter,
    modulator: M,
    handshake: Handshake,
}

impl<E: Equalizer, M: Modulator> End<E, M> {
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
    fn retrainings(&self) -> u32 {
        0
    }

    /// The receiver, for further ones to be cloned from, where there can be further ones.
    fn receiver(&self) -> Option<&PamReceiver> {
        None
    }
}

/// The analog end, behind a card at 16 kHz: sends QAM, receives PAM.
pub type NearPump = End<PamEqualizer, QamModulator>;

/// The digital end, in the network at 8 kHz: sends PAM of mean square one, receives QAM.
pub type FarPump = End<QamEqualizer, PamModulator>;

impl NearPump {
    /// An idle end.
    #[must_use]
    pub fn new(config: HandshakeConfig) -> Self {
        Self {
            receiver: PamReceiver::new(),
            transmitter: Transmitter::new(Direction::up()),
            modulator: QamModulator::new(),
            handshake: Handshake::new(config, 16, &DOWN_CODES),
        }
    }
}

impl FarPump {
    /// An idle end.
    #[must_use]
    pub fn new(config: HandshakeConfig) -> Self {
        Self {
            receiver: QamReceiver::new(),
            transmitter: Transmitter::new(Direction::down()),
            modulator: PamModulator,
            handshake: Handshake::new(config, 8, &UP_CODES),
        }
    }
}

impl<E: Equalizer + 'static, M: Modulator> Pump<M::Sample> for End<E, M> {
    fn start(&mut self) {
        let effect = self.handshake.start();
        self.apply(Some(effect));
    }

    fn process(
        &mut self,
        received: &[M::Sample],
        transmit: &mut [M::Sample],
        source: &mut dyn BitSource,
        sink: &mut dyn BitSink,
    ) {
        assert!(
            received.len() <= transmit.len(),
            "what is sent and what is received have one clock"
        );
        let received = received.iter().map(|sample| Some((*sample).into()));
        for (heard, sent) in received.chain(core::iter::repeat(None)).zip(transmit) {
            *sent = M::sent(self.step(heard, source, sink));
        }
    }

    fn state(&self) -> PumpState {
        self.handshake.state(M::rates)
    }

    fn retrainings(&self) -> u32 {
        self.handshake.retrainings()
    }

    fn receiver(&self) -> Option<&PamReceiver> {
        // The near end's is of this type.
        (&self.receiver as &dyn Any).downcast_ref()
    }
}
