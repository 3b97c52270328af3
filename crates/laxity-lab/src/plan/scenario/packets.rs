//! What packets take of a processor where it is known how many come: a bounded interface's interrupts, the threads of its clients, and what its protocols do besides.
//!
//! Every packet goes through the driver, so no more of them come to any client than the driver takes. Of a client of one flow that says how often its frames come it is known better: no
//! more than these, as late as each may be on its way. A packet's time counts from its arrival at the interface.

use laxity_model::analysis::{Response, Task};
use laxity_model::nif::most::Most;
use laxity_model::nif::wire::Framing;
use laxity_model::{Placement, Service, Span};

use super::bounds::Analyst;
use super::ranks::{holder_rank, rank_beside, thread_rank};
use super::sources::{Source, Stage, Work};
use crate::plan::{Reason, bound};
use crate::runner::network::{LONGEST_FRAME, OTHER_PACKETS, REACH, TIMERS_APART};
use crate::scenario::kinds::CLIENT;
use crate::scenario::units::{format_rate, format_span};
use crate::scenario::{
    Demultiplexing, Flow, Interface, NetworkClient, Placing, ResolvedTask, TaskKind, Traffic,
    network,
};

/// So many more a driver may be called for in any time than for the packets of flows that say how often these come: the first time, and where an address is asked for.
const BESIDES: u64 = 8;
/// A `rate` is proposed in steps of so many bits a second.
const RATE_STEP: u128 = 100_000;
/// Clients of the far end besides its connections: those of its protocols.
const PROTOCOLS: u64 = 2;

/// The rest of a network: what is no client's.
pub(super) fn of_network(stage: &Stage<'_>, sources: &mut Vec<Source>) {
    let Some((interface, most)) = bounded(stage) else {
        return;
    };
    let (machine, program) = (&stage.machine, &stage.ready.admission().program);
    let own = program.numbered().find(|(_, activity)| {
        activity.name == interface.name && matches!(activity.placement, Placement::Interrupt(_))
    });
    let each = interface.each();
    let interrupts = own.and_then(|(id, _)| {
        let work = Work::Jobs {
            task: most.task(machine.handler(each))?,
            net: most.work(interface.costs, LONGEST_FRAME as u32).service,
        };
        Some(Source::new(&interface.name, Some(id), stage.rank(id), work))
    });
    let rank = thread_rank(network::of_protocols(clients(stage)));
    let wakes = machine.thread(Service::ZERO);
    let takes_rest = clients(stage).any(|(_, client)| may_take_rest(client));
    let rest = most.task(wakes).filter(|_| !takes_rest);
    // Of looks that are so far apart each may have been asked for just before.
    let looks = Task::new(wakes * 2, TIMERS_APART).ok();
    let looks = looks.map(|looks| looks.with_burst(2.try_into().unwrap_or(looks.burst())));
    let of_protocols = |(name, task): (&str, Option<Task>)| {
        let net = Service::ZERO;
        Some(Source::new(
            name,
            None,
            rank,
            Work::Jobs { task: task?, net },
        ))
    };
    let besides = [(OTHER_PACKETS, rest), ("protocols' timers", looks)];
    let besides = besides.into_iter().filter_map(of_protocols);
    // It is known how many come at the most, and not that they do.
    sources.extend(interrupts.into_iter().chain(besides).map(|source| Source {
        waits: true,
        ..source
    }));
}

/// Whether it is known how much a client's threads work. On this machine they do TCP's work besides, behind one lock for all.
pub(super) fn is_known(stage: &Stage<'_>, client: &NetworkClient) -> bool {
    let is_bulk = |flow: &Flow| matches!(flow.traffic, Traffic::Bulk { .. });
    let speaks_tcp = client.flows.iter().any(|flow| is_bulk(flow));
    client.interface.most.is_some() && (stage.is_twin() || !speaks_tcp)
}

