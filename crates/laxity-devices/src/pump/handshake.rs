//! The handshake of one end: from silence to data, and back to training when the signal goes bad.
//!
//! Everything that an end knows about the other came over the line. An end sends superframes until
//! the other end's frames say that its receiver is trained, then frames until each has heard the
//! other's wish, then a last frame and data. An end whose receiver goes bad in data mode sends
//! superframes again; the other end sees two levels where it expected many, and joins.

use super::mapper::Code;
use super::receiver::Event;
use super::training::Message;
use super::transmitter::Want;

/// When to give up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandshakeConfig {
    /// Time for one attempt to train, ms.
    pub attempt_ms: u32,
    /// Attempts in a row that may fail before the line counts as lost. An attempt has failed if it
    /// took too long, or if what was agreed did not last.
    pub attempts: u32,
    /// What was agreed has lasted once data has flowed for so long, ms.
    pub lasting_ms: u32,
    /// Silence before each training but the first, ms: what a real modem spends on finding out anew
    /// what it has in front of it, before the signals that train equalizers. Best equal at both ends.
    pub pause_ms: u32,
    /// The fastest of the codes that this end may ask for, counted from 0.
    pub fastest: u8,
}

impl Default for HandshakeConfig {
    fn default() -> Self {
        Self {
            attempt_ms: 3000,
            attempts: 4,
            lasting_ms: 1000,
            pause_ms: 0,
            fastest: 0,
        }
    }
}

/// What an end is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PumpState {
    /// Not started: silence.
    #[default]
    Idle,
    /// Between start, or a loss of signal, and data.
    Training,
    /// Data flows both ways.
    Data {
        /// Downstream rate, bit/s, rounded to the nearest.
        down_rate: u32,
        /// Upstream rate, bit/s.
        up_rate: u32,
    },
    /// Too many attempts failed: silence again.
    Lost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Idle,
    Training,
    Data,
    Lost,
}

/// One end's side of the handshake. Time is counted in its own samples.
#[derive(Debug, Clone, Default)]
pub(crate) struct Handshake {
    config: HandshakeConfig,
    samples_per_ms: u32,
    /// The codes of the direction that this end receives.
    codes: &'static [Code],
    phase: Phase,
    /// Samples in this phase.
    age: u64,
    /// Samples of silence at the beginning of this phase.
    pause: u64,
    wish: u8,
    peer: Message,
    sending: Option<u8>,
    receiving: Option<u8>,
    failures: u32,
    retrainings: u32,
}

/// What the handshake wants of its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Restart,
    Stop,
}

impl Handshake {
    pub(crate) fn new(
        config: HandshakeConfig,
        samples_per_ms: u32,
        codes: &'static [Code],
    ) -> Self {
        Self {
            config,
            samples_per_ms,
            codes,
            ..Self::default()
        }
    }

    pub(crate) fn start(&mut self) -> Effect {
        self.failures = 0;
        self.attempt(0)
    }

    fn attempt(&mut self, pause_ms: u32) -> Effect {
        self.phase = Phase::Training;
        self.age = 0;
        self.pause = u64::from(pause_ms) * u64::from(self.samples_per_ms);
        (self.wish, self.peer, self.sending, self.receiving) = (0, Message::default(), None, None);
        if self.pause > 0 {
            Effect::Stop
        } else {
            Effect::Restart
        }
    }

    fn fail(&mut self) -> Effect {
        self.failures += 1;
        if self.failures < self.config.attempts {
            return self.attempt(self.config.pause_ms);
        }
        self.phase = Phase::Lost;
        Effect::Stop
    }

    /// The signal is not what was agreed: train again.
    fn retrain(&mut self) -> Effect {
        let in_data = self.phase == Phase::Data;
        self.retrainings += u32::from(in_data);
        let lasted = in_data && self.age >= self.lasting();
        if lasted {
            self.attempt(self.config.pause_ms)
        } else {
            self.fail()
        }
    }

    /// One sample's time passes.
    pub(crate) fn tick(&mut self) -> Option<Effect> {
        self.age += 1;
        let limit = u64::from(self.config.attempt_ms) * u64::from(self.samples_per_ms);
        match self.phase {
            Phase::Training if self.age == self.pause && self.pause > 0 => Some(Effect::Restart),
            Phase::Training if self.age > self.pause + limit => Some(self.fail()),
            Phase::Data if self.age == self.lasting() => {
                self.failures = 0;
                None
            }
            _ => None,
        }
    }

