//! What a bound proves that rests on costs that were measured on Linux.
//!
//! A bound charges every event the largest cost that was ever measured of its kind, so that nothing that was measured is beyond it. But that was met once in
//! thousands, and nobody knows whether the largest come together: what is met with less can be missed only perhaps. With the least costs, whatever
//! happens takes longer, and what is missed then can be missed.

use laxity_model::Span;
use laxity_model::analysis::Overflow;

use super::bounds::Analyst;
use super::linux::Live;
use super::sources::Source;
use crate::plan::{Deadline, Line, NoBound, Reason, slack_ns};
use crate::runner::machine::Charged;

impl Live<'_> {
    /// Says of a line what is so with the usual costs, and takes back that its deadline can be missed where that does not follow. `is_attained`: a job may
    /// come to take as long as its bound says; in a budget of the kernel's, which may come sooner, it need not.
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
        if line.deadline != Some(Deadline::CanBeMissed) {
            return Ok(());
        }
        let least = found(least, Charged::Least)?;
        if line.is_missed(&least, is_attained) {
            return Ok(());
        }
        line.deadline = Some(Deadline::NotKnown);
        let largest = |why| format!("{why}, if everything costs the largest");
        line.no_bound = line.no_bound.take().map(largest);
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
                "in time if everything costs the least, and not if everything costs the most that it may each time"
            }
            (false, false) => "its bound is beyond the deadline, and it need not take so long",
        };
        match self.dearest() {
            Some(dearest) => format!("{what}: {dearest}"),
            None => what.to_owned(),
        }
    }
}

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
