//! What is seen of the components of a program: each leaves a [`Probe`] when it is installed, and from the record of a run its probe
//! makes an [`Observation`] of it, which contracts are judged by and tables show.
//!
//! * [`modem`], [`periodic`]: what is seen of each kind, one module a kind; of the other kinds nothing is.

pub mod modem;
pub mod periodic;
mod recorder;

use laxity_devices::modem::Installed;
use laxity_model::verify::contract::{Observations, Phase, Subject};
use laxity_model::{ActivityId, Event, Instant, RunRecord, Service, Span};

pub use modem::ModemProbe;
pub use periodic::PeriodicProbe;
pub use recorder::Disturbances;

/// Where the evidence of one component is to be found in the record of a run.
pub struct Probe {
    /// The component.
    pub subject: Subject,
    /// Its activities in the program.
    pub activities: Vec<ActivityId>,
    /// What is watched.
    pub watched: Watched,
}

/// What is watched of a component, by its kind.
pub enum Watched {
    /// A modem's interrupts, calls and phases.
    Modem(ModemProbe),
    /// The jobs of a periodic task.
    Periodic(PeriodicProbe),
    /// Nothing: it is there for what it does to others.
    Nothing,
}

/// The probes of all components of a program, in the scenario's order: devices, then tasks.
#[derive(Default)]
pub struct Probes(pub Vec<Probe>);

impl Probes {
    /// The modems.
    pub fn modems(&self) -> impl Iterator<Item = &ModemProbe> {
        self.0.iter().filter_map(|probe| match &probe.watched {
            Watched::Modem(modem) => Some(modem),
            _ => None,
        })
    }

    /// The periodic tasks.
    pub fn periodic(&self) -> impl Iterator<Item = &PeriodicProbe> {
        self.0.iter().filter_map(|probe| match &probe.watched {
            Watched::Periodic(periodic) => Some(periodic),
            _ => None,
        })
    }

    /// The modem of a program that has one at most.
    #[must_use]
    pub fn modem(&self) -> Option<&Installed> {
        self.modems().next().map(|modem| &modem.installed)
    }

    /// The periodic task of a program that has one at most.
    #[must_use]
    pub fn cothread(&self) -> Option<&PeriodicProbe> {
        self.periodic().next()
    }
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
    const fn of(subject: Subject, quantities: Observations) -> Self {
        Self {
            subject,
            quantities,
            phases: Vec::new(),
            connected: None,
        }
    }
}

/// Reads the events of one component.
trait Reader {
    /// Takes the next event of the component's activities; `phase` is the one that a component without phases is in.
    fn take(&mut self, event: &Event, phase: &Phase);

    /// The phase that the component is in, if its kind has phases.
    fn phase(&self) -> Option<&Phase> {
        None
    }

    /// What was seen, once all events are taken.
    fn finish(self: Box<Self>, subject: Subject) -> Observation;
}

/// Reads a run's events once, in their order: what was seen of each component, in the order of the probes. What a task does is told by
/// the phases of the only modem beside it; beside none or several, a task knows only the phase [`Phase::RUN`].
#[must_use]
pub fn observe(record: &RunRecord, probes: &Probes) -> Vec<Observation> {
    let mut readers: Vec<Option<Box<dyn Reader + '_>>> = Vec::new();
    for probe in &probes.0 {
        readers.push(match &probe.watched {
            Watched::Modem(modem) => Some(Box::new(modem::ModemReader::new(modem, record))),
            Watched::Periodic(task) => Some(Box::new(periodic::PeriodicReader::new(task, record))),
            Watched::Nothing => None,
        });
    }
    let mut owners = vec![None; record.usage.len()];
    for (reader, probe) in probes.0.iter().enumerate() {
        for activity in &probe.activities {
            if let Some(owner) = owners.get_mut(activity.index()) {
                *owner = Some(reader);
            }
        }
    }
    let is_modem = |probe: &Probe| matches!(probe.watched, Watched::Modem(_));
    let guide = probes.0.iter().position(is_modem);
    let guide = guide.filter(|_| probes.modems().count() == 1);
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
    let read = readers.into_iter().zip(&probes.0);
    read.map(|(reader, probe)| {
        let subject = probe.subject.clone();
        match reader {
            Some(reader) => reader.finish(subject),
            None => Observation::of(subject, Observations::new()),
        }
    })
    .collect()
}
