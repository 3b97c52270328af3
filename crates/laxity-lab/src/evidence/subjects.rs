//! What was seen of each component, as a program reads it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::histogram::{GapJson, HistogramJson};

/// What one component gave, all repeats together.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SubjectResults {
    /// Its name.
    pub name: String,
    /// Its kind, and the figures that its kind has.
    #[serde(flatten)]
    pub figures: Figures,
    /// Whether its reservation was enforced: `enforced`, `unenforced`; none without a reservation.
    pub grade: Option<String>,
    /// Why it was not.
    pub grade_reason: Option<String>,
    /// Everything that was observed of it, by the quantity's name with its unit.
    pub quantities: BTreeMap<String, HistogramJson>,
}

/// The figures of a component, by its kind.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Figures {
    /// A soft modem.
    SoftModem(Box<ModemFigures>),
    /// A periodic task.
    Periodic(Box<PeriodicFigures>),
    /// Threads that never stop.
    Spinner,
    /// A thread that now and then takes the processor for long.
    Rogue,
    /// A program of the user's own.
    Command,
}

/// What one modem gave.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ModemFigures {
    /// Where the device's processing ran: `interrupt`, `thread 24`, `reserved 2ms/8ms`.
    pub placement: String,
    /// Who enforced the reservation: `slots`, `deadline`; none without one.
    pub enforcer: Option<String>,
    /// How many receivers demodulated the samples, to make up the load asked for.
    pub receivers: u32,
    /// Bits in which a receiver differed from the first one, over all repeats.
    pub receiver_bit_errors: u64,
    /// The file that was fetched.
    pub transfer: Transfer,
    /// Samples that came in and were overwritten before they were read.
    pub samples_overwritten: u64,
    /// Samples that were due to go out and were not there.
    pub samples_underrun: u64,
    /// Samples lost in either direction, but for those that were while the machine itself stood still: the undisturbed part of the
    /// quantity `samples_lost`, by which contracts judge.
    pub samples_lost_undisturbed: u64,
    /// Samples that the far end had not delivered when their time came: the emulation's own failure, which makes the run worthless.
    pub samples_undelivered: u64,
    /// The most samples that waited after processing.
    pub samples_pending_max: u64,
    /// Samples that waited after processing, at each interrupt.
    pub samples_pending: HistogramJson,
    /// Time from the begin of a service call to its end.
    pub processing_ns: HistogramJson,
    /// The part of one processor that the device's processing took, 0 to 1.
    pub cpu_share: f64,
    /// Context switches of the device's thread.
    pub context_switches: u64,
    /// Those of them that were not its own will.
    pub context_switches_involuntary: u64,
    /// Page faults of what ran reserved or in real time.
    pub page_faults: u64,
    /// What the device did, and when.
    pub phases: Vec<PhaseTime>,
}

impl ModemFigures {
    /// Samples lost in either direction.
    pub const fn lost(&self) -> u64 {
        self.samples_overwritten
            .saturating_add(self.samples_underrun)
    }
}

/// What one periodic task gave.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PeriodicFigures {
    /// From release to release, in nanoseconds; none where there is no such task.
    pub task_period_ns: Option<u64>,
    /// Time between wake-ups.
    pub cothread_gap_ns: Option<GapJson>,
    /// The same without a device.
    pub control_gap_ns: Option<GapJson>,
    /// Both, repeat by repeat.
    pub gap_repeats: Vec<GapRepeat>,
}

impl PeriodicFigures {
    /// The gap against its control, in millionths: p99, p99.9 and undisturbed maximum, each the median of the repeats
    /// divided by the median of the controls. None without repeats.
    pub fn gap_ratios_ppm(&self) -> Option<[u64; 3]> {
        let figures: [fn(&GapFigures) -> u64; 3] =
            [|g| g.p99_ns, |g| g.p999_ns, |g| g.undisturbed_max_ns];
        let mut ratios = [0; 3];
        for (ratio, figure) in ratios.iter_mut().zip(figures) {
            let with = median(self.gap_repeats.iter().map(|r| figure(&r.variant)))?;
            let without = median(self.gap_repeats.iter().map(|r| figure(&r.control)))?;
            let millionths = (u128::from(with) * 1_000_000).checked_div(u128::from(without))?;
            *ratio = u64::try_from(millionths).ok()?;
        }
        Some(ratios)
    }
}

/// `name: ` where there are several of a kind, nothing where there is one.
pub(crate) fn label(name: &str, several: usize) -> String {
    match several {
        0 | 1 => String::new(),
        _ => format!("{name}: "),
    }
}

/// Whether a task is the study's callback, or that with a reservation, by its name: it is spoken of as there.
pub(crate) fn is_cothread(name: &str) -> bool {
    name.ends_with("cothread")
}

/// The median; the lower one of an even number.
pub(crate) fn median(values: impl Iterator<Item = u64>) -> Option<u64> {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable();
    let middle = values.len().checked_sub(1)? / 2;
    values.get(middle).copied()
}

/// The transfer of a file through the device.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Transfer {
    /// Whether all of it arrived, in every repeat.
    pub completed: bool,
    /// Whether what arrived is what was sent.
    pub checksum_ok: bool,
    /// Its length.
    pub bytes: u64,
    /// How long it took, from request to last byte: the median of the repeats; none if it did not complete.
    pub duration_ns: Option<u64>,
    /// Why it did not complete; none if it did.
    pub failure: Option<String>,
    /// What the modems agreed on downstream, in bit/s; 0 before they did.
    pub rate_down_bit_s: u64,
    /// What they agreed on upstream, in bit/s.
    pub rate_up_bit_s: u64,
    /// Frames that the link sent again.
    pub retransmissions: u64,
    /// Times the modems learnt the line again.
    pub retrainings: u64,
}

/// A phase of the device.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PhaseTime {
    /// Its name: `training`.
    pub name: String,
    /// When it began, after the start of the run.
    pub start_ns: u64,
    /// How long it was.
    pub duration_ns: u64,
}

/// The gaps of one repeat, and of the control run beside it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GapRepeat {
    /// With the device.
    pub variant: GapFigures,
    /// Without.
    pub control: GapFigures,
}

/// The figures that gaps are judged by.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GapFigures {
    /// The 99th percentile.
    pub p99_ns: u64,
    /// The 99.9th percentile.
    pub p999_ns: u64,
    /// The largest that no disturbance overlaps.
    pub undisturbed_max_ns: u64,
    /// The largest of all.
    pub max_ns: u64,
}
