//! Registering and unregistering (§2.2): by the thread that has the driver, or, from others, by [asking](super::Handle::ask) it.

use std::error::Error;
use std::sync::Arc;

use laxity_model::nif::exchange::Account;
use laxity_model::nif::link::{Link, LinkError, Memory};
use laxity_model::nif::registry::{ClientId, Demultiplex, Fallback};

use super::entry::{Entry, Owning, Peeking, Receiver, Swapping, caught};
use super::{Driver, State};
use crate::buffers::{Pool, PoolSize, Shared};
use crate::client::{Client, Peek};

/// Which packets a client wants.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Interest<F> {
    /// Those of a filter. Others can be [added](Driver::add_filter).
    In(F),
    /// Those of a filter, [as which](laxity_model::nif::link::Received::early) the interface finds them itself.
    Found(F),
    /// Those for which nobody registers: for one client only.
    Default,
    /// None: it sends.
    Nothing,
}

/// Why a client was not registered. Nothing has changed then.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RegisterError<R: Error> {
    /// The key refuses the filter.
    #[error(transparent)]
    Refused(R),
    /// Another has the default.
    #[error("the default is client {0}'s")]
    DefaultTaken(ClientId),
    /// As many as may be are registered.
    #[error("no more clients can be registered")]
    TooManyClients,
    /// There is no such client.
    #[error("there is no client {0}")]
    NoClient(ClientId),
    /// A pool of more buffers than it may have.
    #[error("a pool has fewer than 2^24 buffers")]
    PoolTooLarge,
    /// The kernel does not get what arrives at this interface.
    #[error("the kernel gets nothing from this interface")]
    NotShared,
    /// The interface has not so much memory, or is gone.
    #[error(transparent)]
    Link(LinkError),
}

/// A client that is registered.
pub struct Registered<M: Memory> {
    /// Its number.
    pub id: ClientId,
    /// The buffers that it sends from, and, if it swaps, receives into. They are free: what it does not give it does not get.
    pub pool: Pool<M>,
}

/// A client with memory of its own kind that is registered.
pub struct RegisteredOwn<M: Memory, O: Memory> {
    /// Its number.
    pub id: ClientId,
    /// The buffers that it receives into. They are free: what it does not give it does not get.
    pub own: Pool<O>,
    /// The buffers that it sends from.
    pub pool: Pool<M>,
}

/// Of a driver's methods that register.
type Outcome<M, D> = Result<Registered<M>, RegisterError<<D as Demultiplex>::Refused>>;

impl<L: Link, D: Demultiplex> Driver<L, D> {
    /// Registers a client that takes the buffer in which its packet is, for one of its own: `SwapOrReturn`.
    ///
    /// # Errors
    ///
    /// [`RegisterError`].
    pub fn register(
        &mut self,
        interest: Interest<&D::Filter>,
        size: PoolSize,
        client: impl Client<L::Memory> + 'static,
    ) -> Outcome<L::Memory, D>
    where
        L::Memory: 'static,
    {
        self.enter(interest, size, |pool| {
            let pool = Arc::clone(pool);
            Box::new(Swapping { pool, client })
        })
    }

