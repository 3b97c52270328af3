//! Which runs are made, and in which order.

use laxity_model::Span;
use laxity_model::verify::contract::Expectation;

use super::RunError;
use crate::scenario::{
    Length, Outcome, Resolved, ResolvedDevice, ResolvedVariant, Start, needs_control,
};

/// How often gaps are measured at the quick length of a variant that is to have no more than its control.
const QUICK_GAP_REPEATS: u32 = 3;
/// And of the control: each run of the variant is to exceed the largest of these.
const QUICK_CONTROL_REPEATS: u32 = 5;

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
/// At the quick length each variant is run once to the end of its transfer, or, if it begins with it and nothing is expected of it, for
/// the length of [`LengthSpec::idle`](crate::scenario::LengthSpec::idle). What is to meet a limit against a control, and the controls, are then run again
/// for that length, with the transfer under way; what is to break one by far needs no median.
/// The twin has no noise to take medians of: there each run is made once a repeat of the scenario.
///
/// # Errors
///
/// [`RunError::Nothing`] if no variant runs there.
pub fn schedule(resolved: &Resolved, live: bool) -> Result<Vec<PlannedRun>, RunError> {
    let quick = resolved.length == Length::Quick && live;
    let wanted = |index: usize| match quick {
        true => resolved.run.repeats.max(quick_repeats(resolved, index)),
        false => resolved.run.repeats,
    };
    let rounds = (0..resolved.variants.len()).map(wanted).max().unwrap_or(0);
    let mut runs = Vec::new();
    for repeat in 0..rounds {
        for (index, variant) in resolved.variants.iter().enumerate() {
            if variant.runs(live) && repeat < wanted(index) {
                let gaps_only = repeat >= resolved.run.repeats;
                runs.push(planned(resolved, index, repeat, (gaps_only, quick)));
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

fn planned(
    resolved: &Resolved,
    index: usize,
    repeat: u32,
    (gaps_only, quick): (bool, bool),
) -> PlannedRun {
    let variant = &resolved.variants[index];
    let start = if gaps_only {
        Start::Connected
    } else {
        variant.start
    };
    let before = |device: &ResolvedDevice| device.device.before_transfer(resolved.run.phases);
    let spared = variant.devices.iter().filter_map(before);
    let spared = spared.map(|before| match start {
        Start::OnHook => Span::ZERO,
        Start::Connected => before,
    });
    // The time of the run is over when that of the longest call is.
    let is_awaited = variant.expect.transfer != Outcome::Any || start == Start::OnHook;
    let length = match spared.min() {
        Some(spared) if !gaps_only && (is_awaited || !quick) => {
            resolved.run.limit.saturating_sub(spared)
        }
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

/// How long the longest run on Linux is of those in which a reservation is to be proposed to a device.
///
/// # Errors
///
/// Those of [`schedule`].
pub(super) fn longest_open(resolved: &Resolved, device: &ResolvedDevice) -> Result<Span, RunError> {
    let runs = schedule(resolved, true)?.into_iter();
    let open = runs.filter(|run| resolved.variants[run.variant].leaves_open(device));
    Ok(open.map(|run| run.length).max().unwrap_or(Span::ZERO))
}

/// How often a variant's gaps are measured at the quick length.
fn quick_repeats(resolved: &Resolved, index: usize) -> u32 {
    let compares = |variant: &ResolvedVariant| {
        let mut all = variant.contracts.iter();
        all.any(|(contract, expected)| *expected == Expectation::Met && needs_control(contract))
    };
    let controls = |variant: &ResolvedVariant| variant.control == Some(index) && compares(variant);
    match compares(&resolved.variants[index]) {
        _ if resolved.variants.iter().any(controls) => QUICK_CONTROL_REPEATS,
        true => QUICK_GAP_REPEATS,
        false => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::load::calls_for;
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
    fn what_is_to_be_no_more_than_a_control_is_measured_again_and_the_control_more_often() {
        let resolved = main_scenario(Length::Quick);
        let runs = schedule(&resolved, true).unwrap();
        for name in ["none", "none-cothread-reserved"] {
            assert_eq!(times(&resolved, &runs, name), 5, "{name}");
        }
        for name in ["thread-24", "reserved-slots", "reserved-deadline-cothread"] {
            assert_eq!(times(&resolved, &runs, name), 3, "{name}");
        }
        // Nothing is expected of these against a control, or that they are far beyond it.
        for name in ["interrupt", "thread-8", "reserved-deadline", "rogue-slots"] {
            assert_eq!(times(&resolved, &runs, name), 1, "{name}");
        }
        assert!(runs.is_sorted_by_key(|run| run.repeat), "round by round");
        assert!(runs.iter().all(|run| run.gaps_only == (run.repeat > 0)));
    }

    #[test]
    fn a_transfer_of_which_nothing_is_expected_is_not_waited_for() {
        let quick = main_scenario(Length::Quick);
        let length = |live: bool| {
            let runs = schedule(&quick, live).unwrap();
            let mut runs = runs.iter();
            let named = |run: &&PlannedRun| quick.variants[run.variant].name == "rogue-thread";
            runs.find(named).unwrap().length
        };
        assert_eq!(length(true), quick.run.idle);
        assert!(length(false) > quick.run.idle);
    }

    /// Of an hour of audio more calls are measured than of a few minutes; how long others' transfers may take is nothing to it.
    #[test]
    fn calls_are_measured_for_the_longest_run_that_leaves_the_device_open() {
        let text = "[full]\nrepeats = 1\nidle = \"3600s\"\nlimit = \"7200s\"\n\
            [devices.player]\nkind = \"audio\"\n[devices.modem]\nkind = \"soft-modem\"\n\
            [variants.a.placement]\nplayer = \"reserved auto/8ms\"\nmodem = \"absent\"\n\
            [variants.b.placement]\nplayer = \"thread 24\"\nmodem = \"reserved auto/8ms\"\n";
        let parsed = scenario::parse(text, "test.toml").unwrap();
        let resolved = parsed.resolve(Length::Full);
        let mut devices = resolved.variants.iter().flat_map(|one| &one.devices);
        let mut calls = |name: &str| {
            let device = devices.find(|device| device.name == name).unwrap();
            calls_for(
                longest_open(&resolved, device).unwrap(),
                device.device.period(),
            )
        };
        assert_eq!([calls("player"), calls("modem")], [11_250, 18_000]);
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
