//! What LCP and IPCP agree on.

use super::framing::{DEFAULT_ACCM, MAX_INFORMATION_OCTETS};
use super::negotiation::{Opinion, Options};

/// The options of the Link Control Protocol: RFC 1661, section 6, and RFC 1662, section 7.1.
#[derive(Debug)]
pub(super) struct LcpOptions {
    mru: u16,
    magic: u32,
    /// The largest packet the other side takes.
    pub(super) peer_mru: u16,
    /// The characters to escape towards the other side.
    pub(super) peer_accm: u32,
}

const MRU: u8 = 1;
const ACCM: u8 = 2;
const MAGIC: u8 = 5;

const DEFAULT_MRU: u16 = MAX_INFORMATION_OCTETS as u16;
/// A smaller one holds no IP datagram that every host must take whole (RFC 791: 68 octets).
const MIN_MRU: u16 = 68;

impl LcpOptions {
    /// The control characters that the other side has to escape, once it has agreed: none, as error correction carries anything.
    pub(super) const ACCM: u32 = 0;

    pub(super) fn new(mru: u16, magic: u32) -> Self {
        Self {
            mru,
            magic,
            peer_mru: DEFAULT_MRU,
            peer_accm: DEFAULT_ACCM,
        }
    }
}

impl Options for LcpOptions {
    fn wanted(&self, option: &mut dyn FnMut(u8, &[u8])) {
        if self.mru != DEFAULT_MRU {
            option(MRU, &self.mru.to_be_bytes());
        }
        option(ACCM, &Self::ACCM.to_be_bytes());
        option(MAGIC, &self.magic.to_be_bytes());
    }

    fn begin_peer_request(&mut self) {
        (self.peer_mru, self.peer_accm) = (DEFAULT_MRU, DEFAULT_ACCM);
    }

    fn judge(&mut self, kind: u8, value: &[u8]) -> Opinion {
        match (kind, value) {
            (MRU, &[high, low]) if u16::from_be_bytes([high, low]) >= MIN_MRU => {
                self.peer_mru = u16::from_be_bytes([high, low]).min(DEFAULT_MRU);
            }
            (ACCM, &[a, b, c, d]) => self.peer_accm = u32::from_be_bytes([a, b, c, d]),
            // One's own number comes back on a looped line.
            (MAGIC, &[a, b, c, d]) if u32::from_be_bytes([a, b, c, d]) != self.magic => {}
            _ => return Opinion::Unknown,
        }
        Opinion::Agreed
    }

    /// The other side has nothing to propose: it takes any unit of 68 octets or more, any control characters, and another magic number.
    fn on_proposal(&mut self, _: u8, _: &[u8]) {}
}

/// The option of the IP Control Protocol that matters: the address (RFC 1332, section 3.3).
#[derive(Debug)]
pub(super) struct IpcpOptions {
    /// This side's address; zero asks the other side for one.
    pub(super) local: [u8; 4],
    /// The other side's address, once it is known.
    pub(super) peer: [u8; 4],
    /// The address the other side must take.
    assigned: Option<[u8; 4]>,
}

const IP_ADDRESS: u8 = 3;

impl IpcpOptions {
    pub(super) fn new(local: [u8; 4], assigned: Option<[u8; 4]>) -> Self {
        Self {
            local,
            peer: [0; 4],
            assigned,
        }
    }
}

impl Options for IpcpOptions {
    fn wanted(&self, option: &mut dyn FnMut(u8, &[u8])) {
        option(IP_ADDRESS, &self.local);
    }

    fn begin_peer_request(&mut self) {
        self.peer = [0; 4];
    }

    fn judge(&mut self, kind: u8, value: &[u8]) -> Opinion {
        match (kind, <[u8; 4]>::try_from(value)) {
            (IP_ADDRESS, Ok(address)) => match self.assigned {
                Some(assigned) if assigned != address => Opinion::Rather(assigned.to_vec()),
                None if address == [0; 4] => Opinion::Unknown,
                _ => {
                    self.peer = address;
                    Opinion::Agreed
                }
            },
            _ => Opinion::Unknown,
        }
    }

    fn on_proposal(&mut self, kind: u8, value: &[u8]) {
        if let (IP_ADDRESS, Ok(address)) = (kind, value.try_into()) {
            self.local = address;
        }
    }
}
