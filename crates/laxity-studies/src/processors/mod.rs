//! Soft devices on several processors, each bound to one: the further research of Jones and Saroiu, "Predictability Requirements of a
//! Soft Modem", §7.
//!
//! * [`mod@place`]: which processor each device gets, and why.
//! * `tables`: the report.

pub mod place;
mod tables;

use std::num::NonZeroU16;

use std::sync::LazyLock;

use laxity_model::Span;
use laxity_model::analysis::Overflow;
use laxity_model::analysis::multiprocessor::{Fit, Order};

use super::devices::demand::Ground;
use super::devices::kind::Kind;
use super::devices::live::{Bench, Loaded};
use super::devices::run::{Member, Outcome, Setup};
use super::devices::serving::{Variant, Way};
use super::devices::twin::{self, Named};
use laxity_lab::bench::{Experiment, Request, Text};
use laxity_lab::report::Report;
use laxity_lab::runner::{Progress, RunError};
use place::{Placed, Placing, place};

/// How long a run is, for each repeat.
const LENGTH: Span = Span::from_secs(3);
/// No run is longer than so many times that.
const MOST_REPEATS: u32 = 1_000;
/// The usual way: the largest first, each where there is room first.
const USUAL: (Fit, Order) = (Fit::First, Order::Decreasing);
/// As evenly as possible.
const EVEN: (Fit, Order) = (Fit::Worst, Order::Decreasing);

/// The figures, and what each shows.
const FIGURES: [(&str, &str); 4] = [
    (
        "partition",
        "which processor each device gets, and why, on two and four processors",
    ),
    (
        "variants",
        "four modems on one, two and four processors, in the study's placements",
    ),
    (
        "refused",
        "too much for one processor, and a matter of order on two",
    ),
    ("live", "a set on two processors of this machine"),
];

static TEXT: LazyLock<Text> =
    LazyLock::new(|| Text::parse(include_str!("../../data/processors.toml")));

/// The experiment.
pub struct Processors;

impl Experiment for Processors {
    fn text(&self) -> &'static Text {
        &TEXT
    }

    fn perform(&self, request: &Request, progress: &mut dyn Progress) -> Result<Report, RunError> {
        run(request, progress)
    }
}

/// A set on several processors.
struct System {
    /// How many.
    processors: NonZeroU16,
    /// Its devices.
    kinds: Vec<Kind>,
    /// Where they are, or which has no room.
    placing: Placing,
    /// What was seen, by variant.
    seen: Vec<(Variant, Outcome)>,
}

/// What came of everything.
struct Results {
    /// Mixed sets on two and four processors.
    partitions: Vec<System>,
    /// Four modems on one, two and four.
    modems: Vec<System>,
    /// A set on this machine, with the loads of its devices.
    here: Option<(String, Vec<Loaded>, System)>,
}

/// How long runs are.
fn length(request: &Request) -> Span {
    LENGTH * u64::from(request.repeats.unwrap_or(1).clamp(1, MOST_REPEATS))
}

/// The mixed sets.
fn mixed() -> [(NonZeroU16, Vec<Kind>); 2] {
    use Kind::{Audio, FullRate, GLite, Modem, Radio};
    let two = [FullRate, GLite, Radio, Audio, Modem, Modem, Modem];
    let four = [
        FullRate, FullRate, GLite, GLite, Radio, Radio, Audio, Audio, Modem, Modem, Modem, Modem,
        Modem, Modem,
    ];
    [(count(2), two.to_vec()), (count(4), four.to_vec())]
}

/// What is tried live on two processors.
fn live_set() -> Vec<Kind> {
    use Kind::{Audio, FullRate, GLite, Modem};
    vec![FullRate, GLite, Audio, Modem, Modem]
}

fn count(processors: u16) -> NonZeroU16 {
    NonZeroU16::new(processors).unwrap_or(NonZeroU16::MIN)
}

/// What is run of the mixed sets.
const PARTITIONED: [Variant; 3] = [
    Variant::of(Way::Reserved, true),
    Variant::of(Way::RealTime, true),
    Variant::of(Way::Normal, false),
];

/// What is run of the modems: the study's placements, without a rogue.
const STUDIED: [Variant; 5] = [
    Variant::of(Way::Interrupt, false),
    Variant::of(Way::Deferred, false),
    Variant::of(Way::RealTime, false),
    Variant::of(Way::Normal, false),
    Variant::of(Way::Reserved, false),
];

