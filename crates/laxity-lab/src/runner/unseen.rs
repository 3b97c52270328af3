//! Of which losses nobody saw whose doing they were, so that they convict nobody.

use laxity::observe::Loss;
use laxity_model::enforce::Witness;
use laxity_model::verify::contract::{HaltsUnseen, RunFacts};
use laxity_model::{Enforcer, ProcessorId, Reservation, Span};

use super::RunDone;
use super::figures::Component;
use crate::scenario::kinds::SAMPLES_LOST;
use crate::scenario::{Resolved, ResolvedTask, ResolvedVariant};

/// Why what was lost convicts nobody.
pub(super) const TOLD: &str =
    "; the machine stood still, or was held, as often, and not every such halt is seen";

/// Whether what a device lost may be the doing of somebody, or of halts, that nobody saw. Who has no reservation was promised nothing: what it lost while
/// its processor was held is not its own doing. Beside budgets of `SCHED_DEADLINE`, a halt that begins while the witness waits
/// for all of them is not told from those; and what was lost is no more than as many as were seen could do.
pub(super) fn halts(
    variant: &ResolvedVariant,
    component: &Component<'_>,
    runs: &[&RunDone],
    tick: Span,
) -> HaltsUnseen {
    let name = component.runs.first().map(|seen| &seen.probe.subject.name);
    let device = variant.devices.iter().find(|one| Some(&one.name) == name);
    let Some(device) = device else {
        return HaltsUnseen::None;
    };
    let losses: Vec<_> = component.losses().collect();
    let is_open = match device.placing.request() {
        None => was_held(&losses),
        Some(request) if request.enforcer == Enforcer::Deadline => {
            let halts = runs.iter().flat_map(|run| &run.record.disturbances);
            let long = halts.filter(|halt| halt.length() >= Witness::BESIDE_BUDGETS);
            are_no_more(&losses, long.count(), overlooked(variant, tick))
        }
        Some(_) => false,
    };
    match is_open {
        true => HaltsUnseen::Of(SAMPLES_LOST),
        false => HaltsUnseen::None,
    }
}

/// The facts of a variant's runs. What halts of the machine do beside budgets of `SCHED_DEADLINE`, which hide them, they do as often as elsewhere in the same minutes.
pub(super) fn facts(
    of: RunFacts,
    index: usize,
    resolved: &Resolved,
    runs: &[RunDone],
    tick: Span,
) -> RunFacts {
    let hides = |index: usize| budgets(&resolved.variants[index]).next().is_some();
    if !hides(index) {
        return of;
    }
    let elsewhere = runs.iter().filter(|run| !hides(run.planned.variant));
    let elsewhere = RunFacts::of(elsewhere.map(|run| &run.record));
    of.beside_budgets(overlooked(&resolved.variants[index], tick), &elsewhere)
}

/// A halt of the machine no longer than this may go unseen beside a variant's budgets.
fn overlooked(variant: &ResolvedVariant, tick: Span) -> Span {
    let witness = Witness::of_experiment(ProcessorId(0));
    witness.outranked_by(budgets(variant), tick).overlooks()
}

/// Whether something was lost, and each time a processor was held for half of what the work took, or longer.
fn was_held(losses: &[&Loss]) -> bool {
    let mut each = losses.iter();
    !losses.is_empty() && each.all(|loss| loss.held * 2 >= took(loss))
}

fn took(loss: &Loss) -> Span {
    let [from, to] = loss.span;
    to.saturating_since(from)
}

/// What is reserved by `SCHED_DEADLINE` in a variant.
fn budgets(variant: &ResolvedVariant) -> impl Iterator<Item = Reservation> {
    let devices = variant.devices.iter().map(|one| one.placing.request());
    let requests = devices.chain(variant.tasks.iter().map(ResolvedTask::request));
    let of_the_kernel = requests
        .flatten()
        .filter(|request| request.enforcer == Enforcer::Deadline);
    of_the_kernel.map(|request| request.reservation)
}

/// Whether these are losses, and so many halts, each of which was `overlooked` and so was no longer than that, come to no less than they took. While the witness
/// was held for longer than by all budgets, it is that.
fn are_no_more(losses: &[&Loss], halts: usize, overlooked: Span) -> bool {
    let wanted = |loss: &&Loss| {
        let alone = took(loss).saturating_sub(loss.held);
        let least = u64::from(loss.held.is_zero());
        (alone / overlooked).max(least)
    };
    let wanted: u64 = losses.iter().map(wanted).sum();
    !losses.is_empty() && wanted <= halts as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_model::Instant;
    use laxity_model::verify::contract::Phase;

    fn lost(long_ms: u64, held_ms: u64) -> Loss {
        Loss {
            amount: 9,
            phase: Phase::CONNECTED,
            span: [0, long_ms].map(Instant::from_millis),
            service: None,
            halted: Span::ZERO,
            held: Span::from_millis(held_ms),
            reserved: true,
        }
    }

    #[test]
    fn losses_beside_the_kernels_reservations_convict_where_halts_were_seldomer() {
        let no_more = |losses: &[&Loss], halts| are_no_more(losses, halts, Span::from_millis(16));
        let (alone, beside) = (lost(30, 0), lost(30, 18));
        assert!(!no_more(&[], 3), "nothing was lost");
        assert!(!no_more(&[&alone], 0), "nothing stood still");
        assert!(no_more(&[&beside], 0), "the witness was held as well");
        assert!(no_more(&[&alone, &beside], 1));
        assert!(!no_more(&[&alone, &alone, &beside], 1));
        // Who was never served lost once, and for longer than a few halts that nobody sees.
        let never = lost(5_000, 0);
        assert!(!no_more(&[&never], 311));
        assert!(no_more(&[&never], 312));
        assert!(
            !no_more(&[&lost(5_000, 18)], 310),
            "held for a moment of it"
        );
    }

    /// The 90 samples of a modem without a reservation, whose processor was held for 18.8 ms.
    #[test]
    fn losses_of_who_was_promised_nothing_convict_where_nobody_held_the_processor() {
        let (alone, beside, touched) = (lost(30, 0), lost(24, 18), lost(3_000, 1));
        assert!(!was_held(&[]), "nothing was lost");
        assert!(was_held(&[&beside]));
        assert!(!was_held(&[&alone]));
        assert!(!was_held(&[&beside, &alone]), "one of them is its own");
        assert!(!was_held(&[&touched]), "its own calls were too long");
    }
}
