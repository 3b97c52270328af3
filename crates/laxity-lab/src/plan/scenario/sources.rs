//! Everything that takes a processor's time in a variant, the most urgent first in the twin's order.

use laxity_devices::card::Overheads;
use laxity_devices::modem::Phase;
use laxity_model::analysis::Task;
use laxity_model::executor::pacing::OnOverrun;
use laxity_model::request::ONCE;
use laxity_model::{Activity, ActivityId, Placement, ReservationRequest, Service, Span};

use super::drivers::{Calling, During, Streaming, Wakes, are_several};
use super::ranks::{
    CLOCK, DEFERRED, INTERRUPTS, foreign_rank, holder_rank, rank_beside, slot_rank, thread_rank,
};
use super::{Ready, packets};
use crate::runner::machine::Machine;
use crate::runner::modes::Mode;
use crate::scenario::devices::Installed;
use crate::scenario::{
    PeriodicRank, Placing, Rank, ResolvedTask, ResolvedVariant, Start, TaskKind, TwinProfile,
    network,
};

/// What an activity does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Work {
    /// Jobs; `net` is the cost without the machine's own.
    Jobs { task: Task, net: Service },
    /// It never stops.
    Endless,
}

/// One who takes time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Source {
    pub(super) name: String,
    /// `None`: the machine itself.
    pub(super) activity: Option<ActivityId>,
    /// The highest at which it runs.
    pub(super) rank: u16,
    /// The lowest, where that is another: of who is raised.
    pub(super) least: Option<u16>,
    /// Whose slots are sure for it, where it has such: its own thread's, or its executor's.
    pub(super) slots: Option<ActivityId>,
    /// The rank at which who holds slots competes outside them, so that it never falls below it.
    pub(super) beside: Option<u16>,
    pub(super) work: Work,
    /// Whether it is a thread that sleeps until instants, which it sees as late as the clock's ticks are.
    pub(super) sleeps: bool,
    /// Whether its jobs wait for a budget, or for the ends of others.
    pub(super) waits: bool,
    /// The driver's mode.
    pub(super) mode: Option<&'static str>,
    /// Whether it is no job of its own: what one of a phase's calls takes more than the others, the last one.
    pub(super) once: bool,
    /// So long each of its jobs may be held up before anybody knows of it.
    pub(super) held: Span,
    /// What one job takes, where several threads share them, so that one that came later may go first.
    pub(super) shared: Option<Service>,
    /// Whether its time counts from when it is there, not from when it should have been.
    pub(super) is_seen_at_release: bool,
}

impl Source {
    pub(super) fn new(name: &str, activity: Option<ActivityId>, rank: u16, work: Work) -> Self {
        Self {
            name: name.to_owned(),
            activity,
            rank,
            least: None,
            slots: None,
            beside: None,
            work,
            sleeps: false,
            waits: false,
            mode: None,
            once: false,
            held: Span::ZERO,
            shared: None,
            is_seen_at_release: false,
        }
    }

    /// The same, whose jobs may come this much later besides.
    fn late_by(mut self, late: Span) -> Self {
        self.waits |= !late.is_zero();
        if let Work::Jobs { task, .. } = &mut self.work {
            let jitter = task.jitter().checked_add(late);
            *task = task.with_jitter(jitter.unwrap_or(Span::MAX));
        }
        self
    }

    /// Whether both are the same jobs: of an activity, in a mode.
    pub(super) fn is(&self, other: &Self) -> bool {
        (self.activity, self.mode) == (other.activity, other.mode)
    }

    /// What it does, where that ends.
    pub(super) const fn task(&self) -> Option<&Task> {
        match &self.work {
            Work::Jobs { task, .. } => Some(task),
            Work::Endless => None,
        }
    }
}

