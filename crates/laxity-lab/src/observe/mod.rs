//! What is seen of the components of a program: each leaves a [`Probe`] when it is installed, and from the record of a run its probe
//! makes an [`Observation`](laxity::observe::Observation) of it, which contracts are judged by and tables show.
//!
//! Of a device (`device`), of a flow (`flow`) and of a periodic task something is seen; the other kinds are there for what they do to others.

mod device;
mod flow;
mod frames;
mod interrupts;
mod losses;

use laxity::PeriodicProbe;
use laxity::observe::{Reader, Run};
use laxity_model::ActivityId;
use laxity_model::verify::contract::Subject;

use crate::scenario::devices::Installed;
pub use device::DeviceProbe;
pub use flow::{Arrivals, FlowMarks, FlowProbe, Kept, Waiting};

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
    /// A device's interrupts, calls and phases.
    Device(DeviceProbe),
    /// The jobs of a periodic task.
    Periodic(PeriodicProbe),
    /// The packets of a flow.
    Flow(FlowProbe),
    /// Nothing: it is there for what it does to others.
    Nothing,
}

/// The probes of all components of a program, in the scenario's order: devices, then tasks, clients and flows.
#[derive(Default)]
pub struct Probes(pub Vec<Probe>);

impl Probes {
    /// The devices.
    pub fn devices(&self) -> impl Iterator<Item = &DeviceProbe> {
        self.0.iter().filter_map(|probe| match &probe.watched {
            Watched::Device(device) => Some(device),
            _ => None,
        })
    }

    /// The modems among them.
    pub fn modems(&self) -> impl Iterator<Item = &DeviceProbe> {
        let has_call = |device: &&DeviceProbe| device.installed.report.modem().is_some();
        self.devices().filter(has_call)
    }

    /// The periodic tasks.
    pub fn periodic(&self) -> impl Iterator<Item = &PeriodicProbe> {
        self.0.iter().filter_map(|probe| match &probe.watched {
            Watched::Periodic(periodic) => Some(periodic),
            _ => None,
        })
    }

    /// The flows.
    pub fn flows(&self) -> impl Iterator<Item = &FlowProbe> {
        self.0.iter().filter_map(|probe| match &probe.watched {
            Watched::Flow(flow) => Some(flow),
            _ => None,
        })
    }

    /// The modem of a program that has one at most.
    pub fn modem(&self) -> Option<&Installed> {
        self.modems().next().map(|modem| &modem.installed)
    }

    /// The periodic task of a program that has one at most.
    pub fn cothread(&self) -> Option<&PeriodicProbe> {
        self.periodic().next()
    }
}

impl laxity::observe::Probe for Probe {
    fn subject(&self) -> &Subject {
        &self.subject
    }

    fn activities(&self) -> &[ActivityId] {
        &self.activities
    }

    fn holders(&self) -> &[ActivityId] {
        match &self.watched {
            Watched::Periodic(task) => task.holders(),
            Watched::Flow(flow) => &flow.holders,
            _ => &self.activities,
        }
    }

    fn reader<'a>(&'a self, run: Run<'a>) -> Option<Box<dyn Reader + 'a>> {
        match &self.watched {
            Watched::Device(device) => Some(Box::new(device::DeviceReader::new(device, run))),
            Watched::Periodic(task) => task.reader(run),
            Watched::Flow(flow) => Some(Box::new(flow::FlowReader::new(flow, run))),
            Watched::Nothing => None,
        }
    }
}
