//! Whose response times are asked for in a variant, and what is said of them besides.

use laxity_model::Span;
use laxity_model::analysis::Task;

use super::bounds::Analyst;
use super::modes::Mode;
use super::sources::{Source, Work};
use crate::plan::{Bottleneck, Line};
use crate::scenario::TaskKind;

impl Analyst<'_> {
    /// Everything that recurs or runs on this processor, once: an activity, the driver in each mode; and what is said of it besides its
    /// bound, as its owner sees it.
    pub(super) fn subjects(&self) -> Vec<(Source, Line)> {
        let sources = self.stage.sources(&self.modes, false, Span::ZERO);
        let mut subjects: Vec<(Source, Line)> = Vec::new();
        for source in sources {
            let is_machine = source.activity.is_none() && source.work != Work::Endless;
            let is_known = subjects.iter().any(|(known, _)| known.is(&source));
            if is_machine || (source.activity.is_some() && is_known) {
                continue;
            }
            let asked = self.asked_period(&source.name);
            let period = asked.or(source.task().map(Task::period));
            let mut modes = self.modes.iter();
            let once = modes.any(|mode| mode.once && Some(mode.name) == source.mode);
            let line = Line {
                name: source.name.clone(),
                processor: Some(self.stage.processor),
                phase: source.mode.map(str::to_owned),
                cost_ns: match source.work {
                    Work::Jobs { net, .. } => Some(net.as_nanos()),
                    Work::Endless => None,
                },
                period_ns: period.filter(|_| !once).map(Span::as_nanos),
                deadline_ns: self.deadline(&source, asked).map(Span::as_nanos),
                ..Line::default()
            };
            subjects.push((source, line));
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
        let mut tasks = self.stage.variant.tasks.iter();
        tasks.find_map(|task| match task.kind {
            TaskKind::Periodic { period, .. } if task.name == name => Some(period),
            _ => None,
        })
    }

    /// Who takes most of the time of one that is closest to its deadline.
    pub(super) fn bottleneck(&self, subject: &Source, line: &Line) -> Bottleneck {
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
