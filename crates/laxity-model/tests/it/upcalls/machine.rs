//! A machine of virtual time on which handlers take turns, and what tells them to.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

use laxity_model::base::port::{Arrival, Port, PortKind, PortUsage};
use laxity_model::executor::pacing::OnOverrun;
use laxity_model::executor::rmdp::Rmdp;
use laxity_model::program::upcall::{First, PacedBy, Timing};
use laxity_model::program::upcalls::{
    Board, Command, Control, Entrant, Keeper, Order, STOP, turns,
};
use laxity_model::{
    ActivityId, Body, Context, EventKind, Instant, PortId, Refused, SemaphoreId, Service, Span,
    Step,
};

pub(crate) const DOORBELL: PortId = PortId(0);
pub(crate) const COMMANDS: PortId = PortId(1);
pub(crate) const PLACES: u16 = 4;
/// So much waits at each port.
pub(crate) const ROOM: u32 = 64;

/// The port of what arrives for an upcall.
pub(crate) fn events(place: u16) -> PortId {
    PortId(2 + place)
}

/// A machine of ports and virtual time, on which nothing costs but what is charged.
pub(crate) struct Virtual {
    pub(crate) now: Instant,
    ports: Vec<Port>,
    rings: Vec<Option<PortId>>,
    arrival: Option<Arrival>,
    timed_out: bool,
    /// What feeds this port is looked at in waits only, and was at these instants where nobody was to wait.
    pub(crate) fed: Option<PortId>,
    pub(crate) polls: Vec<Instant>,
    /// What is still to be put, the last first.
    pub(crate) script: Vec<(Instant, PortId, [u64; 2])>,
}

impl Virtual {
    pub(crate) fn new(script: Vec<(Instant, PortId, [u64; 2])>) -> Self {
        Self::of(PLACES, script)
    }

    /// With ports for so many upcalls.
    pub(crate) fn of(places: u16, mut script: Vec<(Instant, PortId, [u64; 2])>) -> Self {
        script.sort_by_key(|(at, ..)| *at);
        script.reverse();
        let one = PortKind::Count {
            initial: 0,
            most: 1,
        };
        let queue = PortKind::Queue { capacity: ROOM };
        let kinds = [one, queue].into_iter().chain((0..places).map(|_| queue));
        let ports: Vec<Port> = kinds.map(Port::new).collect();
        Self {
            now: Instant::ZERO,
            rings: vec![None; ports.len()],
            ports,
            arrival: None,
            timed_out: false,
            fed: None,
            polls: Vec::new(),
            script,
        }
    }

    /// What became of all that arrived at a port.
    pub(crate) fn usage(&self, port: PortId) -> PortUsage {
        self.ports[usize::from(port.0)].usage()
    }

    /// Time passes, and what comes meanwhile comes.
    pub(crate) fn pass_to(&mut self, until: Instant) {
        while let Some((at, port, payload)) = self.script.last().copied()
            && at <= until
        {
            self.script.pop();
            self.now = self.now.max(at);
            self.put(port, payload);
        }
        self.now = self.now.max(until);
    }

