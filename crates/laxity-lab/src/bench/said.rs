//! What live runs say of themselves, and what that makes of a claim.

use laxity::observe::grades;
use laxity_model::verify::contract::{
    Claimed, Doubts, Halts, HaltsUnseen, Outcome, RunFacts, judge_claim,
};
use laxity_model::{ActivityId, Grade, RunRecord, Whereabouts};

use crate::each_once::each_once;

/// As much of some live runs as their judge must know besides what was measured; of runs of the twin it is nothing.
#[derive(Clone, Default, Debug)]
pub struct Said {
    halts: Halts,
    /// What nobody knows of any of them.
    unknown: Doubts,
    /// The reservations that were in force, and how firmly each was held.
    grades: Vec<(String, Grade)>,
    /// What else is to be told, each a sentence: who held a processor, and who could have.
    pub(super) notices: Vec<String>,
    /// Of them, who could have taken the processor from what was not reserved, or did.
    outranked: Vec<String>,
    /// What the study itself doubts.
    doubts: Vec<String>,
}

impl Said {
    /// What a live run says.
    pub fn of(record: &RunRecord) -> Self {
        let everybody: Vec<ActivityId> = (0..=u16::MAX)
            .map(ActivityId)
            .take(record.usage.len())
            .collect();
        Self {
            halts: Halts::of([record]),
            unknown: Doubts::of([(record, [Whereabouts::Anywhere])]),
            grades: grades(record, &everybody).collect(),
            notices: record.notices.clone(),
            outranked: record.outranked.clone(),
            doubts: Vec::new(),
        }
    }

    /// With what other runs say.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.halts.merge(&other.halts);
        self.unknown.held += other.unknown.held;
        if self.unknown.halts_unseen == HaltsUnseen::None {
            self.unknown.halts_unseen = other.unknown.halts_unseen;
        }
        self.grades.extend(other.grades.iter().cloned());
        self.notices.extend(other.notices.iter().cloned());
        self.outranked.extend(other.outranked.iter().cloned());
        self.doubts.extend(other.doubts.iter().cloned());
        self
    }

    /// With a reason of the study itself why only what is certain is claimed, if there is one.
    #[must_use]
    pub fn but(mut self, doubt: Option<String>) -> Self {
        self.doubts.extend(doubt);
        self
    }

    /// The facts of these runs, as those of a scenario's are.
    pub fn facts(&self) -> RunFacts {
        RunFacts::of_halts(&self.halts)
    }

    /// The share that was disturbed, in parts per million; `None` where nobody looked.
    pub fn disturbed_ppm(&self) -> Option<u32> {
        self.halts.ppm()
    }

    /// Whether what is claimed of these runs is so. What others may have taken from what was not reserved leaves it open as a grant does that was not kept,
    /// but for what holds of everything that was seen: that held although they were there.
    ///
    /// # Errors
    ///
    /// Why that cannot be told: all that leaves it open, each once.
    pub fn judge(&self, claimed: Claimed) -> Result<bool, String> {
        let verdict = judge_claim(claimed, &self.grades, self.unknown, &self.facts());
        let holds_for_sure = claimed.holds && claimed.is_certain;
        let outranked = self.outranked.iter().filter(|_| !holds_for_sure);
        let doubts = self.doubts.iter().filter(|_| !claimed.is_certain);
        let doubts = outranked.chain(doubts);
        let reasons = verdict.reasons.iter().map(ToString::to_string);
        let is_open = doubts.clone().next().is_some() || verdict.result == Outcome::Inconclusive;
        match is_open {
            true => Err(each_once(reasons.chain(doubts.cloned())).join("; ")),
            false => Ok(verdict.result == Outcome::Met),
        }
    }

    /// Why only what is certain is told of these runs; `None`: the rest is, too.
    pub fn doubt(&self) -> Option<String> {
        let claimed = Claimed {
            holds: true,
            is_certain: false,
        };
        self.judge(claimed).err()
    }
}
