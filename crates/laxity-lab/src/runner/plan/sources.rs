//! Everything that takes a processor's time in a variant, the most urgent first in the twin's order.

use laxity_devices::modem::{Costs, Installed, Phase};
use laxity_model::analysis::Task;
use laxity_model::{ActivityId, Outside, Placement, Priority, Service, Span};

use super::Ready;
use super::machine::Machine;
use super::modes::Mode;
use crate::scenario::{Placing, Rank, ResolvedVariant, TaskKind};

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

/// Whether the driver holds its reservation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stance {
    /// It has none, or not yet.
    Before,
    /// It does.
    Reserved,
}

/// How the driver stands in the course of a call.
pub(super) fn stances(variant: &ResolvedVariant, mode: &Mode) -> Vec<Stance> {
    match variant.devices.first().map(|device| device.placing) {
        Some(Placing::Reserved { request, .. }) => {
            if request.begins_at_start {
                vec![Stance::Reserved]
            } else if mode.name == Phase::OnHook.name() {
                vec![Stance::Before]
            } else {
                vec![Stance::Reserved]
            }
        }
        _ => vec![Stance::Before],
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

/// Who takes time in one variant.
pub(super) struct Stage<'a> {
    pub(super) machine: Machine,
    pub(super) variant: &'a ResolvedVariant,
    pub(super) ready: &'a Ready,
    pub(super) processor: u16,
}

impl Stage<'_> {
    fn source(&self, activity: ActivityId, rank: u16, work: Work) -> Source {
        let name = &self.ready.admission().program.activities[activity.index()].name;
        Source {
            name: name.clone(),
            activity: Some(activity),
            rank,
            work,
            sleeps: false,
            mode: None,
            once: false,
        }
    }

    /// Everything on this processor while the modem is in one of these modes; `late` is by how much the clock may wake a thread late.
    pub(super) fn sources(&self, modes: &[Mode], stance: Stance, late: Span) -> Vec<Source> {
        let mut sources = Vec::new();
        if let Some(task) = self.machine.clock() {
            let net = task.cost();
            sources.push(Source {
                name: "the clock".into(),
                activity: None,
                rank: CLOCK,
                work: Work::Jobs { task, net },
                sleeps: false,
                mode: None,
                once: false,
            });
        }
        self.modem(modes, stance, &mut sources);
        self.tasks(late, &mut sources);
        sources
    }

    fn modem(&self, modes: &[Mode], stance: Stance, sources: &mut Vec<Source>) {
        let modems = self.ready.probes.modems().zip(&self.variant.devices);
        for (modem, device) in modems.filter(|(_, device)| device.processor.0 == self.processor) {
            self.one_modem(&modem.installed, device.placing, modes, stance, sources);
        }
    }

    fn one_modem(
        &self,
        modem: &Installed,
        placing: Placing,
        modes: &[Mode],
        stance: Stance,
        sources: &mut Vec<Source>,
    ) {
        let demand = &self.ready.admission().program.activities;
        let rank = |activity: ActivityId| match demand[activity.index()].placement {
            Placement::Interrupt(level) => INTERRUPTS + u16::from(level.0),
            Placement::Thread(priority) => thread_rank(priority),
            _ => DEFERRED,
        };
        let jobs = |cost: Service, net: Service, period: Span| {
            Task::new(cost, period)
                .ok()
                .map(|task| Work::Jobs { task, net })
        };
        let machine = self.machine;
        let costs = Costs::STUDY;
        for mode in modes {
            // The interrupt behind the call that comes once is one of its phase.
            let period = if mode.once { ONCE } else { mode.period };
            if modem.interrupt != modem.driver && !mode.once {
                let work = jobs(
                    machine.handler(costs.interrupt),
                    costs.interrupt,
                    mode.period,
                );
                let rank = rank(modem.interrupt);
                sources.extend(work.map(|work| self.source(modem.interrupt, rank, work)));
            }
            if let Some(deferred) = modem.deferred.filter(|_| !mode.once) {
                let work = jobs(
                    machine.deferred(costs.deferred),
                    costs.deferred,
                    mode.period,
                );
                sources.extend(work.map(|work| self.source(deferred, DEFERRED, work)));
            }
            let rank = match stance {
                Stance::Reserved => slot_rank(machine),
                Stance::Before => rank(modem.driver),
            };
            let cost = self.call_cost(placing, mode, modes);
            if let Some(work) = jobs(cost, mode.cost, period) {
                sources.push(Source {
                    mode: Some(mode.name),
                    once: mode.once,
                    ..self.source(modem.driver, rank, work)
                });
            }
        }
        // A card that is programmed anew was still awaited at the time that was set before. Within a phase that is one of its own interrupts.
        let several = modes.windows(2).any(|pair| pair[0].phase != pair[1].phase);
        if let Some(work) = jobs(machine.empty_handler(), Service::ZERO, ONCE) {
            sources.push(Source {
                activity: None,
                once: !several,
                ..self.source(modem.interrupt, rank(modem.interrupt), work)
            });
        }
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
            Placing::Thread(_) | Placing::Reserved { .. } => machine.thread(mode.cost),
        }
    }

    fn tasks(&self, late: Span, sources: &mut Vec<Source>) {
        let demand = &self.ready.admission().program.activities;
        let find = |name: &str| {
            let at = demand.iter().position(|activity| activity.name == name)?;
            Some(ActivityId(u16::try_from(at).ok()?))
        };
        for task in &self.variant.tasks {
            if task.processor.0 != self.processor {
                continue;
            }
            match &task.kind {
                TaskKind::Spinner { priority, .. } => sources.push(Source {
                    name: task.name.clone(),
                    activity: None,
                    rank: thread_rank(*priority),
                    work: Work::Endless,
                    sleeps: false,
                    mode: None,
                    once: false,
                }),
                TaskKind::Periodic {
                    period,
                    service,
                    priority,
                    reservation,
                } => {
                    let rank = if reservation.is_some() {
                        slot_rank(self.machine)
                    } else {
                        thread_rank(*priority)
                    };
                    let source = find(&task.name)
                        .and_then(|activity| self.periodic(activity, *period, *service, rank));
                    sources.extend(source);
                }
                TaskKind::Rogue {
                    burst, every, rank, ..
                } => {
                    let (Rank::Priority(priority), Some(activity)) = (rank, find(&task.name))
                    else {
                        continue;
                    };
                    if let Ok(job) = Task::new(self.machine.thread(*burst), *every) {
                        let work = Work::Jobs {
                            task: job.with_jitter(late),
                            net: *burst,
                        };
                        sources.push(self.source(activity, thread_rank(*priority), work));
                    }
                }
                TaskKind::Command { .. } => {}
            }
        }
    }

    /// A thread that waits for its next release when it is done with one, and so wakes no more than once a tick.
    fn periodic(
        &self,
        activity: ActivityId,
        period: Span,
        service: Service,
        rank: u16,
    ) -> Option<Source> {
        let least = self.machine.shortest_tick().unwrap_or(period);
        let cost = self.machine.thread(service).max(Service::from_nanos(1));
        let task = Task::new(cost, least).ok()?;
        let net = service;
        Some(Source {
            sleeps: true,
            ..self.source(activity, rank, Work::Jobs { task, net })
        })
    }

    /// Where the driver competes outside its slots, if it does.
    pub(super) fn outside(&self) -> Option<Priority> {
        match self.variant.devices.first()?.placing {
            Placing::Reserved { request, before } => match request.outside {
                Outside::AsPlaced => Some(before),
                Outside::Timesharing(priority) => Some(priority),
                Outside::Confined => None,
            },
            _ => None,
        }
    }
}
