//! The telephone exchange while a call is dialled, and the far modem's answer: tones both ways at the card's 7.2 kHz.

use laxity_model::Instant;

use super::phase::Timing;
use crate::link::tones::{DtmfDecoder, Generator};

/// The card's rate while dialing.
const RATE_HZ: u32 = 7_200;

enum Stage {
    /// Gives dial tone until the first digit.
    Listening(Generator),
    /// Collects digits.
    Collecting,
    /// The number is right: the far end's telephone rings.
    Ringing { ringback: Generator, until: Instant },
    /// The far modem has answered.
    Answering { tone: Generator, until: Instant },
    /// The number is wrong: "please hang up and try your call again" (§6.2.6), as the engaged tone.
    Refusing(Generator),
    /// The line is through and silent.
    Through,
}

/// The exchange and the telephone side of the far end.
pub(crate) struct Exchange {
    timing: Timing,
    decoder: DtmfDecoder,
    digits: String,
    stage: Stage,
}

impl Exchange {
    pub(crate) fn new(timing: Timing) -> Self {
        let stage = Stage::Listening(Generator::dial_tone(RATE_HZ));
        Self {
            timing,
            decoder: DtmfDecoder::new(RATE_HZ),
            digits: String::new(),
            stage,
        }
    }

    /// Whether the far modem has answered.
    pub(crate) fn has_answered(&self) -> bool {
        matches!(self.stage, Stage::Answering { .. } | Stage::Through)
    }

    /// Lets the time of a block pass: `played` comes from the card, `recorded` goes to it, half as strong for the loop's loss.
    pub(crate) fn exchange(&mut self, now: Instant, played: &[i16], recorded: &mut [i16]) {
        for digit in self.decoder.push(played) {
            self.digits.push(digit);
            if matches!(self.stage, Stage::Listening(_)) {
                self.stage = Stage::Collecting;
            }
        }
        self.follow(now);
        match &mut self.stage {
            Stage::Listening(tone) | Stage::Refusing(tone) => tone.fill(recorded),
            Stage::Ringing { ringback, .. } => ringback.fill(recorded),
            Stage::Answering { tone, .. } => tone.fill(recorded),
            Stage::Collecting | Stage::Through => recorded.fill(0),
        }
        for sample in recorded {
            *sample /= 2;
        }
    }

    fn follow(&mut self, now: Instant) {
        match &self.stage {
            Stage::Collecting if self.digits.len() >= self.timing.number.len() => {
                self.stage = if self.digits == self.timing.number {
                    Stage::Ringing {
                        ringback: Generator::ringback(RATE_HZ),
                        until: now + self.timing.ringing,
                    }
                } else {
                    Stage::Refusing(Generator::busy(RATE_HZ))
                };
            }
            Stage::Ringing { until, .. } if now >= *until => {
                let tone = Generator::answer_tone(RATE_HZ);
                self.stage = Stage::Answering {
                    tone,
                    until: now + self.timing.answer_tone,
                };
            }
            Stage::Answering { until, .. } if now >= *until => self.stage = Stage::Through,
            _ => {}
        }
    }
}
