//! What the kernel knows of one thread.

use laxity_model::enforce::{WITNESS_ACTIVITY, ranks};
use laxity_model::policy::classes::Scheduling;
use laxity_model::policy::deadline::Server;
use laxity_model::{ActivityId, Grade, Instant, Span};

use super::draws::Draws;
use super::kernel::Kernel;
use super::slice::Readings;
use crate::core::{Activity, Class, Waiting};

/// Whose thread it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// An activity of the program.
    Activity,
    /// The thread that watches its processor.
    Witness,
    /// The dispatcher of its processor's time slots.
    Dispatcher,
}

/// What a thread's first instruction after a wait is recorded as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Woken {
    /// It had not run before.
    First,
    /// It was to wake then.
    Meant(Instant),
}

#[derive(Debug)]
pub(crate) struct Thread {
    pub(super) role: Role,
    /// How it is scheduled outside slots and reservations.
    pub(super) scheduling: Scheduling,
    /// Woken from another processor: the interrupt is under way.
    pub(super) arriving: bool,
    pub(super) woken: Option<Woken>,
    /// When its last wait was over.
    pub(super) ready_at: Instant,
    /// What its coming takes from the processor, if it takes it from somebody.
    pub(super) coming: Option<Span>,
    /// Somebody took the processor from it in the middle of something.
    pub(super) preempted: bool,
    /// Whether its slot is now.
    pub(super) in_slot: bool,
    pub(super) server: Option<Server>,
    pub(super) readings: Readings,
    pub(super) draws: Draws,
}

impl Thread {
    fn new(role: Role, scheduling: Scheduling, woken: Option<Woken>, draws: Draws) -> Self {
        Self {
            role,
            scheduling,
            arriving: false,
            woken,
            ready_at: Instant::ZERO,
            coming: None,
            preempted: false,
            in_slot: false,
            server: None,
            readings: Readings::from(Instant::ZERO),
            draws,
        }
    }
}

pub(super) type Task = Activity<Kernel>;

pub(super) fn of_activity(
    number: u16,
    activity: &laxity_model::Activity,
    grade: Option<Grade>,
    start: Instant,
    draws: Draws,
) -> Task {
    let class = Class::of(activity.placement);
    let woken = match class {
        Class::Interrupt(_) | Class::Deferred => Woken::Meant(start),
        Class::Thread | Class::External => Woken::First,
    };
    let scheduling = ranks::of_placement(activity.placement);
    Activity::new(
        (ActivityId(number), class),
        activity.processor.0,
        (Waiting::ForTime, start),
        activity.reservation.zip(grade),
        Thread::new(Role::Activity, scheduling, Some(woken), draws),
    )
}

/// A thread of the host's own.
pub(super) fn of_host(role: Role, processor: u16, start: Instant, draws: Draws) -> Task {
    let scheduling = Scheduling::Fifo(match role {
        Role::Activity | Role::Witness => ranks::WITNESS,
        Role::Dispatcher => ranks::DISPATCHER,
    });
    Activity::new(
        (WITNESS_ACTIVITY, Class::Thread),
        processor,
        (Waiting::ForTime, start),
        None,
        Thread::new(role, scheduling, None, draws),
    )
}

impl Task {
    /// Whether it is an activity that its events show running and not: a thread, in the middle of something.
    pub(super) fn is_seen_running(&self) -> bool {
        self.own.role == Role::Activity && self.class == Class::Thread && self.own.woken.is_none()
    }

    /// How it competes on its processor; `None` if it may not run at all.
    pub(super) fn scheduling(&self) -> Option<Scheduling> {
        if !self.uses_its_slots() {
            return Some(self.own.scheduling);
        }
        if self.own.in_slot {
            return Some(Scheduling::Fifo(ranks::OCCUPANT));
        }
        match self.in_force().map(|held| held.outside) {
            None | Some(laxity_model::Outside::AsPlaced) => Some(self.own.scheduling),
            Some(laxity_model::Outside::Timesharing(priority)) => Some(ranks::of_thread(priority)),
            Some(laxity_model::Outside::Confined) => None,
        }
    }
}
