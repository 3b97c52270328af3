//! What is on the other side of the card: the line, the exchange, the far modem and the server behind it.
//!
//! The far end works in pieces of 10 ms, each when it is due, 40 ms behind the card's output and 40 ms ahead of its input. So the
//! samples of both directions are determined by the call's time alone, however late the far end itself comes, up to 30 ms; and the
//! delays in either direction are those of a long line.

use std::sync::Arc;

use laxity_model::{Instant, Span};

use super::card::Setting;
use super::exchange::Exchange;
use super::far_profile::FarProfile;
use super::near;
use super::phase::Timing;
use super::report::Report;
use crate::bits::BitSink;
use crate::card::{Card, Programming};
use crate::link::LineRates;
use crate::link::endpoint::{self, Endpoint};
use crate::pump::{Line, LineConfig, Pump, PumpState};

/// The far end works so far behind the card's output and ahead of its input: the delay of the network in one direction, besides the line's own.
pub const FAR_DELAY: Span = Span::from_millis(40);

/// The far end's pieces of work a second.
pub const PIECES_HZ: u64 = 100;

/// The far end of a call.
pub(super) struct FarEnd {
    card: Arc<Card>,
    report: Arc<Report>,
    epoch: usize,
    /// The card's next sample that has not been exchanged.
    next: u64,
    exchange: Exchange,
    line: Line,
    pump: Box<dyn Pump<f32>>,
    /// Silence between the answer and the first training signal, as the near end keeps it.
    before_training: Span,
    /// When the pump starts, once the near end has switched to it.
    starts_at: Option<Instant>,
    carrier: bool,
    endpoint: Endpoint,
    bits: Vec<bool>,
    played: Vec<i16>,
    recorded: Vec<i16>,
}

impl FarEnd {
    /// The far end of a card that has just been made.
    #[must_use]
    pub(super) fn new(
        card: Arc<Card>,
        report: Arc<Report>,
        timing: Timing,
        line: &LineConfig,
        link: endpoint::Config,
        profile: FarProfile,
    ) -> Self {
        let before_training = timing.before_training;
        let handshake = profile.handshake(&timing);
        let link = endpoint::Config {
            network: profile.network,
            ..link
        };
        let far = Self {
            card,
            report,
            epoch: 0,
            next: 0,
            exchange: Exchange::new(timing),
            line: Line::new(line),
            pump: profile.standard.far(handshake),
            before_training,
            starts_at: None,
            carrier: false,
            endpoint: Endpoint::server(link),
            bits: Vec::new(),
            played: Vec::new(),
            recorded: Vec::new(),
        };
        far.silence_first();
        far
    }

    fn programming(&self) -> Programming {
        let first = Programming {
            setting: Setting::ON_HOOK,
            started: Instant::ZERO,
        };
        self.card.programming(self.epoch).unwrap_or(first)
    }

    /// Samples between what the far end takes from the card and what it gives to it at the same moment.
    fn round_trip_samples(setting: Setting) -> u64 {
        2 * FAR_DELAY.as_nanos() * setting.rate_hz / 1_000_000_000
    }

    /// Before the first echo of an epoch the line is silent.
    fn silence_first(&self) {
        for index in 0..Self::round_trip_samples(self.programming().setting) {
            self.card.arrive(self.epoch, index, 0);
        }
    }

    /// Does all the work that is due at `now`, in the call's time. Returns when the next piece is due.
    pub(super) fn advance(&mut self, now: Instant) -> Instant {
        let epoch = self.card.epoch();
        if epoch != self.epoch {
            self.epoch = epoch;
            self.next = 0;
            self.silence_first();
        }
        let programming = self.programming();
        let piece = programming.setting.rate_hz / PIECES_HZ;
        loop {
            let end = programming.started + programming.setting.duration(self.next + piece);
            if end + FAR_DELAY > now {
                break;
            }
            self.exchange_piece(programming, piece, end);
            self.next += piece;
        }
        let period = Span::from_nanos(1_000_000_000 / PIECES_HZ);
        Instant::ZERO + period * (now.since_epoch() / period + 1)
    }

    fn exchange_piece(&mut self, programming: Programming, piece: u64, end: Instant) {
        let departed = |index| self.card.departed(self.epoch, index);
        self.played.clear();
        self.played
            .extend((self.next..self.next + piece).map(departed));
        self.recorded.clear();
        self.recorded.resize(piece as usize, 0);
        match programming.setting {
            Setting::ON_HOOK => {}
            Setting::DIALING => self
                .exchange
                .exchange(end, &self.played, &mut self.recorded),
            _ => self.run_pump(end),
        }
        let first = self.next + Self::round_trip_samples(programming.setting);
        for (index, sample) in (first..).zip(&self.recorded) {
            self.card.arrive(self.epoch, index, *sample);
        }
    }

    fn run_pump(&mut self, now: Instant) {
        let starts_at = *self.starts_at.get_or_insert(now + self.before_training);
        if self.pump.state() == PumpState::Idle && now >= starts_at && self.exchange.has_answered()
        {
            self.pump.start();
        }
        self.bits.clear();
        let (pump, endpoint, bits) = (&mut self.pump, &mut self.endpoint, &mut self.bits);
        self.line
            .exchange(&self.played, &mut self.recorded, |received, levels| {
                pump.process(received, levels, endpoint, bits);
            });
        for &bit in &self.bits {
            self.endpoint.push_bit(bit);
        }
        self.follow_carrier(now);
        self.endpoint.poll(now);
        self.report
            .retransmissions_far
            .set(self.endpoint.counters().lapm.frames_retransmitted);
    }

    fn follow_carrier(&mut self, now: Instant) {
        let rates = near::rates(self.pump.state()).map(LineRates::reversed);
        if rates.is_some() != self.carrier {
            self.carrier = rates.is_some();
            self.endpoint.carrier(rates, now);
        }
    }
}
