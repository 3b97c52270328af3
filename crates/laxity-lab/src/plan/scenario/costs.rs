//! What a bound proves that rests on costs that were measured on Linux.
//!
//! A bound charges every event the largest cost that was ever measured of its kind, so that nothing that was measured is beyond it. But that was met once in
//! thousands, and nobody knows whether the largest come together: what is met with less can be missed only perhaps. With the least costs, whatever
//! happens takes longer, and what is missed then can be missed. So it is with others who may go first, and need not: as urgent ones, those of its
//! executor in another order, strangers.

use laxity_model::analysis::supply::SupplyBound;
use laxity_model::analysis::{Fraction, Overflow, Task};
use laxity_model::request::ONCE;
use laxity_model::{Service, Span};

use super::bounds::Analyst;
use super::linux::Live;
use super::ranks::is_thread;
use super::sources::{Source, Work};
use crate::plan::{Deadline, Line, NoBound, Reason, slack_ns};
use crate::runner::machine::Charged;

impl Live<'_> {
    /// Says of a line what is so with the usual costs, and whether its deadline can be missed by what is so with the least, if none goes first that need not.
    /// `is_attained`: a job may come to take as long as its bound says; in a budget of the kernel's, which may come sooner, it need not.
    pub(super) fn heed_costs<'a>(
        &self,
        line: &mut Line,
        subject: &Source,
        (usual, least): (&Analyst<'_>, &dyn Fn() -> Analyst<'a>),
        is_attained: bool,
    ) -> Result<(), Overflow> {
        let usual = NoBound::settle(self.bound((usual, Charged::Usual), subject))?;
        if self.measured().is_some() {
            let is_asked = line.bound_ns.is_some() || line.deadline == Some(Deadline::CanBeMissed);
            let usual = usual.as_ref().ok().filter(|_| is_asked);
            line.usual_bound_ns = usual.map(|usual| usual.as_nanos());
        }
        let Some(Deadline::CanBeMissed | Deadline::NotKnown) = line.deadline else {
            return Ok(());
        };
        let was_missed = line.deadline == Some(Deadline::CanBeMissed);
        let bound = |analyst: &Analyst<'_>| {
            let found = self.bound((analyst, Charged::Least), subject);
            NoBound::settle(found)
        };
        let (least, is_missed) = line.proof((least, subject), is_attained, bound)?;
        if !is_missed && !was_missed {
            return Ok(());
        }
        line.grow_if(proves_growth(&least), "everything costs the largest");
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
                "in time if everything costs the least and nobody goes first who need not, and not if all that may happen does each time"
            }
            (false, false) => {
                "its bound is beyond the deadline, and it need not take so long: costs may be less, and not all who may go first need do so"
            }
        };
        match self.dearest() {
            Some(dearest) => format!("{what}: {dearest}"),
            None => what.to_owned(),
        }
    }
}

/// What is assumed of others than the one that is asked about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    /// All go first who may, as late as they may be: what is reckoned so is a bound.
    May,
    /// None goes first who need not; of who waits for slots it is known how much of the time it takes in the long run, and not when.
    Share,
    /// None goes first who need not, nor may have waited: a job may come to take as long as is reckoned so.
    Surely,
}

