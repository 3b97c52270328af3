//! Upcalls whose preemption is delayed: Gopalakrishnan, Parulkar, "Real-time Upcalls: A Mechanism to Provide Real-time Processing Guarantees",
//! WUCS-95-06, 1995, §§5.3, 7.1 and 7.2.
//!
//! * [`mod@trial`]: a set of upcalls as a program, served in one way or another; `intervals`: by an async runtime; [`beside`]: what runs beside.
//! * `activities`: one process, against a thread for each; `shorter`: shorter and shorter periods.
//! * `shown`: what is shown and claimed of the paper's experiments.

mod activities;
pub mod beside;
mod intervals;
mod shorter;
mod shown;
pub mod trial;
pub mod udp;

use std::num::NonZeroU32;
use std::sync::LazyLock;

use laxity::Twin;
use laxity::study::{Costs, Profile};
use laxity_lab::bench::{Draft, Made, Request, Round, Runner, Study, Text};
use laxity_lab::runner::RunError;
use laxity_lab::workload::Draws;
use laxity_model::enforce::machine::Machine;
use laxity_model::{HostError, Service, Span};
use serde::Deserialize;

use beside::{Load, Running};
use trial::{Look, Member, Outcome, Serving, Setup, processes};

static TEXT: LazyLock<Text> =
    LazyLock::new(|| Text::parse(include_str!("../../data/upcalls.toml")));

/// The periods of the paper's experiments (§7.1), in milliseconds.
const PERIODS_MS: [u64; 6] = [40, 50, 60, 70, 80, 90];
/// Their least common multiple, for which the paper's runs last (§7).
const LENGTH: Span = Span::from_millis(25_200);
/// So long a run of the multimedia set lasts.
const SIMULATED_LENGTH: Span = Span::from_secs(6);
/// The same on this machine, and of the many that a search makes; unless longer ones are asked for.
const LIVE_LENGTH: Span = Span::from_millis(1_500);
const LIVE_STEP: Span = Span::from_millis(400);
/// So many units a batch has, where the paper does not tell.
const BATCH: NonZeroU32 = NonZeroU32::new(16).expect("it is not zero");
const TWO: NonZeroU32 = NonZeroU32::new(2).expect("it is not zero");
/// What it costs to go from one process to another on the paper's host, a Pentium at 100 MHz under NetBSD, the upcall's delivery and its cold caches
/// included. Chosen: with it, what the paper saved in switches makes the useful utilization that it gained (§7.2); neither it nor its parts are told.
const SWITCH_1995: Service = Service::from_micros(155);
/// The multimedia set's utilization while its preemptions are counted.
const SIMULATED_PPM: u64 = 750_000;
/// Experiment 2's utilization, without what switches cost: what it was is not told. Here those of 90 ms miss with preemption at once, as they did.
const MANY_PPM: u64 = 690_000;
/// Experiment 2's on this machine.
const MANY_HERE_PPM: u64 = 800_000;
/// What experiment 1 is swept over, in percent.
const SWEPT: [u64; 10] = [30, 50, 60, 70, 75, 80, 85, 90, 95, 100];
/// The same on this machine.
const SWEPT_HERE: [u64; 6] = [30, 60, 80, 90, 95, 100];
/// The same with something beside.
const SWEPT_LOADED: [u64; 3] = [60, 80, 100];
/// Where other ways to serve stand beside upcalls.
const COMPARED: u64 = 80;
/// What is usable is found to this, in parts per million.
const GRAIN_PPM: u64 = 5_000;
const PERCENT_PPM: u64 = 10_000;

/// A stream of the multimedia set.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stream {
    period_us: u64,
    batch: NonZeroU32,
    count: u64,
}

/// The experiment.
pub struct Upcalls;

/// The machine of a twin.
#[derive(Clone, Debug)]
pub enum Where {
    /// One that costs nothing.
    Ideal,
    /// The paper's, as far as its switches go.
    In1995,
    /// This one, as it was measured.
    Here(Box<Machine>),
}

/// One thing that is run.
#[derive(Clone, Debug)]
pub struct Case {
    /// The figure that it is made for.
    pub figure: &'static str,
    /// The twin's machine; nothing to a live run.
    pub place: Where,
    /// What is run.
    pub setup: Setup,
    /// Whether all are released at one instant first; else the instants are drawn.
    pub together: bool,
    /// What is asked besides of how much is usable.
    pub search: Option<Search>,
    /// What runs beside it.
    pub load: Load,
    /// Whether switches are counted in a second run, without the witness, whose own wake-ups count among them.
    pub is_counted: bool,
}

impl Case {
    /// With instants that are drawn, nothing beside, and nothing asked besides.
    const fn new(figure: &'static str, place: Where, setup: Setup) -> Self {
        Self {
            figure,
            place,
            setup,
            together: false,
            search: None,
            load: Load::None,
            is_counted: false,
        }
    }
}

