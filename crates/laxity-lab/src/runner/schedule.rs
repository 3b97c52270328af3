//! Which runs are made, and in which order.

use laxity_model::Span;
use laxity_model::verify::contract::Expectation;

use super::RunError;
use crate::scenario::{Length, Resolved, ResolvedDevice, ResolvedVariant, Start, needs_control};

/// How often gaps are measured at the quick length: medians of five.
const QUICK_GAP_REPEATS: u32 = 5;

/// One run of one variant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlannedRun {
    /// The variant, as an index into [`Resolved::variants`].
    pub variant: usize,
    /// Counted from 0.
    pub repeat: u32,
    /// Where its call begins.
    pub start: Start,
    /// It only measures gaps once more: its transfer has no end.
    pub gaps_only: bool,
    /// How long it lasts at most.
    pub length: Span,
}

/// All runs at one length, live or in the twin, repeat by repeat, so that every variant lies close to its control in time.
///
/// At the quick length each variant is run once to the end of its transfer. What is compared with a control, and the controls, are
/// then run again and again for the length of [`LengthSpec::idle`](crate::scenario::LengthSpec::idle), with the transfer under way.
/// The twin has no noise to take medians of: there each run is made once a repeat of the scenario.
///
/// # Errors
///
/// [`RunError::Nothing`] if no variant runs there.
pub fn schedule(resolved: &Resolved, live: bool) -> Result<Vec<PlannedRun>, RunError> {
    let quick = resolved.length == Length::Quick && live;
    let least = if quick { QUICK_GAP_REPEATS } else { 0 };
    let mut runs = Vec::new();
    for repeat in 0..resolved.run.repeats.max(least) {
        for (index, variant) in resolved.variants.iter().enumerate() {
            let gaps_only = repeat >= resolved.run.repeats;
            if variant.runs(live) && (!gaps_only || is_compared(resolved, index)) {
                runs.push(planned(resolved, index, repeat, gaps_only));
            }
        }
    }
    if runs.is_empty() {
        return Err(RunError::Nothing(host_name(live)));
    }
    Ok(runs)
}

/// What a host is called, and so what it is for.
pub(super) const fn host_name(live: bool) -> &'static str {
    if live { "Linux" } else { "the twin" }
}

fn planned(resolved: &Resolved, index: usize, repeat: u32, gaps_only: bool) -> PlannedRun {
    let variant = &resolved.variants[index];
    let start = if gaps_only {
        Start::Connected
    } else {
        variant.start
    };
    let spared = |device: &ResolvedDevice| match start {
        Start::OnHook => Span::ZERO,
        Start::Connected => device.phases.or(resolved.run.phases).before_connection(),
    };
    // The time of the run is over when that of the longest call is.
    let length = match variant.devices.iter().map(spared).min() {
        Some(spared) if !gaps_only => resolved.run.limit.saturating_sub(spared),
        _ => resolved.run.idle,
    };
    PlannedRun {
        variant: index,
        repeat,
        start,
        gaps_only,
        length,
    }
}

/// Whether a variant is compared with a control and something is expected of that, or is such a control.
fn is_compared(resolved: &Resolved, index: usize) -> bool {
    let compares = |variant: &ResolvedVariant| {
        let mut all = variant.contracts.iter();
        all.any(|(contract, expected)| *expected != Expectation::Any && needs_control(contract))
    };
    let controls = |variant: &ResolvedVariant| variant.control == Some(index) && compares(variant);
    compares(&resolved.variants[index]) || resolved.variants.iter().any(controls)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario;

    fn main_scenario(length: Length) -> Resolved {
        let text = include_str!("../../../../scenarios/soft-modem.toml");
        scenario::parse(text, "soft-modem.toml")
            .unwrap()
            .resolve(length)
    }

    fn times(resolved: &Resolved, runs: &[PlannedRun], name: &str) -> usize {
        let named = |run: &&PlannedRun| resolved.variants[run.variant].name == name;
        runs.iter().filter(named).count()
    }

    #[test]
    fn what_is_compared_is_measured_five_times_with_its_control_in_every_round() {
        let resolved = main_scenario(Length::Quick);
        let runs = schedule(&resolved, true).unwrap();
        for name in [
            "none",
            "interrupt",
            "thread-24",
            "reserved-slots",
            "reserved-deadline-cothread",
        ] {
            assert_eq!(times(&resolved, &runs, name), 5, "{name}");
        }
        // Nothing is expected of these against a control.
        for name in ["thread-8", "reserved-deadline", "rogue-slots"] {
            assert_eq!(times(&resolved, &runs, name), 1, "{name}");
        }
        assert!(runs.is_sorted_by_key(|run| run.repeat), "round by round");
        assert!(runs.iter().all(|run| run.gaps_only == (run.repeat > 0)));
    }

    #[test]
    fn the_twin_and_the_full_length_repeat_as_the_scenario_says() {
        let quick = main_scenario(Length::Quick);
        let runs = schedule(&quick, false).unwrap();
        assert_eq!(times(&quick, &runs, "interrupt"), 1);
        let full = main_scenario(Length::Full);
        let runs = schedule(&full, true).unwrap();
        assert_eq!(times(&full, &runs, "rogue-slots"), 5);
        assert!(runs.iter().all(|run| !run.gaps_only));
    }
}
