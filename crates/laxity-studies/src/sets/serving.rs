//! How devices are served, and who else wants the processor.

use laxity_devices::modem::DriverPlacement;
use laxity_model::{
    Outside, Placement, Priority, ProcessorId, Program, Reservation, Service, Span,
};

use laxity_lab::bench::bodies::slots;
use laxity_lab::runner::tasks::{Spinner, rogue};

/// Threads that never stop, on each processor.
const SPINNERS: usize = 2;
/// Of a real-time thread, as the study's THR 24.
const REAL_TIME: u8 = 24;
/// Of a thread that breaks the rules: above all device threads.
const ROGUE: u8 = 28;
/// It takes the processor for longer than any of the rings lasts.
const BURST: Service = Service::from_millis(60);
/// A rogue's bursts begin this long after one another.
const EVERY: Span = Span::from_millis(250);

/// How the devices of a run are served.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Way {
    /// In interrupt handlers.
    Interrupt,
    /// In deferred calls.
    Deferred,
    /// In threads of priority 24.
    RealTime,
    /// In threads of priority 8, as the spinners are.
    Normal,
    /// In threads with reservations by slots, of priority 8 outside them.
    Reserved,
}

/// A way of serving, and whether a rogue runs beside the spinners.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Variant {
    /// How the devices are served.
    pub way: Way,
    /// Whether somebody of a higher priority takes the processor for 60 ms now and then.
    pub rogue: bool,
}

impl Variant {
    /// All that are tried in the twin.
    pub const TWIN: [Self; 6] = [
        Self::of(Way::Reserved, true),
        Self::of(Way::RealTime, true),
        Self::of(Way::RealTime, false),
        Self::of(Way::Normal, false),
        Self::of(Way::Deferred, true),
        Self::of(Way::Interrupt, true),
    ];

    /// All that are tried live.
    pub const LIVE: [Self; 3] = [
        Self::of(Way::Reserved, true),
        Self::of(Way::RealTime, true),
        Self::of(Way::Normal, false),
    ];

    /// From its parts.
    #[must_use]
    pub const fn of(way: Way, rogue: bool) -> Self {
        Self { way, rogue }
    }

    /// Its name in tables.
    pub fn name(self) -> String {
        let way = match self.way {
            Way::Interrupt => "INT",
            Way::Deferred => "DPC",
            Way::RealTime => "THR 24",
            Way::Normal => "THR 8",
            Way::Reserved => "reserved",
        };
        format!("{way}{}", if self.rogue { ", rogue" } else { "" })
    }

    /// The placement of a driver that could have this reservation.
    pub fn placement(self, reservation: Option<Reservation>) -> DriverPlacement {
        let real_time = Priority::new(REAL_TIME).unwrap_or(Priority::HIGHEST);
        match (self.way, reservation) {
            (Way::Interrupt, _) => DriverPlacement::Interrupt,
            (Way::Deferred, _) => DriverPlacement::Deferred,
            (Way::Reserved, Some(reservation)) => {
                let outside = Outside::Timesharing(Priority::NORMAL);
                DriverPlacement::Reserved(slots(reservation, outside), Priority::NORMAL)
            }
            (Way::Normal, _) => DriverPlacement::Thread(Priority::NORMAL),
            (Way::RealTime | Way::Reserved, _) => DriverPlacement::Thread(real_time),
        }
    }

    /// Adds who competes on a processor; a rogue only if it may have one.
    pub fn add_rivals(self, program: &mut Program, processor: ProcessorId, may_rogue: bool) {
        let normal = Placement::Thread(Priority::NORMAL);
        for number in 1..=SPINNERS {
            program.add(&format!("spinner {number}"), processor, normal, Spinner);
        }
        if self.rogue && may_rogue {
            let above = Placement::Thread(Priority::new(ROGUE).unwrap_or(Priority::HIGHEST));
            let body = rogue(BURST, EVERY, Span::from_millis(100));
            program.add("rogue", processor, above, body);
        }
    }
}
