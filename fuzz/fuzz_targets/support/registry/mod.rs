//! A driver and its clients beside the definition: filters of one condition each, so that the most specific one is the one that wants the fewest packets of a small universe.

mod packets;
mod party;

use laxity_model::Instant;
use laxity_model::nif::exchange::{Account, BufferPolicy, Outcome, Reason, Stock};
use laxity_model::nif::filter::Filter;
use laxity_model::nif::frame::parse;
use laxity_model::nif::frames::Frames;
use laxity_model::nif::link::Link;
use laxity_model::nif::registry::ClientId;
use laxity_model::nif::table::Overlap;
use laxity_net::buffers::{Pool, PoolSize};
use laxity_net::driver::{Driver, Host, Interest, Limits, RegisterError, Scope, TapId};
use laxity_net::emulated::{End, Faults, Wire};

use packets::universe;
use party::{Keeper, Party};

type Memory = Box<[u8]>;

const FILTERS: [&str; 20] = [
    "",
    "ip",
    "ip6",
    "arp",
    "vlan",
    "vlan 5",
    "vlan 5 and ip and udp dst port 7",
    "ip proto 17",
    "ip proto 6",
    "ip6 proto 17",
    "ip and udp dst port 7",
    "ip and udp dst port 9",
    "ip and udp src port 7",
    "ip and udp dst port 7 and udp src port 9",
    "ip and tcp dst port 7",
    "ip dst net 10.0.0.0/8",
    "ip dst net 10.0.0.0/16",
    "ip dst host 10.0.0.1",
    "ip dst host 10.0.0.1 and udp dst port 7",
    "ip6 and udp dst port 7",
];
const CLIENTS: u32 = 6;
const POSTED: usize = 4;
const BUFFERS: u32 = 3;
const MOST: u32 = 5;
const OWN_ROOM: usize = 80;
const NOW: Instant = Instant::ZERO;

struct Tapping {
    id: TapId,
    keeper: Keeper,
    /// `None`: all.
    filter: Option<usize>,
    /// The packet that comes now is shown to it, and it ends over that.
    is_shown: bool,
    ends: bool,
}

pub struct World {
    driver: Driver<End, Frames>,
    wire: Wire,
    far: End,
    filters: Vec<Filter>,
    universe: Vec<Vec<u8>>,
    /// Which of the universe each filter wants.
    wanted: Vec<u64>,
    malformed: u64,
    parties: Vec<Party>,
    default: Option<ClientId>,
    taps: Vec<Tapping>,
    total: Account,
    sent: u32,
}

impl World {
    pub fn new() -> Self {
        let (wire, near, far) = Wire::new(Faults::default(), 7);
        let limits = Limits {
            clients: CLIENTS,
            posted: POSTED,
            ..Limits::default()
        };
        let driver = Driver::new(near, Frames::new(None, 1), limits, Host::default()).unwrap();
        let universe = universe();
        let filters = FILTERS.map(|text| Filter::parse(text, None).unwrap());
        let bits = |is_in: &dyn Fn(&[u8]) -> bool| {
            let bits = universe.iter().enumerate();
            bits.fold(0, |all, (bit, frame)| all | u64::from(is_in(frame)) << bit)
        };
        let wanted = filters.iter().map(|filter| {
            assert_eq!(filter.alternatives().len(), 1, "{filter}");
            bits(&|frame| filter.matches(&parse(frame, None).key))
        });
        Self {
            driver,
            wire,
            far,
            wanted: wanted.collect(),
            filters: filters.to_vec(),
            malformed: bits(&|frame| parse(frame, None).malformed.is_some()),
            universe,
            parties: Vec::new(),
            default: None,
            taps: Vec::new(),
            total: Account::default(),
            sent: 0,
        }
    }

    /// One operation, from three numbers that may be anything, and then everything must be as it should be.
    pub fn step(&mut self, [what, who, number]: [u8; 3]) {
        let filter = usize::from(number) % FILTERS.len();
        let party = usize::from(who) % self.parties.len().max(1);
        match what % 16 {
            0..=4 => self.packet(usize::from(who), number),
            5 | 6 => self.register(who, Some(filter)),
            7 => self.register(who, None),
            8 => self.add_filter(party, filter),
            9 => self.unregister(party),
            10 => self.replace(party, who),
            11 => self.grow(party, u32::from(number) % 7),
            12 => self.tap(who, filter),
            13 => self.panic(party, who),
            14 => {
                self.wire.go_down();
                self.poll();
                self.wire.go_up();
            }
            _ => {
                if let Some(party) = self.parties.get_mut(party) {
                    party.act(number, u32::from(number) / 7 % 5);
                }
            }
        }
        self.check();
    }

    fn poll(&mut self) {
        self.driver.poll(NOW, &mut ()).unwrap();
    }

