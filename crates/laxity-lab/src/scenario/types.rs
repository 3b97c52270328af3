//! What a scenario says, as plain data.

mod network;
mod tasks;

use std::collections::BTreeSet;
use std::sync::Arc;

use laxity_model::analysis::devices::Open;
use laxity_model::verify::contract::{Contract, Expectation, Phase};
use laxity_model::{Enforcer, ProcessorId, Reservation, Service, Span};

use crate::command_line;
use crate::each_once::each_once;

use super::devices::{Device, Phases};
use super::diagnostic::Diagnostic;
use super::lengths::{Length, LengthSpec};
use super::profile::TwinProfile;
use super::units::Load;
use super::{Placing, kinds};

pub use network::{Demultiplexing, Flow, Interface, NetworkClient, Taking, Traffic};
pub use tasks::{
    Executor, PeriodicRank, Rank, ResolvedTask, TaskGroup, TaskKind, TaskLinks, TurnPolicy,
};

/// A scenario file, read and checked. Names are unique within their kind; every reference leads somewhere.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// At [`Length::Quick`].
    pub(super) quick: Resolved,
    /// How long [`Length::Full`] is.
    pub(super) full: LengthSpec,
    /// What the author may want to know, though it is no error.
    pub notes: Vec<Diagnostic>,
}

impl Scenario {
    /// This scenario at one length.
    pub fn resolve(self, length: Length) -> Resolved {
        let run = match length {
            Length::Quick => self.quick.run,
            Length::Full => self.full,
        };
        let mut resolved = Resolved {
            length,
            run,
            ..self.quick
        };
        if let Some(given) = run.auto {
            let variants = resolved.variants.iter_mut();
            for device in variants.flat_map(|variant| &mut variant.devices) {
                device.give(given);
            }
        }
        resolved
    }
}

/// A scenario at one length: what a runner needs, with every default filled in.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The file's name, as it was given.
    pub file: String,
    /// One line for the heads of tables and reports.
    pub title: String,
    /// What all randomness of a run comes from.
    pub seed: u64,
    /// The machine.
    pub host: HostSpec,
    /// Which length this is.
    pub length: Length,
    /// How often, how many bytes, and how long; its phases are those of devices that override nothing.
    pub run: LengthSpec,
    /// TCP's maximum segment size in bytes, 536 to 1460.
    pub mss_bytes: u16,
    /// What the file declares and none of its variants has, a sentence each: tasks and executors.
    pub unused: Vec<String>,
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

    /// Whether a network is to be made for one of its variants on Linux.
    pub fn makes_network(&self) -> bool {
        let mut variants = self.variants.iter();
        variants.any(|variant| variant.live && variant.has_network())
    }

    /// Every program that its variants execute on Linux, once, as one would type it.
    pub fn commands(&self) -> Vec<String> {
        let live = self.variants.iter().filter(|variant| variant.live);
        each_once(live.flat_map(ResolvedVariant::commands))
    }

    /// The programs of these, by the names that they are looked for by.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        let live = self.variants.iter().filter(|variant| variant.live);
        let words = live.flat_map(ResolvedVariant::words);
        words.filter_map(|argv| argv.first().map(String::as_str))
    }
}

/// The machine a scenario is written for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostSpec {
    /// How many processors the programs use, numbered from 0; live, which of the machine's they are is found at run time. 1 to 64.
    pub processors: u16,
    /// The twin's profile.
    pub profile: TwinProfile,
}

/// A soft device in a variant.
#[derive(Clone, Debug)]
pub struct ResolvedDevice {
    /// Its name.
    pub name: String,
    /// Where its driver runs.
    pub processor: ProcessorId,
    /// And how: as a deferred call, until a variant places it.
    pub placing: Placing,
    /// Who chose what it reserves.
    pub chosen: Chosen,
    /// How much of a processor its driver takes while it has all to do.
    pub load: Load,
    /// What it is, with the parameters of its kind.
    pub device: Arc<dyn Device>,
}

impl ResolvedDevice {
    /// What a call is charged in a twin, or taken to take on Linux.
    pub(crate) fn work(&self, twin: Option<TwinProfile>) -> Service {
        self.device.work(self.load, twin)
    }

    /// What was left open of its reservation is this.
    fn give(&mut self, given: Reservation) {
        if let Chosen::Open(_) = self.chosen {
            self.chosen = Chosen::ByAuthor;
            self.reserve(given);
        }
    }

    /// It reserves this, if it reserves something.
    pub(crate) const fn reserve(&mut self, reservation: Reservation) {
        if let Placing::Reserved(request, _) = &mut self.placing {
            request.reservation = reservation;
        }
    }

    /// Whether it makes a call.
    pub fn calls(&self) -> bool {
        self.device.before_transfer(Phases::SHORT).is_some()
    }

    /// Makes all calls of this device have these phases, if it makes any.
    pub fn set_phases(&mut self, phases: Phases) {
        if let Some(device) = self.device.in_phases(phases) {
            self.device = device;
        }
    }
}

