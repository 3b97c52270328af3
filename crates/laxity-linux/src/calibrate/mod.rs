//! Measures what this machine costs, for a twin of it: switches, wake-ups, the tick, policies, caches, budgets, slots.
//!
//! Everything is measured by the clock, on one processor, by threads of this process with a rank above ordinary work. What took
//! longer than [`DISTURBED`] says nothing about the machine's costs: by the definition of the [witness](crate::enforce::witness), the machine
//! itself stood still. Such samples are counted and left out.
//!
//! * `bench`: threads that begin together, and time for others between measurements.
//! * `samples`: what they saw; [`Evidence`] of it.
//! * `switch`, `wakeup`, `tick`, `policy`, `cache`, `budget`, `edges`: the measurements.
//! * [`pdu_cost`]: what a handler's work on a PDU takes, in the calling thread; [`message_cost`]: of a UDP message, which is measured with the rest.
//! * [`PacketCost`]: what packets take of a driver's thread, which [`calibrate_with`] has measured by whoever has drivers.
//! * [`Circumstances`]: where and when.

mod bench;
mod budget;
mod cache;
mod circumstances;
mod edges;
mod packets;
mod pdu;
mod policy;
mod samples;
mod switch;
mod tick;
mod wakeup;

use std::collections::BTreeMap;

use laxity_model::enforce::machine::{Figure, Machine, Quantiles};
use laxity_model::enforce::ranks;
use laxity_model::enforce::slots::EARLY;
use laxity_model::program::upcalls::qos::Cost;
use laxity_model::{HostError, Span};

pub use cache::{WALKED_BYTES, WORKING_SET_BYTES};
pub use circumstances::Circumstances;
pub use packets::{Measure, PacketCost, Packets, WAYS, wait};
pub use pdu::{MESSAGE_BYTES, cost_of, message_cost, pdu_cost};
pub use samples::Evidence;

use crate::doctor;
use crate::os::clock;
use crate::os::fact::Unknown;
use crate::os::idle::Awake;
use crate::os::memory::MemoryLock;
use crate::os::sched::{self, SchedError, Tid};
use crate::os::signals::Watch;
use bench::Bench;
use samples::Samples;

/// A sample longer than this shows that the machine itself stood still.
pub const DISTURBED: Span = Span::from_micros(100);
/// The rank of what is measured unless told otherwise: the observer's of the modem study, below the dispatcher of slots.
pub const PRIORITY: u8 = ranks::HIGHEST_THREAD;
/// The lowest and highest rank at which can be measured: some threads need one below, the dispatcher of slots is above.
pub const PRIORITIES: std::ops::RangeInclusive<u8> = 3..=ranks::DISPATCHER - 1;

/// What is measured how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The kernel's number of the processor.
    pub processor: usize,
    /// The `SCHED_FIFO` priority of what is measured, within [`PRIORITIES`].
    pub priority: u8,
    /// Only the so manieth part of the samples is taken: 1 takes some 30 s, 10 a tenth of that and is for a first look.
    pub part: usize,
}

impl Settings {
    /// All samples, at the usual rank.
    #[must_use]
    pub const fn new(processor: usize) -> Self {
        Self {
            processor,
            priority: PRIORITY,
            part: 1,
        }
    }
}

/// How far a calibration has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Measurements that are over.
    pub done: usize,
    /// Measurements in all.
    pub all: usize,
    /// What is measured now.
    pub what: &'static str,
}

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Calibration {
    /// The costs.
    pub machine: Machine,
    /// How each figure was measured. One that is not here, or has no samples, was not measured but is what theory allows.
    pub evidence: BTreeMap<Figure, Evidence>,
    /// What a UDP message takes that is sent and received over loopback, both together, by its size: what upcalls that do so are mapped by. Otherwise why that is not known.
    pub udp_message: Result<Cost, String>,
    /// What packets take of a driver's thread, by the ways to an interface that can be had here; none of them where that was not measured.
    pub packets: Packets,
    /// Where and when.
    pub circumstances: Circumstances,
}

/// Why nothing was found.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CalibrateError {
    /// A right is missing, or a processor.
    #[error("cannot calibrate here: {what}; {remedy}")]
    CannotRun {
        /// Which, and why.
        what: String,
        /// What helps.
        remedy: String,
    },
    /// A setting makes no sense.
    #[error("{0}")]
    Settings(String),
    /// A signal came. Everything is as it was.
    #[error("stopped by {0}; nothing was written")]
    Interrupted(&'static str),
    /// So little could be measured that it says nothing.
    #[error(
        "{what}: processor {processor} is disturbed: {found} undisturbed samples beside {disturbed} disturbed ones say nothing of it; \
         try again when less runs there, or another processor; nothing was written"
    )]
    Disturbed {
        /// What was to be measured.
        what: &'static str,
        /// Where.
        processor: usize,
        /// How many samples there were.
        found: u64,
        /// How many more were left out.
        disturbed: u64,
    },
    /// A policy or an affinity was not to be had.
    #[error("calibration: {0}")]
    Sched(#[from] SchedError),
    /// The dispatcher of slots failed.
    #[error("calibration: {0}")]
    Slots(HostError),
    /// No thread could be started.
    #[error("calibration: cannot start a thread: {0}")]
    Thread(String),
}

