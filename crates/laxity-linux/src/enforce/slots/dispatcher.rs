//! The dispatcher's thread: carries out what the model's state machine says.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::thread;

use laxity_model::admission::changes::AdmissionState;
use laxity_model::base::ring::Producer;
use laxity_model::enforce::{Command, Dispatcher};
use laxity_model::policy::slots::{PlanCosts, SlotTable};
use laxity_model::{
    Disturbance, Event, EventKind, HostError, Instant, ProcessorId, Reservation, Service, Span,
};

use super::desk::Desk;
use super::seat::{Attended, Bell, Seat};
use super::{EARLY, PHASE, SlotReport, Timing};
use crate::enforce::witness::WITNESS_ACTIVITY;
use crate::host::map;
use crate::host::run::Run;
use crate::host::thread::{message, prefault_stack};
use crate::os::clock;
use crate::os::futex;
use crate::os::futex::Woken;
use crate::os::sched::{self, CpuSet, Policy, SchedError, Tid};
use crate::os::usage::ThreadUsage;

/// A slot that lacks more than this part of its length was not wanted, or the machine stood still: it is not prolonged.
const MADE_UP_PART: u64 = 8;
/// The kernel counts what interrupt handlers take as the holder's own service: on the machines measured, between a 45th and an 80th of a
/// slot in which the witness wakes every millisecond.
const UNSEEN_PART: u64 = 64;
/// Less than this is not worth a wake-up, which costs about as much.
const MADE_UP_LEAST: Span = Span::from_micros(3);

/// What a dispatcher needs to begin. The seats are in the order of the table's owners.
pub(crate) struct DispatcherStart {
    pub(crate) cpu: usize,
    pub(crate) processor: ProcessorId,
    pub(crate) table: SlotTable,
    /// Where changes are asked for while it runs, and by which costs they are planned.
    pub(crate) desk: Option<(Arc<Desk>, PlanCosts)>,
    pub(crate) seats: Vec<Arc<Seat>>,
    pub(crate) bell: Arc<Bell>,
    pub(crate) timing: Timing,
    /// Whether it makes up for what others take from a slot.
    pub(crate) makes_up: bool,
    /// It testifies, as a witness, to its own wake-ups that are later than this.
    pub(crate) tolerance: Option<Span>,
    pub(crate) ring: Producer,
    pub(crate) run: Arc<Run>,
}

/// What a dispatcher hands back.
pub(crate) struct Dispatched {
    pub(crate) report: SlotReport,
    pub(crate) disturbances: Vec<Disturbance>,
}

/// Starts the dispatcher; it ends with the run.
pub(crate) fn spawn(start: DispatcherStart) -> Result<thread::JoinHandle<Dispatched>, HostError> {
    thread::Builder::new()
        .name(format!("dispatcher/{}", start.cpu))
        .spawn(move || Worker::live(start))
        .map_err(|error| HostError::Failed(format!("cannot start a dispatcher: {error}")))
}

struct Worker {
    cpu: usize,
    processor: ProcessorId,
    seats: Vec<Attended>,
    bell: Arc<Bell>,
    desk: Option<(Arc<Desk>, PlanCosts)>,
    timing: Timing,
    ring: Producer,
    run: Arc<Run>,
    slots: u64,
    /// The slot under way: by the table, and what its holder had received before.
    begun: Option<(Instant, Service)>,
    makes_up: bool,
    tolerance: Option<Span>,
    disturbances: Vec<Disturbance>,
}

impl Worker {
    fn live(start: DispatcherStart) -> Dispatched {
        let DispatcherStart {
            cpu,
            processor,
            table,
            desk,
            seats,
            bell,
            timing,
            makes_up,
            tolerance,
            ring,
            run,
        } = start;
        let mut worker = Self {
            cpu,
            processor,
            seats: seats.into_iter().map(Seat::attend).collect(),
            bell,
            desk,
            timing,
            ring,
            run: Arc::clone(&run),
            slots: 0,
            begun: None,
            makes_up,
            tolerance,
            disturbances: Vec::with_capacity(1_024),
        };
        let before = ThreadUsage::now();
        let result = panic::catch_unwind(AssertUnwindSafe(|| worker.work(table)));
        match result {
            Ok(Ok(())) => {}
            Ok(Err(error)) => run.fail(HostError::Failed(format!(
                "the dispatcher of processor {cpu}: {error}"
            ))),
            Err(payload) => run.fail(HostError::Failed(format!(
                "the dispatcher of processor {cpu} panicked: {}",
                message(&*payload)
            ))),
        }
        for seat in &mut worker.seats {
            seat.abandon();
        }
        if let Some((desk, _)) = &worker.desk {
            desk.close();
        }
        let report = SlotReport {
            cpu,
            slots: worker.slots,
            spent: ThreadUsage::now().since(before).service,
            timing,
        };
        Dispatched {
            report,
            disturbances: worker.disturbances,
        }
    }

