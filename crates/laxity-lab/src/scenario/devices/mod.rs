//! `[devices.*]`: the soft devices. One of each kind is one file of this folder: its keys, and how it is put into a program.
//!
//! * `modem`: the only one with a far end, phases and a transfer.
//! * `audio`, `dsl`, `radio`: what is only played or only received; `stream`: what these have in common.

mod audio;
mod dsl;
mod modem;
mod radio;
mod stream;

use std::fmt;
use std::sync::Arc;

use laxity_devices::card::{self, CardClock, Unserved};
use laxity_devices::modem as call;
use laxity_model::analysis::devices::{Device as Analysed, DeviceError};
use laxity_model::enforce::Losing;
use laxity_model::verify::contract::{Kind, Quantity};
use laxity_model::{HostError, ProcessorId, Program, Service, Span};

pub use audio::Audio;
pub use dsl::Dsl;
pub use modem::{Modem, PhaseOverrides, Phases};
pub use radio::Radio;

use super::keys::{Key, Loads, Table, Without, Words};
use super::lengths::LengthSpec;
use super::reader::Section;
use super::sections::{Names, PROCESSOR, named, processor};
use super::types::{Chosen, HostSpec, ResolvedDevice, Start};
use super::units::Load;
use super::{Placing, TwinProfile};

/// From the begin of a call of the signal processing to its end.
pub const PROCESSING_TIME: Quantity = Quantity::time("processing_time");
/// Processor time of a call that lost nothing, with what it took to be called. Seen of every device, and for laxity's own use: loads are
/// calibrated and reservations proposed by it.
pub(crate) const PROCESSING_SERVICE: Quantity = Quantity::time("processing_service");
/// Samples left in the ring after the processing.
pub const SAMPLES_PENDING: Quantity = Quantity::level("samples_pending");
/// Samples lost in either direction: overwritten before they were read, or sent as garbage because none were there.
pub const SAMPLES_LOST: Quantity = Quantity::events("samples_lost");
/// Of the samples lost, those that came in and were overwritten before they were read.
pub const SAMPLES_OVERWRITTEN: Quantity = Quantity::events("samples_overwritten");
/// Of the samples lost, those that were due to go out and were not there.
pub const SAMPLES_UNDERRUN: Quantity = Quantity::events("samples_underrun");
/// Frames that did not arrive: their CRC was wrong, or nothing was left of them to check.
pub const FRAMES_LOST: Quantity = Quantity::events("frames_lost");
/// What counts losses.
pub const LOSSES: &[Quantity] = &[
    SAMPLES_LOST,
    SAMPLES_OVERWRITTEN,
    SAMPLES_UNDERRUN,
    FRAMES_LOST,
];
/// Times the link had to be trained again.
pub const RETRAININGS: Quantity = Quantity::tally("retrainings");

/// A soft device, with the parameters of its kind: what is known of it before it runs, and how it is put into a program.
pub trait Device: fmt::Debug + Send + Sync {
    /// Its word in files, and what is observed of it.
    fn kind(&self) -> Kind;

    /// From call to call of its signal processing, on average while it has all to do.
    fn period(&self) -> Span;

    /// What a call is charged in a twin, if the device is to take this load; `None`: in one of Linux, where calls are told what they took.
    fn work(&self, load: Load, _twin: Option<TwinProfile>) -> Service {
        load.work(self.period())
    }

    /// Whether its load was stated. If not, [`Self::work`] of a twin is what is usual there.
    fn states_load(&self) -> bool {
        true
    }

    /// From one interrupt of its card to the next at least, then.
    fn interrupts_every(&self) -> Span {
        self.period()
    }

    /// The device as the analysis knows it, a call taking `work`.
    ///
    /// # Errors
    ///
    /// Never for a work of more than zero.
    fn analysed(&self, work: Service) -> Result<Analysed, DeviceError>;

    /// The same as it is in the study's twin.
    ///
    /// # Errors
    ///
    /// Never for one of [`Self::analysed`].
    fn in_twin(&self, analysed: Analysed) -> Result<Analysed, DeviceError> {
        Ok(analysed)
    }

