//! What the machine knows of one activity.

use laxity_model::{Activity, Enforcer, Grade, Grant, Instant, Placement, ReservationRequest};
use laxity_model::{Outside, Priority, Refused, Service, Usage};

/// How an activity gets to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// An interrupt handler of this level.
    Interrupt(u8),
    Deferred,
    Thread,
    External,
}

/// What an activity waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waiting {
    /// Nothing: it runs or could run.
    No,
    ForTime,
    /// For this semaphore.
    ForSignal(u16),
    /// For this semaphore, with a timer set.
    ForEither(u16),
    /// It has finished.
    ForEver,
}

/// A reservation that was granted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) request: ReservationRequest,
    pub(crate) in_force: bool,
}

#[derive(Debug)]
pub(crate) struct ActivityState {
    /// Charged, and not yet received.
    pub(crate) work: Service,
    pub(crate) received: Service,
    /// What a handler or deferred call had received when it was entered last.
    pub(crate) received_before: Service,
    pub(crate) class: Class,
    pub(crate) processor: u16,
    /// A thread's own priority; the lowest for all others.
    pub(crate) priority: Priority,
    pub(crate) waiting: Waiting,
    pub(crate) timed_out: bool,
    pub(crate) yielded: bool,
    /// When a sleeper asked to wake; when an interrupt was raised or a deferred call queued.
    pub(crate) meant_at: Instant,
    pub(crate) voluntary_switches: u64,
    pub(crate) involuntary_switches: u64,
    pub(crate) held: Option<Held>,
    /// Whether the beginning of the slot that now is was recorded.
    pub(crate) slot_recorded: bool,
    /// What became of what it asked for last.
    pub(crate) answer: Result<Instant, Refused>,
}

impl ActivityState {
    pub(crate) fn new(activity: &Activity) -> Self {
        let class = match activity.placement {
            Placement::Interrupt(level) => Class::Interrupt(level.0),
            Placement::Deferred => Class::Deferred,
            Placement::Thread(_) => Class::Thread,
            // Foreign threads were refused before.
            Placement::External | Placement::Foreign { .. } => Class::External,
        };
        Self {
            work: Service::ZERO,
            received: Service::ZERO,
            received_before: Service::ZERO,
            class,
            processor: activity.processor.0,
            priority: match activity.placement {
                Placement::Thread(priority) => priority,
                _ => Priority::IDLE,
            },
            waiting: Waiting::No,
            timed_out: false,
            yielded: false,
            meant_at: Instant::ZERO,
            voluntary_switches: 0,
            involuntary_switches: 0,
            held: activity.reservation.map(|request| Held {
                request,
                in_force: false,
            }),
            slot_recorded: false,
            answer: Err(Refused::NothingAsked),
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.waiting == Waiting::No
    }

    /// Whether a slot of its own is anything to it: its reservation is in force, or it has none, and the slot is a constraint's.
    pub(crate) fn uses_its_slots(&self) -> bool {
        self.held.is_none_or(|held| held.in_force)
    }

    /// Whether it runs in its slots and nowhere else.
    pub(crate) fn is_confined(&self) -> bool {
        self.held
            .is_some_and(|held| held.in_force && held.request.outside == Outside::Confined)
    }

    pub(crate) fn usage(&self) -> Usage {
        Usage {
            service: self.received,
            voluntary_switches: self.voluntary_switches,
            involuntary_switches: self.involuntary_switches,
            page_faults: 0,
            grant: self.held.map(|held| Grant {
                reservation: held.request.reservation,
                enforcer: Enforcer::Slots,
                // Only the program's own interrupts and deferred calls stand above slots here, and they were admitted with it.
                grade: Grade::Enforced,
            }),
        }
    }
}
