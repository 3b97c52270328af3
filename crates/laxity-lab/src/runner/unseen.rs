//! Of which losses nobody saw whose doing they were, so that they convict nobody.

use laxity::observe::Loss;
use laxity_model::enforce::Witness;
use laxity_model::verify::contract::{Doubts, HaltsUnseen};
use laxity_model::{Enforcer, ProcessorId, Span};

use super::RunDone;
use super::figures::Component;
use crate::scenario::kinds::LOSSES;
use crate::scenario::{Resolved, ResolvedVariant};

/// Why what was lost convicts nobody.
pub(super) const TOLD: &str =
    "; the machine stood still as often, and beside SCHED_DEADLINE not every such halt is seen";

/// What nobody knows of a component of a variant.
///
/// Beside budgets of `SCHED_DEADLINE`, which outrank the witness, a halt that begins while it waits for all of them is not told from those. There the machine
/// halts as often as in runs without budgets, made in the same minutes; and what a device lost that is held so convicts nobody if as many halts
/// as were seen could have done it.
pub(super) fn doubts(
    resolved: &Resolved,
    index: usize,
    component: &Component<'_>,
    runs: &[RunDone],
    tick: Span,
) -> Doubts {
    let own = component.doubts();
    if !hides_halts(&resolved.variants[index]) {
        return own;
    }
    let elsewhere = runs
        .iter()
        .filter(|run| !hides_halts(&resolved.variants[run.planned.variant]));
    let elsewhere = Doubts::of(elsewhere.map(|run| (&run.record, component.ran())));
    Doubts {
        looks_ppm: own.looks_ppm.max(elsewhere.looks_ppm),
        halts_unseen: match own.halts_unseen {
            HaltsUnseen::None => losses_unseen(&resolved.variants[index], component, tick),
            all => all,
        },
        ..own
    }
}

/// Whether budgets of `SCHED_DEADLINE` hide halts from who looks for them.
fn hides_halts(variant: &ResolvedVariant) -> bool {
    variant.budgets().next().is_some()
}

fn losses_unseen(variant: &ResolvedVariant, component: &Component<'_>, tick: Span) -> HaltsUnseen {
    let name = component.runs.first().map(|seen| &seen.probe.subject.name);
    let device = variant.devices.iter().find(|one| Some(&one.name) == name);
    let request = device.and_then(|device| device.placing.request());
    let losses: Vec<_> = component.losses().collect();
    let halts = component
        .runs
        .iter()
        .flat_map(|seen| seen.run.record.standstills());
    let long = halts.filter(|halt| halt.length() >= Witness::BESIDE_BUDGETS);
    let is_open = request.is_some_and(|request| request.enforcer == Enforcer::Deadline)
        && are_no_more(&losses, long.count(), overlooked(variant, tick));
    match is_open {
        true => HaltsUnseen::Of(LOSSES),
        false => HaltsUnseen::None,
    }
}

/// A halt of the machine no longer than this may go unseen beside a variant's budgets; zero where it has none.
pub(super) fn overlooked(variant: &ResolvedVariant, tick: Span) -> Span {
    let witness = Witness::of_experiment(ProcessorId(0)).outranked_by(variant.budgets(), tick);
    match hides_halts(variant) {
        true => witness.overlooks(),
        false => Span::ZERO,
    }
}

