//! Figures 1 to 16 of the study, and its stress run: which runs each is drawn from, and how.
//!
//! * [`scene`]: the runs; [`twin`] and [`live`]: making them; [`readings`]: what is read from one.
//! * [`interrupts`]: figures 1 to 4; [`pending`]: 5 to 7 and 14; [`elapsed`]: 8, 9 and 15; [`callbacks`]: 10 to 13 and 16; [`stress`].
//! * [`parts`]: what all of them are made of. [`disk`]: the twin's disk. [`quoted`]: what the study prints.

mod callbacks;
mod disk;
mod elapsed;
mod interrupts;
mod live;
mod parts;
mod pending;
mod quoted;
mod readings;
mod scene;
mod stress;
mod twin;

use std::collections::{BTreeMap, BTreeSet};

use super::TEXT;
use laxity_lab::bench::Request;
use laxity_lab::report::{Check, Figure};
use laxity_lab::runner::{Progress, RunError};
use readings::Readings;
use scene::{Driver, Scene};

/// What was seen of all runs.
pub(super) struct Evidence {
    twin: BTreeMap<Scene, Vec<Readings>>,
    live: BTreeMap<Scene, Vec<Readings>>,
}

impl Evidence {
    /// The twin's run of a scene that the figure names; the first, where there are several.
    fn twin(&self, scene: Scene) -> &Readings {
        &self.twin[&scene][0]
    }

    /// All of them.
    fn twin_calls(&self, scene: Scene) -> &[Readings] {
        &self.twin[&scene]
    }

    /// The runs on this machine; none if it was not asked for.
    fn live(&self, scene: Scene) -> &[Readings] {
        self.live.get(&scene).map_or(&[], Vec::as_slice)
    }

    /// The first of them.
    fn live_one(&self, scene: Scene) -> Option<&Readings> {
        self.live(scene).first()
    }
}

/// A figure: how it is called, which runs it needs, and how it is drawn from them.
struct Plan {
    key: &'static str,
    scenes: &'static [Scene],
    draw: fn(&Evidence, Figure) -> Figure,
}

const INT: Scene = Scene::dial_up(Driver::Interrupt);
const DPC: Scene = Scene::dial_up(Driver::Deferred);
const THR_24: Scene = Scene::dial_up(Driver::Thread24);
const THR_8: Scene = Scene::dial_up(Driver::Thread8);
const RES: Scene = Scene::dial_up(Driver::Reserved);

const PLANS: [Plan; 17] = [
    plan("figure-1", &[INT], interrupts::rate),
    plan("figure-2", &[INT], interrupts::handler),
    plan("figure-3", &[INT], interrupts::utilization),
    plan("figure-4", &[INT, DPC], interrupts::handler_and_deferred),
    plan("figure-5", &[INT, DPC], pending::interrupt),
    plan("figure-6", &[INT, THR_24], pending::thread_24),
    plan("figure-7", &[THR_8], pending::thread_8),
    plan("figure-8", &[INT, THR_24], elapsed::thread_24),
    plan("figure-9", &[THR_8], elapsed::thread_8),
    plan("figure-10", &[callbacks::ABSENT], callbacks::absent),
    plan(
        "figure-11",
        &[callbacks::ABSENT, callbacks::INTERRUPT],
        callbacks::interrupt,
    ),
    plan(
        "figure-12",
        &[callbacks::ABSENT, callbacks::DEFERRED],
        callbacks::deferred,
    ),
    plan(
        "figure-13",
        &[callbacks::ABSENT, callbacks::THREAD],
        callbacks::thread,
    ),
    plan("figure-14", &[INT, RES], pending::reserved),
    plan("figure-15", &[RES], elapsed::reserved),
    plan(
        "figure-16",
        &[callbacks::ABSENT, callbacks::THREAD, callbacks::RESERVED],
        callbacks::reserved,
    ),
    plan("stress", &stress::SCENES, stress::draw),
];

/// A figure from what it needs.
const fn plan(
    key: &'static str,
    scenes: &'static [Scene],
    draw: fn(&Evidence, Figure) -> Figure,
) -> Plan {
    Plan { key, scenes, draw }
}

/// What came of the figures.
pub(super) struct Drawn {
    /// By key.
    pub(super) figures: BTreeMap<&'static str, Figure>,
    /// What is claimed of them.
    pub(super) checks: Vec<Check>,
    /// How the live runs were made; none if there were none.
    pub(super) circumstances: Vec<(&'static str, String)>,
}

/// Makes all runs that the figures asked for need, and draws them. The twin's runs take seconds; those on this machine up to four minutes.
pub(super) fn figures(request: &Request, progress: &mut dyn Progress) -> Result<Drawn, RunError> {
    let wanted = || PLANS.iter().filter(|plan| request.wants(plan.key));
    let scenes: BTreeSet<Scene> = wanted().flat_map(|plan| plan.scenes).copied().collect();
    let scenes: Vec<Scene> = scenes.into_iter().collect();
    let twin = twin::run(&scenes, request, progress)?;
    let mut evidence = Evidence {
        twin,
        live: BTreeMap::new(),
    };
    let mut circumstances = Vec::new();
    if request.live && !scenes.is_empty() {
        let made = live::run(&scenes, request, progress)?;
        evidence.live = made.readings;
        circumstances = made.circumstances;
    }
    let draw = |plan: &Plan| (plan.key, (plan.draw)(&evidence, TEXT.blank(plan.key)));
    Ok(Drawn {
        figures: wanted().map(draw).collect(),
        checks: checks(&evidence),
        circumstances,
    })
}

/// What must hold of the runs that were made.
fn checks(evidence: &Evidence) -> Vec<Check> {
    let mut checks = Vec::new();
    for (scene, calls) in &evidence.twin {
        let damage: u64 = calls.iter().map(|run| run.damage().1).sum();
        let goes_on = calls.iter().all(|run| run.outcome.is_none());
        if matches!(scene.driver, Driver::Absent | Driver::Thread8) {
            continue;
        }
        checks.push(Check {
            claim: format!("twin, {}: the modem loses no sample", scene.name()),
            held: damage == 0 && goes_on,
            seen: format!(
                "{damage} samples lost or sent as garbage in {}",
                parts::calls(calls.len())
            ),
        });
    }
    checks
}
