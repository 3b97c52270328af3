//! Response times in a variant: of everything that recurs, in the twin, with everything the machine takes for itself.
//!
//! For an activity: all jobs of everything that is not less urgent may go first (equals in any order); a less urgent one may just be causing
//! a cost that nothing interrupts; in slots, only the table's own supply counts. So a bound holds whatever the phases are, and beyond what one
//! run happens to show.

use laxity_model::analysis::supply::{Dedicated, SupplyBound, TableSupply};
use laxity_model::analysis::{Overflow, Response, Task, fixed_priority};
use laxity_model::{Service, Span};

use super::machine::Machine;
use super::modes::{Mode, modes};
use super::sources::{
    Source, Stage, Stance, Work, is_handler, is_thread, slot_rank, stances, thread_rank,
};
use super::subjects::Subject;
use super::{ActivityPlan, Ready, twin};
use crate::plan::{slack_ns, why_unknown};
use crate::runner::On;
use crate::scenario::{Resolved, ResolvedVariant, TaskKind};

/// A busy window is looked for in so many steps.
const MOST_STEPS: u32 = 10_000;

/// Threads of a priority up to this are lifted to it when they starve.
const LIFTED_TO: u16 = 15;

/// What came of one question: the longest response, or why there is no bound.
type Found = Result<Span, String>;

/// The lines of a variant, and its bottleneck in words.
pub(super) fn of(
    resolved: &Resolved,
    variant: &ResolvedVariant,
    ready: &Ready,
    on: On,
) -> Result<(Vec<ActivityPlan>, Option<String>), Overflow> {
    let machine = Machine(twin::profile(resolved.host.profile));
    let mut lines = Vec::new();
    let mut worst: Option<(i64, String)> = None;
    for processor in 0..resolved.host.processors {
        let analyst = Analyst {
            stage: Stage {
                machine,
                variant,
                ready,
                processor,
            },
            modes: if variant.devices.is_empty() {
                Vec::new()
            } else {
                modes(variant.start)
            },
        };
        for subject in analyst.subjects() {
            let mut line = analyst.line(&subject);
            if on == On::Linux {
                line.no_bound = Some(
                    "how long things take on this machine is not known before they are measured"
                        .into(),
                );
            } else if variant.devices.len() > 1 {
                line.no_bound =
                    Some("the phases of several calls are not analysed together".into());
            } else {
                analyst.bound(&subject, &mut line)?;
            }
            if let Some(slack) = line.slack_ns
                && worst.as_ref().is_none_or(|(least, _)| slack < *least)
            {
                worst = Some((slack, analyst.bottleneck(&subject, &line)));
            }
            lines.push(line);
        }
    }
    Ok((lines, worst.map(|(_, text)| text)))
}

/// Whether the usual calls of a phase are complete when its last one comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Usual {
    Done,
    Open,
}

pub(super) struct Analyst<'a> {
    pub(super) stage: Stage<'a>,
    pub(super) modes: Vec<Mode>,
}

