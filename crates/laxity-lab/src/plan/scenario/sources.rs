//! Everything that takes a processor's time in a variant, the most urgent first in the twin's order.

use laxity_devices::card::Overheads;
use laxity_devices::modem::{Installed, Phase};
use laxity_model::analysis::Task;
use laxity_model::{
    Activity, ActivityId, Outside, Placement, Priority, ReservationRequest, Service, Span,
};

use super::Ready;
use super::machine::Machine;
use super::modes::Mode;
use crate::scenario::{PeriodicRank, Placing, Rank, ResolvedTask, ResolvedVariant, TaskKind};

/// Ranks: threads by priority at even places, what runs in slots between them, then deferred calls, interrupts, the clock.
const DEFERRED: u16 = 70;
const INTERRUPTS: u16 = 80;
const CLOCK: u16 = 200;

/// The period of what comes once: longer than any busy window that is searched.
const ONCE: Span = Span::from_secs(100_000);

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
    pub(super) rank: u16,
    pub(super) work: Work,
    /// Whether it is a thread that sleeps until instants, which it sees as late as the clock's ticks are.
    pub(super) sleeps: bool,
    /// The driver's mode.
    pub(super) mode: Option<&'static str>,
    /// Whether it is no job of its own: what one of a phase's calls takes more than the others, the last one.
    pub(super) once: bool,
}

