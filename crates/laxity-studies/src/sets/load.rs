//! The loads of devices on this machine: every device's work repeated until it takes the share that it is said to take.

use laxity_lab::bench::load::repeats;
use laxity_model::enforce::slots::{CHARGE_PER_SLOT, MOST_SHARE_PPM, SHORTEST_SLOT};
use laxity_model::policy::slots::PlanCosts;
use laxity_model::{ProcessorId, Service, Span};

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

/// A device with its load on this machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loaded {
    /// What it is.
    pub kind: Kind,
    /// How often its work is repeated.
    pub further: usize,
    /// The share of a processor that it then takes, in parts per million.
    pub share_ppm: u64,
    /// 99 in 100 calls take no longer, interruptions included.
    pub call_p99: Span,
}

/// The runs of a round that finds the loads of these devices, several modems on a driver as one: in the first few and many repeats of each,
/// in the second as many as take its share.
#[must_use]
pub fn cases(
    round: usize,
    kinds: &[Kind],
    trials: &[Trial],
    processors: u16,
    seed: u64,
) -> Vec<Case> {
    let mut kinds: Vec<Kind> = kinds.iter().map(|kind| kind.single()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let further = |kind: Kind| match round {
        0 => tried(kind).to_vec(),
        _ => {
            let (few, many) = (0, 1);
            let tried = [few, many].map(|run| {
                let loaded = loaded(trials, kind).nth(run);
                loaded.map_or((0, 0), |loaded| (loaded.further, loaded.share_ppm))
            });
            vec![repeats(kind.share_ppm(), tried, MOST_FURTHER)]
        }
    };
    let case = |kind: Kind, further| Case {
        name: format!("load of the {}", kind.name()),
        purpose: Purpose::Load(kind),
        setup: alone(kind, further, processors, seed),
    };
    let of = |kind| {
        further(kind)
            .into_iter()
            .map(move |further| case(kind, further))
    };
    kinds.into_iter().flat_map(of).collect()
}

/// So few and so many repeats are tried.
const fn tried(kind: Kind) -> [usize; 2] {
    match kind {
        Kind::Modem | Kind::Modems(_) => [20, 70],
        Kind::GLite | Kind::FullRate => [2, 10],
        Kind::Radio => [0, 3],
        Kind::Audio => [10, 60],
    }
}

/// The device alone in a real-time thread.
fn alone(kind: Kind, further: usize, processors: u16, seed: u64) -> Setup {
    Setup {
        members: vec![Member {
            kind,
            processor: ProcessorId(0),
            reservation: None,
            further,
        }],
        variant: Variant::of(Way::RealTime, false),
        processors,
        seed,
        length: CALIBRATION,
        drifts: false,
        rogues: 0,
        watched: false,
    }
}

/// What was seen of a device's loads, in the order of the runs.
fn loaded(trials: &[Trial], kind: Kind) -> impl Iterator<Item = Loaded> {
    let of = trials
        .iter()
        .filter(move |(case, _)| case.purpose == Purpose::Load(kind));
    of.map(move |(case, outcome)| Loaded {
        kind,
        further: case.setup.members[0].further,
        share_ppm: outcome.devices[0].service.as_nanos() * 1_000_000 / CALIBRATION.as_nanos(),
        call_p99: outcome.devices[0].call_p99,
    })
}

/// The loads that were found, by kind.
#[must_use]
pub fn loads(trials: &[Trial]) -> Vec<Loaded> {
    let mut loads: Vec<Loaded> = Vec::new();
    for (case, _) in trials {
        if let Purpose::Load(kind) = case.purpose
            && loads.iter().all(|loaded| loaded.kind != kind)
        {
            loads.extend(loaded(trials, kind).last());
        }
    }
    loads
}

fn load(loads: &[Loaded], kind: Kind) -> Option<&Loaded> {
    loads.iter().find(|loaded| loaded.kind == kind.single())
}

/// How often the work of a kind is repeated.
#[must_use]
pub fn further(loads: &[Loaded], kind: Kind) -> usize {
    load(loads, kind).map_or(0, |loaded| loaded.further)
}

/// What planning needs to know of this machine, for these kinds.
#[must_use]
pub fn ground(loads: &[Loaded], kinds: &[Kind]) -> Ground {
    let work = |kind: &Kind| {
        let call = load(loads, *kind)?.call_p99.as_nanos();
        let most = Service::from_nanos(call * MARGIN_PERCENT / 100);
        Some((*kind, most.max(Service::from_micros(1))))
    };
    Ground {
        work: kinds.iter().filter_map(work).collect(),
        interrupt: INTERRUPT,
        host_ppm: 0,
        costs: PlanCosts {
            per_slot: CHARGE_PER_SLOT.as_full_service(),
            max_share_ppm: MOST_SHARE_PPM,
            other_ppm: 0,
            granularity: SHORTEST_SLOT,
        },
    }
}
