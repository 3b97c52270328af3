//! A set of upcalls as a program, served in one way or another, and what came of each.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use laxity::observe::{Observation, observe};
use laxity::{Periodic, PeriodicProbe};
use laxity_lab::bench::Runner;
use laxity_lab::workload::Draws;
use laxity_model::analysis::Task;
use laxity_model::base::histogram::Histogram;
use laxity_model::executor::edf::Edf;
use laxity_model::executor::pacing::OnOverrun;
use laxity_model::executor::rmdp::Rmdp;
use laxity_model::program::upcall::{First, Timing};
use laxity_model::verify::contract::Quantity;
use laxity_model::{
    Enforcer, Event, EventKind, ExecutorId, HostError, Outside, Placement, Priority, ProcessorId,
    Program, Reservation, ReservationRequest, RunRecord, Service, Span,
};
use serde::{Deserialize, Serialize};

use super::burner::{self, Burner};
use super::jobs::Task as Served;
use super::{intervals, processes};
use crate::peers::{PRIORITY, Used};

pub(super) const CPU: ProcessorId = ProcessorId(0);
/// No upcall is released before all have begun, on whichever host.
pub(super) const LEAD: Span = Span::from_millis(100);
const MILLION: u64 = 1_000_000;

/// One upcall of a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// From release to release; it is due when the next is released.
    pub period: Span,
    /// Its first release, after that of the set.
    pub phase: Span,
    /// Whose it is: on this machine, where there are several, each is one.
    pub process: u64,
    /// B_p, in units.
    pub batch: NonZeroU32,
    /// Its utilization, as a part of the sum of all.
    pub weight: u64,
}

/// When upcalls are released first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phases {
    /// All at one instant.
    Together,
    /// At instants that are drawn by the millisecond, as the clock of the paper's host ticks.
    Drawn,
    /// At instants that are drawn by the microsecond.
    Finely,
    /// As far apart as can be: each later than the one before by its period, divided by how many there are.
    Even,
}

impl Phases {
    /// In a table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Together => "together",
            Self::Drawn => "drawn",
            Self::Finely => "drawn by the microsecond",
            Self::Even => "spread evenly",
        }
    }

    /// A set whose first releases were drawn by the millisecond, with these.
    pub fn of(self, mut members: Vec<Member>, draws: &mut Draws) -> Vec<Member> {
        let all = members.len() as u64;
        for (number, member) in (0..).zip(&mut members) {
            let period = member.period.as_nanos();
            member.phase = match self {
                Self::Together => Span::ZERO,
                Self::Drawn => member.phase,
                Self::Finely => Span::from_micros(draws.between(0, period / 1_000 - 1)),
                Self::Even => Span::from_nanos(period * number / all),
            };
        }
        members
    }
}

/// Who is next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Serving {
    /// Linux or its like: a thread each, `SCHED_FIFO`, with rate-monotonic priorities. Whoever is more urgent preempts at once.
    Threads,
    /// The kernel's `SCHED_DEADLINE`: a thread each, which has what it needs reserved.
    Kernel,
    /// An executor, by rate.
    ByRate,
    /// An executor, by deadline.
    ByDeadline,
    /// An async runtime: a task for each, with an interval, in a FIFO thread of an executor's priority. There is no such thing in the twin.
    Intervals,
}

/// b_p, as a part of the batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Look {
    /// After each unit: as soon as can be.
    AtOnce,
    /// After so many parts of the batch have been done, each of one length.
    Parts(NonZeroU32),
}

impl Look {
    /// When all is done.
    pub const AT_THE_END: Self = Self::Parts(NonZeroU32::MIN);

    fn quantum(self, batch: NonZeroU32) -> NonZeroU32 {
        match self {
            Self::AtOnce => NonZeroU32::MIN,
            Self::Parts(parts) => {
                NonZeroU32::new(batch.get().div_ceil(parts.get())).unwrap_or(NonZeroU32::MIN)
            }
        }
    }
}

/// What is run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The upcalls.
    pub members: Vec<Member>,
    /// What they take together, in parts per million of the processor.
    pub utilization_ppm: u64,
    /// Who is next, and when who is at work looks.
    pub way: (Serving, Look),
    /// What is charged to an upcall on an executor that begins, or goes on, after one of another process: in the twin, which has one executor for all of them.
    pub switch: Service,
    /// How long.
    pub length: Span,
    /// Whether a witness watches, so that what the machine does meanwhile is known; its own wake-ups count among the switches then.
    pub is_watched: bool,
}

