//! Clients from outside, and what should have become of them.

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laxity_model::nif::exchange::{Account, BufferPolicy, Outcome, Reason, Stock};
use laxity_model::nif::registry::ClientId;
use laxity_net::buffers::{Buffer, Empty, Filled, Pool};
use laxity_net::client::{Client, Context, Loan, Peek};

use super::Memory;

/// What a client or a tap was called with.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) packets: Vec<Buffer<Memory, Filled>>,
    pub(super) bytes: Vec<Vec<u8>>,
    pub(super) became: Vec<(Option<ClientId>, Outcome)>,
    pub(super) panics: bool,
}

#[derive(Clone, Default)]
pub(super) struct Keeper(Arc<Mutex<Seen>>);

impl Keeper {
    pub(super) fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn see(&self, bytes: &[u8]) -> MutexGuard<'_, Seen> {
        let mut seen = self.lock();
        if std::mem::take(&mut seen.panics) {
            drop(seen);
            // Past the hook, which ends the fuzzer.
            resume_unwind(Box::new(()));
        }
        seen.bytes.push(bytes.to_vec());
        seen
    }
}

impl Client<Memory> for Keeper {
    fn receive(&mut self, packet: Buffer<Memory, Filled>, _: &mut Context<'_>) {
        let mut seen = self.see(packet.bytes());
        seen.packets.push(packet);
    }
}

impl Peek for Keeper {
    fn look(&mut self, packet: Loan<'_>, _: &mut Context<'_>) {
        drop(self.see(packet.bytes));
    }

    fn became(&mut self, whose: Option<ClientId>, outcome: Outcome) {
        self.lock().became.push((whose, outcome));
    }
}

/// A client from outside, and what should have become of it.
pub(super) struct Party {
    pub(super) id: ClientId,
    pub(super) keeper: Keeper,
    /// What it receives into; who only looks has none.
    pub(super) pool: Option<Pool<Memory>>,
    pub(super) stock: Stock,
    pub(super) policy: BufferPolicy,
    pub(super) filters: Vec<usize>,
    pub(super) empty: Vec<Buffer<Memory, Empty>>,
    pub(super) account: Account,
}

impl Party {
    /// What is to become of a packet that is its own.
    pub(super) fn arrives(&mut self, bytes: &[u8]) -> Outcome {
        let mut outcome = self.stock.arrive(bytes.len());
        if let Outcome::Swapped | Outcome::Copied | Outcome::Peeked = outcome {
            if self.keeper.lock().panics {
                self.stock.put_back();
                outcome = Outcome::Dropped(Reason::Panicked);
            }
        }
        self.account.count(outcome);
        outcome
    }

    /// Does something with its buffers.
    pub(super) fn act(&mut self, action: u8, number: u32) {
        let Some(pool) = &self.pool else { return };
        match action % 7 {
            0 => {
                let oracle = (0..number).take_while(|_| self.stock.take() && self.stock.give());
                assert_eq!(oracle.count(), pool.give(number) as usize);
            }
            1 => {
                let taken = pool.take().ok();
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
                let packet = self.keeper.lock().packets.pop();
                self.empty.extend(packet.map(Buffer::emptied));
            }
            5 => {
                pool.shrink(number);
                self.stock.shrink(number);
            }
            _ => {
                pool.close();
                self.stock.close();
            }
        }
    }

    /// Its buffers are where they should be.
    pub(super) fn check(&self) {
        if let Some(pool) = &self.pool {
            assert_eq!(pool.census(), self.stock.census());
        }
    }

    /// It has ended, and what it held comes home.
    pub(super) fn end(mut self) {
        self.stock.close();
        self.check();
        self.empty.clear();
        self.keeper.lock().packets.clear();
        while self.stock.put_back() {}
        self.check();
        let census = self.stock.census();
        assert_eq!(census.total(), census.free);
    }
}
