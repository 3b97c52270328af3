//! Upcalls whose preemption is delayed: Gopalakrishnan, Parulkar, "Real-time Upcalls: A Mechanism to Provide Real-time Processing Guarantees",
//! WUCS-95-06, 1995, §§5.3, 7.1 and 7.2.
//!
//! * [`mod@trial`]: a set of upcalls as a program, served in one way or another; `intervals`: by an async runtime; [`beside`]: what runs beside.
//! * `processes`: one whose upcalls are in several processes; [`process`]: each of them; `jobs`: what came of what no host records; `burner`: what is worked on this machine; `kernel`: what can be asked of its `SCHED_DEADLINE`.
//! * `simulation`, `deadlines`, `many`: the paper's simulation, and its first two experiments; [`udp`]: the third, a command of its own.
//! * `activities`: one process, against a thread for each; `shorter`: shorter and shorter periods; `delayed`: the same of experiment 2, for what it misses.
//! * `shown`: what all of them show alike; `constants`: what was put in or chosen.

mod activities;
pub mod beside;
mod burner;
mod constants;
mod deadlines;
mod delayed;
mod intervals;
mod jobs;
mod kernel;
mod many;
pub mod process;
mod processes;
mod shorter;
mod shown;
mod simulation;
#[cfg(test)]
mod tests;
pub mod trial;
pub mod udp;

use std::num::NonZeroU32;
use std::sync::LazyLock;

use laxity::Twin;
use laxity::study::{Costs, Profile};
use laxity_lab::bench::{Draft, Made, Round, Runner, Study, Text};
use laxity_lab::runner::RunError;
use laxity_model::enforce::machine::Machine;
use laxity_model::{HostError, Service, Span};

use beside::{Load, Running};
use trial::{Outcome, Phases, Setup};

static TEXT: LazyLock<Text> =
    LazyLock::new(|| Text::parse(include_str!("../../data/upcalls.toml")));

/// The periods of the paper's experiments (§7.1), in milliseconds.
const PERIODS_MS: [u64; 6] = [40, 50, 60, 70, 80, 90];
/// Their least common multiple, for which the paper's runs last (§7).
const LENGTH: Span = Span::from_millis(25_200);
/// The same on this machine, and of the many that a search makes; unless longer ones are asked for.
const LIVE_LENGTH: Span = Span::from_millis(1_500);
const LIVE_STEP: Span = Span::from_millis(400);
const LIVE_DELAYED: Span = Span::from_millis(800);
/// So many units a batch has, where the paper does not tell.
const BATCH: NonZeroU32 = NonZeroU32::new(16).expect("it is not zero");
const TWO: NonZeroU32 = NonZeroU32::new(2).expect("it is not zero");
/// What it costs to go from one process to another on the paper's host, a Pentium at 100 MHz under NetBSD, the upcall's delivery and its cold caches
/// included. Chosen: with it, what the paper saved in switches, 35 %, makes the 12 points of useful utilization that it gained (§7.2); neither it nor its parts are told.
const SWITCH_1995: Service = Service::from_micros(155);
/// So many sets are drawn where what is claimed is claimed over sets, unless another number is asked for.
const SETS: u32 = 11;
/// What is usable is found to this, in parts per million.
const GRAIN_PPM: u64 = 5_000;
const PERCENT_PPM: u64 = 10_000;

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
    /// When they are released first.
    pub first: Phases,
    /// Which of the sets that were drawn alike.
    pub set: u32,
    /// What is asked besides of how much is usable.
    pub search: Option<Search>,
    /// What runs beside it.
    pub load: Load,
    /// What is taken from a second run.
    pub unwatched: Unwatched,
}

impl Case {
    /// With instants that are drawn, nothing beside, and nothing asked besides.
    const fn new(figure: &'static str, place: Where, setup: Setup) -> Self {
        Self {
            figure,
            place,
            setup,
            first: Phases::Drawn,
            set: 0,
            search: None,
            load: Load::None,
            unwatched: Unwatched::Nothing,
        }
    }

    /// The utilization asked for, in percent.
    const fn percent(&self) -> u64 {
        self.setup.utilization_ppm / PERCENT_PPM
    }
}

