//! The figures of one component from all runs of a variant.

use std::collections::BTreeMap;

use laxity_devices::modem::{Outcome as CallOutcome, Report};
use laxity_model::base::histogram::Histogram;
use laxity_model::verify::contract::{Observations, Observed, Quantity, Subject, Unit};
use laxity_model::{Grade, Usage};

use super::RunDone;
use crate::each_once::each_once;
use crate::evidence::histogram::{GapJson, HistogramJson};
use crate::evidence::subjects::{
    Figures, GapFigures, GapRepeat, ModemFigures, PeriodicFigures, PhaseTime, SubjectResults,
    Transfer, median,
};
use crate::observe::{ModemProbe, Probe, Watched};
use crate::scenario::kinds::{self, key};
use crate::scenario::show_placing;
use laxity::PeriodicProbe;
use laxity::observe::{Observation, Probe as _, grades};

/// One component in one run.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) run: &'a RunDone,
    pub(super) probe: &'a Probe,
    pub(super) observation: &'a Observation,
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

    fn report(self) -> Option<&'a Report> {
        match &self.probe.watched {
            Watched::Modem(modem) => Some(&modem.installed.report),
            _ => None,
        }
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
    /// What contracts judge by.
    pub(super) fn observations(seen: &[Seen<'_>]) -> Vec<Observations> {
        let each = seen.iter().map(|seen| &seen.observation.quantities);
        each.cloned().collect()
    }

    /// The grants of its activities, each once.
    pub(super) fn grades(&self) -> Vec<(String, Grade)> {
        each_once(
            self.runs
                .iter()
                .flat_map(|seen| grades(&seen.run.record, seen.probe.holders())),
        )
    }

    /// Everything that is told of it; `receivers` are those of a modem.
    pub(super) fn results(&self, bytes: u64, receivers: u32) -> Option<SubjectResults> {
        let first = self.runs.first()?;
        let subject = &first.probe.subject;
        let figures = match &first.probe.watched {
            Watched::Modem(modem) => {
                Figures::SoftModem(Box::new(self.modem(modem, bytes, receivers)))
            }
            Watched::Periodic(task) => Figures::Periodic(Box::new(self.periodic(task))),
            Watched::Nothing if subject.kind == kinds::SPINNER => Figures::Spinner,
            Watched::Nothing if subject.kind == kinds::ROGUE => Figures::Rogue,
            Watched::Nothing => Figures::Command,
        };
        let (grade, grade_reason) = worst(&self.grades());
        Some(SubjectResults {
            name: subject.name.clone(),
            figures,
            grade,
            grade_reason,
            quantities: self.quantities(subject.kind.quantities),
        })
    }

    fn quantities(&self, all: &[Quantity]) -> BTreeMap<String, HistogramJson> {
        let named = all.iter().filter_map(|quantity| {
            let values = of_runs(&self.runs, *quantity).raw();
            let unit = match quantity.unit() {
                Unit::Nanoseconds => "ns",
                Unit::Count => "count",
            };
            (!values.is_empty()).then(|| (key(*quantity), HistogramJson::new(unit, &values)))
        });
        named.collect()
    }

    fn periodic(&self, task: &PeriodicProbe) -> PeriodicFigures {
        PeriodicFigures {
            task_period_ns: Some(task.period.as_nanos()),
            cothread_gap_ns: gaps(&self.runs),
            control_gap_ns: gaps(&self.control),
            gap_repeats: self.gap_repeats(),
        }
    }

    /// The gaps of each repeat beside those of its control, where both were measured.
    fn gap_repeats(&self) -> Vec<GapRepeat> {
        let control = |repeat| {
            let mut control = self.control.iter();
            control.find(|seen| seen.run.planned.repeat == repeat)
        };
        let pairs = self.runs.iter().filter_map(|seen| {
            Some(GapRepeat {
                variant: gap_figures(*seen),
                control: gap_figures(*control(seen.run.planned.repeat)?),
            })
        });
        pairs.collect()
    }

    fn modem(&self, modem: &ModemProbe, bytes: u64, receivers: u32) -> ModemFigures {
        let pending = of_runs(&self.runs, kinds::SAMPLES_PENDING).raw();
        let processing = of_runs(&self.runs, kinds::PROCESSING_TIME).raw();
        let (usage, request) = (self.driver_usage(), modem.placing.request());
        let lost = |quantity| sum(&of_runs(&self.runs, quantity).raw());
        ModemFigures {
            placement: show_placing(modem.placing),
            enforcer: request.map(|asked| asked.enforcer.to_string()),
            receivers,
            receiver_bit_errors: self.sum(|report| report.receiver_bit_errors.get()),
            transfer: self.transfer(bytes),
            samples_overwritten: lost(kinds::SAMPLES_OVERWRITTEN),
            samples_underrun: lost(kinds::SAMPLES_UNDERRUN),
            samples_lost_undisturbed: sum(&of_runs(&self.runs, kinds::SAMPLES_LOST).undisturbed),
            samples_undelivered: self.sum(|report| report.samples_undelivered.get()),
            samples_pending_max: pending.max().unwrap_or(0),
            samples_pending: HistogramJson::new("samples", &pending),
            processing_ns: HistogramJson::new("ns", &processing),
            cpu_share: self.cpu_share(),
            context_switches: usage.voluntary_switches + usage.involuntary_switches,
            context_switches_involuntary: usage.involuntary_switches,
            page_faults: usage.page_faults,
            phases: self.runs.first().copied().map_or_else(Vec::new, phases),
        }
    }

    fn reports(&self) -> impl Iterator<Item = &Report> {
        self.runs.iter().filter_map(|seen| seen.report())
    }

    fn sum(&self, count: impl Fn(&Report) -> u64) -> u64 {
        self.reports().map(count).sum()
    }

    /// What the modem's driver used in all runs together.
    fn driver_usage(&self) -> Usage {
        let mut sum = Usage::default();
        for seen in &self.runs {
            if let Watched::Modem(modem) = &seen.probe.watched {
                let usage = &seen.run.record.usage[modem.installed.driver.index()];
                sum.voluntary_switches += usage.voluntary_switches;
                sum.involuntary_switches += usage.involuntary_switches;
                sum.page_faults += usage.page_faults;
            }
        }
        sum
    }

    /// The share of a processor while connected: the median of the runs.
    fn cpu_share(&self) -> f64 {
        let runs = self.runs.iter();
        let connected = runs.filter_map(|seen| seen.observation.connected);
        let shares = connected.filter(|(_, span)| !span.is_zero());
        let ppm = shares.map(|(service, span)| service.as_nanos() * 1_000_000 / span.as_nanos());
        median(ppm).map_or(0.0, |ppm| ppm as f64 / 1e6)
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
    let unenforced = |(_, grade): &&(String, Grade)| *grade != Grade::Enforced;
    match grades.iter().max_by_key(unenforced) {
        Some((_, grade @ Grade::Unenforced { reason })) => {
            (Some(grade.to_string()), Some(reason.clone()))
        }
        Some((_, grade)) => (Some(grade.to_string()), None),
        None => (None, None),
    }
}

fn gap_figures(seen: Seen<'_>) -> GapFigures {
    let gaps = seen.whole(Quantity::WAKEUP_GAP);
    let all = gaps.raw();
    GapFigures {
        p99_ns: all.percentile(990_000).unwrap_or(0),
        p999_ns: all.percentile(999_000).unwrap_or(0),
        undisturbed_max_ns: gaps.undisturbed.max().unwrap_or(0),
        max_ns: all.max().unwrap_or(0),
    }
}

fn gaps(seen: &[Seen<'_>]) -> Option<GapJson> {
    let observed = of_runs(seen, Quantity::WAKEUP_GAP);
    let all = observed.raw();
    (!all.is_empty()).then(|| GapJson::new(&all, observed.undisturbed.max()))
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
