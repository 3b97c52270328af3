//! The near end: clients, their threads, and what becomes of a packet that one of them has worked on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laxity_model::nif::filter::Filter;
use laxity_model::nif::frame;
use laxity_model::nif::frames::Frames;
use laxity_model::nif::link::{Link, Memory};
use laxity_model::nif::transmit::FirstCome;
use laxity_model::{
    ActivityId, Context, HostError, Instant, Placement, Program, SemaphoreId, Span, Step,
};
use laxity_net::bodies::{Crew, Work};
use laxity_net::buffers::{Buffer, Filled, Pool, PoolSize, Sending};
use laxity_net::clients::early;
use laxity_net::driver::{Driver, Host, Interest};

use super::protocols::{Done, Protocols};
use super::{
    HEADERS, Known, NEAR, OTHER_PACKETS, Plan, QUEUE, TAKEN, TIMERS_APART, Threads, driver, failed,
};
use crate::scenario::{Demultiplexing, NetworkClient, Placing, ResolvedTask, network};

/// Frames that wait to be sent.
const SENDING: u32 = 128;
/// Buffers and the name of who takes what is no flow's.
const REST: (u32, &str) = (16, OTHER_PACKETS);

/// The near end in the making.
pub(super) struct Near<'a, L: Link> {
    pub(super) program: &'a mut Program,
    plan: &'a Plan<'a>,
    pub(super) driver: Driver<L, Frames>,
    stack: Arc<Shared<L::Memory>>,
}

/// What all threads of the near end have together.
struct Shared<M: Memory> {
    protocols: Mutex<Protocols>,
    flows: Vec<Known>,
    /// What is sent is sent from here; then the driver is to look.
    pool: Pool<M>,
    raised: SemaphoreId,
    /// Wakes who looks at timers.
    timers: SemaphoreId,
}

impl<'a, L> Near<'a, L>
where
    L: Link + Send + 'static,
    L::Memory: 'static,
{
    pub(super) fn new(
        program: &'a mut Program,
        plan: &'a Plan<'a>,
        link: L,
        raised: SemaphoreId,
    ) -> Result<Self, HostError> {
        let most = 64 + 16 * plan.flows.len() as u32;
        let order = FirstCome::new(QUEUE);
        let room = plan.interface.room(plan.is_twin);
        let mut driver = driver(link, (most, room), (order, plan.seed))?;
        let (client, _) = early::client(0, None, &Host::default().sleeper);
        let sender = driver.register(Interest::Nothing, PoolSize::fixed(SENDING), client);
        let stack = Arc::new(Shared {
            protocols: Protocols::new(&plan.flows, plan.seed)?.into(),
            flows: plan.flows.clone(),
            pool: sender.map_err(failed)?.pool,
            raised,
            timers: program.semaphore(0),
        });
        Ok(Self {
            program,
            plan,
            driver,
            stack,
        })
    }

    /// Adds all clients' threads.
    pub(super) fn install(&mut self) -> Result<Threads, HostError> {
        let plan = self.plan;
        let mut threads = Threads::new();
        let mut has_default = false;
        for (task, client) in &plan.clients {
            let own = match client.demultiplexing {
                Demultiplexing::Late { .. } => {
                    let takes_rest = !std::mem::replace(&mut has_default, true);
                    self.late(task, client, takes_rest)?
                }
                Demultiplexing::Early => self.early(task, client)?,
            };
            threads.insert(task.name.clone(), own);
        }
        let clients = plan
            .clients
            .iter()
            .map(|(task, client)| (*task, &***client));
        let ordinary = Placement::Thread(network::of_protocols(clients));
        if !has_default {
            let nothing = Work::default();
            self.crew(REST, (&[ordinary], nothing), &[])?;
        }
        let apart = plan.interface.most.map(|_| TIMERS_APART);
        let body = timers(Arc::clone(&self.stack), apart);
        let on = plan.interface.processor;
        self.program.add("protocols' timers", on, ordinary, body);
        Ok(threads)
    }

    fn late(
        &mut self,
        task: &ResolvedTask,
        client: &NetworkClient,
        takes_rest: bool,
    ) -> Result<Vec<ActivityId>, HostError> {
        let threads = vec![thread(task); client.threads()];
        let ports: Vec<(bool, u16)> = match takes_rest {
            true => Vec::new(),
            false => self.connections(client).map(|(_, port)| port).collect(),
        };
        let own = self.crew(
            (client.buffers, &task.name),
            (&threads, work(client)),
            &ports,
        )?;
        self.reserve(task, &own);
        Ok(own)
    }

    fn early(
        &mut self,
        task: &ResolvedTask,
        client: &NetworkClient,
    ) -> Result<Vec<ActivityId>, HostError> {
        let mut all = Vec::new();
        let connections: Vec<_> = self.connections(client).collect();
        let several = connections.len() > 1;
        for (name, port) in connections {
            let name = match several {
                true => format!("{} {name}", task.name),
                false => task.name.clone(),
            };
            let threads = (&[thread(task)][..], work(client));
            all.extend(self.crew((client.buffers, &name), threads, &[port])?);
        }
        self.reserve(task, &all);
        Ok(all)
    }

    /// The connections of a client's flows: a word for each, whether it is of datagrams, and its port.
    fn connections(
        &self,
        client: &NetworkClient,
    ) -> impl Iterator<Item = (String, (bool, u16))> + use<L> {
        let flows = self.plan.flows.iter();
        let own = flows.filter(|known| client.flows.contains(&known.flow));
        let own: Vec<Known> = own.cloned().collect();
        own.into_iter().flat_map(|known| {
            (0..known.flow.connections()).map(move |number| {
                let name = match known.flow.connections() {
                    1 => known.flow.name.clone(),
                    _ => format!("{} {}", known.flow.name, number + 1),
                };
                (name, (known.is_video(), known.port(number)))
            })
        })
    }

    /// A client for what comes to these ports, or for whatever nobody else has.
    fn crew(
        &mut self,
        (buffers, name): (u32, &str),
        (threads, work): (&[Placement], Work),
        ports: &[(bool, u16)],
    ) -> Result<Vec<ActivityId>, HostError> {
        // One for each: a filter that names them all would soon be too long.
        let filters = ports.iter().map(|(is_video, port)| {
            let protocol = if *is_video { "udp" } else { "tcp" };
            let text = format!("ip and {protocol} dst port {port} and dst host {NEAR}");
            Filter::parse(&text, None).map_err(failed)
        });
        let filters = filters.collect::<Result<Vec<_>, _>>()?;
        let crew = Crew {
            name,
            processor: self.plan.interface.processor,
            threads,
            buffers,
            work,
        };
        let interest = filters.first().map_or(Interest::Default, Interest::In);
        let shared = &self.stack;
        let deliver = || deliver(Arc::clone(shared));
        let made = crew.install(self.program, &mut self.driver, interest, deliver);
        let (client, threads) = made.map_err(failed)?;
        for filter in filters.iter().skip(1) {
            self.driver.add_filter(client, filter).map_err(failed)?;
        }
        Ok(threads)
    }

    /// What a client reserves is its only thread's.
    fn reserve(&mut self, task: &ResolvedTask, threads: &[ActivityId]) {
        let request = task.request();
        if let (Some(request), [thread]) = (request, threads) {
            self.program.activities[thread.index()].reservation = Some(request);
        }
    }
}

