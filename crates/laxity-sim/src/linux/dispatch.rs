//! The host's own threads: the dispatcher of time slots, which does what [`laxity_model::enforce::Dispatcher`] says, and the witness.

use laxity_model::enforce::machine::Figure;
use laxity_model::enforce::{Command, MakingUp, Witness};
use laxity_model::{EventKind, Instant, Span};

use super::kernel::{Leaving, System};
use crate::core::{Machinery, Waiting};

/// What an edge of a slot table still has to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pending {
    from: Option<usize>,
    to: Option<usize>,
    edge: Instant,
}

/// How the dispatcher carries a slot table out.
#[derive(Debug)]
pub(crate) struct Timing {
    /// The dispatcher's own thread.
    pub(super) thread: u32,
    /// How far its clock is ahead, so that it ends slots so much early.
    ahead: Span,
    /// The slot under way, and how it is prolonged.
    making_up: MakingUp,
    /// The end of a slot that is being prolonged.
    pub(super) prolonged: Option<Pending>,
    /// When it wanted to be where it is.
    pub(super) due: Option<Instant>,
    /// The timer that ends the slot under way.
    pub(super) end_timer: Option<Instant>,
    /// What going to sleep takes after an edge; `None`: what it takes everybody.
    edge_cost: Option<Span>,
}

impl Timing {
    /// This thread's, with a clock so far ahead.
    pub(super) fn new(thread: u32, ahead: Span) -> Self {
        Self {
            thread,
            ahead,
            making_up: MakingUp::default(),
            prolonged: None,
            due: None,
            end_timer: None,
            edge_cost: None,
        }
    }
}

impl System {
    /// The dispatcher has the processor, or the run begins: everything that is due now.
    pub(super) fn dispatch(&mut self, processor: usize) {
        if let Some(slots) = &mut self.processors[processor].slots
            && let Some(pending) = slots.carried.prolonged.take()
        {
            self.pass_edge(processor, pending);
        }
        loop {
            let now = self.now;
            let Some(slots) = &mut self.processors[processor].slots else {
                return;
            };
            let (ahead, thread) = (slots.carried.ahead, slots.carried.thread);
            match slots.dispatcher.poll(now + ahead) {
                Command::SleepUntil(until) => {
                    let due = until - ahead;
                    slots.carried.due = Some(due);
                    return self.dispatcher_sleeps(processor, due);
                }
                Command::SpinUntil(until) => {
                    let due = until - ahead;
                    slots.carried.due = Some(due);
                    let spin = due.saturating_since(now).as_full_service();
                    return self.work(thread, spin, false);
                }
                Command::Switch { from, to, edge } => {
                    let pending = Pending { from, to, edge };
                    if let Some(until) = self.prolonged_until(processor, pending) {
                        if let Some(slots) = &mut self.processors[processor].slots {
                            slots.carried.prolonged = Some(pending);
                            slots.carried.due = None;
                        }
                        return self.dispatcher_sleeps(processor, until);
                    }
                    self.pass_edge(processor, pending);
                }
            }
        }
    }

    fn dispatcher_sleeps(&mut self, processor: usize, until: Instant) {
        let Some(slots) = &mut self.processors[processor].slots else {
            return;
        };
        let (thread, edge_cost) = (slots.carried.thread, slots.carried.edge_cost.take());
        let machine = &self.parts.machine;
        let entry = &mut self.activities[thread as usize];
        entry.waiting = Waiting::ForTime;
        entry.meant_at = until;
        let leaving = match edge_cost {
            Some(all) => Leaving::Taking(all),
            None => Leaving::By(entry.own.draws.span(machine.figure(Figure::Timer))),
        };
        // Where a hypervisor takes the processor before the timer that ends a slot is due.
        let ends_slot = slots.carried.making_up.is_under_way() && slots.carried.due == Some(until);
        let cut = if ends_slot {
            entry.own.draws.span(machine.figure(Figure::SlotCut))
        } else {
            Span::ZERO
        };
        let taken = self.now.max(until.saturating_sub(cut));
        slots.carried.end_timer = ends_slot.then_some(taken);
        self.set_timer(thread, taken);
        if self.processors[processor].executing == Some(thread) {
            self.leave_by(thread, Some(leaving));
        }
    }