/// What came of the upcalls of one period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    /// The period.
    pub period: Span,
    /// The longest response; `None` where no job was seen to end.
    pub longest: Option<Span>,
    /// How many missed their deadline, or came to nothing.
    pub missed: u64,
}

impl Rate {
    /// The least time that was left to a deadline, in nanoseconds; less than nothing where one was missed.
    pub fn left_ns(&self) -> Option<i64> {
        let [period, longest] = [self.period, self.longest?].map(laxity_lab::report::nanos);
        Some(period - longest)
    }
}

/// What came of one upcall.
#[derive(Clone, Debug)]
pub(super) struct Each {
    /// With what came of others of its period, the rate's.
    pub(super) rate: Rate,
    /// From each release to the begin of its job.
    pub(super) lateness: Histogram,
    /// How many ended.
    pub(super) jobs: u64,
}

/// What came of a set.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Outcome {
    /// By period, the shortest first.
    pub rates: Vec<Rate>,
    /// From the releases of each upcall to the begins of its jobs, in nanoseconds.
    pub lateness: Vec<Histogram>,
    /// How many ended.
    pub jobs: u64,
    /// How often the processor went from one process, or one thread, to another.
    pub switches: u64,
    /// How often one that was at work had to wait for another; nothing where no host records it.
    pub preempted: u64,
    /// How much processor time they had besides their work, in parts per million of that; `None` in the twin, and of no work.
    pub besides_ppm: Option<u64>,
    /// What a burn was measured to take beyond what it is asked for, at most, and what was therefore taken off each; `None` in the twin.
    pub overshoot: Option<Service>,
}

impl Outcome {
    /// How many missed their deadline.
    pub fn missed(&self) -> u64 {
        self.rates.iter().map(|rate| rate.missed).sum()
    }

    /// Whether no deadline was missed; `None` if there was nothing to miss one.
    pub fn is_met(&self) -> Option<bool> {
        let missed = self.missed();
        (missed > 0 || self.jobs > 0).then_some(missed == 0)
    }

    /// How often it switched to serve its jobs; `None` if it served none.
    pub fn switched(&self) -> Option<u64> {
        (self.jobs > 0 && self.switches > 0).then_some(self.switches)
    }

    /// What 99 % of the jobs of all upcalls together began no later than, after their releases; `None` if none was seen to begin.
    pub fn late(&self) -> Option<Span> {
        let mut all = Histogram::new();
        self.lateness.iter().for_each(|one| all.merge(one));
        late(&all)
    }
}

/// What 99 % of these are no more than.
pub(super) fn late(lateness: &Histogram) -> Option<Span> {
    lateness.percentile(990_000).map(Span::from_nanos)
}

/// Whose turn it was last, and how often that changed.
#[derive(Default)]
pub(super) struct Turns {
    last: AtomicU64,
    changed: AtomicU64,
}

impl Turns {
    /// Whether another process was at work before this one.
    fn is_other(&self, process: u64) -> bool {
        // They take turns in one thread.
        let is_other = self.last.swap(process + 1, Ordering::Relaxed) != process + 1;
        self.changed.fetch_add(is_other.into(), Ordering::Relaxed);
        is_other
    }
}

impl Setup {
    /// What a batch of this upcall takes.
    pub(super) fn cost(&self, member: &Member) -> Service {
        let all: u64 = self.members.iter().map(|member| member.weight).sum();
        let share = u128::from(self.utilization_ppm) * u128::from(member.weight);
        let nanos = u128::from(member.period.as_nanos()) * share / u128::from(all * MILLION);
        Service::from_nanos(nanos as u64)
    }

    fn timing(&self, member: &Member, program: &Program) -> Timing {
        let first = First::After(program.epoch.clone(), LEAD + member.phase);
        Timing {
            first,
            period: member.period,
            batch: member.batch,
            quantum: self.quantum(member),
            on_overrun: OnOverrun::SKIP,
            pauses: false,
        }
    }