/// Fewer samples than this are no distribution.
const ENOUGH: u64 = 20;
/// Nor are samples of which more than one in so many was disturbed: those that were not are no fair choice any more.
const MOST_DISTURBED: u64 = 3;

type Result<T = (), E = CalibrateError> = std::result::Result<T, E>;

/// A measurement: what it is called, and what it does.
type Measurement = (&'static str, fn(&Bench<'_>, &mut Report) -> Result);

/// In this order: the later ones subtract what the earlier ones found.
const MEASUREMENTS: [Measurement; 11] = [
    ("context switch", |bench, report| {
        report.found(Figure::ContextSwitch, switch::switches(bench)?)
    }),
    ("waiting for a semaphore", |bench, report| {
        let switch = report.machine.figure(Figure::ContextSwitch).median();
        report.found(Figure::Block, switch::blocking(bench)?.less(switch))
    }),
    ("semaphore hand-over", |bench, report| {
        report.found(Figure::Handover, switch::handover(bench)?)
    }),
    ("policy change", |bench, report| {
        report.found(Figure::PolicyChange, policy::changes(bench)?)
    }),
    ("cache reload", |bench, report| {
        report.found(Figure::CacheReload, cache::reloads(bench)?)
    }),
    ("tick", |bench, report| {
        let ticks = tick::ticks(bench)?;
        report.machine.tick_hz = ticks.hz;
        if ticks.hz == 0 {
            // A processor without a tick: that costs nothing, whatever else interrupted.
            return Ok(());
        }
        report.found(Figure::Tick, ticks.lost)
    }),
    ("wake-up on a busy processor", |bench, report| {
        let switch = report.machine.figure(Figure::ContextSwitch).median();
        let seen = wakeup::busy(bench)?;
        report.found(Figure::Wakeup, seen.late)?;
        report.found(Figure::Preemption, seen.preemption)?;
        report.found(Figure::Timer, seen.falling_asleep.less(switch))
    }),
    ("wake-up on an idle processor", |bench, report| {
        report.found(Figure::WakeupIdle, wakeup::idle(bench)?)
    }),
    (
        "budgets of SCHED_DEADLINE",
        |bench, report| match budget::spent(bench)? {
            Some(seen) => {
                report.found(Figure::DeadlineOverrun, seen.overrun)?;
                report.found(Figure::DeadlineReplenish, seen.replenish)
            }
            None => {
                report.assume_deadline();
                Ok(())
            }
        },
    ),
    ("edges of time slots", |bench, report| {
        let seen = edges::edges(bench)?;
        report.found(Figure::SlotBegin, seen.begin)?;
        report.found(Figure::SlotEdge, seen.end)?;
        report.found(Figure::SlotEntering, seen.entering)?;
        report.found(Figure::SlotLeaving, seen.leaving)?;
        report.found(Figure::SlotCut, seen.cut)
    }),
    ("UDP messages", |bench, report| {
        report.udp_message = bench.alone(|| message_cost(&MESSAGE_BYTES))?;
        Ok(())
    }),
];

/// What is measured by each way to an interface.
const PACKETS: &str = "packets of a driver";

/// What has been found so far.
struct Report {
    processor: usize,
    machine: Machine,
    evidence: BTreeMap<Figure, Evidence>,
    udp_message: Result<Cost, String>,
}

impl Report {
    fn new(processor: usize) -> Self {
        Self {
            processor,
            machine: Machine::without_costs(0),
            evidence: BTreeMap::new(),
            udp_message: Err("it was not measured".to_owned()),
        }
    }

    fn found(&mut self, figure: Figure, samples: Samples) -> Result {
        let (found, disturbed) = (samples.len(), samples.disturbed());
        let worthless = CalibrateError::Disturbed {
            what: figure.name(),
            processor: self.processor,
            found,
            disturbed,
        };
        let tells = found >= ENOUGH && disturbed * MOST_DISTURBED <= found + disturbed;
        let Some((quantiles, evidence)) = samples.finish().filter(|_| tells) else {
            return Err(worthless);
        };
        *self.machine.figure_mut(figure) = quantiles;
        self.evidence.insert(figure, evidence);
        Ok(())
    }

