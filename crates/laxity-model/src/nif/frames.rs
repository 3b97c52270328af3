//! The key of a driver of Ethernet frames: a filter in pcap's language says which packets a client wants, and of those that match, the most specific one decides.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::filter::Filter;
use super::frame::{self, Parsed, Tail};
use super::registry::{ClientId, Demultiplex, Found};
use super::table::{Clash, Overlap, Registration, Table, takes_from};

/// Filters and their clients (§2.2). Finding whose a packet is takes a probe for each mask that filters have; see [`Table`].
#[derive(Debug)]
pub struct Frames {
    table: Table<ClientId>,
    tail: Option<Tail>,
    held: BTreeMap<ClientId, Vec<Registration>>,
    /// Whose packets the interface finds.
    found: Vec<(Filter, ClientId)>,
}

impl Frames {
    /// Nobody's yet. The `tail` is what filters may say of a packet's payload, and `seed` keeps those who send packets from choosing which collide.
    #[must_use]
    pub fn new(tail: Option<Tail>, seed: u64) -> Self {
        Self {
            table: Table::new(seed),
            tail,
            held: BTreeMap::new(),
            found: Vec::new(),
        }
    }

    // Always, as what it calls is: a key that goes through memory costs more than finding whose it is.
    #[inline(always)]
    fn parse(&self, packet: &[u8]) -> Parsed {
        frame::parse(packet, self.tail)
    }

    fn enter(&mut self, filter: &Filter, client: ClientId) -> Result<(), Overlap<ClientId>> {
        let registration = self.table.insert(filter.clone(), client)?;
        self.held.entry(client).or_default().push(registration);
        Ok(())
    }
}

impl Demultiplex for Frames {
    type Filter = Filter;
    type Refused = Overlap<ClientId>;

    fn register(&mut self, filter: &Filter, client: ClientId) -> Result<(), Self::Refused> {
        let found = self.found.iter();
        refuse(Clash::NarrowerThanFound, filter, found, |held| {
            takes_from(filter, held)
        })?;
        self.enter(filter, client)
    }

    /// O(filters).
    fn register_found(&mut self, filter: &Filter, client: ClientId) -> Result<(), Self::Refused> {
        let is_found = |held: &Filter| self.found.iter().any(|(found, _)| found == held);
        let all = self.table.filters();
        refuse(Clash::FoundBesideNarrower, filter, all, |held| {
            takes_from(held, filter) && !is_found(held)
        })?;
        self.enter(filter, client)?;
        self.found.push((filter.clone(), client));
        Ok(())
    }

    fn withdraw(&mut self, client: ClientId) {
        self.found.retain(|(_, by)| *by != client);
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

/// Whether a filter clashes with one of these that are held.
fn refuse<'f>(
    why: Clash,
    asked: &Filter,
    held: impl IntoIterator<Item = &'f (Filter, ClientId)>,
    clashes: impl Fn(&Filter) -> bool,
) -> Result<(), Overlap<ClientId>> {
    let clash = held.into_iter().find(|(held, _)| clashes(held));
    clash.map_or(Ok(()), |(held, owner)| {
        Err(Overlap {
            why,
            asked: asked.clone(),
            held: held.clone(),
            owner: *owner,
        })
    })
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

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
    fn of_what_the_interface_finds_nobody_else_has_a_part_but_who_is_found_there_too() {
        let mut frames = Frames::new(None, 1);
        let [all, one, other] = [0, 1, 2].map(ClientId);
        let [flow, narrower, wider] = [
            "udp dst port 7",
            "udp dst port 7 and src host 10.0.0.1",
            "udp",
        ]
        .map(filter);
        frames.register(&wider, all).unwrap();
        frames.register_found(&flow, one).unwrap();
        let refused = frames.register(&narrower, other).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "`udp dst port 7 and src host 10.0.0.1` is more specific than `udp dst port 7`, all of whose packets the interface finds before anybody looks for others"
        );
        assert_eq!(refused.owner, one);
        frames.register_found(&narrower, other).unwrap();
        frames.withdraw(one);
        frames.withdraw(other);
        frames.register(&narrower, other).unwrap();
        let refused = frames.register_found(&flow, one).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the interface cannot find the packets of `udp dst port 7`, as `udp dst port 7 and src host 10.0.0.1`, which is registered, is more specific"
        );
        assert_eq!(refused.owner, other);
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
