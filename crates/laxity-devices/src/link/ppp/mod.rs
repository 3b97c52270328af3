//! The Point-to-Point Protocol over an octet stream (RFC 1661, RFC 1662, RFC 1332).
//!
//! LCP agrees on the maximum receive unit, the control characters to escape (ACCM) and magic
//! numbers, IPCP on addresses; then IPv4 datagrams pass. What is not there, because this crate's other end never sends it: the end of
//! a link, echoes, rejections of codes and protocols; authentication, compression of headers or fields, a second network protocol.

mod framing;
mod negotiation;
mod options;

use std::collections::VecDeque;

use laxity_model::Instant;

use framing::FLAG;
pub use framing::{DEFAULT_ACCM, Decoder, FramingError, MAX_INFORMATION_OCTETS, Packet, encode};
use negotiation::{Automaton, State};
pub use negotiation::{MAX_CONFIGURE, RESTART};
use options::{IpcpOptions, LcpOptions};

/// The protocol number of IPv4 datagrams.
pub const PROTOCOL_IP: u16 = 0x0021;
/// The protocol number of LCP.
pub const PROTOCOL_LCP: u16 = 0xc021;
/// The protocol number of IPCP.
pub const PROTOCOL_IPCP: u16 = 0x8021;

/// What one side asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Maximum receive unit, in octets, 68 to 1500.
    pub mru: u16,
    /// A number unlike the other side's, to recognise a looped line.
    pub magic: u32,
    /// This side's IPv4 address; zero asks the other side for one.
    pub local: [u8; 4],
    /// The address the other side must take, if this side assigns it.
    pub assigned: Option<[u8; 4]>,
}

/// How far the agreement is (RFC 1661, section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Not begun.
    Dead,
    /// LCP negotiates.
    Establish,
    /// IPCP negotiates.
    Network,
    /// Datagrams pass.
    Opened,
    /// The other side did not answer.
    Terminated,
}

/// What was received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Frames with a wrong frame check sequence.
    pub bad_fcs: u64,
    /// Frames aborted, too short, too long, or without address and control field.
    pub malformed: u64,
}

/// One side of a PPP link.
#[derive(Debug)]
pub struct Ppp {
    decoder: Decoder,
    lcp: Automaton<LcpOptions>,
    ipcp: Automaton<IpcpOptions>,
    output: Vec<u8>,
    datagrams: VecDeque<Vec<u8>>,
    counters: Counters,
}

impl Ppp {
    /// A side that waits for [`open`](Self::open).
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            decoder: Decoder::default(),
            lcp: Automaton::new(LcpOptions::new(config.mru, config.magic)),
            ipcp: Automaton::new(IpcpOptions::new(config.local, config.assigned)),
            output: Vec::new(),
            datagrams: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Begins to negotiate.
    pub fn open(&mut self, now: Instant) {
        self.lcp.open(now);
        self.flush();
    }

    /// Lets the restart timers run out.
    pub fn poll(&mut self, now: Instant) {
        self.lcp.poll(now);
        self.ipcp.poll(now);
        self.flush();
    }

    /// How far the agreement is.
    pub fn phase(&self) -> Phase {
        match (self.lcp.state(), self.ipcp.state()) {
            (State::Closed, _) => Phase::Dead,
            (State::Stopped, _) | (_, State::Stopped) => Phase::Terminated,
            (State::Opened, State::Opened) => Phase::Opened,
            (State::Opened, _) => Phase::Network,
            _ => Phase::Establish,
        }
    }

    /// This side's address, once the phase is [`Phase::Opened`].
    pub fn local_address(&self) -> [u8; 4] {
        self.ipcp.options.local
    }

    /// The other side's address, once the phase is [`Phase::Opened`].
    pub fn peer_address(&self) -> [u8; 4] {
        self.ipcp.options.peer
    }

    /// The largest datagram that the other side takes, in octets.
    pub fn peer_mru(&self) -> u16 {
        self.lcp.options.peer_mru
    }

    /// What was received and sent.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Octets for the other side that wait to be taken with [`take_output`](Self::take_output).
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// Takes away the first `count` octets of [`output`](Self::output).
    ///
    /// # Panics
    ///
    /// If there are fewer.
    pub fn take_output(&mut self, count: usize) {
        self.output.drain(..count);
    }

    /// Sends a datagram; without an agreement it is dropped.
    pub fn send_datagram(&mut self, datagram: &[u8]) {
        if self.phase() == Phase::Opened {
            self.counters.datagrams_sent += 1;
            encode(
                PROTOCOL_IP,
                datagram,
                self.lcp.options.peer_accm,
                &mut self.output,
            );
        }
    }

    /// The next datagram received.
    pub fn receive_datagram(&mut self) -> Option<Vec<u8>> {
        self.datagrams.pop_front()
    }

    /// Takes octets from the other side: any octets.
    pub fn input(&mut self, octets: &[u8], now: Instant) {
        let mut decoder = core::mem::take(&mut self.decoder);
        for &octet in octets {
            match decoder.push(octet) {
                None => {}
                Some(Ok(packet)) => self.on_packet(packet, now),
                Some(Err(FramingError::BadFcs)) => self.counters.bad_fcs += 1,
                Some(Err(FramingError::Aborted | FramingError::Malformed)) => {
                    self.counters.malformed += 1;
                }
            }
            if octet == FLAG && self.lcp.state() == State::Opened {
                decoder.set_accm(LcpOptions::ACCM);
            }
        }
        self.decoder = decoder;
    }

