//! What a scenario says, as plain data.

use laxity_model::verify::contract::{Contract, Expectation, Kind};
use laxity_model::{
    Enforcer, Outside, Priority, ProcessorId, Reservation, ReservationRequest, Service, Span,
};

use super::diagnostic::Diagnostic;
use super::kinds;
use super::units::Load;

/// A scenario file, read and checked. Names are unique within their kind; every reference leads somewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scenario {
    /// The file's name, as it was given.
    pub file: String,
    /// One line for the heads of tables and reports.
    pub title: String,
    /// What all randomness of a run comes from.
    pub seed: u64,
    /// The machine.
    pub host: HostSpec,
    /// What is transferred.
    pub transfer: TransferSpec,
    /// The devices.
    pub devices: Vec<Device>,
    /// Everything else that runs.
    pub tasks: Vec<Task>,
    /// The contracts that variants may be judged by; `pc99` is the first.
    pub contracts: Vec<Contract>,
    /// What is compared, in the order of the file.
    pub variants: Vec<Variant>,
    /// How long [`Length::Quick`] is.
    pub quick: LengthSpec,
    /// How long [`Length::Full`] is.
    pub full: LengthSpec,
    /// What the author may want to know, though it is no error.
    pub notes: Vec<Diagnostic>,
}

/// The machine a scenario is written for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostSpec {
    /// How many processors the programs use, numbered from 0; live, which of the machine's they are is found at run time. 1 to 64.
    pub processors: u16,
    /// The twin's profile.
    pub profile: Profile,
}

/// A machine the twin can be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Profile {
    /// The modem study's: Windows 2000 on a 450 MHz Pentium II (Jones, Saroiu §3).
    #[default]
    Win2000PiiFourFifty,
}

impl Profile {
    /// Its name in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Win2000PiiFourFifty => "win2000-pii450",
        }
    }
}

/// What all transfers have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransferSpec {
    /// TCP's maximum segment size in bytes, 536 to 1460.
    pub mss_bytes: u16,
}

/// A soft modem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Where its driver runs.
    pub processor: ProcessorId,
    /// How much of a processor its driver takes in data mode.
    pub load: Load,
    /// The telephone line.
    pub line: Line,
    /// Phases that are the same at both lengths, in place of the length's own.
    pub phases: PhaseOverrides,
}

/// A telephone line's quality.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line {
    /// Signal to noise towards the modem, in thousandths of a decibel.
    pub snr_down_mdb: u32,
    /// Signal to noise from the modem, in thousandths of a decibel.
    pub snr_up_mdb: u32,
    /// How much faster the far end's clock is, in parts per billion.
    pub clock_offset_ppb: i32,
    /// The carrier's offset, in millihertz.
    pub carrier_offset_mhz: i32,
}

impl Default for Line {
    /// A line on which the rates of the study are reached: 52 dB down, 44 dB up, 50 ppm, 0.5 Hz.
    fn default() -> Self {
        Self {
            snr_down_mdb: 52_000,
            snr_up_mdb: 44_000,
            clock_offset_ppb: 50_000,
            carrier_offset_mhz: 500,
        }
    }
}

/// How long each phase of a call lasts before the connection (Jones, Saroiu §6.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Phases {
    /// On hook, detecting rings.
    pub on_hook: Span,
    /// Dialling, and waiting for the other end.
    pub dialing: Span,
    /// From the answer to the connection.
    pub training: Span,
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

    pub(super) fn overridden_by(self, other: PhaseOverrides) -> Self {
        Self {
            on_hook: other.on_hook.unwrap_or(self.on_hook),
            dialing: other.dialing.unwrap_or(self.dialing),
            training: other.training.unwrap_or(self.training),
        }
    }
}

/// Phases that differ from their preset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PhaseOverrides {
    /// In place of the preset's.
    pub on_hook: Option<Span>,
    /// In place of the preset's.
    pub dialing: Option<Span>,
    /// In place of the preset's.
    pub training: Option<Span>,
}

/// Something that runs beside the devices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// Where it runs.
    pub processor: ProcessorId,
    /// What it is.
    pub kind: TaskKind,
}

/// What a task does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TaskKind {
    /// Threads that never stop.
    Spinner {
        /// How many, 1 to 1,000.
        count: u16,
        /// Of which priority.
        priority: Priority,
    },
    /// A thread released at every period: the co-thread whose gaps are judged.
    Periodic {
        /// From release to release.
        period: Span,
        /// What each job takes.
        service: Service,
        /// Its priority.
        priority: Priority,
        /// A reservation of its own, by `deadline`, from the start.
        reservation: Option<ReservationRequest>,
    },
    /// A thread that now and then takes the processor for long.
    Rogue {
        /// For how long.
        burst: Service,
        /// How often; longer than the burst.
        every: Span,
        /// When the first time, after the start of the run.
        after: Span,
        /// With what right.
        rank: Rank,
    },
    /// A program of yours; live only.
    Command {
        /// The program and its arguments; not empty.
        argv: Vec<String>,
    },
}

