//! What the kernel knows of one thread.

use laxity_model::policy::classes::Scheduling;
use laxity_model::policy::deadline::Server;
use laxity_model::{
    Activity, Grade, Instant, Placement, Refused, ReservationRequest, Service, Span,
};

use super::draws::Draws;
use super::policy;
use crate::activity::{Class, Waiting};

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

/// A reservation that was granted.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) request: ReservationRequest,
    pub(super) grade: Grade,
    pub(super) in_force: bool,
}

#[derive(Debug)]
pub(super) struct Task {
    pub(super) role: Role,
    pub(super) class: Class,
    /// Where it runs now, and where it belongs: a thread under `SCHED_DEADLINE` wanders.
    pub(super) processor: usize,
    pub(super) home: usize,
    /// To be done before its next step.
    pub(super) work: Service,
    /// The work is real: what takes from it prolongs it. Otherwise it is processor time by the kernel's count, which counts that in.
    pub(super) charging: bool,
    /// By the kernel's count.
    pub(super) received: Service,
    pub(super) received_before: Service,
    pub(super) waiting: Waiting,
    /// Woken from another processor: the interrupt is under way.
    pub(super) arriving: bool,
    pub(super) timed_out: bool,
    pub(super) yielded: bool,
    pub(super) meant_at: Instant,
    pub(super) woken: Option<Woken>,
    /// What its coming takes from the processor, if it takes it from somebody.
    pub(super) coming: Option<Span>,
    /// Somebody took the processor from it in the middle of something.
    pub(super) preempted: bool,
    pub(super) voluntary_switches: u64,
    pub(super) involuntary_switches: u64,
    pub(super) own: Scheduling,
    pub(super) held: Option<Held>,
    /// It has no reservation but a time constraint, whose slots are its own.
    pub(super) is_guest: bool,
    /// Whether its slot is now.
    pub(super) in_slot: bool,
    /// Whether the beginning of the slot that now is was recorded.
    pub(super) slot_recorded: bool,
    pub(super) server: Option<Server>,
    pub(super) answer: Result<Instant, Refused>,
    pub(super) draws: Draws,
}

impl Task {
    pub(super) fn of_activity(
        activity: &Activity,
        grade: Option<Grade>,
        start: Instant,
        draws: Draws,
    ) -> Self {
        let class = match activity.placement {
            Placement::Interrupt(level) => Class::Interrupt(level.0),
            Placement::Deferred => Class::Deferred,
            Placement::Thread(_) | Placement::Foreign { .. } => Class::Thread,
            Placement::External => Class::External,
        };
        let held = activity.reservation.zip(grade);
        Self {
            class,
            own: policy::of_placement(activity.placement),
            woken: Some(match class {
                Class::Interrupt(_) | Class::Deferred => Woken::Meant(start),
                Class::Thread | Class::External => Woken::First,
            }),
            held: held.map(|(request, grade)| Held {
                request,
                grade,
                in_force: false,
            }),
            ..Self::new(Role::Activity, activity.processor.index(), start, draws)
        }
    }

    /// A thread of the host's own.
    pub(super) fn of_host(role: Role, processor: usize, start: Instant, draws: Draws) -> Self {
        Self::new(role, processor, start, draws)
    }

    fn new(role: Role, processor: usize, start: Instant, draws: Draws) -> Self {
        Self {
            role,
            class: Class::Thread,
            processor,
            home: processor,
            work: Service::ZERO,
            charging: false,
            received: Service::ZERO,
            received_before: Service::ZERO,
            waiting: Waiting::ForTime,
            arriving: false,
            timed_out: false,
            yielded: false,
            meant_at: start,
            woken: None,
            coming: None,
            preempted: false,
            voluntary_switches: 0,
            involuntary_switches: 0,
            own: match role {
                Role::Activity | Role::Witness => policy::WITNESS,
                Role::Dispatcher => policy::DISPATCHER,
            },
            held: None,
            is_guest: false,
            in_slot: false,
            slot_recorded: false,
            server: None,
            answer: Err(Refused::NothingAsked),
            draws,
        }
    }

    /// It is credited with so much service, of which so much does its work.
    pub(super) fn receive(&mut self, counted: Service, worked: Service) {
        self.work = self.work.saturating_sub(worked);
        self.received += counted;
        if let Some(server) = &mut self.server {
            server.charge(counted);
        }
    }

    /// Whether a slot of its own is anything to it: its reservation is in force, or it has a time constraint.
    pub(super) fn uses_its_slots(&self) -> bool {
        self.is_guest || self.held.as_ref().is_some_and(|held| held.in_force)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.waiting == Waiting::No
    }

    /// Whether it is an activity that its events show running and not: a thread, in the middle of something.
    pub(super) fn is_seen_running(&self) -> bool {
        self.role == Role::Activity && self.class == Class::Thread && self.woken.is_none()
    }
}
