//! The modem's software: from the AT command that dials to the file that has arrived. What the driver calls once an interrupt.

use laxity_model::{Instant, Span};

use super::far_profile::FarProfile;
use super::load::Load;
use super::phase::{Phase, Timing};
use super::report::{Outcome, Report};
use crate::bits::BitSink;
use crate::link::LineRates;
use crate::link::endpoint::{self, Endpoint};
use crate::link::tones::{Generator, ToneDetector};
use crate::pump::{Pump, PumpState, Standard};

/// No dial tone for so long: the exchange is dead.
pub const DIAL_TONE_LIMIT: Span = Span::from_secs(5);
/// No answer tone this long after the ringing should have ended: nobody is there.
pub const ANSWER_GRACE: Span = Span::from_secs(8);
/// Not trained for so long: the two ends will not understand each other.
pub const TRAINING_LIMIT: Span = Span::from_secs(30);

/// What a modem says when there is no connection.
const NO_CARRIER: &str = "NO CARRIER";

/// Where a call stands.
enum Stage {
    OnHook(ToneDetector),
    DialTone {
        detector: ToneDetector,
        since: Instant,
    },
    Digits(Generator),
    Answer {
        detector: ToneDetector,
        since: Instant,
    },
    AnswerTone(ToneDetector),
    BeforeTraining {
        until: Instant,
    },
    Training {
        since: Instant,
    },
    Data {
        trained: bool,
    },
    Over,
}

/// The near end of a call.
pub struct NearModem {
    timing: Timing,
    stage: Stage,
    recognised: bool,
    pump: Box<dyn Pump<i16>>,
    endpoint: Endpoint,
    bits: Vec<bool>,
    load: Load,
    rates: LineRates,
    outcome: Option<Outcome>,
}

/// What the line carries while data flows, seen from the near end.
pub(super) fn rates(state: PumpState) -> Option<LineRates> {
    match state {
        PumpState::Data { down_rate, up_rate } => Some(LineRates {
            transmit_bit_s: up_rate,
            receive_bit_s: down_rate,
        }),
        _ => None,
    }
}

impl NearModem {
    /// A modem on hook, told to dial once the on-hook phase is over; with this many receivers besides the first in data mode.
    #[must_use]
    pub fn new(
        timing: Timing,
        standard: Standard,
        link: endpoint::Config,
        further_receivers: usize,
    ) -> Self {
        Self {
            stage: Stage::OnHook(ToneDetector::ringing(7_200)),
            recognised: false,
            pump: standard.near(FarProfile::near_handshake(&timing)),
            timing,
            endpoint: Endpoint::client(link),
            bits: Vec::new(),
            load: Load::new(further_receivers),
            rates: LineRates::default(),
            outcome: None,
        }
    }

    /// Whether IP datagrams pass: the transfer can begin.
    pub(super) fn is_connected(&self) -> bool {
        matches!(
            self.endpoint.state(),
            endpoint::State::Connected | endpoint::State::Transferring { .. }
        )
    }

    /// Ends the call. `result` is the modem's last word to its application (V.250, clause 5.7).
    fn fail(&mut self, result: &'static str, reason: &str) -> Stage {
        self.outcome.get_or_insert(Outcome::Failed {
            result,
            reason: reason.into(),
        });
        self.load.end();
        Stage::Over
    }

    /// Where the call stands after this block; `None` if it stays where it is.
    fn advance(
        &mut self,
        stage: &mut Stage,
        now: Instant,
        received: &[i16],
        transmit: &mut [i16],
    ) -> Option<Stage> {
        let has_lasted = |since: &Instant, limit| now.saturating_since(*since) > limit;
        match stage {
            Stage::OnHook(detector) => {
                detector.push(received);
                (now.since_epoch() >= self.timing.on_hook).then(|| Stage::DialTone {
                    detector: ToneDetector::dial_tone(7_200),
                    since: now,
                })
            }
            Stage::DialTone { detector, since } => {
                if detector.push(received) {
                    let digits = Generator::dial(7_200, self.timing.number, self.timing.digit);
                    return Some(Stage::Digits(digits));
                }
                has_lasted(since, DIAL_TONE_LIMIT)
                    .then(|| self.fail("NO DIALTONE", "the exchange gave no dial tone"))
            }
            Stage::Digits(generator) => {
                generator.fill(transmit);
                generator.is_finished().then(|| Stage::Answer {
                    detector: ToneDetector::answer_tone(7_200),
                    since: now,
                })
            }
            Stage::Answer { detector, since } => {
                if detector.push(received) {
                    return Some(Stage::AnswerTone(detector.clone()));
                }
                let nobody = "no answer: the number was not understood, or nobody is there";
                has_lasted(since, self.timing.ringing + ANSWER_GRACE)
                    .then(|| self.fail(NO_CARRIER, nobody))
            }
            Stage::AnswerTone(detector) => {
                detector.push(received);
                self.recognised = !detector.is_present();
                self.recognised.then_some(Stage::BeforeTraining {
                    until: now + self.timing.before_training,
                })
            }
            Stage::BeforeTraining { until } => (now >= *until).then(|| {
                self.pump.start();
                Stage::Training { since: now }
            }),
            Stage::Training { since } => {
                self.run_pump(now, received, transmit);
                match self.pump.state() {
                    PumpState::Data { .. } => Some(self.enter_data(now)),
                    PumpState::Lost => Some(self.fail(NO_CARRIER, "the line could not be trained")),
                    _ => has_lasted(since, TRAINING_LIMIT)
                        .then(|| self.fail(NO_CARRIER, "training took too long")),
                }
            }
            Stage::Data { trained } => {
                self.run_pump(now, received, transmit);
                self.follow_pump(*trained, now)
            }
            Stage::Over => None,
        }
    }

