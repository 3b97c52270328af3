//! The loads of devices on this machine: every device's work repeated until it takes the share that it is said to take.

use std::collections::{BTreeMap, BTreeSet};

use laxity_lab::bench::load::repeats;
use laxity_model::enforce::slots::SUPPLY;
use laxity_model::{Service, Span};

use super::demand::Ground;
use super::kind::Kind;
use super::run::{Member, Setup};
use super::serving::{Variant, Way};
use super::{Case, Purpose, Trial};

/// How long each calibration run is.
const CALIBRATION: Span = Span::from_millis(700);
/// What handler and deferred call, emulated by threads, are taken to cost together (assumed; the kernel's two wake-ups and switches).
const INTERRUPT: Service = Service::from_micros(25);
/// Work is repeated no more often: this machine is then too fast for the share.
const MOST_FURTHER: usize = 4_000;
/// What a call is taken to cost at most, in percent of what 99 in 100 take.
const MARGIN_PERCENT: u64 = 115;

/// Rounds of live runs that find the loads; the sets come after them.
pub const ROUNDS: usize = 2;

/// What a device's load is on this machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loaded {
    /// How often its work is repeated.
    pub further: usize,
    /// The share of a processor that it then takes, in parts per million.
    pub share_ppm: u64,
    /// 99 in 100 calls take no longer, interruptions included.
    pub call_p99: Span,
}

/// The loads of single devices, by kind.
#[derive(Clone, Default, Debug)]
pub struct Loads(pub BTreeMap<Kind, Loaded>);

/// The runs of a round that finds the loads of these devices, several modems on a driver as one: in the first few and many repeats of each,
/// in the second as many as take its share.
pub fn cases<'a>(
    round: usize,
    kinds: impl Iterator<Item = &'a Kind>,
    trials: &[Trial],
    processors: u16,
    seed: u64,
) -> Vec<Case> {
    let kinds: BTreeSet<Kind> = kinds.map(|kind| kind.single()).collect();
    let further = |kind: Kind| {
        let of_kind = loaded(trials).filter(|(of, _)| *of == kind);
        let mut tried = of_kind.map(|(_, load)| (load.further, load.share_ppm));
        let mut tried = || tried.next().unwrap_or_default();
        match round {
            0 => few_and_many(kind).to_vec(),
            _ => vec![repeats(kind.share_ppm(), [tried(), tried()], MOST_FURTHER)],
        }
    };
    let cases = kinds.into_iter().flat_map(|kind| {
        let case = move |further| Case {
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
                rogues: 0,
                watched: false,
            },
        };
        further(kind).into_iter().map(case)
    });
    cases.collect()
}

/// So few and so many repeats are tried.
const fn few_and_many(kind: Kind) -> [usize; 2] {
    match kind {
        Kind::Modem | Kind::Modems(_) => [20, 70],
        Kind::GLite | Kind::FullRate => [2, 10],
        Kind::Radio => [0, 3],
        Kind::Audio => [10, 60],
    }
}

/// What was seen of loads, in the order of the runs.
fn loaded(trials: &[Trial]) -> impl Iterator<Item = (Kind, Loaded)> {
    trials.iter().filter_map(|(case, outcome)| {
        let Purpose::Load(kind) = case.purpose else {
            return None;
        };
        let seen = &outcome.devices[0];
        let loaded = Loaded {
            further: case.setup.members[0].further,
            share_ppm: seen.service.as_nanos() * 1_000_000 / CALIBRATION.as_nanos(),
            call_p99: seen.call_p99,
        };
        Some((kind, loaded))
    })
}

impl Loads {
    /// Those that were found: the last run of each kind tells.
    #[must_use]
    pub fn of(trials: &[Trial]) -> Self {
        Self(loaded(trials).collect())
    }

    /// How often the work of a kind is repeated.
    pub fn further(&self, kind: Kind) -> usize {
        let loaded = self.0.get(&kind.single());
        loaded.map_or(0, |loaded| loaded.further)
    }

    /// What planning needs to know of this machine, for these kinds.
    pub fn ground(&self, kinds: &[Kind]) -> Ground {
        let work = |kind: &Kind| {
            let call = self.0.get(&kind.single())?.call_p99.as_nanos();
            let most = Service::from_nanos(call * MARGIN_PERCENT / 100);
            Some((*kind, most.max(Service::from_micros(1))))
        };
        Ground {
            work: kinds.iter().filter_map(work).collect(),
            interrupt: INTERRUPT,
            host_ppm: 0,
            costs: SUPPLY.costs(0),
        }
    }
}
