//! Loads that devices made in runs, where these are not what was asked for: each was measured alone before, and a machine is fast and slow by turns.

use std::cmp::Ordering;

use laxity_model::verify::contract::{Outcome, Verdict};

use super::conclude::Circumstances;
use crate::evidence::results::{Surprise, VariantResults, VerdictJson};
use crate::evidence::subjects::DeviceFigures;
use crate::layout::percent;
use crate::scenario::units::Load;
use crate::scenario::{Loss, Outcome as ExpectedOutcome, ResolvedVariant};

/// What differs from what was asked for by more than its tolerance, each in a sentence.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Unmet {
    /// What was kept with these might not have been with all that was asked for.
    lighter: Vec<String>,
    heavier: Vec<String>,
}

impl Unmet {
    /// Of the devices of a variant whose work was repeated so that it makes a load. In a twin it takes what it is said to take.
    pub(super) fn of(
        variant: &ResolvedVariant,
        circumstances: &Circumstances,
        results: &VariantResults,
    ) -> Self {
        let mut unmet = Self::default();
        let devices = variant.devices.iter().filter(|_| circumstances.live);
        for device in devices.filter(|device| device.device.fewest_repeats().is_some()) {
            let mut subjects = results.subjects.iter();
            let subject = subjects.find(|subject| subject.name == device.name);
            if let Some(figures) = subject.and_then(|subject| subject.figures.device()) {
                unmet.take(&device.name, &device.load, figures);
            }
        }
        unmet
    }

    /// Who lost something worked less because of that.
    fn take(&mut self, name: &str, wanted: &Load, figures: &DeviceFigures) {
        let Some(share) = figures.cpu_share else {
            return;
        };
        let share_ppm = libm::round(share * 1e6) as u64;
        let (which, differs) = match wanted.beside(share_ppm) {
            Ordering::Less if figures.lost() == 0 => (&mut self.lighter, "less"),
            Ordering::Greater => (&mut self.heavier, "more"),
            Ordering::Less | Ordering::Equal => return,
        };
        let took = percent(share_ppm);
        which.push(format!(
            "the load of `{name}` was {took} % in the runs, {differs} than the {wanted} that are asked for"
        ));
    }

    /// Of a contract that was met by less than was asked for nobody knows; what was violated by less is so by more.
    pub(super) fn leave_open(&self, verdict: &mut Verdict) -> bool {
        let is_open = verdict.result == Outcome::Met && !self.lighter.is_empty();
        if is_open {
            verdict.result = Outcome::Inconclusive;
        }
        is_open
    }

    /// Tells why it was left open.
    pub(super) fn tell(&self, verdict: &mut VerdictJson) {
        verdict.reasons.splice(0..0, self.lighter.iter().cloned());
    }

    /// Where all is to go well besides, nobody knows of that either.
    pub(super) fn surprises(
        &self,
        variant: &ResolvedVariant,
    ) -> impl Iterator<Item = Surprise> + use<'_> {
        let expected = &variant.expect;
        let is_asked =
            expected.lost == Loss::None || expected.transfer == ExpectedOutcome::Complete;
        let lighter = self.lighter.iter().filter(move |_| is_asked);
        lighter.map(|what| Surprise {
            what: what.clone(),
            is_certain: false,
        })
    }

    /// All that is told nowhere else.
    pub(super) fn notes(&self, told: &[String]) -> Vec<String> {
        let all = self.lighter.iter().chain(&self.heavier);
        let is_told = |what: &&String| told.iter().any(|one| one.contains(&***what));
        all.filter(|what| !is_told(what)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::units;

    fn unmet(share: Option<f64>, lost: u64) -> Unmet {
        let mut unmet = Unmet::default();
        let figures = DeviceFigures {
            cpu_share: share,
            samples_overwritten: lost,
            ..DeviceFigures::default()
        };
        let wanted = units::load("14.7 % ± 0.7").expect("a load");
        unmet.take("modem", &wanted, &figures);
        unmet
    }

    fn judged(unmet: &Unmet, result: Outcome) -> Outcome {
        let mut verdict = Verdict {
            result,
            reasons: Vec::new(),
        };
        let is_open = unmet.leave_open(&mut verdict);
        assert_eq!(is_open, verdict.result != result);
        verdict.result
    }

    #[test]
    fn what_was_kept_with_too_small_a_load_is_not_met() {
        use Outcome::{Inconclusive, Met, Violated};
        let results = |unmet: &Unmet| [Met, Violated].map(|result| judged(unmet, result));
        for within in [unmet(Some(0.14), 0), unmet(Some(0.154), 0), unmet(None, 0)] {
            assert_eq!(within, Unmet::default());
            assert_eq!(results(&within), [Met, Violated]);
        }
        let lighter = unmet(Some(0.139), 0);
        let told = "the load of `modem` was 13.9 % in the runs, less than the 14.7 % ± 0.7 % that are asked for";
        assert_eq!(lighter.notes(&[]), [told]);
        assert_eq!(results(&lighter), [Inconclusive, Violated]);
        let heavier = unmet(Some(0.155), 0);
        let told = "the load of `modem` was 15.5 % in the runs, more than the 14.7 % ± 0.7 % that are asked for";
        assert_eq!(heavier.notes(&[]), [told]);
        assert_eq!(results(&heavier), [Met, Violated]);
        // It worked less because it was not let.
        assert_eq!(unmet(Some(0.12), 9), Unmet::default());
    }

    #[test]
    fn what_a_verdict_tells_is_not_told_again() {
        let lighter = unmet(Some(0.1), 0);
        let mut verdict = VerdictJson {
            result: Outcome::Inconclusive,
            reasons: vec!["another".to_owned()],
        };
        lighter.tell(&mut verdict);
        assert_eq!(verdict.reasons.len(), 2);
        assert!(lighter.notes(&verdict.reasons).is_empty());
    }
}
