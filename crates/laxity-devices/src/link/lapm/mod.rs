//! Error correction in the manner of LAPM (ITU-T V.42 clause 8): an octet stream over a line that
//! loses bits.
//!
//! What is there: establishment (SABME, UA, DM), numbered information frames
//! modulo 128 with a window, RR and REJ, timer recovery by poll and final, the inactivity
//! poll. What is not: release, RNR (what arrives is taken at once), the detection phase, XID (parameters are agreed beforehand), SREJ, TEST,
//! FRMR, break signals and the 32-bit frame check sequence. A frame that is not understood or
//! acknowledges what was never sent is counted and ignored, where V.42 clause 8.5 would establish
//! the connection anew: on a line that carries garbage, ignoring is what keeps the connection.
//!
//! A [`Lapm`] is a [`BitSource`](crate::bits::BitSource) (flags when idle) and a
//! [`BitSink`](crate::bits::BitSink); it has no clock: [`poll`](Lapm::poll) tells it the time, and
//! bits count as sent and received at the time of the last poll. Polling less often makes the
//! timers late by as much, so that [`Config::processing`] has to allow for it.

mod config;
mod frame;
mod receive;
mod status;
mod transmit;

use std::collections::VecDeque;

use laxity_model::{Instant, Span};

use super::LineRates;
use super::hdlc::{Deframer, Framer};
pub use config::Config;
pub use frame::Role;
use frame::{HEADER_OCTETS, MODULUS, Unnumbered};
pub use status::{Counters, Loss, State};

/// One end of an error-corrected link.
#[derive(Debug)]
pub struct Lapm {
    role: Role,
    config: Config,
    t401: Span,
    now: Instant,
    paused: bool,
    state: State,
    framer: Framer,
    deframer: Deframer,
    send_queue: VecDeque<u8>,
    receive_queue: VecDeque<u8>,
    /// Payloads sent and not acknowledged; the first one has the number `acknowledged`.
    unacknowledged: VecDeque<Vec<u8>>,
    /// V(A).
    acknowledged: u8,
    /// V(S): at most `acknowledged` + `unacknowledged.len()`; less while frames are being sent
    /// again.
    next_send: u8,
    /// V(R).
    next_receive: u8,
    /// An enquiry is on its way or due, and nothing new is sent until it is answered.
    timer_recovery: bool,
    /// A REJ went out, and the frame it asked for has not come.
    rejecting: bool,
    /// Nothing has come from the other end on this connection.
    fresh: bool,
    retry: u32,
    t401_at: Option<Instant>,
    heard_at: Instant,
    due: Due,
    counters: Counters,
    received_frame: Vec<u8>,
    sent_frame: Vec<u8>,
}

/// Frames to be sent before information frames.
#[derive(Debug, Default)]
struct Due {
    /// At most one request and one answer.
    request: Option<Unnumbered>,
    answer: Option<(Unnumbered, bool)>,
    enquiry: bool,
    final_response: bool,
    reject: bool,
    /// RR, unless an information frame goes out that acknowledges as well.
    acknowledgement: bool,
}

impl Lapm {
    /// An end of a link in state [`State::Idle`], on a line that carries nothing before
    /// [`resume`](Self::resume).
    ///
    /// A window outside 1 to 63 and frames without information are taken as the nearest possible
    /// value.
    #[must_use]
    pub fn new(role: Role, mut config: Config) -> Self {
        config.window = config.window.clamp(1, MODULUS / 2 - 1);
        config.max_octets = config.max_octets.max(1);
        Self {
            role,
            config,
            t401: Span::from_nanos(0),
            now: Instant::from_nanos(0),
            paused: true,
            state: State::Idle,
            framer: Framer::default(),
            deframer: Deframer::new(HEADER_OCTETS + config.max_octets),
            send_queue: VecDeque::new(),
            receive_queue: VecDeque::new(),
            unacknowledged: VecDeque::new(),
            acknowledged: 0,
            next_send: 0,
            next_receive: 0,
            timer_recovery: false,
            rejecting: false,
            fresh: true,
            retry: 0,
            t401_at: None,
            heard_at: Instant::from_nanos(0),
            due: Due::default(),
            counters: Counters::default(),
            received_frame: Vec::new(),
            sent_frame: Vec::new(),
        }
    }

