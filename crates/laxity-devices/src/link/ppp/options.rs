//! What LCP and IPCP agree on.

use super::framing::{DEFAULT_ACCM, MAX_INFORMATION_OCTETS};
use super::negotiation::{Opinion, Options};

/// The options of the Link Control Protocol: RFC 1661, section 6, and RFC 1662, section 7.1.
#[derive(Debug)]
pub(super) struct LcpOptions {
    wanted_mru: Option<u16>,
    wanted_accm: Option<u32>,
    magic: Option<u32>,
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
    pub(super) fn new(mru: u16, accm: u32, magic: u32) -> Self {
        Self {
            wanted_mru: (mru != DEFAULT_MRU).then_some(mru),
            wanted_accm: (accm != DEFAULT_ACCM).then_some(accm),
            magic: Some(magic),
            peer_mru: DEFAULT_MRU,
            peer_accm: DEFAULT_ACCM,
        }
    }

    /// The characters that the other side escapes, once it has agreed.
    pub(super) fn accm(&self) -> u32 {
        self.wanted_accm.unwrap_or(DEFAULT_ACCM)
    }

    pub(super) fn magic(&self) -> u32 {
        self.magic.unwrap_or(0)
    }
}

impl Options for LcpOptions {
    fn wanted(&self, option: &mut dyn FnMut(u8, &[u8])) {
        if let Some(mru) = self.wanted_mru {
            option(MRU, &mru.to_be_bytes());
        }
        if let Some(accm) = self.wanted_accm {
            option(ACCM, &accm.to_be_bytes());
        }
        if let Some(magic) = self.magic {
            option(MAGIC, &magic.to_be_bytes());
        }
    }

    fn begin_peer_request(&mut self) {
        (self.peer_mru, self.peer_accm) = (DEFAULT_MRU, DEFAULT_ACCM);
    }

    fn judge(&mut self, kind: u8, value: &[u8]) -> Opinion {
        match (kind, value) {
            (MRU, &[high, low]) => {
                let mru = u16::from_be_bytes([high, low]);
                if mru < MIN_MRU {
                    return Opinion::Rather(DEFAULT_MRU.to_be_bytes().to_vec());
                }
                self.peer_mru = mru.min(DEFAULT_MRU);
                Opinion::Agreed
            }
            (ACCM, &[a, b, c, d]) => {
                self.peer_accm = u32::from_be_bytes([a, b, c, d]);
                Opinion::Agreed
            }
            (MAGIC, &[a, b, c, d]) => {
                let magic = u32::from_be_bytes([a, b, c, d]);
                // One's own number comes back on a looped line.
                if magic == 0 || Some(magic) == self.magic {
                    return Opinion::Rather((!magic).to_be_bytes().to_vec());
                }
                Opinion::Agreed
            }
            _ => Opinion::Unknown,
        }
    }

    fn on_proposal(&mut self, kind: u8, value: &[u8]) {
        match (kind, value) {
            (MRU, &[high, low]) => self.wanted_mru = Some(u16::from_be_bytes([high, low])),
            (ACCM, &[a, b, c, d]) => {
                self.wanted_accm = Some(self.accm() | u32::from_be_bytes([a, b, c, d]));
            }
            // The other side chose the same number: choose anew, each side from its own.
            (MAGIC, &[_, _, _, _]) => {
                self.magic = self
                    .magic
                    .map(|magic| magic.wrapping_mul(0x9e37_79b1).wrapping_add(1));
            }
            _ => {}
        }
    }

    fn on_rejection(&mut self, kind: u8) {
        match kind {
            MRU => self.wanted_mru = None,
            ACCM => self.wanted_accm = None,
            MAGIC => self.magic = None,
            _ => {}
        }
    }
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

    fn on_rejection(&mut self, _kind: u8) {
        // Without an address there is no IP; asking again ends with Max-Configure.
    }
}
