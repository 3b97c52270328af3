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
    title: &'static str,
    scenes: &'static [Scene],
    draw: fn(&Evidence, Figure) -> Figure,
}

const INT: Scene = Scene::dial_up(Driver::Interrupt);
const DPC: Scene = Scene::dial_up(Driver::Deferred);
const THR_24: Scene = Scene::dial_up(Driver::Thread24);
const THR_8: Scene = Scene::dial_up(Driver::Thread8);
const RES: Scene = Scene::dial_up(Driver::Reserved);

const PLANS: [Plan; 17] = [
    Plan {
        key: "figure-1",
        title: "Figure 1: rate of modem interrupts (INT)",
        scenes: &[INT],
        draw: interrupts::rate,
    },
    Plan {
        key: "figure-2",
        title: "Figure 2: elapsed times in the interrupt handler (INT)",
        scenes: &[INT],
        draw: interrupts::handler,
    },
    Plan {
        key: "figure-3",
        title: "Figure 3: processor utilization (INT)",
        scenes: &[INT],
        draw: interrupts::utilization,
    },
    Plan {
        key: "figure-4",
        title: "Figure 4: elapsed times in the interrupt handler and in the queued DPC (DPC)",
        scenes: &[INT, DPC],
        draw: interrupts::handler_and_deferred,
    },
    Plan {
        key: "figure-5",
        title: "Figure 5: samples pending with a normal-priority spinner (INT)",
        scenes: &[INT, DPC],
        draw: pending::interrupt,
    },
    Plan {
        key: "figure-6",
        title: "Figure 6: samples pending with a normal-priority spinner (THR 24)",
        scenes: &[INT, THR_24],
        draw: pending::thread_24,
    },
    Plan {
        key: "figure-7",
        title: "Figure 7: samples pending with a normal-priority spinner (THR 8)",
        scenes: &[THR_8],
        draw: pending::thread_8,
    },
    Plan {
        key: "figure-8",
        title: "Figure 8: elapsed times in a run of the thread (THR 24)",
        scenes: &[INT, THR_24],
        draw: elapsed::thread_24,
    },
    Plan {
        key: "figure-9",
        title: "Figure 9: elapsed times in a run of the thread (THR 8)",
        scenes: &[THR_8],
        draw: elapsed::thread_8,
    },
    Plan {
        key: "figure-10",
        title: "Figure 10: latency of a 1 ms callback without the modem",
        scenes: &[callbacks::ABSENT],
        draw: callbacks::absent,
    },
    Plan {
        key: "figure-11",
        title: "Figure 11: latency of a 1 ms callback beside the vendor's driver (INT)",
        scenes: &[callbacks::ABSENT, callbacks::INTERRUPT],
        draw: callbacks::interrupt,
    },
    Plan {
        key: "figure-12",
        title: "Figure 12: latency of a 1 ms callback beside the DPC version",
        scenes: &[callbacks::ABSENT, callbacks::DEFERRED],
        draw: callbacks::deferred,
    },
    Plan {
        key: "figure-13",
        title: "Figure 13: latency of a 1 ms callback beside the THR version (THR 24)",
        scenes: &[callbacks::ABSENT, callbacks::THREAD],
        draw: callbacks::thread,
    },
    Plan {
        key: "figure-14",
        title: "Figure 14: samples pending with a normal-priority spinner (RES 2/8)",
        scenes: &[INT, RES],
        draw: pending::reserved,
    },
    Plan {
        key: "figure-15",
        title: "Figure 15: elapsed times in a run of the thread (RES 2/8)",
        scenes: &[RES],
        draw: elapsed::reserved,
    },
    Plan {
        key: "figure-16",
        title: "Figure 16: latency of a 1 ms callback beside the RES version (RES 2/8)",
        scenes: &[callbacks::ABSENT, callbacks::THREAD, callbacks::RESERVED],
        draw: callbacks::reserved,
    },
    Plan {
        key: "stress",
        title: "Section 6.1: the stress run, a spinner and a search of the whole disk",
        scenes: &stress::SCENES,
        draw: stress::draw,
    },
];

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
    let draw = |plan: &Plan| {
        let empty = Figure {
            key: plan.key.into(),
            title: plan.title.into(),
            about: String::new(),
            charts: Vec::new(),
            compared: Vec::new(),
            tables: Vec::new(),
            remarks: Vec::new(),
        };
        (plan.key, (plan.draw)(&evidence, empty))
    };
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