/// Whether these are losses, and so many halts, each of which was `overlooked` and so was no longer than that, come to what they took, but for what is less than one: a loss is told with the time in which
/// what had come in was worked off, which goes on after its halt. While the witness was held for longer than by all budgets, it is that.
fn are_no_more(losses: &[&Loss], halts: usize, overlooked: Span) -> bool {
    let wanted = |loss: &&Loss| {
        let alone = loss.took().saturating_sub(loss.held);
        let least = u64::from(loss.held.is_zero());
        (alone / overlooked).max(least)
    };
    let wanted: u64 = losses.iter().map(wanted).sum();
    !losses.is_empty() && wanted <= halts as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::admit::{ready_for_twin, supply};
    use crate::runner::figures::components;
    use crate::runner::run_one;
    use crate::runner::schedule::schedule;
    use crate::scenario::Length;
    use laxity::Twin;
    use laxity_model::enforce::WITNESS_ACTIVITY;
    use laxity_model::enforce::machine::Machine;
    use laxity_model::verify::contract::Phase;
    use laxity_model::{Disturbance, Event, EventKind, Host, Instant};

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

    /// An executor's budget is one, however many take turns on it: they hid halts of as many times its length.
    #[test]
    fn tasks_on_an_executor_overlook_no_more_than_one_alone() {
        let overlooked_by = |tasks: u32| {
            let shared = r#"title = "x"
quick = { limit = "1s" }
executors.shared = { policy = "edf", placement = "reserved 2ms/20ms", enforcer = "deadline" }
variants.it = { on = "live", expect = "any" }
"#;
            let task = |number| {
                format!(
                    "tasks.t{number} = {{ kind = \"periodic\", period = \"100ms\", service = \"0.1ms\", on = \"shared\" }}\n"
                )
            };
            let text: String = [shared.to_owned()]
                .into_iter()
                .chain((0..tasks).map(task))
                .collect();
            let scenario = crate::scenario::parse(&text, "x.toml").expect("a scenario");
            let resolved = scenario.resolve(Length::Quick);
            overlooked(&resolved.variants[0], Span::from_millis(4))
        };
        // The budget, a tick, two periods of the witness, and what is short.
        assert_eq!(overlooked_by(1), Span::from_millis(8));
        assert_eq!(overlooked_by(6), overlooked_by(1));
    }

    /// A run in which a processor crawled from 0.1 s to 0.2 s, and these of its witness were late from then to then, in milliseconds.
    fn crawled(resolved: &Resolved, late: &[[u64; 2]]) -> RunDone {
        let mut host = Twin::linux(&Machine::without_costs(250), 1);
        let supply = supply(&mut host, resolved).expect("a supply");
        let planned = schedule(resolved, true).expect("a run").remove(0);
        let ready = ready_for_twin(resolved, planned, &supply).expect("a program");
        let event = |kind, ms: [u64; 2]| Event {
            at: Instant::from_millis(ms[1]),
            kind,
            processor: ProcessorId(0),
            activity: WITNESS_ACTIVITY,
            args: ms.map(|ms| Instant::from_millis(ms).as_nanos()),
        };
        let done = run_one(resolved, ready, |_, admitted, length| {
            let mut record = host.run(admitted, length)?;
            let crawl = event(EventKind::Crawled, [100, 200]);
            record.crawled = vec![Disturbance::of(&crawl)];
            record.disturbances.clone_from(&record.crawled);
            let late = late.iter().map(|ms| event(EventKind::Disturbed, *ms));
            record.events.extend(late.chain([crawl]));
            record.events.sort_by_key(|event| event.at);
            Ok((record, Vec::new()))
        });
        done.expect("a run")
    }

    /// Of a halt in the middle of a crawl the events alone tell.
    #[test]
    fn a_halt_beside_a_crawl_may_have_cost_what_was_lost_and_the_crawl_may_not() {
        let text = r#"title = "x"
quick = { idle = "1s" }
devices.player = { kind = "audio" }
variants.it = { on = "live", placement = "reserved 2ms/10ms", enforcer = "deadline", expect = "any" }
"#;
        let scenario = crate::scenario::parse(text, "x.toml").expect("a scenario");
        let resolved = scenario.resolve(Length::Quick);
        let unseen = |late: &[[u64; 2]]| {
            let mut done = crawled(&resolved, late);
            done.observations[0].losses = vec![lost(5, 0)];
            let all = components(&[&done], &[]);
            losses_unseen(&resolved.variants[0], &all[0], Span::from_millis(4))
        };
        assert_eq!(unseen(&[]), HaltsUnseen::None);
        assert_eq!(unseen(&[[110, 130]]), HaltsUnseen::Of(LOSSES));
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
}
