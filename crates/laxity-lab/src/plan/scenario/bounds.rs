//! Response times in a variant: of everything that recurs, in the twin, with everything the machine takes for itself.
//!
//! For an activity: all jobs of everything that is not less urgent may go first (equals in any order); a less urgent one may just be causing
//! a cost that nothing interrupts; in slots, only the table's own supply counts. So a bound holds whatever the phases are, and beyond what one
//! run happens to show.

use laxity_model::analysis::supply::{Dedicated, SupplyBound, TableSupply};
use laxity_model::analysis::{Overflow, Task, fixed_priority};
use laxity_model::{Service, Span};

use super::machine::Machine;
use super::modes::{Mode, modes};
use super::sources::{Source, Stage, Work, is_handler, is_thread, slot_rank, thread_rank};
use super::{Ready, slots_of};
use crate::plan::{Bottleneck, Line, NoBound, bound};
use crate::runner::On;
use crate::scenario::{PeriodicRank, Resolved, ResolvedVariant, TaskKind};

/// A busy window is looked for in so many steps.
const MOST_STEPS: u32 = 10_000;

/// Threads of a priority up to this are lifted to it when they starve.
const LIFTED_TO: u16 = 15;

/// The lines of a variant, and its bottleneck.
pub(super) fn of(
    resolved: &Resolved,
    variant: &ResolvedVariant,
    ready: &Ready,
    on: On,
) -> Result<(Vec<Line>, Option<Bottleneck>), Overflow> {
    let machine = Machine(resolved.host.profile);
    let mut lines = Vec::new();
    let mut worst: Option<(i64, Bottleneck)> = None;
    for processor in 0..resolved.host.processors {
        let stage = Stage::new(machine, variant, ready, processor);
        let modes = match stage.modems.is_empty() {
            true => Vec::new(),
            false => modes(variant.start),
        };
        let analyst = Analyst { stage, modes };
        for (subject, mut line) in analyst.subjects() {
            let found = match on {
                On::Linux => Err(
                    "how long things take on this machine is not known before they are measured"
                        .into(),
                ),
                On::Twin { .. } => analyst.bound(&subject),
            };
            line.answer(NoBound::settle(found)?);
            if let Some(slack) = line.slack_ns
                && worst.as_ref().is_none_or(|(least, _)| slack < *least)
            {
                worst = Some((slack, analyst.bottleneck(&subject, &line)));
            }
            lines.push(line);
        }
    }
    Ok((lines, worst.map(|(_, bottleneck)| bottleneck)))
}

/// Whether the usual calls of a phase are complete when its last one comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Usual {
    Done,
    Open,
}

/// Looks at one processor.
pub(super) struct Analyst<'a> {
    pub(super) stage: Stage<'a>,
    /// Those of the modem here; none where there is none.
    pub(super) modes: Vec<Mode>,
}