    /// Samples after which what was agreed has lasted.
    fn lasting(&self) -> u64 {
        u64::from(self.config.lasting_ms) * u64::from(self.samples_per_ms)
    }

    /// Whether this end says nothing and hears nothing yet.
    fn is_pausing(&self) -> bool {
        self.phase == Phase::Training && self.age < self.pause
    }

    pub(crate) fn receive(&mut self, event: Event) -> Option<Effect> {
        if self.is_pausing() {
            return None;
        }
        match event {
            Event::Trained(snr_db) => {
                let fastest = self
                    .codes
                    .iter()
                    .position(|c| snr_db >= c.required_snr_db());
                // The slowest is tried on any line.
                let wish = fastest.map_or(self.codes.len(), |i| i + 1) as u8;
                self.wish = wish
                    .max(self.config.fastest + 1)
                    .min(self.codes.len() as u8);
                None
            }
            Event::Frame(message) => self.hear(message),
            // A receiver that fails among frames searches again by itself.
            Event::Degraded if self.receiving.is_none() && self.sending.is_none() => {
                self.wish = 0;
                None
            }
            Event::Degraded | Event::PeerTrains => Some(self.retrain()),
        }
    }

    fn hear(&mut self, message: Message) -> Option<Effect> {
        if self.sending.is_some() && message.wish == 0 {
            // It began anew after all was agreed.
            return Some(self.retrain());
        }
        self.peer = message;
        if message.last {
            self.receiving = Some(message.heard);
            self.settle();
        }
        None
    }

    /// The transmitter has begun with data.
    pub(crate) fn sending(&mut self, rate: u8) {
        self.sending = Some(rate);
        self.settle();
    }

    fn settle(&mut self) {
        if self.sending.is_some() && self.receiving.is_some() {
            self.phase = Phase::Data;
            self.age = 0;
        }
    }

    pub(crate) fn want(&self) -> Want {
        match self.phase {
            Phase::Idle | Phase::Lost => Want::Silence,
            Phase::Data => Want::Data,
            Phase::Training if self.is_pausing() => Want::Silence,
            Phase::Training if self.sending.is_some() => Want::Data,
            Phase::Training if self.peer.wish != 0 && self.wish != 0 => Want::Frames,
            Phase::Training => Want::Superframes,
        }
    }

    pub(crate) fn message(&self) -> Message {
        let agreed = self.wish != 0 && self.peer.heard == self.wish && self.peer.wish != 0;
        Message {
            wish: self.wish,
            heard: self.peer.wish,
            last: agreed,
        }
    }

    /// The rates sent and received, numbered from 1, once data flows.
    pub(crate) fn rates(&self) -> Option<(u8, u8)> {
        (self.phase == Phase::Data)
            .then_some(self.sending.zip(self.receiving))
            .flatten()
    }

    pub(crate) fn state(&self, data: impl FnOnce(u8, u8) -> PumpState) -> PumpState {
        match (self.phase, self.rates()) {
            (Phase::Idle, _) => PumpState::Idle,
            (Phase::Lost, _) => PumpState::Lost,
            (Phase::Data, Some((sent, received))) => data(sent, received),
            _ => PumpState::Training,
        }
    }

    pub(crate) fn retrainings(&self) -> u32 {
        self.retrainings
    }
}

#[cfg(test)]
mod tests {
    use super::super::mapper::DOWN_CODES;
    use super::*;

    fn started(config: HandshakeConfig) -> Handshake {
        let mut end = Handshake::new(config, 8, &DOWN_CODES);
        assert_eq!(end.want(), Want::Silence);
        assert_eq!(end.start(), Effect::Restart);
        end
    }

    fn frame(wish: u8, heard: u8, last: bool) -> Event {
        Event::Frame(Message { wish, heard, last })
    }

    /// Brings an end to data, with rates 2 sent and 1 received.
    fn in_data() -> Handshake {
        let mut end = started(HandshakeConfig::default());
        end.receive(Event::Trained(60.0));
        end.receive(frame(2, 1, true));
        end.sending(2);
        assert_eq!(end.rates(), Some((2, 1)));
        end
    }

