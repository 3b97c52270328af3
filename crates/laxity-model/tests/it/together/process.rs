//! What a process is to the machine: the upcalls that its executor makes, what befalls it and is asked of it, and what its body sees.

use std::cell::Cell;
use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

use laxity_model::analysis::{Preemption, Task};
use laxity_model::base::port::Arrival;
use laxity_model::executor::account::Account;
use laxity_model::executor::pacing::OnOverrun;
use laxity_model::program::together::{Member, Others};
use laxity_model::program::upcall::{First, PacedBy, Timing};
use laxity_model::program::upcalls::{Command, Entrant, Keeper, Order};
use laxity_model::{
    ActivityId, Context, EventKind, Instant, PortId, Refused, SemaphoreId, Service, Span, Step,
};

use crate::together::machine::{COMMANDS, EVENTS, Shared};

/// An upcall: of which process, its times in microseconds, and what it does a period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Spec {
    pub(crate) process: usize,
    pub(crate) first: u64,
    pub(crate) period: u64,
    pub(crate) batch: u32,
    pub(crate) quantum: u32,
    /// What a quantum takes.
    pub(crate) takes: u64,
    /// Arrivals release it.
    pub(crate) is_event: bool,
}

impl Spec {
    fn quanta(&self) -> u32 {
        self.batch.div_ceil(self.quantum)
    }

    /// What a call takes.
    pub(crate) fn service(&self) -> Service {
        Service::from_micros(self.takes) * u64::from(self.quanta())
    }

    /// As it is admitted.
    pub(crate) fn task(&self) -> Task {
        let takes = Service::from_micros(self.takes);
        let task = Task::new(self.service(), Span::from_micros(self.period)).unwrap();
        let regions = match self.quanta() {
            1 => Preemption::Never,
            _ => Preemption::Fixed {
                longest: takes,
                last: takes,
            },
        };
        task.with_preemption(regions).unwrap()
    }
}

/// One quantum of an upcall, by its index among all, with the release of its call and when it began.
pub(crate) type Done = (usize, u64, u32, u64);

/// What happens to a process after so many quanta of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// It sleeps in a handler for so long.
    Blocks(u64),
    /// It is stopped, wherever it is, for so long.
    Stops(u64),
    /// It sleeps in a handler for so long, and then does not come back from it.
    Strays(u64),
    /// It is killed.
    Dies,
}

/// What a process's thread is at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum At {
    Body,
    Waiting,
    Asleep {
        word: u32,
        until: Instant,
    },
    Blocked {
        until: Instant,
    },
    /// In a handler that does not come back.
    Spinning,
    /// In one that does, after so long.
    Busy(Span),
    Dead,
}

/// Something for a process, at a port of it.
pub(crate) type Arrives = (usize, PortId, [u64; 2]);

/// A command, for an upcall by its place in a process.
pub(crate) struct Ask {
    pub(crate) process: usize,
    pub(crate) place: u16,
    pub(crate) command: Command,
    /// By this the answer is found.
    pub(crate) ticket: u64,
}

impl Ask {
    pub(crate) fn arrives(&self) -> Arrives {
        let order = Order {
            place: self.place,
            command: self.command,
            ticket: self.ticket,
        };
        (self.process, COMMANDS, order.payload())
    }
}

/// An upcall, by its index among all, whose quanta really take so many microseconds, one after the other and again; and what becomes of releases that come meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct Misbehaves {
    pub(crate) upcall: usize,
    pub(crate) takes: Vec<u64>,
    pub(crate) on_overrun: OnOverrun,
}

/// What each is held to: what it may spare, and what no stretch takes more than.
pub(crate) type Held = Option<(Service, Service)>;

#[derive(Clone)]
pub(crate) struct Keep {
    pub(crate) upcalls: Vec<(usize, Spec)>,
    pub(crate) done: Arc<Mutex<Vec<Done>>>,
    pub(crate) misbehaves: Option<Misbehaves>,
    pub(crate) held: Held,
}

impl Keeper for Keep {
    fn make(&mut self, _: u16) -> bool {
        true
    }

