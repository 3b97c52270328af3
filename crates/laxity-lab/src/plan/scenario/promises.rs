//! What executors promise to those who take turns on them, as bounds.

use laxity_model::admission::ExecutorAdmission;
use laxity_model::analysis::Task;
use laxity_model::{Grade, Span};

use super::bounds::Analyst;
use super::sources::Source;
use crate::plan::NoBound;
use crate::scenario::{ResolvedTask, TaskLinks};

impl Analyst<'_> {
    /// What its executor promises it, if it does and nobody can break that: its bound where it has one by itself, and else its deadline.
    pub(super) fn promised(&self, subject: &Source) -> Option<Span> {
        let deadline = || subject.task().map(Task::deadline);
        let promise = self.promise(subject)?;
        self.bound_in(promise, subject).or_else(deadline)
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

    /// Of one that waits for another's end or a budget: from the release of the first of its chain, as its executor promises.
    pub(super) fn chained(&self, subject: &Source, links: &TaskLinks) -> Result<Span, NoBound> {
        if links.group.is_some() {
            return Err("its group has a budget, and nobody of it alone".into());
        }
        let promise = self.promise(subject);
        let bound = promise.and_then(|executor| self.bound_in(executor, subject));
        let none =
            "it comes after another one, and its executor promises nothing that nobody can break";
        bound.ok_or_else(|| none.into())
    }
}
