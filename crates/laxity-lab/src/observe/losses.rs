//! What a device lost that no halt of the machine excuses, and what was seen of its cause.

use laxity::observe::Loss;
use laxity_model::verify::contract::Phase;
use laxity_model::{
    ActivityId, Disturbance, Disturbances, Event, EventKind, Instant, Service, Span, Whereabouts,
};

/// What was lost that nothing excuses, a busy period after the other.
pub(super) struct Losses {
    /// When somebody held a processor where the device may have run.
    held: Disturbances,
    /// When its driver's reservation began, if it ever did.
    reserved_from: Option<Instant>,
    /// The busy period at hand: since when, the service of its calls and of the longest one.
    from: Instant,
    service: [Service; 2],
    all: Vec<Loss>,
}

impl Losses {
    /// Of a device whose driver ran there, in a run with these events.
    pub(super) fn of(events: &[Event], driver: ActivityId, ran: Whereabouts) -> Self {
        let mut begun = events.iter();
        let begun = begun
            .find(|event| event.kind == EventKind::ReservationBegin && event.activity == driver);
        let held = events.iter().filter(|event| event.kind == EventKind::Held);
        let held = held.map(|event| Disturbance {
            processor: event.processor,
            from: Instant::from_nanos(event.args[0]),
            to: Instant::from_nanos(event.args[1]),
        });
        Self {
            held: Disturbances::bearing_on(&Vec::from_iter(held), [ran]),
            reserved_from: begun.map(|event| event.at),
            from: Instant::ZERO,
            service: [Service::ZERO; 2],
            all: Vec::new(),
        }
    }

    /// A call of a busy period that began at `span[0]` has had so much service and is over; so many samples that it lost are excused by nothing, though
    /// halts delayed it by so much.
    pub(super) fn call(
        &mut self,
        span: [Instant; 2],
        (own, halted): (Service, Span),
        (amount, phase): (u64, &Phase),
    ) {
        if self.from != span[0] {
            (self.from, self.service) = (span[0], [Service::ZERO; 2]);
        }
        let [had, longest] = self.service;
        self.service = [had + own, longest.max(own)];
        if amount == 0 {
            return;
        }
        let of_period = self.all.pop_if(|last| last.span[0] == self.from);
        let before = of_period.map_or(0, |last| last.amount);
        self.all.push(Loss {
            amount: before + amount,
            phase: phase.clone(),
            span,
            service: Some(self.service),
            halted,
            held: self.held.within(span[0], span[1]).sum(),
            reserved: self.reserved_from.is_some_and(|from| from <= span[0]),
        });
    }

    /// What the end of the run finds lost of calls that never came, and no halt excuses, though halts delayed them by so much.
    pub(super) fn unserved(
        &mut self,
        span: [Instant; 2],
        halted: Span,
        (amount, phase): (u64, &Phase),
    ) {
        self.all.push(Loss {
            amount,
            phase: phase.clone(),
            span,
            service: None,
            halted,
            held: self.held.within(span[0], span[1]).sum(),
            reserved: self.reserved_from.is_some_and(|from| from <= span[0]),
        });
    }

    pub(super) fn finish(self) -> Vec<Loss> {
        self.all
    }
}