    #[test]
    fn known_symbols_are_sent_until_both_are_trained_and_data_only_when_both_have_heard() {
        let mut end = started(HandshakeConfig::default());
        assert_eq!(end.want(), Want::Superframes);
        end.receive(Event::Trained(47.0));
        // 47 dB suffice for 64 levels, not for 81.
        assert_eq!(
            end.message(),
            Message {
                wish: 2,
                heard: 0,
                last: false
            }
        );
        end.receive(frame(0, 2, false));
        assert_eq!(
            end.want(),
            Want::Superframes,
            "the other end still needs them"
        );
        end.receive(frame(3, 0, false));
        assert_eq!(end.want(), Want::Frames);
        assert_eq!(
            end.message(),
            Message {
                wish: 2,
                heard: 3,
                last: false
            }
        );
        end.receive(frame(3, 2, false));
        assert_eq!(
            end.message(),
            Message {
                wish: 2,
                heard: 3,
                last: true
            }
        );
        end.sending(3);
        assert_eq!((end.want(), end.rates()), (Want::Data, None));
        end.receive(frame(3, 2, true));
        assert_eq!(end.rates(), Some((3, 2)));
    }

    #[test]
    fn attempts_time_out_and_then_the_line_is_lost() {
        let mut end = started(HandshakeConfig {
            attempt_ms: 10,
            attempts: 3,
            ..HandshakeConfig::default()
        });
        let effects: Vec<Effect> = (0..1000).filter_map(|_| end.tick()).collect();
        assert_eq!(effects, [Effect::Restart, Effect::Restart, Effect::Stop]);
        assert_eq!(end.want(), Want::Silence);
    }

    #[test]
    fn data_that_does_not_last_counts_as_a_failed_attempt() {
        let mut end = in_data();
        for _ in 0..HandshakeConfig::default().attempts - 1 {
            assert_eq!(end.receive(Event::Degraded), Some(Effect::Restart));
            end.receive(Event::Trained(60.0));
            end.receive(frame(2, 1, true));
            end.sending(2);
        }
        assert_eq!(end.receive(Event::Degraded), Some(Effect::Stop));
        assert_eq!(end.retrainings(), 4);

        // A second of data makes up for failures before.
        let mut end = in_data();
        for _ in 0..20 {
            assert!((0..8001).all(|_| end.tick().is_none()));
            assert_eq!(end.receive(Event::PeerTrains), Some(Effect::Restart));
            end.receive(Event::Trained(60.0));
            end.receive(frame(2, 1, true));
            end.sending(2);
        }
        assert_eq!(end.retrainings(), 20);
    }

    #[test]
    fn a_retraining_begins_with_a_pause_in_which_nothing_is_said_or_heard() {
        let mut end = started(HandshakeConfig {
            pause_ms: 100,
            lasting_ms: 10,
            ..HandshakeConfig::default()
        });
        assert_eq!(end.want(), Want::Superframes, "the first training has none");
        end.receive(Event::Trained(60.0));
        end.receive(frame(2, 1, true));
        end.sending(2);
        assert!((0..80).all(|_| end.tick().is_none()));
        assert_eq!(end.receive(Event::Degraded), Some(Effect::Stop));
        assert_eq!(end.receive(frame(2, 1, true)), None);
        let effects: Vec<_> = (0..799).filter_map(|_| end.tick()).collect();
        assert_eq!((effects.len(), end.want()), (0, Want::Silence));
        assert_eq!(end.tick(), Some(Effect::Restart));
        assert_eq!(end.want(), Want::Superframes);
        // The attempt's time begins after the pause.
        assert!((0..24_000).all(|_| end.tick().is_none()));
        assert_eq!(end.tick(), Some(Effect::Stop));
    }

    #[test]
    fn an_end_may_refuse_the_fastest_rates() {
        let mut end = started(HandshakeConfig {
            fastest: 2,
            ..HandshakeConfig::default()
        });
        end.receive(Event::Trained(60.0));
        assert_eq!(end.message().wish, 3);
        // A line that is worse decides by itself.
        end.receive(Event::Trained(20.0));
        assert!(end.message().wish > 3);
    }

    #[test]
    fn an_end_that_begins_anew_takes_the_other_with_it() {
        let mut end = started(HandshakeConfig::default());
        end.receive(Event::Trained(60.0));
        end.receive(frame(2, 1, false));
        end.sending(2);
        assert_eq!(end.want(), Want::Data);
        assert_eq!(end.receive(frame(0, 0, false)), Some(Effect::Restart));
        assert_eq!(end.want(), Want::Superframes);
    }
}
