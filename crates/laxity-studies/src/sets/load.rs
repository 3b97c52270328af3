//! The loads of devices on this machine: every device's work repeated until it takes the share that it is said to take; and how long their calls
//! then take, by which laxity proposes reservations.

use std::collections::{BTreeMap, BTreeSet};

use laxity_lab::bench::load::{
    CALLS, Calibration, Found, Next, NoCount, PILOTS, Trouble, pace, pilot, too_few,
};
use laxity_lab::runner::RunError;
use laxity_lab::scenario::units::{Load, Share};
use laxity_model::analysis::devices::with_margin;
use laxity_model::base::histogram::Histogram;
use laxity_model::enforce::slots::SUPPLY;
use laxity_model::{Service, Span};

use super::demand::Ground;
use super::kind::Kind;
use super::run::{Member, Setup};
use super::serving::{Variant, Way};
use super::{Case, Purpose, Trial};

/// How long each calibration run is.
const CALIBRATION: Span = Span::from_millis(500);
/// By so much of itself a device's load may be off, in parts of it: the study's 0.7 of 14.7 %.
const TOLERANCE: u64 = 21;
/// What handler and deferred call, emulated by threads, are taken to cost together (assumed; the kernel's two wake-ups and switches).
const INTERRUPT: Service = Service::from_micros(25);
/// Work is repeated no more often: this machine is then too fast for the share.
const MOST_FURTHER: usize = 4_000;

/// Rounds of live runs that find the loads and the calls, at most; the sets come after them.
pub const ROUNDS: usize = Calibration::MOST + PILOTS;

/// What a device's load is on this machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loaded {
    /// How often its work is repeated.
    pub further: usize,
    /// The share of a processor that it then takes, in parts per million.
    pub share_ppm: u64,
    /// So many undisturbed calls were measured.
    pub calls: u64,
    /// The service of the longest.
    pub longest: Service,
}

/// The loads of single devices, by kind.
#[derive(Clone, Default, Debug)]
pub struct Loads(pub BTreeMap<Kind, Loaded>);

/// The runs of the next round that finds the loads of these devices, several modems on a driver as one, and how long their calls take; none when all is known.
///
/// # Errors
///
/// [`RunError::Inconclusive`] if a device was not left alone, naming who was in the way; [`RunError::CannotRun`] if this machine is too fast for
/// one.
pub fn cases<'a>(
    kinds: impl Iterator<Item = &'a Kind>,
    trials: &[Trial],
    processors: u16,
    seed: u64,
) -> Result<Vec<Case>, RunError> {
    let kinds: BTreeSet<Kind> = kinds.map(|kind| kind.single()).collect();
    let mut cases = Vec::new();
    for kind in kinds {
        let next = calibration(kind, trials).next();
        match next.map_err(|no| no_load(kind, &no))? {
            Next::Measure(further) => cases.push(case(kind, further, processors, seed)),
            Next::Found(found) if !are_enough(kind, trials)? => {
                cases.push(pilot_of(kind, &found, processors, seed));
            }
            Next::Found(_) => {}
        }
    }
    Ok(cases)
}

/// Whether enough calls of a kind were measured.
fn are_enough(kind: Kind, trials: &[Trial]) -> Result<bool, RunError> {
    let (calls, last) = calls_of(kind, trials);
    let made = of(Purpose::Calls(kind), trials).count();
    if calls.count() < CALLS && made >= PILOTS {
        let whose = format!("the {}", kind.name());
        let said = too_few(&whose, (calls.count(), CALLS), last.as_ref());
        return Err(RunError::Inconclusive(said));
    }
    Ok(calls.count() >= CALLS)
}

/// The undisturbed calls of a kind at its load, and what was in the way in the last run.
fn calls_of(kind: Kind, trials: &[Trial]) -> (Histogram, Option<Trouble>) {
    let (mut all, mut last) = (Histogram::new(), None);
    for (_, outcome) in of(Purpose::Calls(kind), trials) {
        let seen = outcome.devices.first();
        let trouble = seen.and_then(|seen| seen.block.as_ref().err());
        last = outcome.in_the_way.clone().or_else(|| trouble.cloned());
        // Which calls there were is not known where events are missing.
        if !matches!(last, Some(Trouble::EventsLost(_)))
            && let Some(seen) = seen
        {
            all.merge(&seen.services);
        }
    }
    (all, last)
}

