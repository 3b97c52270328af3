//! What shares a network interface in a variant, as activities of its program: at the near end of a wire the driver, its clients' threads and what protocol
//! they speak, at the far end who sends. The same for the twin's cards and for interfaces of this machine.
//!
//! * `live`: interfaces of this machine; `kernel`: its own sockets at the near end; `far`: who sends; `protocols`: TCP/IP of the near end; `threads`: clients and what becomes of their packets.

mod far;
mod kernel;
mod live;
mod protocols;
mod threads;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use laxity::cards::{Cable, Card, Line, Queue, Shape, Transfers};
use laxity_model::nif::frame;
use laxity_model::nif::frames::Frames;
use laxity_model::nif::link::Link;
use laxity_model::nif::most::Costs;
use laxity_model::nif::transmit::Order;
use laxity_model::nif::wire::Framing;
use laxity_model::verify::contract::Subject;
use laxity_model::{
    ActivityId, Context, HostError, Instant, InterruptLevel, Mark, Placement, PortId, Program,
    SemaphoreId, Service, Span, Step,
};
use laxity_net::bodies::{Handler, Interrupt};
use laxity_net::driver::{Driver, Host, Limits};
use laxity_net::emulated::{Again, Faults, Faulty};

use crate::observe::{FlowMarks, FlowProbe, OnTheWay, Probe, Waiting, Watched};
use crate::scenario::{
    Demultiplexing, Flow, Interface, NetworkClient, ResolvedTask, Taking, TaskKind, Traffic,
};
use far::Far;
pub use live::{Fed, Wires};
use threads::Near;

/// The addresses of the near end and of the far end: of a network that nobody else is in.
const NEAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2));
const FAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));
/// Ports of the near end: so many for each flow, in the variant's order.
const FIRST_PORT: u16 = 5_000;
const PORTS_EACH: u16 = 16;
/// Descriptors of a card's rings, and its driver's buffers, at the most.
const POSTED: usize = 256;
/// And at the least.
const LEAST_POSTED: usize = 64;
/// Frames that wait to be sent.
const QUEUE: u32 = 512;
/// What happened to a flow waits in so many places for who records it.
const RECORDS: u32 = 4_096;
/// A flow's records say in their first word what they are of: a packet that was sent, or was taken by a thread; or else its number, when it has been worked on.
const SENT: u64 = 1 << 63;
const TAKEN: u64 = 1 << 62;
/// Or what became of one that was due.
const KEPT: u64 = 1 << 61;

/// A flow in a variant: where its packets go to, and where what becomes of them is recorded.
#[derive(Clone, Debug)]
struct Known {
    flow: Arc<Flow>,
    /// The first of its ports.
    port: u16,
    /// What happens is put there.
    records: PortId,
}

impl Known {
    /// The port of one of its connections.
    const fn port(&self, connection: u16) -> u16 {
        self.port + connection
    }

    /// Whether a packet is one of its.
    fn is_for(&self, packet: &[u8]) -> bool {
        let own = self.port..self.port + self.flow.connections();
        let ports = frame::parse(packet, None).key.ports();
        ports.is_some_and(|(_, port)| own.contains(&port))
    }

    fn is_video(&self) -> bool {
        matches!(self.flow.traffic, Traffic::Video { .. })
    }
}

/// An end of the wire: an interface, and its interrupt.
pub struct End<L> {
    /// The interface.
    pub link: L,
    /// Has the interrupt raised again for what happens from now on.
    pub unmask: Box<dyn FnMut(Instant) + Send>,
    /// Where it is raised.
    pub raised: SemaphoreId,
    /// When it has something to do besides, if it has faults in front of it.
    again: Option<Again>,
}

impl<L: Link> End<L> {
    /// The same, before which these things go wrong. What an interface of this machine takes is its own.
    fn with_faults(self, faults: Faults, seed: u64) -> Result<End<Faulty<L>>, HostError> {
        let faults = Faults {
            rate: 0,
            delay: Span::ZERO,
            ..faults
        };
        let link = Faulty::new(self.link, faults, seed, POSTED).map_err(failed)?;
        Ok(End {
            again: Some(link.again()),
            link,
            unmask: self.unmask,
            raised: self.raised,
        })
    }
}