    /// Until when the slot that ends is prolonged, if nobody's slot follows and it is worth making up for.
    fn prolonged_until(&self, processor: usize, pending: Pending) -> Option<Instant> {
        let slots = self.processors[processor].slots.as_ref()?;
        let holder = slots.owners.get(pending.from?)?;
        if pending.to.is_some() {
            return None;
        }
        let received = self.activity(*holder).received;
        // Not into the time in which the next slot is prepared.
        let free_until = slots.dispatcher.calendar().at(pending.edge).until;
        let latest = free_until.saturating_sub(self.parts.machine.slot_lead);
        let making_up = &slots.carried.making_up;
        making_up.until(pending.edge, received, latest, self.now)
    }

    /// Takes the processor from one holder and gives it to the other.
    fn pass_edge(&mut self, processor: usize, pending: Pending) {
        let machine = &self.parts.machine;
        let Some(slots) = &mut self.processors[processor].slots else {
            return;
        };
        let owner = |number: Option<usize>| slots.owners.get(number?).copied();
        let (from, to) = (owner(pending.from), owner(pending.to));
        let thread = &mut self.activities[slots.carried.thread as usize];
        slots.carried.edge_cost = Some(if to.is_some() {
            thread.own.draws.span(machine.figure(Figure::SlotEntering))
        } else {
            let draws = &mut thread.own.draws;
            draws.beyond(machine, Figure::SlotEdge, Figure::Preemption)
        });
        slots.carried.making_up.end();
        if let Some(from) = from {
            self.leave_slot(from, pending.edge);
            self.place_holder(from);
        }
        if let Some(to) = to {
            self.enter_slot(to, pending.edge);
            self.place_holder(to);
        }
    }

    fn place_holder(&mut self, holder: u32) {
        if self.activity(holder).uses_its_slots() {
            self.place(holder);
        }
    }

    pub(super) fn enter_slot(&mut self, holder: u32, edge: Instant) {
        if !self.begin_slot(holder, edge) {
            return;
        }
        let task = self.activity_mut(holder);
        task.own.in_slot = true;
        let (received, home) = (task.received, usize::from(task.home));
        if let Some(slots) = &mut self.processors[home].slots {
            slots.carried.making_up.begin(edge, received);
        }
    }

    pub(super) fn leave_slot(&mut self, holder: u32, edge: Instant) {
        self.activity_mut(holder).own.in_slot = false;
        self.end_slot(holder, edge);
    }

    /// Whether the dispatcher is where it wanted to be; it records if that is late, and waits if it was brought there early.
    pub(super) fn on_time(&mut self, processor: usize) -> bool {
        let now = self.now;
        let Some(slots) = &mut self.processors[processor].slots else {
            return false;
        };
        let thread = slots.carried.thread;
        slots.carried.end_timer = None;
        if let Some(early) = slots.carried.due.filter(|due| *due > now) {
            self.work(thread, (early - now).as_full_service(), false);
            return false;
        }
        if let (Some(due), Some(witness)) = (slots.carried.due.take(), self.parts.witness) {
            self.record_late(thread, due, witness);
        }
        true
    }

    /// Records that a thread of the host's own woke late, if it did.
    fn record_late(&mut self, thread: u32, due: Instant, witness: Witness) {
        if let Some(disturbance) = witness.late(due, self.now) {
            let args = [due.as_nanos(), self.now.as_nanos()];
            self.record(EventKind::Disturbed, thread, args);
            self.disturbances.push(disturbance);
        }
    }

    /// The witness has the processor: it records a late wake-up, and sleeps until its next instant.
    pub(super) fn wake_witness(&mut self, thread: u32) {
        let Some(witness) = self.parts.witness else {
            return;
        };
        let due = self.activity(thread).meant_at;
        self.witness_wakeups += 1;
        self.record_late(thread, due, witness);
        let next = witness.next(due, self.now);
        let machine = &self.parts.machine;
        let entry = &mut self.activities[thread as usize];
        entry.waiting = Waiting::ForTime;
        entry.meant_at = next;
        let call = entry.own.draws.span(machine.figure(Figure::Timer));
        self.set_timer(thread, next);
        self.leave_by(thread, Some(Leaving::By(call)));
    }
}
