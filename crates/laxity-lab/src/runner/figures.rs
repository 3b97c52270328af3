//! The figures of one component from all runs of a variant.

use std::collections::BTreeMap;

use laxity_devices::modem::{Outcome as CallOutcome, Report};
use laxity_model::base::histogram::Histogram;
use laxity_model::base::number::median;
use laxity_model::verify::contract::{Doubts, Observations, Observed, Quantity, Subject, Unit};
use laxity_model::{Grade, Usage, Whereabouts};

use super::RunDone;
use super::commands::CommandEnd;
use crate::each_once::each_once;
use crate::evidence::histogram::{GapJson, HistogramJson};
use crate::evidence::subjects::{
    CommandFigures, DeviceFigures, Figures, GapFigures, GapRepeat, ModemFigures, PeriodicFigures,
    PhaseTime, Proposed, StreamFigures, SubjectResults, Transfer, WindowFigures,
};
use crate::observe::{DeviceProbe, Probe, Watched};
use crate::scenario::kinds::{self, key};
use crate::scenario::show_placing;
use laxity::PeriodicProbe;
use laxity::observe::{Loss, Observation, Probe as _, grades, involved};

/// Told where they happened.
const RARE: [Quantity; 2] = [Quantity::JOB_OVERRUNS, Quantity::RELEASES_MISSED];

/// One component in one run.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) run: &'a RunDone,
    pub(super) probe: &'a Probe,
    pub(super) observation: &'a Observation,
}

/// What is told of a device besides what was seen of it.
#[derive(Default)]
pub(super) struct Told {
    pub(super) proposed: Option<Proposed>,
    pub(super) lost_because: Option<String>,
}

/// One component in all runs of a variant, and in those of its control.
pub(super) struct Component<'a> {
    pub(super) runs: Vec<Seen<'a>>,
    pub(super) control: Vec<Seen<'a>>,
}

/// The components of a variant, in the order of the scenario.
pub(super) fn components<'a>(runs: &[&'a RunDone], control: &[&'a RunDone]) -> Vec<Component<'a>> {
    let Some(first) = runs.first() else {
        return Vec::new();
    };
    let of = |probe: &Probe, runs: &[&'a RunDone]| {
        let seen = runs.iter().filter_map(|run| run.component(&probe.subject));
        seen.collect()
    };
    let components = first.probes.0.iter().map(|probe| Component {
        runs: of(probe, runs),
        control: of(probe, control),
    });
    components.collect()
}

impl RunDone {
    /// What was seen of a component.
    fn component(&self, subject: &Subject) -> Option<Seen<'_>> {
        let mut seen = self.probes.0.iter().zip(&self.observations);
        let (probe, observation) = seen.find(|(probe, _)| probe.subject == *subject)?;
        Some(Seen {
            run: self,
            probe,
            observation,
        })
    }
}

impl<'a> Seen<'a> {
    fn whole(self, quantity: Quantity) -> Observed {
        self.observation.quantities.whole(quantity)
    }

    /// What became of it, if it is a command.
    fn commands(self) -> impl Iterator<Item = &'a CommandEnd> {
        let Subject { name, kind } = &self.probe.subject;
        let ends = self.run.commands.iter();
        ends.filter(move |end| *kind == kinds::COMMAND && end.name == *name)
    }

    /// Where it ran.
    fn ran(self) -> impl Iterator<Item = Whereabouts> + 'a {
        let own = self.commands().map(CommandEnd::ran);
        self.run.record.ran(involved(self.probe)).chain(own)
    }

    fn device(self) -> Option<&'a DeviceProbe> {
        match &self.probe.watched {
            Watched::Device(device) => Some(device),
            _ => None,
        }
    }

    fn report(self) -> Option<&'a Report> {
        self.device()?.installed.report.modem()
    }
}