/// Who takes time on one processor of a variant.
pub(super) struct Stage<'a> {
    pub(super) machine: Machine,
    /// The twin, if that is one.
    twin: Option<TwinProfile>,
    pub(super) variant: &'a ResolvedVariant,
    pub(super) ready: &'a Ready,
    pub(super) processor: u16,
    /// The modems whose drivers are here.
    pub(super) modems: Vec<Calling<'a>>,
    /// The other devices whose drivers are.
    pub(super) streams: Vec<Streaming<'a>>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(
        (machine, twin): (Machine, Option<TwinProfile>),
        (variant, start): (&'a ResolvedVariant, Start),
        ready: &'a Ready,
        processor: u16,
    ) -> Self {
        let devices = ready.probes.devices().zip(&variant.devices);
        let here = devices.filter(|(_, device)| device.processor.0 == processor);
        let (mut modems, mut streams) = (Vec::new(), Vec::new());
        for (probe, device) in here {
            match probe.installed.report.modem() {
                Some(_) => modems.push(Calling::of(probe, device, (start, twin))),
                None => streams.push(Streaming::of(probe, device, twin)),
            }
        }
        Self {
            machine,
            twin,
            variant,
            ready,
            processor,
            modems,
            streams,
        }
    }

    pub(super) const fn is_twin(&self) -> bool {
        self.twin.is_some()
    }

    /// What the only modem here reserves.
    fn request(&self) -> Option<ReservationRequest> {
        match self.modems.first()?.placing {
            Placing::Reserved(request, _) => Some(request),
            Placing::Interrupt | Placing::Deferred | Placing::Thread(_) => None,
        }
    }

    /// Those of the only modem here; none where there is none.
    pub(super) fn modes(&self) -> &[Mode] {
        let first = self.modems.first();
        first.map_or(&[], |modem| &modem.modes)
    }

    /// The mode of the calls that a source stands for, if these are a modem's.
    pub(super) fn mode_of(&self, source: &Source) -> Option<&Mode> {
        let mut modems = self.modems.iter();
        let own = modems.find(|modem| Some(modem.installed.driver) == source.activity)?;
        let mut modes = own.modes.iter();
        modes.find(|mode| Some(mode.name) == source.mode)
    }

    /// Whether the only modem here goes through several phases meanwhile.
    pub(super) fn has_several_phases(&self, during: During) -> bool {
        during == During::Call && are_several(self.modes())
    }

    /// Whether the only modem here holds its reservation in a mode.
    pub(super) fn is_reserved(&self, mode: Option<&Mode>) -> bool {
        let on_hook = mode.is_some_and(|mode| mode.name == Phase::OnHook.name());
        let request = self.request();
        request.is_some_and(|request| request.begins_at_start || !on_hook)
    }

    /// In whose thread a task runs: its own, or its executor's.
    pub(super) fn thread_of(&self, task: ActivityId) -> ActivityId {
        let mut periodic = self.ready.probes.periodic();
        let found = periodic.find(|probe| probe.activity == task);
        found.map_or(task, |probe| probe.thread)
    }

    fn activity(&self, id: ActivityId) -> &Activity {
        &self.ready.admission().program.activities[id.index()]
    }

    fn source(&self, activity: ActivityId, rank: u16, work: Work) -> Source {
        Source::new(&self.activity(activity).name, Some(activity), rank, work)
    }

    /// Everything on this processor during that of a call, modems with their reservations or without.
    pub(super) fn sources(&self, during: During, reserved: bool, wakes: Wakes) -> Vec<Source> {
        let own = self.machine.own.iter().map(|(name, task)| {
            let (task, net) = (*task, task.cost());
            Source::new(name, None, CLOCK, Work::Jobs { task, net })
        });
        let mut sources = Vec::from_iter(own);
        for modem in &self.modems {
            self.modem(modem, during, reserved, &mut sources);
        }
        for stream in &self.streams {
            self.stream(stream, &mut sources);
        }
        let tasks = self.variant.tasks.iter();
        let here = tasks.filter(|task| task.processor.0 == self.processor);
        sources.extend(here.filter_map(|task| self.task(task, wakes)));
        packets::of_network(self, &mut sources);
        sources
    }

    fn modem(
        &self,
        modem: &Calling<'_>,
        during: During,
        reserved: bool,
        sources: &mut Vec<Source>,
    ) {
        let (installed, placing) = (modem.installed, modem.placing);
        let modes = modem.modes.iter().filter(|mode| during.has(mode)).copied();
        let modes = Vec::from_iter(modes);
        for mode in &modes {
            if !mode.once {
                sources.extend(self.handlers(installed, mode.period));
            }
            let (rank, slots, beside) = self.driver(installed, placing, reserved);
            // The interrupt behind the call that comes once is one of its phase.
            let period = if mode.once { ONCE } else { mode.period };
            let cost = (self.call_cost(placing, mode, &modes), mode.cost);
            let call = self.jobs(installed.driver, rank, cost, period);
            sources.extend(call.map(|call| Source {
                mode: Some(mode.name),
                once: mode.once,
                slots,
                beside,
                ..call
            }));
        }
        // A card that is programmed anew was still awaited at the time that was set before. Within a phase that is one of its own interrupts.
        let empty = (self.machine.handler(Service::ZERO), Service::ZERO);
        let rank = self.rank(installed.interrupt);
        let empty = self.jobs(installed.interrupt, rank, empty, ONCE);
        sources.extend(empty.map(|empty| Source {
            activity: None,
            once: !are_several(&modes),
            ..empty
        }));
    }

    /// A device that has the same to do all the time, and its reservation from the start.
    fn stream(&self, stream: &Streaming<'_>, sources: &mut Vec<Source>) {
        let Streaming {
            installed, placing, ..
        } = *stream;
        sources.extend(self.handlers(installed, stream.period));
        let (rank, slots, beside) = self.driver(installed, placing, true);
        let cost = (self.call(placing, stream.work), stream.work);
        let call = self.jobs(installed.driver, rank, cost, stream.period);
        sources.extend(call.map(|call| Source {
            slots,
            beside,
            ..call
        }));
    }

    /// A card's handler, and the deferred call behind it, unless they do the driver's work.
    fn handlers(&self, device: &Installed, period: Span) -> impl Iterator<Item = Source> {
        let (machine, costs) = (&self.machine, Overheads::STUDY);
        let handler = (device.interrupt != device.driver).then(|| {
            let net = self.declared(device.interrupt, costs.interrupt);
            let rank = self.rank(device.interrupt);
            self.jobs(device.interrupt, rank, (machine.handler(net), net), period)
        });
        let deferred = device.deferred.map(|deferred| {
            let net = self.declared(deferred, costs.deferred);
            self.jobs(deferred, DEFERRED, (machine.deferred(net), net), period)
        });
        handler.into_iter().chain(deferred).flatten()
    }

    /// At which rank a device's driver runs, whose slots are sure for it, and its rank besides.
    fn driver(
        &self,
        device: &Installed,
        placing: Placing,
        reserved: bool,
    ) -> (u16, Option<ActivityId>, Option<u16>) {
        match placing {
            Placing::Reserved(request, before) if reserved => {
                let rank = holder_rank(&self.machine, request, before);
                let beside = rank_beside(request, before);
                (rank, Some(device.driver), beside)
            }
            _ => (self.rank(device.driver), None, None),
        }
    }

    pub(super) fn rank(&self, activity: ActivityId) -> u16 {
        match self.activity(activity).placement {
            // On Linux all handlers are threads of one priority.
            Placement::Interrupt(_) if self.twin.is_none() => INTERRUPTS,
            Placement::Interrupt(level) => INTERRUPTS + u16::from(level.0),
            Placement::Thread(priority) => thread_rank(priority),
            _ => DEFERRED,
        }
    }

    fn jobs(
        &self,
        activity: ActivityId,
        rank: u16,
        (cost, net): (Service, Service),
        period: Span,
    ) -> Option<Source> {
        let task = Task::new(cost, period).ok()?;
        Some(self.source(activity, rank, Work::Jobs { task, net }))
    }

    /// The work of a handler: on Linux what is declared of it.
    fn declared(&self, activity: ActivityId, in_twin: Service) -> Service {
        let work = self.ready.admission().program.work.iter();
        let known = work.filter(|(known, _)| self.twin.is_none() && *known == activity);
        let known = known.map(|(_, work)| work.service).next_back();
        known.unwrap_or(in_twin)
    }

    /// What a call takes, or, where it comes once, by how much more than the others of its phase.
    fn call_cost(&self, placing: Placing, mode: &Mode, modes: &[Mode]) -> Service {
        if !mode.once {
            return self.call(placing, mode.cost);
        }
        let mut others = modes.iter().filter(|other| other.phase == mode.phase);
        let usual = others.find(|other| !other.once);
        mode.cost
            .saturating_sub(usual.map_or(Service::ZERO, |usual| usual.cost))
    }

    /// A call's work with what the machine adds to it.
    fn call(&self, placing: Placing, work: Service) -> Service {
        match placing {
            Placing::Interrupt => self.machine.handler(work),
            Placing::Deferred => self.machine.deferred(work),
            Placing::Thread(_) | Placing::Reserved(..) => self.machine.thread(work),
        }
    }

    fn task(&self, task: &ResolvedTask, wakes: Wakes) -> Option<Source> {
        let activities = &self.ready.admission().program.activities;
        let at = activities.iter().position(|one| one.name == task.name);
        let id = at.and_then(|at| Some(ActivityId(u16::try_from(at).ok()?)));
        match &task.kind {
            TaskKind::Spinner { priority, .. } => {
                let rank = thread_rank(*priority);
                Some(Source::new(&task.name, None, rank, Work::Endless))
            }
            TaskKind::Periodic {
                timing,
                service,
                rank,
                ..
            } => {
                let late = self.postponed_by(task);
                let found = self.periodic(id?, (timing.period, *service), rank, wakes)?;
                Some(found.late_by(late))
            }
            TaskKind::Rogue {
                burst, every, rank, ..
            } => {
                let job = Task::new(self.machine.thread(*burst), *every).ok()?;
                let (task, net) = (job.with_jitter(wakes.late), *burst);
                let rank = match rank {
                    Rank::Priority(priority) => thread_rank(*priority),
                    Rank::Foreign { fifo } => foreign_rank(&self.machine, *fifo),
                };
                Some(self.source(id?, rank, Work::Jobs { task, net }))
            }
            TaskKind::Client(client) if packets::is_known(self, client) => {
                packets::of_client(self, task, client)
            }
            TaskKind::Flow(_) if packets::bounded(self).is_some() => None,
            // Its interrupts.
            TaskKind::Flow(_) => Some(Source::new(&task.name, None, CLOCK, Work::Endless)),
            TaskKind::Command { .. } | TaskKind::Client(_) => {
                let rank = match task.placing? {
                    Placing::Thread(_) => thread_rank(network::highest(task)),
                    Placing::Reserved(request, before) => {
                        holder_rank(&self.machine, request, before)
                    }
                    Placing::Interrupt | Placing::Deferred => CLOCK,
                };
                Some(Source::new(&task.name, None, rank, Work::Endless))
            }
        }
    }

    /// By how much jobs of a task may come together whose releases are a period apart: where a budget has them wait, or they are released by the ends of others. What ends in a window of any length began no sooner than
    /// one period, and one more for each that is made up for, before it.
    fn postponed_by(&self, task: &ResolvedTask) -> Span {
        let tasks = &self.variant.tasks;
        let named = |name: &str| tasks.iter().find(|task| task.name == name);
        let before = |task: &&ResolvedTask| task.after().and_then(named);
        // No chain is longer than there are tasks.
        let chain = core::iter::successors(Some(task), before).take(tasks.len());
        let waits = task.links().is_some_and(|links| links.group.is_some());
        let ends = chain.skip(usize::from(!waits));
        let late = ends.map(|task| match &task.kind {
            TaskKind::Periodic { timing, .. } => match timing.on_overrun {
                OnOverrun::CatchUp { at_most } => timing.period * (u64::from(at_most) + 1),
                _ => timing.period,
            },
            _ => Span::ZERO,
        });
        late.fold(Span::ZERO, |sum, late| {
            sum.checked_add(late).unwrap_or(Span::MAX)
        })
    }

    /// A task's jobs: of a thread of its own, or by turns in an executor's.
    fn periodic(
        &self,
        id: ActivityId,
        (period, net): (Span, Service),
        rank: &PeriodicRank,
        wakes: Wakes,
    ) -> Option<Source> {
        let cost = self.machine.thread(net).max(Service::from_nanos(1));
        let (rank, slots) = match rank {
            PeriodicRank::On(executor) => {
                // Turns go on from job to job, in any order: as among threads of one priority.
                let task = Task::new(cost, period).ok()?.with_jitter(wakes.late);
                let (rank, slots, beside) = match executor.request {
                    Some(request) => {
                        let rank = holder_rank(&self.machine, request, executor.priority);
                        let beside = rank_beside(request, executor.priority);
                        (rank, Some(self.thread_of(id)), beside)
                    }
                    None => (thread_rank(executor.priority), None, None),
                };
                let source = self.source(id, rank, Work::Jobs { task, net });
                return Some(Source {
                    slots,
                    beside,
                    ..source
                });
            }
            PeriodicRank::Priority(priority) => (thread_rank(*priority), None),
            PeriodicRank::Reserved(_) => (slot_rank(&self.machine), Some(id)),
        };
        let task = self.sleeper(cost, period, slots.is_some(), wakes)?;
        Some(Source {
            sleeps: true,
            slots,
            ..self.source(id, rank, Work::Jobs { task, net })
        })
    }

    /// The jobs of a thread that waits for its next release when it is done with one: they lie on a grid of its period, and those that it
    /// misses it leaves out. One that waits for slots may run its jobs closer together, but it does not wake twice in a tick.
    fn sleeper(
        &self,
        cost: Service,
        period: Span,
        waits_for_slots: bool,
        wakes: Wakes,
    ) -> Option<Task> {
        let tick = self.machine.shortest_tick().unwrap_or(Span::ZERO);
        if period > tick && (tick.is_zero() || wakes.by_period && !waits_for_slots) {
            return Some(Task::new(cost, period).ok()?.with_jitter(wakes.late));
        }
        Task::new(cost, if tick.is_zero() { period } else { tick }).ok()
    }
}

/// Has a holder of slots run at its rank outside them; false if it has none.
pub(super) fn beside(sources: &mut [Source], subject: &Source) -> bool {
    let own = sources.iter().find(|source| subject.is(source));
    let own = own.and_then(|own| own.slots.zip(own.beside));
    let Some((holder, rank)) = own else {
        return false;
    };
    for source in sources
        .iter_mut()
        .filter(|source| source.slots == Some(holder))
    {
        (source.rank, source.slots) = (rank, None);
    }
    true
}