    fn on_packet(&mut self, packet: Packet<'_>, now: Instant) {
        match packet.protocol {
            PROTOCOL_LCP => self.on_lcp(packet.information, now),
            // RFC 1661, section 3.4: before LCP has agreed, all else is discarded.
            _ if self.lcp.state() != State::Opened => {}
            PROTOCOL_IPCP => self.ipcp.receive(packet.information, now),
            PROTOCOL_IP if self.ipcp.state() == State::Opened => {
                self.datagrams.push_back(packet.information.to_vec());
            }
            _ => {}
        }
        self.flush();
    }

    fn on_lcp(&mut self, octets: &[u8], now: Instant) {
        let was_opened = self.lcp.state() == State::Opened;
        self.lcp.receive(octets, now);
        if self.lcp.state() == State::Opened && !was_opened {
            self.ipcp.open(now);
        }
    }

    /// Writes the packets of both protocols as frames.
    fn flush(&mut self) {
        for packet in self.lcp.sent.drain(..) {
            encode(PROTOCOL_LCP, &packet, DEFAULT_ACCM, &mut self.output);
        }
        let accm = self.lcp.options.peer_accm;
        for packet in self.ipcp.sent.drain(..) {
            encode(PROTOCOL_IPCP, &packet, accm, &mut self.output);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_model::Span;

    fn pair() -> (Ppp, Ppp) {
        let client = Config {
            mru: 576,
            magic: 1,
            local: [0; 4],
            assigned: None,
        };
        let server = Config {
            mru: 1500,
            magic: 2,
            local: [10, 0, 0, 1],
            assigned: Some([10, 0, 0, 2]),
        };
        (Ppp::new(client), Ppp::new(server))
    }

    /// Carries everything over, both ways, until nobody has anything to say.
    fn converse(a: &mut Ppp, b: &mut Ppp, now: Instant) {
        while !a.output().is_empty() || !b.output().is_empty() {
            carry(a, b, now);
            carry(b, a, now);
        }
    }

    fn carry(from: &mut Ppp, to: &mut Ppp, now: Instant) {
        let octets = from.output().to_vec();
        from.take_output(octets.len());
        to.input(&octets, now);
    }

    #[test]
    fn both_sides_agree_and_the_client_gets_an_address() {
        let (mut client, mut server) = pair();
        let now = Instant::from_nanos(0);
        client.open(now);
        server.open(now);
        converse(&mut client, &mut server, now);
        assert_eq!(
            (client.phase(), server.phase()),
            (Phase::Opened, Phase::Opened)
        );
        assert_eq!(
            (client.local_address(), client.peer_address()),
            ([10, 0, 0, 2], [10, 0, 0, 1])
        );
        assert_eq!(
            (server.local_address(), server.peer_address()),
            ([10, 0, 0, 1], [10, 0, 0, 2])
        );
        assert_eq!((client.peer_mru(), server.peer_mru()), (1500, 576));
        server.send_datagram(&[0x11, 0x7e, 0]);
        converse(&mut client, &mut server, now);
        assert_eq!(client.receive_datagram(), Some(vec![0x11, 0x7e, 0]));
    }

    #[test]
    fn a_lost_request_is_repeated_after_the_restart_time() {
        let (mut client, mut server) = pair();
        client.open(Instant::from_nanos(0));
        client.take_output(client.output().len());
        server.open(Instant::from_nanos(0));
        server.take_output(server.output().len());
        let later = Instant::from_secs(3);
        client.poll(later - Span::from_nanos(1));
        assert!(client.output().is_empty());
        client.poll(later);
        server.poll(later);
        converse(&mut client, &mut server, later);
        assert_eq!(
            (client.phase(), server.phase()),
            (Phase::Opened, Phase::Opened)
        );
    }

    #[test]
    fn a_silent_other_side_is_given_up_after_ten_repetitions() {
        let (mut client, _) = pair();
        client.open(Instant::from_nanos(0));
        for restart in 1..=11 {
            assert_eq!(client.phase(), Phase::Establish);
            client.poll(Instant::from_secs(3 * restart));
        }
        assert_eq!(client.phase(), Phase::Terminated);
    }

    #[test]
    fn an_unknown_option_is_rejected_and_unknown_codes_and_protocols_are_ignored() {
        let (mut client, mut server) = pair();
        let now = Instant::from_nanos(0);
        client.open(now);
        server.open(now);
        converse(&mut client, &mut server, now);
        let mut answer = |protocol: u16, information: &[u8]| {
            let mut octets = Vec::new();
            encode(protocol, information, DEFAULT_ACCM, &mut octets);
            client.input(&octets, now);
            let answer = client.output().to_vec();
            client.take_output(answer.len());
            let mut decoder = Decoder::default();
            let mut codes = Vec::new();
            for octet in answer {
                if let Some(Ok(packet)) = decoder.push(octet) {
                    codes.push(packet.information[0]);
                }
            }
            codes
        };
        assert_eq!(answer(PROTOCOL_LCP, &[77, 1, 0, 4]), []);
        assert_eq!(answer(0x8057, &[1, 1, 0, 4]), []);
        assert_eq!(
            answer(PROTOCOL_LCP, &[1, 9, 0, 7, 99, 3, 0]),
            [1, 4],
            "a new request, and a Configure-Reject"
        );
    }
}
