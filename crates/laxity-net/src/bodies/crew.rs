//! A client that queues, with the threads that take from its queue, in a program.

use std::iter;

use laxity_model::nif::link::{Link, Memory};
use laxity_model::nif::qos::{Ranks, Terms};
use laxity_model::nif::registry::{ClientId, Demultiplex};
use laxity_model::nif::urgency::{Stated, Unit};
use laxity_model::policy::raise::Highest;
use laxity_model::{
    ActivityId, Context as Host, Instant, Placement, Priority, ProcessorId, Program, SemaphoreId,
};

use super::{Shepherd, Signalling, Source, Work};
use crate::buffers::{Buffer, Filled, PoolSize};
use crate::client::Client;
use crate::clients::Queue;
use crate::clients::due;
use crate::clients::early;
use crate::driver::{self, Driver, Interest, RegisterError};

/// A client that is registered, and its queue.
type Entered<L, D> =
    Result<(ClientId, Queue<<L as Link>::Memory>), RegisterError<<D as Demultiplex>::Refused>>;

/// Who takes the packets of one client, all of whose buffers are given.
#[derive(Clone, Copy, Debug)]
pub struct Crew<'a> {
    /// What the threads are called, with their number where there are several.
    pub name: &'a str,
    /// Where they run.
    pub processor: ProcessorId,
    /// How each of them runs.
    pub threads: &'a [Placement],
    /// The client's buffers.
    pub buffers: u32,
    /// What each packet costs.
    pub work: Work,
}

/// Threads, and the clients that they work for, with the queues of these.
pub type Installed<M> = (Vec<ActivityId>, Vec<(ClientId, Queue<M>)>);

impl Crew<'_> {
    /// Registers the client, and adds its threads to the program: its number, and these. Each has what is done with a packet from `deliver`.
    ///
    /// # Errors
    ///
    /// [`RegisterError`].
    pub fn install<L, D, F>(
        self,
        program: &mut Program,
        driver: &mut Driver<L, D>,
        interest: Interest<&D::Filter>,
        deliver: impl FnMut() -> F,
    ) -> Result<(ClientId, Vec<ActivityId>), RegisterError<D::Refused>>
    where
        L: Link,
        L::Memory: 'static,
        D: Demultiplex,
        F: FnMut(Buffer<L::Memory, Filled>, Instant, &mut dyn Host) + Send + 'static,
    {
        let arrived = program.semaphore(0);
        let (id, queue) = self.queue(driver, interest, arrived)?;
        let queues = iter::repeat_n(queue, self.threads.len());
        Ok((id, self.add(program, arrived, queues, deliver)))
    }

    /// The same with a client for each of these interests, whose packets the same threads take: of those that wait one of the first client that has any.
    ///
    /// # Errors
    ///
    /// [`RegisterError`].
    pub fn install_in_order<'i, L, D, F>(
        self,
        program: &mut Program,
        driver: &mut Driver<L, D>,
        interests: impl IntoIterator<Item = Interest<&'i D::Filter>>,
        deliver: impl FnMut() -> F,
    ) -> Result<Installed<L::Memory>, RegisterError<D::Refused>>
    where
        L: Link,
        L::Memory: 'static,
        D: Demultiplex,
        D::Filter: 'i,
        F: FnMut(Buffer<L::Memory, Filled>, Instant, &mut dyn Host) + Send + 'static,
    {
        let arrived = program.semaphore(0);
        let queues = interests
            .into_iter()
            .map(|interest| self.queue(driver, interest, arrived));
        let clients = queues.collect::<Result<Vec<_>, _>>()?;
        let queues: Vec<_> = clients.iter().map(|(_, queue)| queue.clone()).collect();
        let each = iter::repeat_n(queues, self.threads.len());
        Ok((self.add(program, arrived, each, deliver), clients))
    }

    /// The same of a client whose packets are [due](crate::clients::due): it states this, and its only thread, which is placed as for what comes before its time, has
    /// this priority for what is critical.
    ///
    /// # Errors
    ///
    /// [`RegisterError`].
    pub fn install_due<L, D, F>(
        self,
        program: &mut Program,
        driver: &mut Driver<L, D>,
        interest: Interest<&D::Filter>,
        (stated, critical): (Stated, Priority),
        deliver: impl FnMut() -> F,
    ) -> Result<Installed<L::Memory>, RegisterError<D::Refused>>
    where
        L: Link,
        L::Memory: 'static,
        D: Demultiplex,
        F: FnMut(Buffer<L::Memory, Filled>, Instant, &mut dyn Host) + Send + 'static,
    {
        let arrived = program.semaphore(0);
        let workahead = match self.threads {
            [Placement::Thread(priority), ..] => *priority,
            _ => critical,
        };
        let terms = Terms {
            stated,
            unit: Unit::Packets,
            packet: self.work.packet,
            // It is the next.
            activity: ActivityId(program.activities.len() as u16),
            ranks: Ranks::Thread {
                critical,
                workahead,
            },
        };
        let sleeper = driver::Host::default().sleeper;
        let (client, queue) = due::client(self.buffers as usize, terms, &sleeper);
        let client = self.enter(driver, interest, (client, arrived))?;
        let packets = queue.packets();
        let threads = self.add(program, arrived, [queue], deliver);
        program.declare_raise(terms.activity, Highest::Priority(critical));
        Ok((threads, vec![(client, packets)]))
    }

    /// A client that queues.
    fn queue<L: Link, D: Demultiplex>(
        &self,
        driver: &mut Driver<L, D>,
        interest: Interest<&D::Filter>,
        arrived: SemaphoreId,
    ) -> Entered<L, D>
    where
        L::Memory: 'static,
    {
        let sleeper = driver::Host::default().sleeper;
        let (client, queue) = early::client(self.buffers as usize, None, &sleeper);
        Ok((self.enter(driver, interest, (client, arrived))?, queue))
    }

    fn enter<L: Link, D: Demultiplex>(
        &self,
        driver: &mut Driver<L, D>,
        interest: Interest<&D::Filter>,
        (client, arrived): (impl Client<L::Memory> + 'static, SemaphoreId),
    ) -> Result<ClientId, RegisterError<D::Refused>>
    where
        L::Memory: 'static,
    {
        let client = Signalling::new(client, arrived, self.threads.len() as u32);
        let registered = driver.register(interest, PoolSize::fixed(self.buffers), client)?;
        registered.pool.give(self.buffers);
        Ok(registered.id)
    }

    /// A thread for each of these, as far as there are placements.
    fn add<M, S, F>(
        &self,
        program: &mut Program,
        arrived: SemaphoreId,
        sources: impl IntoIterator<Item = S>,
        mut deliver: impl FnMut() -> F,
    ) -> Vec<ActivityId>
    where
        M: Memory + 'static,
        S: Source<M> + 'static,
        F: FnMut(Buffer<M, Filled>, Instant, &mut dyn Host) + Send + 'static,
    {
        let threads = self.threads.iter().zip(sources).enumerate();
        let threads = threads.map(|(number, (placement, source))| {
            let name = match self.threads.len() {
                1 => self.name.to_owned(),
                _ => format!("{} {}", self.name, number + 1),
            };
            let body = Shepherd::new(source, arrived, self.work, deliver());
            program.add(&name, self.processor, *placement, body)
        });
        threads.collect()
    }
}
