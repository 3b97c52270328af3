//! How a stack gets a client for each connection, whatever its driver's interface is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use laxity_model::PortId;
use laxity_model::base::bell::Bell;
use laxity_model::nif::filter::Filter;
use laxity_model::nif::link::{Link, LinkError, Memory};
use laxity_model::nif::registry::{ClientId, Demultiplex};

use crate::buffers::{Buffer, Filled, Pool, PoolSize, Sleeper};
use crate::client::{Client, Context, News};
use crate::driver::{Handle, Interest};

/// A client that, besides what it does, rings for whoever waits for its packets or its buffers.
pub(crate) struct Ringing<C> {
    pub(crate) client: C,
    pub(crate) bell: Arc<Bell>,
    pub(crate) sleeper: Sleeper,
    pub(crate) port: Option<PortId>,
}

impl<C> Ringing<C> {
    fn ring(&self, context: &mut Context<'_>) {
        self.bell.ring(&self.sleeper);
        if let Some(port) = self.port {
            context.put(port, [0; 2]);
        }
    }
}

impl<M: Memory, C: Client<M>> Client<M> for Ringing<C> {
    fn receive(&mut self, packet: Buffer<M, Filled>, context: &mut Context<'_>) {
        self.client.receive(packet, context);
        self.ring(context);
    }

    fn sent(&mut self, tag: u64, outcome: Result<(), LinkError>, context: &mut Context<'_>) {
        self.client.sent(tag, outcome, context);
        self.ring(context);
    }

    fn told(&mut self, news: News, context: &mut Context<'_>) {
        self.client.told(news, context);
        self.ring(context);
    }
}

/// What became of a registration.
pub(crate) enum Outcome<M: Memory> {
    Made(ClientId, Pool<M>),
    Refused(String),
}

/// What the driver and whoever asked it have of a registration, without a lock: the driver is above the other.
struct Progress<M: Memory> {
    outcome: OnceLock<Outcome<M>>,
    /// It has an outcome, or nobody wants it any more. Whoever comes second ends the client.
    is_half_over: AtomicBool,
}

/// A registration that the driver makes between two packets, while whoever asked for it goes on.
pub(crate) struct Registration<M: Memory>(Arc<Progress<M>>);

impl<M: Memory> Registration<M> {
    /// `None`: the driver has not come to it.
    pub(crate) fn outcome(&self) -> Option<&Outcome<M>> {
        self.0.outcome.get()
    }
}

/// What the driver answers. A driver that has ended drops it.
pub(crate) struct Asked<M: Memory> {
    progress: Arc<Progress<M>>,
    bell: Arc<Bell>,
    sleeper: Sleeper,
}

impl<M: Memory> Asked<M> {
    /// `false` if nobody wants it any more.
    fn answer(&self, outcome: Outcome<M>) -> bool {
        // Only the first word counts, and nobody else has one: so nobody is waited for.
        let is_first = self.progress.outcome.set(outcome).is_ok();
        let is_wanted = is_first && !self.progress.is_half_over.swap(true, Ordering::AcqRel);
        self.bell.ring(&self.sleeper);
        is_wanted
    }
}

impl<M: Memory> Drop for Asked<M> {
    fn drop(&mut self) {
        self.answer(Outcome::Refused("the driver has ended".into()));
    }
}

/// A driver, to whoever only registers.
pub(crate) trait Registrar<M: Memory>: Send + Sync {
    fn register(&self, filter: Filter, buffers: u32, client: Box<dyn Client<M>>, asked: Asked<M>);

    fn unregister(&self, client: ClientId);
}

impl<M: Memory> Client<M> for Box<dyn Client<M>> {
    fn receive(&mut self, packet: Buffer<M, Filled>, context: &mut Context<'_>) {
        (**self).receive(packet, context);
    }

    fn sent(&mut self, tag: u64, outcome: Result<(), LinkError>, context: &mut Context<'_>) {
        (**self).sent(tag, outcome, context);
    }

    fn told(&mut self, news: News, context: &mut Context<'_>) {
        (**self).told(news, context);
    }
}

impl<L, D> Registrar<L::Memory> for Handle<L, D>
where
    L: Link + 'static,
    L::Memory: 'static,
    D: Demultiplex<Filter = Filter> + 'static,
{
    fn register(
        &self,
        filter: Filter,
        buffers: u32,
        client: Box<dyn Client<L::Memory>>,
        asked: Asked<L::Memory>,
    ) {
        drop(self.ask(move |driver| {
            // Half is for what arrives, half for what is sent.
            let size = PoolSize::fixed(2 * buffers);
            match driver.register(Interest::In(&filter), size, client) {
                Ok(registered) => {
                    registered.pool.give(buffers);
                    if !asked.answer(Outcome::Made(registered.id, registered.pool)) {
                        driver.unregister(registered.id);
                    }
                }
                Err(why) => drop(asked.answer(Outcome::Refused(why.to_string()))),
            }
        }));
    }

    fn unregister(&self, client: ClientId) {
        drop(self.ask(move |driver| driver.unregister(client)));
    }
}

/// Asks for a client.
pub(crate) fn ask<M: Memory>(
    registrar: &dyn Registrar<M>,
    filter: Filter,
    buffers: u32,
    client: Box<dyn Client<M>>,
    bell: &Arc<Bell>,
    sleeper: &Sleeper,
) -> Registration<M> {
    let progress = Arc::new(Progress {
        outcome: OnceLock::new(),
        is_half_over: AtomicBool::new(false),
    });
    let asked = Asked {
        progress: Arc::clone(&progress),
        bell: Arc::clone(bell),
        sleeper: sleeper.clone(),
    };
    registrar.register(filter, buffers, client, asked);
    Registration(progress)
}

/// It is wanted no more: its client, if there is one, ends.
pub(crate) fn leave<M: Memory>(
    registrar: &dyn Registrar<M>,
    Registration(progress): Registration<M>,
) {
    let has_outcome = progress.is_half_over.swap(true, Ordering::AcqRel);
    if let (true, Some(Outcome::Made(client, _))) = (has_outcome, progress.outcome.get()) {
        registrar.unregister(*client);
    }
}