    fn work(&mut self, table: SlotTable) -> Result<(), SchedError> {
        clock::use_exact_timers();
        prefault_stack();
        self.ring.prefault();
        sched::set_affinity(Tid::current(), &CpuSet::single(self.cpu))?;
        sched::set_policy(Tid::current(), Policy::Fifo(map::DISPATCHER))?;
        let Some(start) = self.run.wait_for_start() else {
            return Ok(());
        };
        // The table has been going round before the run began, so that the first window is served as every other.
        let origin = start + PHASE - table.cycle();
        // The machine sees a clock that is fast by the cost of leaving, so that it ends slots that much early; what it would
        // begin early by the same is taken off what it compensates at beginnings.
        let ahead = self.timing.leaving;
        let compensation = self.timing.entering.saturating_sub(ahead);
        let lead = EARLY.saturating_sub(ahead);
        self.open_desk(&table, origin);
        let mut machine = Dispatcher::new(table, origin, lead, compensation);
        while !self.run.ended() {
            let rung = self.bell.number();
            self.answer(machine.current())?;
            if let Some((desk, _)) = &self.desk {
                desk.collect(&mut machine);
            }
            match machine.poll(clock::now() + ahead) {
                Command::SleepUntil(until) => {
                    let due = until - ahead;
                    if futex::wait(self.bell.word(), rung, Some(due)) == Woken::TimedOut {
                        self.testify(due, clock::now());
                    }
                }
                Command::SpinUntil(until) => {
                    let due = until - ahead;
                    let now = clock::spin_until(due, || false);
                    self.testify(due, now);
                }
                Command::Switch { from, to, edge } => {
                    let free_until = machine.calendar().at(edge).until;
                    self.switch((from, to), edge, free_until)?;
                }
            }
        }
        Ok(())
    }

    /// From now on changes may be asked for: the run has not begun yet.
    fn open_desk(&self, table: &SlotTable, origin: Instant) {
        if let Some((desk, costs)) = &self.desk {
            let held = self.seats.iter().map_while(Attended::reservation);
            let held: Vec<Reservation> = held.collect();
            let others = self.seats.len() - held.len();
            let table = (table.clone(), origin);
            desk.open(AdmissionState::new(
                (held, others),
                table,
                *costs,
                Span::ZERO,
            ));
        }
    }

    /// Only the witness ranks above, and the machine itself: what kept the dispatcher from an edge was one of them. The witness
    /// wakes at other instants, so that it takes nothing from short slots, and would not have seen it.
    fn testify(&mut self, due: Instant, now: Instant) {
        if self
            .tolerance
            .is_some_and(|most| now.saturating_since(due) > most)
        {
            self.ring.push(Event {
                at: now,
                kind: EventKind::Disturbed,
                processor: self.processor,
                activity: WITNESS_ACTIVITY,
                args: [due.as_nanos(), now.as_nanos()],
            });
            self.disturbances.push(Disturbance { from: due, to: now });
        }
    }

    /// Lets threads take and leave their seats between edges; `current` is whose slot it is.
    fn answer(&mut self, current: Option<usize>) -> Result<(), SchedError> {
        for owner in 0..self.seats.len() {
            let in_slot = current == Some(owner);
            let seat = &mut self.seats[owner];
            let was_taken = seat.is_taken();
            if seat.wish_is_met() {
                continue;
            }
            let now = clock::now();
            // Recorded while the seat is taken: before it is left, after it was taken.
            if in_slot && was_taken {
                self.record(Some(owner), EventKind::SlotEnd, now, now);
            }
            self.seats[owner].answer(in_slot)?;
            if in_slot && !was_taken {
                self.record(Some(owner), EventKind::SlotBegin, now, now);
            }
        }
        Ok(())
    }

    fn switch(
        &mut self,
        (from, to): (Option<usize>, Option<usize>),
        edge: Instant,
        free_until: Instant,
    ) -> Result<(), SchedError> {
        if let Some(seat) = from.and_then(|owner| self.seats.get(owner)) {
            if self.makes_up && to.is_none() {
                self.make_up(seat, edge, free_until);
            }
            seat.leave()?;
        }
        self.begun = None;
        if let Some(seat) = to.and_then(|owner| self.seats.get(owner)) {
            self.begun = seat.service().map(|service| (edge, service));
            seat.enter()?;
            self.slots += 1;
        }
        // Recorded after both effects: what the record costs is nobody's delay.
        let now = clock::now();
        self.record(from, EventKind::SlotEnd, now, edge);
        self.record(to, EventKind::SlotBegin, now, edge);
        Ok(())
    }

    /// Prolongs a slot that nobody's follows by what others above it have taken from it: the clock's interrupts, the witness, the
    /// observer, a device's handlers. A holder that lacks much more was not there to take it.
    fn make_up(&self, seat: &Attended, edge: Instant, free_until: Instant) {
        let (Some((begun, before)), Some(now)) = (self.begun, seat.service()) else {
            return;
        };
        let length = edge.saturating_since(begun).as_nanos();
        let wanted = Span::from_nanos(length + length / UNSEEN_PART);
        let lacking = wanted.saturating_sub(now.saturating_sub(before).as_dedicated_span());
        if lacking > MADE_UP_LEAST && lacking <= Span::from_nanos(length / MADE_UP_PART) {
            // Not into the time in which the next slot is prepared.
            let latest = free_until - EARLY.min(free_until.since_epoch());
            clock::sleep_until((clock::now() + lacking).min(latest));
        }
    }

    fn record(&mut self, owner: Option<usize>, kind: EventKind, at: Instant, edge: Instant) {
        let Some(seat) = owner.and_then(|owner| self.seats.get(owner)) else {
            return;
        };
        if seat.is_taken() {
            self.ring.push(Event {
                at,
                kind,
                processor: self.processor,
                activity: seat.activity(),
                args: [edge.as_nanos(), 0],
            });
        }
    }
}
