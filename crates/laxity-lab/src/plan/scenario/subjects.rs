//! Whose response times are asked for in a variant, and what is said of them besides.

use laxity_model::analysis::Task;
use laxity_model::{ActivityId, Service, Span};

use super::bounds::{Analyst, By};
use super::drivers::{During, Wakes};
use super::sources::{Source, Work, beside};
use crate::plan::{Bottleneck, Line, NoBound, unserved_ns};
use crate::scenario::{PeriodicRank, TaskKind, TurnPolicy};

impl Analyst<'_> {
    /// Everything that recurs or runs on this processor, once: an activity, the driver in each mode; and what is said of it besides its
    /// bound, as its owner sees it.
    pub(super) fn subjects(&self) -> Vec<(Source, Line)> {
        let sources = self.stage.sources(During::Call, false, Wakes::default());
        let mut subjects: Vec<(Source, Line)> = Vec::new();
        for source in sources {
            let is_machine = source.activity.is_none() && source.work != Work::Endless;
            let is_known = subjects.iter().any(|(known, _)| known.is(&source));
            if is_machine || (source.activity.is_some() && is_known) {
                continue;
            }
            let asked = self.asked(&source.name);
            let period = asked.map(|[period, _]| period);
            let period = period.or(source.task().map(Task::period));
            let once = self.stage.mode_of(&source).is_some_and(|mode| mode.once);
            let line = Line {
                name: source.name.clone(),
                processor: Some(self.stage.processor),
                phase: source.mode.map(str::to_owned),
                cost_ns: match source.work {
                    Work::Jobs { net, .. } => Some(net.as_nanos()),
                    Work::Endless => None,
                },
                period_ns: period.filter(|_| !once).map(Span::as_nanos),
                deadline_ns: self.deadline(&source, asked).map(Span::as_nanos),
                ..Line::default()
            };
            subjects.push((source, line));
        }
        subjects
    }

    /// A modem's call is due when the output would run dry without its last piece, another device's when that or its ring would fail; a periodic
    /// task's job as it says.
    fn deadline(&self, source: &Source, asked: Option<[Span; 2]>) -> Option<Span> {
        match self.stage.mode_of(source) {
            Some(mode) => Some(mode.due),
            None => {
                let mut streams = self.stage.streams.iter();
                let stream =
                    streams.find(|stream| Some(stream.installed.driver) == source.activity);
                let due = stream.and_then(|stream| stream.due);
                due.or(asked.map(|[_, deadline]| deadline))
            }
        }
    }

    /// Period and deadline of a periodic task of the scenario.
    fn asked(&self, name: &str) -> Option<[Span; 2]> {
        let mut tasks = self.stage.variant.tasks.iter();
        tasks.find_map(|task| match task.kind {
            TaskKind::Periodic {
                timing, deadline, ..
            } if task.name == name => Some([timing.period, deadline]),
            _ => None,
        })
    }

    /// Who takes most of the time of one that has the least slack, of whom it is known how often its jobs come: never more than its bound.
    pub(super) fn bottleneck(&self, subject: &Source, line: &Line) -> Bottleneck {
        let reserved = self
            .stage
            .is_reserved(self.cases(subject).last().copied().flatten());
        let during = subject.mode.map_or(During::Call, During::Mode);
        let wakes = Wakes {
            late: self.late(),
            by_period: true,
        };
        let mut sources = self.stage.sources(during, reserved, wakes);
        let by_rank = NoBound::settle(self.longest(subject, By::RankBeside));
        if by_rank.is_ok_and(|found| {
            found.is_ok_and(|found| line.bound_ns.is_some_and(|bound| found.as_nanos() <= bound))
        }) {
            beside(&mut sources, subject);
        }
        let own = sources.iter().find(|source| subject.is(source));
        let window = self.window(own, line);
        if let Some(found) = own.and_then(|own| self.below_endless(own, line, &sources)) {
            return found;
        }
        let cost = own.and_then(Source::task);
        let cost_ns = cost.map_or(0, |task| task.cost().as_nanos().min(window));
        let mut taken = vec![(&subject.name, cost_ns)];
        for source in sources.iter().filter(|source| !subject.is(source)) {
            let goes_first = own.is_some_and(|own| self.goes_first(source, own));
            let Some(task) = source.task().filter(|_| goes_first) else {
                continue;
            };
            // The rest of the window is its own job's.
            let behind = own.and_then(|own| self.behind(source, own));
            let all_ns = behind.map_or_else(|| asked_within(task, window), Service::as_nanos);
            taken.push((&source.name, all_ns.min(window - cost_ns)));
        }
        let most = taken.into_iter().max_by_key(|(_, taken_ns)| *taken_ns);
        let (contributor, contribution_ns) = most.unwrap_or((&subject.name, cost_ns));
        let found = Bottleneck {
            name: subject.name.clone(),
            phase: line.phase.clone(),
            contributor: Some(contributor.clone()),
            never_stops: false,
            waits_for: None,
            contribution_ns,
        };
        let Some(own) = own else {
            return found;
        };
        let late = Some(self.late()).filter(|_| own.sleeps);
        let found = found.or_wait("a tick of the clock", late.map_or(0, Span::as_nanos));
        match self.in_slots(own) {
            Ok(Some(slots)) => {
                let unserved_ns = unserved_ns(&slots, Span::from_nanos(window));
                found.or_wait("its slots", unserved_ns)
            }
            Ok(None) | Err(_) => found,
        }
    }

    /// What goes before a job of one whose executor goes by rate of another one there that has more time for its jobs: one quantum. `None`: it is no such one.
    fn behind(&self, source: &Source, own: &Source) -> Option<Service> {
        let stage = &self.stage;
        let mut tasks = stage.variant.tasks.iter();
        tasks.find(|task| {
            let rank = match &task.kind {
                TaskKind::Periodic { rank, .. } => rank,
                _ => return false,
            };
            let by_rate =
                matches!(rank, PeriodicRank::On(on) if on.policy == TurnPolicy::RateMonotonic);
            task.name == own.name && by_rate
        })?;
        let program = &stage.ready.admission().program;
        let thread = stage.thread_of(own.activity?);
        let mut executors = program.executors();
        let (executor, _) = executors.find(|(_, host)| *host == thread)?;
        // Of a group it is the group that has its turn.
        let members = program.members_on(executor);
        let all = members.linked();
        let task_of = |id: ActivityId| Some(all.get(members.index(id.0.into())?)?.task);
        let (one, other) = (task_of(source.activity?)?, task_of(own.activity?)?);
        (one.deadline() > other.deadline()).then(|| one.longest_region())
    }

    /// Of those above one that never stop, the highest has all of a window that those above it leave. `None` where there is none, or nothing is left;
    /// of a command, and of packets, it is only assumed that they never stop.
    fn below_endless(&self, own: &Source, line: &Line, sources: &[Source]) -> Option<Bottleneck> {
        let is_assumed = |name: &str| {
            let mut tasks = self.stage.variant.tasks.iter();
            tasks.any(|task| task.name == name && task.kind.may_stop())
        };
        let is_endless = |source: &&Source| {
            let is_above = source.rank > own.at_least() && self.goes_first(source, own);
            is_above && source.work == Work::Endless && !is_assumed(&source.name)
        };
        let endless = sources.iter().filter(is_endless);
        let endless = endless.max_by_key(|source| source.rank)?;
        let window = self.window(Some(own), line);
        let above = sources.iter().filter(|source| source.rank > endless.rank);
        let taken = above
            .filter_map(Source::task)
            .map(|task| asked_within(task, window));
        let left = window.saturating_sub(taken.fold(0, u64::saturating_add));
        (left > 0).then(|| Bottleneck {
            name: own.name.clone(),
            phase: line.phase.clone(),
            contributor: Some(endless.name.clone()),
            never_stops: true,
            waits_for: None,
            contribution_ns: left,
        })
    }

    /// From the release of a job to its completion at most, or to when it is due where that has no bound, in nanoseconds: less how late it wakes and
    /// what the machine takes besides.
    fn window(&self, own: Option<&Source>, line: &Line) -> u64 {
        let is_late =
            |own: &&Source| own.sleeps || own.task().is_some_and(|task| !task.jitter().is_zero());
        let late = own.filter(is_late).map_or(Span::ZERO, |_| self.late());
        let bound = Span::from_nanos(line.bound_ns.or(line.deadline_ns).unwrap_or(0));
        let window = bound.saturating_sub(self.stage.machine.besides);
        window.saturating_sub(late).as_nanos()
    }
}

/// What the jobs of a task need that can be released in a window, in nanoseconds.
fn asked_within(task: &Task, window: u64) -> u64 {
    let window = window.saturating_add(task.jitter().as_nanos());
    let jobs = window.div_ceil(task.period().as_nanos()) + (task.burst().get() - 1);
    task.cost().as_nanos().saturating_mul(jobs)
}
