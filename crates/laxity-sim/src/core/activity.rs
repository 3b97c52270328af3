//! What the core knows of one activity.

use laxity_model::base::port::Arrival;
use laxity_model::{
    ActivityId, Enforcer, Event, EventKind, Grade, Grant, Instant, Outside, Placement, ProcessorId,
    Refused, Reservation, ReservationRequest, Service, Usage,
};

use super::Parts;

/// How an activity gets to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// An interrupt handler of this level.
    Interrupt(u8),
    Deferred,
    Thread,
    External,
}

impl Class {
    pub(crate) const fn of(placement: Placement) -> Self {
        match placement {
            Placement::Interrupt(level) => Self::Interrupt(level.0),
            Placement::Deferred => Self::Deferred,
            Placement::Thread(_) | Placement::Linux(_) => Self::Thread,
            // What is on an executor never begins here.
            Placement::External | Placement::On { .. } => Self::External,
        }
    }
}

/// What an activity waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waiting {
    /// Nothing: it runs or could run.
    No,
    ForTime,
    /// For an arrival at this port.
    ForSignal(u32),
    /// For an arrival at this port, with a timer set.
    ForEither(u32),
    /// It has finished.
    ForEver,
}

/// How a reservation was granted. What it is, which may change, [`super::Core::reservation`] knows.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) enforcer: Enforcer,
    pub(crate) outside: Outside,
    pub(crate) begins_at_start: bool,
    pub(crate) grade: Grade,
    pub(crate) in_force: bool,
    /// Whether it ever was.
    pub(crate) has_begun: bool,
}

#[derive(Debug)]
pub(crate) struct Activity<P: Parts> {
    /// To be done before its next step.
    pub(crate) work: Service,
    pub(crate) received: Service,
    /// What a handler or deferred call had received when it was entered last.
    pub(crate) received_before: Service,
    /// Arrivals that it took without waiting, since a deferred call was entered last.
    pub(crate) further: u32,
    /// When a sleeper asked to wake; when an interrupt was raised or a deferred call queued.
    pub(crate) meant_at: Instant,
    pub(crate) waiting: Waiting,
    /// Under which it is recorded.
    pub(crate) id: ActivityId,
    /// The processor to which it belongs, and the one where it runs: they differ under Linux only.
    pub(crate) home: u16,
    pub(crate) processor: u16,
    pub(crate) class: Class,
    pub(crate) timed_out: bool,
    /// The work is real, and not just processor time to be burnt.
    pub(crate) charging: bool,
    /// It has no reservation but a time constraint, whose slots are its own.
    pub(crate) is_guest: bool,
    /// Whether the beginning of the slot that now is was recorded.
    pub(crate) slot_recorded: bool,
    pub(crate) own: P::Own,
    pub(crate) voluntary_switches: u64,
    pub(crate) involuntary_switches: u64,
    pub(crate) held: Option<Box<Held>>,
    /// What became of what it asked for last.
    pub(crate) answer: Result<Instant, Refused>,
    /// What its last wait for a port took.
    pub(crate) arrival: Option<Arrival>,
}

impl<P: Parts> Activity<P> {
    /// One that is recorded under this number, belongs to this processor, and waits for this.
    pub(crate) fn new(
        (id, class): (ActivityId, Class),
        home: u16,
        (waiting, since): (Waiting, Instant),
        held: Option<(ReservationRequest, Grade)>,
        own: P::Own,
    ) -> Self {
        Self {
            work: Service::ZERO,
            received: Service::ZERO,
            received_before: Service::ZERO,
            further: 0,
            meant_at: since,
            waiting,
            id,
            home,
            processor: home,
            class,
            timed_out: false,
            charging: false,
            is_guest: false,
            slot_recorded: false,
            own,
            voluntary_switches: 0,
            involuntary_switches: 0,
            held: held.map(|(request, grade)| {
                Box::new(Held {
                    enforcer: request.enforcer,
                    outside: request.outside,
                    begins_at_start: request.begins_at_start,
                    grade,
                    in_force: false,
                    has_begun: false,
                })
            }),
            answer: Err(Refused::NothingAsked),
            arrival: None,
        }
    }

    /// What happens to it now, as it is recorded.
    #[inline]
    pub(crate) fn event(&self, kind: EventKind, at: Instant, args: [u64; 2]) -> Event {
        Event {
            at,
            kind,
            processor: ProcessorId(self.home),
            activity: self.id,
            args,
        }
    }

    #[inline]
    pub(crate) fn place(&self) -> usize {
        usize::from(self.processor)
    }

    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.waiting == Waiting::No
    }

    /// It is credited with so much service, of which so much does its work.
    #[inline]
    pub(crate) fn receive(&mut self, counted: Service, worked: Service) {
        self.work = self.work.saturating_sub(worked);
        self.received += counted;
        P::charge(&mut self.own, counted);
    }

    /// How its reservation is held, if that is in force.
    pub(crate) fn in_force(&self) -> Option<&Held> {
        self.held.as_deref().filter(|held| held.in_force)
    }

    /// Whether a slot of its own is anything to it: its reservation is in force, or it has a time constraint.
    pub(crate) fn uses_its_slots(&self) -> bool {
        self.is_guest || self.in_force().is_some()
    }

    /// Whether it runs in its slots and nowhere else.
    pub(crate) fn is_confined(&self) -> bool {
        self.in_force()
            .is_some_and(|held| held.outside == Outside::Confined)
    }

    /// What it received, and its grant, if it has one, which is this in the end.
    pub(super) fn usage(&self, reservation: Option<Reservation>) -> Usage {
        let held = self.held.as_ref().zip(reservation);
        Usage {
            service: self.received,
            voluntary_switches: self.voluntary_switches,
            involuntary_switches: self.involuntary_switches,
            page_faults: 0,
            grant: held.map(|(held, reservation)| Grant {
                reservation,
                enforcer: held.enforcer,
                grade: held.grade.clone(),
                has_begun: held.has_begun,
            }),
            ..Usage::default()
        }
    }
}
