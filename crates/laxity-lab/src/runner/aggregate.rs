//! From runs to results: each variant's repeats put together, judged, and compared with what the scenario expects.

use std::collections::BTreeMap;
use std::sync::Arc;

use laxity_devices::modem::{Outcome as CallOutcome, Phase as ModemPhase, Report};
use laxity_model::base::histogram::Histogram;
use laxity_model::verify::contract::{
    Expectation, Observations, Observed, Outcome, Quantity, RunFacts, Unit, as_expected, judge,
};
use laxity_model::{Grade, Instant, Span, Usage};

use super::RunDone;
use crate::evidence::results::{
    ContractResults, Disturbed, GapFigures, GapJson, GapRepeat, HistogramJson, PhaseTime, Transfer,
    VariantResults, VerdictJson,
};
use crate::scenario::{ExpectedGrade, Loss, Outcome as ExpectedOutcome, Resolved, ResolvedVariant};

/// The results of one variant from all runs of the scenario; `None` if it was not run.
#[must_use]
pub fn variant(
    resolved: &Resolved,
    index: usize,
    runs: &[RunDone],
    receivers: u32,
) -> Option<VariantResults> {
    let of = |index: usize| {
        runs.iter()
            .filter(move |run| run.planned.variant == index)
            .collect::<Vec<_>>()
    };
    let variant = &resolved.variants[index];
    let made = of(index);
    let first = *made.first()?;
    let control = variant.control.map(of).unwrap_or_default();
    let aggregate = Aggregate {
        variant,
        runs: &made,
        control: &control,
    };
    let mut results = aggregate.figures(first, resolved, receivers);
    aggregate.judge(&mut results);
    Some(results)
}

struct Aggregate<'a> {
    variant: &'a ResolvedVariant,
    runs: &'a [&'a RunDone],
    control: &'a [&'a RunDone],
}

fn whole(run: &RunDone, quantity: Quantity) -> Observed {
    run.seen.observations.whole(quantity)
}

fn gap_figures(run: &RunDone) -> GapFigures {
    let gaps = whole(run, Quantity::WakeupGap);
    let all = gaps.raw();
    GapFigures {
        p99_ns: all.percentile(990_000).unwrap_or(0),
        p999_ns: all.percentile(999_000).unwrap_or(0),
        undisturbed_max_ns: gaps.undisturbed.max().unwrap_or(0),
        max_ns: all.max().unwrap_or(0),
    }
}

fn gaps(runs: &[&RunDone]) -> Option<GapJson> {
    let mut observed = Observed::default();
    for run in runs {
        observed.merge(&whole(run, Quantity::WakeupGap));
    }
    let all = observed.raw();
    (!all.is_empty()).then(|| GapJson::new(&all, observed.undisturbed.max()))
}

