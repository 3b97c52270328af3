//! One end of the link put together: bits of the line below, a file transfer above.
//!
//! The client is the side that called: it establishes the error-corrected connection, is given an
//! address, connects, and receives the file. The server answers and sends it. Both begin by
//! themselves when the carrier comes up.

use core::net::Ipv4Addr;
use std::collections::VecDeque;

use laxity_model::{Instant, Span};

use super::lapm::{self, Lapm, Role};
use super::ppp::{self, Phase, Ppp};
use super::tcpip::{Stack, TCP_IP_HEADER_OCTETS};
use super::transfer::{Application, Progress};
use super::{Arrived, LineRates};
use crate::bits::{BitSink, BitSource};

const SERVER_ADDRESS: [u8; 4] = [10, 0, 0, 1];
const CLIENT_ADDRESS: [u8; 4] = [10, 0, 0, 2];

/// What is transferred, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Error correction.
    pub lapm: lapm::Config,
    /// Octets of the largest IP datagram, 68 to 1500; see [`mss`](Self::mss).
    pub mtu: u16,
    /// Octets of the file.
    pub file_octets: u64,
    /// What the file, the magic numbers and TCP's sequence numbers are made from.
    pub seed: u64,
    /// What lies between the server's end of the link and the server; the client has none.
    pub network: Option<Network>,
}

/// A network that neither loses nor reorders datagrams: each takes `delay`, and up to `jitter` more, evenly at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    /// The least time of a datagram, one way.
    pub delay: Span,
    /// What it may take more.
    pub jitter: Span,
}

/// Datagrams on their way through a network, in one direction.
#[derive(Debug, Default)]
struct Transit {
    network: Option<Network>,
    random: u64,
    under_way: VecDeque<(Instant, Vec<u8>)>,
}

impl Transit {
    fn new(network: Option<Network>, seed: u64) -> Self {
        Self {
            network,
            random: seed,
            under_way: VecDeque::new(),
        }
    }

    fn send(&mut self, datagram: Vec<u8>, now: Instant) {
        let mut arrives = now;
        if let Some(network) = self.network {
            self.random = self
                .random
                .wrapping_mul(0x5851_F42D_4C95_7F2D)
                .wrapping_add(0x1405_7B7E_F767_814F);
            let share = u128::from(self.random >> 32);
            let more = (u128::from(network.jitter.as_nanos()) * share) >> 32;
            arrives += network.delay + Span::from_nanos(more as u64);
        }
        if let Some((before, _)) = self.under_way.back() {
            arrives = arrives.max(*before);
        }
        self.under_way.push_back((arrives, datagram));
    }

    fn receive(&mut self, now: Instant) -> Option<Vec<u8>> {
        let (arrives, _) = self.under_way.front()?;
        (*arrives <= now)
            .then(|| self.under_way.pop_front())?
            .map(|(_, datagram)| datagram)
    }
}

impl Default for Config {
    /// 200,000 octets with an MSS of 536 (the datagrams every host takes, RFC 879) and nothing
    /// escaped needlessly.
    fn default() -> Self {
        Self {
            lapm: lapm::Config::default(),
            mtu: 576,
            file_octets: 200_000,
            seed: 1,
            network: None,
        }
    }
}

impl Config {
    /// The same with another maximum segment size, in octets of data in a TCP segment; 28 to 1460.
    #[must_use]
    pub fn with_mss(self, mss: u16) -> Self {
        Self {
            mtu: mss.clamp(28, 1460) + TCP_IP_HEADER_OCTETS,
            ..self
        }
    }

    /// Octets of data in a full TCP segment.
    pub fn mss(&self) -> u16 {
        self.mtu.saturating_sub(TCP_IP_HEADER_OCTETS)
    }

    /// Octets that error correction takes in before the first of them is sent: a retrained line should find something to send at once, and a
    /// datagram must fit in one piece.
    pub fn send_octets(&self) -> usize {
        let fewest = 4 * ppp::MAX_INFORMATION_OCTETS;
        self.lapm.send_octets.max(fewest)
    }
}