impl Analyst<'_> {
    fn bound(&self, subject: &Source) -> Result<Span, NoBound> {
        if self.stage.modems.len() > 1 {
            return Err("the phases of several calls are not analysed together".into());
        }
        if self.stage.has_reserved_turns() {
            return Err("turns that are taken within a reservation are not analysed together with others; that the executor's own test admits them stands above".into());
        }
        if subject.task().is_none() {
            return Err("it never stops, so it is never done".into());
        }
        let mut longest = Span::ZERO;
        for mode in self.cases(subject) {
            longest = longest.max(self.response(subject, mode)?);
        }
        Ok(longest)
    }

    /// In which modes a subject is looked at.
    pub(super) fn cases(&self, subject: &Source) -> Vec<Option<&Mode>> {
        if self.modes.is_empty() {
            return vec![None];
        }
        let wanted = |mode: &&Mode| subject.mode.is_none_or(|name| name == mode.name);
        self.modes.iter().filter(wanted).map(Some).collect()
    }

    /// The longest response in a mode. The driver's calls know no other phase; for all others, of this phase alone if all is quiet before
    /// the next begins, else of all phases together.
    fn response(&self, subject: &Source, mode: Option<&Mode>) -> Result<Span, NoBound> {
        let reserved = self.stage.is_reserved(mode);
        let same = |other: &&Mode| mode.is_some_and(|mode| mode.phase == other.phase);
        let phase: Vec<Mode> = self.modes.iter().filter(same).copied().collect();
        let found = self.among(subject, &phase, reserved);
        let is_quiet = match (&found, mode) {
            (_, None) => true,
            (Ok((_, window)), Some(mode)) => *window <= mode.silence,
            (Err(_), Some(_)) => false,
        };
        if is_quiet || subject.mode.is_some() {
            return found.map(|(response, _)| response);
        }
        Ok(self.among(subject, &self.modes, reserved)?.0)
    }

    /// The longest response and the busy window, if the modem may be in any of these modes.
    fn among(
        &self,
        subject: &Source,
        modes: &[Mode],
        reserved: bool,
    ) -> Result<(Span, Span), NoBound> {
        let machine = self.stage.machine;
        let late = self.late(modes, reserved)?;
        let sources = self.stage.sources(modes, reserved, late);
        let own = sources.iter().find(|source| subject.is(source));
        let own = own.ok_or("it does not run then")?;
        let (task, usual) = self.own_task(own, modes, &sources, reserved)?;
        let mut first = Vec::new();
        for source in sources.iter().filter(|source| source.rank >= own.rank) {
            let same = source.activity == own.activity && source.mode.is_some();
            // Of an activity that is asked about in no mode, jobs in one mode are jobs in another. No call waits for the last one of its phase.
            if std::ptr::eq(source, own) || (same && (source.once || usual == Usual::Done)) {
                continue;
            }
            match &source.work {
                Work::Jobs { task, .. } => first.push(self.as_seen_by(own, source, *task)),
                Work::Endless => return Err(shares(own, source).into()),
            }
        }
        self.lifted(own, &sources)?;
        let in_slots = reserved && own.rank == slot_rank(machine);
        let supply: Box<dyn SupplyBound> = if in_slots {
            Box::new(self.slots(own, &mut first)?)
        } else {
            Box::new(Dedicated)
        };
        if reserved && !in_slots && is_thread(own.rank) {
            self.late_driver(own, modes, &sources, &mut first)?;
        }
        let less = sources.iter().filter(|source| source.rank < own.rank);
        let blocking = machine.one_cost().as_nanos() * (less.count() as u64 + 1);
        let blocking = Service::from_nanos(blocking);
        let response = fixed_priority::response_time_among(&task, &first, blocking, &&*supply)?;
        let response = bound(response)?;
        let window = busy_window(&task, &first, blocking, &*supply);
        let window = window.ok_or("the busy window is too long to be searched")?;
        let wake = machine.longest_tick().filter(|_| own.sleeps);
        Ok((response + wake.unwrap_or(Span::ZERO), window))
    }

    /// A source's own job; and where that is the last of its phase, whether the others are complete when it comes.
    fn own_task(
        &self,
        own: &Source,
        modes: &[Mode],
        sources: &[Source],
        reserved: bool,
    ) -> Result<(Task, Usual), NoBound> {
        let task = own.task().ok_or("it never stops")?;
        if !own.once {
            return Ok((*task, Usual::Open));
        }
        let phase = self.modes.iter().find(|mode| Some(mode.name) == own.mode);
        let phase = phase.map(|phase| phase.phase);
        let mut usual = self.modes.iter().filter(|mode| !mode.once);
        let usual = usual.find(|mode| Some(mode.phase) == phase);
        let source = usual.and_then(|usual| {
            let mut calls = sources.iter().filter(|one| one.activity == own.activity);
            calls.find(|source| source.mode == Some(usual.name))
        });
        let source = source.ok_or("it does not run then")?;
        let usual = source.task().ok_or("it does not run then")?;
        let whole = Task::new(usual.cost() + task.cost(), task.period());
        let whole = whole.map_err(|_| "it takes no time")?;
        let before = self.among(source, modes, reserved);
        let is_done = NoBound::settle(before)?.is_ok_and(|(before, _)| before <= usual.period());
        Ok((whole, if is_done { Usual::Done } else { Usual::Open }))
    }

    /// What a source's jobs take from a subject. A thread that sleeps until a tick loses the one that a handler covers: a tick more for each handler.
    fn as_seen_by(&self, own: &Source, source: &Source, task: Task) -> Task {
        let machine = self.stage.machine;
        let loses = own.sleeps && machine.0.handlers_lose_ticks && is_handler(source.rank);
        let Some(tick) = machine.longest_tick().filter(|_| loses && !source.once) else {
            return task;
        };
        let cost = task.cost() + tick.as_full_service();
        Task::new(cost, task.period()).map_or(task, |longer| longer.with_jitter(task.jitter()))
    }

    /// By how much a rogue, or an executor, may see an instant late: up to a tick, and one more for each that handlers take.
    fn late(&self, modes: &[Mode], reserved: bool) -> Result<Span, NoBound> {
        let machine = self.stage.machine;
        let mut tasks = self.stage.variant.tasks.iter();
        let sleeps = tasks.any(|task| match &task.kind {
            TaskKind::Rogue { .. } => true,
            TaskKind::Periodic { rank, .. } => matches!(rank, PeriodicRank::On(_)),
            TaskKind::Spinner { .. } | TaskKind::Command { .. } => false,
        });
        let ticks = machine.shortest_tick().zip(machine.longest_tick());
        let Some((shortest, longest)) = ticks.filter(|_| sleeps) else {
            return Ok(Span::ZERO);
        };
        let sources = self.stage.sources(modes, reserved, Span::ZERO);
        let handlers = sources.iter().filter(|source| is_handler(source.rank));
        let handlers: Vec<Task> = handlers.filter_map(Source::task).copied().collect();
        let Some((one, others)) = handlers.split_first() else {
            return Ok(longest);
        };
        if !machine.0.handlers_lose_ticks {
            return Ok(longest);
        }
        let why = "handlers may take every tick of the clock, so that a thread never wakes";
        let mut above: Vec<Task> = others.to_vec();
        above.extend(machine.clock());
        let blocking = Service::from_nanos(machine.one_cost().as_nanos() * sources.len() as u64);
        let window = busy_window(one, &above, blocking, &Dedicated).ok_or(why)?;
        // Between two such windows there is a tick for sure, if the handlers leave that much between them.
        let apart = handlers.iter().map(Task::period).min().unwrap_or(Span::MAX);
        if window + shortest > apart {
            return Err(why.into());
        }
        Ok(longest * (2 + window / shortest))
    }

    /// What a holder's slots give it; each begins with a cost.
    fn slots(&self, own: &Source, first: &mut Vec<Task>) -> Result<TableSupply, NoBound> {
        let plans = &self.stage.ready.admission().slots;
        let found = own.activity.and_then(|holder| slots_of(plans, holder));
        let (table, owner) = found.ok_or("its reservation is refused, or not by slots")?;
        let slots = table.slots().iter().filter(|slot| slot.owner == owner);
        let starts: Vec<Span> = slots.map(|slot| slot.start).collect();
        let around = starts.first().map(|first| *first + table.cycle());
        let later = starts.iter().copied().skip(1).chain(around);
        let apart = starts.iter().zip(later).map(|(start, next)| next - *start);
        let switch = self.stage.machine.thread(Service::ZERO);
        let edge = apart.min().and_then(|apart| Task::new(switch, apart).ok());
        first.extend(edge);
        TableSupply::new(table, owner).map_err(|error| error.to_string().into())
    }

    /// A driver that waits for its slots may do late what it would have done at once: for those below it, that is jitter.
    fn late_driver(
        &self,
        own: &Source,
        modes: &[Mode],
        sources: &[Source],
        first: &mut [Task],
    ) -> Result<(), NoBound> {
        let outside = self.stage.outside();
        // Outside its slots it is below whoever is above that priority, and counted all the same.
        let is_below = own.rank < slot_rank(self.stage.machine)
            || outside.is_some_and(|priority| own.rank <= thread_rank(priority));
        if !is_below {
            return Ok(());
        }
        for source in sources.iter().filter(|source| source.mode.is_some()) {
            let Some(task) = source.task() else {
                continue;
            };
            let found = NoBound::settle(self.among(source, modes, true))?;
            let (response, _) =
                found.map_err(|why| format!("`{}` has no bound: {why}", source.name))?;
            let late = response.saturating_sub(task.cost().as_dedicated_span());
            if let Some(job) = first.iter_mut().find(|job| *job == task) {
                *job = job.with_jitter(late);
            }
        }
        Ok(())
    }

    /// A thread has no bound where others that never run are lifted above it.
    fn lifted(&self, own: &Source, sources: &[Source]) -> Result<(), NoBound> {
        let machine = self.stage.machine;
        let is_liftable = is_thread(own.rank) && own.rank != slot_rank(machine);
        if machine.0.bands.starvation.is_none() || !is_liftable || own.rank > 2 * LIFTED_TO {
            return Ok(());
        }
        let starves = |source: &&Source| {
            source.work == Work::Endless && source.rank > 0 && source.rank < 2 * LIFTED_TO
        };
        let Some(source) = sources.iter().find(starves) else {
            return Ok(());
        };
        Err(NoBound::Because(format!(
            "`{}` below it never stops, and is lifted to priority {LIFTED_TO} when it starves",
            source.name
        )))
    }
}

fn shares(own: &Source, endless: &Source) -> String {
    let how = if own.rank == endless.rank {
        "shares its priority with"
    } else {
        "is below"
    };
    format!("it {how} `{}`, which never stops", endless.name)
}

/// The longest time for which the task and what may go first can keep the supply busy.
fn busy_window(
    task: &Task,
    first: &[Task],
    blocking: Service,
    supply: &dyn SupplyBound,
) -> Option<Span> {
    let mut window = Span::from_nanos(1);
    for _ in 0..MOST_STEPS {
        let mut demand = blocking.as_nanos();
        for task in first.iter().chain([task]) {
            let within = window.as_nanos().checked_add(task.jitter().as_nanos())?;
            let jobs = within.div_ceil(task.period().as_nanos());
            demand = demand.checked_add(jobs.checked_mul(task.cost().as_nanos())?)?;
        }
        let next = supply.window_for(Service::from_nanos(demand)).ok()?;
        if next <= window {
            return Some(window);
        }
        window = next;
    }
    None
}