    /// Without the right to `SCHED_DEADLINE`: a kernel that looks at its ticks overruns by up to one, evenly; and a new budget begins as any
    /// wake-up.
    fn assume_deadline(&mut self) {
        let tick = clock::tick();
        let even = Quantiles::new(vec![(0, Span::ZERO), (1_000_000, tick)]);
        *self.machine.figure_mut(Figure::DeadlineOverrun) = even.unwrap_or_default();
        let wakeup = self.machine.figure(Figure::Wakeup).clone();
        *self.machine.figure_mut(Figure::DeadlineReplenish) = wakeup;
    }
}

/// Measures everything on one processor, and says before each measurement what it is. Needs `SCHED_FIFO`; where `SCHED_DEADLINE` is
/// refused, its figures are what theory allows.
///
/// Changes nothing that outlives its threads, but the calling thread's memory lock, which is given back. A signal (SIGINT, SIGTERM)
/// ends it within a second.
///
/// # Errors
///
/// See [`CalibrateError`].
pub fn calibrate(settings: &Settings, progress: &mut dyn FnMut(Progress)) -> Result<Calibration> {
    calibrate_with(settings, None, progress)
}

/// The same, and then what packets take by each of the [`WAYS`], measured so. That a way cannot be had is no error.
///
/// # Errors
///
/// See [`CalibrateError`].
pub fn calibrate_with(
    settings: &Settings,
    packets: Option<Measure>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Calibration> {
    // What is checked changes a thread's policy too.
    let watch = Watch::begin();
    check(settings)?;
    // What is not locked costs page faults, which the large samples would show: no reason to refuse.
    let _memory = MemoryLock::all();
    // As in a run; what cannot be had there is measured without, too.
    let _awake = Awake::ask();
    let start =
        circumstances::Start::now(settings.processor).map_err(|unknown| hidden(&unknown))?;
    let bench = Bench::new(settings, &watch);
    let mut report = Report::new(settings.processor);
    let all = MEASUREMENTS.len() + packets.map_or(0, |_| WAYS.len());
    for (done, (what, measure)) in MEASUREMENTS.into_iter().enumerate() {
        progress(Progress { done, all, what });
        bench.go_on()?;
        measure(&bench, &mut report)?;
    }
    let mut by_way = Packets::new();
    for (measure, (done, way)) in packets
        .into_iter()
        .cycle()
        .zip((MEASUREMENTS.len()..).zip(WAYS))
    {
        progress(Progress {
            done,
            all,
            what: PACKETS,
        });
        by_way.insert(way, bench.alone(|| measure(way))?);
    }
    bench.go_on()?;
    let circumstances = start.end();
    let mut machine = report.machine;
    machine.slot_lead = EARLY;
    machine.description = circumstances.description();
    machine.provenance = circumstances.provenance(settings);
    Ok(Calibration {
        machine,
        evidence: report.evidence,
        udp_message: report.udp_message,
        packets: by_way,
        circumstances,
    })
}

/// Beside whom is measured must be known.
fn hidden(unknown: &Unknown) -> CalibrateError {
    CalibrateError::CannotRun {
        what: format!("the machine's real-time threads cannot be seen: {unknown}"),
        remedy: "run it where `/proc` shows all processes".to_owned(),
    }
}

/// What would stand against it, before anything is begun.
fn check(settings: &Settings) -> Result {
    if !PRIORITIES.contains(&settings.priority) {
        return Err(CalibrateError::Settings(format!(
            "cannot measure at priority {}: it must be {} to {}",
            settings.priority,
            PRIORITIES.start(),
            PRIORITIES.end()
        )));
    }
    if settings.part == 0 {
        let text = "the part of the samples to take must be 1 or more";
        return Err(CalibrateError::Settings(text.to_owned()));
    }
    doctor::can_give_slots().map_err(|missing| CalibrateError::CannotRun {
        what: missing.what,
        remedy: missing.remedy,
    })?;
    let usable = sched::affinity(Tid::current())?;
    if !usable.contains(settings.processor) {
        return Err(CalibrateError::CannotRun {
            what: format!("processor {} may not be used", settings.processor),
            remedy: format!("choose one of {usable}, or widen the affinity with taskset"),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_which_too_many_were_disturbed_are_refused() {
        let found = |good: usize, disturbed: usize| {
            let mut report = Report::new(1);
            let mut samples = Samples::with_room(good);
            let spans = [(good, Span::from_micros(2)), (disturbed, DISTURBED * 2)];
            for (times, span) in spans {
                (0..times).for_each(|_| samples.push(span));
            }
            report.found(Figure::Tick, samples)
        };
        assert_eq!(found(40, 20), Ok(()));
        let refused = Err(CalibrateError::Disturbed {
            what: Figure::Tick.name(),
            processor: 1,
            found: 40,
            disturbed: 21,
        });
        assert_eq!(found(40, 21), refused);
        assert!(found(ENOUGH as usize - 1, 0).is_err());
    }
}