impl TaskKind {
    /// What is observed of such a task, and the word for it in a file.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Spinner { .. } => kinds::SPINNER,
            Self::Periodic { .. } => kinds::PERIODIC,
            Self::Rogue { .. } => kinds::ROGUE,
            Self::Command { .. } => kinds::COMMAND,
        }
    }
}

/// What decides whom a rogue preempts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rank {
    /// A thread of this priority, at its place among laxity's own.
    Priority(Priority),
    /// A thread to which somebody outside gave this `SCHED_FIFO` priority, 1 to 99; live only.
    Foreign {
        /// The `SCHED_FIFO` priority.
        fifo: u8,
    },
}

/// Where a device's driver or a command runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placing {
    /// In the interrupt handler (INT); devices only.
    Interrupt,
    /// In a deferred procedure call (DPC); devices only.
    Deferred,
    /// In a thread (THR p).
    Thread(Priority),
    /// In a thread with a reservation (RES X/Y).
    Reserved {
        /// What is asked for; `begins_at_start` is false for a modem that asks after its on-hook phase, as the study's did.
        request: ReservationRequest,
        /// The thread's priority until it has its reservation.
        before: Priority,
    },
}

impl Placing {
    /// The reservation it asks for.
    #[must_use]
    pub const fn reservation(&self) -> Option<Reservation> {
        match self {
            Self::Reserved { request, .. } => Some(request.reservation),
            _ => None,
        }
    }

    /// Who is to enforce it.
    #[must_use]
    pub const fn enforcer(&self) -> Option<Enforcer> {
        match self {
            Self::Reserved { request, .. } => Some(request.enforcer),
            _ => None,
        }
    }

    /// The priority of the thread in which long work is done; `None` where it is no thread.
    #[must_use]
    pub const fn working_priority(&self) -> Option<Priority> {
        match self {
            Self::Interrupt | Self::Deferred => None,
            Self::Thread(priority)
            | Self::Reserved {
                before: priority, ..
            } => Some(*priority),
        }
    }

    /// What becomes of it outside its reservation.
    #[must_use]
    pub const fn outside(&self) -> Option<Outside> {
        match self {
            Self::Reserved { request, .. } => Some(request.outside),
            _ => None,
        }
    }
}

impl std::fmt::Display for Placing {
    /// As a file has it: `interrupt`, `thread 24`, `reserved 2ms/8ms`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Interrupt => f.write_str("interrupt"),
            Self::Deferred => f.write_str("deferred"),
            Self::Thread(priority) => write!(f, "thread {priority}"),
            Self::Reserved { request, .. } => {
                let reservation = super::units::format_reservation(request.reservation);
                write!(f, "reserved {reservation}")
            }
        }
    }
}

/// One of the things that a scenario compares.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// One line about it; may be empty.
    pub about: String,
    /// Whether it is run on Linux.
    pub live: bool,
    /// Whether it is run in the twin.
    pub twin: bool,
    /// Who takes part that has a placement, and where; devices by index into [`Scenario::devices`].
    pub devices: Vec<(usize, Placing)>,
    /// Which tasks take part, as indices into [`Scenario::tasks`]; commands with their placement.
    pub tasks: Vec<(usize, Option<Placing>)>,
    /// By which contracts it is judged, as indices into [`Scenario::contracts`], and what is expected of each.
    pub contracts: Vec<(usize, Expectation)>,
    /// What else is expected of it.
    pub expect: Expectations,
    /// Where its calls begin.
    pub start: Start,
    /// The variant that its gaps are compared with, as an index into [`Scenario::variants`].
    pub control: Option<usize>,
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

/// Which of a scenario's two lengths is run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Length {
    /// All variants in a minute or two.
    #[default]
    Quick,
    /// The study's phases and its file, several times.
    Full,
}

/// How long one length is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LengthSpec {
    /// How often each variant is run, interleaved; medians are judged. 1 to 1,000.
    pub repeats: u32,
    /// The file's size; more than zero.
    pub bytes: u64,
    /// The phases before the connection.
    pub phases: Phases,
    /// After this a run with a transfer is over, complete or not.
    pub limit: Span,
    /// How long a run without a transfer is.
    pub idle: Span,
}

impl LengthSpec {
    /// Of [`Length::Quick`].
    pub const QUICK: Self = Self {
        repeats: 1,
        bytes: 4_000,
        phases: Phases::SHORT,
        limit: Span::from_millis(6_500),
        idle: Span::from_millis(1_100),
    };
    /// Of [`Length::Full`]: 200,000 bytes (§6.5), and time enough for the slowest transfer of the study (table 2: 364 s); 30 s for 30,000 wake-ups
    /// (§6.3.1).
    pub const FULL: Self = Self {
        repeats: 5,
        bytes: 200_000,
        phases: Phases::STUDY,
        limit: Span::from_secs(400),
        idle: Span::from_secs(30),
    };
}