impl Source {
    fn new(name: &str, activity: Option<ActivityId>, rank: u16, work: Work) -> Self {
        Self {
            name: name.to_owned(),
            activity,
            rank,
            work,
            sleeps: false,
            mode: None,
            once: false,
        }
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

pub(super) const fn thread_rank(priority: Priority) -> u16 {
    2 * priority.level() as u16
}

pub(super) fn slot_rank(machine: Machine) -> u16 {
    let above = machine.0.threads_above;
    above.map_or(DEFERRED - 1, |priority| {
        thread_rank(priority).saturating_sub(1)
    })
}

pub(super) const fn is_thread(rank: u16) -> bool {
    rank < DEFERRED
}

pub(super) const fn is_handler(rank: u16) -> bool {
    rank >= INTERRUPTS && rank < CLOCK
}

/// Who takes time on one processor of a variant.
pub(super) struct Stage<'a> {
    pub(super) machine: Machine,
    pub(super) variant: &'a ResolvedVariant,
    pub(super) ready: &'a Ready,
    pub(super) processor: u16,
    /// The modems whose drivers are here.
    pub(super) modems: Vec<(&'a Installed, Placing)>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(
        machine: Machine,
        variant: &'a ResolvedVariant,
        ready: &'a Ready,
        processor: u16,
    ) -> Self {
        let modems = ready.probes.modems().zip(&variant.devices);
        let modems = modems.filter(|(_, device)| device.processor.0 == processor);
        Self {
            machine,
            variant,
            ready,
            processor,
            modems: modems
                .map(|(modem, device)| (&modem.installed, device.placing))
                .collect(),
        }
    }

    /// What the only modem here reserves.
    fn request(&self) -> Option<ReservationRequest> {
        match self.modems.first()?.1 {
            Placing::Reserved(request, _) => Some(request),
            Placing::Interrupt | Placing::Deferred | Placing::Thread(_) => None,
        }
    }

    /// Whether the only modem here holds its reservation in a mode.
    pub(super) fn is_reserved(&self, mode: Option<&Mode>) -> bool {
        let on_hook = mode.is_some_and(|mode| mode.name == Phase::OnHook.name());
        let request = self.request();
        request.is_some_and(|request| request.begins_at_start || !on_hook)
    }

    /// Where its driver competes outside its slots, if it does.
    pub(super) fn outside(&self) -> Option<Priority> {
        match self.request()?.outside {
            Outside::AsPlaced => self.modems.first()?.1.priority(),
            Outside::Timesharing(priority) => Some(priority),
            Outside::Confined => None,
        }
    }

    /// Whether tasks here take turns in a reservation: whoever shares the processor with them, that delays in ways that are not analysed.
    pub(super) fn has_reserved_turns(&self) -> bool {
        self.variant.tasks.iter().any(|task| {
            let TaskKind::Periodic { rank, .. } = &task.kind else {
                return false;
            };
            let reserves = matches!(rank, PeriodicRank::On(one) if one.request.is_some());
            reserves && task.processor.0 == self.processor
        })
    }

    fn activity(&self, id: ActivityId) -> &Activity {
        &self.ready.admission().program.activities[id.index()]
    }

    fn source(&self, activity: ActivityId, rank: u16, work: Work) -> Source {
        Source::new(&self.activity(activity).name, Some(activity), rank, work)
    }

    /// Everything on this processor while the modem is in one of these modes, with its reservation or without; `late` is by how much the
    /// clock may wake a thread late.
    pub(super) fn sources(&self, modes: &[Mode], reserved: bool, late: Span) -> Vec<Source> {
        let clock = self.machine.clock().map(|task| {
            let net = task.cost();
            Source::new("the clock", None, CLOCK, Work::Jobs { task, net })
        });
        let mut sources = Vec::from_iter(clock);
        for (modem, placing) in &self.modems {
            self.modem(modem, *placing, modes, reserved, &mut sources);
        }
        let tasks = self.variant.tasks.iter();
        let here = tasks.filter(|task| task.processor.0 == self.processor);
        sources.extend(here.filter_map(|task| self.task(task, late)));
        sources
    }

    fn modem(
        &self,
        modem: &Installed,
        placing: Placing,
        modes: &[Mode],
        reserved: bool,
        sources: &mut Vec<Source>,
    ) {
        let rank = |activity: ActivityId| match self.activity(activity).placement {
            Placement::Interrupt(level) => INTERRUPTS + u16::from(level.0),
            Placement::Thread(priority) => thread_rank(priority),
            _ => DEFERRED,
        };
        let jobs = |activity: ActivityId, rank: u16, (cost, net): (Service, Service), period| {
            let task = Task::new(cost, period).ok()?;
            Some(self.source(activity, rank, Work::Jobs { task, net }))
        };
        let (machine, costs) = (self.machine, Overheads::STUDY);
        for mode in modes {
            if modem.interrupt != modem.driver && !mode.once {
                let cost = (machine.handler(costs.interrupt), costs.interrupt);
                let rank = rank(modem.interrupt);
                sources.extend(jobs(modem.interrupt, rank, cost, mode.period));
            }
            if let Some(deferred) = modem.deferred.filter(|_| !mode.once) {
                let cost = (machine.deferred(costs.deferred), costs.deferred);
                sources.extend(jobs(deferred, DEFERRED, cost, mode.period));
            }
            let rank = if reserved {
                slot_rank(machine)
            } else {
                rank(modem.driver)
            };
            // The interrupt behind the call that comes once is one of its phase.
            let period = if mode.once { ONCE } else { mode.period };
            let cost = (self.call_cost(placing, mode, modes), mode.cost);
            let call = jobs(modem.driver, rank, cost, period);
            sources.extend(call.map(|call| Source {
                mode: Some(mode.name),
                once: mode.once,
                ..call
            }));
        }
        // A card that is programmed anew was still awaited at the time that was set before. Within a phase that is one of its own interrupts.
        let several = modes.windows(2).any(|pair| pair[0].phase != pair[1].phase);
        let empty = (machine.handler(Service::ZERO), Service::ZERO);
        let empty = jobs(modem.interrupt, rank(modem.interrupt), empty, ONCE);
        sources.extend(empty.map(|empty| Source {
            activity: None,
            once: !several,
            ..empty
        }));
    }

    /// What a call takes, or, where it comes once, by how much more than the others of its phase.
    fn call_cost(&self, placing: Placing, mode: &Mode, modes: &[Mode]) -> Service {
        let machine = self.machine;
        match placing {
            _ if mode.once => {
                let mut others = modes.iter().filter(|other| other.phase == mode.phase);
                let usual = others.find(|other| !other.once);
                mode.cost
                    .saturating_sub(usual.map_or(Service::ZERO, |usual| usual.cost))
            }
            Placing::Interrupt => machine.handler(mode.cost),
            Placing::Deferred => machine.deferred(mode.cost),
            Placing::Thread(_) | Placing::Reserved(..) => machine.thread(mode.cost),
        }
    }

    fn task(&self, task: &ResolvedTask, late: Span) -> Option<Source> {
        let find = || {
            let demand = &self.ready.admission().program.activities;
            let at = demand.iter().position(|one| one.name == task.name)?;
            Some(ActivityId(u16::try_from(at).ok()?))
        };
        match &task.kind {
            TaskKind::Spinner { priority, .. } => {
                let rank = thread_rank(*priority);
                Some(Source::new(&task.name, None, rank, Work::Endless))
            }
            TaskKind::Periodic {
                period,
                service,
                rank,
            } => {
                let cost = self.machine.thread(*service).max(Service::from_nanos(1));
                let net = *service;
                let rank = match rank {
                    PeriodicRank::On(executor) => {
                        // Turns go on from job to job, in any order: as among threads of one priority.
                        let task = Task::new(cost, *period).ok()?.with_jitter(late);
                        let rank = thread_rank(executor.priority);
                        return Some(self.source(find()?, rank, Work::Jobs { task, net }));
                    }
                    PeriodicRank::Priority(priority) => thread_rank(*priority),
                    PeriodicRank::Reserved(_) => slot_rank(self.machine),
                };
                // A thread that waits for its next release when it is done with one, and so wakes no more than once a tick.
                let least = self.machine.shortest_tick().unwrap_or(*period);
                let task = Task::new(cost, least).ok()?;
                Some(Source {
                    sleeps: true,
                    ..self.source(find()?, rank, Work::Jobs { task, net })
                })
            }
            TaskKind::Rogue {
                burst,
                every,
                rank: Rank::Priority(priority),
                ..
            } => {
                let job = Task::new(self.machine.thread(*burst), *every).ok()?;
                let (task, net) = (job.with_jitter(late), *burst);
                let work = Work::Jobs { task, net };
                Some(self.source(find()?, thread_rank(*priority), work))
            }
            TaskKind::Rogue { .. } | TaskKind::Command { .. } => None,
        }
    }
}
