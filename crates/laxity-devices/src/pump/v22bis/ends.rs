//! A V.22bis modem at either end of this crate's telephone line, in the place of the study's modems.

use super::{Role, V22bis};
use crate::bits::{BitSink, BitSource};
use crate::pump::line::{CARD_RMS, round};
use crate::pump::{Pump, PumpState};

/// A modem that is silent until it is started, at an end whose samples are these.
#[derive(Debug, Clone)]
pub(crate) struct End<S> {
    role: Role,
    modem: Option<V22bis>,
    /// The end has so many samples for each of the modem's, which are 8,000 a second.
    every: usize,
    /// Samples since the last of the modem's.
    passed: usize,
    hears: fn(S) -> i16,
    sends: fn(i16) -> S,
}

impl End<i16> {
    /// The near end: at a card of 16 kHz. Every second sample is left out on the way in, and zero on the way out, where the others are twice
    /// as large; the line's filters do the rest.
    pub(crate) fn near() -> Self {
        Self {
            role: Role::Calling,
            modem: None,
            every: 2,
            passed: 0,
            hears: |heard| heard,
            sends: |sent| sent.saturating_mul(2),
        }
    }
}

impl End<f32> {
    /// The far end: in the network, at its levels.
    pub(crate) fn far() -> Self {
        Self {
            role: Role::Answering,
            modem: None,
            every: 1,
            passed: 0,
            hears: |heard| round(heard * CARD_RMS),
            sends: |sent| f32::from(sent) / CARD_RMS,
        }
    }
}

impl<S: Copy + Default> Pump<S> for End<S> {
    fn start(&mut self) {
        self.modem = Some(V22bis::new(self.role));
    }

    fn process(
        &mut self,
        received: &[S],
        transmit: &mut [S],
        source: &mut dyn BitSource,
        sink: &mut dyn BitSink,
    ) {
        let lost = core::iter::repeat(S::default());
        for (heard, out) in received.iter().copied().chain(lost).zip(transmit) {
            let is_between = self.passed > 0;
            self.passed = (self.passed + 1) % self.every;
            *out = S::default();
            if let Some(modem) = self.modem.as_mut().filter(|_| !is_between) {
                let mut sent = [0];
                modem.process(&[(self.hears)(heard)], &mut sent, source, sink);
                *out = (self.sends)(sent[0]);
            }
        }
    }

    fn state(&self) -> PumpState {
        self.modem.as_ref().map_or(PumpState::Idle, V22bis::state)
    }
}
