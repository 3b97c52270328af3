//! The runs that figures are drawn from: a scenario of their own, in the twin as the study made them, on this machine shorter.
//!
//! On this machine the callback is measured while data flows, 30,000 wake-ups in all, its variants by turns so that none has a quieter time of the
//! machine than another. Placements are emulations; what they are stands with the live host.

use std::sync::LazyLock;

use laxity_devices::modem::CardClock;
use laxity_lab::bench::{Request, Runner, scene};
use laxity_lab::observe::Probes;
use laxity_lab::runner::compose::RunSpec;
use laxity_lab::scenario::{Phases, Resolved, ResolvedVariant, Start, TaskKind};
use laxity_model::{HostError, Program, RunRecord, Span};

use super::disk;
use super::readings::Readings;

/// The study's traces end five seconds after the connection (§6.2.3).
const TRACE: Span = Span::from_secs(28);
/// On this machine: almost half of it with data.
const LIVE_TRACE: Span = Span::from_secs(8);
/// A dial-up in which nobody has to wait for 23 s.
const LIVE_PHASES: Phases = Phases {
    on_hook: Span::from_secs(1),
    dialing: Span::from_secs(2),
    training: Span::from_millis(1_500),
};
/// 30,000 wake-ups a millisecond apart (§6.3.1); on this machine those of all rounds together.
const CALLBACKS: Span = Span::from_secs(30);
/// Calls beside each callback in the twin, each with a seed of its own: so they lie in ten different ways to the host's clock, as the study's card
/// did by chance.
const CALLS: u32 = 10;
/// So many rounds of the callback on this machine, unless asked otherwise.
const ROUNDS: u32 = 3;
/// Rounds of less than 3 s say little.
const MOST_ROUNDS: u32 = 10;

/// The scenario.
pub(in crate::modem) static SCENES: LazyLock<Resolved> =
    LazyLock::new(|| scene::scenario(include_str!("../../../data/modem-runs.toml")));

/// A run of a variant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// Its place in [`SCENES`].
    variant: usize,
    /// Which call beside the callback, or which round of it, from 0.
    number: u32,
    seed: u64,
    length: Span,
    /// Receivers besides the first in the modem, as load.
    further_receivers: usize,
}

/// The seed of a call among those of a seed that was asked for: no two seeds have one in common.
fn seed_of(seed: u64, number: u32) -> u64 {
    seed.wrapping_mul(1_000).wrapping_add(u64::from(number))
}

/// A callback is measured in it.
fn has_callback(variant: &ResolvedVariant) -> bool {
    let mut tasks = variant.tasks.iter();
    tasks.any(|task| matches!(task.kind, TaskKind::Periodic { .. }))
}

/// The variants of these names, in the order of the scenario.
fn named(names: &[&str]) -> impl Iterator<Item = (usize, &'static ResolvedVariant)> + Clone {
    let named: Vec<bool> = SCENES
        .variants
        .iter()
        .map(|variant| names.contains(&variant.name.as_str()))
        .collect();
    let all = SCENES.variants.iter().enumerate();
    all.filter(move |(place, _)| named[*place])
}

/// The twin's runs of these scenes.
pub(super) fn in_twin(names: &[&str], seed: u64) -> Vec<Run> {
    let calls = |(variant, scene): (usize, &ResolvedVariant)| {
        let (calls, length) = match (has_callback(scene), scene.devices.is_empty()) {
            (true, false) => (CALLS, CALLBACKS),
            (true, true) => (1, CALLBACKS),
            (false, _) => (1, TRACE),
        };
        (0..calls).map(move |number| Run {
            variant,
            number,
            seed: seed_of(seed, number),
            length,
            further_receivers: 0,
        })
    };
    named(names).flat_map(calls).collect()
}

/// How many rounds of the callback are made on this machine.
pub(super) fn rounds(request: &Request) -> u32 {
    request.repeats.unwrap_or(ROUNDS).clamp(1, MOST_ROUNDS)
}

/// The runs of these scenes on this machine: the dial-ups, and then the callback's variants by turns.
pub(super) fn here(names: &[&str], request: &Request, further_receivers: usize) -> Vec<Run> {
    let rounds = rounds(request);
    let run = |variant, number: u32, length| Run {
        variant,
        number,
        seed: seed_of(request.seed, number),
        length,
        further_receivers,
    };
    let scenes = named(names);
    let dial_ups = scenes.clone().filter(|(_, scene)| !has_callback(scene));
    let dial_ups = dial_ups.map(|(place, _)| run(place, 0, LIVE_TRACE));
    let callbacks = scenes.filter(|(_, scene)| has_callback(scene));
    let length = CALLBACKS / u64::from(rounds);
    let by_turns = (0..rounds).flat_map(|round| {
        let each = callbacks.clone();
        each.map(move |(place, _)| run(place, round, length))
    });
    dial_ups.chain(by_turns).collect()
}

impl Run {
    pub(super) fn scene(&self) -> &'static ResolvedVariant {
        &SCENES.variants[self.variant]
    }

    /// Its name in progress and messages.
    pub(in crate::modem) fn name(&self) -> String {
        self.scene().about.clone()
    }

    /// Makes it.
    ///
    /// # Errors
    ///
    /// The host's.
    pub(in crate::modem) fn make(&self, host: &mut Runner<'_>) -> Result<Readings, HostError> {
        let (record, probes) = self.record(host, |_| ())?;
        let mut readings = Readings::of(&record, &probes)?;
        readings.said = host.said();
        Ok(readings)
    }

    /// What was recorded of it, with what is `added` to its program.
    pub(super) fn record(
        &self,
        host: &mut Runner<'_>,
        added: impl FnOnce(&mut Program),
    ) -> Result<(RunRecord, Probes), HostError> {
        let mut scene = self.scene().clone();
        if host.is_live() {
            let phases = if has_callback(&scene) {
                Phases::SHORT
            } else {
                LIVE_PHASES
            };
            let devices = scene.devices.iter_mut();
            devices.for_each(|device| device.set_phases(phases));
        }
        let start = match host.is_live() && has_callback(&scene) {
            true => Start::Connected,
            false => Start::OnHook,
        };
        let spec = RunSpec {
            seed: self.seed,
            mss_bytes: SCENES.mss_bytes,
            further_receivers: self.further_receivers,
            start,
            gaps_only: true,
            clock: CardClock::default(),
        };
        let is_search = |kind: &TaskKind| matches!(kind, TaskKind::Command { .. });
        let has_disk = !host.is_live() && scene.tasks.iter().any(|task| is_search(&task.kind));
        let twin = (!host.is_live()).then_some(SCENES.host.profile);
        let scene = (&*SCENES, &scene, twin);
        scene::run(host, scene, spec, self.length, |program, _| {
            if has_disk {
                disk::install(program, self.seed);
            }
            added(program);
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn neighbouring_seeds_have_no_call_in_common() {
        let name = ["callback-int"];
        let seeds = |runs: Vec<Run>| -> BTreeSet<u64> { runs.iter().map(|run| run.seed).collect() };
        let here = |seed| {
            let request = Request {
                seed,
                ..Request::default()
            };
            seeds(here(&name, &request, 0))
        };
        let of = [1, 2].map(|seed| [seeds(in_twin(&name, seed)), here(seed)]);
        assert_eq!(of[0].each_ref().map(BTreeSet::len), [10, 3]);
        for (one, other) in of[0].iter().zip(&of[1]) {
            assert!(one.is_disjoint(other), "{one:?} {other:?}");
        }
    }
}
