//! The host's own threads: the dispatcher of time slots, which does what [`laxity_model::enforce::Dispatcher`] says, and the witness.

use laxity_model::enforce::machine::Figure;
use laxity_model::enforce::{Command, Count, Lateness, Look, Waits, Witness};
use laxity_model::{Instant, ProcessorId, Span};

use super::kernel::{Leaving, System};
use crate::core::{Machinery, Waiting};

/// How the dispatcher carries a slot table out.
#[derive(Debug)]
pub(crate) struct Timing {
    /// The dispatcher's own thread.
    pub(super) thread: u32,
    /// When it wanted to be where it is.
    pub(super) due: Option<Instant>,
    /// Whether it sleeps until then.
    sleeps: bool,
    /// The timer that ends the slot under way.
    pub(super) end_timer: Option<Instant>,
    /// What going to sleep takes after an edge; `None`: what it takes everybody.
    edge_cost: Option<Span>,
}

impl Timing {
    /// This thread's.
    pub(super) fn new(thread: u32) -> Self {
        Self {
            thread,
            due: None,
            sleeps: false,
            end_timer: None,
            edge_cost: None,
        }
    }
}

/// The twin's parts of an edge of a slot table.
struct Edge {
    from: Option<usize>,
    to: Option<usize>,
    at: Instant,
}

impl System {
    /// The dispatcher has the processor, or the run begins: everything that is due now.
    pub(super) fn dispatch(&mut self, processor: usize) {
        loop {
            let now = self.now;
            let Some(slots) = &mut self.processors[processor].slots else {
                return;
            };
            let thread = slots.carried.thread;
            match slots.dispatcher.poll(now) {
                Command::SleepUntil(due) => {
                    slots.carried.due = Some(due);
                    return self.dispatcher_sleeps(processor, due);
                }
                Command::SpinUntil(due) => {
                    slots.carried.due = Some(due);
                    let spin = due.saturating_since(now).as_full_service();
                    return self.work(thread, spin, false);
                }
                Command::Look { owner } => self.look(processor, owner),
                Command::Switch { from, to, edge } => {
                    self.pass_edge(processor, &Edge { from, to, at: edge });
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
        let ends_slot = slots.dispatcher.current().is_some();
        let cut = if ends_slot {
            entry.own.draws.span(machine.figure(Figure::SlotCut))
        } else {
            Span::ZERO
        };
        let taken = self.now.max(until.saturating_sub(cut));
        slots.carried.sleeps = true;
        slots.carried.end_timer = ends_slot.then_some(taken);
        self.set_timer(thread, taken);
        if self.processors[processor].executing == Some(thread) {
            self.leave_by(thread, Some(leaving));
        }
    }

    /// The kernel's count of a holder.
    fn count(&self, holder: u32) -> Count {
        let holder = self.activity(holder);
        Count {
            service: holder.received,
            // Outside the processor as often as it was on it.
            turns: Some(holder.voluntary_switches + holder.involuntary_switches),
        }
    }

    /// What is seen of the slot whose end has come.
    fn look(&mut self, processor: usize, owner: usize) {
        let Some(slots) = &self.processors[processor].slots else {
            return;
        };
        let holder = slots.owners.get(owner).copied();
        let (now, count) = (self.now, holder.map(|holder| self.count(holder)));
        let look = count.map(|count| Look {
            count,
            woke: now,
            // It could only tell what is below the kernel.
            own: None,
        });
        if let Some(slots) = &mut self.processors[processor].slots {
            slots.dispatcher.looked(look.as_ref(), now);
        }
    }

    /// Takes the processor from one holder and gives it to the other.
    fn pass_edge(&mut self, processor: usize, edge: &Edge) {
        let machine = &self.parts.machine;
        let Some(slots) = &mut self.processors[processor].slots else {
            return;
        };
        let owner = |number: Option<usize>| slots.owners.get(number?).copied();
        let (from, to) = (owner(edge.from), owner(edge.to));
        let thread = &mut self.activities[slots.carried.thread as usize];
        slots.carried.edge_cost = Some(if to.is_some() {
            thread.own.draws.span(machine.figure(Figure::SlotEntering))
        } else {
            let draws = &mut thread.own.draws;
            draws.beyond(machine, Figure::SlotEdge, Figure::Preemption)
        });
        if let Some(from) = from {
            self.leave_slot(from, edge.at);
            self.place_holder(from);
        }
        if let Some(to) = to {
            let count = self.count(to);
            // All but going to sleep is done: the dispatcher looks at its clock.
            let machine = &self.parts.machine;
            let asleep = [Figure::Timer, Figure::ContextSwitch]
                .map(|figure| machine.figure(figure).median());
            let doing = machine
                .figure(Figure::SlotEntering)
                .median()
                .saturating_sub(asleep.into_iter().sum());
            let done = self.now + doing;
            self.enter_slot(to, edge.at);
            let before = self.activity(to).own.in_slot.then_some(count);
            if let Some(slots) = &mut self.processors[processor].slots {
                slots.dispatcher.entered(edge.at, before, done);
            }
            self.place_holder(to);
        }
    }

    fn place_holder(&mut self, holder: u32) {
        if self.activity(holder).uses_its_slots() {
            self.place(holder);
        }
    }

    pub(super) fn enter_slot(&mut self, holder: u32, edge: Instant) {
        if self.begin_slot(holder, edge) {
            self.activity_mut(holder).own.in_slot = true;
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
        let slept = std::mem::take(&mut slots.carried.sleeps);
        let due = slots.carried.due.take();
        if let (true, Some(due)) = (slept, due) {
            slots.dispatcher.woke(due, now);
        }
        if let (Some(due), Some(witness)) = (due, self.parts.witness) {
            self.record_late(thread, due, witness);
        }
        true
    }

    /// Records that a thread of the host's own woke late, if it did: because the machine did not wake it, or because somebody had the processor.
    fn record_late(&mut self, thread: u32, due: Instant, witness: Witness) {
        let here = Witness {
            processor: ProcessorId(self.activity(thread).processor),
            ..witness
        };
        let ready_at = self.activity(thread).own.ready_at;
        let waits = Waits::for_processor(Some(self.now.saturating_since(ready_at)));
        let Some(late) = here.late(due, self.now, waits) else {
            return;
        };
        let args = [late.stretch.from, late.stretch.to].map(Instant::as_nanos);
        self.record(late.why.recorded(), thread, args);
        if late.why == Lateness::Standstill {
            self.disturbances.push(late.stretch);
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