    /// Where an upcall runs: a set that misses deadlines is to run, too, so an executor is told of a nanosecond each.
    pub(super) fn place(
        &self,
        member: &Member,
        executor: Option<ExecutorId>,
    ) -> (Placement, Option<ReservationRequest>) {
        if let Some(executor) = executor {
            let task = Task::new(Service::from_nanos(1), member.period).ok();
            return (Placement::On { executor, task }, None);
        }
        if self.way.0 == Serving::Kernel {
            let cost = Serving::reserved(self.cost(member));
            let reservation = Reservation::new(cost, member.period).ok();
            let request = reservation.map(|reservation| ReservationRequest {
                reservation,
                enforcer: Enforcer::Deadline,
                outside: Outside::Confined,
                begins_at_start: true,
            });
            return (Placement::Thread(Priority::HIGHEST), request);
        }
        let level = Priority::new(30_u8.saturating_sub(self.rank(member)));
        (Placement::Thread(level.unwrap_or(Priority::NORMAL)), None)
    }

    /// So many periods are shorter.
    fn rank(&self, member: &Member) -> u8 {
        let shorter = self.members.iter().map(|other| other.period);
        let shorter = shorter.filter(|other| *other < member.period);
        let shorter: BTreeSet<Span> = shorter.collect();
        u8::try_from(shorter.len()).unwrap_or(u8::MAX)
    }

    /// Those that have upcalls.
    pub(super) fn processes(&self) -> BTreeSet<u64> {
        self.members.iter().map(|member| member.process).collect()
    }

    /// All of it, as whoever serves it without a host is told.
    pub(super) fn tasks(&self) -> Vec<Served> {
        let all = self.members.iter().enumerate();
        let all = all.map(|(number, member)| Served {
            member: number,
            period_ns: member.period.as_nanos(),
            phase_ns: member.phase.as_nanos(),
            cost_ns: self.cost(member).as_nanos(),
            batch: member.batch,
            quantum: self.quantum(member),
            priority: PRIORITY.saturating_sub(self.rank(member)),
        });
        all.collect()
    }

    fn quantum(&self, member: &Member) -> NonZeroU32 {
        match self.way.0 {
            Serving::Threads | Serving::Kernel | Serving::Intervals => member.batch,
            Serving::ByRate | Serving::ByDeadline => self.way.1.quantum(member.batch),
        }
    }

    pub(super) fn install(
        &self,
        (number, member): (usize, &Member),
        program: &mut Program,
        executor: Option<ExecutorId>,
        (turns, mut burner): (&Arc<Turns>, Option<Burner>),
    ) -> PeriodicProbe {
        let timing = self.timing(member, program);
        let (placement, reservation) = self.place(member, executor);
        let (service, switch) = (self.cost(member), self.switch);
        let task = Periodic {
            name: format!("upcall {}", number + 1),
            processor: CPU,
            placement,
            reservation,
            timing: timing.clone(),
            deadline: member.period,
            service,
        };
        let turns = executor.map(|_| (Arc::clone(turns), member.process));
        task.install(program, move |_, call| {
            let own = timing.share(service, call.done(), call.now());
            let is_other = turns
                .as_ref()
                .is_some_and(|(turns, own)| turns.is_other(*own));
            let service = if is_other { own + switch } else { own };
            burner::step(&mut burner, service)
        })
    }

    /// Runs it.
    ///
    /// # Errors
    ///
    /// The host's, and [`HostError::Failed`] if its log was too short for the run.
    pub fn run(&self, host: &mut Runner<'_>) -> Result<Outcome, HostError> {
        if host.is_live() && self.processes().len() > 1 {
            return processes::run(self, host);
        }
        if self.way.0 == Serving::Intervals {
            return intervals::run(self, host);
        }
        let mut program = Program::new(1);
        let place = (CPU, Placement::Thread(Priority::HIGHEST));
        let executor = match self.way.0 {
            Serving::ByRate => Some(program.executor("upcalls", place, None, Rmdp::new())),
            Serving::ByDeadline => Some(program.executor("upcalls", place, None, Edf::new())),
            _ => None,
        };
        let turns = Arc::new(Turns::default());
        // A host burns a step at a time, and knows nothing of the batch.
        let burner = host.is_live().then(Burner::here);
        let members = self.members.iter().enumerate();
        let work = || (&turns, burner.clone());
        let probes = members.map(|one| self.install(one, &mut program, executor, work()));
        let probes: Vec<PeriodicProbe> = probes.collect();
        let record = self.recorded(program, host)?;
        let seen = observe(&record, &probes, &[]);
        let each = self.members.iter().zip(&seen);
        let each = each.map(|(member, seen)| Each::of(member, seen));
        let overshoot = burner.as_ref().map(Burner::overshoot);
        let mut outcome = self.outcome(each.collect(), record.usage.iter().into(), overshoot);
        let preempted = |event: &&Event| event.kind == EventKind::Preempt;
        outcome.preempted = record.events.iter().filter(preempted).count() as u64;
        let turns = turns.changed.load(Ordering::Relaxed);
        if turns > 0 && !host.is_live() && self.switch > Service::ZERO {
            outcome.switches = turns;
        }
        Ok(outcome)
    }

