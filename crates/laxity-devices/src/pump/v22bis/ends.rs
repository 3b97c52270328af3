//! A V.22bis modem at either end of this crate's telephone line, in the place of the study's modems.

use super::{Role, V22bis};
use crate::bits::{BitSink, BitSource};
use crate::pump::line::{CARD_RMS, round};
use crate::pump::{Pump, PumpState};

/// A modem that is silent until it is started.
#[derive(Debug, Clone)]
struct End {
    role: Role,
    modem: Option<V22bis>,
}

impl End {
    /// A sample for a sample, at 8 kHz.
    fn step(&mut self, heard: i16, source: &mut dyn BitSource, sink: &mut dyn BitSink) -> i16 {
        let mut sent = [0];
        if let Some(modem) = &mut self.modem {
            modem.process(&[heard], &mut sent, source, sink);
        }
        sent[0]
    }

    fn start(&mut self) {
        self.modem = Some(V22bis::new(self.role));
    }

    fn state(&self) -> PumpState {
        self.modem.as_ref().map_or(PumpState::Idle, V22bis::state)
    }
}

/// The calling modem, behind a card at 16 kHz.
///
/// It hears every second sample and sends every second one: what lies between is above 4 kHz, which the line does not carry.
#[derive(Debug, Clone)]
pub(crate) struct NearV22bis {
    end: End,
    /// Whether the next sample of the card is one between two of the modem's.
    is_between: bool,
}

impl NearV22bis {
    /// A modem that has not been started.
    pub(crate) fn new() -> Self {
        let role = Role::Calling;
        Self {
            end: End { role, modem: None },
            is_between: false,
        }
    }
}

impl Pump<i16> for NearV22bis {
    fn start(&mut self) {
        self.end.start();
    }

    fn process(
        &mut self,
        received: &[i16],
        transmit: &mut [i16],
        source: &mut dyn BitSource,
        sink: &mut dyn BitSink,
    ) {
        let lost = core::iter::repeat(&0);
        for (heard, sent) in received.iter().chain(lost).zip(transmit) {
            let is_between = self.is_between;
            self.is_between = !is_between;
            *sent = match is_between {
                true => 0,
                // Twice the level: half of the samples carry all of the power below 4 kHz.
                false => self.end.step(*heard, source, sink).saturating_mul(2),
            };
        }
    }

    fn state(&self) -> PumpState {
        self.end.state()
    }
}

/// The answering modem, in the network at 8 kHz.
#[derive(Debug, Clone)]
pub(crate) struct FarV22bis(End);

impl FarV22bis {
    /// A modem that has not been started.
    pub(crate) fn new() -> Self {
        let role = Role::Answering;
        Self(End { role, modem: None })
    }
}

impl Pump<f32> for FarV22bis {
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
        let lost = core::iter::repeat(&0.0);
        for (heard, sent) in received.iter().chain(lost).zip(transmit) {
            let heard = round(heard * CARD_RMS);
            *sent = f32::from(self.0.step(heard, source, sink)) / CARD_RMS;
        }
    }

    fn state(&self) -> PumpState {
        self.0.state()
    }
}
