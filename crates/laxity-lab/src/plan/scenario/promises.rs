//! What executors promise to those who take turns on them, as bounds.

use laxity_model::admission::ExecutorAdmission;
use laxity_model::analysis::supply::Dedicated;
use laxity_model::analysis::{Task, fixed_priority};
use laxity_model::program::upcalls::Overhead;
use laxity_model::{Grade, Placement, Service, Span};

use super::bounds::{Analyst, By, Case, Usual};
use super::costs::Others;
use super::drivers::During;
use super::drivers::Wakes;
use super::sources::Source;
use crate::plan::NoBound;
use crate::scenario::{ResolvedTask, TaskLinks};

impl Analyst<'_> {
    /// What its executor promises it, if it does and nobody can break that: its bound where it has one by itself, and else its deadline.
    pub(super) fn promised(&self, subject: &Source) -> Option<Span> {
        let promise = self.promise(subject)?;
        let bound = self.bound_in(promise, subject);
        bound.or_else(|| self.due(subject))
    }

    /// When a job of one that takes turns is due, as its executor has it.
    fn due(&self, subject: &Source) -> Option<Span> {
        let activity = &self.stage.ready.admission().program.activities[subject.activity?.index()];
        match activity.placement {
            Placement::On { task, .. } => task.map(|task| task.deadline()),
            _ => None,
        }
    }

    /// The bound by itself of one that takes turns on this executor, with what the machine takes besides.
    fn bound_in(&self, executor: &ExecutorAdmission, subject: &Source) -> Option<Span> {
        let mut bounds = executor.bounds.iter();
        let own = bounds.find(|(task, _)| Some(*task) == subject.activity);
        own.map(|(_, bound)| *bound + self.stage.machine.besides)
    }

    /// What its executor says, if that is a promise that nobody can break.
    fn promise(&self, subject: &Source) -> Option<&ExecutorAdmission> {
        // It stands where another is refused.
        let admission = self.stage.ready.admission();
        let holder = subject.slots?;
        let mut executors = admission.executors.iter();
        let executor = executors.find(|executor| executor.activity == holder)?;
        matches!(executor.answer, Ok(Grade::Enforced)).then_some(executor)
    }

    /// What a task of the scenario has to do with others, if it waits for one or for a budget.
    pub(super) fn links(&self, subject: &Source) -> Option<&TaskLinks> {
        let mut tasks = self.stage.variant.tasks.iter();
        let task = tasks.find(|task| task.name == subject.name && subject.activity.is_some());
        let links = task.and_then(ResolvedTask::links)?;
        (links.after.is_some() || links.group.is_some()).then_some(links)
    }

    /// The longest response of one whose executor is a thread without a reservation, by the order of its turns on what those above leave, and the busy window.
    pub(super) fn in_turn(
        &self,
        subject: &Source,
        during: During,
        case: Case,
        wakes: Wakes,
    ) -> Result<(Span, Span), NoBound> {
        let machine = &self.stage.machine;
        let sources = self.stage.sources(during, case.reserved, wakes);
        let own = sources.iter().find(|source| subject.is(source));
        let own = own.ok_or("it does not run then")?;
        let executor = self.turns(own).ok_or("it takes no turns on a thread")?;
        self.is_real_time(own)?;
        let thread = |source: &Source| source.activity.map(|one| self.stage.thread_of(one));
        let is_with = |source: &Source| thread(source) == thread(own);
        let (with, beside): (Vec<_>, Vec<_>) = sources.iter().cloned().partition(is_with);
        let above = self.first(own, Usual::Open, &beside, (during, case))?;
        self.lifted(own, &sources)?;
        let waits = self.blocking(own, &sources);
        let task = own.task().ok_or("it never stops")?;
        let others = with.iter().filter(|source| !own.is(source));
        let others = others.filter_map(Source::task).chain(&above).copied();
        let others: Vec<Task> = others.collect();
        let window = fixed_priority::busy_window_among(task, &others, waits, &Dedicated)?;
        let window = self.kept(window)?;
        let overhead = Overhead {
            late: wakes.late + machine.besides,
            each: machine.thread(Service::ZERO),
            quantum: Service::ZERO,
        };
        let among = (above, waits.as_dedicated_span());
        let admission = self.stage.ready.admission();
        let bounds = admission.promised_below(executor.executor, among, overhead);
        let bounds = bounds.map_err(|why| why.reason)?;
        let mut singles = bounds.iter();
        let found = match singles.find(|(one, _)| Some(*one) == own.activity) {
            Some((_, bound)) => Some(*bound),
            // Its policy has no bounds, and all are in time.
            None => self.due(own).filter(|_| bounds.is_empty()),
        };
        let found = found.ok_or("it has no bound alone")?;
        Ok((found.saturating_sub(machine.besides), window))
    }

    /// On which executor one takes turns, where that has no reservation.
    fn turns(&self, own: &Source) -> Option<&ExecutorAdmission> {
        let admission = self.stage.ready.admission();
        let thread = self.stage.thread_of(own.activity?);
        let holder = &admission.program.activities[thread.index()];
        let mut executors = admission.executors.iter();
        let found = executors.find(|executor| executor.activity == thread);
        found.filter(|_| holder.reservation.is_none() && self.others == Others::May)
    }

    /// Of one that waits for another's end or a budget: from the release of the first of its chain, as its executor promises.
    pub(super) fn chained(&self, subject: &Source, links: &TaskLinks) -> Result<Span, NoBound> {
        if links.group.is_some() {
            return Err("its group has a budget, and nobody of it alone".into());
        }
        let promise = self.promise(subject);
        if let Some(bound) = promise.and_then(|executor| self.bound_in(executor, subject)) {
            return Ok(bound);
        }
        let by_turns = NoBound::settle(self.longest(subject, By::Turns))?;
        let none = |_| "it comes after another one, and its executor promises nothing that nobody can break";
        by_turns.map_err(none).map_err(NoBound::from)
    }
}