fn thread(task: &ResolvedTask) -> Placement {
    match task.placing {
        Some(Placing::Deferred) => Placement::Deferred,
        _ => Placement::Thread(network::priority(task)),
    }
}

fn work(client: &NetworkClient) -> Work {
    Work {
        packet: client.packet,
        is_burnt: true,
        ..Work::default()
    }
}

/// What becomes of a packet that was worked on, since then: video is recorded, and all else goes to the protocols. Its buffer is given again.
fn deliver<M: Memory + 'static>(
    shared: Arc<Shared<M>>,
) -> impl FnMut(Buffer<M, Filled>, Instant, &mut dyn Context) + Send + 'static {
    move |packet, since, context| {
        let port = frame::parse(packet.bytes(), None).key.ports();
        let known =
            port.and_then(|(_, port)| shared.flows.iter().find(|known| known.has_port(port)));
        if let (Some(known), Some(arrived)) = (known, packet.arrived()) {
            let waited = since.saturating_since(arrived.at).as_nanos();
            context.put(known.records, [TAKEN | since.as_nanos(), waited]);
        }
        match known.filter(|known| known.is_video()) {
            Some(known) => {
                let number = packet.bytes().get(HEADERS..HEADERS + 8);
                let number = number.and_then(|number| number.try_into().ok());
                if let Some(number) = number.map(u64::from_be_bytes) {
                    context.put(known.records, [number, 0]);
                }
            }
            None => {
                let done = shared.lock().pass(packet.bytes(), context.now());
                shared.follow(done, context);
            }
        }
        // Where the client has ended there is nobody to give it to.
        packet.emptied().give().ok();
    }
}

/// Looks at the protocols' timers, where it is charged no more often than that.
fn timers<M: Memory + 'static>(
    shared: Arc<Shared<M>>,
    apart: Option<Span>,
) -> impl FnMut(&mut dyn Context) -> Step + Send + 'static {
    let mut may_look = Instant::ZERO;
    move |context: &mut dyn Context| {
        let now = context.now();
        if now < may_look {
            return Step::SleepUntil(may_look);
        }
        if let Some(apart) = apart {
            // One look is enough for all that asked for one.
            while context.take(shared.timers).is_some() {}
            may_look = now + apart;
        }
        let done = shared.lock().look(now);
        let next = done.next.unwrap_or(Instant::MAX);
        shared.lock().next_look = next;
        shared.follow(done, context);
        Step::WaitUntil(shared.timers, next)
    }
}

impl<M: Memory> Shared<M> {
    fn lock(&self) -> MutexGuard<'_, Protocols> {
        self.protocols
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what is to be sent, records what arrived, and has the timers looked at where that is sooner.
    fn follow(&self, done: Done, context: &mut dyn Context) {
        for (flow, bytes) in done.received {
            context.put(self.flows[flow].records, [bytes, 0]);
        }
        let is_any = !done.frames.is_empty();
        for frame in done.frames {
            // Where none is free, it is as if lost on the way.
            let filled = self
                .pool
                .take()
                .ok()
                .and_then(|empty| empty.fill(&frame).ok());
            if let Some(filled) = filled {
                filled.send(Sending::default()).ok();
            }
        }
        if is_any {
            context.signal(self.raised);
        }
        if done.next.is_some_and(|next| next < self.lock().next_look) {
            context.signal(self.timers);
        }
    }
}