/// How it is found how much is usable.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// So many jobs may miss their deadline, in parts per million.
    missed_ppm: u64,
    /// To this it is found, in parts per million of the processor.
    grain_ppm: u64,
}

impl Search {
    /// Nobody may miss.
    const EXACT: Self = Self {
        missed_ppm: 0,
        grain_ppm: GRAIN_PPM,
    };
}

type Trial = (Case, Seen);

/// What was seen of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// At the utilization asked for.
    pub outcome: Outcome,
    /// The most at which nobody misses, in parts per million, if that was asked.
    pub usable_ppm: Option<u64>,
}

impl Study for Upcalls {
    type Case = Case;
    type Seen = Seen;

    fn cases(&self, round: Round, made: &Made<'_, Self>) -> Result<Vec<Case>, RunError> {
        let request = made.request;
        let longer = request.option(&TEXT, "longer")?;
        let length = if round.live {
            LIVE_LENGTH * longer
        } else {
            LENGTH
        };
        let mut cases = Vec::new();
        if request.wants("simulation") && !round.live {
            cases.extend(simulated(request));
        }
        if request.wants("deadlines") {
            cases.extend(deadlines(request, (round.live, length)));
        }
        if request.wants("switches") {
            cases.extend(switches(request, (round.live, length)));
        }
        if request.wants("activities") {
            cases.extend(activities::cases(request, (round.live, length)));
        }
        if request.wants("periods") {
            cases.extend(shorter::cases(request, (round.live, LIVE_STEP * longer)));
        }
        Ok(cases)
    }

    fn name(&self, case: &Case) -> String {
        let (serving, look) = case.setup.way;
        let percent = case.setup.utilization_ppm / PERCENT_PPM;
        format!(
            "{} at {percent} %, {}",
            case.figure,
            shown::way(serving, look)
        )
    }

    fn twin(&self, case: &Case) -> Twin {
        match &case.place {
            Where::Ideal => Twin::new(Profile::IDEAL),
            Where::In1995 => Twin::new(in_1995()),
            Where::Here(machine) => Twin::linux(machine, 1),
        }
    }

    fn run(&self, case: &Case, host: &mut Runner<'_>) -> Result<Seen, HostError> {
        let beside = case.load.start(host)?;
        let search = case.search.map(|search| usable(&case.setup, search, host));
        let mut outcome = case.setup.run(host)?;
        if case.is_counted {
            let setup = Setup {
                is_watched: false,
                ..case.setup.clone()
            };
            outcome = Outcome {
                rates: outcome.rates,
                ..setup.run(host)?
            };
        }
        beside.map_or(Ok(()), Running::end)?;
        Ok(Seen {
            outcome,
            usable_ppm: search.transpose()?,
        })
    }

    fn judge(&self, made: &Made<'_, Self>, draft: &mut Draft<'_>) -> Result<(), RunError> {
        shown::simulated(draft, &made.twin);
        shown::deadlines(draft, made);
        shown::switches(draft, made);
        activities::judge(draft, made);
        shorter::judge(draft, made);
        Ok(())
    }

    fn text(&self) -> &'static Text {
        &TEXT
    }
}

/// The paper's host.
fn in_1995() -> Profile {
    Profile {
        name: "pentium-100",
        costs: Costs {
            context_switch: SWITCH_1995.as_dedicated_span(),
            ..Costs::NONE
        },
        ..Profile::IDEAL
    }
}

/// The greatest utilization at which no more miss a deadline in a run than may; found by halving.
fn usable(setup: &Setup, search: Search, host: &mut Runner<'_>) -> Result<u64, HostError> {
    let grain = search.grain_ppm;
    let (mut fits, mut misses) = (0, 1_000_000 / grain + 1);
    while fits + 1 < misses {
        let middle = fits.midpoint(misses);
        let tried = Setup {
            utilization_ppm: middle * grain,
            ..setup.clone()
        };
        let outcome = tried.run(host)?;
        match outcome.missed() * 1_000_000 <= search.missed_ppm * outcome.jobs {
            true => fits = middle,
            false => misses = middle,
        }
    }
    Ok(fits * grain)
}

