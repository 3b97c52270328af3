//! How long everything took in the twin, to stand beside its bound.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use laxity_devices::modem::{Marks, Phase};
use laxity_model::{
    Activity, ActivityId, Event, EventKind, Host, Instant, Mark, ProcessorId, RunRecord, Span,
};

use super::{Ready, VariantPlan};
use crate::observe::{Probe, Probes};
use crate::runner::modes::{ANSWER, mode_of};
use crate::runner::{Progress, RunError, pool, twin};
use crate::scenario::kinds::{CLIENT, ROGUE};
use crate::scenario::{Resolved, ResolvedVariant};

/// The longest response and how many there were, by activity and mode of the driver.
type Seen = BTreeMap<(ActivityId, Option<&'static str>), (Span, u64)>;

/// Runs these variants of the plan, by their places in it, and fills in what was seen.
pub(super) fn observe(
    variants: &mut [VariantPlan],
    resolved: &Resolved,
    admitted: Vec<(usize, Ready)>,
    progress: &mut dyn Progress,
) -> Result<(), RunError> {
    let variant = |ready: &Ready| &resolved.variants[ready.planned.variant];
    let name = |(_, ready): &(usize, Ready)| variant(ready).name.clone();
    let one = |(place, ready)| Ok((place, one(resolved, ready)?));
    let seen = pool::map(admitted, 0, name, one, progress)?;
    progress.end();
    for (place, seen) in seen {
        fill(&mut variants[place], &seen);
    }
    Ok(())
}

/// What was seen, by name and mode.
pub(super) type Names = BTreeMap<(String, Option<&'static str>), (Span, u64)>;

fn one(resolved: &Resolved, ready: Ready) -> Result<Names, RunError> {
    let variant = &resolved.variants[ready.planned.variant];
    seen_on(&mut twin::host(resolved), ready, variant)
}

/// Runs what was admitted on this host, and reads what is to be seen of it.
pub(super) fn seen_on(
    host: &mut dyn Host,
    ready: Ready,
    variant: &ResolvedVariant,
) -> Result<Names, RunError> {
    let length = ready.planned.length;
    let (admitted, probes) = ready.granted(variant)?;
    let reader = Reader::new(&probes, &admitted.program.activities);
    let activities = admitted.program.activities.iter();
    let mut names: Vec<String> = activities.map(|activity| activity.name.clone()).collect();
    for client in clients(&probes) {
        for thread in &client.activities {
            names[thread.index()].clone_from(&client.subject.name);
        }
    }
    let record = host.run(admitted, length);
    let record = record.map_err(|error| RunError::of(error, &variant.name))?;
    let mut named = Names::new();
    for ((activity, mode), (longest, jobs)) in reader.read(&record) {
        let Some(name) = names.get(activity.index()) else {
            continue;
        };
        let all = named.entry((name.clone(), mode)).or_default();
        *all = (all.0.max(longest), all.1 + jobs);
    }
    Ok(named)
}

/// Whose threads take packets.
fn clients(probes: &Probes) -> impl Iterator<Item = &Probe> {
    probes.0.iter().filter(|probe| probe.subject.kind == CLIENT)
}

pub(super) fn fill(variant: &mut VariantPlan, seen: &Names) {
    for line in &mut variant.lines {
        let found = seen.iter().find(|((name, mode), _)| {
            *name == line.name && mode.is_none_or(|mode| line.phase.as_deref() == Some(mode))
        });
        if let Some((_, (longest, jobs))) = found {
            line.see(Some(longest.as_nanos()), *jobs);
        }
    }
    for device in &mut variant.devices {
        let mut calls = variant
            .lines
            .iter()
            .filter(|line| line.name == device.activity);
        device.is_unseen = calls.all(|line| line.observed_jobs == 0);
    }
}

/// What a device's driver is at.
struct Call {
    processor: ProcessorId,
    marks: Marks,
    /// A modem's; `None` of a device that has no phases.
    phase: Option<Phase>,
    /// The call at hand, from when its interrupt was raised.
    raised: Option<Instant>,
    /// The last call, whose mode is known when the next event shows whether a phase ended with it.
    last: Option<(Option<Phase>, Span)>,
}

/// The deferred call behind a handler. While it cannot run it is queued once, however often it is asked for; then it serves them one by one
/// and returns after the last, so that its return tells nothing of those before.
#[derive(Default)]
struct Queued {
    /// Since when each waits that is not begun.
    waiting: VecDeque<Instant>,
    /// It was entered, for the first of them.
    entered: bool,
}

/// Reads a run's events once, in their order.
struct Reader {
    seen: Seen,
    /// Where each activity is.
    processors: Vec<ProcessorId>,
    /// Since when each activity is at work on what it was last asked for.
    asked: BTreeMap<ActivityId, Instant>,
    /// The drivers.
    calls: BTreeMap<ActivityId, Call>,
    /// The deferred calls that wake drivers.
    queued: BTreeMap<ActivityId, Queued>,
    /// The handler's own, for each handler that has one.
    behind: BTreeMap<ActivityId, ActivityId>,
    /// The periodic tasks, with the mark that their jobs begin with, and that of their ends where their waits do not tell of those: a wait for a budget is none.
    periodic: BTreeMap<ActivityId, (Mark, Option<Mark>)>,
    rogues: BTreeSet<ActivityId>,
    /// The threads of clients, each of whose jobs is a packet, from its arrival on.
    takers: BTreeSet<ActivityId>,
}

impl Reader {
    fn new(probes: &Probes, activities: &[Activity]) -> Self {
        let calls = probes.devices().map(|device| {
            let installed = &device.installed;
            let call = Call {
                processor: activities[installed.driver.index()].processor,
                marks: installed.marks,
                phase: installed.report.modem().map(|_| Phase::OnHook),
                raised: None,
                last: None,
            };
            (installed.driver, call)
        });
        let behind = probes.devices().filter_map(|device| {
            let installed = &device.installed;
            Some((installed.interrupt, installed.deferred?))
        });
        let behind: BTreeMap<ActivityId, ActivityId> = behind.collect();
        let rogues = probes.0.iter().filter(|probe| probe.subject.kind == ROGUE);
        Self {
            seen: Seen::new(),
            processors: activities.iter().map(|one| one.processor).collect(),
            asked: BTreeMap::new(),
            calls: calls.collect(),
            queued: behind.values().map(|id| (*id, Queued::default())).collect(),
            behind,
            periodic: probes
                .periodic()
                .map(|t| (t.activity, (t.runs, t.ends)))
                .collect(),
            rogues: rogues.flat_map(|probe| probe.activities.clone()).collect(),
            takers: clients(probes)
                .flat_map(|client| client.activities.clone())
                .collect(),
        }
    }

    fn read(mut self, record: &RunRecord) -> Seen {
        for event in &record.events {
            if !self.is_over(event.activity) {
                self.take(event);
            }
        }
        let drivers: Vec<ActivityId> = self.calls.keys().copied().collect();
        for driver in drivers {
            self.settle(driver, None);
        }
        self.seen
    }

    /// Whether the calls on an activity's processor are over: what is there then, no bound is about.
    fn is_over(&self, activity: ActivityId) -> bool {
        let here = self.processors.get(activity.index());
        let calls = self.calls.values();
        let calls = calls.filter(|call| Some(&call.processor) == here);
        let mut phases = calls.filter_map(|call| call.phase).peekable();
        phases.peek().is_some() && phases.all(|phase| phase == Phase::Ended)
    }

    fn note(&mut self, activity: ActivityId, mode: Option<&'static str>, took: Span) {
        let (longest, jobs) = self.seen.entry((activity, mode)).or_default();
        *longest = took.max(*longest);
        *jobs += 1;
    }

    fn take(&mut self, event: &Event) {
        let told = Instant::from_nanos(event.args[0]);
        let is_driver = self.calls.contains_key(&event.activity);
        let marks = self.periodic.get(&event.activity);
        let (runs, ends) = marks.map_or((None, None), |(runs, ends)| (Some(*runs), *ends));
        match event.kind {
            EventKind::Mark(mark) if is_driver => self.driver_mark(mark, event),
            EventKind::Mark(mark) if ends == Some(mark) => self.complete(event),
            EventKind::Mark(mark) if runs != Some(mark) => {}
            EventKind::Block if ends.is_some() => {}
            _ if is_driver => {}
            EventKind::Signal => self.signal(event),
            EventKind::Mark(_) | EventKind::InterruptEnter | EventKind::DeferredEnter => {
                self.asked.insert(event.activity, told);
                if let Some(queued) = self.queued.get_mut(&event.activity) {
                    queued.entered = true;
                }
            }
            EventKind::Deliver if self.takers.contains(&event.activity) => {
                // It takes the next one when it is done with the one before.
                self.complete(event);
                self.asked.insert(event.activity, told);
            }
            EventKind::Wake if self.rogues.contains(&event.activity) => {
                self.complete(event);
                self.asked.insert(event.activity, told);
            }
            EventKind::InterruptExit | EventKind::DeferredExit | EventKind::Block => {
                self.complete(event);
            }
            _ => {}
        }
    }

    /// A handler asks for its deferred call; or that begins with the next of them, and is done with the one before.
    fn signal(&mut self, event: &Event) {
        let behind = self.behind.get(&event.activity);
        if let Some(queued) = behind.and_then(|deferred| self.queued.get_mut(deferred)) {
            return queued.waiting.push_back(event.at);
        }
        let Some(queued) = self.queued.get_mut(&event.activity) else {
            return;
        };
        let next = queued.waiting.pop_front();
        if std::mem::take(&mut queued.entered) {
            return;
        }
        self.complete(event);
        if let Some(next) = next {
            self.asked.insert(event.activity, next);
        }
    }

    fn complete(&mut self, event: &Event) {
        if let Some(asked) = self.asked.remove(&event.activity) {
            self.note(event.activity, None, event.at.saturating_since(asked));
        }
    }

    fn driver_mark(&mut self, mark: Mark, event: &Event) {
        let driver = event.activity;
        let Some(call) = self.calls.get_mut(&driver) else {
            return;
        };
        if mark == call.marks.phase {
            let place = usize::try_from(event.args[0]).unwrap_or(usize::MAX);
            if let Some(phase) = Phase::ALL.get(place) {
                call.phase = Some(*phase);
                self.settle(driver, Some(*phase));
            }
        } else if mark == call.marks.call_begin {
            call.raised = Some(Instant::from_nanos(event.args[1]));
            self.settle(driver, None);
        } else if mark == call.marks.call_end
            && let Some(raised) = call.raised.take()
        {
            call.last = Some((call.phase, event.at.saturating_since(raised)));
        }
    }

    /// The last call belongs to its phase, or is the one that recognised the answer.
    fn settle(&mut self, driver: ActivityId, next: Option<Phase>) {
        let call = self.calls.get_mut(&driver);
        let Some((phase, took)) = call.and_then(|call| call.last.take()) else {
            return;
        };
        let mode = match (phase, next) {
            (Some(Phase::Dialing), Some(Phase::Training)) => Some(ANSWER),
            _ => phase.and_then(mode_of),
        };
        self.note(driver, mode, took);
    }
}
