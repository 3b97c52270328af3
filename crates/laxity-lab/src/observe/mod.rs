//! What is seen of the components of a program: each leaves a [`Probe`] when it is installed, and from the record of a run its probe
//! makes an [`Observation`](laxity::observe::Observation) of it, which contracts are judged by and tables show.
//!
//! Of a device (`device`), of a flow (`flow`) and of a periodic task something is seen; the other kinds are there for what they do to others.

mod device;
mod flow;
mod frames;
mod interrupts;
mod losses;
mod missing;

use laxity::PeriodicProbe;
use laxity::observe::{Reader, Run};
use laxity_model::verify::contract::Subject;
use laxity_model::{ActivityId, PortId, RunRecord};

use crate::scenario::devices::Installed;
pub use device::DeviceProbe;
pub use flow::{FlowMarks, FlowProbe, Kept, Waiting, Waits};
pub use missing::OnTheWay;

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

    /// Adds to a record what its ports alone tell: what happened to a flow and had no room until it was recorded is lost of the run, and frames that never left are told of.
    pub(crate) fn settle(&self, record: &mut RunRecord) {
        let of = |port: PortId| record.ports.get(port.index()).copied().unwrap_or_default();
        let lost: u64 = self.flows().map(|flow| of(flow.records).dropped).sum();
        let unsent = self.flows().filter_map(|flow| flow.unsent);
        let unsent = unsent.map(|port| of(port).arrived).max().unwrap_or(0);
        record.events_lost += lost;
        if unsent > 0 {
            record.notices.push(format!(
                "{unsent} frames of the near end, such as acknowledgements, found no buffer to leave from, and count as lost on the wire"
            ));
        }
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

#[cfg(test)]
mod tests {
    use laxity::Twin;
    use laxity_model::enforce::machine::Machine;
    use laxity_model::{Host, RunRecord};

    use crate::runner::admit::{ready_for_twin, supply};
    use crate::runner::run_one;
    use crate::runner::schedule::schedule;
    use crate::scenario::{Length, parse};

    /// What a recorder had no room for is lost of the run, which then convicts and acquits nobody.
    #[test]
    fn what_was_not_recorded_or_never_left_is_told() {
        let text = r#"title = "x"
quick = { idle = "1s" }
interfaces.lan = {}
flows.video = { kind = "video" }
clients.viewer = { interface = "lan", flows = ["video"], placement = "thread 24" }
variants.it = { clients = ["viewer"] }
"#;
        let scenario = parse(text, "x.toml").expect("a scenario");
        let resolved = scenario.resolve(Length::Quick);
        let done = |change: fn(&mut RunRecord)| {
            let mut host = Twin::linux(&Machine::without_costs(250), 1);
            let supply = supply(&mut host, &resolved).expect("a supply");
            let planned = schedule(&resolved, true).expect("a run").remove(0);
            let ready = ready_for_twin(&resolved, planned, &supply).expect("a program");
            let done = run_one(&resolved, ready, |_, admitted, length| {
                let mut record = host.run(admitted, length)?;
                change(&mut record);
                Ok((record, Vec::new()))
            });
            done.expect("a run").record
        };
        let whole = done(|_| {});
        assert_eq!((whole.events_lost, whole.notices.len()), (0, 0));
        let lost = done(|record| record.ports.iter_mut().for_each(|port| port.dropped += 3));
        assert_eq!(lost.events_lost, 3);
        let unsent = done(|record| record.ports.iter_mut().for_each(|port| port.arrived = 7));
        let told = unsent.notices.join("; ");
        assert!(
            told.starts_with("7 frames of the near end") && unsent.events_lost == 0,
            "{told}"
        );
    }
}
