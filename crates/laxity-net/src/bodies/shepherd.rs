//! A thread that takes packets from a client's queue, and the client that wakes it.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use laxity_model::nif::link::{LinkError, Memory};
use laxity_model::{Body, Context as Host, Instant, SemaphoreId, Step};

use super::{Source, Work};
use crate::buffers::{Buffer, Filled};
use crate::client::{Client, Context, News};
use crate::clients::Queue;

/// A client that queues, and that signals a semaphore for each packet, so that a thread of the program may wait for it.
pub struct Signalling<C> {
    /// Which queues; `None`: it has panicked, and nothing is queued any more.
    client: Option<C>,
    arrived: SemaphoreId,
    threads: u32,
}

impl<C> Signalling<C> {
    /// This client, whose threads wait on that; each of so many is woken when there will be no more.
    #[must_use]
    pub const fn new(client: C, arrived: SemaphoreId, threads: u32) -> Self {
        Self {
            client: Some(client),
            arrived,
            threads,
        }
    }

    /// Who panics is called no more, and its queue is at its end before anybody is woken to find that.
    fn call(&mut self, context: &mut Context<'_>, call: impl FnOnce(&mut C, &mut Context<'_>)) {
        let Some(client) = &mut self.client else {
            return;
        };
        let called = catch_unwind(AssertUnwindSafe(|| call(client, context)));
        if let Err(panic) = called {
            self.client = None;
            self.wake_all(context);
            resume_unwind(panic);
        }
    }

    fn wake_all(&self, context: &mut Context<'_>) {
        (0..self.threads).for_each(|_| context.signal(self.arrived));
    }
}

impl<M: Memory, C: Client<M>> Client<M> for Signalling<C> {
    fn receive(&mut self, packet: Buffer<M, Filled>, context: &mut Context<'_>) {
        self.call(context, |client, context| client.receive(packet, context));
        context.signal(self.arrived);
    }

    fn sent(&mut self, tag: u64, outcome: Result<(), LinkError>, context: &mut Context<'_>) {
        self.call(context, |client, context| {
            client.sent(tag, outcome, context);
        });
    }

    fn told(&mut self, news: News, context: &mut Context<'_>) {
        self.call(context, |client, context| client.told(news, context));
        if news == News::Gone {
            self.wake_all(context);
        }
    }
}

/// A thread that takes one packet after the other, works on each for so long, and then has it delivered, with when it took it.
pub struct Shepherd<M: Memory, F, S = Queue<M>> {
    source: S,
    arrived: SemaphoreId,
    work: Work,
    deliver: F,
    /// On which it works, and since when.
    packet: Option<(Buffer<M, Filled>, Instant)>,
}

impl<M, F, S> Shepherd<M, F, S>
where
    M: Memory,
    F: FnMut(Buffer<M, Filled>, Instant, &mut dyn Host) + Send,
    S: Source<M>,
{
    /// A thread on this queue, or on several, which [`Signalling`] clients with this semaphore fill. It waits first.
    #[must_use]
    pub const fn new(source: S, arrived: SemaphoreId, work: Work, deliver: F) -> Self {
        Self {
            source,
            arrived,
            work,
            deliver,
            packet: None,
        }
    }
}

impl<M, F, S> Body for Shepherd<M, F, S>
where
    M: Memory,
    F: FnMut(Buffer<M, Filled>, Instant, &mut dyn Host) + Send,
    S: Source<M>,
{
    fn step(&mut self, context: &mut dyn Host) -> Step {
        if let Some((packet, since)) = self.packet.take() {
            (self.deliver)(packet, since, context);
            if !S::GOES_ON {
                return Step::Wait(self.arrived);
            }
        }
        match self.source.take(context) {
            Ok(Some(packet)) => {
                let work = self.work.of(packet.bytes().len());
                self.packet = Some((packet, context.now()));
                if self.work.is_burnt {
                    Step::Burn(work)
                } else {
                    Step::Charge(work)
                }
            }
            Ok(None) => Step::Wait(self.arrived),
            Err(_) => Step::Finish,
        }
    }
}
