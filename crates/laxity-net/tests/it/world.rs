//! Two drivers and clients of every policy, beside the definition of what becomes of each buffer and packet.

use std::sync::atomic::Ordering;

use laxity_model::Instant;
use laxity_model::nif::exchange::{Account, BufferPolicy, Outcome, Reason, Stock};
use laxity_model::nif::link::Memory;
use laxity_model::nif::registry::ClientId;
use laxity_net::buffers::{Buffer, Empty, Pool, PoolSize};
use laxity_net::driver::{Interest, Limits, Registered};
use laxity_net::emulated::Faults;

use crate::support::{Counted, Keeper, Own, Pair, circuit, packet, pair, send};

const CLIENTS: usize = 4;
const BUFFERS: u32 = 4;
const MOST: u32 = 6;
const POSTED: usize = 4;

/// One client from outside: what it is, and what should have become of it.
struct Party<M: Memory> {
    id: ClientId,
    keeper: Keeper<M>,
    pool: Pool<M>,
    empty: Vec<Buffer<M, Empty>>,
    stock: Stock,
    /// Its packets that it should have got, and not been asked for.
    expected: Vec<Vec<u8>>,
    is_closed: bool,
    account: Account,
}

impl<M: Memory> Party<M> {
    fn new(id: ClientId, keeper: Keeper<M>, pool: Pool<M>, stock: Stock) -> Self {
        Self {
            id,
            keeper,
            pool,
            empty: Vec::new(),
            stock,
            expected: Vec::new(),
            is_closed: false,
            account: Account::default(),
        }
    }

    /// Does something with its buffers.
    fn act(&mut self, action: u8, number: u32) {
        match action {
            0 => {
                let given = self.pool.give(number);
                let oracle = (0..number).take_while(|_| self.stock.take() && self.stock.give());
                assert_eq!(given as usize, oracle.count());
            }
            1 => {
                let taken = self.pool.take().ok();
                assert_eq!(taken.is_some(), self.stock.take());
                self.empty.extend(taken);
            }
            2 => {
                if let Some(buffer) = self.empty.pop() {
                    let back = buffer.give().err();
                    assert_eq!(back.is_none(), self.stock.give());
                    self.empty.extend(back.map(|back| back.buffer));
                }
            }
            3 => {
                if self.empty.pop().is_some() {
                    assert!(self.stock.put_back());
                }
            }
            4 => {
                if self.keeper.pop().is_some() {
                    assert!(self.stock.put_back());
                }
            }
            5 => {
                if let Some(packet) = self.keeper.pop() {
                    self.empty.push(packet.emptied());
                }
            }
            6 => {
                self.pool.shrink(number);
                self.stock.shrink(number);
            }
            _ => {
                self.pool.close();
                self.close();
            }
        }
    }

    fn close(&mut self) {
        self.stock.close();
        self.is_closed = true;
    }

    /// A packet of its arrives.
    fn arrives(&mut self, packet: &[u8]) {
        let panics = self.keeper.panics.load(Ordering::SeqCst);
        let outcome = self.stock.arrive(packet.len());
        match outcome {
            Outcome::Swapped | Outcome::Copied if panics => {
                assert!(self.stock.put_back());
                self.account.count(Outcome::Dropped(Reason::Panicked));
                self.close();
            }
            Outcome::Swapped | Outcome::Copied => {
                self.expected.push(packet.to_vec());
                self.account.count(outcome);
            }
            _ => self.account.count(outcome),
        }
    }

    fn check(&mut self) {
        assert_eq!(self.pool.census(), self.stock.census());
        assert_eq!(self.keeper.bytes(), std::mem::take(&mut self.expected));
    }
}

/// The whole of it.
pub(crate) struct World {
    pair: Pair,
    sender: Registered<Counted>,
    swapping: Vec<Party<Counted>>,
    owning: Party<Own>,
    /// What became of all packets at the far end.
    total: Account,
    /// And of those in worlds before this one.
    before: Account,
    sent: u64,
}

impl World {
    pub(crate) fn new() -> Self {
        let limits = Limits {
            posted: POSTED,
            clients: 8,
            queue: 8,
            ..Limits::default()
        };
        let mut pair = pair(Faults::default(), limits);
        let size = PoolSize::fixed(2);
        let sender = pair
            .near
            .register(Interest::Nothing, size, Keeper::default());
        let swapping = (0..CLIENTS).map(|channel| swapping(&mut pair, channel as u16));
        let swapping = swapping.collect();
        let owning = owning(&mut pair);
        Self {
            sender: sender.unwrap(),
            swapping,
            owning,
            pair,
            total: Account::default(),
            before: Account::default(),
            sent: 0,
        }
    }

    /// One operation, from three numbers that may be anything, and then everything must be as it should be.
    pub(crate) fn step(&mut self, (what, who, number): (u8, u8, u32)) {
        let party = usize::from(who) % (CLIENTS + 1);
        let number = number % 7;
        match what {
            // Most of what happens.
            0..=99 => self.packet(who, number),
            100..=199 => {
                let action = what % 7;
                if party == CLIENTS {
                    self.owning.act(action, number);
                } else {
                    self.swapping[party].act(action, number);
                }
            }
            200..=229 => self.grow(party, number),
            230..=239 => self.swapping[party % CLIENTS].act(7, 0),
            240..=246 => self.rebind(party),
            247..=250 => self.panic(party, number),
            251..=253 => {
                self.pair.wire.go_down();
                self.poll();
                self.pair.wire.go_up();
            }
            254 => self.end(true),
            255 => self.end(false),
        }
        self.check();
    }

    /// What became of all packets so far.
    pub(crate) fn account(&self) -> Account {
        let mut account = self.before;
        account.add(&self.total);
        account
    }

