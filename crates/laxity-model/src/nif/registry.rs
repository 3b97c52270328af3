//! Whose a packet is: the seam behind which a driver defines its key, and one whose key is a circuit's number.
//!
//! Liao, Tan, Campbell 1996, §2.2: a client registers with a packet type, of which drivers define the exact meaning, and one default
//! takes what nobody registered for. On ATM the type is a virtual circuit (§3.1).

use alloc::collections::BTreeMap;
use core::fmt;

use derive_more::Display;

/// A client of a driver: its place in the driver's list, another's when it has ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Display)]
pub struct ClientId(pub u32);

impl ClientId {
    /// As an index into a table with one entry a client.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What the key says of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Found {
    /// It is this client's.
    Client(ClientId),
    /// Nobody registered for it: it is the [`Fallback`]'s.
    Nobody,
    /// It cannot be told, for this reason; it is nobody's, and not the fallback's either.
    Malformed(&'static str),
}

/// Who gets what nobody registered for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Fallback {
    /// A client.
    Client(ClientId),
    /// The kernel, which has it already on an interface that it shares.
    Kernel,
    /// Nobody: it is dropped, and counted.
    #[default]
    Nobody,
}

/// A driver's key: from packets to clients.
pub trait Demultiplex {
    /// Which packets a client wants.
    type Filter;
    /// Why a filter cannot be had beside those that are there.
    type Refused: core::error::Error;

    /// From now on packets of this filter are the client's. One client may have several.
    ///
    /// # Errors
    ///
    /// The filter is another's, or it could not be told whose a packet of both is. Nothing has changed then.
    fn register(&mut self, filter: &Self::Filter, client: ClientId) -> Result<(), Self::Refused>;

    /// The same of packets that the interface finds itself: no other client may have a filter that is more specific, but one that is such, too.
    ///
    /// # Errors
    ///
    /// As of [`register`](Self::register); or another has such a filter.
    fn register_found(
        &mut self,
        filter: &Self::Filter,
        client: ClientId,
    ) -> Result<(), Self::Refused>;

    /// The client has no filter any more.
    fn withdraw(&mut self, client: ClientId);

    /// Whose this is. Packets come from anybody: whatever is in them, this neither panics nor takes long.
    fn find(&self, packet: &[u8]) -> Found;

    /// Whether a filter wants this, whoever else does: for taps, which are outside of whose a packet is.
    fn matches(&self, filter: &Self::Filter, packet: &[u8]) -> bool;
}

/// A virtual circuit: a path (`VPI`) and a channel in it (`VCI`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Circuit {
    /// 0 to 255.
    pub path: u8,
    /// 0 to 65535.
    pub channel: u16,
}

impl Circuit {
    /// Bytes of a packet that say its circuit.
    pub const LENGTH: usize = 4;

    /// Of a packet that begins as a cell at the user's side does (ITU-T I.361): four bits of flow control, path, channel, three bits
    /// of payload type, one of loss priority. `None` if it is too short for that.
    #[must_use]
    pub fn of(packet: &[u8]) -> Option<Self> {
        let header = u32::from_be_bytes(*packet.first_chunk()?);
        Some(Self {
            path: (header >> 20) as u8,
            channel: (header >> 4) as u16,
        })
    }

    /// What a packet of this circuit begins with.
    #[must_use]
    pub fn header(self) -> [u8; Self::LENGTH] {
        (u32::from(self.path) << 20 | u32::from(self.channel) << 4).to_be_bytes()
    }
}

/// The circuit has a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CircuitTaken {
    /// Which one it is.
    pub circuit: Circuit,
    /// Who has it.
    pub by: ClientId,
}

impl fmt::Display for CircuitTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Circuit { path, channel } = self.circuit;
        write!(f, "circuit {path}/{channel} is client {}'s", self.by)
    }
}

impl core::error::Error for CircuitTaken {}

/// The key of a driver whose packets say their circuit, as ATM adapters' do: each circuit is one client's. O(log circuits).
#[derive(Clone, Debug, Default)]
pub struct Circuits(BTreeMap<Circuit, ClientId>);

impl Demultiplex for Circuits {
    type Filter = Circuit;
    type Refused = CircuitTaken;

    fn register(&mut self, filter: &Circuit, client: ClientId) -> Result<(), CircuitTaken> {
        if let Some(by) = self.0.get(filter) {
            return Err(CircuitTaken {
                circuit: *filter,
                by: *by,
            });
        }
        self.0.insert(*filter, client);
        Ok(())
    }

    /// No circuit is more specific than another.
    fn register_found(&mut self, filter: &Circuit, client: ClientId) -> Result<(), CircuitTaken> {
        self.register(filter, client)
    }

    fn withdraw(&mut self, client: ClientId) {
        self.0.retain(|_, by| *by != client);
    }

    fn find(&self, packet: &[u8]) -> Found {
        let Some(circuit) = Circuit::of(packet) else {
            return Found::Malformed("shorter than a circuit's number");
        };
        self.0
            .get(&circuit)
            .map_or(Found::Nobody, |by| Found::Client(*by))
    }

    fn matches(&self, filter: &Circuit, packet: &[u8]) -> bool {
        Circuit::of(packet).is_some_and(|circuit| circuit == *filter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    const VIDEO: Circuit = Circuit {
        path: 0x5a,
        channel: 0x1234,
    };

    #[test]
    fn a_circuit_is_where_a_cell_has_it() {
        assert_eq!(VIDEO.header(), [0x05, 0xa1, 0x23, 0x40]);
        assert_eq!(Circuit::of(&[0xf5, 0xa1, 0x23, 0x4f, 9]), Some(VIDEO));
        assert_eq!(Circuit::of(&[0x05, 0xa1, 0x23]), None);
    }

    #[test]
    fn a_circuit_is_one_clients_until_that_withdraws() {
        let mut circuits = Circuits::default();
        let packet = VIDEO.header();
        assert_eq!(circuits.find(&packet), Found::Nobody);
        circuits.register(&VIDEO, ClientId(3)).unwrap();
        assert_eq!(circuits.find(&packet), Found::Client(ClientId(3)));
        let taken = circuits.register(&VIDEO, ClientId(4)).unwrap_err();
        assert_eq!(taken.to_string(), "circuit 90/4660 is client 3's");
        circuits.withdraw(ClientId(3));
        assert_eq!(circuits.find(&packet), Found::Nobody);
        assert!(matches!(circuits.find(&[1, 2, 3]), Found::Malformed(_)));
    }
}