impl End<Queue> {
    /// A card of the twin, whose interrupt is raised there.
    pub fn of(card: &Card, raised: SemaphoreId) -> Self {
        let link = card.queue(0).expect("a card has a first queue");
        let unmasks = link.clone();
        Self {
            link,
            unmask: Box::new(move |now| unmasks.unmask(now)),
            raised,
            again: None,
        }
    }
}

/// What takes part of a network in a variant, if anything does.
struct Plan<'a> {
    clients: Vec<(&'a ResolvedTask, &'a Arc<NetworkClient>)>,
    flows: Vec<Known>,
    interface: Arc<Interface>,
    is_twin: bool,
    seed: u64,
}

impl<'a> Plan<'a> {
    fn of(
        tasks: &[&'a ResolvedTask],
        program: &mut Program,
        (seed, is_twin): (u64, bool),
    ) -> Option<Self> {
        let clients: Vec<_> = clients_of(tasks).collect();
        let interface = Arc::clone(&clients.first()?.1.interface);
        let flows = flows_of(tasks).map(|(flow, port)| Known {
            flow: Arc::clone(flow),
            port,
            records: program.port(RECORDS),
        });
        Some(Self {
            flows: flows.collect(),
            clients,
            interface,
            is_twin,
            seed,
        })
    }
}

/// Those of these who are clients.
fn clients_of<'a>(
    tasks: &[&'a ResolvedTask],
) -> impl Iterator<Item = (&'a ResolvedTask, &'a Arc<NetworkClient>)> {
    tasks.iter().filter_map(|task| match &task.kind {
        TaskKind::Client(client) => Some((*task, client)),
        _ => None,
    })
}

/// Their flows, each with the first of its ports at the near end.
fn flows_of<'a>(tasks: &[&'a ResolvedTask]) -> impl Iterator<Item = (&'a Arc<Flow>, u16)> {
    let flows = clients_of(tasks).flat_map(|(_, client)| &client.flows);
    let port = |index: usize| FIRST_PORT + PORTS_EACH * index as u16;
    flows
        .enumerate()
        .map(move |(index, flow)| (flow, port(index)))
}

/// Adds what a variant has of a network to its program: of each of these tasks that is a client or a flow the probe.
///
/// # Errors
///
/// [`HostError::Failed`]: an interface has not so much memory, or a client is refused.
pub(super) fn install(
    program: &mut Program,
    tasks: &[&ResolvedTask],
    (seed, wires): (u64, Option<Wires>),
) -> Result<Vec<Probe>, HostError> {
    let Some(plan) = Plan::of(tasks, program, (seed, wires.is_none())) else {
        return Ok(Vec::new());
    };
    let [near, far, doorbell] = [(); 3].map(|()| program.semaphore(0));
    if let Some(wires) = wires {
        return match wires.split([near, far]) {
            (Ok(near), far) if plan.interface.is_faulty() => {
                let far = far.with_faults(plan.interface.wire, seed)?;
                build(program, &plan, (near, far), doorbell)
            }
            (Ok(near), far) => build(program, &plan, (near, far), doorbell),
            (Err(sockets), far) => kernel::build(program, &plan, sockets, (far, doorbell)),
        };
    }
    let [near, far] = cards(program, &plan.interface, [near, far, doorbell], seed);
    build(program, &plan, (near, far), doorbell)
}

impl Interface {
    /// What a packet of it takes at the most, with an interrupt of its own.
    pub(crate) fn each(&self) -> Service {
        self.costs.each(LONGEST_FRAME as u32)
    }

    /// So many packets wait in it for its driver at the most. In the twin, where the driver is bounded, that is as many as it may take: who waits for longer waits in vain.
    pub(crate) fn room(&self, is_twin: bool) -> usize {
        let most = self.most.filter(|_| is_twin);
        let most = most.map_or(POSTED, |most| most.packets().into());
        most.clamp(LEAST_POSTED, POSTED)
    }
}

