//! Whose response times are asked for in a variant, and what is said of them besides.

use laxity_model::analysis::Task;
use laxity_model::{ActivityId, Service, Span};

use super::ActivityPlan;
use super::bounds::Analyst;
use super::modes::Mode;
use super::sources::{Source, Stance, Work};
use crate::scenario::TaskKind;

/// Whose bound is asked for: an activity, the driver in one mode.
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) activity: Option<ActivityId>,
    pub(super) mode: Option<&'static str>,
    /// For how long after its arrival a job may take.
    pub(super) deadline: Option<Span>,
    /// Jobs arrive at least so far apart, as its owner sees it.
    pub(super) period: Option<Span>,
    pub(super) net: Option<Service>,
}

impl Analyst<'_> {
    /// Everything that recurs or runs on this processor, once.
    pub(super) fn subjects(&self) -> Vec<Subject> {
        let stance = Stance::Before;
        let sources = self.stage.sources(&self.modes, stance, Span::ZERO);
        let mut subjects: Vec<Subject> = Vec::new();
        for source in sources {
            let known = |subject: &Subject| {
                (subject.activity, subject.mode) == (source.activity, source.mode)
            };
            let (task, net) = match &source.work {
                Work::Jobs { task, net } => (Some(task), Some(*net)),
                Work::Endless => (None, None),
            };
            let is_machine = source.activity.is_none() && task.is_some();
            if is_machine || (source.activity.is_some() && subjects.iter().any(known)) {
                continue;
            }
            let asked = self.asked_period(&source.name).filter(|_| source.sleeps);
            let period = asked.or(task.map(Task::period));
            let once = self
                .modes
                .iter()
                .any(|mode| mode.once && Some(mode.name) == source.mode);
            subjects.push(Subject {
                deadline: self.deadline(&source, period),
                name: source.name,
                activity: source.activity,
                mode: source.mode,
                period: period.filter(|_| !once),
                net,
            });
        }
        subjects
    }

    /// A call's output is due when the next block is; a periodic task's job when it is released again.
    fn deadline(&self, source: &Source, period: Option<Span>) -> Option<Span> {
        match source.mode {
            Some(name) => {
                let mode = self.modes.iter().find(|mode| mode.name == name);
                mode.map(|mode| mode.period)
            }
            None => period.filter(|_| source.sleeps),
        }
    }

    /// The period of a periodic task of the scenario.
    fn asked_period(&self, name: &str) -> Option<Span> {
        self.stage
            .variant
            .tasks
            .iter()
            .find_map(|task| match task.kind {
                TaskKind::Periodic { period, .. } if task.name == name => Some(period),
                _ => None,
            })
    }

    pub(super) fn line(&self, subject: &Subject) -> ActivityPlan {
        ActivityPlan {
            activity: subject.name.clone(),
            processor: self.stage.processor,
            phase: subject.mode.map(str::to_owned),
            cost_ns: subject.net.map(Service::as_nanos),
            period_ns: subject.period.map(Span::as_nanos),
            deadline_ns: subject.deadline.map(Span::as_nanos),
            bound_ns: None,
            no_bound: None,
            slack_ns: None,
            observed_max_ns: None,
            observed_jobs: 0,
        }
    }

    /// In words: who is closest to its deadline, and who takes most of its time.
    pub(super) fn bottleneck(&self, subject: &Subject, line: &ActivityPlan) -> String {
        let modes: Vec<Mode> = self
            .modes
            .iter()
            .filter(|mode| subject.mode.is_none_or(|name| name == mode.name))
            .copied()
            .collect();
        let window = Span::from_nanos(line.bound_ns.unwrap_or(0));
        let stance = self
            .cases(subject)
            .last()
            .map_or(Stance::Before, |(_, stance)| *stance);
        let sources = self.stage.sources(&modes, stance, Span::ZERO);
        let own = sources
            .iter()
            .find(|source| source.activity == subject.activity && source.mode == subject.mode);
        let rank = own.map_or(0, |own| own.rank);
        let taken = sources
            .iter()
            .filter(|source| source.rank >= rank)
            .filter_map(|source| {
                let Work::Jobs { task, .. } = &source.work else {
                    return None;
                };
                let own = source.activity == subject.activity;
                let jobs = if own && source.mode == subject.mode {
                    1
                } else {
                    window.as_nanos().div_ceil(task.period().as_nanos())
                };
                Some((task.cost().as_nanos().saturating_mul(jobs), source))
            });
        let is_patient = own.is_some_and(|own| own.sleeps);
        let tick = self.stage.machine.longest_tick().map(Span::as_nanos);
        let most = taken.max_by_key(|(taken, _)| *taken);
        let phase = line
            .phase
            .as_deref()
            .map_or_else(String::new, |phase| format!(", {phase}"));
        match most {
            Some((taken, _)) if is_patient && Some(taken) < tick => format!(
                "`{}`{phase}; most of its time it waits for a tick of the clock",
                subject.name
            ),
            Some((taken, source)) if source.activity != subject.activity => format!(
                "`{}`{phase}; most of its time is taken by `{}`, {}",
                subject.name,
                source.name,
                Span::from_nanos(taken)
            ),
            _ => format!(
                "`{}`{phase}; most of its time is taken by itself",
                subject.name
            ),
        }
    }
}
