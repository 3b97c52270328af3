//! All that is known of one component, and what of it breaks a limit.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::{
    Absence, Bound, Cause, Doubts, Finding, Limit, Observations, Observed, Phase, Phases, Quantity,
    Reason, RunFacts, Severity, Statistic, Subject, Unit, Unjudged,
};
use crate::base::histogram::Histogram;
use crate::{Grade, Span};

/// In so many runs what was seen once is not what the program does,
pub const REPEATED: usize = 3;
/// if there are so many values; nor do fewer tell what is seldom. A transfer time is one value, and what it is.
const MANY: u64 = 50;

/// All that is known of one component.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Evidence {
    /// The component.
    pub subject: Subject,
    /// What was seen of it, by run.
    pub runs: Vec<Observations>,
    /// The same of the control runs, with which [`Bound::AtMostTimesControl`] compares.
    pub control: Vec<Observations>,
    /// The reservations that it was granted, and how firmly each is held.
    pub grades: Vec<(String, Grade)>,
    /// The phases that are over where its runs begin, all of them: a limit that names them and others asks nothing of these, unless something was seen in them.
    pub phases_over: Vec<Phase>,
    /// What nobody knows of it.
    pub doubts: Doubts,
}

impl Evidence {
    pub(super) fn shows(&self, quantity: Quantity) -> bool {
        self.subject.kind.shows(quantity)
    }

    /// The phases in which a limit is judged; `None` for the whole run.
    pub(super) fn phases_to_judge(&self, limit: &Limit) -> Vec<Option<Phase>> {
        match &limit.phases {
            Phases::Whole => [None].into(),
            Phases::Only(named) => {
                let seen = self.phases_of(limit.quantity);
                let named: Vec<Option<Phase>> = named.iter().cloned().map(Some).collect();
                let is_over = |phase: &Phase| self.phases_over.contains(phase);
                let is_asked = |phase: &&Option<Phase>| {
                    seen.contains(phase) || !phase.as_ref().is_some_and(is_over)
                };
                let asked: Vec<_> = named.iter().filter(is_asked).cloned().collect();
                // Of a limit that no run can show nothing is known: it does not hold for want of phases.
                if asked.is_empty() { named } else { asked }
            }
            Phases::Each => {
                let mut seen = self.phases_of(limit.quantity);
                if let (true, Absence::HoldsIfSeen(witness)) = (seen.is_empty(), limit.absence) {
                    seen = self.phases_of(witness);
                }
                if seen.is_empty() { [None].into() } else { seen }
            }
        }
    }

    pub(super) fn all_holds(&self, limit: &Limit) -> bool {
        let Some(bound_value) = limit.bound_value(|| None) else {
            return false;
        };
        self.phases_to_judge(limit).iter().all(|phase| {
            let all = self.together(limit.quantity, phase.as_ref()).raw();
            // Where nothing was seen, other reasons say so.
            let value = limit.value_of(&all);
            value.is_none_or(|value| limit.holds(value, bound_value))
        })
    }

    /// The phases in which any run saw this, by name.
    fn phases_of(&self, quantity: Quantity) -> Vec<Option<Phase>> {
        let phases = self.runs.iter().flat_map(|run| run.phases(quantity));
        let phases: BTreeSet<&Phase> = phases.map(|(phase, _)| phase).collect();
        phases.into_iter().cloned().map(Some).collect()
    }

    pub(super) fn judge_in_phase(
        &self,
        limit: &Limit,
        phase: Option<&Phase>,
        facts: &RunFacts,
    ) -> Option<Finding> {
        let required = limit.severity == Severity::Required;
        let observed = self.together(limit.quantity, phase);
        let bound_value = limit.bound_value(|| {
            let control = each(&self.control, limit, phase);
            control.filter_map(|seen| limit.value_at_least(&seen)).max()
        });
        let judged = |seen: &Observed| limit.value_of(&limit.judged(seen, bound_value));
        let measured = match limit.bound {
            Bound::AtMostTimesControl { .. } => {
                let runs = each(&self.runs, limit, phase);
                runs.filter_map(|seen| judged(&seen)).min()
            }
            Bound::AtMost(_) | Bound::AtLeast(_) => judged(&observed),
        };
        let Some(measured) = measured else {
            let decides = required && !self.holds_unseen(limit, &observed, phase);
            return decides.then(|| Finding::NotObserved(unjudged([&observed].into_iter())));
        };
        let Some(bound_value) = bound_value else {
            let control: Vec<Observed> = each(&self.control, limit, phase).collect();
            return required.then(|| Finding::NoControl(unjudged(control.iter())));
        };
        if limit.holds(measured, bound_value) {
            return beside(limit, &observed, bound_value);
        }
        let judged = limit.judged(&observed, Some(bound_value));
        Some(match limit.straddled(&judged, bound_value) {
            Some((least, most)) => Finding::Straddled {
                statistic: limit.statistic,
                least,
                most,
                decides: required,
            },
            None => self.broken((limit, phase), (measured, bound_value), facts),
        })
    }