fn run(request: &Request, progress: &mut dyn Progress) -> Result<Report, RunError> {
    let ground = Ground::twin();
    let mut partitions = Vec::new();
    if request.wants("partition") {
        for (processors, kinds) in mixed() {
            partitions.push(system(&ground, processors, kinds, USUAL)?);
        }
    }
    let mut modems = Vec::new();
    if request.wants("variants") {
        for processors in [1, 2, 4].map(count) {
            modems.push(system(&ground, processors, vec![Kind::Modem; 4], EVEN)?);
        }
    }
    in_twin(request, &mut partitions, &mut modems, progress)?;
    let here = if request.live && request.wants("live") {
        Some(live(request, progress)?)
    } else {
        None
    };
    progress.end();
    let results = Results {
        partitions,
        modems,
        here,
    };
    tables::report(request, &results, length(request)).map_err(too_large)
}

fn too_large(overflow: Overflow) -> RunError {
    RunError::Failed {
        variant: "placing".into(),
        reason: overflow.to_string(),
    }
}

fn system(
    ground: &Ground,
    processors: NonZeroU16,
    kinds: Vec<Kind>,
    how: (Fit, Order),
) -> Result<System, RunError> {
    Ok(System {
        placing: place(ground, &kinds, processors, how).map_err(too_large)?,
        processors,
        kinds,
        seen: Vec::new(),
    })
}

impl System {
    /// Its devices where they are; empty if there is no room.
    fn placed(&self) -> &[Placed] {
        match &self.placing {
            Placing::Found(placed) => placed,
            Placing::NoRoom(..) => &[],
        }
    }

    /// Its run, with reservations.
    fn setup(&self, request: &Request, further: impl Fn(Kind) -> usize) -> Setup {
        let members = self.placed().iter().map(|placed| Member {
            kind: placed.kind,
            processor: placed.processor,
            reservation: Some(placed.reservation),
            further: further(placed.kind),
        });
        Setup {
            members: members.collect(),
            variant: Variant::of(Way::Reserved, true),
            processors: self.processors.get(),
            seed: request.seed,
            length: length(request),
            drifts: true,
            rogues: self.processors.get(),
            watched: true,
        }
    }

    fn name(&self, variant: Variant) -> String {
        let devices = super::devices::sets::name_of(&self.kinds);
        format!(
            "{devices} on {} processors: {}",
            self.processors,
            variant.name()
        )
    }
}

/// Runs both kinds of sets.
fn in_twin(
    request: &Request,
    partitions: &mut [System],
    modems: &mut [System],
    progress: &mut dyn Progress,
) -> Result<(), RunError> {
    let mut all: Vec<(&mut System, &[Variant])> = Vec::new();
    all.extend(
        partitions
            .iter_mut()
            .map(|system| (system, &PARTITIONED[..])),
    );
    all.extend(modems.iter_mut().map(|system| (system, &STUDIED[..])));
    all.retain(|(system, _)| !system.placed().is_empty());
    let mut runs = Vec::new();
    for (system, variants) in &all {
        let setup = system.setup(request, |_| 0);
        runs.extend(variants.iter().map(|variant| Named {
            name: system.name(*variant),
            setup: setup.served(*variant),
        }));
    }
    progress.begin(runs.len());
    let mut outcomes = twin::run_all(&runs, request.threads, progress)?.into_iter();
    for (system, variants) in all {
        system.seen = variants.iter().copied().zip(outcomes.by_ref()).collect();
    }
    Ok(())
}

/// A set on two processors of this machine. The rogue is on the first only: on the second it would keep the far ends from delivering.
fn live(
    request: &Request,
    progress: &mut dyn Progress,
) -> Result<(String, Vec<Loaded>, System), RunError> {
    let mut bench = Bench::new(2)?;
    let mut kinds = live_set();
    kinds.sort_unstable();
    kinds.dedup();
    bench.calibrate(&kinds, request.seed, progress)?;
    let ground = bench.ground(&kinds);
    let mut system = system(&ground, count(2), live_set(), USUAL)?;
    let setup = Setup {
        drifts: false,
        rogues: 1,
        ..system.setup(request, |kind| bench.further(kind))
    };
    if !system.placed().is_empty() {
        for variant in PARTITIONED {
            let name = system.name(variant);
            progress.run(&name, 0);
            let outcome = bench.run(&name, &setup.served(variant))?;
            system.seen.push((variant, outcome));
        }
    }
    Ok((bench.describe(), bench.loads, system))
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_lab::runner::Silent;

    #[test]
    fn what_is_claimed_holds() {
        let request = Request {
            figures: vec!["variants".into(), "refused".into()],
            live: false,
            threads: 0,
            seed: 5,
            repeats: None,
            machine: None,
        };
        let report = run(&request, &mut Silent).unwrap();
        assert!(report.holds(), "{:#?}", report.checks);
        assert!(report.checks.len() >= 4);
    }
}