fn of_runs(seen: &[Seen<'_>], quantity: Quantity) -> Observed {
    let mut all = Observed::default();
    for seen in seen {
        all.merge(&seen.whole(quantity));
    }
    all
}

fn sum(histogram: &Histogram) -> u64 {
    u64::try_from(histogram.sum()).unwrap_or(u64::MAX)
}

impl Component<'_> {
    /// What contracts judge by of its runs, and of those of its control: of a command's end, beside those.
    pub(super) fn observations(&self) -> [Vec<Observations>; 2] {
        let beside: Vec<&CommandEnd> = self
            .control
            .iter()
            .flat_map(|seen| seen.commands())
            .collect();
        let runs = self.runs.iter().map(|seen| {
            let mut quantities = seen.observation.quantities.clone();
            for end in seen.commands() {
                end.observe_end(&mut quantities, &beside);
            }
            quantities
        });
        let control = self
            .control
            .iter()
            .map(|seen| seen.observation.quantities.clone());
        [runs.collect(), control.collect()]
    }

    /// The grants of its activities, or of the command that it is, each once.
    pub(super) fn grades(&self) -> Vec<(String, Grade)> {
        let of_run = |seen: &Seen<'_>| {
            let own = seen.commands().filter_map(CommandEnd::grade);
            grades(&seen.run.record, seen.probe.holders())
                .chain(own)
                .collect::<Vec<_>>()
        };
        each_once(self.runs.iter().flat_map(of_run))
    }

    /// What nobody knows of it, by its runs.
    pub(super) fn doubts(&self) -> Doubts {
        let runs = self.runs.iter();
        Doubts::of(runs.map(|seen| (&seen.run.record, seen.ran())))
    }

    /// Where it ran, in the first of them.
    pub(super) fn ran(&self) -> Vec<Whereabouts> {
        self.runs
            .first()
            .map_or_else(Vec::new, |seen| seen.ran().collect())
    }

    /// Everything that is told of it; its work was done so many `times` at each call, if it is a device of a variant; what is `told` of that
    /// stands beside it.
    pub(super) fn results(&self, bytes: u64, times: u32, told: Told) -> Option<SubjectResults> {
        let first = self.runs.first()?;
        let subject = &first.probe.subject;
        let figures = match &first.probe.watched {
            Watched::Device(probe) if probe.installed.report.modem().is_some() => {
                Figures::SoftModem(Box::new(self.modem((probe, told), bytes, times)))
            }
            Watched::Device(probe) => Figures::Stream(Box::new(self.stream((probe, told), times))),
            Watched::Periodic(task) => Figures::Periodic(Box::new(self.periodic(task))),
            Watched::Flow(_) | Watched::Nothing => self.command(),
        };
        let (grade, grade_reason) = worst(&self.grades());
        Some(SubjectResults {
            name: subject.name.clone(),
            kind: subject.kind.name.to_owned(),
            figures,
            grade,
            grade_reason,
            quantities: self.quantities(subject.kind.quantities),
            windows: self.windows(),
        })
    }

    /// Of a command; nothing of what is there for what it does to others.
    fn command(&self) -> Figures {
        let own = self.runs.iter().flat_map(|seen| seen.commands());
        let command_runs: Vec<_> = own.map(CommandEnd::figures).collect();
        if command_runs.is_empty() {
            return Figures::None {};
        }
        Figures::Command(CommandFigures { command_runs })
    }

    fn windows(&self) -> Vec<WindowFigures> {
        let seen = self.runs.iter();
        let all = seen.flat_map(|seen| seen.observation.quantities.windows());
        let all = each_once(all).into_iter();
        let figures = all.map(|quantity| {
            let sums = of_runs(&self.runs, quantity).undisturbed;
            WindowFigures {
                quantity: quantity.name().to_owned(),
                window_ns: quantity.window().unwrap_or_default().as_nanos(),
                least: sums.min(),
                most: sums.max(),
            }
        });
        figures.collect()
    }

    fn quantities(&self, all: &[Quantity]) -> BTreeMap<String, HistogramJson> {
        // A histogram of ones tells nothing: how many jobs there were, those of their misses tell.
        let told = all.iter().filter(|one| **one != Quantity::JOBS_DONE);
        let named = told.filter_map(|quantity| {
            let values = of_runs(&self.runs, *quantity);
            let unit = match quantity.unit() {
                Unit::Nanoseconds => "ns",
                Unit::Count => "count",
            };
            let seen = HistogramJson::of(unit, &values);
            // What never happened is told by who limits it.
            let is_told = !RARE.contains(quantity) || seen.max > Some(0);
            (seen.count > 0 && is_told).then(|| (key(*quantity), seen))
        });
        named.collect()
    }

    fn periodic(&self, task: &PeriodicProbe) -> PeriodicFigures {
        PeriodicFigures {
            task_period_ns: Some(task.period.as_nanos()),
            task_deadline_ns: Some(task.deadline.as_nanos())
                .filter(|_| task.deadline < task.period),
            job_service_ns: Some(task.service.as_nanos()).filter(|nanos| *nanos > 0),
            cothread_gap_ns: gaps(&self.runs),
            control_gap_ns: gaps(&self.control),
            gap_repeats: self.gap_repeats(),
            further_controls: self.further_controls(),
        }
    }

    /// The gaps of each repeat beside those of its control, where both were measured.
    fn gap_repeats(&self) -> Vec<GapRepeat> {
        let pairs = self.runs.iter().filter_map(|seen| {
            let control = of_repeat(&self.control, seen.run.planned.repeat)?;
            Some(GapRepeat {
                variant: gap_figures(*seen)?,
                control: gap_figures(control)?,
            })
        });
        pairs.collect()
    }

    /// Those of the control's other repeats.
    fn further_controls(&self) -> Vec<GapFigures> {
        let is_beside = |repeat| {
            of_repeat(&self.runs, repeat)
                .and_then(gap_figures)
                .is_some()
        };
        let controls = self.control.iter();
        let others = controls.filter(|seen| !is_beside(seen.run.planned.repeat));
        others.filter_map(|seen| gap_figures(*seen)).collect()
    }

    fn modem(
        &self,
        (modem, told): (&DeviceProbe, Told),
        bytes: u64,
        receivers: u32,
    ) -> ModemFigures {
        ModemFigures {
            device: self.device(modem, told),
            receivers,
            receiver_bit_errors: self.sum(|report| report.receiver_bit_errors.get()),
            transfer: self.transfer(bytes),
            samples_undelivered: self.sum(|report| report.samples_undelivered.get()),
            phases: self.runs.first().copied().map_or_else(Vec::new, phases),
        }
    }

    fn stream(&self, (device, told): (&DeviceProbe, Told), work_times: u32) -> StreamFigures {
        let devices = self.runs.iter().filter_map(|seen| seen.device());
        let reports = devices.filter_map(|device| device.installed.report.stream());
        StreamFigures {
            device: self.device(device, told),
            work_times,
            work_differs: reports.clone().map(|one| one.load_differs.get()).sum(),
            frames_good: reports.map(|one| one.frames_good.get()).sum(),
            frames_lost: self.total(kinds::FRAMES_LOST),
        }
    }

    fn device(&self, device: &DeviceProbe, told: Told) -> DeviceFigures {
        let pending = of_runs(&self.runs, kinds::SAMPLES_PENDING);
        let pending = HistogramJson::of("samples", &pending);
        let processing = of_runs(&self.runs, kinds::PROCESSING_TIME);
        let (usage, request) = (self.driver_usage(), device.placing.request());
        DeviceFigures {
            placement: show_placing(device.placing),
            enforcer: request.map(|asked| asked.enforcer.to_string()),
            proposed: told.proposed,
            samples_overwritten: self.total(kinds::SAMPLES_OVERWRITTEN),
            samples_underrun: self.total(kinds::SAMPLES_UNDERRUN),
            samples_lost_undisturbed: sum(&of_runs(&self.runs, kinds::SAMPLES_LOST).undisturbed),
            lost_because: told.lost_because,
            samples_pending_max: pending.max.unwrap_or(0),
            samples_pending: pending,
            processing_ns: HistogramJson::of("ns", &processing),
            cpu_share: self.cpu_share(),
            context_switches: usage.voluntary_switches + usage.involuntary_switches,
            context_switches_involuntary: usage.involuntary_switches,
            page_faults: usage.page_faults,
        }
    }

    /// What it lost that nothing excuses, in all runs.
    pub(super) fn losses(&self) -> impl Iterator<Item = &Loss> {
        self.runs.iter().flat_map(|seen| &seen.observation.losses)
    }

    /// The sum of all values.
    fn total(&self, quantity: Quantity) -> u64 {
        sum(&of_runs(&self.runs, quantity).raw())
    }

    fn reports(&self) -> impl Iterator<Item = &Report> {
        self.runs.iter().filter_map(|seen| seen.report())
    }

    fn sum(&self, count: impl Fn(&Report) -> u64) -> u64 {
        self.reports().map(count).sum()
    }

    /// What the device's driver used in all runs together.
    fn driver_usage(&self) -> Usage {
        let mut sum = Usage::default();
        for seen in &self.runs {
            if let Some(device) = seen.device() {
                let usage = &seen.run.record.usage[device.installed.driver.index()];
                sum.voluntary_switches += usage.voluntary_switches;
                sum.involuntary_switches += usage.involuntary_switches;
                sum.page_faults += usage.page_faults;
            }
        }
        sum
    }

    /// The share of a processor while connected: the median of the runs; `None` if it never was, or of a run whose events are not all there.
    fn cpu_share(&self) -> Option<f64> {
        let whole = |seen: &&Seen<'_>| seen.run.record.events_lost == 0;
        let runs = self.runs.iter().filter(whole);
        let connected = runs.filter_map(|seen| seen.observation.connected);
        let shares = connected.filter(|(_, span)| !span.is_zero());
        let ppm = shares.map(|(service, span)| {
            let ppm = u128::from(service.as_nanos()) * 1_000_000 / u128::from(span.as_nanos());
            u64::try_from(ppm).unwrap_or(u64::MAX)
        });
        median(ppm).map(|ppm| ppm as f64 / 1e6)
    }

    /// What became of the file, in the runs whose transfer can end; others only repeat the gaps.
    fn transfer(&self, bytes: u64) -> Transfer {
        let whole = self.runs.iter().filter(|seen| !seen.run.planned.gaps_only);
        let outcomes = whole.filter_map(|seen| seen.report());
        let outcomes: Vec<_> = outcomes.map(Report::outcome).collect();
        let done = outcomes.iter().filter_map(|outcome| done(*outcome));
        let done: Vec<(u64, bool)> = done.collect();
        let completed = !outcomes.is_empty() && done.len() == outcomes.len();
        let failure = outcomes.iter().find_map(|outcome| match outcome {
            Some(CallOutcome::Failed { result, reason }) => Some(format!("{result}: {reason}")),
            _ => None,
        });
        let unfinished = (!completed && !outcomes.is_empty())
            .then(|| "not complete when its time was over".to_string());
        let most = |count: fn(&Report) -> u64| self.reports().map(count).max().unwrap_or(0);
        Transfer {
            completed,
            checksum_ok: completed && done.iter().all(|(_, is_right)| *is_right),
            bytes: if outcomes.is_empty() { 0 } else { bytes },
            duration_ns: median(done.iter().map(|(took, _)| *took)).filter(|_| completed),
            failure: failure.or(unfinished),
            rate_down_bit_s: most(|report| report.rate_down_bit_s.get()),
            rate_up_bit_s: most(|report| report.rate_up_bit_s.get()),
            retransmissions: self
                .sum(|r| r.retransmissions_near.get() + r.retransmissions_far.get()),
            retrainings: self.sum(|report| report.retrainings.get()),
        }
    }
}