    /// A statistic of this value breaks a limit.
    fn broken(
        &self,
        (limit, phase): (&Limit, Option<&Phase>),
        (measured, bound_value): (u64, u64),
        facts: &RunFacts,
    ) -> Finding {
        let statistic = limit.statistic;
        let broken_by = Span::from_nanos(measured.abs_diff(bound_value));
        let seldom = self.seldom_broken(limit, bound_value, phase);
        match seldom.filter(|_| broken_by < facts.unseen) {
            Some(seldom) => Finding::Seldom {
                statistic,
                measured,
                times: seldom.broken,
                of: seldom.all,
                is_once: seldom.is_once,
                unseen: facts.unseen,
                decides: limit.severity == Severity::Required
                    && (!seldom.is_once || self.showing(limit) < REPEATED || facts.hides_halts()),
            },
            None => Finding::Exceeded {
                statistic,
                measured,
                bound: limit.bound,
                bound_value,
                severity: limit.severity,
            },
        }
    }

    /// How many runs show something undisturbed of what is limited.
    fn showing(&self, limit: &Limit) -> usize {
        let shows = |run: &&Observations| !run.whole(limit.quantity).undisturbed.is_empty();
        self.runs.iter().filter(shows).count()
    }

    /// How many of how many break a bound, if that is no larger a share than [may have met](may_have_met) a halt of the machine, where it ran, that nobody saw; of an absolute bound of a longest or shortest time also a hundredth, where any look met one, as a look is over sooner than a call. Or if all of them did
    /// [at once](Seldom::is_once), and the bound is absolute. Of longest and shortest times all phases count, and of others the judged one.
    fn seldom_broken(&self, limit: &Limit, bound: u64, phase: Option<&Phase>) -> Option<Seldom> {
        let is_extreme = matches!(
            (limit.statistic, limit.bound),
            (Statistic::Maximum, Bound::AtMost(_)) | (Statistic::Minimum, Bound::AtLeast(_))
        );
        let is_counted = limit.quantity == Quantity::RESPONSE_TIME;
        let is_time = limit.quantity.unit() == Unit::Nanoseconds && !is_counted;
        if !is_time || limit.statistic == Statistic::Total {
            return None;
        }
        let phases = match is_extreme {
            true => self.phases_to_judge(limit),
            false => vec![phase.cloned()],
        };
        let (mut all, mut broken, mut in_runs) = (0, 0, 0);
        for run in &self.runs {
            let before = broken;
            for phase in &phases {
                let seen = select(run, limit.quantity, phase.as_ref());
                // Of values that are counted together with some that keep the bound, all count.
                let beyond = |all: &Histogram| -> u64 {
                    let buckets = all.buckets();
                    let beyond = buckets
                        .filter(|b| !limit.holds(b.low, bound) || !limit.holds(b.high, bound));
                    beyond.map(|bucket| bucket.count).sum()
                };
                let (own, at_best) = (seen.undisturbed.clone(), seen.at_best(limit.bound));
                let [by_own, by_all] = [&own, &at_best].map(beyond);
                all += if by_all > by_own {
                    at_best.count()
                } else {
                    own.count()
                };
                broken += by_all.max(by_own);
            }
            in_runs += usize::from(broken > before);
        }
        let looks_ppm = self.doubts.looks_ppm;
        let is_hundredth = broken <= all / 100;
        let by_halts =
            may_have_met((broken, all), looks_ppm) || (is_extreme && is_hundredth && looks_ppm > 0);
        let together = in_runs == 1 && self.showing(limit) >= REPEATED && is_hundredth;
        let is_once = is_extreme && (broken == 1 || together);
        (all >= MANY && (is_once || by_halts)).then_some(Seldom {
            broken,
            all,
            is_once,
        })
    }

