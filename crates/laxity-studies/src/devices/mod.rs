//! Several soft devices on one processor: what Jones and Saroiu left open in §7 and §8.2 of "Predictability Requirements of a Soft
//! Modem", and on slides 29 and 30 of their talk.
//!
//! * [`kind`], [`sets`]: the devices, and which are tried together.
//! * [`demand`]: which reservations a set needs, from the analysis, and whether they can be had.
//! * [`serving`], [`place`], [`run`]: a run, and what was seen of each device; [`twin`], [`live`]: where it is made.
//! * `tables`: the report.

pub mod cells;
pub mod demand;
pub mod kind;
pub mod live;
pub mod place;
pub mod run;
pub mod serving;
pub mod sets;
mod tables;
pub mod twin;

use std::sync::LazyLock;

use laxity_model::analysis::devices::Unfit;
use laxity_model::{ProcessorId, Reservation, Span};

use demand::Ground;
use kind::Kind;
use laxity_lab::bench::{Experiment, Request, Text};
use laxity_lab::report::Report;
use laxity_lab::runner::{Progress, RunError};
use run::{Member, Seen, Setup};
use serving::{Variant, Way};
use sets::Set;
use twin::Named;

/// How long a run is, for each repeat.
const LENGTH: Span = Span::from_secs(3);
/// No run is longer than so many times that.
const MOST_REPEATS: u32 = 1_000;

static TEXT: LazyLock<Text> =
    LazyLock::new(|| Text::parse(include_str!("../../data/devices.toml")));

/// The experiment.
pub struct Devices;

impl Experiment for Devices {
    fn text(&self) -> &'static Text {
        &TEXT
    }

    fn perform(&self, request: &Request, progress: &mut dyn Progress) -> Result<Report, RunError> {
        run(request, progress)
    }
}

/// A set with what was decided and seen of it.
pub struct Tried {
    /// The set.
    pub set: Set,
    /// Its reservations, by device, or why there are none.
    pub admitted: Result<Vec<Reservation>, Unfit>,
    /// What was seen, by variant; empty if it was not admitted.
    pub seen: Vec<(Variant, Vec<Seen>)>,
}

/// How long runs are.
fn length(request: &Request) -> Span {
    LENGTH * u64::from(request.repeats.unwrap_or(1).clamp(1, MOST_REPEATS))
}

fn run(request: &Request, progress: &mut dyn Progress) -> Result<Report, RunError> {
    let sets: Vec<Set> = sets::sets()
        .into_iter()
        .filter(|set| request.wants(set.figure))
        .collect();
    let in_twin = try_in_twin(request, &sets, progress)?;
    let here = if request.live {
        Some(try_live(request, &sets, progress)?)
    } else {
        None
    };
    progress.end();
    Ok(tables::report(
        request,
        &in_twin,
        here.as_ref(),
        length(request),
    ))
}

/// The run of a set that was admitted, with its reservations.
fn setup(
    kinds: &[Kind],
    reservations: &[Reservation],
    further: impl Fn(Kind) -> usize,
    request: &Request,
    drifts: bool,
) -> Setup {
    let members = kinds
        .iter()
        .zip(reservations)
        .map(|(kind, reservation)| Member {
            kind: *kind,
            processor: ProcessorId(0),
            reservation: Some(*reservation),
            further: further(*kind),
        });
    Setup {
        members: members.collect(),
        variant: Variant::of(Way::Reserved, true),
        processors: 1,
        seed: request.seed,
        length: length(request),
        drifts,
        rogues: 1,
        watched: false,
    }
}

/// All sets in the twin.
fn try_in_twin(
    request: &Request,
    sets: &[Set],
    progress: &mut dyn Progress,
) -> Result<Vec<Tried>, RunError> {
    let ground = Ground::twin();
    let mut runs = Vec::new();
    let mut tried: Vec<Tried> = Vec::new();
    for set in sets {
        let admitted = ground.fit(&set.kinds);
        if let Ok(reservations) = &admitted {
            let setup = setup(&set.kinds, reservations, |_| 0, request, true);
            runs.extend(Variant::TWIN.map(|variant| Named {
                name: format!("{}: {}", sets::name_of(&set.kinds), variant.name()),
                setup: setup.served(variant),
            }));
        }
        tried.push(Tried {
            set: set.clone(),
            admitted,
            seen: Vec::new(),
        });
    }
    progress.begin(runs.len());
    let mut seen = twin::run_all(&runs, request.threads, progress)?.into_iter();
    for tried in tried.iter_mut().filter(|tried| tried.admitted.is_ok()) {
        let seen = seen.by_ref().map(|outcome| outcome.devices);
        tried.seen = Variant::TWIN.into_iter().zip(seen).collect();
    }
    Ok(tried)
}

/// What came of this machine.
pub struct Here {
    /// What the host calls itself.
    pub host: String,
    /// How the devices were loaded.
    pub loads: Vec<live::Loaded>,
    /// The sets.
    pub tried: Vec<Tried>,
}

/// All sets on processor 0 of this machine.
fn try_live(
    request: &Request,
    sets: &[Set],
    progress: &mut dyn Progress,
) -> Result<Here, RunError> {
    let mut bench = live::Bench::new(1)?;
    let mut kinds: Vec<Kind> = sets.iter().flat_map(|set| set.kinds.clone()).collect();
    for kind in &mut kinds {
        if let Kind::Modems(_) = kind {
            *kind = Kind::Modem;
        }
    }
    kinds.sort_unstable();
    kinds.dedup();
    bench.calibrate(&kinds, request.seed, progress)?;
    let mut tried = Vec::new();
    for set in sets {
        let admitted = bench.ground(&set.kinds).fit(&set.kinds);
        let mut seen = Vec::new();
        if let Ok(reservations) = &admitted {
            let further = |kind| bench.further(kind);
            let setup = setup(&set.kinds, reservations, further, request, false);
            for variant in Variant::LIVE {
                let name = format!("{}: {}", sets::name_of(&set.kinds), variant.name());
                progress.run(&name, 0);
                seen.push((variant, bench.run(&name, &setup.served(variant))?.devices));
            }
        }
        tried.push(Tried {
            set: set.clone(),
            admitted,
            seen,
        });
    }
    Ok(Here {
        host: bench.describe(),
        loads: bench.loads,
        tried,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_lab::report::json;
    use laxity_lab::runner::Silent;

    #[test]
    fn what_is_claimed_holds_and_threads_make_no_difference() {
        let report = |threads| {
            let request = Request {
                figures: vec!["modem-audio".into()],
                live: false,
                threads,
                seed: 3,
                repeats: None,
                machine: None,
            };
            run(&request, &mut Silent).unwrap()
        };
        let one = report(1);
        assert!(one.holds(), "{:#?}", one.checks);
        assert_eq!(json::render(&one), json::render(&report(2)));
    }
}