/// The threads of a client, if it is known how many packets come.
pub(super) fn of_client(
    stage: &Stage<'_>,
    task: &ResolvedTask,
    client: &NetworkClient,
) -> Option<Source> {
    let (name, most) = (&task.name, client.interface.most?);
    let mut probes = stage.ready.probes.0.iter();
    let own = probes.find(|probe| (probe.subject.kind == CLIENT) && probe.subject.name == *name);
    let id = *own?.activities.first()?;
    let (rank, slots, beside) = match task.placing? {
        Placing::Thread(_) => (thread_rank(network::highest(task)), None, None),
        Placing::Reserved(request, before) => {
            let rank = holder_rank(&stage.machine, request, before);
            (rank, Some(id), rank_beside(request, before))
        }
        Placing::Interrupt | Placing::Deferred => return None,
    };
    let least = client.due().map(|_| thread_rank(network::priority(task)));
    let each = stage.machine.thread(client.packet);
    let held = held(stage, &client.interface, most);
    let (packets, task) = match arrivals(stage, client) {
        Some(frames) => (frames.packets, frames.task(each, held)?),
        None => (most.packets().into(), most.task(each)?),
    };
    let net = client.packet.checked_mul(packets)?;
    Some(Source {
        slots,
        beside,
        least,
        waits: true,
        held,
        shared: (client.threads() > 1).then_some(each),
        is_seen_at_release: true,
        ..Source::new(name, Some(id), rank, Work::Jobs { task, net })
    })
}

impl Source {
    /// The rank at which it is whenever it has work.
    pub(super) fn at_least(&self) -> u16 {
        self.least.unwrap_or(self.rank)
    }

    /// How long it takes at the most, or why that is not known.
    pub(super) fn answer(&self, response: Response) -> Result<Span, Reason> {
        let seen = response.bound().filter(|_| self.is_seen_at_release);
        seen.map_or_else(|| bound(response), |found| Ok(found.from_release))
    }
}

/// Whether it is known how many packets come in a variant, on this processor.
pub(super) fn bounded<'a>(stage: &Stage<'a>) -> Option<(&'a Interface, Most)> {
    let interface = stage.variant.interface()?;
    let is_here = interface.processor.0 == stage.processor;
    let most = interface.most.filter(|_| is_here)?;
    Some((interface, most))
}

fn clients<'a>(
    stage: &Stage<'a>,
) -> impl Iterator<Item = (&'a ResolvedTask, &'a NetworkClient)> + use<'a> {
    let tasks = stage.variant.tasks.iter();
    tasks.filter_map(|task| match &task.kind {
        TaskKind::Client(client) => Some((task, &**client)),
        _ => None,
    })
}

fn flows<'a>(stage: &Stage<'a>) -> impl Iterator<Item = &'a Flow> + use<'a> {
    clients(stage).flat_map(|(_, client)| client.flows.iter().map(|flow| &**flow))
}

/// A frame of so many packets in each period, each as long after its time as this at the most.
struct Frames {
    period: Span,
    packets: u64,
    late: Span,
}

impl Frames {
    /// Of a flow that says how often they come; `None` where the wire may hold them up for a period, so that they pile up, too, and where something goes wrong on it: then they come
    /// twice, or together, as they waited for an address that was asked for in vain.
    fn of(stage: &Stage<'_>, interface: &Interface, flow: &Flow) -> Option<Self> {
        let Traffic::Video {
            period,
            packets,
            jitter,
            ..
        } = flow.traffic
        else {
            return None;
        };
        if interface.is_faulty() {
            return None;
        }
        let packets = packets.into();
        let late = jitter.checked_add(on_the_wire(stage, interface, packets))?;
        (late <= period).then_some(Self {
            period,
            packets,
            late,
        })
    }

    /// The most packets in any time of this length.
    fn within(&self, span: Span) -> u64 {
        let reach = span.checked_add(self.late).unwrap_or(Span::MAX);
        let frames = reach.as_nanos().div_ceil(self.period.as_nanos().max(1));
        frames.saturating_mul(self.packets)
    }

    /// Jobs of a frame each that come so, each of its packets held up by no more than this besides. From its release on, which is a packet's, a job takes no less than the packet does.
    fn task(&self, each: Service, held: Span) -> Option<Task> {
        let late = self.late.checked_add(held)?;
        let frame = each.checked_mul(self.packets)?;
        let task = Task::new(frame, self.period).ok()?;
        Some(task.with_jitter(late))
    }
}

/// The first of those that have a queue for all takes what is no flow's.
fn may_take_rest(client: &NetworkClient) -> bool {
    client.demultiplexing != Demultiplexing::Early
}