    /// Whether there was nothing to see although somebody looked.
    fn holds_unseen(&self, limit: &Limit, observed: &Observed, phase: Option<&Phase>) -> bool {
        match limit.absence {
            Absence::Inconclusive => false,
            Absence::HoldsIfSeen(witness) => {
                let looked = self.together(witness, phase);
                let nothing = observed.disturbed.is_empty() && observed.possible.is_empty();
                nothing && !looked.undisturbed.is_empty()
            }
        }
    }

    /// What all runs saw of a quantity in a phase, or in the whole of each.
    fn together(&self, quantity: Quantity, phase: Option<&Phase>) -> Observed {
        let mut all = Observed::default();
        for run in &self.runs {
            all.merge(&select(run, quantity, phase));
        }
        all
    }
}

/// So few values break a bound that halts of the machine which nobody saw may be why.
struct Seldom {
    broken: u64,
    /// Of so many.
    all: u64,
    /// It is one of them, or a hundredth at most, all in one of [three runs or more](REPEATED): halts come close together, and what a program does it does in others too.
    is_once: bool,
}

/// Whether so many of so many values may each have met a halt that nobody saw, where this share of the looks for halts met one. In the mean as large a share of the values do. By chance more do at times: three standard
/// deviations of a Poisson's number are let pass, which more of them exceed about once in a hundred cases, and oftener where halts come close together.
fn may_have_met((broken, all): (u64, u64), looks_ppm: u32) -> bool {
    const MILLION: u128 = 1_000_000;
    let mean_ppm = u128::from(all) * u128::from(looks_ppm);
    let beyond_ppm = (u128::from(broken) * MILLION).saturating_sub(mean_ppm);
    // A square that has no room is of more than halts can do.
    let squared = beyond_ppm.checked_mul(beyond_ppm);
    squared.is_some_and(|squared| squared <= 9 * MILLION * mean_ppm)
}

impl Limit {
    pub(super) fn found(
        &self,
        subject: Option<String>,
        phase: Option<Phase>,
        finding: Finding,
    ) -> Reason {
        let cause = Cause::Values {
            quantity: self.quantity,
            phase,
            finding,
        };
        Reason { subject, cause }
    }

    /// The limited statistic of these values; percentiles on the side that is worse for the limit (of a ratio, both sides are rounded
    /// up alike).
    fn value_of(&self, values: &Histogram) -> Option<u64> {
        match self.statistic {
            Statistic::Minimum => values.min(),
            Statistic::Maximum => values.max(),
            Statistic::Total => {
                let sum = u64::try_from(values.sum()).unwrap_or(u64::MAX);
                (!values.is_empty()).then_some(sum)
            }
            Statistic::Percentile(ppm) => {
                let (low, high) = values.percentile_bounds(ppm)?;
                Some(match self.bound {
                    Bound::AtLeast(_) => low,
                    Bound::AtMost(_) | Bound::AtMostTimesControl { .. } => high,
                })
            }
        }
    }

    /// The values that it is judged by: those that the program answers for; or with them all others, each as good as it can have been, where these break it nevertheless, and by more.
    fn judged(&self, observed: &Observed, bound_value: Option<u64>) -> Histogram {
        let (own, at_best) = (&observed.undisturbed, observed.at_best(self.bound));
        let is_beyond = |all: &Histogram, bound| {
            let value = self.value_of(all);
            value.is_some_and(|value| !self.holds(value, bound))
        };
        let breaks = |bound| {
            // What is worse than one's own does not keep a bound that is that.
            let is_worse = self
                .value_of(own)
                .is_none_or(|own| is_beyond(&at_best, own));
            let is_sure = |all: &Histogram| self.straddled(all, bound).is_none();
            let own_is_sure = is_beyond(own, bound) && is_sure(own);
            is_worse && is_beyond(&at_best, bound) && (is_sure(&at_best) || !own_is_sure)
        };
        match bound_value.is_some_and(breaks) {
            true => at_best,
            false => own.clone(),
        }
    }