/// What is taken from a second run of a case on this machine, without the witness: its wake-ups count among switches, and take some 4 % of the processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unwatched {
    /// There is no second run.
    Nothing,
    /// All but what misses, which is the first's.
    AllButMisses,
    /// All: the first tells what the machine did in turn with it.
    All,
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
            cases.extend(simulation::cases(request));
        }
        if request.wants("deadlines") {
            cases.extend(deadlines::cases(request, (round.live, length)));
        }
        if request.wants("switches") {
            cases.extend(many::cases(request, (round.live, length)));
        }
        if request.wants("saved") && !round.live {
            cases.extend(many::swept(request));
        }
        if request.wants("activities") {
            cases.extend(activities::cases(request, (round.live, length)));
        }
        if request.wants("periods") {
            cases.extend(shorter::cases(request, (round.live, LIVE_STEP * longer)));
        }
        if request.wants("delayed") && round.live {
            cases.extend(delayed::cases(request, LIVE_DELAYED * longer));
        }
        Ok(cases)
    }

    fn name(&self, case: &Case) -> String {
        let (serving, look) = case.setup.way;
        format!(
            "{} at {} %, {}",
            case.figure,
            case.percent(),
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
        if case.unwatched != Unwatched::Nothing {
            let setup = Setup {
                is_watched: false,
                ..case.setup.clone()
            };
            let unwatched = setup.run(host)?;
            let rates = match case.unwatched {
                Unwatched::AllButMisses => outcome.rates,
                _ => unwatched.rates.clone(),
            };
            outcome = Outcome { rates, ..unwatched };
        }
        beside.map_or(Ok(()), Running::end)?;
        Ok(Seen {
            outcome,
            usable_ppm: search.transpose()?.flatten(),
        })
    }

    fn judge(&self, made: &Made<'_, Self>, draft: &mut Draft<'_>) -> Result<(), RunError> {
        simulation::judge(draft, &made.twin);
        deadlines::judge(draft, made);
        many::judge(draft, made);
        activities::judge(draft, made);
        shorter::judge(draft, made);
        delayed::judge(draft, made);
        let overshoots = made.live.iter();
        let overshoots = overshoots.filter_map(|(_, seen)| seen.outcome.overshoot);
        if let Some((least, most)) = overshoots.clone().min().zip(overshoots.max()) {
            let holes: &[(&str, &dyn std::fmt::Display)] = &[("least", &least), ("most", &most)];
            draft.circumstance("burns", TEXT.say("burns", holes));
        }
        draft.table("constants", "constants", &[], constants::rows()?);
        // What is called a twin of this machine is then one of another.
        if let Some(elsewhere) = &made.request.elsewhere {
            draft.circumstance("machine file", elsewhere.sentence());
        }
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

/// The greatest utilization at which no more miss a deadline in a run than may; found by halving. `None` if a run has nothing that could miss one.
fn usable(setup: &Setup, search: Search, host: &mut Runner<'_>) -> Result<Option<u64>, HostError> {
    let grain = search.grain_ppm;
    let (mut fits, mut misses) = (0, setup.way.0.most_ppm() / grain + 1);
    // Where nobody may miss, who misses in the first part of a run has missed in all of it.
    let lengths = [setup.length / 8, setup.length];
    let lengths = match search.missed_ppm {
        0 => &lengths[..],
        _ => &lengths[1..],
    };
    while fits + 1 < misses {
        let middle = fits.midpoint(misses);
        let mut is_met = true;
        for length in lengths.iter().copied() {
            let tried = Setup {
                utilization_ppm: middle * grain,
                length,
                ..setup.clone()
            };
            let outcome = tried.run(host)?;
            if outcome.is_met().is_none() {
                return Ok(None);
            }
            is_met = outcome.missed() * 1_000_000 <= search.missed_ppm * outcome.jobs;
            if !is_met {
                break;
            }
        }
        match is_met {
            true => fits = middle,
            false => misses = middle,
        }
    }
    Ok(Some(fits * grain))
}

fn periods() -> [Span; 6] {
    PERIODS_MS.map(Span::from_millis)
}
