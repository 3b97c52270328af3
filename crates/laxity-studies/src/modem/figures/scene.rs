//! The runs that figures are drawn from: who is in them, and how they become a variant of a scenario.

use laxity_model::{
    Enforcer, Outside, Priority, ProcessorId, Reservation, ReservationRequest, Service, Span,
};

use laxity_devices::modem::FarProfile;
use laxity_lab::scenario::units::{Load, Share};
use laxity_lab::scenario::{
    Expectations, LengthSpec, Line, Loss, Outcome, PeriodicRank, Phases, Placing, ResolvedDevice,
    ResolvedTask, ResolvedVariant, Start, TaskKind,
};

/// The processor of the modem, and of all that competes with it.
pub(super) const PROCESSOR: ProcessorId = ProcessorId(0);

/// The share of the processor that a connected modem takes (Jones, Saroiu §6.2.3).
pub(super) const SHARE_PPM: u32 = 147_000;

/// Where the modem's signal processing is (Jones, Saroiu §5).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Driver {
    /// There is no modem.
    Absent,
    /// INT.
    Interrupt,
    /// DPC.
    Deferred,
    /// THR 24.
    Thread24,
    /// THR 8.
    Thread8,
    /// RES 2/8, with timesharing outside the reservation.
    Reserved,
}

impl Driver {
    /// As the study calls it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Absent => "no modem",
            Self::Interrupt => "INT",
            Self::Deferred => "DPC",
            Self::Thread24 => "THR 24",
            Self::Thread8 => "THR 8",
            Self::Reserved => "RES 2/8",
        }
    }

    fn placing(self) -> Option<Placing> {
        let thread = |level| Placing::Thread(Priority::new(level).unwrap_or(Priority::NORMAL));
        match self {
            Self::Absent => None,
            Self::Interrupt => Some(Placing::Interrupt),
            Self::Deferred => Some(Placing::Deferred),
            Self::Thread24 => Some(thread(24)),
            Self::Thread8 => Some(thread(8)),
            Self::Reserved => {
                let reservation = Reservation::new(Service::from_millis(2), Span::from_millis(8));
                let request = ReservationRequest {
                    reservation: reservation.ok()?,
                    enforcer: Enforcer::Slots,
                    outside: Outside::Timesharing(Priority::NORMAL),
                    begins_at_start: false,
                };
                Some(Placing::Reserved(request, Priority::new(24)?))
            }
        }
    }
}

/// Who else wants the processor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Beside {
    /// A spinning thread of priority 8: the dial-up traces of §6.2 and §6.4.
    Spinner,
    /// The spinner, and a thread of priority 10 that searches the whole disk (§6.1).
    DiskSearch,
    /// Beside a modem the spinner; and the callback of priority 31 every millisecond (§6.3).
    Callback,
}

/// One run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Scene {
    /// Where the modem is.
    pub(super) driver: Driver,
    /// Who else is there.
    pub(super) beside: Beside,
}

impl Scene {
    /// A dial-up beside the spinner.
    pub(super) const fn dial_up(driver: Driver) -> Self {
        let beside = Beside::Spinner;
        Self { driver, beside }
    }

    /// The same under stress.
    pub(super) const fn stress(driver: Driver) -> Self {
        let beside = Beside::DiskSearch;
        Self { driver, beside }
    }

    /// The callback, and perhaps a modem that disturbs it.
    pub(super) const fn callback(driver: Driver) -> Self {
        let beside = Beside::Callback;
        Self { driver, beside }
    }

    /// Its name in progress and messages.
    pub(super) fn name(self) -> String {
        let beside = match self.beside {
            Beside::Spinner => "dial-up",
            Beside::DiskSearch => "dial-up under stress",
            Beside::Callback => "1 ms callback",
        };
        format!("{beside}, {}", self.driver.name())
    }

    /// Its place in a scenario. The disk search is no task of a scenario: each host has its own.
    pub(super) fn variant(self, phases: Phases, start: Start) -> ResolvedVariant {
        let devices = self.driver.placing().map(|placing| ResolvedDevice {
            name: "modem".into(),
            processor: PROCESSOR,
            placing,
            load: Load {
                share: Share::from_ppm(SHARE_PPM),
                tolerance: Share::from_ppm(7_000),
            },
            line: Line::default(),
            far: FarProfile::PLAIN,
            phases: phases.into(),
        });
        ResolvedVariant {
            name: self.name(),
            about: String::new(),
            live: true,
            twin: true,
            devices: devices.into_iter().collect(),
            tasks: self.tasks(),
            contracts: Vec::new(),
            expect: Expectations {
                lost: Loss::Any,
                transfer: Outcome::Any,
                grade: None,
            },
            start,
            control: None,
        }
    }

    fn tasks(self) -> Vec<ResolvedTask> {
        let task = |name: &str, kind| ResolvedTask {
            name: name.into(),
            processor: PROCESSOR,
            kind,
            placing: None,
        };
        let spinner = TaskKind::Spinner {
            count: 1,
            priority: Priority::NORMAL,
        };
        let callback = TaskKind::Periodic {
            period: Span::from_millis(1),
            service: Service::ZERO,
            rank: PeriodicRank::Priority(Priority::HIGHEST),
        };
        let mut tasks = Vec::new();
        // The control machine is quiescent (§6.3.1).
        if self.driver != Driver::Absent {
            tasks.push(task("spinner", spinner));
        }
        if self.beside == Beside::Callback {
            tasks.push(task("callback", callback));
        }
        tasks
    }
}

/// How long a run's phases and the run itself are.
pub(super) const fn length(phases: Phases, length: Span) -> LengthSpec {
    LengthSpec {
        repeats: 1,
        bytes: LengthSpec::FULL.bytes,
        phases,
        limit: length,
        idle: length,
    }
}