    /// How often its work is repeated in the first runs from which its load is told, so that these are no more than that; `None` if it cannot be
    /// repeated.
    fn fewest_repeats(&self) -> Option<usize>;

    /// How long a run has to be before a file is fetched, if these are its phases; `None` if none ever is.
    fn before_transfer(&self, _: Phases) -> Option<Span> {
        None
    }

    /// The same with phases of its own, if it has any.
    fn in_phases(&self, _: Phases) -> Option<Arc<dyn Device>> {
        None
    }

    /// Puts it into a program.
    ///
    /// # Errors
    ///
    /// [`HostError::Failed`] if what is to be run ahead of the program does not get so far.
    fn install(&self, program: &mut Program, site: &Site) -> Result<Installed, HostError>;
}

/// Where a device is put, and what its run is to be.
#[derive(Clone, Debug)]
pub struct Site {
    /// Where its driver runs.
    pub processor: ProcessorId,
    /// And how.
    pub placing: Placing,
    /// What all payload and noise comes from.
    pub seed: u64,
    /// What a call of its signal processing takes on the twin's machine.
    pub work: Service,
    /// How often that is repeated as load.
    pub further: usize,
    /// How its card's clock stands to the host's.
    pub clock: CardClock,
    /// For a device that has a call to make.
    pub transfer: Transfer,
}

/// A call, and the file that it is to fetch; by default nothing at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Transfer {
    /// The phases of a device that has none of its own.
    pub phases: Phases,
    /// The file's size.
    pub bytes: u64,
    /// TCP's maximum segment size in bytes.
    pub mss_bytes: u16,
    /// Where the call begins.
    pub start: Start,
    /// The run goes on at least so long, even if the call is over before.
    pub linger: Span,
}

/// A device in a program.
pub type Installed = card::Installed<Account>;

/// Which way the samples of a stream go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the card.
    Received,
    /// To the card.
    Played,
}

/// Who keeps the account of a device.
#[derive(Clone, Debug)]
pub enum Account {
    /// Of one that is only received or only played, whose card is set like this.
    Stream(Arc<card::Report>, card::Setting, Direction),
    /// Of each modem on the driver.
    Modems(Vec<Arc<call::Report>>),
}

impl Account {
    /// That of the only modem.
    pub fn modem(&self) -> Option<&call::Report> {
        match self {
            Self::Modems(reports) => Some(reports.first()?),
            Self::Stream(..) => None,
        }
    }

    /// That of a device that is no modem.
    pub fn stream(&self) -> Option<&card::Report> {
        match self {
            Self::Stream(report, ..) => Some(report),
            Self::Modems(_) => None,
        }
    }

    /// What the driver's account would tell at the run's end, where this was left.
    pub fn told_at_end(&self, left: &Unserved) -> u64 {
        match self {
            Self::Modems(reports) => {
                let underrun = reports.iter().map(|report| report.samples_underrun.get());
                underrun.sum::<u64>() + left.underrun
            }
            // Of what was overwritten before it was read, the frames are lost too; what was played in place of a frame, the listener has heard.
            Self::Stream(report, setting, _) => {
                report.frames_lost() + left.lost.div_ceil(setting.blocks[0])
            }
        }
    }

    /// Which frames were heard wrong of what is played, from 0 as the driver's calls are, in their order; none of anything else.
    pub fn heard_wrong(&self) -> Vec<u64> {
        match self {
            Self::Modems(_) => Vec::new(),
            Self::Stream(report, _, _) => report.heard_wrong(),
        }
    }

    /// How the device loses samples, in this phase if it has any.
    pub fn losing(&self, phase: call::Phase) -> Losing {
        match self {
            Self::Modems(reports) => losing(phase.setting(), (reports.len() as u64, 2), true),
            Self::Stream(_, setting, direction) => Losing {
                passes_over: *direction == Direction::Received,
                ..losing(*setting, (1, 1), false)
            },
        }
    }
}