impl Analyst<'_> {
    fn assuming(self, others: Others) -> Self {
        Self { others, ..self }
    }

    /// Another's jobs, as far as these surely go first.
    pub(super) fn as_assumed(&self, source: &Source, task: &Task) -> Option<Task> {
        match self.others {
            Others::May => Some(*task),
            // What waited may come together, and need not.
            Others::Share | Others::Surely => (!source.waits).then(|| task.with_jitter(Span::ZERO)),
        }
    }

    /// Why more is asked for than there is where the work of a thread and of all that go first is no more: what the machine takes for each job comes on top.
    pub(super) fn too_much_with_costs(&self, own: &Source, sources: &[Source]) -> Option<Reason> {
        let machine = &self.stage.machine;
        let is_work = |source: &&Source| {
            let is_own = machine.own.iter().any(|(name, _)| *name == source.name);
            !is_own && (own.is(source) || self.goes_first(source, own))
        };
        let shares = sources.iter().filter(is_work).filter_map(|source| {
            let Work::Jobs { task, net } = &source.work else {
                return None;
            };
            Fraction::new(net.as_nanos(), task.period().as_nanos())
        });
        let each = machine.thread(Service::ZERO);
        let fits = !each.is_zero() && Fraction::ONE.compare_sum(shares).is_le();
        fits.then(|| {
            Reason::too_much(format!(
                "it and what goes first ask for more than there is: their work alone is no more than that, but the machine takes {each} for each job besides, and its clock some"
            ))
        })
    }

    /// How much all that runs in the slots of this one takes of the time below them: what there is to do, as far as they give that in the long run.
    pub(super) fn share(&self, source: &Source, tasks: Vec<Task>) -> Vec<Task> {
        let slots = self.in_slots(source).ok().flatten();
        let (Some(rate), Some(often)) = (slots.map(|slots| slots.rate()), tasks.first()) else {
            return Vec::new();
        };
        let asked = tasks
            .iter()
            .map(|task| (task.cost().as_nanos(), task.period().as_nanos()));
        let shares = asked.filter_map(|(cost, period)| Fraction::new(cost, period));
        if rate.compare_sum(shares).is_le() {
            return tasks;
        }
        let given = u128::from(often.period().as_nanos()) * u128::from(rate.numerator())
            / u128::from(rate.denominator());
        let given = Service::from_nanos(u64::try_from(given).unwrap_or(u64::MAX));
        let all = Task::new(given, often.period());
        all.into_iter().collect()
    }

    /// Of those who do not go first in any order, a job of each that does: of threads of its rank the one that came just before. Of who waits for a budget
    /// that may be cut short, and of who waits for another's end it need not come then.
    pub(super) fn one_each(&self, own: &Source, sources: &[Source]) -> Vec<Task> {
        let thread = |source: &Source| source.activity.map(|one| self.stage.thread_of(one));
        let is_equal = |source: &&Source| {
            let are_threads = own.slots.is_none() && source.slots.is_none();
            let is_equal = source.rank == own.rank && !source.waits;
            are_threads && is_equal && thread(source) != thread(own)
        };
        let equals = sources.iter().filter(is_equal);
        let equals = equals.filter(|_| self.others != Others::May && is_thread(own.rank));
        equals
            .filter_map(|source| Task::new(source.task()?.cost(), ONCE).ok())
            .collect()
    }
}

/// Takes back that a deadline can be missed where that does not follow, as it is met if nobody goes first who need not.
pub(super) fn heed_others<'a>(
    analyst: &dyn Fn() -> Analyst<'a>,
    line: &mut Line,
    subject: &Source,
) -> Result<(), Overflow> {
    if line.deadline != Some(Deadline::CanBeMissed) {
        return Ok(());
    }
    let bound = |analyst: &Analyst<'_>| NoBound::settle(analyst.bound(subject));
    let (found, is_missed) = line.proof((analyst, subject), true, bound)?;
    line.grow_if(proves_growth(&found), "all go first who may");
    if !is_missed {
        line.deadline = Some(Deadline::NotKnown);
        line.no_proof = Some(NEED_NOT.to_owned());
    }
    Ok(())
}

/// Whether this, found if nobody goes first who need not, proves that jobs get later and later.
fn proves_growth(found: &Result<Span, Reason>) -> bool {
    found.as_ref().is_err_and(|why| why.is_too_much)
}

/// Why what is reckoned with all who may go first is no proof.
const NEED_NOT: &str = "its bound has all go first who may, as late as they may be: others as urgent or of its executor in any order, who waits for slots or a budget all at once; they need not";

impl Line {
    /// Whether a job is complete in time, if that is its bound.
    fn is_in_time(&self, found: &Result<Span, Reason>) -> bool {
        let due = self.deadline_ns;
        found
            .as_ref()
            .is_ok_and(|bound| Some(bound.as_nanos()) <= due)
    }

    /// What is found if nobody goes first who need not, and whether that proves that a job can be late. Of one that waits for others' ends or a budget no bound is exact.
    fn proof<'a>(
        &self,
        (analyst, subject): (&dyn Fn() -> Analyst<'a>, &Source),
        is_attained: bool,
        bound: impl Fn(&Analyst<'_>) -> Result<Result<Span, Reason>, Overflow>,
    ) -> Result<(Result<Span, Reason>, bool), Overflow> {
        let share = analyst().assuming(Others::Share);
        let mut found = bound(&share)?;
        if !found.as_ref().is_err_and(|why| why.is_too_much) {
            found = bound(&analyst().assuming(Others::Surely))?;
        }
        let is_exact = share.links(subject).is_none();
        let is_missed = is_exact && self.is_missed(&found, is_attained);
        Ok((found, is_missed))
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

/// The better of two answers, each of which holds; the reason of the first where there is neither.
pub(super) fn shorter(
    one: Result<Span, Reason>,
    other: Result<Span, Reason>,
) -> Result<Span, Reason> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok(one.min(other)),
        (Err(_), found @ Ok(_)) | (found, Err(_)) => found,
    }
}
