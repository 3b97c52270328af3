//! `kind = "soft-modem"`: a soft modem, its line, its phases, and the call that it makes.

use std::sync::Arc;

use laxity_devices::modem::needs::{BLOCK_PERIOD, connected, in_pieces};
use laxity_devices::modem::{Call, CallConfig, Costs, FarProfile, Timing};
use laxity_devices::pump::{LineConfig, Standard};
use laxity_model::analysis::devices::{Device as Analysed, DeviceError};
use laxity_model::verify::contract::{Kind, Quantity};
use laxity_model::{HostError, Program, Service, Span};

use super::super::TwinProfile;
use super::super::keys::{Key, Other, Own, Table, Within, Without, Words};
use super::super::lengths::LengthSpec;
use super::super::quantities::{FREQUENCY, LEVEL, OFFSET, SPAN};
use super::super::reader::Section;
use super::super::sections::DURATIONS;
use super::super::types::Start;
use super::super::units::{Load, Share, format_span};
use super::{
    Account, Device, Installed, PROCESSING_TIME, RETRAININGS, Runs, SAMPLES_LOST,
    SAMPLES_OVERWRITTEN, SAMPLES_PENDING, SAMPLES_UNDERRUN, Site, load,
};

pub(super) const KIND: Kind = Kind {
    name: "soft-modem",
    quantities: &[
        Quantity::INTERRUPT_TIME,
        Quantity::DEFERRED_TIME,
        Quantity::INTERRUPT_PERIOD,
        Quantity::RESPONSE_TIME,
        PROCESSING_TIME,
        SAMPLES_PENDING,
        SAMPLES_LOST,
        SAMPLES_OVERWRITTEN,
        SAMPLES_UNDERRUN,
        RETRAININGS,
        Quantity::THREAD_PRIORITY,
    ],
};

/// The shortest interval between two interrupts off hook (Jones, Saroiu §6.2.1).
const SHORTEST_PERIOD: Span = Span::from_micros(11_250);

/// A call that is run ahead must have its transfer under way by then, in the call's own time.
const RUN_AHEAD_LIMIT: Span = Span::from_secs(60);

// 14.7 % of a 450 MHz Pentium II (§6.2.3).
const STUDIED: Load = Load {
    share: Share { ppm: 147_000 },
    tolerance: Share { ppm: 7_000 },
};
static LOAD: Key<Load> = load(Without::Means(
    "14.7 % ± 0.7 on Linux, as the study measured; in the twin what its calls take while its kernel logs nothing, 14.2 %",
));
static STANDARD: Key<bool> = Key::new(
    "standard",
    &Words(&[("study", false), ("v22bis", true)]),
    Without::Is("\"study\""),
    "What it speaks: as fast as the study's modem, or V.22bis at 2,400 bit/s, which takes no `load`.",
);
static OWN_LINE: Key<Other> = Key::new(
    "line",
    &Own("a table"),
    Without::Means("each of its keys as it is by default"),
    "The telephone line; its noise comes from the seed.",
);
static OWN_PHASES: Key<Other> = Key::new(
    "phases",
    &Own("a table"),
    Without::Means("the `phases` of the run's length"),
    "How long parts of its call last, at both lengths.",
);
pub(super) static KEYS: Table = Table {
    heading: "[devices.<name>]",
    kind: Some(KIND.name),
    about: "A modem that dials, trains, and fetches a file from a far end that is emulated outside the machine.",
    keys: &[&LOAD, &STANDARD, &OWN_LINE, &OWN_PHASES],
};

const LEVELS: Within<u64> = Within(&LEVEL, 1_000..=120_000);
static SNR_DOWN: Key<u64> = Key::new(
    "snr_down",
    &LEVELS,
    Without::Is("\"52 dB\""),
    "Signal over noise of what the modem hears.",
);
static SNR_UP: Key<u64> = Key::new(
    "snr_up",
    &LEVELS,
    Without::Is("\"44 dB\""),
    "Signal over noise of what the far end hears.",
);
static CLOCK_OFFSET: Key<i64> = Key::new(
    "clock_offset",
    &Within(&OFFSET, -500_000..=500_000),
    Without::Is("\"50 ppm\""),
    "By how much the far end's sample clock is faster.",
);
static CARRIER_OFFSET: Key<i64> = Key::new(
    "carrier_offset",
    &Within(&FREQUENCY, -10_000..=10_000),
    Without::Is("\"0.5 Hz\""),
    "By how much the carrier is off.",
);
pub(super) static LINE: Table = Table {
    heading: "line = { … } of [devices.<name>]",
    kind: Some(KIND.name),
    about: "A telephone line.",
    keys: &[&SNR_DOWN, &SNR_UP, &CLOCK_OFFSET, &CARRIER_OFFSET],
};