/// So many cards on one driver, set like this, which lose in so many ways; `reads_on`: its driver passes over all that its ring holds when that runs over.
fn losing(setting: card::Setting, (cards, ways): (u64, u64), reads_on: bool) -> Losing {
    let block = setting.blocks.into_iter().max().unwrap_or(0);
    let ring = if reads_on { setting.ring } else { 0 };
    Losing {
        rate_hz: setting.rate_hz * cards,
        ways,
        block,
        at_once: (block + ring) * cards,
        passes_over: true,
    }
}

/// Reads a device from its section; `None` only where an error has been found.
type Read = fn(&Section<'_>, &Runs<'_>) -> Option<(Arc<dyn Device>, Load)>;

/// A kind of devices, as a file has it.
struct Known {
    kind: Kind,
    keys: &'static Table,
    read: Read,
}

/// How long the runs are, for those who need to know.
struct Runs<'a> {
    root: &'a Section<'a>,
    lengths: &'a [(&'a str, &'a LengthSpec)],
}

impl Known {
    const fn of(kind: Kind, keys: &'static Table, read: Read) -> Self {
        Self { kind, keys, read }
    }
}

const MODEM: Known = Known::of(modem::KIND, &modem::KEYS, modem::read);
const AUDIO: Known = Known::of(audio::KIND, &audio::KEYS, audio::read);
const DSL: Known = Known::of(dsl::KIND, &dsl::KEYS, dsl::read);
const RADIO: Known = Known::of(radio::KIND, &radio::KEYS, radio::read);

/// What is observed of each kind of device, the modem first.
pub const KINDS: [Kind; 4] = [MODEM.kind, AUDIO.kind, DSL.kind, RADIO.kind];

static KIND: Key<&Known> = Key::new(
    "kind",
    &Words(&[
        (MODEM.kind.name, &MODEM),
        (AUDIO.kind.name, &AUDIO),
        (DSL.kind.name, &DSL),
        (RADIO.kind.name, &RADIO),
    ]),
    Without::Refused("\"soft-modem\""),
    "What it is.",
);

static COMMON: Table = Table {
    heading: "[devices.<name>]",
    kind: None,
    about: "A soft device: its signal processing runs in a driver on this machine, called at each interrupt of an emulated card. Where the driver \
        runs is for each variant to say.",
    keys: &[&KIND, &PROCESSOR],
};

/// All tables of keys of devices, for the reference.
pub(super) static TABLES: [&Table; 7] = [
    &COMMON,
    MODEM.keys,
    &modem::LINE,
    &modem::PHASE_KEYS,
    AUDIO.keys,
    DSL.keys,
    RADIO.keys,
];

/// The key of a device's load, whose default is for its kind to say.
const fn load(without: Without) -> Key<Load> {
    Key::new(
        "load",
        &Loads,
        without,
        "How much of a processor its driver takes while it has all to do. On Linux its work is repeated until that is so; work that takes more without repeats takes that, and the run says so. The twin charges it.",
    )
}

/// `[devices.*]`.
pub(super) fn devices(
    root: &Section<'_>,
    host: &HostSpec,
    lengths: &[(&str, &LengthSpec)],
) -> Names<ResolvedDevice> {
    let runs = Runs { root, lengths };
    named(root, "devices", |section, name| {
        let kind = section
            .value(KIND.name)
            .and_then(|_| section.optional(&KIND));
        if kind.is_some() || !section.has(KIND.name) {
            let all = [&MODEM, &AUDIO, &DSL, &RADIO].into_iter();
            let is_known = |known: &&Known| kind.is_none_or(|kind| kind.kind == known.kind);
            let own = all.filter(is_known).map(|known| known.keys);
            section.keyed([&COMMON].into_iter().chain(own));
        }
        let Some(kind) = kind else {
            section.find(&KIND);
            return None;
        };
        let (device, load) = (kind.read)(section, &runs)?;
        Some(ResolvedDevice {
            name: name.to_owned(),
            processor: processor(section, host),
            placing: Placing::Deferred,
            chosen: Chosen::ByAuthor,
            load,
            device,
        })
    })
}