/// Where a transfer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// There was no carrier yet.
    Idle,
    /// Error correction and PPP are being agreed on.
    Connecting,
    /// IP datagrams pass; no octet of the file has.
    Connected,
    /// The file is under way.
    Transferring {
        /// Octets received, or taken for sending.
        bytes: u64,
    },
    /// The file has arrived.
    Done(Arrived),
    /// There will be no file.
    Failed(Failure),
}

/// Why a transfer failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The error-corrected connection is gone.
    Link(lapm::Loss),
    /// The two sides did not agree on PPP.
    Negotiation,
    /// TCP's connection was reset.
    Connection,
}

/// What happened at one end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Error correction.
    pub lapm: lapm::Counters,
    /// PPP.
    pub ppp: ppp::Counters,
    /// Times the carrier went away and came back.
    pub carrier_losses: u64,
}

/// One end of the link.
///
/// It is a [`BitSource`] and a [`BitSink`] for the modem; bits count as sent and received at the
/// time of the last [`poll`](Self::poll), which should come with every block of samples.
#[derive(Debug)]
pub struct Endpoint {
    role: Role,
    config: Config,
    lapm: Lapm,
    ppp: Ppp,
    stack: Option<Stack>,
    /// From the line to the stack, and back.
    transit: [Transit; 2],
    state: State,
    carrier: bool,
    carrier_losses: u64,
    low_water_octets: usize,
    octets: Vec<u8>,
}

impl Endpoint {
    /// The side that calls and receives the file.
    #[must_use]
    pub fn client(config: Config) -> Self {
        Self::new(Role::Originator, config, [0; 4], None)
    }

    /// The side that answers and sends the file.
    #[must_use]
    pub fn server(config: Config) -> Self {
        Self::new(Role::Answerer, config, SERVER_ADDRESS, Some(CLIENT_ADDRESS))
    }

    fn new(role: Role, mut config: Config, local: [u8; 4], assigned: Option<[u8; 4]>) -> Self {
        config.mtu = config.mtu.clamp(68, ppp::MAX_INFORMATION_OCTETS as u16);
        config.lapm.send_octets = config.send_octets();
        let magic = config.seed as u32
            ^ if role == Role::Originator {
                0x5bd1_e995
            } else {
                0x1b87_3593
            };
        let network = config.network.filter(|_| role == Role::Answerer);
        let ppp = ppp::Config {
            mru: config.mtu,
            magic,
            local,
            assigned,
        };
        Self {
            role,
            config,
            lapm: Lapm::new(role, config.lapm),
            ppp: Ppp::new(ppp),
            stack: None,
            transit: [1, 2].map(|way| Transit::new(network, config.seed.wrapping_add(way))),
            state: State::Idle,
            carrier: false,
            carrier_losses: 0,
            low_water_octets: 0,
            octets: Vec::new(),
        }
    }

    /// Where the transfer stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// What happened so far.
    pub fn counters(&self) -> Counters {
        Counters {
            lapm: self.lapm.counters(),
            ppp: self.ppp.counters(),
            carrier_losses: self.carrier_losses,
        }
    }

    /// Tells that the line carries data at `rates`, or carries none: before the modems have trained, and while they retrain.
    ///
    /// While it carries none the timers of error correction stand still; TCP's do not, as it knows nothing of lines.
    pub fn carrier(&mut self, rates: Option<LineRates>, now: Instant) {
        if let Some(rates) = rates {
            self.lapm.resume(rates, now);
            self.low_water_octets = low_water_octets(rates);
            if self.state == State::Idle {
                self.state = State::Connecting;
                if self.role == Role::Originator {
                    self.lapm.connect(now);
                }
            }
        } else if self.carrier {
            self.lapm.pause(now);
            self.carrier_losses += 1;
        }
        self.carrier = rates.is_some();
    }