/// §5.3's simulation: rate monotonic, preempted at once, and with delayed preemption.
fn simulated(request: &Request) -> Vec<Case> {
    let streams: Vec<Stream> = TEXT.quoted("multimedia");
    let sets = request.repeats.unwrap_or(10).clamp(1, 10_000);
    let seeds = (0..u64::from(sets)).map(|number| (request.seed, number));
    let sets = seeds.map(|(seed, number)| {
        let mut draws = Draws::new(seed, number);
        multimedia(&streams, &mut draws)
    });
    let ways = [
        (Serving::Threads, Look::AtOnce),
        (Serving::ByRate, Look::Parts(TWO)),
        (Serving::ByRate, Look::AT_THE_END),
    ];
    let all = sets.flat_map(|members| ways.map(|way| (members.clone(), way)));
    let all = all.map(|(members, way)| {
        let setup = Setup {
            members,
            utilization_ppm: SIMULATED_PPM,
            way,
            switch: Service::ZERO,
            length: SIMULATED_LENGTH,
            is_watched: true,
        };
        Case {
            search: Some(Search::EXACT),
            ..Case::new("simulation", Where::Ideal, setup)
        }
    });
    all.collect()
}

/// All streams, whose units take the same, each released first at an instant that is drawn.
fn multimedia(streams: &[Stream], draws: &mut Draws) -> Vec<Member> {
    let each = streams
        .iter()
        .flat_map(|stream| (0..stream.count).map(move |_| stream));
    let all = (0..).zip(each).map(|(process, stream)| Member {
        period: Span::from_micros(stream.period_us),
        phase: Span::from_micros(draws.between(0, stream.period_us - 1)),
        process,
        batch: stream.batch,
        weight: u64::from(stream.batch.get()) * 1_000_000_000 / stream.period_us,
    });
    all.collect()
}

fn periods() -> [Span; 6] {
    PERIODS_MS.map(Span::from_millis)
}

/// Experiment 1: twelve upcalls of two processes, which yield at once.
fn deadlines(request: &Request, (live, length): (bool, Span)) -> Vec<Case> {
    let drawn = processes(2, &periods(), BATCH, &mut Draws::new(request.seed, 0));
    let together = drawn.iter().map(|member| Member {
        phase: Span::ZERO,
        ..*member
    });
    let together: Vec<Member> = together.collect();
    let case = |members: &[Member], (place, switch): (Where, Service), percent| {
        let setup = Setup {
            members: members.to_vec(),
            utilization_ppm: percent * PERCENT_PPM,
            way: (Serving::ByRate, Look::AtOnce),
            switch,
            length,
            is_watched: true,
        };
        Case::new("deadlines", place, setup)
    };
    if live {
        // The worst that can be is for the twin to show.
        let here = |percent| case(&drawn, (Where::Ideal, Service::ZERO), percent);
        return deadlines_here(here);
    }
    let mut places = vec![(Where::In1995, SWITCH_1995)];
    if let Some(machine) = &request.machine {
        places.push((Where::Here(Box::new(machine.clone())), Service::ZERO));
    }
    let mut cases = Vec::new();
    for place in places {
        for (members, together) in [(&drawn, false), (&together, true)] {
            cases.extend(SWEPT.map(|percent| Case {
                together,
                ..case(members, place.clone(), percent)
            }));
        }
    }
    cases
}

/// The same on this machine: alone, beside other ways to serve, and with something beside that this machine has.
fn deadlines_here(case: impl Fn(u64) -> Case) -> Vec<Case> {
    let mut cases = Vec::new();
    for load in Load::ALL.into_iter().filter(|load| load.is_there()) {
        let swept: &[u64] = match load {
            Load::None => &SWEPT_HERE,
            _ => &SWEPT_LOADED,
        };
        cases.extend(swept.iter().map(|percent| Case {
            load,
            ..case(*percent)
        }));
    }
    for serving in [
        Serving::ByDeadline,
        Serving::Threads,
        Serving::Kernel,
        Serving::Intervals,
    ] {
        let mut other = case(COMPARED);
        other.setup.way.0 = serving;
        cases.push(other);
    }
    cases
}

/// Experiment 2: sixteen processes of six upcalls, preempted at once and later.
fn switches(request: &Request, (live, length): (bool, Span)) -> Vec<Case> {
    let members = processes(16, &periods(), BATCH, &mut Draws::new(request.seed, 1));
    let mut ways = vec![
        (Serving::Threads, Look::AtOnce),
        (Serving::ByRate, Look::AtOnce),
        (Serving::ByRate, Look::Parts(TWO)),
        (Serving::ByRate, Look::AT_THE_END),
        (Serving::ByDeadline, Look::AT_THE_END),
    ];
    if live {
        ways.extend([Serving::Kernel, Serving::Intervals].map(|other| (other, Look::AtOnce)));
    }
    let cases = ways.into_iter().map(|way| {
        let setup = Setup {
            members: members.clone(),
            utilization_ppm: if live { MANY_HERE_PPM } else { MANY_PPM },
            way,
            switch: if live { Service::ZERO } else { SWITCH_1995 },
            length,
            is_watched: true,
        };
        Case {
            search: (!live).then_some(Search::EXACT),
            is_counted: live,
            ..Case::new("switches", Where::In1995, setup)
        }
    });
    cases.collect()
}
