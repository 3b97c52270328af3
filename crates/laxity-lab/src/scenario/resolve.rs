//! One length of a scenario as plain data: what a runner needs, with every reference followed and every default filled in.

use laxity_model::ProcessorId;
use laxity_model::verify::contract::{Contract, Expectation};

use super::types::{
    Expectations, HostSpec, Length, LengthSpec, Line, Phases, Placing, Scenario, Start, TaskKind,
    Variant,
};
use super::units::Load;

/// A scenario at one length.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resolved {
    /// The file's name, as it was given.
    pub file: String,
    /// One line for the heads of tables and reports.
    pub title: String,
    /// What all randomness comes from.
    pub seed: u64,
    /// The machine.
    pub host: HostSpec,
    /// Which length this is.
    pub length: Length,
    /// How often, how many bytes, and how long; its phases are those of devices that override nothing.
    pub run: LengthSpec,
    /// TCP's maximum segment size in bytes.
    pub mss_bytes: u16,
    /// What is run, in the order of the file; controls are among them.
    pub variants: Vec<ResolvedVariant>,
}

impl Resolved {
    /// Keeps these variants, and the controls they are compared with; leaves all others out.
    pub fn keep(&mut self, wanted: impl Fn(&ResolvedVariant) -> bool) {
        let mut kept: Vec<bool> = self.variants.iter().map(wanted).collect();
        for index in 0..kept.len() {
            if let (true, Some(control)) = (kept[index], self.variants[index].control) {
                kept[control] = true;
            }
        }
        let new_index = |old: usize| kept[..old].iter().filter(|kept| **kept).count();
        for variant in &mut self.variants {
            variant.control = variant.control.map(new_index);
        }
        let mut kept = kept.iter();
        self.variants
            .retain(|_| kept.next().copied().unwrap_or(false));
    }
}

/// A variant with all that takes part in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResolvedVariant {
    /// Its name.
    pub name: String,
    /// One line about it; may be empty.
    pub about: String,
    /// Whether it is run on Linux.
    pub live: bool,
    /// Whether it is run in the twin.
    pub twin: bool,
    /// The devices that take part; none in a control.
    pub devices: Vec<ResolvedDevice>,
    /// The tasks that take part.
    pub tasks: Vec<ResolvedTask>,
    /// What it is judged by, and what is expected of each judgement.
    pub contracts: Vec<(Contract, Expectation)>,
    /// What else is expected.
    pub expect: Expectations,
    /// Where its calls begin.
    pub start: Start,
    /// The variant its gaps are compared with, as an index into [`Resolved::variants`].
    pub control: Option<usize>,
}

/// A device in a variant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResolvedDevice {
    /// Its name.
    pub name: String,
    /// Where its driver runs.
    pub processor: ProcessorId,
    /// And how.
    pub placing: Placing,
    /// How much of a processor its driver takes in data mode.
    pub load: Load,
    /// The telephone line.
    pub line: Line,
    /// How long each phase before the connection is.
    pub phases: Phases,
}

/// A task in a variant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResolvedTask {
    /// Its name.
    pub name: String,
    /// Where it runs.
    pub processor: ProcessorId,
    /// What it is.
    pub kind: TaskKind,
    /// A command's placement; `None` for the other kinds.
    pub placing: Option<Placing>,
}

impl Scenario {
    /// This scenario at one length. O(its size).
    #[must_use]
    pub fn resolve(&self, length: Length) -> Resolved {
        let run = match length {
            Length::Quick => self.quick,
            Length::Full => self.full,
        };
        let variants = self.variants.iter();
        Resolved {
            file: self.file.clone(),
            title: self.title.clone(),
            seed: self.seed,
            host: self.host.clone(),
            length,
            run,
            mss_bytes: self.transfer.mss_bytes,
            variants: variants
                .map(|variant| self.resolve_variant(variant, run))
                .collect(),
        }
    }

    fn resolve_variant(&self, variant: &Variant, run: LengthSpec) -> ResolvedVariant {
        let devices = variant.devices.iter().map(|(index, placing)| {
            let device = &self.devices[*index];
            ResolvedDevice {
                name: device.name.clone(),
                processor: device.processor,
                placing: *placing,
                load: device.load,
                line: device.line,
                phases: run.phases.overridden_by(device.phases),
            }
        });
        let tasks = variant.tasks.iter().map(|(index, placing)| {
            let task = &self.tasks[*index];
            ResolvedTask {
                name: task.name.clone(),
                processor: task.processor,
                kind: task.kind.clone(),
                placing: *placing,
            }
        });
        let contracts = variant.contracts.iter();
        ResolvedVariant {
            name: variant.name.clone(),
            about: variant.about.clone(),
            live: variant.live,
            twin: variant.twin,
            devices: devices.collect(),
            tasks: tasks.collect(),
            contracts: contracts
                .map(|(index, expected)| (self.contracts[*index].clone(), *expected))
                .collect(),
            expect: variant.expect,
            start: variant.start,
            control: variant.control,
        }
    }
}
