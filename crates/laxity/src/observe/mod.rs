//! What is seen of the components of a program: each leaves a [`Probe`] when it is installed, and from the record of a run its probe
//! makes an [`Observation`] of it, which contracts are judged by and tables show.

mod recorder;

use laxity_model::verify::contract::{
    self, Contract, Evidence, Observations, Phase, RunFacts, Subject, Verdict,
};
use laxity_model::{ActivityId, Event, Grade, Instant, RunRecord, Service, Span};

pub use recorder::{Disturbances, Recorder};

/// Where the evidence of one component is to be found in the record of a run.
pub trait Probe {
    /// The component.
    fn subject(&self) -> &Subject;

    /// Its activities in the program.
    fn activities(&self) -> &[ActivityId];

    /// The activities on whose reservations it depends: its own, or that of the executor on which it takes turns.
    fn holders(&self) -> &[ActivityId] {
        self.activities()
    }

    /// Who reads its events; `None` if nothing is to be seen of it.
    fn reader<'a>(&'a self, record: &'a RunRecord) -> Option<Box<dyn Reader + 'a>>;
}

/// Components of several kinds can be judged together.
impl<P: Probe + ?Sized> Probe for Box<P> {
    fn subject(&self) -> &Subject {
        (**self).subject()
    }

    fn activities(&self) -> &[ActivityId] {
        (**self).activities()
    }

    fn holders(&self) -> &[ActivityId] {
        (**self).holders()
    }

    fn reader<'a>(&'a self, record: &'a RunRecord) -> Option<Box<dyn Reader + 'a>> {
        (**self).reader(record)
    }
}

/// Reads the events of one component.
pub trait Reader {
    /// Takes the next event of the component's activities; `phase` is the one that a component without phases is in.
    fn take(&mut self, event: &Event, phase: &Phase);

    /// The phase that the component is in, if its kind has phases.
    fn phase(&self) -> Option<&Phase> {
        None
    }

    /// What was seen, once all events are taken.
    fn finish(self: Box<Self>, subject: Subject) -> Observation;
}

/// What was seen of one component in one run.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The component.
    pub subject: Subject,
    /// The values of its quantities.
    pub quantities: Observations,
    /// When each of its phases began, by the host's clock.
    pub phases: Vec<(Instant, Phase)>,
    /// The processor time that it had while it was connected, and how long that was.
    pub connected: Option<(Service, Span)>,
}

impl Observation {
    /// Of a component that has no phases.
    #[must_use]
    pub const fn of(subject: Subject, quantities: Observations) -> Self {
        Self {
            subject,
            quantities,
            phases: Vec::new(),
            connected: None,
        }
    }
}

/// Reads a run's events once, in their order: what was seen of each component, in the order of the probes. What a task does is told by
/// the phases of the only component beside it that has some; beside none or several, a task knows only the phase [`Phase::RUN`].
#[must_use]
pub fn observe<P: Probe>(record: &RunRecord, probes: &[P]) -> Vec<Observation> {
    let readers = probes.iter().map(|probe| probe.reader(record));
    let mut readers: Vec<Option<Box<dyn Reader + '_>>> = readers.collect();
    let mut owners = vec![None; record.usage.len()];
    for (reader, probe) in probes.iter().enumerate() {
        for activity in probe.activities() {
            if let Some(owner) = owners.get_mut(activity.index()) {
                *owner = Some(reader);
            }
        }
    }
    let with_phases = readers.iter().enumerate();
    let has_phases = |reader: &dyn Reader| reader.phase().is_some();
    let mut with_phases = with_phases.filter(|(_, r)| r.as_deref().is_some_and(has_phases));
    let guide = with_phases.next().map(|(index, _)| index);
    let guide = guide.filter(|_| with_phases.next().is_none());
    let mut phase = Phase::RUN;
    for event in &record.events {
        let owner = owners.get(event.activity.index()).copied().flatten();
        let Some((owner, reader)) = owner.and_then(|n| Some((n, readers[n].as_mut()?))) else {
            continue;
        };
        reader.take(event, &phase);
        if guide == Some(owner)
            && let Some(now) = reader.phase()
            && *now != phase
        {
            phase = now.clone();
        }
    }
    let read = readers.into_iter().zip(probes);
    read.map(|(reader, probe)| {
        let subject = probe.subject().clone();
        match reader {
            Some(reader) => reader.finish(subject),
            None => Observation::of(subject, Observations::new()),
        }
    })
    .collect()
}

/// The grants that these activities had in force in a run, each with what was granted: `2ms/8ms by slots`.
pub fn grades<'a>(
    record: &'a RunRecord,
    activities: impl IntoIterator<Item = &'a ActivityId> + 'a,
) -> impl Iterator<Item = (String, Grade)> + 'a {
    let usages = activities
        .into_iter()
        .filter_map(|id| record.usage.get(id.index()));
    let grants = usages.filter_map(|usage| usage.grant.as_ref());
    let grants = grants.filter(|grant| grant.has_begun);
    grants.map(|grant| {
        let granted = format!("{} by {}", grant.reservation, grant.enforcer);
        (granted, grant.grade.clone())
    })
}

/// Judges a run by a contract: what the run's events say of the components that left these probes, the grants that they depend on, and whether the evidence is complete. [`contract::judge`] judges several runs together, and beside a control.
#[must_use]
pub fn judge<P: Probe>(contract: &Contract, record: &RunRecord, probes: &[P]) -> Verdict {
    let seen = observe(record, probes).into_iter().zip(probes);
    let all = seen.map(|(seen, probe)| Evidence {
        subject: seen.subject,
        runs: vec![seen.quantities],
        control: Vec::new(),
        grades: grades(record, probe.holders()).collect(),
    });
    let all: Vec<Evidence> = all.collect();
    contract::judge(contract, &all, &RunFacts::of([record]))
}
