//! The option negotiation automaton (RFC 1661, sections 4 and 5), common to LCP and IPCP, without the end of a link.

use laxity_model::{Instant, Span};

/// Time between requests that are not answered (RFC 1661, section 4.6: Restart timer).
pub const RESTART: Span = Span::from_secs(3);
/// Requests without an answer until the other side counts as absent (Max-Configure).
pub const MAX_CONFIGURE: u32 = 10;

const CONFIGURE_REQUEST: u8 = 1;
const CONFIGURE_ACK: u8 = 2;
const CONFIGURE_NAK: u8 = 3;
const CONFIGURE_REJECT: u8 = 4;

const HEADER_OCTETS: usize = 4;

/// What a side thinks of an option the other side asks for.
pub(super) enum Opinion {
    Agreed,
    /// This value instead.
    Rather(Vec<u8>),
    /// Not this option at all.
    Unknown,
}

/// The options of a protocol.
pub(super) trait Options {
    /// Calls `option(type, value)` for each option to ask for.
    fn wanted(&self, option: &mut dyn FnMut(u8, &[u8]));
    /// A new request of the other side comes: options it does not name have their defaults.
    fn begin_peer_request(&mut self);
    /// Judges an option the other side asks for, and keeps it if agreed.
    fn judge(&mut self, kind: u8, value: &[u8]) -> Opinion;
    /// The other side proposes another value for an option asked for.
    fn on_proposal(&mut self, kind: u8, value: &[u8]);
}

/// RFC 1661, section 4.2, without the states of a link that is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Closed,
    RequestSent,
    AckReceived,
    AckSent,
    Opened,
    /// The other side did not answer.
    Stopped,
}

#[derive(Debug)]
pub(super) struct Automaton<O> {
    pub(super) options: O,
    state: State,
    identifier: u8,
    restarts: u32,
    restart_at: Option<Instant>,
    /// Packets for the other side.
    pub(super) sent: Vec<Vec<u8>>,
}

impl<O: Options> Automaton<O> {
    pub(super) fn new(options: O) -> Self {
        Self {
            options,
            state: State::Closed,
            identifier: 0,
            restarts: 0,
            restart_at: None,
            sent: Vec::new(),
        }
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    /// Begins to negotiate.
    pub(super) fn open(&mut self, now: Instant) {
        self.state = State::RequestSent;
        self.restarts = 0;
        self.request(now);
    }

    pub(super) fn poll(&mut self, now: Instant) {
        if self.restart_at.is_none_or(|at| at > now) {
            return;
        }
        self.restart_at = None;
        if self.restarts > MAX_CONFIGURE {
            self.state = State::Stopped;
            return;
        }
        if self.state == State::AckReceived {
            self.state = State::RequestSent;
        }
        self.request(now);
    }

    fn request(&mut self, now: Instant) {
        self.identifier = self.identifier.wrapping_add(1);
        self.restarts += 1;
        self.restart_at = Some(now + RESTART);
        let wanted = self.wanted();
        self.send(CONFIGURE_REQUEST, self.identifier, &wanted);
    }

    fn send(&mut self, code: u8, identifier: u8, data: &[u8]) {
        let [high, low] = ((HEADER_OCTETS + data.len()) as u16).to_be_bytes();
        self.sent
            .push([&[code, identifier, high, low], data].concat());
    }

    fn wanted(&self) -> Vec<u8> {
        let mut wanted = Vec::new();
        self.options
            .wanted(&mut |kind, value| push_option(&mut wanted, kind, value));
        wanted
    }

    /// Takes a packet. Malformed ones are ignored, as RFC 1661 wants it, and so are those of codes that our other end does not send.
    pub(super) fn receive(&mut self, octets: &[u8], now: Instant) {
        let Some((code, identifier, data)) = parts(octets) else {
            return;
        };
        match code {
            _ if matches!(self.state, State::Closed | State::Stopped) => {}
            CONFIGURE_REQUEST => self.on_request(identifier, data, now),
            CONFIGURE_ACK if identifier == self.identifier && data == self.wanted() => {
                self.on_ack(now);
            }
            CONFIGURE_NAK if identifier == self.identifier => self.on_proposals(data, now),
            _ => {}
        }
    }

    fn on_request(&mut self, identifier: u8, data: &[u8], now: Instant) {
        let Some(options) = options(data) else {
            return;
        };
        let (mut proposed, mut rejected) = (Vec::new(), Vec::new());
        self.options.begin_peer_request();
        for (kind, value) in options {
            match self.options.judge(kind, value) {
                Opinion::Agreed => {}
                Opinion::Rather(other) => push_option(&mut proposed, kind, &other),
                Opinion::Unknown => push_option(&mut rejected, kind, value),
            }
        }
        let good = proposed.is_empty() && rejected.is_empty();
        if self.state == State::Opened {
            // The other side begins anew.
            self.state = State::RequestSent;
            self.restarts = 0;
            self.request(now);
        }
        if good {
            self.send(CONFIGURE_ACK, identifier, data);
            self.state = match self.state {
                State::AckReceived => self.opened(),
                _ => State::AckSent,
            };
            return;
        }
        if rejected.is_empty() {
            self.send(CONFIGURE_NAK, identifier, &proposed);
        } else {
            self.send(CONFIGURE_REJECT, identifier, &rejected);
        }
        if self.state == State::AckSent {
            self.state = State::RequestSent;
        }
    }

    fn on_ack(&mut self, now: Instant) {
        self.restarts = 0;
        match self.state {
            State::RequestSent => self.state = State::AckReceived,
            State::AckSent => self.state = self.opened(),
            // A second answer to one request: something is out of step.
            State::AckReceived | State::Opened => {
                self.state = State::RequestSent;
                self.request(now);
            }
            State::Closed | State::Stopped => {}
        }
    }

    fn opened(&mut self) -> State {
        self.restart_at = None;
        State::Opened
    }

    fn on_proposals(&mut self, data: &[u8], now: Instant) {
        let Some(options) = options(data) else {
            return;
        };
        for (kind, value) in options {
            self.options.on_proposal(kind, value);
        }
        if self.state != State::AckSent {
            self.state = State::RequestSent;
        }
        self.request(now);
    }
}

/// Code, identifier and data of a packet; octets after its end are padding (RFC 1661, section 5).
pub(super) fn parts(octets: &[u8]) -> Option<(u8, u8, &[u8])> {
    let [code, identifier, high, low, ref data @ ..] = *octets else {
        return None;
    };
    let length = usize::from(u16::from_be_bytes([high, low])).checked_sub(HEADER_OCTETS)?;
    Some((code, identifier, data.get(..length)?))
}

fn push_option(out: &mut Vec<u8>, kind: u8, value: &[u8]) {
    // Own options are short; others come from a packet whose length octet held them.
    let length = u8::try_from(value.len() + 2).unwrap_or(u8::MAX);
    out.extend([kind, length]);
    out.extend_from_slice(value);
}

/// Types and values of options, or `None` if a length is impossible.
fn options(mut data: &[u8]) -> Option<Vec<(u8, &[u8])>> {
    let mut options = Vec::new();
    while !data.is_empty() {
        let (&kind, &length) = (data.first()?, data.get(1)?);
        options.push((kind, data.get(2..usize::from(length))?));
        data = &data[usize::from(length)..];
    }
    Some(options)
}