    fn enter_data(&mut self, now: Instant) -> Stage {
        if let Some(rates) = rates(self.pump.state()) {
            self.endpoint.carrier(Some(rates), now);
            self.rates = rates;
            if let Some(receiver) = self.pump.receiver() {
                self.load.begin(receiver);
            }
        }
        Stage::Data { trained: true }
    }

    fn follow_pump(&mut self, trained: bool, now: Instant) -> Option<Stage> {
        match (trained, self.pump.state()) {
            (_, PumpState::Lost) => Some(self.fail(NO_CARRIER, "retraining failed too often")),
            (false, PumpState::Data { .. }) => Some(self.enter_data(now)),
            (true, PumpState::Data { .. }) | (false, _) => None,
            (true, _) => {
                self.load.end();
                self.endpoint.carrier(None, now);
                Some(Stage::Data { trained: false })
            }
        }
    }

    fn run_pump(&mut self, now: Instant, received: &[i16], transmit: &mut [i16]) {
        self.bits.clear();
        self.pump
            .process(received, transmit, &mut self.endpoint, &mut self.bits);
        let in_data = matches!(self.pump.state(), PumpState::Data { .. });
        // In the block in which training begins the first receiver stops half-way.
        if in_data {
            self.load.process(received, &self.bits);
        }
        for &bit in &self.bits {
            self.endpoint.push_bit(bit);
        }
        self.endpoint.poll(now);
        if let endpoint::State::Done(arrived) = self.endpoint.state() {
            self.outcome.get_or_insert(Outcome::Done(arrived));
        }
    }

    /// Takes what arrived since the last call and fills `transmit`. Fewer samples may arrive than go out. Returns whether this is the call
    /// that recognised the answer.
    pub(super) fn process(&mut self, now: Instant, received: &[i16], transmit: &mut [i16]) -> bool {
        transmit.fill(0);
        self.recognised = false;
        let mut stage = std::mem::replace(&mut self.stage, Stage::Over);
        let next = self.advance(&mut stage, now, received, transmit);
        self.stage = next.unwrap_or(stage);
        if let (endpoint::State::Failed(failure), false) =
            (self.endpoint.state(), matches!(self.stage, Stage::Over))
        {
            self.stage = self.fail(
                NO_CARRIER,
                &format!("error correction gave up: {failure:?}"),
            );
        }
        self.recognised
    }

    /// Where the call is after the last [`process`](Self::process).
    pub(super) fn phase(&self) -> Phase {
        match self.stage {
            Stage::OnHook(_) => Phase::OnHook,
            Stage::DialTone { .. }
            | Stage::Digits(_)
            | Stage::Answer { .. }
            | Stage::AnswerTone(_) => Phase::Dialing,
            Stage::BeforeTraining { .. } | Stage::Training { .. } => Phase::Training,
            Stage::Data { .. } => Phase::Connected,
            Stage::Over => Phase::Ended,
        }
    }

    /// Brings the report up to date; `Some` once the call's work is over.
    pub(super) fn report(&self, report: &Report) -> Option<Outcome> {
        let (down, up) = (self.rates.receive_bit_s, self.rates.transmit_bit_s);
        report.rate_down_bit_s.set(u64::from(down));
        report.rate_up_bit_s.set(u64::from(up));
        report.retrainings.set(u64::from(self.pump.retrainings()));
        report
            .retransmissions_near
            .set(self.endpoint.counters().lapm.frames_retransmitted);
        report.receiver_bits.set(self.load.compared());
        report.receiver_bit_errors.set(self.load.errors());
        if let endpoint::State::Transferring { bytes } = self.endpoint.state() {
            report.octets.set(bytes);
        }
        self.outcome.clone()
    }
}
