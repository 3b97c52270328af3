//! Loads that devices made in runs, where these are not what was asked for: each was measured alone before, and a machine is fast and slow by turns.

use std::cmp::Ordering;

use super::conclude::Circumstances;
use crate::evidence::results::VariantResults;
use crate::evidence::subjects::DeviceFigures;
use crate::layout::percent;
use crate::scenario::ResolvedVariant;
use crate::scenario::units::Load;

/// What differs from what was asked for by more than its tolerance, each in a sentence: of the devices of a variant whose work was repeated so that it makes a load. It is told beside a verdict, and decides none: as much
/// was to be done as where it was measured, on a machine that was faster or slower then. In a twin work takes what it is said to take.
pub(super) fn loads(
    variant: &ResolvedVariant,
    circumstances: &Circumstances,
    results: &VariantResults,
) -> Vec<String> {
    let devices = variant.devices.iter().filter(|_| circumstances.live);
    let repeated = devices.filter(|device| device.device.fewest_repeats().is_some());
    let unmet = repeated.filter_map(|device| {
        let mut subjects = results.subjects.iter();
        let subject = subjects.find(|subject| subject.name == device.name)?;
        load(&device.name, &device.load, subject.figures.device()?)
    });
    unmet.collect()
}

/// Who lost something worked less because of that.
fn load(name: &str, wanted: &Load, figures: &DeviceFigures) -> Option<String> {
    let share_ppm = libm::round(figures.cpu_share? * 1e6) as u64;
    let differs = match wanted.beside(share_ppm) {
        Ordering::Less if figures.lost() == 0 => "less",
        Ordering::Greater => "more",
        Ordering::Less | Ordering::Equal => return None,
    };
    let took = percent(share_ppm);
    Some(format!(
        "the load of `{name}` was {took} % in the runs, {differs} than the {wanted} that are asked for"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::units;

    fn told(share: Option<f64>, lost: u64) -> Option<String> {
        let figures = DeviceFigures {
            cpu_share: share,
            samples_overwritten: lost,
            ..DeviceFigures::default()
        };
        let wanted = units::load("14.7 % ± 0.7").expect("a load");
        load("modem", &wanted, &figures)
    }

    #[test]
    fn what_is_beyond_the_tolerance_is_told_whichever_way() {
        for within in [told(Some(0.14), 0), told(Some(0.154), 0), told(None, 0)] {
            assert_eq!(within, None);
        }
        let said = |share, lost| told(share, lost).unwrap();
        assert_eq!(
            said(Some(0.139), 0),
            "the load of `modem` was 13.9 % in the runs, less than the 14.7 % ± 0.7 % that are asked for"
        );
        assert!(said(Some(0.155), 9).contains("15.5 % in the runs, more than"));
        // It worked less because it was not let.
        assert_eq!(told(Some(0.12), 9), None);
    }
}