/// The twin's cards and their wire.
fn cards(
    program: &mut Program,
    interface: &Interface,
    [near, far, doorbell]: [SemaphoreId; 3],
    seed: u64,
) -> [End<Queue>; 2] {
    let line = Line {
        faults: interface.wire,
        framing: Framing::Ethernet,
        is_half_duplex: interface.is_half_duplex,
    };
    let shape = Shape {
        queues: 1,
        receive: POSTED,
        send: POSTED,
        mtu: 1_500,
        transfers: Transfers::default(),
        moderation: Default::default(),
    };
    let (cable, near_card, far_card) = Cable::new(line, [shape; 2], seed);
    let hardware = cable.hardware(doorbell, [vec![near], vec![far]]);
    program.add("wire", interface.processor, Placement::External, hardware);
    [(near_card, near), (far_card, far)].map(|(card, raised)| End::of(&card, raised))
}

/// A driver of an end, which sends in this order.
fn driver<L: Link>(
    link: L,
    (clients, posted): (u32, usize),
    (order, seed): (impl Order + 'static, u64),
) -> Result<Driver<L, Frames>, HostError> {
    let limits = Limits {
        clients,
        posted,
        queue: QUEUE,
        reach: REACH as usize,
        ..Limits::default()
    };
    let frames = Frames::new(None, seed);
    let driver = Driver::with_order(link, frames, limits, Host::default(), Box::new(order));
    driver.map_err(failed)
}

/// Both ends, as activities.
fn build<N, F>(
    program: &mut Program,
    plan: &Plan<'_>,
    (near, far): (End<N>, End<F>),
    doorbell: SemaphoreId,
) -> Result<Vec<Probe>, HostError>
where
    N: Link<Memory: 'static> + Send + 'static,
    F: Link<Memory: 'static> + Send + 'static,
{
    let processor = plan.interface.processor;
    let mut made = Near::new(program, plan, near.link, near.raised)?;
    let threads = made.install()?;
    charge_clients(made.program, plan, &threads);
    let flows = plan.flows.iter();
    let waiting: Vec<Waiting> = flows.map(|known| made.waiting(known)).collect();
    let unsent = made.unsent();
    let handler = Interrupt {
        raised: near.raised,
        doorbell,
        unmask: near.unmask,
        costs: plan.interface.costs,
        most: plan.interface.most,
    };
    let handler = Handler::new(made.driver, handler);
    let level = Placement::Interrupt(InterruptLevel(1));
    let interrupts = program.add(&plan.interface.name, processor, level, handler);
    if let Some(most) = plan.interface.most {
        let work = most.work(plan.interface.costs, LONGEST_FRAME as u32);
        program.declare_work(interrupts, work);
    } else {
        program.declare_unbounded(interrupts);
    }
    let sender = Far::new(far, doorbell, &plan.flows, plan.seed)?;
    program.add("far end", processor, Placement::External, sender);
    let own = Some((interrupts, unsent));
    Ok(probes(program, plan, (&threads, waiting), own))
}

/// Declares what each thread of a client may have to do, where it is known how many packets come: all of them.
fn charge_clients(program: &mut Program, plan: &Plan<'_>, threads: &Threads) {
    let Some(most) = plan.interface.most else {
        return;
    };
    for (task, client) in &plan.clients {
        let costs = Costs {
            packet: client.packet,
            ..Costs::default()
        };
        for thread in threads.get(&task.name).into_iter().flatten() {
            program.declare_work(*thread, most.work(costs, 0));
        }
    }
}

/// The threads of each client, by its name.
type Threads = BTreeMap<String, Vec<ActivityId>>;

/// Of clients and flows, in the order of the variant; `own`: the interrupts, and what counts frames that had no buffer to leave from, where the near end is not the kernel's.
fn probes(
    program: &mut Program,
    plan: &Plan<'_>,
    (threads, waiting): (&Threads, Vec<Waiting>),
    own: Option<(ActivityId, SemaphoreId)>,
) -> Vec<Probe> {
    let of = |name: &str| threads.get(name).cloned().unwrap_or_default();
    let (interrupts, unsent) = own.unzip();
    let clients = plan.clients.iter().map(|(task, _)| Probe {
        subject: Subject {
            name: task.name.clone(),
            kind: task.kind.kind(),
        },
        activities: of(&task.name),
        watched: Watched::Nothing,
    });
    let mut probes: Vec<Probe> = clients.collect();
    for (known, waiting) in plan.flows.iter().zip(waiting) {
        let flow = &known.flow;
        let mut owners = plan.clients.iter();
        let owner = owners.find(|(_, client)| client.flows.contains(flow));
        let holders = owner.map_or_else(Vec::new, |(task, _)| of(&task.name));
        let hands = owner.map_or(1, |(_, client)| hands(client));
        let [sent, taken, worked, kept] = ["sent", "taken", "worked on", "was due"]
            .map(|what| program.mark(&format!("{}: {what}", flow.name)));
        let marks = FlowMarks {
            sent,
            taken,
            worked,
            kept,
        };
        let body = recorder(known.records, marks);
        let records = program.add(
            &flow.name,
            plan.interface.processor,
            Placement::External,
            body,
        );
        probes.push(Probe {
            subject: Subject {
                name: flow.name.clone(),
                kind: flow.kind(),
            },
            activities: vec![records],
            watched: Watched::Flow(FlowProbe {
                marks,
                holders: holders.into_iter().chain(interrupts).collect(),
                traffic: flow.traffic,
                waiting,
                way: way(&plan.interface, hands),
                records: known.records,
                unsent,
            }),
        });
    }
    probes
}

/// So many threads take the packets of one flow of a client's.
fn hands(client: &NetworkClient) -> usize {
    match client.demultiplexing {
        Demultiplexing::Late { threads } if client.taking != Taking::FromKernel => threads.into(),
        _ => 1,
    }
}

/// What may happen to packets between an interface's far end and so many threads: queues keep their order.
fn way(interface: &Interface, threads: usize) -> OnTheWay {
    let wire = interface.wire;
    OnTheWay {
        keeps_order: wire.late == 0,
        hands: threads,
        patience: UNDER_WAY + wire.delay + wire.late_by,
    }
}

/// Records what happens to a flow, with when it was.
fn recorder(
    records: PortId,
    marks: FlowMarks,
) -> impl FnMut(&mut dyn Context) -> Step + Send + 'static {
    move |context: &mut dyn Context| {
        if let Some(arrival) = context.arrival() {
            let [first, second] = arrival.payload;
            let (mark, args): (Mark, _) = if first & SENT != 0 {
                (marks.sent, [first & !SENT, arrival.at.as_nanos()])
            } else if first & TAKEN != 0 {
                (marks.taken, [first & !TAKEN, second])
            } else if first & KEPT != 0 {
                (marks.kept, [first & !KEPT, second])
            } else {
                (marks.worked, [first, arrival.at.as_nanos()])
            };
            context.mark(mark, args);
        }
        Step::Wait(records)
    }
}

fn failed(error: impl std::fmt::Display) -> HostError {
    HostError::Failed(format!("the network: {error}"))
}

/// The earliest of these.
fn earliest(all: impl IntoIterator<Item = Option<Instant>>) -> Option<Instant> {
    all.into_iter().flatten().min()
}

/// Who takes what is no flow's.
pub(crate) const OTHER_PACKETS: &str = "other packets";
/// Between two looks at the protocols' timers, at the least, where an interface is bounded.
pub(crate) const TIMERS_APART: Span = LOOK;
/// Frames of each end that may be out of reach of others.
pub(crate) const REACH: u64 = 2;
/// The longest frame, in bytes.
pub(crate) const LONGEST_FRAME: usize = 1_514;

/// What has been on its way for so long, beside what the wire takes, and longer than any other was, does not come any more.
const UNDER_WAY: Span = Span::from_secs(1);
/// Between two looks at what nobody tells about.
const LOOK: Span = Span::from_millis(1);