/// The grade that says least of several, in words, with its reason.
pub(super) fn worst(grades: &[(String, Grade)]) -> (Option<String>, Option<String>) {
    let worst = grades.iter().max_by_key(|(_, grade)| grade.rank());
    let (grade, reason) = worst
        .map(|(_, grade)| (grade.to_string(), grade.reason().map(str::to_owned)))
        .unzip();
    (grade, reason.flatten())
}

/// What was seen in this repeat.
fn of_repeat<'a>(seen: &[Seen<'a>], repeat: u32) -> Option<Seen<'a>> {
    let mut all = seen.iter().copied();
    all.find(|seen| seen.run.planned.repeat == repeat)
}

/// Of a run in which any gap is judged.
fn gap_figures(seen: Seen<'_>) -> Option<GapFigures> {
    judged(&seen.whole(Quantity::WAKEUP_GAP))
}

/// Of gaps of which any is judged.
fn judged(gaps: &Observed) -> Option<GapFigures> {
    let judged = &gaps.undisturbed;
    Some(GapFigures {
        p99_ns: judged.percentile(990_000)?,
        p999_ns: judged.percentile(999_000)?,
        undisturbed_max_ns: judged.max()?,
        max_ns: judged.max().max(gaps.disturbed.max())?,
    })
}