/// How long after the other a frame of a flow may be through the twin's wire: the far end's card has some frames before it, and then each of its senders has a turn for each packet. On a wire for
/// both ways the near end's card has as many before each. On Linux the wire takes no time.
fn on_the_wire(stage: &Stage<'_>, interface: &Interface, packets: u64) -> Span {
    if !stage.is_twin() {
        return Span::ZERO;
    }
    let senders = flows(stage).map(|flow| u64::from(flow.connections()));
    let turns = packets * (senders.sum::<u64>() + PROTOCOLS) + REACH;
    let frame = Framing::Ethernet.takes(LONGEST_FRAME, interface.wire.rate);
    let ahead = if interface.is_half_duplex { REACH } else { 0 };
    let all = frame.checked_mul(turns * (1 + ahead));
    all.unwrap_or(Span::MAX)
}

/// How long a packet waits in the interface as its driver has taken all that it may: not at all where flows say that no more come.
fn held(stage: &Stage<'_>, interface: &Interface, most: Most) -> Span {
    let packets = |flow| Frames::of(stage, interface, flow).map(|one| one.within(most.every()));
    let stated = flows(stage).map(packets);
    let stated = stated
        .reduce(|one, other| one?.checked_add(other?))
        .flatten();
    let all = stated.and_then(|stated| stated.checked_add(BESIDES));
    if all.is_some_and(|all| all <= most.packets().into()) {
        return Span::ZERO;
    }
    // The twin's interrupts are never late.
    let late = if stage.is_twin() {
        Span::ZERO
    } else {
        stage.machine.late
    };
    most.longest_wait(interface.room(stage.is_twin()) as u32, late)
}

/// How the packets of a client come that has one flow which says so, and nothing else: one that has a queue for all may have what is for nobody, too, as who asks for addresses.
fn arrivals(stage: &Stage<'_>, client: &NetworkClient) -> Option<Frames> {
    let [flow] = &client.flows[..] else {
        return None;
    };
    if may_take_rest(client) {
        return None;
    }
    Frames::of(stage, &client.interface, flow)
}

impl Analyst<'_> {
    /// Why more is asked for than there is, also where that is of packets which are counted though their flow says how often its frames come.
    pub(super) fn with_piles(&self, why: Reason, own: &Source, sources: &[Source]) -> Reason {
        let counts = |name: &str| {
            let mut all = sources.iter().filter(|source| source.name == name);
            all.any(|source| own.is(source) || self.goes_first(source, own))
        };
        let mut all = clients(&self.stage).filter(|(task, _)| counts(&task.name));
        let piles = all.find_map(|(_, client)| piles_up(&self.stage, client));
        match piles.filter(|_| why.is_too_much) {
            Some(piles) => Reason::too_much(format!("{}, as {piles}", why.words)),
            None => why,
        }
    }
}

/// Why all is counted of a client that its interface takes: one of its frames may be under way for longer than until the next, so that they come together. And what would be short enough.
fn piles_up(stage: &Stage<'_>, client: &NetworkClient) -> Option<String> {
    let (interface, [flow]) = (&*client.interface, &client.flows[..]) else {
        return None;
    };
    let Traffic::Video {
        period,
        packets,
        jitter,
        ..
    } = flow.traffic
    else {
        return None;
    };
    let is_other = may_take_rest(client) || interface.is_faulty();
    if is_other || Frames::of(stage, interface, flow).is_some() {
        return None;
    }
    let wire = on_the_wire(stage, interface, packets.into());
    let longer = format_span(jitter.checked_add(wire)?);
    let left = u128::from(period.saturating_sub(jitter).as_nanos());
    let bits = u128::from(interface.wire.rate) * u128::from(wire.as_nanos());
    // In steps that are large beside what is rounded of each frame.
    let faster = (bits.checked_div(left)? / RATE_STEP + 1) * RATE_STEP;
    let faster = format_rate(faster.try_into().ok()?);
    Some(format!(
        "all that `{}` takes is counted: a frame of `{}` may leave {jitter} late and be on the wire for {wire}, where senders take turns, and so come together with the next, {period} behind it; with a `rate` of {faster}, or a `period` of {longer}, it does not",
        interface.name, flow.name
    ))
}
