//! What a bound proves that rests on costs that were measured on Linux.
//!
//! A bound charges every event the largest cost that was ever measured of its kind, so that nothing that was measured is beyond it. But that was met once in
//! thousands, and nobody knows whether the largest come together: what is met with less can be missed only perhaps. With the least costs, whatever
//! happens takes longer, and what is missed then can be missed. So it is with others who may go first, and need not: as urgent ones, those of its
//! executor in another order, strangers.

use laxity_model::Span;
use laxity_model::analysis::{Overflow, Task};

use super::bounds::Analyst;
use super::linux::Live;
use super::ranks::is_thread;
use super::sources::Source;
use crate::plan::{Deadline, Line, NoBound, Reason, slack_ns};
use crate::runner::machine::Charged;
use crate::runner::served::ONCE;

impl Live<'_> {
    /// Says of a line what is so with the usual costs, and whether its deadline can be missed by what is so with the least, if none goes first that need not.
    /// `is_attained`: a job may come to take as long as its bound says; in a budget of the kernel's, which may come sooner, it need not.
    pub(super) fn heed_costs(
        &self,
        line: &mut Line,
        subject: &Source,
        (usual, least): (&Analyst<'_>, &Analyst<'_>),
        is_attained: bool,
    ) -> Result<(), Overflow> {
        let found = |analyst, charged| NoBound::settle(self.bound((analyst, charged), subject));
        let usual = found(usual, Charged::Usual)?;
        if self.measured().is_some() {
            let is_asked = line.bound_ns.is_some() || line.deadline == Some(Deadline::CanBeMissed);
            let usual = usual.as_ref().ok().filter(|_| is_asked);
            line.usual_bound_ns = usual.map(|usual| usual.as_nanos());
        }
        let Some(Deadline::CanBeMissed | Deadline::NotKnown) = line.deadline else {
            return Ok(());
        };
        let was_missed = line.deadline == Some(Deadline::CanBeMissed);
        let least = found(least, Charged::Least)?;
        let is_missed = line.is_missed(&least, is_attained);
        if !is_missed && !was_missed {
            return Ok(());
        }
        if !least.as_ref().is_err_and(|why| why.is_too_much) && line.grows {
            let largest = |why| format!("{why}, if everything costs the largest");
            line.no_bound = line.no_bound.take().map(largest);
            line.grows = false;
        }
        if is_missed {
            line.deadline = Some(Deadline::CanBeMissed);
            return Ok(());
        }
        line.deadline = Some(Deadline::NotKnown);
        line.no_proof = Some(self.no_proof(line.is_in_time(&usual), line.is_in_time(&least)));
        Ok(())
    }

    /// Why it does not follow that a deadline can be missed, which is met with the usual costs, or at least with the least.
    fn no_proof(&self, is_usual: bool, is_least: bool) -> String {
        let what = match (is_usual, is_least) {
            (true, _) => {
                "in time if nothing costs more than 99.9 % of what was measured, and not if everything costs the largest each time"
            }
            (false, true) => {
                "in time if everything costs the least and others as urgent, or of its executor, do not go first, and not if all that may happen does each time"
            }
            (false, false) => {
                "its bound is beyond the deadline, and it need not take so long: costs may be less, and others as urgent, or of its executor, need not go first"
            }
        };
        match self.dearest() {
            Some(dearest) => format!("{what}: {dearest}"),
            None => what.to_owned(),
        }
    }
}

impl Analyst<'_> {
    /// The same if nobody goes first who need not: what is late so can be late.
    pub(super) fn without_equals(self) -> Self {
        Self {
            equals_first: false,
            ..self
        }
    }

    /// Of those who do not go first in any order, a job of each that does: of threads of its rank the one that came just before.
    pub(super) fn one_each(&self, own: &Source, sources: &[Source]) -> Vec<Task> {
        let thread = |source: &Source| source.activity.map(|one| self.stage.thread_of(one));
        let is_equal = |source: &&Source| {
            let are_threads = own.slots.is_none() && source.slots.is_none();
            are_threads && source.rank == own.rank && thread(source) != thread(own)
        };
        let equals = sources.iter().filter(is_equal);
        let equals = equals.filter(|_| !self.equals_first && is_thread(own.rank));
        equals
            .filter_map(|source| Task::new(source.task()?.cost(), ONCE).ok())
            .collect()
    }

    /// Takes back that a deadline can be missed where that does not follow, as it is met if [none goes first that need not](Self::without_equals).
    pub(super) fn heed_equals(&self, line: &mut Line, subject: &Source) -> Result<(), Overflow> {
        if line.deadline != Some(Deadline::CanBeMissed) {
            return Ok(());
        }
        let found = NoBound::settle(self.bound(subject))?;
        if !line.is_missed(&found, true) {
            line.deadline = Some(Deadline::NotKnown);
            line.no_proof = Some(ANY_ORDER.to_owned());
        }
        Ok(())
    }
}

/// Why what is reckoned with equals is no proof.
const ANY_ORDER: &str = "its bound has others that are as urgent, or of its executor, go first in any order, as they need not";

impl Line {
    /// Whether a job is complete in time, if that is its bound.
    fn is_in_time(&self, found: &Result<Span, Reason>) -> bool {
        let due = self.deadline_ns;
        found
            .as_ref()
            .is_ok_and(|bound| Some(bound.as_nanos()) <= due)
    }

    /// Whether this proves that a job can be late.
    fn is_missed(&self, found: &Result<Span, Reason>, is_attained: bool) -> bool {
        match found {
            Ok(_) => is_attained && !self.is_in_time(found),
            Err(why) => why.is_too_much,
        }
    }

    /// The same with what is so at the usual costs in place of its bound, where that is known.
    pub(super) fn at_usual_costs(&self) -> Option<Self> {
        let usual = Span::from_nanos(self.usual_bound_ns?);
        let due = self.deadline_ns.map(Span::from_nanos);
        Some(Self {
            bound_ns: self.usual_bound_ns,
            slack_ns: due.map(|due| slack_ns(due, usual)),
            ..self.clone()
        })
    }
}
