//! Whose response times are asked for in a variant, and what is said of them besides.

use laxity_model::analysis::Task;
use laxity_model::{ActivityId, Service, Span};

use super::bounds::Analyst;
use super::modes::Mode;
use super::sources::{Source, Work};
use crate::plan::{Bottleneck, Line};
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

impl Subject {
    /// The jobs of a source, whenever they are due.
    pub(super) fn of(source: &Source) -> Self {
        Self {
            name: source.name.clone(),
            activity: source.activity,
            mode: source.mode,
            deadline: None,
            period: None,
            net: None,
        }
    }

    /// Whether a source is this one's jobs.
    pub(super) fn is(&self, source: &Source) -> bool {
        (self.activity, self.mode) == (source.activity, source.mode)
    }
}

impl Analyst<'_> {
    /// Everything that recurs or runs on this processor, once.
    pub(super) fn subjects(&self) -> Vec<Subject> {
        let sources = self.stage.sources(&self.modes, false, Span::ZERO);
        let mut subjects: Vec<Subject> = Vec::new();
        for source in sources {
            let is_machine = source.activity.is_none() && source.work != Work::Endless;
            let is_known = subjects.iter().any(|subject| subject.is(&source));
            if is_machine || (source.activity.is_some() && is_known) {
                continue;
            }
            let asked = self.asked_period(&source.name);
            let period = asked.or(source.task().map(Task::period));
            let mut modes = self.modes.iter();
            let once = modes.any(|mode| mode.once && Some(mode.name) == source.mode);
            subjects.push(Subject {
                deadline: self.deadline(&source, asked),
                period: period.filter(|_| !once),
                net: match source.work {
                    Work::Jobs { net, .. } => Some(net),
                    Work::Endless => None,
                },
                ..Subject::of(&source)
            });
        }
        subjects
    }

    /// A call's output is due when the next block is; a periodic task's job when it is released again.
    fn deadline(&self, source: &Source, asked: Option<Span>) -> Option<Span> {
        match source.mode {
            Some(name) => {
                let mode = self.modes.iter().find(|mode| mode.name == name);
                mode.map(|mode| mode.period)
            }
            None => asked,
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

    pub(super) fn line(&self, subject: &Subject) -> Line {
        Line {
            name: subject.name.clone(),
            processor: Some(self.stage.processor),
            phase: subject.mode.map(str::to_owned),
            cost_ns: subject.net.map(Service::as_nanos),
            period_ns: subject.period.map(Span::as_nanos),
            deadline_ns: subject.deadline.map(Span::as_nanos),
            ..Line::default()
        }
    }

    /// Who takes most of the time of one that is closest to its deadline.
    pub(super) fn bottleneck(&self, subject: &Subject, line: &Line) -> Bottleneck {
        let modes: Vec<Mode> = self.cases(subject).into_iter().flatten().copied().collect();
        let window = line.bound_ns.unwrap_or(0);
        let reserved = self.stage.is_reserved(modes.last());
        let sources = self.stage.sources(&modes, reserved, Span::ZERO);
        let own = sources.iter().find(|source| subject.is(source));
        let rank = own.map_or(0, |own| own.rank);
        let first = sources.iter().filter(|source| source.rank >= rank);
        let taken = first.filter_map(|source| {
            let task = source.task()?;
            let jobs = if subject.is(source) {
                1
            } else {
                window.div_ceil(task.period().as_nanos())
            };
            Some((task.cost().as_nanos().saturating_mul(jobs), source))
        });
        let most = taken.max_by_key(|(taken, _)| *taken);
        let (contribution_ns, contributor) =
            most.map_or((0, &subject.name), |(taken, source)| (taken, &source.name));
        let is_patient = own.is_some_and(|own| own.sleeps) && most.is_some();
        let tick = self.stage.machine.longest_tick().map(Span::as_nanos);
        let waits = is_patient && Some(contribution_ns) < tick;
        Bottleneck {
            name: subject.name.clone(),
            phase: line.phase.clone(),
            contributor: (!waits).then(|| contributor.clone()),
            contribution_ns,
        }
    }
}