fn no_load(kind: Kind, no: &NoCount) -> RunError {
    let said = format!("the load of the {}: {no}", kind.name());
    match no {
        NoCount::Inconclusive(_) => RunError::Inconclusive(said),
        NoCount::Impossible(_) => RunError::CannotRun(said),
    }
}

/// A run of a device by itself, with so many repeats of its work.
fn case(kind: Kind, further: usize, processors: u16, seed: u64) -> Case {
    Case {
        purpose: Purpose::Load(kind),
        setup: Setup {
            members: vec![Member {
                further,
                ..Member::new(kind)
            }],
            variant: Variant::of(Way::RealTime, false),
            processors,
            seed,
            length: CALIBRATION,
            drifts: false,
            pace: 1,
            rogues: 0,
            watched: false,
        },
    }
}

/// A run of a device at its load, in which its calls are measured.
fn pilot_of(kind: Kind, found: &Found, processors: u16, seed: u64) -> Case {
    let of_load = case(kind, found.repeats, processors, seed);
    let pace = pace(found.share_ppm);
    Case {
        purpose: Purpose::Calls(kind),
        setup: Setup {
            length: pilot(CALLS, kind.period(), pace),
            pace,
            ..of_load.setup
        },
    }
}

/// A few repeats of each.
fn few(kind: Kind) -> usize {
    let own = kind.component().and_then(|own| own.fewest_repeats());
    own.unwrap_or(20)
}

/// The runs that were made for this, in their order.
fn of(purpose: Purpose, trials: &[Trial]) -> impl Iterator<Item = &Trial> {
    trials
        .iter()
        .filter(move |(case, _)| case.purpose == purpose)
}

/// How far the search for the load of a kind has come.
fn calibration(kind: Kind, trials: &[Trial]) -> Calibration {
    let share = kind.share_ppm();
    let ppm = |ppm: u64| Share {
        ppm: u32::try_from(ppm).unwrap_or(u32::MAX),
    };
    let wanted = Load {
        share: ppm(share),
        tolerance: ppm(share / TOLERANCE),
    };
    // What a device's work takes by itself may be more here than on the machine that is quoted: the table of loads says what it is.
    let mut calibration = Calibration::new(wanted, kind.period(), few(kind), MOST_FURTHER);
    for (_, outcome) in of(Purpose::Load(kind), trials) {
        calibration.take(match &outcome.in_the_way {
            Some(trouble) => Err(trouble.clone()),
            None => outcome.devices[0].block.clone(),
        });
    }
    calibration
}

/// What was found of a kind.
fn loaded(kind: Kind, trials: &[Trial]) -> Option<Loaded> {
    let Ok(Next::Found(found)) = calibration(kind, trials).next() else {
        return None;
    };
    let (calls, _) = calls_of(kind, trials);
    Some(Loaded {
        further: found.repeats,
        share_ppm: found.share_ppm,
        calls: calls.count(),
        longest: Service::from_nanos(calls.max()?),
    })
}

impl Loads {
    /// Those that were found.
    #[must_use]
    pub fn of(trials: &[Trial]) -> Self {
        let kinds = trials.iter().filter_map(|(case, _)| match case.purpose {
            Purpose::Load(kind) => Some(kind),
            Purpose::Calls(_) | Purpose::System(_) => None,
        });
        let kinds: BTreeSet<Kind> = kinds.collect();
        let found = kinds.into_iter();
        Self(
            found
                .filter_map(|kind| Some((kind, loaded(kind, trials)?)))
                .collect(),
        )
    }

    /// How often the work of a kind is repeated.
    pub fn further(&self, kind: Kind) -> usize {
        let loaded = self.0.get(&kind.single());
        loaded.map_or(0, |loaded| loaded.further)
    }

    /// What planning needs to know of this machine, for these kinds: calls are planned for as in every proposal.
    pub fn ground(&self, kinds: &[Kind]) -> Ground {
        let work = |kind: &Kind| {
            let longest = self.0.get(&kind.single())?.longest;
            Some((*kind, with_margin(longest).max(Service::from_micros(1))))
        };
        Ground {
            work: kinds.iter().filter_map(work).collect(),
            interrupt: INTERRUPT,
            host_ppm: 0,
            costs: SUPPLY.costs(0),
        }
    }
}
