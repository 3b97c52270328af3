//! The near end: clients, their threads, and what becomes of a packet that one of them has worked on.

use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laxity_model::nif::filter::Filter;
use laxity_model::nif::frame;
use laxity_model::nif::frames::Frames;
use laxity_model::nif::link::{Link, Memory};
use laxity_model::nif::registry::ClientId;
use laxity_model::nif::transmit::FirstCome;
use laxity_model::nif::urgency::Stated;
use laxity_model::{
    ActivityId, Context, HostError, Instant, Placement, Priority, Program, SemaphoreId, Span, Step,
};
use laxity_net::bodies::{Crew, Installed, Work};
use laxity_net::buffers::{Buffer, Filled, Pool, PoolSize, Sending};
use laxity_net::clients::{Queue, early};
use laxity_net::driver::{Driver, Host, Interest};

use super::protocols::{Done, Protocols};
use super::{
    KEPT, Known, NEAR, OTHER_PACKETS, Plan, QUEUE, TAKEN, TIMERS_APART, Threads, driver, failed,
};
use crate::observe::{Kept, Waiting};
use crate::scenario::{
    Demultiplexing, Flow, NetworkClient, Placing, ResolvedTask, Taking, network,
};

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
    queues: Vec<Queue<L::Memory>>,
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
    /// Counts frames that no buffer was free for.
    unsent: SemaphoreId,
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
            unsent: program.semaphore(0),
        });
        Ok(Self {
            program,
            plan,
            driver,
            stack,
            queues: Vec::new(),
        })
    }

    pub(super) fn unsent(&self) -> SemaphoreId {
        self.stack.unsent
    }

    /// Who waits of this flow's packets, at whatever time that is asked.
    pub(super) fn waiting(&self, flow: &Known) -> Waiting {
        let (queues, flow) = (self.queues.clone(), flow.clone());
        Waiting(Some(Arc::new(move || {
            let mut all = Vec::new();
            for queue in &queues {
                queue.look(|packet| {
                    let due = packet.due().map_or(Instant::MAX, |due| due.deadline);
                    let arrived = packet.arrived().map(|arrived| (arrived.at, due));
                    all.extend(arrived.filter(|_| flow.is_for(packet.bytes())));
                });
            }
            all
        })))
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
            self.crew(REST, (&[ordinary], nothing), &[Vec::new()])?;
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
        let flows: Vec<&[Arc<Flow>]> = match client.taking {
            Taking::ByFlow => client.flows.chunks(1).collect(),
            _ => vec![&client.flows],
        };
        let ports = |flows: &&[Arc<Flow>]| self.connections(flows).map(|(_, port)| port).collect();
        let mut groups: Vec<Vec<(bool, u16)>> = flows.iter().map(ports).collect();
        if let (true, Some(last)) = (takes_rest, groups.last_mut()) {
            last.clear();
        }
        let own = self.crew(
            (client.buffers, &task.name),
            (&threads, work(client)),
            &groups,
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
        let connections: Vec<_> = self.connections(&client.flows).collect();
        let several = connections.len() > 1;
        for (name, port) in connections {
            let name = match several {
                true => format!("{} {name}", task.name),
                false => task.name.clone(),
            };
            let threads = [thread(task)];
            let (named, threads) = ((client.buffers, &*name), (&threads[..], work(client)));
            all.extend(match client.due() {
                Some(due) => self.crew_due(named, threads, (port, due))?,
                None => self.crew(named, threads, &[vec![port]])?,
            });
        }
        self.reserve(task, &all);
        Ok(all)
    }

    /// The connections of flows: a word for each, whether it is of datagrams, and its port.
    fn connections(
        &self,
        flows: &[Arc<Flow>],
    ) -> impl Iterator<Item = (String, (bool, u16))> + use<L> {
        let known = self.plan.flows.iter();
        let own = known.filter(|known| flows.contains(&known.flow));
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

    /// Threads that take what comes to the ports of each group, and of one of none whatever nobody else has: that of the first group first.
    fn crew(
        &mut self,
        named: (u32, &str),
        threads: (&[Placement], Work),
        groups: &[Vec<(bool, u16)>],
    ) -> Result<Vec<ActivityId>, HostError> {
        let filters = groups
            .iter()
            .map(|ports| ports.iter().map(filter).collect());
        let filters: Vec<Vec<Filter>> = filters.collect::<Result<_, _>>()?;
        let interests = filters.iter().map(|all| all.first());
        let interests = interests.map(|filter| filter.map_or(Interest::Default, Interest::In));
        let (crew, shared) = (self.crew_of(named, threads), &self.stack);
        let deliver = || deliver(Arc::clone(shared));
        let made = crew.install_in_order(self.program, &mut self.driver, interests, deliver);
        let (threads, clients) = self.made(made)?;
        // One for each: a filter that names them all would soon be too long.
        for (client, filters) in clients.into_iter().zip(&filters) {
            for filter in filters.iter().skip(1) {
                self.driver.add_filter(client, filter).map_err(failed)?;
            }
        }
        Ok(threads)
    }

    /// A thread for the packets that come to a port, as urgent as they are.
    fn crew_due(
        &mut self,
        named: (u32, &str),
        threads: (&[Placement], Work),
        (port, due): ((bool, u16), (Stated, Priority)),
    ) -> Result<Vec<ActivityId>, HostError> {
        let filter = filter(&port)?;
        let interest = Interest::In(&filter);
        let (crew, shared) = (self.crew_of(named, threads), &self.stack);
        let deliver = || deliver(Arc::clone(shared));
        let made = crew.install_due(self.program, &mut self.driver, interest, due, deliver);
        Ok(self.made(made)?.0)
    }

    fn made(
        &mut self,
        made: Result<Installed<L::Memory>, impl Display>,
    ) -> Result<(Vec<ActivityId>, Vec<ClientId>), HostError> {
        let (threads, clients) = made.map_err(failed)?;
        let (clients, queues): (Vec<_>, Vec<_>) = clients.into_iter().unzip();
        self.queues.extend(queues);
        Ok((threads, clients))
    }

    fn crew_of<'c>(
        &self,
        (buffers, name): (u32, &'c str),
        (threads, work): (&'c [Placement], Work),
    ) -> Crew<'c> {
        Crew {
            name,
            processor: self.plan.interface.processor,
            threads,
            buffers,
            work,
        }
    }

    /// What a client reserves is its only thread's.
    fn reserve(&mut self, task: &ResolvedTask, threads: &[ActivityId]) {
        let request = task.request();
        if let (Some(request), [thread]) = (request, threads) {
            self.program.activities[thread.index()].reservation = Some(request);
        }
    }
}

pub(super) fn thread(task: &ResolvedTask) -> Placement {
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

/// What comes to this port.
fn filter((is_video, port): &(bool, u16)) -> Result<Filter, HostError> {
    let protocol = if *is_video { "udp" } else { "tcp" };
    let text = format!("ip and {protocol} dst port {port} and dst host {NEAR}");
    Filter::parse(&text, None).map_err(failed)
}

/// What becomes of a packet that was worked on, since then: video is recorded, and all else goes to the protocols. Its buffer is given again.
fn deliver<M: Memory + 'static>(
    shared: Arc<Shared<M>>,
) -> impl FnMut(Buffer<M, Filled>, Instant, &mut dyn Context) + Send + 'static {
    move |packet, since, context| {
        let mut flows = shared.flows.iter();
        let known = flows.find(|known| known.is_for(packet.bytes()));
        if let (Some(known), Some(arrived)) = (known, packet.arrived()) {
            let waited = since.saturating_since(arrived.at).as_nanos();
            context.put(known.records, [TAKEN | since.as_nanos(), waited]);
            if let Some(due) = packet.due() {
                let now = context.now();
                let kept = Kept {
                    took: now.saturating_since(arrived.at),
                    late_by: now.saturating_since(due.deadline),
                    exceeds: due.exceeds,
                };
                context.put(known.records, [KEPT | now.as_nanos(), kept.word()]);
            }
        }
        match known.filter(|known| known.is_video()) {
            Some(known) => {
                if let Some(number) = number(packet.bytes()) {
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

/// The number that a packet of video begins with; `None` of one that is not as it was sent, as its checksums tell.
fn number(packet: &[u8]) -> Option<u64> {
    let (header, datagram) = packet.get(frame::HEADER..)?.split_at_checked(20)?;
    let length = u16::from_be_bytes(*datagram.get(4..)?.first_chunk()?);
    let datagram = datagram.get(..length.into())?;
    let [high, low] = length.to_be_bytes();
    let pseudo = [0, frame::UDP, high, low];
    let is_right = is_sound(&[header]) && is_sound(&[&header[12..], &pseudo, datagram]);
    let number = datagram.get(8..)?.first_chunk()?;
    is_right.then(|| u64::from_be_bytes(*number))
}

/// Whether the checksum in these is right (RFC 1071). Only the last may be of an odd number of bytes.
fn is_sound(parts: &[&[u8]]) -> bool {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let words = words.map(|word| u16::from_be_bytes([word[0], *word.get(1).unwrap_or(&0)]));
    let sum: u64 = words.map(u64::from).sum();
    // Carries come in at the other end: what is all ones, and so zero, is a multiple of this.
    sum > 0 && sum.is_multiple_of(0xffff)
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
            let taken = self.pool.take().ok();
            let filled = taken.and_then(|empty| empty.fill(&frame).ok());
            let sent = filled.and_then(|filled| filled.send(Sending::default()).ok());
            if sent.is_none() {
                // It is as if lost on the way.
                context.signal(self.unsent);
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
