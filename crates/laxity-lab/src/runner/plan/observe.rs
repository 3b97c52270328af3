//! How long everything took in the twin, to stand beside its bound.

use std::collections::BTreeMap;
use std::sync::Mutex;

use laxity_devices::modem::{Installed, Phase};
use laxity_model::{ActivityId, Event, EventKind, Host, Instant, Mark, RunRecord, Span};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::modes::{ANSWER, mode_of};
use super::{Ready, VariantPlan};
use crate::runner::compose::Probes;
use crate::runner::{Progress, RunError, twin};
use crate::scenario::Resolved;

/// The longest response and how many there were, by activity and mode of the driver.
type Seen = BTreeMap<(ActivityId, Option<&'static str>), (Span, u64)>;

/// Runs these variants of the plan, by their places in it, and fills in what was seen.
pub(super) fn observe(
    variants: &mut [VariantPlan],
    resolved: &Resolved,
    admitted: Vec<(usize, Ready)>,
    progress: &mut dyn Progress,
) -> Result<(), RunError> {
    progress.begin(admitted.len());
    let progress = Mutex::new(progress);
    let seen: Vec<Result<(usize, Names), RunError>> = admitted
        .into_par_iter()
        .map(|(place, ready)| {
            let run = ready.planned;
            let seen = one(resolved, ready);
            if let Ok(mut progress) = progress.lock() {
                progress.run(&resolved.variants[run.variant].name, run.repeat);
            }
            seen.map(|seen| (place, seen))
        })
        .collect();
    if let Ok(progress) = progress.into_inner() {
        progress.end();
    }
    for seen in seen {
        let (place, seen) = seen?;
        fill(&mut variants[place], &seen);
    }
    Ok(())
}

/// What was seen, by name and mode.
type Names = BTreeMap<(String, Option<&'static str>), (Span, u64)>;

fn one(resolved: &Resolved, ready: Ready) -> Result<Names, RunError> {
    let variant = &resolved.variants[ready.planned.variant];
    let length = ready.planned.length;
    let (admitted, probes) = ready.granted(variant)?;
    let activities = admitted.program.activities.iter();
    let names: Vec<String> = activities.map(|activity| activity.name.clone()).collect();
    let record = twin::host(resolved).run(admitted, length);
    let record = record.map_err(|error| RunError::of(error, variant))?;
    let seen = Reader::new(&probes).read(&record);
    let named = seen.into_iter().filter_map(|((activity, mode), found)| {
        Some(((names.get(activity.index())?.clone(), mode), found))
    });
    Ok(named.collect())
}

fn fill(variant: &mut VariantPlan, seen: &Names) {
    for line in &mut variant.activities {
        let found = seen.iter().find(|((name, mode), _)| {
            *name == line.activity && mode.is_none_or(|mode| line.phase.as_deref() == Some(mode))
        });
        if let Some((_, (longest, jobs))) = found {
            line.observed_max_ns = Some(longest.as_nanos());
            line.observed_jobs = *jobs;
        }
    }
}

/// Reads a run's events once, in their order.
struct Reader<'a> {
    probes: &'a Probes,
    seen: Seen,
    /// Since when each activity is at work on what it was last asked for.
    asked: BTreeMap<ActivityId, Instant>,
    phase: Phase,
    /// The driver's call at hand, from when its interrupt was raised.
    raised: Option<Instant>,
    /// The driver's last call, whose mode is known when the next event shows whether a phase ended with it.
    last: Option<(Phase, Span)>,
}

impl<'a> Reader<'a> {
    fn new(probes: &'a Probes) -> Self {
        Self {
            probes,
            seen: Seen::new(),
            asked: BTreeMap::new(),
            phase: Phase::OnHook,
            raised: None,
            last: None,
        }
    }

    fn read(mut self, record: &RunRecord) -> Seen {
        for event in &record.events {
            if self.phase == Phase::Ended {
                break;
            }
            self.take(event);
        }
        self.settle(None);
        self.seen
    }

    fn note(&mut self, activity: ActivityId, mode: Option<&'static str>, took: Span) {
        let (longest, jobs) = self.seen.entry((activity, mode)).or_default();
        *longest = took.max(*longest);
        *jobs += 1;
    }

    fn take(&mut self, event: &Event) {
        let driver = self.probes.modem.as_ref().map(|modem| modem.driver);
        let told = Instant::from_nanos(event.args[0]);
        match event.kind {
            EventKind::Mark(mark) => {
                if let Some(modem) = self
                    .probes
                    .modem
                    .as_ref()
                    .filter(|modem| modem.driver == event.activity)
                {
                    self.driver_mark(modem, mark, event);
                } else if self
                    .probes
                    .cothread
                    .is_some_and(|(id, runs)| (id, runs) == (event.activity, mark))
                {
                    self.asked.insert(event.activity, told);
                }
            }
            _ if driver == Some(event.activity) => {}
            EventKind::InterruptEnter | EventKind::DeferredEnter => {
                self.asked.insert(event.activity, told);
            }
            EventKind::Wake if self.probes.rogue == Some(event.activity) => {
                self.complete(event);
                self.asked.insert(event.activity, told);
            }
            EventKind::InterruptExit | EventKind::DeferredExit | EventKind::Block => {
                self.complete(event);
            }
            _ => {}
        }
    }

    fn complete(&mut self, event: &Event) {
        if let Some(asked) = self.asked.remove(&event.activity) {
            self.note(event.activity, None, event.at.saturating_since(asked));
        }
    }

    fn driver_mark(&mut self, modem: &Installed, mark: Mark, event: &Event) {
        if mark == modem.marks.phase {
            let place = usize::try_from(event.args[0]).unwrap_or(usize::MAX);
            if let Some(phase) = Phase::ALL.get(place) {
                self.settle(Some(*phase));
                self.phase = *phase;
            }
        } else if mark == modem.marks.call_begin {
            self.settle(None);
            self.raised = Some(Instant::from_nanos(event.args[1]));
        } else if mark == modem.marks.call_end
            && let Some(raised) = self.raised.take()
        {
            self.last = Some((self.phase, event.at.saturating_since(raised)));
        }
    }

    /// The last call belongs to its phase, or is the one that recognised the answer.
    fn settle(&mut self, next: Option<Phase>) {
        let Some((phase, took)) = self.last.take() else {
            return;
        };
        let mode = match (phase, next) {
            (Phase::Dialing, Some(Phase::Training)) => Some(ANSWER),
            _ => mode_of(phase),
        };
        if let Some(modem) = &self.probes.modem {
            self.note(modem.driver, mode, took);
        }
    }
}