impl Analyst<'_> {
    fn bound(&self, subject: &Subject, line: &mut ActivityPlan) -> Result<(), Overflow> {
        if subject.net.is_none() {
            line.no_bound = Some("it never stops, so it is never done".into());
            return Ok(());
        }
        let mut longest = Span::ZERO;
        for (mode, stance) in self.cases(subject) {
            match self.response(subject, mode, stance)? {
                Ok(response) => longest = longest.max(response),
                Err(why) => {
                    line.no_bound = Some(why);
                    return Ok(());
                }
            }
        }
        line.bound_ns = Some(longest.as_nanos());
        let slack = |deadline: Span| slack_ns(deadline, longest);
        line.slack_ns = subject.deadline.map(slack);
        Ok(())
    }

    /// In which modes, and how the driver stands in them.
    pub(super) fn cases(&self, subject: &Subject) -> Vec<(Option<Mode>, Stance)> {
        if self.modes.is_empty() {
            return vec![(None, Stance::Before)];
        }
        let wanted = |mode: &&Mode| subject.mode.is_none_or(|name| name == mode.name);
        let modes = self.modes.iter().filter(wanted);
        let cases = modes.flat_map(|mode| {
            let stances = stances(self.stage.variant, mode);
            stances.into_iter().map(|stance| (Some(*mode), stance))
        });
        cases.collect()
    }

    /// The longest response in a mode. The driver's calls know no other phase; for all others, of this phase alone if all is quiet before
    /// the next begins, else of all phases together.
    fn response(
        &self,
        subject: &Subject,
        mode: Option<Mode>,
        stance: Stance,
    ) -> Result<Found, Overflow> {
        let phase = |mode: Mode| -> Vec<Mode> {
            let same = self.modes.iter().filter(|other| other.phase == mode.phase);
            same.copied().collect()
        };
        let found = self.among(subject, &mode.map_or_else(Vec::new, phase), stance)?;
        match (mode, &found) {
            (Some(mode), Ok((_, window))) if subject.mode.is_none() && *window > mode.silence => {}
            (Some(_), Err(_)) if subject.mode.is_none() => {}
            _ => return Ok(found.map(|(response, _)| response)),
        }
        let found = self.among(subject, &self.modes, stance)?;
        Ok(found.map(|(response, _)| response))
    }

    /// The longest response and the busy window, if the modem may be in any of these modes.
    fn among(
        &self,
        subject: &Subject,
        modes: &[Mode],
        stance: Stance,
    ) -> Result<Result<(Span, Span), String>, Overflow> {
        let late = match self.late(modes, stance) {
            Ok(late) => late,
            Err(why) => return Ok(Err(why)),
        };
        let sources = self.stage.sources(modes, stance, late);
        let is_subject =
            |source: &Source| source.activity == subject.activity && source.mode == subject.mode;
        let Some(own) = sources.iter().find(|source| is_subject(source)) else {
            return Ok(Err("it does not run then".into()));
        };
        let (task, usual) = match self.own_task(subject, own, modes, &sources, stance)? {
            Ok(found) => found,
            Err(why) => return Ok(Err(why)),
        };
        let mut first = Vec::new();
        for source in sources.iter().filter(|source| source.rank >= own.rank) {
            let same = source.activity == own.activity && source.mode.is_some();
            // Of an activity that is asked about in no mode, jobs in one mode are jobs in another. No call waits for the last one of its phase.
            if std::ptr::eq(source, own) || (same && (source.once || usual == Usual::Done)) {
                continue;
            }
            match &source.work {
                Work::Jobs { task, .. } => first.push(self.as_seen_by(own, source, *task)),
                Work::Endless => return Ok(Err(shares(own, source))),
            }
        }
        if let Some(why) = self.lifted(own, &sources) {
            return Ok(Err(why));
        }
        let reserved = stance == Stance::Reserved && own.rank == slot_rank(self.stage.machine);
        let supply = match self.supply(own, reserved, &mut first) {
            Ok(supply) => supply,
            Err(why) => return Ok(Err(why)),
        };
        if stance == Stance::Reserved && !reserved && is_thread(own.rank) {
            match self.late_driver(own, modes, &sources, &mut first)? {
                Ok(()) => {}
                Err(why) => return Ok(Err(why)),
            }
        }
        let less = sources
            .iter()
            .filter(|source| source.rank < own.rank)
            .count() as u64;
        let blocking = Service::from_nanos(self.stage.machine.one_cost().as_nanos() * (less + 1));
        let response = fixed_priority::response_time_among(&task, &first, blocking, &&*supply)?;
        let Response::Bounded(bound) = response else {
            let why = why_unknown(response).unwrap_or("the analysis says nothing");
            return Ok(Err(why.into()));
        };
        let Some(window) = busy_window(&task, &first, blocking, &*supply) else {
            return Ok(Err("the busy window is too long to be searched".into()));
        };
        let machine = self.stage.machine;
        let wake = machine
            .longest_tick()
            .filter(|_| own.sleeps)
            .unwrap_or(Span::ZERO);
        Ok(Ok((bound.from_arrival + wake, window)))
    }

    /// A subject's own job; and where that is the last of its phase, whether the others are complete when it comes.
    fn own_task(
        &self,
        subject: &Subject,
        own: &Source,
        modes: &[Mode],
        sources: &[Source],
        stance: Stance,
    ) -> Result<Result<(Task, Usual), String>, Overflow> {
        let Work::Jobs { task, .. } = &own.work else {
            return Ok(Err("it never stops".into()));
        };
        if !own.once {
            return Ok(Ok((*task, Usual::Open)));
        }
        let phase = self.modes.iter().find(|mode| Some(mode.name) == own.mode);
        let usual = self
            .modes
            .iter()
            .find(|mode| !mode.once && Some(mode.phase) == phase.map(|phase| phase.phase));
        let usual = sources.iter().find(|source| {
            source.activity == own.activity
                && source.mode.is_some()
                && source.mode == usual.map(|usual| usual.name)
        });
        let Some((source, Work::Jobs { task: usual, .. })) =
            usual.map(|source| (source, &source.work))
        else {
            return Ok(Err("it does not run then".into()));
        };
        let whole = Task::new(usual.cost() + task.cost(), task.period());
        let Ok(whole) = whole else {
            return Ok(Err("it takes no time".into()));
        };
        let before = Subject {
            name: subject.name.clone(),
            activity: subject.activity,
            mode: source.mode,
            deadline: None,
            period: None,
            net: None,
        };
        let done = match self.among(&before, modes, stance)? {
            Ok((response, _)) if response <= usual.period() => Usual::Done,
            _ => Usual::Open,
        };
        Ok(Ok((whole, done)))
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

    /// By how much a rogue may see an instant late: up to a tick, and one more for each that handlers take.
    fn late(&self, modes: &[Mode], stance: Stance) -> Found {
        let machine = self.stage.machine;
        let sleeps = |kind: &TaskKind| matches!(kind, TaskKind::Rogue { .. });
        let (Some(shortest), Some(longest), true) = (
            machine.shortest_tick(),
            machine.longest_tick(),
            self.stage
                .variant
                .tasks
                .iter()
                .any(|task| sleeps(&task.kind)),
        ) else {
            return Ok(Span::ZERO);
        };
        let sources = self.stage.sources(modes, stance, Span::ZERO);
        let handlers: Vec<Task> = sources
            .iter()
            .filter(|source| is_handler(source.rank))
            .filter_map(|source| match &source.work {
                Work::Jobs { task, .. } => Some(*task),
                Work::Endless => None,
            })
            .collect();
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

    /// What a subject runs on; in slots, each begins with a cost.
    fn supply(
        &self,
        own: &Source,
        reserved: bool,
        first: &mut Vec<Task>,
    ) -> Result<Box<dyn SupplyBound>, String> {
        if !reserved {
            return Ok(Box::new(Dedicated));
        }
        let none = || "its reservation is refused, or not by slots".to_owned();
        let mut plans = self.stage.ready.admission().slots.iter();
        let plan = plans.find(|plan| plan.processor.0 == self.stage.processor);
        let plan = plan.ok_or_else(none)?;
        let owner = plan.owners.iter().position(|id| Some(*id) == own.activity);
        let owner = owner.ok_or_else(none)?;
        let table = &plan.table;
        let starts: Vec<Span> = table
            .slots()
            .iter()
            .filter(|slot| slot.owner == owner)
            .map(|slot| slot.start)
            .collect();
        let around = starts.first().map(|first| *first + table.cycle());
        let later = starts.iter().copied().skip(1).chain(around);
        let apart = starts
            .iter()
            .zip(later)
            .map(|(start, next)| next - *start)
            .min();
        let switch = self.stage.machine.thread(Service::ZERO);
        if let Some(edge) = apart.and_then(|apart| Task::new(switch, apart).ok()) {
            first.push(edge);
        }
        let supply = TableSupply::new(table, owner).map_err(|error| error.to_string())?;
        Ok(Box::new(supply))
    }

    /// A driver that waits for its slots may do late what it would have done at once: for those below it, that is jitter.
    fn late_driver(
        &self,
        own: &Source,
        modes: &[Mode],
        sources: &[Source],
        first: &mut [Task],
    ) -> Result<Result<(), String>, Overflow> {
        let rank = slot_rank(self.stage.machine);
        // Outside its slots it is below whoever is above that priority, and counted all the same.
        let above = own.rank < rank
            || self
                .stage
                .outside()
                .is_some_and(|p| own.rank <= thread_rank(p));
        if !above {
            return Ok(Ok(()));
        }
        for source in sources.iter().filter(|source| source.mode.is_some()) {
            let Work::Jobs { task, .. } = &source.work else {
                continue;
            };
            let subject = Subject {
                name: source.name.clone(),
                activity: source.activity,
                mode: source.mode,
                deadline: None,
                period: None,
                net: None,
            };
            let (response, _) = match self.among(&subject, modes, Stance::Reserved)? {
                Ok(found) => found,
                Err(why) => return Ok(Err(format!("`{}` has no bound: {why}", source.name))),
            };
            let late = response.as_nanos().saturating_sub(task.cost().as_nanos());
            if let Some(job) = first.iter_mut().find(|job| *job == task) {
                *job = job.with_jitter(Span::from_nanos(late));
            }
        }
        Ok(Ok(()))
    }

    /// Why a thread has no bound where others that never run are lifted above it.
    fn lifted(&self, own: &Source, sources: &[Source]) -> Option<String> {
        self.stage.machine.0.bands.starvation?;
        if !is_thread(own.rank)
            || own.rank > 2 * LIFTED_TO
            || own.rank == slot_rank(self.stage.machine)
        {
            return None;
        }
        let mut starving = sources.iter().filter(|source| {
            source.work == Work::Endless && source.rank > 0 && source.rank < 2 * LIFTED_TO
        });
        let source = starving.next()?;
        Some(format!(
            "`{}` below it never stops, and is lifted to priority {LIFTED_TO} when it starves",
            source.name
        ))
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
