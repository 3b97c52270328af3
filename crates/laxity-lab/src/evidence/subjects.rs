//! What was seen of each component, as a program reads it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::histogram::{GapJson, HistogramJson};

/// What one component gave, all repeats together.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SubjectResults {
    /// Its name.
    pub name: String,
    /// Its kind: `soft-modem`, `periodic`.
    pub kind: String,
    /// The figures that its kind has.
    #[serde(flatten)]
    pub figures: Figures,
    /// Whether its reservation was enforced: `enforced`, `unenforced`; none without a reservation.
    pub grade: Option<String>,
    /// Why it was not.
    pub grade_reason: Option<String>,
    /// Everything that was observed of it, by the quantity's name with its unit.
    pub quantities: BTreeMap<String, HistogramJson>,
    /// What contracts limit in windows of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowFigures>,
}

/// What there was of something in every window, of those that nothing disturbed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WindowFigures {
    /// The name of what is counted: `jobs_done`.
    pub quantity: String,
    /// How long a window is.
    pub window_ns: u64,
    /// The least that a window had; none where each was disturbed, or the runs are shorter.
    pub least: Option<u64>,
    /// The most that one had.
    pub most: Option<u64>,
}

/// The figures of a component.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Figures {
    /// Of a soft modem.
    SoftModem(Box<ModemFigures>),
    /// Of a device that is only received or only played.
    Stream(Box<StreamFigures>),
    /// Of a program of the user's own.
    Command(CommandFigures),
    /// Of a periodic task.
    Periodic(Box<PeriodicFigures>),
    /// Of what is there for what it does to others.
    None {},
}

impl Figures {
    /// Those that every device has.
    pub fn device(&self) -> Option<&DeviceFigures> {
        match self {
            Self::SoftModem(modem) => Some(&modem.device),
            Self::Stream(stream) => Some(&stream.device),
            Self::Command(_) | Self::Periodic(_) | Self::None {} => None,
        }
    }
}

/// What any device gave.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct DeviceFigures {
    /// Where the device's processing ran: `interrupt`, `thread 24`, `reserved 2ms/8ms`.
    pub placement: String,
    /// Who enforced the reservation: `slots`, `deadline`; none without one.
    pub enforcer: Option<String>,
    /// What laxity proposed, where the scenario leaves its reservation open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposed: Option<Proposed>,
    /// Samples that came in and were overwritten before they were read.
    pub samples_overwritten: u64,
    /// Samples that were due to go out and were not there.
    pub samples_underrun: u64,
    /// Samples lost in either direction, but for those that were while the machine itself stood still: the undisturbed part of
    /// `samples_lost`, by which contracts judge.
    pub samples_lost_undisturbed: u64,
    /// Why these were lost, as far as it was seen, where the device has a reservation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_because: Option<String>,
    /// The most samples that waited after processing.
    pub samples_pending_max: u64,
    /// Samples that waited after processing, at each interrupt.
    pub samples_pending: HistogramJson,
    /// Time from the begin of a service call to its end.
    pub processing_ns: HistogramJson,
    /// The part of one processor that the device's processing took, 0 to 1, of all the time in which it had all to do; `null` where that never began, or events
    /// were lost.
    pub cpu_share: Option<f64>,
    /// Context switches of the device's thread.
    pub context_switches: u64,
    /// Those of them that were not its own will.
    pub context_switches_involuntary: u64,
    /// Page faults of what ran reserved or in real time.
    pub page_faults: u64,
}

impl DeviceFigures {
    /// Samples lost in either direction.
    pub const fn lost(&self) -> u64 {
        self.samples_overwritten
            .saturating_add(self.samples_underrun)
    }
}

/// What one modem gave.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ModemFigures {
    /// As any device.
    #[serde(flatten)]
    pub device: DeviceFigures,
    /// How many receivers demodulated the samples, to make up the load asked for.
    pub receivers: u32,
    /// Bits in which a receiver differed from the first one, over all repeats.
    pub receiver_bit_errors: u64,
    /// The file that was fetched.
    pub transfer: Transfer,
    /// Samples that the far end had not delivered when their time came: the emulation's own failure, which makes the run worthless.
    pub samples_undelivered: u64,
    /// What the device did, and when.
    pub phases: Vec<PhaseTime>,
}

/// What one device gave that is only received or only played.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct StreamFigures {
    /// As any device.
    #[serde(flatten)]
    pub device: DeviceFigures,
    /// How often each block was worked on, to make up the load asked for.
    pub work_times: u32,
    /// Blocks in which work that was repeated came to another result than the first time, over all repeats.
    pub work_differs: u64,
    /// Frames that arrived whole.
    pub frames_good: u64,
    /// Frames that did not.
    pub frames_lost: u64,
}