    /// What a host leaves of a program that serves it.
    pub(super) fn recorded(
        &self,
        program: Program,
        host: &mut Runner<'_>,
    ) -> Result<RunRecord, HostError> {
        let record = match self.is_watched {
            true => host.run(program, self.length)?,
            false => host.run_unwatched(program, self.length)?,
        };
        match record.events_lost {
            0 => Ok(record),
            lost => Err(HostError::Failed(format!(
                "{lost} events did not fit the log"
            ))),
        }
    }

    /// All that came of it, from what came of each upcall.
    pub(super) fn outcome(
        &self,
        each: Vec<Each>,
        used: Used,
        overshoot: Option<Service>,
    ) -> Outcome {
        let work = self.members.iter().zip(&each);
        let work: u64 = work
            .map(|(member, each)| self.cost(member).as_nanos() * each.jobs)
            .sum();
        let had = used.service().as_nanos();
        let besides = u128::from(had.saturating_sub(work)) * u128::from(MILLION);
        let besides = besides.checked_div(work.into()).map(|ppm| ppm as u64);
        Outcome {
            rates: merged(each.iter().map(|each| each.rate)),
            jobs: each.iter().map(|each| each.jobs).sum(),
            lateness: each.into_iter().map(|each| each.lateness).collect(),
            switches: used.switches,
            preempted: 0,
            besides_ppm: besides.filter(|_| overshoot.is_some()),
            overshoot,
        }
    }
}

/// Those of one period together, the shortest first.
fn merged(each: impl Iterator<Item = Rate>) -> Vec<Rate> {
    let mut rates: Vec<Rate> = Vec::new();
    for rate in each {
        match rates.iter_mut().find(|known| known.period == rate.period) {
            Some(known) => {
                known.longest = known.longest.max(rate.longest);
                known.missed += rate.missed;
            }
            None => rates.push(rate),
        }
    }
    rates.sort_by_key(|rate| rate.period);
    rates
}

fn done(seen: &Observation, quantity: Quantity) -> u64 {
    let all = seen.quantities.whole(quantity).raw();
    u64::try_from(all.sum()).unwrap_or(u64::MAX)
}

impl Each {
    pub(super) fn of(member: &Member, seen: &Observation) -> Self {
        let of = |quantity| seen.quantities.whole(quantity).undisturbed;
        let longest = of(Quantity::RESPONSE_TIME).max();
        let missed = of(Quantity::DEADLINE_MISSES).sum();
        Self {
            rate: Rate {
                period: member.period,
                longest: longest.map(Span::from_nanos),
                missed: u64::try_from(missed).unwrap_or(u64::MAX),
            },
            lateness: of(Quantity::WAKEUP_LATENCY),
            jobs: done(seen, Quantity::JOBS_DONE),
        }
    }
}

/// The same upcalls, all of one process.
pub fn in_one(members: &[Member]) -> Vec<Member> {
    let all = members.iter().map(|member| Member {
        process: 0,
        ..*member
    });
    all.collect()
}

/// So many processes with an upcall of each of these periods, all of one utilization, whose first releases are drawn by the millisecond.
pub fn processes(
    number: u64,
    periods: &[Span],
    batch: NonZeroU32,
    draws: &mut Draws,
) -> Vec<Member> {
    let all = (0..number).flat_map(|process| periods.iter().map(move |period| (process, *period)));
    let all = all.map(|(process, period)| Member {
        period,
        phase: Span::from_millis(draws.between(0, period.as_nanos() / 1_000_000 - 1)),
        process,
        batch,
        weight: 1,
    });
    all.collect()
}