    fn register(&mut self, policy: u8, filter: Option<usize>) {
        let interest = filter.map_or(Interest::Default, |filter| {
            Interest::In(&self.filters[filter])
        });
        let keeper = Keeper::default();
        let driver = &mut self.driver;
        let (policy, registered) = register(driver, interest, &keeper, policy);
        let is_ambiguous = filter.is_some_and(|filter| self.is_ambiguous(filter));
        let (id, pool) = match registered {
            Ok(registered) => registered,
            Err(RegisterError::TooManyClients) => {
                return assert_eq!(self.parties.len(), CLIENTS as usize);
            }
            Err(RegisterError::DefaultTaken(by)) => {
                return assert!(filter.is_none() && self.default == Some(by));
            }
            Err(RegisterError::Refused(_)) => return assert!(is_ambiguous),
            Err(other) => panic!("{other}"),
        };
        assert!(!is_ambiguous && self.parties.len() < CLIENTS as usize);
        if filter.is_none() {
            assert!(self.default.is_none());
            self.default = Some(id);
        }
        let stock = match policy {
            BufferPolicy::SwapOrReturn => Stock::new(policy, usize::MAX, BUFFERS, MOST),
            BufferPolicy::MustReturn => Stock::new(policy, OWN_ROOM, BUFFERS, BUFFERS),
            BufferPolicy::PeekOnly => Stock::new(policy, 0, 0, 0),
        };
        self.parties.push(Party {
            id,
            keeper,
            pool,
            stock,
            policy,
            filters: filter.into_iter().collect(),
            empty: Vec::new(),
            account: Account::default(),
        });
    }

    /// Whether some packet is wanted by this and by one that is held, and neither is more specific.
    fn is_ambiguous(&self, asked: usize) -> bool {
        let asked = self.wanted[asked];
        let mut held = self.parties.iter().flat_map(|party| &party.filters);
        held.any(|held| {
            let held = self.wanted[*held];
            let both = asked & held;
            both != 0 && (asked == held || both != asked && both != held)
        })
    }

    fn add_filter(&mut self, party: usize, filter: usize) {
        let is_ambiguous = self.is_ambiguous(filter);
        let Some(party) = self.parties.get_mut(party) else {
            return;
        };
        let added = self.driver.add_filter(party.id, &self.filters[filter]);
        assert_eq!(added.is_err(), is_ambiguous);
        if added.is_ok() {
            party.filters.push(filter);
        }
    }

    fn unregister(&mut self, party: usize) {
        if party >= self.parties.len() {
            return;
        }
        let party = self.parties.swap_remove(party);
        let account = self.driver.unregister(party.id);
        assert_eq!(account, Some(party.account));
        assert_eq!(self.driver.unregister(party.id), None);
        self.forget(party);
    }

    fn forget(&mut self, party: Party) {
        if self.default == Some(party.id) {
            self.default = None;
        }
        party.end();
    }

    /// Another client takes over all that one had.
    fn replace(&mut self, party: usize, policy: u8) {
        let Some(old) = self.parties.get(party) else {
            return;
        };
        let (filters, had_default) = (old.filters.clone(), self.default == Some(old.id));
        self.unregister(party);
        let mut filters = filters.into_iter();
        let first = filters.next();
        if had_default || first.is_some() {
            self.register(policy, if had_default { None } else { first });
        }
        let new = self.parties.len().saturating_sub(1);
        let others = if had_default { first } else { None };
        others
            .into_iter()
            .chain(filters)
            .for_each(|filter| self.add_filter(new, filter));
    }

    fn grow(&mut self, party: usize, number: u32) {
        let Some(party) = self.parties.get_mut(party) else {
            return;
        };
        if party.policy == BufferPolicy::SwapOrReturn {
            let grown = self.driver.grow(party.id, number).unwrap();
            assert_eq!(grown, party.stock.grow(number));
        }
    }

    fn tap(&mut self, who: u8, filter: usize) {
        if self.taps.len() > 2 || who & 2 == 2 && !self.taps.is_empty() {
            let tap = self.taps.swap_remove(usize::from(who) % self.taps.len());
            assert!(self.driver.remove_tap(tap.id) && !self.driver.remove_tap(tap.id));
            return;
        }
        let filter = (who & 1 == 1).then_some(filter);
        let scope = filter.map_or(Scope::All, |filter| Scope::In(self.filters[filter].clone()));
        let keeper = Keeper::default();
        let id = self.driver.tap(scope, keeper.clone());
        self.taps.push(Tapping {
            id,
            keeper,
            filter,
            is_shown: false,
            ends: false,
        });
    }

    /// A client or a tap panics over what it gets next.
    fn panic(&mut self, party: usize, who: u8) {
        let tap = self.taps.get(usize::from(who) % self.taps.len().max(1));
        let keeper = match (who & 1, tap, self.parties.get(party)) {
            (0, Some(tap), _) => &tap.keeper,
            (_, _, Some(party)) => &party.keeper,
            _ => return,
        };
        keeper.lock().panics = true;
    }