/// A reservation that laxity proposed, and what would have done.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Proposed {
    /// X, in nanoseconds.
    pub service_ns: u64,
    /// Y, in nanoseconds.
    pub period_ns: u64,
    /// Undisturbed calls that were measured before.
    pub calls: u64,
    /// The service of the longest of them.
    pub longest_call_ns: u64,
    /// By so much more than that a call was planned for, in parts per million.
    pub margin_ppm: u64,
    /// Why this was proposed, in words.
    pub why: String,
    /// Afterwards: its longest undisturbed call in all runs of the scenario.
    pub longest_call_here_ns: Option<u64>,
    /// Of a device that made a call on Linux, the longest before it was connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_connecting_here_ns: Option<u64>,
    /// The X that would have served them at least.
    pub least_service_ns: Option<u64>,
    /// Every so much.
    pub least_period_ns: Option<u64>,
    /// The share that was proposed by that of this least, in parts per million.
    pub times_least_ppm: Option<u64>,
    /// Whether something was proposed to others beside it: the least is beside what they had.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_others: bool,
}

/// What became of a program of the user's own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CommandFigures {
    /// In each run.
    pub command_runs: Vec<CommandRun>,
}

/// What became of it in one run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CommandRun {
    /// The code with which it ended by itself; none where a signal ended it, or the run did.
    pub exit_code: Option<i32>,
    /// The signal that ended it; none where it exited, or the run ended it.
    pub signal: Option<i32>,
    /// When it ended by itself, after the start of the run; 0 before.
    pub ended_after_ns: Option<u64>,
    /// The processor time that it took, with everything that it started.
    pub processor_time_ns: Option<u64>,
    /// Why it is not known what became of it.
    pub problem: Option<String>,
    /// Why the gaps in its service are not known, though it had a reservation, or are not all that there were: that is its first thread's alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_gap_unknown: Option<String>,
}

impl CommandRun {
    /// How it ended, in a word or two.
    pub(crate) fn ended(&self) -> String {
        match (self.exit_code, self.signal) {
            (Some(code), _) => code.to_string(),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) if self.problem.is_some() => "unknown".to_owned(),
            (None, None) => "running".to_owned(),
        }
    }
}

/// What one periodic task gave.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PeriodicFigures {
    /// From release to release, in nanoseconds; none where there is no such task.
    pub task_period_ns: Option<u64>,
    /// From the release of a job to when it is due, in nanoseconds; left out where that is the next release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_deadline_ns: Option<u64>,
    /// What a job takes, in nanoseconds; left out where that is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_service_ns: Option<u64>,
    /// Time between wake-ups.
    pub cothread_gap_ns: Option<GapJson>,
    /// The same without a device.
    pub control_gap_ns: Option<GapJson>,
    /// Both, repeat by repeat.
    pub gap_repeats: Vec<GapRepeat>,
    /// Those runs without a device that are beside no run with one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_controls: Vec<GapFigures>,
}

impl PeriodicFigures {
    /// Whether its jobs are more than wake-ups.
    pub(crate) const fn has_jobs(&self) -> bool {
        self.job_service_ns.is_some() || self.task_deadline_ns.is_some()
    }

    /// The gap against its control, in millionths: p99, p99.9 and maximum, each the least of the repeats divided by the largest of the controls: as
    /// [`judge`](laxity_model::verify::contract::judge) compares them. None without repeats.
    pub fn gap_ratios_ppm(&self) -> Option<[u64; 3]> {
        let figures: [fn(&GapFigures) -> u64; 3] =
            [|g| g.p99_ns, |g| g.p999_ns, |g| g.undisturbed_max_ns];
        let mut ratios = [0; 3];
        for (ratio, figure) in ratios.iter_mut().zip(figures) {
            let repeats = self.gap_repeats.iter();
            let with = repeats
                .clone()
                .map(|repeat| figure(&repeat.variant))
                .min()?;
            let controls = repeats.map(|repeat| &repeat.control);
            let without = controls.chain(&self.further_controls).map(figure).max()?;
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

/// The figures that gaps are judged by: of those that no disturbance overlaps.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GapFigures {
    /// The 99th percentile of those that no disturbance overlaps.
    pub p99_ns: u64,
    /// Their 99.9th percentile.
    pub p999_ns: u64,
    /// The largest of them.
    pub undisturbed_max_ns: u64,
    /// The largest of all, disturbed or not.
    pub max_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_the_least_run_against_the_largest_of_the_controls() {
        let mut variant = PeriodicFigures::default();
        let figures = |ns| GapFigures {
            p99_ns: ns,
            p999_ns: ns,
            undisturbed_max_ns: ns,
            max_ns: 0,
        };
        let repeat = |with, without| GapRepeat {
            variant: figures(with),
            control: figures(without),
        };
        // As it is judged: one bad run convicts nobody, and one good control neither.
        variant.gap_repeats = vec![repeat(105, 100), repeat(900, 80), repeat(106, 90)];
        assert_eq!(variant.gap_ratios_ppm(), Some([1_050_000; 3]));
        variant.further_controls = vec![figures(210)];
        assert_eq!(variant.gap_ratios_ppm(), Some([500_000; 3]));
        variant.gap_repeats.clear();
        assert_eq!(variant.gap_ratios_ppm(), None);
    }
}
