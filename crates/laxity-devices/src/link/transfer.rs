//! The file transfer: a server that sends a file to whoever connects, and a client that receives and checks it.
//!
//! The file is a header of [`HEADER_OCTETS`] octets (length and CRC-32, big-endian) and then octets that do not compress, made from a
//! seed.

use crc::{CRC_32_ISO_HDLC, Crc, Digest, Table};
use laxity_model::Span;
use laxity_model::base::random::{GAMMA, scrambled};
use smoltcp::socket::tcp;

/// Octets in front of the file: its length (8) and its CRC-32 (4).
pub(super) const HEADER_OCTETS: usize = 12;

static CRC: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC);

/// Fills `out` with octets number `offset` and following of the file made from `seed` (the
/// SplitMix64 sequence of Steele, Lea and Flood, *Fast splittable pseudorandom number generators*,
/// 2014).
pub(super) fn file_octets(seed: u64, offset: u64, out: &mut [u8]) {
    for (position, octet) in (offset..).zip(out) {
        let word = scrambled(seed.wrapping_add((position / 8).wrapping_mul(GAMMA)));
        *octet = word.to_le_bytes()[(position % 8) as usize];
    }
}

/// A file's length and CRC-32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    octets: u64,
    crc32: u32,
}

impl Header {
    fn of_file(seed: u64, octets: u64) -> Self {
        let mut digest = CRC.digest();
        let mut piece = [0; 4096];
        let mut offset = 0;
        while offset < octets {
            let piece = &mut piece[..(octets - offset).min(4096) as usize];
            file_octets(seed, offset, piece);
            digest.update(piece);
            offset += piece.len() as u64;
        }
        Self {
            octets,
            crc32: digest.finalize(),
        }
    }

    fn to_octets(self) -> [u8; HEADER_OCTETS] {
        let mut octets = [0; HEADER_OCTETS];
        octets[..8].copy_from_slice(&self.octets.to_be_bytes());
        octets[8..].copy_from_slice(&self.crc32.to_be_bytes());
        octets
    }

    fn from_octets(octets: [u8; HEADER_OCTETS]) -> Self {
        let [a, b, c, d, e, f, g, h, crc32 @ ..] = octets;
        Self {
            octets: u64::from_be_bytes([a, b, c, d, e, f, g, h]),
            crc32: u32::from_be_bytes(crc32),
        }
    }
}

/// A file that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// From the first segment of TCP's connection (or its arrival) to the last octet of the file;
    /// for the server, to its acknowledgement.
    pub took: Span,
    /// Whether length and CRC-32 are those that the server told. True for the server itself.
    pub intact: bool,
}

/// How far the transfer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// No connection yet.
    Waiting,
    /// So many octets of the file were received, or taken by TCP for sending.
    Transferring {
        /// Octets of the file, without its header.
        octets: u64,
    },
    /// The file has arrived.
    Done(Arrived),
    /// The connection was reset or closed before the end.
    Broken,
}

/// What a host does with its connection.
pub(super) enum Application {
    /// It sends a file to whoever connects.
    Server(Server),
    /// It connects to the server and receives its file.
    Client(Client),
}

impl Application {
    /// A server of a file of so many octets, made from `seed`.
    pub(super) fn server(seed: u64, octets: u64) -> Self {
        Self::Server(Server {
            seed,
            header: Header::of_file(seed, octets),
            taken: 0,
        })
    }

    /// A client that has received nothing.
    pub(super) fn client() -> Self {
        Self::Client(Client {
            header_octets: Vec::new(),
            received: 0,
            digest: CRC.digest(),
        })
    }
}

/// The sending side.
pub(super) struct Server {
    seed: u64,
    header: Header,
    /// Octets of header and file that TCP has taken.
    taken: u64,
}

impl Server {
    /// Gives TCP what it takes of the header and the file.
    pub(super) fn serve(&mut self, socket: &mut tcp::Socket<'_>, took: Span) -> Progress {
        let total = HEADER_OCTETS as u64 + self.header.octets;
        let header_octets = self.header.to_octets();
        while self.taken < total && socket.can_send() {
            let at = self.taken;
            let given = socket.send(|room| {
                let count = match header_octets.get(at as usize..) {
                    Some(rest @ [_, ..]) => {
                        let count = rest.len().min(room.len());
                        room[..count].copy_from_slice(&rest[..count]);
                        count
                    }
                    _ => {
                        let left = usize::try_from(total - at).unwrap_or(usize::MAX);
                        let count = room.len().min(left);
                        let offset = at - HEADER_OCTETS as u64;
                        file_octets(self.seed, offset, &mut room[..count]);
                        count
                    }
                };
                (count, count)
            });
            match given {
                Ok(count @ 1..) => self.taken += count as u64,
                Ok(0) | Err(_) => break,
            }
        }
        if self.taken == total && socket.send_queue() == 0 {
            socket.close();
            let intact = true;
            return Progress::Done(Arrived { took, intact });
        }
        match socket.state() {
            tcp::State::Listen | tcp::State::SynReceived => Progress::Waiting,
            tcp::State::Established => Progress::Transferring {
                octets: self.taken.saturating_sub(HEADER_OCTETS as u64),
            },
            _ => Progress::Broken,
        }
    }
}

/// The receiving side.
pub(super) struct Client {
    header_octets: Vec<u8>,
    /// Octets of the file without its header.
    received: u64,
    digest: Digest<'static, u32, Table<16>>,
}

impl Client {
    /// Takes from TCP what has arrived of the header and the file.
    pub(super) fn take_in(&mut self, socket: &mut tcp::Socket<'_>, took: Span) -> Progress {
        while socket.can_recv() {
            let taken = socket.recv(|octets| {
                let count = octets.len().min(HEADER_OCTETS - self.header_octets.len());
                let (first, rest) = octets.split_at(count);
                self.header_octets.extend_from_slice(first);
                self.digest.update(rest);
                self.received += rest.len() as u64;
                (octets.len(), ())
            });
            if taken.is_err() {
                break;
            }
        }
        let header = self.header_octets.as_slice().try_into();
        match header.ok().map(Header::from_octets) {
            Some(header) if self.received >= header.octets => {
                socket.close();
                let sum = self.digest.clone().finalize();
                let intact = self.received == header.octets && sum == header.crc32;
                Progress::Done(Arrived { took, intact })
            }
            _ if !socket.may_recv() && socket.state() != tcp::State::SynSent => Progress::Broken,
            Some(_) => Progress::Transferring {
                octets: self.received,
            },
            None => Progress::Waiting,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_the_same_however_it_is_read() {
        let mut whole = [0; 100];
        file_octets(7, 0, &mut whole);
        let mut part = [0; 41];
        file_octets(7, 13, &mut part);
        assert_eq!(whole[13..54], part);
        let mut other = [0; 100];
        file_octets(8, 0, &mut other);
        assert_ne!(whole, other);
    }

    #[test]
    fn the_header_is_read_as_written() {
        let header = Header::of_file(3, 5000);
        assert_eq!(header.octets, 5000);
        assert_eq!(Header::from_octets(header.to_octets()), header);
    }
}
