//! A client that queues, with the threads that take from its queue, in a program.

use laxity_model::nif::link::Link;
use laxity_model::nif::registry::{ClientId, Demultiplex};
use laxity_model::{ActivityId, Context as Host, Instant, Placement, ProcessorId, Program};

use super::{Shepherd, Signalling, Work};
use crate::buffers::{Buffer, Filled, PoolSize};
use crate::clients::{Queue, early};
use crate::driver::{self, Driver, Interest, RegisterError};

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

/// A client's number, its threads, and what these take from.
pub type Installed<M> = (ClientId, Vec<ActivityId>, Queue<M>);

impl Crew<'_> {
    /// Registers the client, and adds its threads to the program: its number, these, and what they take from. Each has what is done with a packet from `deliver`.
    ///
    /// # Errors
    ///
    /// [`RegisterError`].
    pub fn install<L, D, F>(
        self,
        program: &mut Program,
        driver: &mut Driver<L, D>,
        interest: Interest<&D::Filter>,
        mut deliver: impl FnMut() -> F,
    ) -> Result<Installed<L::Memory>, RegisterError<D::Refused>>
    where
        L: Link,
        L::Memory: 'static,
        D: Demultiplex,
        F: FnMut(Buffer<L::Memory, Filled>, Instant, &mut dyn Host) + Send + 'static,
    {
        let arrived = program.semaphore(0);
        let sleeper = driver::Host::default().sleeper;
        let (client, queue) = early::client(self.buffers as usize, None, &sleeper);
        let client = Signalling {
            client,
            arrived,
            threads: self.threads.len() as u32,
        };
        let size = PoolSize::fixed(self.buffers);
        let registered = driver.register(interest, size, client)?;
        registered.pool.give(self.buffers);
        let threads = self.threads.iter().enumerate().map(|(number, placement)| {
            let name = match self.threads.len() {
                1 => self.name.to_owned(),
                _ => format!("{} {}", self.name, number + 1),
            };
            let body = Shepherd::new(queue.clone(), arrived, self.work, deliver());
            program.add(&name, self.processor, *placement, body)
        });
        let threads = threads.collect();
        Ok((registered.id, threads, queue))
    }
}