    /// What the limited statistic of a control run is at the least: a run is not to be held to less. `None` of one without an undisturbed value, which is a wrong yardstick.
    fn value_at_least(&self, control: &Observed) -> Option<u64> {
        let own = self.value_of(&control.undisturbed)?;
        let all = self.value_of(&control.at_best(self.bound));
        all.max(Some(own))
    }

    /// Between which values a percentile lies of which it cannot be told whether it breaks the bound, as what lies on both sides of that was counted together.
    fn straddled(&self, values: &Histogram, bound_value: u64) -> Option<(u64, u64)> {
        let (Statistic::Percentile(ppm), Bound::AtMost(_) | Bound::AtLeast(_)) =
            (self.statistic, self.bound)
        else {
            return None;
        };
        let (least, most) = values.percentile_bounds(ppm)?;
        let holds = |value| self.holds(value, bound_value);
        (holds(least) != holds(most)).then_some((least, most))
    }

    /// The bound as a value, beside a control of which this is the largest value of the limited statistic; `None` where it is relative to one, and there is none.
    pub fn bound_value(&self, control: impl FnOnce() -> Option<u64>) -> Option<u64> {
        match self.bound {
            Bound::AtMost(value) | Bound::AtLeast(value) => Some(value),
            Bound::AtMostTimesControl { ratio_ppm } => {
                let bound = u128::from(control()?) * u128::from(ratio_ppm) / 1_000_000;
                Some(u64::try_from(bound).unwrap_or(u64::MAX))
            }
        }
    }

    /// Whether a value keeps this [bound](Self::bound_value).
    pub const fn holds(&self, measured: u64, bound_value: u64) -> bool {
        match self.bound {
            Bound::AtLeast(_) => measured >= bound_value,
            Bound::AtMost(_) | Bound::AtMostTimesControl { .. } => measured <= bound_value,
        }
    }
}

/// What there is where nothing undisturbed was seen.
fn unjudged<'a>(mut seen: impl Iterator<Item = &'a Observed> + Clone) -> Unjudged {
    if seen.clone().any(|seen| !seen.disturbed.is_empty()) {
        Unjudged::Disturbed
    } else if seen.clone().any(|seen| !seen.unfinished.is_empty()) {
        Unjudged::Unfinished
    } else if seen.any(|seen| !seen.possible.is_empty()) {
        Unjudged::Unknown
    } else {
        Unjudged::Nothing
    }
}

/// What is to be known beside values that hold: that others may not, or would not.
fn beside(limit: &Limit, observed: &Observed, bound_value: u64) -> Option<Finding> {
    let statistic = limit.statistic;
    let breaks = |measured: &u64| !limit.holds(*measured, bound_value);
    let mut possible = observed.possible.clone();
    // What may have been comes on top of what is known to be.
    if limit.statistic == Statistic::Total && !possible.is_empty() {
        possible.merge(&observed.undisturbed);
    }
    let required = limit.severity == Severity::Required;
    let may_be = limit.value_of(&possible).filter(breaks);
    let disturbed = limit.value_of(&observed.disturbed).filter(breaks);
    if let Some(measured) = may_be.filter(|_| may_be != disturbed) {
        return Some(Finding::MayExceed {
            statistic,
            measured,
            decides: required,
        });
    }
    let measured = disturbed?;
    // Of so few values that their percentile is the largest of them, it is told as what it is.
    let is_largest = observed.disturbed.max() == Some(measured);
    let statistic = match statistic {
        Statistic::Percentile(_) if is_largest => Statistic::Maximum,
        other => other,
    };
    Some(Finding::DisturbedExceeded {
        statistic,
        measured,
        decides: required && may_be.is_some(),
    })
}

/// What one run saw of a quantity in a phase, or in the whole run.
fn select(run: &Observations, quantity: Quantity, phase: Option<&Phase>) -> Observed {
    match phase {
        Some(phase) => run.get(quantity, phase).cloned().unwrap_or_default(),
        None => run.whole(quantity),
    }
}

/// What each run saw.
fn each<'a>(
    runs: &'a [Observations],
    limit: &'a Limit,
    phase: Option<&'a Phase>,
) -> impl Iterator<Item = Observed> + 'a {
    runs.iter()
        .map(move |run| select(run, limit.quantity, phase))
}