    pub(crate) fn run(&mut self, body: &mut dyn Body) {
        loop {
            match body.step(self) {
                Step::Charge(service) => self.pass_to(self.now + service.as_dedicated_span()),
                Step::Finish => return,
                Step::Wait(port) => self.wait(port, Instant::MAX),
                Step::WaitUntil(port, until) => {
                    self.polls
                        .extend((until == Instant::ZERO).then_some(self.now));
                    self.wait(port, until);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    pub(crate) fn wait(&mut self, port: PortId, until: Instant) {
        loop {
            self.arrival = self.ports[usize::from(port.0)].take();
            self.timed_out = self.arrival.is_none();
            if self.arrival.is_some() || self.now >= until {
                return;
            }
            let next = self.script.last().map(|(at, ..)| *at);
            let next = next.map_or(until, |at| at.min(until));
            assert_ne!(next, Instant::MAX, "nobody will ever put anything");
            self.pass_to(next);
        }
    }
}

impl Context for Virtual {
    fn now(&self) -> Instant {
        self.now
    }

    fn put(&mut self, port: PortId, payload: [u64; 2]) -> bool {
        let at = self.now;
        let room = self.ports[usize::from(port.0)].put(Arrival { at, payload });
        if let Some(doorbell) = self.rings[usize::from(port.0)] {
            self.ports[usize::from(doorbell.0)].put(Arrival {
                at,
                payload: [0; 2],
            });
        }
        room
    }

    fn take(&mut self, port: PortId) -> Option<Arrival> {
        self.ports[usize::from(port.0)].take()
    }

    fn arrival(&self) -> Option<Arrival> {
        self.arrival
    }

    fn ring(&mut self, port: PortId, doorbell: SemaphoreId) -> bool {
        self.rings[usize::from(port.0)] = Some(doorbell);
        self.fed == Some(port)
    }

    fn record_of(&mut self, _: ActivityId, _: EventKind, _: [u64; 2]) {}

    fn fail(&mut self, what: &'static str) {
        panic!("{what}");
    }

    fn record(&mut self, _: EventKind, _: [u64; 2]) {}

    fn timed_out(&self) -> bool {
        self.timed_out
    }

    fn answer(&self) -> Result<Instant, Refused> {
        Err(Refused::NothingAsked)
    }

    fn service(&self) -> Service {
        Service::ZERO
    }
}

/// What a handler does at a quantum.
pub(crate) type Does = fn(u64) -> Step;

/// Whoever was called, with the release, by place.
pub(crate) type Calls = Arc<Mutex<Vec<(u16, Instant)>>>;

#[derive(Clone)]
pub(crate) struct Keep {
    pub(crate) timings: Vec<(Timing, Option<PortId>)>,
    pub(crate) does: Does,
    pub(crate) calls: Calls,
}

impl Keeper for Keep {
    fn make(&mut self, _: u16) -> bool {
        true
    }

    fn enter(&mut self, place: u16) -> Option<Entrant> {
        let (timing, paced_by) = self.timings[usize::from(place)].clone();
        let (calls, does) = (Arc::clone(&self.calls), self.does);
        Some(Entrant {
            deadline: timing.period,
            paced_by: paced_by.map(|port| PacedBy {
                port,
                apart: timing.period,
                room: ROOM,
            }),
            timing,
            unit: Service::MAX,
            share: None,
            account: None,
            work: Box::new(move |_, call| {
                let mut calls = calls.lock().unwrap();
                if call.done() == 0 {
                    calls.push((place, call.paced.release));
                }
                does(calls.len() as u64)
            }),
        })
    }

    fn discard(&mut self, _: u16) {}

    fn changed(&self) -> Arc<dyn Fn() + Send + Sync> {
        Arc::new(|| ())
    }
}

pub(crate) const MICRO: Service = Service::from_micros(1);

pub(crate) fn us(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

pub(crate) fn timing(first: u64, period: u64, batch: u32, quantum: u32) -> Timing {
    Timing {
        first: First::At(us(first)),
        period: Span::from_micros(period),
        batch: NonZeroU32::new(batch).unwrap(),
        quantum: NonZeroU32::new(quantum).unwrap(),
        on_overrun: OnOverrun::SKIP,
        pauses: false,
    }
}

pub(crate) fn boards() -> Arc<[Board]> {
    (0..PLACES).map(|_| Board::default()).collect()
}

pub(crate) fn order(
    at: u64,
    place: u16,
    command: Command,
    ticket: u64,
) -> (Instant, PortId, [u64; 2]) {
    let order = Order {
        place,
        command,
        ticket,
    };
    (us(at), COMMANDS, order.payload())
}

/// Runs a script to its end, where all are stopped.
pub(crate) fn run(
    keep: &Keep,
    boards: &Arc<[Board]>,
    mut script: Vec<(Instant, PortId, [u64; 2])>,
    end: u64,
) {
    script.push((us(end), COMMANDS, STOP));
    let control = Control::new([COMMANDS, events(0)], Arc::clone(boards), keep.clone());
    let mut body = turns(Rmdp::default(), DOORBELL, Box::new(control), false);
    Virtual::new(script).run(&mut *body);
}

pub(crate) fn keep(timings: Vec<(Timing, Option<PortId>)>, does: Does) -> Keep {
    Keep {
        timings,
        does,
        calls: Calls::default(),
    }
}