static PHASES: [Key<Span>; 3] = [
    phase("on_hook", "On hook, detecting rings."),
    phase("dialing", "Dialling, and waiting for the other end."),
    phase("training", "From the answer to the connection."),
];
pub(super) static PHASE_KEYS: Table = Table {
    heading: "phases = { … } of [devices.<name>]",
    kind: Some(KIND.name),
    about: "How long parts of its call last, before its file is fetched.",
    keys: &[&PHASES[0], &PHASES[1], &PHASES[2]],
};

const fn phase(name: &'static str, meaning: &'static str) -> Key<Span> {
    let without = Without::Means("that of the run's length");
    Key::new(name, &Within(&SPAN, DURATIONS), without, meaning)
}

/// How long each phase of a call lasts before the connection (Jones, Saroiu §6.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Phases<T = Span> {
    /// On hook, detecting rings.
    pub on_hook: T,
    /// Dialling, and waiting for the other end.
    pub dialing: T,
    /// From the answer to the connection.
    pub training: T,
}

impl Phases {
    /// The study's: connected in second 23.
    pub const STUDY: Self = Self {
        on_hook: Span::from_secs(2),
        dialing: Span::from_secs(9),
        training: Span::from_secs(12),
    };
    /// No longer than the protocol and the signal processing need.
    pub const SHORT: Self = Self {
        on_hook: Span::from_millis(100),
        dialing: Span::from_millis(1_500),
        training: Span::from_secs(1),
    };

    /// From the start of a call to its connection.
    pub fn before_connection(self) -> Span {
        self.on_hook + self.dialing + self.training
    }
}

/// Phases that differ from their preset, in whose place they are.
pub type PhaseOverrides = Phases<Option<Span>>;

impl PhaseOverrides {
    /// All phases of a call, these in place of others.
    pub fn or(self, others: Phases) -> Phases {
        Phases {
            on_hook: self.on_hook.unwrap_or(others.on_hook),
            dialing: self.dialing.unwrap_or(others.dialing),
            training: self.training.unwrap_or(others.training),
        }
    }
}

impl From<Phases> for PhaseOverrides {
    fn from(phases: Phases) -> Self {
        Self {
            on_hook: Some(phases.on_hook),
            dialing: Some(phases.dialing),
            training: Some(phases.training),
        }
    }
}

/// A modem.
#[derive(Clone, PartialEq, Debug)]
pub struct Modem {
    /// The telephone line; its noise is the run's.
    pub line: LineConfig,
    /// The far end of its call, and with it what both ends speak.
    pub far: FarProfile,
    /// Phases that are the same at both lengths, in place of the length's own.
    pub phases: PhaseOverrides,
    /// Whether its load was stated. If not, it is the study's on Linux, and what is usual in a twin there.
    pub states_load: bool,
}

pub(super) fn read(section: &Section<'_>, runs: &Runs<'_>) -> Option<(Arc<dyn Device>, Load)> {
    let phases = phases(section);
    for (name, length) in runs.lengths {
        check_limit(runs.root, section, name, length, phases);
    }
    let modem = Modem {
        line: line(section),
        far: far(section)?,
        phases,
        states_load: section.has(LOAD.name),
    };
    let load = section.optional(&LOAD);
    Some((Arc::new(modem), load.unwrap_or(STUDIED)))
}

/// Whether a run is long enough to reach the connection.
fn check_limit(
    root: &Section<'_>,
    section: &Section<'_>,
    name: &str,
    length: &LengthSpec,
    overrides: PhaseOverrides,
) {
    let before = overrides.or(length.phases).before_connection();
    if before < length.limit {
        return;
    }
    let own = root.section(name, "");
    let place = own
        .filter(|own| own.has("limit"))
        .map_or_else(|| section.place_of("phases"), |own| own.place_of("limit"));
    let cause = format!(
        "a {name} run is over after {}, and {} connects after {} only",
        format_span(length.limit),
        section.path,
        format_span(before)
    );
    let remedy = format!("write a longer `limit` under [{name}], or shorter phases");
    root.findings.error(&place, cause, remedy);
}

