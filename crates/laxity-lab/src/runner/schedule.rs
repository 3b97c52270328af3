//! Which runs are made, and in which order.

use laxity_model::Span;
use laxity_model::contract::{Bound, Limit};

use crate::scenario::{Length, Resolved, ResolvedVariant};

/// How often gaps are measured at the quick length: medians of five.
const QUICK_GAP_REPEATS: u32 = 5;

/// One run of one variant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlannedRun {
    /// The variant, as an index into [`Resolved::variants`].
    pub variant: usize,
    /// Counted from 0.
    pub repeat: u32,
    /// Whether it begins in the midst of the transfer, which was run ahead.
    pub run_ahead: bool,
    /// How long it lasts at most.
    pub length: Span,
}

/// All runs at one length, live or in the twin, repeat by repeat, so that every variant lies close to its control in time.
///
/// At the quick length each variant is run once from on hook to the end of its transfer. What is compared with a control, and the
/// controls, are then run again and again for the length of [`LengthSpec::idle`](crate::scenario::LengthSpec::idle), with the
/// transfer under way. The twin has no noise to take medians of: there each run is made once a repeat of the scenario.
#[must_use]
pub fn schedule(
    resolved: &Resolved,
    runs_here: impl Fn(&ResolvedVariant) -> bool,
    live: bool,
) -> Vec<PlannedRun> {
    let quick = resolved.length == Length::Quick && live;
    let repeats = if quick {
        resolved.run.repeats.max(QUICK_GAP_REPEATS)
    } else {
        resolved.run.repeats
    };
    let mut runs = Vec::new();
    for repeat in 0..repeats {
        for (index, variant) in resolved.variants.iter().enumerate() {
            let again = repeat >= resolved.run.repeats;
            if !runs_here(variant) || (again && !is_compared(resolved, index)) {
                continue;
            }
            let idle = variant.devices.is_empty() || again;
            let length = if idle {
                resolved.run.idle
            } else {
                resolved.run.limit
            };
            runs.push(PlannedRun {
                variant: index,
                repeat,
                run_ahead: again,
                length,
            });
        }
    }
    runs
}

/// Whether a variant is compared with a control, or is one.
fn is_compared(resolved: &Resolved, index: usize) -> bool {
    let relative = |limit: &Limit| matches!(limit.bound, Bound::AtMostTimesControl { .. });
    let compares = |variant: &ResolvedVariant| {
        variant
            .contracts
            .iter()
            .any(|(contract, _)| contract.limits.iter().any(relative))
    };
    compares(&resolved.variants[index])
        || resolved
            .variants
            .iter()
            .any(|variant| variant.control == Some(index) && compares(variant))
}