    /// Asks the other end for a connection.
    pub fn connect(&mut self, now: Instant) {
        self.now = now;
        self.state = State::Establishing;
        self.retry = 0;
        self.due.request = Some(Unnumbered::Establish);
    }

    /// Tells the time and lets the timers run out.
    pub fn poll(&mut self, now: Instant) {
        self.now = now;
        if self.paused {
            return;
        }
        if self.t401_at.is_some_and(|at| at <= now) {
            self.t401_at = None;
            self.counters.timeouts += 1;
            self.ask_again();
        } else if self.inactive_at().is_some_and(|at| at <= now) {
            self.enquire();
        }
    }

    /// Stops the timers while the line carries no data, as while the modems retrain
    /// (compare V.42 clause 7.10, suspension).
    ///
    /// The frames under way are given up. Nothing counts as a retry until [`resume`](Self::resume).
    pub fn pause(&mut self, now: Instant) {
        self.now = now;
        self.paused = true;
        self.t401_at = None;
        self.framer = Framer::default();
        self.deframer.reset();
    }

    /// The line carries data at the given rates: begins, or goes on after [`pause`](Self::pause)
    /// and asks the other end where it stands.
    pub fn resume(&mut self, rates: LineRates, now: Instant) {
        self.now = now;
        self.t401 = self.config.acknowledgement_time(rates);
        self.heard_at = now;
        if !core::mem::replace(&mut self.paused, false) {
            return;
        }
        self.retry = 0;
        match self.state {
            State::Establishing => self.due.request = Some(Unnumbered::Establish),
            State::Connected => self.enquire(),
            State::Idle | State::Lost(_) => {}
        }
    }

    /// Where the connection stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// What happened so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Octets that [`send`](Self::send) would take.
    pub fn send_space(&self) -> usize {
        self.config
            .send_octets
            .saturating_sub(self.send_queue.len())
    }

    /// Octets taken by [`send`](Self::send) and not put into a frame yet.
    pub fn send_backlog(&self) -> usize {
        self.send_queue.len()
    }

    /// Takes octets of the stream to send, and tells how many.
    pub fn send(&mut self, octets: &[u8]) -> usize {
        let count = octets.len().min(self.send_space());
        self.send_queue.extend(&octets[..count]);
        count
    }

    /// Moves the octets received in order to the end of `out`.
    pub fn receive(&mut self, out: &mut Vec<u8>) {
        out.extend(self.receive_queue.drain(..));
    }

    fn inactive_at(&self) -> Option<Instant> {
        let quiet =
            self.state == State::Connected && !self.timer_recovery && self.t401_at.is_none();
        quiet.then(|| self.heard_at + self.config.inactivity)
    }

    fn ask_again(&mut self) {
        self.retry += 1;
        if self.retry > self.config.retries {
            return self.stop(State::Lost(Loss::Unanswered));
        }
        match self.state {
            State::Establishing => self.due.request = Some(Unnumbered::Establish),
            State::Connected => {
                self.timer_recovery = true;
                self.due.enquiry = true;
            }
            State::Idle | State::Lost(_) => {}
        }
    }

    fn enquire(&mut self) {
        self.retry = 0;
        self.timer_recovery = true;
        self.due.enquiry = true;
    }

    /// Leaves the connected state; an answer that is due still goes out.
    fn stop(&mut self, state: State) {
        self.state = state;
        self.t401_at = None;
        self.timer_recovery = false;
        self.due = Due {
            answer: self.due.answer,
            ..Due::default()
        };
        self.send_queue.clear();
        self.unacknowledged.clear();
    }

    fn start(&mut self) {
        if self.fresh {
            // The other end has taken none of these: it was not connected yet.
            for payload in core::mem::take(&mut self.unacknowledged).into_iter().rev() {
                for octet in payload.into_iter().rev() {
                    self.send_queue.push_front(octet);
                }
            }
        }
        self.unacknowledged.clear();
        (self.acknowledged, self.next_send, self.next_receive) = (0, 0, 0);
        (self.timer_recovery, self.rejecting) = (false, false);
        self.fresh = true;
        self.retry = 0;
        self.t401_at = None;
        self.state = State::Connected;
        self.due = Due {
            answer: self.due.answer,
            ..Due::default()
        };
    }

    fn start_t401(&mut self) {
        self.t401_at = Some(self.now + self.t401);
    }
}