fn phases(section: &Section<'_>) -> PhaseOverrides {
    let Some(section) = section.table(&OWN_PHASES) else {
        return PhaseOverrides::default();
    };
    section.keyed([&PHASE_KEYS]);
    let [on_hook, dialing, training] = PHASES.each_ref().map(|key| section.optional(key));
    PhaseOverrides {
        on_hook,
        dialing,
        training,
    }
}

/// `standard = "v22bis"`: what the modem speaks.
fn far(section: &Section<'_>) -> Option<FarProfile> {
    let is_v22bis = section.take(&STANDARD);
    if !is_v22bis {
        return Some(FarProfile::PLAIN);
    }
    #[cfg(feature = "v22bis")]
    return Some(FarProfile::V22BIS);
    #[cfg(not(feature = "v22bis"))]
    {
        let cause = "this laxity was built without V.22bis";
        let remedy = "build it with `--features v22bis`, or leave `standard` out";
        section.wrong("standard", cause, remedy);
        None
    }
}

fn line(section: &Section<'_>) -> LineConfig {
    let Some(section) = section.table(&OWN_LINE) else {
        return LineConfig::default();
    };
    section.keyed([&LINE]);
    let level = |key| section.take(key) as f64 / 1_000.0;
    let offset = |key| section.take(key) as f64 / 1_000.0;
    LineConfig {
        snr_down_db: level(&SNR_DOWN),
        snr_up_db: level(&SNR_UP),
        clock_ppm: offset(&CLOCK_OFFSET),
        carrier_offset_hz: offset(&CARRIER_OFFSET),
        ..LineConfig::default()
    }
}

impl Modem {
    /// The call before it is handed to a host.
    fn call(&self, site: &Site) -> CallConfig {
        let transfer = &site.transfer;
        let phases = self.phases.or(transfer.phases);
        let timing = Timing::lasting(phases.on_hook, phases.dialing, phases.training);
        let usual = CallConfig::new(timing, site.seed, transfer.bytes);
        CallConfig {
            line: LineConfig {
                seed: usual.line.seed,
                ..self.line.clone()
            },
            link: usual.link.with_mss(transfer.mss_bytes),
            further_receivers: site.further,
            far: self.far,
            clock: site.clock,
            linger: transfer.linger,
            costs: Costs {
                data: site.work,
                ..Costs::STUDY
            },
            ..usual
        }
    }
}

impl Device for Modem {
    fn kind(&self) -> Kind {
        KIND
    }

    fn period(&self) -> Span {
        BLOCK_PERIOD
    }

    fn work(&self, load: Load, twin: Option<TwinProfile>) -> Service {
        if self.states_load {
            return load.work(BLOCK_PERIOD);
        }
        twin.map_or(Costs::STUDY.data, |twin| twin.costs.data)
    }

    fn states_load(&self) -> bool {
        self.states_load
    }

    fn interrupts_every(&self) -> Span {
        SHORTEST_PERIOD
    }

    /// While it is connected.
    fn analysed(&self, work: Service) -> Result<Analysed, DeviceError> {
        connected(work)
    }

    /// A call that is charged is charged by pieces.
    fn in_twin(&self, analysed: Analysed) -> Result<Analysed, DeviceError> {
        in_pieces(analysed)
    }

    /// A modem of another standard has no receivers besides its own.
    fn fewest_repeats(&self) -> Option<usize> {
        (self.far.standard == Standard::Study).then_some(20)
    }

    fn before_transfer(&self, phases: Phases) -> Option<Span> {
        Some(self.phases.or(phases).before_connection())
    }

    fn in_phases(&self, phases: Phases) -> Option<Arc<dyn Device>> {
        let phases = phases.into();
        Some(Arc::new(Self {
            phases,
            ..self.clone()
        }))
    }

    fn install(&self, program: &mut Program, site: &Site) -> Result<Installed, HostError> {
        let mut call = Call::new(self.call(site));
        let is_ahead = site.transfer.start == Start::Connected;
        if is_ahead && !call.run_ahead(RUN_AHEAD_LIMIT) {
            let outcome = call.report().outcome().cloned();
            return Err(HostError::Failed(format!(
                "its line carries no transfer even without a host: {outcome:?}"
            )));
        }
        let installed = call.install(program, site.processor, site.placing);
        Ok(installed.reporting(|report| Account::Modems(vec![report])))
    }
}