    /// Tells the time, and passes on what has arrived.
    pub fn poll(&mut self, now: Instant) {
        self.lapm.poll(now);
        if matches!(self.state, State::Idle | State::Failed(_)) {
            return;
        }
        if self.lapm.state() == lapm::State::Connected && self.ppp.phase() == Phase::Dead {
            self.ppp.open(now);
        }
        self.octets.clear();
        self.lapm.receive(&mut self.octets);
        self.ppp.input(&self.octets, now);
        self.ppp.poll(now);
        self.flush();
        if self.ppp.phase() == Phase::Opened && self.stack.is_none() {
            self.stack = Some(self.new_stack(now));
        }
        self.run_stack(now);
        self.flush();
        self.update_state();
    }

    fn new_stack(&self, now: Instant) -> Stack {
        let application = match self.role {
            Role::Originator => Application::client(),
            Role::Answerer => Application::server(self.config.seed, self.config.file_octets),
        };
        let local = Ipv4Addr::from(self.ppp.local_address());
        let peer = Ipv4Addr::from(self.ppp.peer_address());
        let mtu = self.config.mtu.min(self.ppp.peer_mru());
        let seed = self.config.seed ^ u64::from(u32::from(local));
        Stack::new(application, local, peer, mtu, seed, now)
    }

    fn is_ready(&self) -> bool {
        self.lapm.send_backlog() + self.ppp.output().len() < self.low_water_octets
    }

    fn run_stack(&mut self, now: Instant) {
        loop {
            let ready = self.is_ready();
            let Some(stack) = &mut self.stack else { return };
            let [inwards, outwards] = &mut self.transit;
            while let Some(datagram) = self.ppp.receive_datagram() {
                inwards.send(datagram, now);
            }
            while let Some(datagram) = inwards.receive(now) {
                stack.input(datagram);
            }
            let again = stack.poll(now, ready);
            while let Some(datagram) = stack.output() {
                outwards.send(datagram, now);
            }
            while let Some(datagram) = outwards.receive(now) {
                self.ppp.send_datagram(&datagram);
            }
            if !again {
                return;
            }
            self.flush();
        }
    }

    fn flush(&mut self) {
        let count = self.lapm.send(self.ppp.output());
        self.ppp.take_output(count);
    }

    fn update_state(&mut self) {
        if matches!(self.state, State::Done(_) | State::Failed(_)) {
            return;
        }
        let progress = self.stack.as_ref().map(Stack::progress);
        self.state = match (progress, self.lapm.state(), self.ppp.phase()) {
            (Some(Progress::Done(arrived)), _, _) => State::Done(arrived),
            (_, lapm::State::Lost(loss), _) => State::Failed(Failure::Link(loss)),
            (_, _, Phase::Terminated) => State::Failed(Failure::Negotiation),
            (Some(Progress::Broken), _, _) => State::Failed(Failure::Connection),
            (Some(Progress::Transferring { octets }), _, _) => {
                State::Transferring { bytes: octets }
            }
            (Some(Progress::Waiting), _, _) => State::Connected,
            (None, _, _) => State::Connecting,
        };
    }
}

/// TCP gets to send its next segment when fewer octets wait for a frame than the line carries in this time, or than fill a frame.
/// Enough to keep the line busy between polls, and little enough that TCP's round-trip time stays under its [shortest retransmission
/// time](super::RETRANSMISSION) on all but the slowest lines.
pub const LOW_WATER: Span = Span::from_millis(80);

fn low_water_octets(rates: LineRates) -> usize {
    let bits = u64::from(rates.transmit_bit_s) * LOW_WATER.as_micros() / 1_000_000;
    (bits as usize / 8).max(128)
}

impl BitSource for Endpoint {
    #[inline]
    fn next_bit(&mut self) -> bool {
        self.lapm.next_bit()
    }
}

impl BitSink for Endpoint {
    #[inline]
    fn push_bit(&mut self, bit: bool) {
        self.lapm.push_bit(bit);
    }
}