    /// Registers a client with memory of its own kind, into which its packets are copied: `MustReturn`. It sends from the `sending`
    /// buffers of the interface's kind.
    ///
    /// ```
    /// use laxity_model::nif::registry::{Circuit, Circuits};
    /// use laxity_net::{buffers::PoolSize, clients::late, emulated::Null};
    /// use laxity_net::driver::{Driver, Host, Interest, Limits};
    ///
    /// let mut driver = Driver::new(Null::new(0), Circuits::default(), Limits::default(), Host::default())?;
    /// let (client, _queue) = late::client(4, &Host::default().sleeper);
    /// let small = vec![vec![0; 256].into_boxed_slice(); 4]; // or any other `Memory`
    /// let video = Circuit { path: 0, channel: 42 };
    /// let registered = driver.register_own(Interest::In(&video), small, PoolSize::fixed(0), client)?;
    /// assert_eq!(registered.own.give(4), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`RegisterError`].
    pub fn register_own<O: Memory + 'static>(
        &mut self,
        interest: Interest<&D::Filter>,
        own: Vec<O>,
        sending: PoolSize,
        client: impl Client<O> + 'static,
    ) -> Result<RegisteredOwn<L::Memory, O>, RegisterError<D::Refused>> {
        let own = Shared::new(own, 0, self.sleeper.clone(), None);
        let own = own.ok_or(RegisterError::PoolTooLarge)?;
        let registered = self.enter(interest, sending, |_| {
            let own = Arc::clone(&own);
            Box::new(Owning { own, client })
        })?;
        Ok(RegisteredOwn {
            id: registered.id,
            own: Pool(own),
            pool: registered.pool,
        })
    }

    /// Registers a client that only looks, at packets that are nobody else's: `PeekOnly`. It sends from the `sending` buffers.
    ///
    /// # Errors
    ///
    /// [`RegisterError`].
    pub fn register_peek(
        &mut self,
        interest: Interest<&D::Filter>,
        sending: PoolSize,
        client: impl Peek + 'static,
    ) -> Outcome<L::Memory, D> {
        self.enter(interest, sending, |_| Box::new(Peeking(client)))
    }

    fn enter(
        &mut self,
        interest: Interest<&D::Filter>,
        size: PoolSize,
        receiver: impl FnOnce(&Arc<Shared<L::Memory>>) -> Box<dyn Receiver<L::Memory>>,
    ) -> Outcome<L::Memory, D> {
        if self.state == State::Gone {
            return Err(RegisterError::Link(LinkError::Gone));
        }
        let id = *self.unused.last().ok_or(RegisterError::TooManyClients)?;
        if let (Interest::Default, Fallback::Client(other)) = (interest, self.fallback) {
            return Err(RegisterError::DefaultTaken(other));
        }
        // Before there is memory for them.
        if size.buffers.max(size.most) >= PoolSize::END {
            return Err(RegisterError::PoolTooLarge);
        }
        let memories = self.link.allocate(size.buffers as usize);
        let memories = memories.map_err(RegisterError::Link)?;
        let line = Some((Arc::clone(&self.line), id.0));
        let pool = Shared::new(memories, size.most, self.sleeper.clone(), line);
        let pool = pool.ok_or(RegisterError::PoolTooLarge)?;
        match interest {
            Interest::In(filter) => {
                let registered = self.demultiplex.register(filter, id);
                registered.map_err(RegisterError::Refused)?;
            }
            Interest::Found(filter) => {
                let registered = self.demultiplex.register_found(filter, id);
                registered.map_err(RegisterError::Refused)?;
            }
            Interest::Default => self.fallback = Fallback::Client(id),
            Interest::Nothing => {}
        }
        self.unused.pop();
        // All that can be sent has room where it is collected.
        self.sendable += pool.most();
        self.collected.reserve(self.sendable);
        self.left_over.reserve(self.sendable);
        self.clients[id.index()] = Some(Entry {
            receiver: receiver(&pool),
            pool: Arc::clone(&pool),
            account: Account::default(),
        });
        let pool = Pool(pool);
        Ok(Registered { id, pool })
    }

    /// Another filter for a client.
    ///
    /// # Errors
    ///
    /// The key refuses it, or there is no such client.
    pub fn add_filter(
        &mut self,
        client: ClientId,
        filter: &D::Filter,
    ) -> Result<(), RegisterError<D::Refused>> {
        self.entry(client)?;
        let registered = self.demultiplex.register(filter, client);
        registered.map_err(RegisterError::Refused)
    }

    /// Leaves what nobody registers for to the kernel, or to nobody.
    ///
    /// # Errors
    ///
    /// The default is a client's, or the kernel gets nothing from this interface.
    pub fn leave_default(&mut self, to_kernel: bool) -> Result<(), RegisterError<D::Refused>> {
        if let Fallback::Client(other) = self.fallback {
            return Err(RegisterError::DefaultTaken(other));
        }
        if to_kernel && !self.link.facts().is_shared_with_kernel {
            return Err(RegisterError::NotShared);
        }
        self.fallback = if to_kernel {
            Fallback::Kernel
        } else {
            Fallback::Nobody
        };
        Ok(())
    }

    /// A client's pool grows by up to so many buffers; those that were to leave it stay first. Tells how many are new.
    ///
    /// # Errors
    ///
    /// The interface has not so much memory, or there is no such client.
    pub fn grow(
        &mut self,
        client: ClientId,
        buffers: u32,
    ) -> Result<u32, RegisterError<D::Refused>> {
        let pool = Arc::clone(&self.entry(client)?.pool);
        let memories = self.link.allocate(buffers as usize);
        let memories = memories.map_err(RegisterError::Link)?;
        let surplus = pool.grow(memories);
        Ok(buffers - super::count(surplus.len()))
    }

    /// Ends a client: it gets no packet any more, and its buffers come home, but for those that somebody holds or that are being
    /// sent. What became of its packets; `None` if there is no such client.
    pub fn unregister(&mut self, client: ClientId) -> Option<Account> {
        let entry = self.clients.get_mut(client.index())?.take()?;
        self.sendable -= entry.pool.most();
        self.demultiplex.withdraw(client);
        self.link.ended(client);
        if self.fallback == Fallback::Client(client) {
            self.fallback = Fallback::Nobody;
        }
        entry.pool.close();
        entry.receiver.close();
        // Its number may be another's when its frames are done.
        let frames = self.frames.iter_mut().flatten();
        for queued in frames.chain(&mut self.left_over) {
            if queued.client == client && queued.home.is_none() {
                queued.home = Some(Arc::clone(&entry.pool));
            }
        }
        self.unused.push(client);
        let Entry {
            receiver, account, ..
        } = entry;
        // A client that panics as it is dropped does not take the driver with it.
        caught(|| drop(receiver));
        Some(account)
    }

    /// Whether this is the number of the client whose pool this is, and not another's by now.
    pub fn has(&self, client: ClientId, pool: &Pool<L::Memory>) -> bool {
        let entry = self.entry(client);
        entry.is_ok_and(|entry| Arc::ptr_eq(&entry.pool, &pool.0))
    }

    fn entry(&self, client: ClientId) -> Result<&Entry<L::Memory>, RegisterError<D::Refused>> {
        let entry = self.clients.get(client.index()).and_then(Option::as_ref);
        entry.ok_or(RegisterError::NoClient(client))
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::nif::registry::Circuits;

    use super::*;
    use crate::clients::early;
    use crate::driver::{Host, Limits};
    use crate::emulated::Null;

    #[test]
    fn all_that_clients_can_send_has_room_where_it_is_collected() {
        let (limits, host) = (Limits::default(), Host::default());
        let sleeper = host.sleeper.clone();
        let mut driver = Driver::new(Null::new(0), Circuits::default(), limits, host).unwrap();
        let size = PoolSize {
            buffers: 1,
            most: 700,
        };
        for _ in 0..2 {
            let (client, _) = early::client(0, None, &sleeper);
            driver.register(Interest::Nothing, size, client).unwrap();
        }
        let room = driver.collected.capacity().min(driver.left_over.capacity());
        assert!(room >= 1_400, "{room}");
    }
}
