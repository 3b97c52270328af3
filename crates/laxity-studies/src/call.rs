//! A modem's call from its first moment on hook, with what its driver asks for on the way.

use laxity_devices::modem::{
    Asking, Call, CallConfig, CardClock, DriverPlacement, Outcome, Timing,
};
use laxity_lab::bench::Runner;
use laxity_lab::bench::bodies::slots;
use laxity_lab::runner::tasks::{Spinner, rogue};
use laxity_lab::scenario::TwinProfile;
use laxity_lab::scenario::devices::{Account, Installed};
use laxity_model::{
    EventKind, HostError, Outside, Placement, Priority, ProcessorId, Program, Reservation,
    ReservationRequest, RunRecord, Service, Span,
};

use crate::served::{Served, calls, unserved};

const PROCESSOR: ProcessorId = ProcessorId(0);
/// The modem thread's priority while it is on hook (Jones, Saroiu §5.4).
const ON_HOOK_PRIORITY: u8 = 24;
/// Above it, below the slots.
const ROGUE_PRIORITY: u8 = 26;

/// What holds the modem's thread up while it is on hook, and after.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// As in the study: priority 24 on hook, 2 ms in 8 from dialing on (§5.4).
    Thread,
    /// 2 ms in 8 from the start.
    Whole,
    /// 0.1 ms in 2.5 on hook, changed to 2 ms in 8 when dialing begins: what §5.4 would do "if it were possible to make sub-millisecond
    /// reservations".
    Growing,
}

impl Way {
    /// All, in the order of the tables.
    pub const ALL: [Self; 3] = [Self::Thread, Self::Whole, Self::Growing];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Thread => "THR 24, then RES 2/8",
            Self::Whole => "RES 2/8 from the start",
            Self::Growing => "RES 0.1/2.5, then RES 2/8",
        }
    }

    /// What is reserved while it is on hook.
    pub fn on_hook(self) -> Option<Reservation> {
        match self {
            Self::Thread => None,
            Self::Whole => Some(whole()),
            Self::Growing => Some(tenth()),
        }
    }
}

fn reservation(service_us: u64, period_us: u64) -> Reservation {
    let (service, period) = (
        Service::from_micros(service_us),
        Span::from_micros(period_us),
    );
    Reservation::new(service, period).expect("a reservation of this experiment")
}

/// 2 ms in 8.
pub fn whole() -> Reservation {
    reservation(2_000, 8_000)
}

/// 0.1 ms in 2.5.
pub fn tenth() -> Reservation {
    reservation(100, 2_500)
}

/// A call to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setup {
    /// What holds the modem up.
    pub way: Way,
    /// Whether it runs in its slots only.
    pub confined: bool,
    /// Beside two spinners of priority 8: a thread of priority 26 that runs for 15 ms twenty times a second.
    pub rogue: bool,
    /// A time constraint for the call that recognises the answer.
    pub recognition_within: Option<Span>,
    /// How long it is on hook.
    pub on_hook: Span,
    /// Of line, file and phase of the card's clock.
    pub seed: u64,
    /// The run is no longer, whatever becomes of the call.
    pub length: Span,
}

/// What came of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Calls of the signal processing while it was on hook, with those that the run's end found too late.
    pub on_hook: Vec<Served>,
    /// Those after it was on hook.
    pub off_hook: Vec<Served>,
    /// Input samples lost, output samples underrun, blocks abandoned.
    pub damage: [u64; 3],
    /// Changes of the reservation that were granted, and requests that were refused.
    pub answers: [u64; 2],
    /// Whether the file arrived whole in the end.
    pub file_arrived: bool,
    /// Of the samples lost and underrun, those that no halt of the machine excuses.
    pub undisturbed_damage: u64,
}

impl Seen {
    /// The longest time from an interrupt until its call was done, of these calls; `None` of none.
    pub fn longest(calls: &[Served]) -> Option<Span> {
        calls.iter().map(Served::response).max()
    }

    /// Whether there were calls, and no sample was lost, late or left out.
    pub fn is_whole(&self) -> bool {
        let mut calls = self.on_hook.iter().chain(&self.off_hook);
        self.damage == [0; 3] && calls.any(|call| !call.is_left)
    }

    /// Whether it lost samples, and the machine's own halts excuse them all.
    pub const fn is_excused(&self) -> bool {
        let [lost, underrun, _] = self.damage;
        lost + underrun > 0 && self.undisturbed_damage == 0
    }
}

/// Makes the call.
///
/// # Errors
///
/// The host's.
pub fn run(host: &mut Runner<'_>, setup: &Setup) -> Result<Seen, HostError> {
    let mut program = Program::new(1);
    let installed = install(&mut program, setup);
    let normal = Placement::Thread(Priority::NORMAL);
    for _ in 0..2 {
        program.add("spinner", PROCESSOR, normal, Spinner);
    }
    if setup.rogue {
        let every = Span::from_millis(50);
        let body = rogue(Service::from_millis(15), every, every);
        let placement = Placement::Thread(priority(ROGUE_PRIORITY));
        program.add("rogue", PROCESSOR, placement, body);
    }
    let record = host.run(program, setup.length)?;
    observe(&record, &installed)
}

fn priority(level: u8) -> Priority {
    Priority::new(level).unwrap_or(Priority::NORMAL)
}

fn install(program: &mut Program, setup: &Setup) -> Installed {
    let timing = Timing::lasting(setup.on_hook, Span::ZERO, Span::ZERO);
    let call = Call::new(CallConfig {
        clock: CardClock {
            begins_after: Span::from_nanos(1_300_000 * (setup.seed % 7)),
            fast_ppb: 0,
        },
        costs: TwinProfile::WIN2000_PII450.costs,
        ..CallConfig::new(timing, setup.seed, 4_000)
    });
    let grows = setup.way == Way::Growing;
    let call = call.asking(Asking {
        after_on_hook: grows.then(whole),
        recognition_within: setup.recognition_within,
    });
    let outside = match setup.confined {
        true => Outside::Confined,
        false => Outside::Timesharing(Priority::NORMAL),
    };
    let request = ReservationRequest {
        begins_at_start: setup.way != Way::Thread,
        ..slots(setup.way.on_hook().unwrap_or_else(whole), outside)
    };
    let placement = DriverPlacement::Reserved(request, priority(ON_HOOK_PRIORITY));
    let installed = call.install(program, PROCESSOR, placement);
    installed.reporting(|report| Account::Modems(vec![report]))
}

fn observe(record: &RunRecord, installed: &Installed) -> Result<Seen, HostError> {
    let events = record.events.iter();
    let own = events.filter(|event| event.activity == installed.driver);
    let count = |kind| own.clone().filter(|event| event.kind == kind).count() as u64;
    let report = installed.report.modem().expect("it is one");
    let left = unserved(record, installed)?;
    let calls = calls(record, installed)?.into_iter();
    let undisturbed_damage = calls.clone().map(|call| call.undisturbed_damage()).sum();
    let (on_hook, off_hook) = calls.partition(|call| call.in_first_phase);
    let whole_file = |outcome: &Outcome| matches!(outcome, Outcome::Done(file) if file.intact);
    Ok(Seen {
        on_hook,
        off_hook,
        damage: [
            report.samples_lost.get() + left.lost,
            report.samples_underrun.get() + left.underrun,
            report.blocks_abandoned.get(),
        ],
        answers: [EventKind::ReservationChange, EventKind::Refused].map(count),
        file_arrived: report.outcome().is_some_and(whole_file),
        undisturbed_damage,
    })
}