/// Who chose what a device reserves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::large_enum_variant, reason = "there are few, and copied")]
pub enum Chosen {
    /// The author of the scenario; or it reserves nothing.
    ByAuthor,
    /// Nobody yet: laxity is to propose what is left open, and the placement has any reservation until then.
    Open(Open),
    /// Laxity.
    Proposed(Proposal),
}

/// What laxity proposed, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Proposal {
    /// What was left open.
    pub open: Open,
    /// So many calls were measured, undisturbed; none where the declared load stands for them.
    pub calls: u64,
    /// The service of the longest of them, or of a call of the declared load.
    pub longest: Service,
    /// That of the longest call before it was connected, where that was measured.
    pub connecting: Option<Service>,
    /// Whether something is proposed to other devices of the variant too.
    pub has_others: bool,
    /// The grain at which the kernel notices that a budget is used up.
    pub tick: Span,
    /// The twin for which it is, whose host may count reservations in ticks.
    pub twin: Option<TwinProfile>,
}

/// One of the things that a scenario compares, with all that takes part in it.
#[derive(Clone, Debug)]
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

impl ResolvedVariant {
    /// The programs that it executes, as one would type them.
    pub fn commands(&self) -> impl Iterator<Item = String> {
        self.words().map(command_line)
    }

    /// The words of each of them.
    fn words(&self) -> impl Iterator<Item = &[String]> {
        self.tasks.iter().filter_map(|task| match &task.kind {
            TaskKind::Command { argv, .. } => Some(&**argv),
            _ => None,
        })
    }

    /// Whether it leaves open what this device reserves.
    pub(crate) fn leaves_open(&self, device: &ResolvedDevice) -> bool {
        let mut own = self.devices.iter();
        own.any(|own| own.name == device.name && own.is_open())
    }

    /// The contracts that it is judged by.
    pub fn judged_by(&self) -> Vec<&Contract> {
        self.contracts
            .iter()
            .map(|(contract, _)| contract)
            .collect()
    }

    /// What is reserved in it by the kernel: by those on an executor, which share what it reserves, once. Of what is left open nobody knows yet.
    pub(crate) fn budgets(&self) -> impl Iterator<Item = Reservation> {
        let devices = self.devices.iter().filter(|device| !device.is_open());
        let devices = devices.map(|one| (one.name.as_str(), one.placing.request()));
        let tasks = self.tasks.iter().map(|one| (one.holder(), one.request()));
        let requests = each_once(devices.chain(tasks)).into_iter();
        let requests = requests.filter_map(|(_, request)| request);
        let of_the_kernel = requests.filter(|request| request.enforcer == Enforcer::Deadline);
        of_the_kernel.map(|request| request.reservation)
    }

    /// The interface that its clients are on, if it has any.
    pub(crate) fn interface(&self) -> Option<&Interface> {
        self.tasks.iter().find_map(|task| match &task.kind {
            TaskKind::Client(client) => Some(&*client.interface),
            _ => None,
        })
    }

    /// Whether something of a network takes part.
    pub(crate) fn has_network(&self) -> bool {
        self.tasks.iter().any(ResolvedTask::is_networked)
    }

    /// Whether it is for this host.
    pub(crate) const fn runs(&self, live: bool) -> bool {
        if live { self.live } else { self.twin }
    }

    /// The periodic tasks among these, in whatever order they are named.
    pub(super) fn periodic(&self) -> BTreeSet<&str> {
        let tasks = self.tasks.iter();
        let periodic = tasks.filter(|task| task.kind.kind() == kinds::PERIODIC);
        periodic.map(|task| task.name.as_str()).collect()
    }
}

/// Where a variant's calls begin.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Start {
    /// On hook.
    #[default]
    OnHook,
    /// With the transfer about to begin: all before was run ahead, without a host.
    Connected,
}

impl Start {
    /// The phases of a call that are over where it begins.
    pub(crate) const fn phases_over(self) -> &'static [Phase] {
        match self {
            Self::OnHook => &[],
            Self::Connected => &[Phase::ON_HOOK, Phase::DIALING, Phase::TRAINING],
        }
    }
}

/// What a variant is expected to show, beside its contracts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expectations {
    /// Samples lost or underrun.
    pub lost: Loss,
    /// The file.
    pub transfer: Outcome,
    /// How firmly the reservations are held; `None` where there is no reservation.
    pub grade: Option<ExpectedGrade>,
}

/// Samples lost or underrun.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Loss {
    /// Not one.
    None,
    /// At least one.
    Some,
    /// Shown, not judged.
    Any,
}

/// How a transfer ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Outcome {
    /// All bytes arrive and their checksum is right.
    Complete,
    /// The line is dead or the time is up before.
    Fails,
    /// Shown, not judged.
    Any,
}

/// How firmly a reservation is expected to be held.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ExpectedGrade {
    /// Nobody can take it away.
    Enforced,
    /// Somebody can, and is named.
    Unenforced,
}