    /// Whose a packet is.
    fn owner(&self, packet: usize) -> Option<usize> {
        let wants = |filter: &usize| self.wanted[*filter] >> packet & 1 == 1;
        let parties = self.parties.iter().enumerate();
        let all =
            parties.flat_map(|(party, it)| it.filters.iter().map(move |filter| (*filter, party)));
        let mut all: Vec<_> = all.filter(|(filter, _)| wants(filter)).collect();
        all.sort_by_key(|(filter, _)| self.wanted[*filter].count_ones());
        let (first, owner) = *all.first()?;
        // Whoever else wants it wants all that this one does.
        let (first, others) = (self.wanted[first], &all[1..]);
        assert!(
            others
                .iter()
                .all(|(other, _)| self.wanted[*other] & first == first)
        );
        Some(owner)
    }

    fn packet(&mut self, which: usize, number: u8) {
        let which = which % self.universe.len();
        let mut bytes = self.universe[which].clone();
        self.sent += 1;
        bytes.extend(self.sent.to_be_bytes());
        bytes.resize(bytes.len() + usize::from(number & 1) * 60, 0);
        let mut memory = self.far.allocate(1).unwrap().remove(0);
        memory[..bytes.len()].copy_from_slice(&bytes);
        self.far.send(memory, bytes.len(), NOW).unwrap();
        while self.far.sent(NOW).is_some() {}
        let is_malformed = self.malformed >> which & 1 == 1;
        let is_default = |party: &Party| Some(party.id) == self.default && !is_malformed;
        let owner = self.owner(which);
        let owner = owner.or_else(|| self.parties.iter().position(is_default));
        let (whose, outcome) = match owner {
            Some(owner) => {
                let party = &mut self.parties[owner];
                (Some(party.id), party.arrives(&bytes))
            }
            None if is_malformed => (None, Outcome::Dropped(Reason::Malformed)),
            None => (None, Outcome::Dropped(Reason::Nobodys)),
        };
        self.total.count(outcome);
        self.taps.iter_mut().for_each(|tap| {
            let is_granted = |filter| self.wanted[filter] >> which & 1 == 1;
            tap.is_shown = tap.filter.is_none_or(is_granted);
            tap.ends = tap.is_shown && tap.keeper.lock().panics;
        });
        self.poll();
        self.taps.retain(|tap| {
            let seen = std::mem::take(&mut *tap.keeper.lock());
            let looks = usize::from(tap.is_shown && !tap.ends);
            assert_eq!(seen.bytes, vec![bytes.clone(); looks]);
            assert_eq!(seen.became, vec![(whose, outcome); looks]);
            tap.keeper.lock().panics = seen.panics;
            !tap.ends
        });
        for party in &self.parties {
            let has_it = Some(party.id) == whose && !matches!(outcome, Outcome::Dropped(_));
            let seen = std::mem::take(&mut party.keeper.lock().bytes);
            assert_eq!(seen, vec![bytes.clone(); usize::from(has_it)]);
        }
        if outcome == Outcome::Dropped(Reason::Panicked) {
            let party = self.parties.swap_remove(owner.unwrap());
            self.forget(party);
        }
    }

    fn check(&self) {
        assert_eq!(self.driver.account(), &self.total);
        assert_eq!(self.driver.census().total() as usize, POSTED);
        for party in &self.parties {
            party.check();
            assert_eq!(self.driver.account_of(party.id), Some(&party.account));
        }
    }

    /// The driver ends: every buffer comes home.
    pub fn end(self) {
        let Self {
            driver, parties, ..
        } = self;
        drop(driver);
        parties.into_iter().for_each(Party::end);
    }
}

/// A client of one of the policies, with a pool unless it only looks.
fn register(
    driver: &mut Driver<End, Frames>,
    interest: Interest<&Filter>,
    keeper: &Keeper,
    policy: u8,
) -> (BufferPolicy, Result<(ClientId, Option<Pool<Memory>>), RegisterError<Overlap<ClientId>>>) {
    let size = PoolSize {
        buffers: BUFFERS,
        most: MOST,
    };
    let nothing = PoolSize::fixed(0);
    match policy % 3 {
            0 => {
                let registered = driver.register(interest, size, keeper.clone());
                let registered = registered.map(|made| (made.id, Some(made.pool)));
                (BufferPolicy::SwapOrReturn, registered)
            }
            1 => {
                let own = (0..BUFFERS).map(|_| vec![0; OWN_ROOM].into()).collect();
                let registered = driver.register_own(interest, own, nothing, keeper.clone());
                let registered = registered.map(|made| (made.id, Some(made.own)));
                (BufferPolicy::MustReturn, registered)
            }
            _ => {
                let registered = driver.register_peek(interest, nothing, keeper.clone());
                (
                    BufferPolicy::PeekOnly,
                    registered.map(|made| (made.id, None)),
                )
            }
        }
}