fn gaps(seen: &[Seen<'_>]) -> Option<GapJson> {
    let gaps = GapJson::of(&of_runs(seen, Quantity::WAKEUP_GAP));
    (gaps.all.count > 0).then_some(gaps)
}

/// How long a transfer took in nanoseconds, and whether what arrived is right; `None` if it was not complete.
fn done(outcome: Option<&CallOutcome>) -> Option<(u64, bool)> {
    match outcome? {
        CallOutcome::Done(arrived) => Some((arrived.took.as_nanos(), arrived.intact)),
        CallOutcome::Failed { .. } => None,
    }
}

/// The phases of a component in a run, from the run's start.
fn phases(seen: Seen<'_>) -> Vec<PhaseTime> {
    let record = &seen.run.record;
    let phases = seen.observation.phases.iter();
    let ends = phases.clone().skip(1).map(|(at, _)| *at);
    let timed = phases.zip(ends.chain([record.end]));
    let timed = timed.map(|((start, phase), end)| PhaseTime {
        name: phase.name().into(),
        start_ns: start.saturating_since(record.start).as_nanos(),
        duration_ns: end.saturating_since(*start).as_nanos(),
    });
    timed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise a table says 4 x control of what is met under 1.05.
    #[test]
    fn gaps_are_compared_with_a_control_as_they_are_judged() {
        let mut gaps = Observed::default();
        (0..98).for_each(|_| gaps.undisturbed.record(1_000_000));
        (0..3).for_each(|_| gaps.disturbed.record(4_000_000));
        let figures = judged(&gaps).expect("98 are judged");
        let judged = [figures.p99_ns, figures.p999_ns, figures.undisturbed_max_ns];
        assert!(judged.iter().all(|ns| *ns < 1_100_000), "{figures:?}");
        assert!(figures.max_ns >= 4_000_000, "{figures:?}");
    }
}