impl Aggregate<'_> {
    /// The runs whose transfer can end; others only repeat the gaps.
    fn whole_calls(&self) -> impl Iterator<Item = &RunDone> {
        self.runs
            .iter()
            .copied()
            .filter(|run| !run.planned.gaps_only)
    }

    fn reports(&self) -> impl Iterator<Item = &Arc<Report>> {
        self.runs.iter().filter_map(|run| run.report.as_ref())
    }

    fn sum(&self, count: impl Fn(&Report) -> u64) -> u64 {
        self.reports().map(|report| count(report)).sum()
    }

    fn pooled(&self, quantity: Quantity) -> Histogram {
        let mut all = Histogram::new();
        for run in self.runs {
            all.merge(&whole(run, quantity).raw());
        }
        all
    }

    /// The sum of what was counted while nothing disturbed.
    fn undisturbed(&self, quantity: Quantity) -> u64 {
        let sums = self
            .runs
            .iter()
            .map(|run| whole(run, quantity).undisturbed.sum());
        u64::try_from(sums.sum::<u128>()).unwrap_or(u64::MAX)
    }

    /// Elapsed times of all calls of the signal processing.
    fn processing(&self) -> Histogram {
        let mut all = Histogram::new();
        for run in self.runs {
            all.merge(&run.seen.processing);
        }
        all
    }

    /// What the modem's driver used in all runs together.
    fn driver_usage(&self) -> Usage {
        let mut sum = Usage::default();
        for run in self.runs {
            if let Some(modem) = &run.probes.modem {
                let usage = &run.record.usage[modem.driver.index()];
                sum.voluntary_switches += usage.voluntary_switches;
                sum.involuntary_switches += usage.involuntary_switches;
                sum.page_faults += usage.page_faults;
            }
        }
        sum
    }

    /// Time that the hypervisor took away, as the kernel counts it; `None` in the twin.
    fn steal_ns(&self) -> Option<u64> {
        self.runs
            .iter()
            .map(|run| run.record.steal.map(Span::as_nanos))
            .sum()
    }

    fn figures(&self, first: &RunDone, resolved: &Resolved, receivers: u32) -> VariantResults {
        let pending = self.pooled(Quantity::SamplesPending);
        let usage = self.driver_usage();
        let placing = first.probes.placing;
        let mut results = VariantResults {
            name: self.variant.name.clone(),
            about: self.variant.about.clone(),
            placement: placing.map_or_else(|| "absent".into(), |placing| placing.to_string()),
            enforcer: placing.and_then(|p| p.enforcer()).map(|e| e.to_string()),
            grade: None,
            grade_reason: None,
            repeats: self.runs.len() as u32,
            receivers: if first.report.is_some() { receivers } else { 0 },
            receiver_bit_errors: self.sum(|report| report.receiver_bit_errors.get()),
            transfer: self.transfer(resolved.run.bytes),
            samples_lost: self.sum(|report| report.samples_lost.get()),
            samples_underrun: self.sum(|report| report.samples_underrun.get()),
            samples_lost_undisturbed: self.undisturbed(Quantity::SamplesLost),
            samples_undelivered: self.sum(|report| report.samples_undelivered.get()),
            samples_pending_max: pending.max().unwrap_or(0),
            samples_pending: HistogramJson::new("samples", &pending),
            processing_ns: HistogramJson::new("ns", &self.processing()),
            cpu_share: self.cpu_share(),
            cothread_gap_ns: gaps(self.runs),
            control_gap_ns: gaps(self.control),
            gap_repeats: self.gap_repeats(),
            quantities: self.quantities(),
            context_switches: usage.voluntary_switches + usage.involuntary_switches,
            context_switches_involuntary: usage.involuntary_switches,
            page_faults: usage.page_faults,
            steal_ns: self.steal_ns(),
            disturbed: self.disturbed(),
            phases: phases(first),
            events_recorded: first.trace.as_ref().map_or(0, |t| t.events.len() as u64),
            events_lost: self.runs.iter().map(|run| run.record.events_lost).sum(),
            contracts: Vec::new(),
            expected: Expectation::Any,
            surprises: Vec::new(),
            as_expected: false,
            verdict: VerdictJson {
                result: Outcome::Inconclusive,
                reasons: Vec::new(),
            },
        };
        if let Some((_, grade)) = self
            .grades()
            .into_iter()
            .max_by_key(|(_, grade)| *grade != Grade::Enforced)
        {
            results.set_grade(&grade);
        }
        results
    }

    /// The share of a processor while connected: the median of the runs.
    fn cpu_share(&self) -> f64 {
        let connected = self.runs.iter().filter_map(|run| run.seen.connected);
        let shares = connected.filter(|(_, span)| !span.is_zero());
        let mut ppm: Vec<u64> = shares
            .map(|(service, span)| service.as_nanos() * 1_000_000 / span.as_nanos())
            .collect();
        ppm.sort_unstable();
        ppm.get(ppm.len().saturating_sub(1) / 2)
            .map_or(0.0, |ppm| *ppm as f64 / 1e6)
    }

    fn transfer(&self, bytes: u64) -> Transfer {
        let outcomes: Vec<_> = self
            .whole_calls()
            .filter_map(|run| run.report.as_ref())
            .map(|r| r.outcome())
            .collect();
        let mut durations: Vec<u64> = outcomes
            .iter()
            .filter_map(|outcome| duration_ns(*outcome))
            .collect();
        durations.sort_unstable();
        let completed = !outcomes.is_empty() && durations.len() == outcomes.len();
        let is_right = |outcome: &Option<&CallOutcome>| {
            matches!(
                outcome,
                Some(CallOutcome::Done {
                    checksum_ok: true,
                    ..
                })
            )
        };
        let failure = outcomes.iter().find_map(|outcome| match outcome {
            Some(CallOutcome::Failed { result, reason }) => Some(format!("{result}: {reason}")),
            _ => None,
        });
        let unfinished = (!completed && !outcomes.is_empty())
            .then(|| "not complete when its time was over".to_string());
        Transfer {
            completed,
            checksum_ok: completed && outcomes.iter().all(is_right),
            bytes: if outcomes.is_empty() { 0 } else { bytes },
            duration_ns: completed.then(|| durations[(durations.len() - 1) / 2]),
            failure: failure.or(unfinished),
            rate_down_bit_s: self
                .reports()
                .map(|r| r.rate_down_bit_s.get())
                .max()
                .unwrap_or(0),
            rate_up_bit_s: self
                .reports()
                .map(|r| r.rate_up_bit_s.get())
                .max()
                .unwrap_or(0),
            retransmissions: self
                .sum(|r| r.retransmissions_near.get() + r.retransmissions_far.get()),
            retrainings: self.sum(|report| report.retrainings.get()),
        }
    }

    /// The gaps of each repeat beside those of its control, where both were measured.
    fn gap_repeats(&self) -> Vec<GapRepeat> {
        let control = |repeat| self.control.iter().find(|run| run.planned.repeat == repeat);
        let pairs = self
            .runs
            .iter()
            .filter_map(|run| Some((run, control(run.planned.repeat)?)));
        pairs
            .map(|(run, control)| GapRepeat {
                variant: gap_figures(run),
                control: gap_figures(control),
            })
            .collect()
    }

    fn quantities(&self) -> BTreeMap<String, HistogramJson> {
        let named = Quantity::ALL.into_iter().filter_map(|quantity| {
            let all = self.pooled(quantity);
            let (suffix, unit) = match quantity.unit() {
                Unit::Nanoseconds => ("_ns", "ns"),
                Unit::Count => ("", "count"),
            };
            let name = format!("{}{suffix}", quantity.name());
            (!all.is_empty()).then(|| (name, HistogramJson::new(unit, &all)))
        });
        named.collect()
    }

    fn disturbed(&self) -> Disturbed {
        let all = self.runs.iter().flat_map(|run| &run.record.disturbances);
        let count = all.clone().count() as u64;
        let witness_wakeups: u64 = self.runs.iter().map(|run| run.record.witness_wakeups).sum();
        let share = (count * 1_000_000)
            .checked_div(witness_wakeups)
            .unwrap_or(0);
        Disturbed {
            count,
            witness_wakeups,
            total_ns: all.map(|d| d.to.saturating_since(d.from).as_nanos()).sum(),
            share_ppm: u32::try_from(share).unwrap_or(u32::MAX),
        }
    }

    fn grades(&self) -> Vec<(String, Grade)> {
        let usages = self.runs.iter().flat_map(|run| run.record.usage.iter());
        let mut grades: Vec<(String, Grade)> = Vec::new();
        for grant in usages.filter_map(|usage| usage.grant.as_ref()) {
            let named = (
                format!("{} by {}", grant.reservation, grant.enforcer),
                grant.grade.clone(),
            );
            if !grades.contains(&named) {
                grades.push(named);
            }
        }
        grades
    }

    fn judge(&self, results: &mut VariantResults) {
        let observations: Vec<Observations> = self
            .runs
            .iter()
            .map(|run| run.seen.observations.clone())
            .collect();
        let control: Vec<Observations> = self
            .control
            .iter()
            .map(|run| run.seen.observations.clone())
            .collect();
        let facts = RunFacts {
            events_lost: results.events_lost,
            disturbed_ppm: results.disturbed.share_ppm,
            grades: self.grades(),
        };
        for (contract, expected) in &self.variant.contracts {
            let verdict = judge(contract, &observations, &control, &facts);
            results.contracts.push(ContractResults {
                name: contract.name.clone(),
                expected: *expected,
                as_expected: as_expected(&verdict, *expected),
                verdict: VerdictJson::from(&verdict),
            });
        }
        let surprises = self.surprises(results);
        results.summarise(surprises);
        let lost = results.samples_lost + results.samples_underrun;
        let disturbed = lost.saturating_sub(results.samples_lost_undisturbed);
        if disturbed > 0 {
            let note = format!(
                "{disturbed} of {lost} samples were lost or underrun where the machine itself stood still: not judged"
            );
            results.verdict.reasons.push(note);
        }
    }

    /// What differs from the scenario's other expectations.
    fn surprises(&self, results: &VariantResults) -> Vec<String> {
        let expect = self.variant.expect;
        let mut surprises = Vec::new();
        if results.samples_undelivered > 0 {
            surprises.push(format!(
                "the far end came too late for {} samples",
                results.samples_undelivered
            ));
        }
        if self.variant.devices.is_empty() {
            return surprises;
        }
        let lost = results.samples_lost_undisturbed;
        match expect.lost {
            Loss::None if lost > 0 => surprises.push(format!(
                "{lost} samples were lost or underrun while nothing disturbed, none was to be"
            )),
            Loss::Some if lost == 0 => {
                surprises.push("no sample was lost or underrun, some were to be".into());
            }
            _ => {}
        }
        let complete = results.transfer.completed && results.transfer.checksum_ok;
        match expect.transfer {
            ExpectedOutcome::Complete if !complete => {
                let why = results
                    .transfer
                    .failure
                    .clone()
                    .unwrap_or_else(|| "wrong checksum".into());
                surprises.push(format!("the transfer was to complete: {why}"));
            }
            ExpectedOutcome::Fails if complete => {
                surprises.push("the transfer was to fail, and completed".into());
            }
            _ => {}
        }
        match (expect.grade, results.grade.as_deref()) {
            (Some(ExpectedGrade::Enforced), Some("unenforced")) => {
                let why = results.grade_reason.clone().unwrap_or_default();
                surprises.push(format!("the reservation is not enforced: {why}"));
            }
            (Some(ExpectedGrade::Unenforced), Some("enforced")) => {
                surprises.push("the reservation was to be unenforced, and is enforced".into());
            }
            (Some(_), None) => surprises
                .push("the reservation was never granted: the modem did not get so far".into()),
            _ => {}
        }
        surprises
    }
}

fn duration_ns(outcome: Option<&CallOutcome>) -> Option<u64> {
    match outcome? {
        CallOutcome::Done { duration, .. } => Some(duration.as_nanos()),
        CallOutcome::Failed { .. } => None,
    }
}

/// The phases of a run, from its start.
fn phases(run: &RunDone) -> Vec<PhaseTime> {
    let after = |at: Instant| at.saturating_since(run.record.start).as_nanos();
    let starts: Vec<(u64, ModemPhase)> = run
        .seen
        .phases
        .iter()
        .map(|(at, phase)| (after(*at), *phase))
        .collect();
    let ends = starts
        .iter()
        .skip(1)
        .map(|(at, _)| *at)
        .chain([after(run.record.end)]);
    let timed = starts
        .iter()
        .zip(ends)
        .map(|((start, phase), end)| PhaseTime {
            name: phase.name().into(),
            start_ns: *start,
            duration_ns: end.saturating_sub(*start),
        });
    timed.collect()
}