    fn enter(&mut self, place: u16) -> Option<Entrant> {
        let (index, spec) = self.upcalls[usize::from(place)];
        let done = Arc::clone(&self.done);
        let wrong = self.misbehaves.clone();
        let wrong = wrong.filter(|wrong| wrong.upcall == index);
        let on_overrun = wrong
            .as_ref()
            .map_or(OnOverrun::SKIP, |wrong| wrong.on_overrun);
        let really = wrong.map_or_else(|| vec![spec.takes], |wrong| wrong.takes);
        let mut really = really.into_iter().cycle();
        let account = self.held.and_then(|(spare, most)| {
            let period = Span::from_micros(spec.period);
            Account::new(spec.service(), period, spare, most)
        });
        let timing = Timing {
            on_overrun,
            first: First::At(Instant::from_micros(spec.first)),
            batch: NonZeroU32::new(spec.batch).unwrap(),
            quantum: NonZeroU32::new(spec.quantum).unwrap(),
            ..Timing::each(Span::from_micros(spec.period))
        };
        Some(Entrant {
            deadline: timing.period,
            unit: Service::from_micros(spec.takes),
            share: None,
            account: account.map(Arc::new),
            paced_by: spec.is_event.then_some(PacedBy {
                port: PortId(EVENTS + place),
                apart: timing.period,
                room: 64,
            }),
            timing,
            work: Box::new(move |context, call| {
                let release = call.paced.release.as_nanos() / 1_000;
                let now = context.now().as_nanos() / 1_000;
                done.lock()
                    .unwrap()
                    .push((index, release, call.done(), now));
                Step::Charge(Service::from_micros(really.next().unwrap_or(spec.takes)))
            }),
        })
    }

    fn discard(&mut self, _: u16) {}

    fn changed(&self) -> Arc<dyn Fn() + Send + Sync> {
        Arc::new(|| ())
    }
}

/// What a body sees.
pub(crate) struct Own {
    pub(crate) now: Cell<Instant>,
    /// So much later the clock is each time that it was read.
    pub(crate) reading: Span,
    /// What its thread has received.
    pub(crate) received: Service,
    pub(crate) ports: Vec<VecDeque<Arrival>>,
    pub(crate) rings: Vec<Option<SemaphoreId>>,
    /// A handler waits there.
    pub(crate) awaited: Vec<bool>,
    pub(crate) member: Option<Member<Arc<Shared>>>,
}

impl Context for Own {
    fn now(&self) -> Instant {
        self.now.replace(self.now.get() + self.reading)
    }

    fn put(&mut self, port: PortId, payload: [u64; 2]) -> bool {
        let at = self.now.get();
        self.ports[usize::from(port.0)].push_back(Arrival { at, payload });
        if let Some(doorbell) = self.rings[usize::from(port.0)] {
            let bell = &mut self.ports[usize::from(doorbell.0)];
            bell.truncate(0);
            bell.push_back(Arrival {
                at,
                payload: [0; 2],
            });
        }
        true
    }

    fn take(&mut self, port: PortId) -> Option<Arrival> {
        let taken = self.ports[usize::from(port.0)].pop_front();
        self.awaited[usize::from(port.0)] &= taken.is_none();
        taken
    }

    fn arrival(&self) -> Option<Arrival> {
        None
    }

    fn ring(&mut self, port: PortId, doorbell: SemaphoreId) -> bool {
        self.rings[usize::from(port.0)] = Some(doorbell);
        self.awaited[usize::from(port.0)] = true;
        false
    }

    fn awaits_no_more(&mut self, port: PortId) {
        self.awaited[usize::from(port.0)] = false;
    }

    fn others(&mut self) -> Option<&mut dyn Others> {
        let member = self.member.as_mut()?;
        Some(member)
    }

    fn record_of(&mut self, _: ActivityId, _: EventKind, _: [u64; 2]) {}

    fn fail(&mut self, what: &'static str) {
        panic!("{what}");
    }

    fn record(&mut self, _: EventKind, _: [u64; 2]) {}

    fn timed_out(&self) -> bool {
        false
    }

    fn answer(&self) -> Result<Instant, Refused> {
        Err(Refused::NothingAsked)
    }

    fn service(&self) -> Service {
        self.received
    }
}