    fn poll(&mut self) {
        self.pair.near.poll(Instant::ZERO, &mut ()).unwrap();
        self.pair.far.poll(Instant::ZERO, &mut ()).unwrap();
        // What has left is told with the next poll.
        self.pair.near.poll(Instant::ZERO, &mut ()).unwrap();
    }

    /// A packet for one of them, or for nobody, or that says nothing.
    fn packet(&mut self, who: u8, number: u32) {
        let channel = u16::from(who) % (CLIENTS as u16 + 2);
        self.sent += 1;
        let mut bytes = packet(channel, channel as u8 + 1, 16 + 60 * number as usize);
        if who == 255 {
            bytes.truncate(3);
        } else {
            bytes[4..12].copy_from_slice(&self.sent.to_be_bytes());
        }
        send(&self.sender.pool, &bytes);
        let index = usize::from(channel);
        let (before, after);
        if who == 255 {
            self.total.count(Outcome::Dropped(Reason::Malformed));
        } else if let Some(party) = self.swapping.get_mut(index) {
            before = party.account;
            party.arrives(&bytes);
            after = party.account;
            add_difference(&mut self.total, before, after);
        } else if index == CLIENTS {
            before = self.owning.account;
            self.owning.arrives(&bytes);
            after = self.owning.account;
            add_difference(&mut self.total, before, after);
        } else {
            self.total.count(Outcome::Dropped(Reason::Nobodys));
        }
        self.poll();
    }

    fn grow(&mut self, party: usize, number: u32) {
        if party == CLIENTS || self.swapping[party].is_closed {
            return;
        }
        let party = &mut self.swapping[party];
        let grown = self.pair.far.grow(party.id, number).unwrap();
        assert_eq!(grown, party.stock.grow(number));
    }

    /// A client ends, with whatever it holds, and another begins.
    fn rebind(&mut self, party: usize) {
        if party == CLIENTS {
            self.pair.far.unregister(self.owning.id);
            self.owning.close();
            self.owning.check();
            self.owning = owning(&mut self.pair);
            return;
        }
        let old = &mut self.swapping[party];
        self.pair.far.unregister(old.id);
        old.close();
        old.check();
        self.swapping[party] = swapping(&mut self.pair, party as u16);
    }

    /// A client panics over its next packet, if it gets one, and another begins.
    fn panic(&mut self, party: usize, number: u32) {
        // Who has not been told that the wire is up again would panic over that.
        self.packet(CLIENTS as u8 + 1, 0);
        let panics = if party == CLIENTS {
            &self.owning.keeper.panics
        } else {
            &self.swapping[party].keeper.panics
        };
        panics.store(true, Ordering::SeqCst);
        self.packet(party as u8, number);
        self.check();
        self.rebind(party);
    }

    /// The interface is deleted, or its driver dropped, and all begins anew.
    fn end(&mut self, is_deleted: bool) {
        if is_deleted {
            self.pair.wire.delete();
            assert!(self.pair.far.poll(Instant::ZERO, &mut ()).is_err());
            assert_eq!(self.pair.far.census().free as usize, POSTED);
        }
        let alive = std::sync::Arc::clone(&self.pair.alive);
        let mut new = Self::new();
        new.before = self.account();
        let Self {
            pair,
            swapping,
            owning,
            ..
        } = std::mem::replace(self, new);
        drop(pair);
        let mut owning = owning;
        owning.close();
        owning.check();
        for mut party in swapping {
            party.close();
            party.check();
            let census = party.stock.census();
            assert_eq!(census.held, census.total() - census.free);
        }
        assert_eq!(alive.load(Ordering::SeqCst), 0, "memory is left behind");
    }

    fn check(&mut self) {
        let mut memory = POSTED;
        for party in &mut self.swapping {
            party.check();
            memory += party.stock.census().total() as usize;
        }
        self.owning.check();
        assert_eq!(self.pair.far.census().total() as usize, POSTED);
        assert_eq!(self.pair.alive.load(Ordering::SeqCst), memory);
        assert_eq!(self.sender.pool.census().total(), 2);
        assert_eq!(self.pair.far.account(), &self.total);
    }
}

/// Counts what one packet made of a client's account.
fn add_difference(total: &mut Account, before: Account, after: Account) {
    total.arrived += after.arrived - before.arrived;
    total.swapped += after.swapped - before.swapped;
    total.copied += after.copied - before.copied;
    for (index, total) in total.dropped.iter_mut().enumerate() {
        *total += after.dropped[index] - before.dropped[index];
    }
}

fn swapping(pair: &mut Pair, channel: u16) -> Party<Counted> {
    let keeper = Keeper::default();
    let size = PoolSize {
        buffers: BUFFERS,
        most: MOST,
    };
    let interest = Interest::In(&circuit(channel));
    let registered = pair.far.register(interest, size, keeper.clone()).unwrap();
    let stock = Stock::new(BufferPolicy::SwapOrReturn, 1514, BUFFERS, MOST);
    Party::new(registered.id, keeper, registered.pool, stock)
}

fn owning(pair: &mut Pair) -> Party<Own> {
    let keeper = Keeper::default();
    let interest = Interest::In(&circuit(CLIENTS as u16));
    let own = (0..BUFFERS).map(|_| Own([0; Own::ROOM])).collect();
    let size = PoolSize::fixed(0);
    let registered = pair.far.register_own(interest, own, size, keeper.clone());
    let registered = registered.unwrap();
    let stock = Stock::new(BufferPolicy::MustReturn, Own::ROOM, BUFFERS, BUFFERS);
    Party::new(registered.id, keeper, registered.own, stock)
}
