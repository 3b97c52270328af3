//! The key of a driver of Ethernet frames: a filter in pcap's language says which packets a client wants, and of those that match, the most specific one decides.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::filter::Filter;
use super::frame::{self, Parsed, Tail};
use super::registry::{ClientId, Demultiplex, Found};
use super::table::{Overlap, Registration, Table};

/// Filters and their clients (§2.2). Finding whose a packet is takes a probe for each mask that filters have; see [`Table`].
#[derive(Debug)]
pub struct Frames {
    table: Table<ClientId>,
    tail: Option<Tail>,
    held: BTreeMap<ClientId, Vec<Registration>>,
}

impl Frames {
    /// Nobody's yet. The `tail` is what filters may say of a packet's payload, and `seed` keeps those who send packets from choosing which collide.
    #[must_use]
    pub fn new(tail: Option<Tail>, seed: u64) -> Self {
        Self {
            table: Table::new(seed),
            tail,
            held: BTreeMap::new(),
        }
    }

    // Always, as what it calls is: a key that goes through memory costs more than finding whose it is.
    #[inline(always)]
    fn parse(&self, packet: &[u8]) -> Parsed {
        frame::parse(packet, self.tail)
    }
}

impl Demultiplex for Frames {
    type Filter = Filter;
    type Refused = Overlap<ClientId>;

    fn register(&mut self, filter: &Filter, client: ClientId) -> Result<(), Self::Refused> {
        let registration = self.table.insert(filter.clone(), client)?;
        self.held.entry(client).or_default().push(registration);
        Ok(())
    }

    fn withdraw(&mut self, client: ClientId) {
        for registration in self.held.remove(&client).unwrap_or_default() {
            self.table.remove(registration);
        }
    }

    /// What is malformed is a client's whose filter looks at no more than what is sound.
    fn find(&self, packet: &[u8]) -> Found {
        let Parsed { key, malformed } = self.parse(packet);
        match (self.table.find(&key), malformed) {
            (Some(client), _) => Found::Client(client),
            (None, Some(why)) => Found::Malformed(why.why()),
            (None, None) => Found::Nobody,
        }
    }

    fn matches(&self, filter: &Filter, packet: &[u8]) -> bool {
        filter.matches(&self.parse(packet).key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A UDP packet to port 7, as its sender gives the lengths.
    fn packet(udp_length: u8) -> [u8; 42] {
        let mut packet = [0; 42];
        packet[12] = 8;
        packet[14] = 0x45;
        packet[17] = 28;
        packet[23] = 17;
        packet[37] = 7;
        packet[39] = udp_length;
        packet
    }

    fn filter(text: &str) -> Filter {
        Filter::parse(text, None).unwrap()
    }

    #[test]
    fn the_most_specific_filters_client_has_a_packet_until_it_withdraws() {
        let mut frames = Frames::new(None, 1);
        let [all, one] = [0, 1].map(ClientId);
        frames.register(&filter("ip"), all).unwrap();
        frames.register(&filter("udp dst port 7"), one).unwrap();
        assert_eq!(frames.find(&packet(8)), Found::Client(one));
        assert!(frames.register(&filter("udp dst port 7"), all).is_err());
        frames.withdraw(one);
        assert_eq!(frames.find(&packet(8)), Found::Client(all));
        frames.withdraw(all);
        assert_eq!(frames.find(&packet(8)), Found::Nobody);
    }

    #[test]
    fn what_is_malformed_is_nobodys_but_of_who_looks_no_further() {
        let mut frames = Frames::new(None, 1);
        let [all, one] = [0, 1].map(ClientId);
        frames.register(&filter("udp dst port 7"), one).unwrap();
        let lies = packet(9);
        assert_eq!(
            frames.find(&lies),
            Found::Malformed("a UDP length that cannot be")
        );
        assert!(!frames.matches(&filter("udp dst port 7"), &lies));
        frames.register(&filter("ip"), all).unwrap();
        assert_eq!(frames.find(&lies), Found::Client(all));
    }
}
