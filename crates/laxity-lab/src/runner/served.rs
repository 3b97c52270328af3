//! Whether a reservation serves a device where it runs, exactly: by what the machine and those above the slots leave of it, and in every phase of
//! a call. A plan's answer, what it proposes, and what a run says would have served all come from here.
//!
//! A modem that is connected is the one of [`analysis::devices`](laxity_model::analysis::devices). Before that it once recognises the answer, in a call that
//! takes longer than those before it, whose output is due like theirs. On Linux that stands for the longest call before it is connected, whichever it was.

use laxity_devices::card::Overheads;
use laxity_model::analysis::devices::{Answer, Device, Open, options, serves};
use laxity_model::analysis::supply::{
    Delayed, ExplicitDeadline, KernelDeadline, Residual, SupplyBound, SupplyError, TableSupply,
};
use laxity_model::analysis::{Overflow, Task};
use laxity_model::enforce::slots::SUPPLY;
use laxity_model::policy::slots::SlotTable;
use laxity_model::request::{ONCE, Work};
use laxity_model::{
    Enforcer, Outside, Priority, ProcessorId, Reservation, ReservationRequest, Service, Span,
};

use super::left::Granted;
use super::machine::{Charged, Machine};
use super::modes::{ANSWER, Demand, Mode, Modem, modes, modes_of, paced};
use super::proposal::{GRAIN, periods};
use super::together::{Choice, Outcome, find};
use super::work::HANDLER;
use crate::scenario::network;
use crate::scenario::{
    PeriodicRank, Placing, Rank, ResolvedDevice, ResolvedTask, ResolvedVariant, Start, TaskKind,
    TwinProfile, devices,
};

/// So many calls before the one that recognises the answer may wait when it comes; if more can, the modem is not served.
const MOST_BEFORE: u64 = 1_000;

/// What a processor takes from the slots of one on it. On Linux the dispatcher makes up for switches and ticks, and edges may be late.
#[derive(Clone, Debug, Default)]
struct Taken {
    /// To give the processor to a slot's holder.
    edge: Span,
    /// The machine's clock.
    clock: Option<Work>,
    /// Whatever preempts a slot's holder.
    above: Vec<Task>,
    /// So late an edge may be.
    late: Span,
}

impl Taken {
    fn of(
        variant: &ResolvedVariant,
        holder: &ResolvedDevice,
        (twin, tick): (Option<TwinProfile>, Span),
    ) -> Self {
        let processor = holder.processor;
        let slots = twin.map_or(SUPPLY, |twin| twin.machine.slot_supply());
        let machine = twin.map_or_else(
            || Machine::live((None, Charged::Largest), None, None),
            |twin| Machine::of(twin.machine),
        );
        let devices = variant.devices.iter();
        let devices = devices.filter(|device| device.processor == processor);
        // What the holder computes outside its slots it has not to compute in them.
        let is_other = |device: &ResolvedDevice| device.name != holder.name;
        let mut above: Vec<Task> = devices
            .flat_map(|device| of_device(device, is_other(device), (twin, variant.start), &machine))
            .collect();
        let tasks = variant.tasks.iter();
        let tasks = tasks.filter(|task| task.processor == processor);
        above.extend(tasks.filter_map(|task| of_task(task, &machine)));
        above.extend(interrupts(variant, processor, &machine));
        above.extend(budgets(variant, tick));
        Self {
            edge: slots.switch.as_dedicated_span(),
            clock: slots.clock,
            above,
            late: slots.jitter,
        }
    }

    /// What is left of slots under all that preempts their holder, late.
    fn leave<S: SupplyBound>(&self, slots: S) -> Result<Delayed<Residual<S>>, SupplyError> {
        let left = Residual::new(slots, self.above.clone())?;
        Ok(Delayed::new(left, self.late))
    }

    /// What a slot of this length loses besides to what preempts it: a switch, and the clock's ticks, of which one may have begun before. They
    /// may come anywhere in it, so a window that begins in the slot may meet them behind the others.
    fn lost(&self, slot: Span) -> Span {
        let ticks = self.clock.map_or(Span::ZERO, |clock| {
            let tick = clock.service.as_dedicated_span();
            tick * ((slot + tick).as_nanos() / clock.period.as_nanos().max(1) + 1)
        });
        self.edge + ticks * 2
    }
}

/// What a device takes from slots each time that its card interrupts, and what comes once: its handlers, the switches to its driver, and the calls of
/// another one that runs above slots, be it beside its own.
fn of_device(
    device: &ResolvedDevice,
    is_other: bool,
    (twin, start): (Option<TwinProfile>, Start),
    machine: &Machine,
) -> impl Iterator<Item = Task> {
    let costs = Overheads::STUDY;
    // What a machine of Linux adds to a handler is within what the handler is taken to take.
    let or_most = |cost: Service| twin.map_or(HANDLER, |_| cost);
    let handler = machine.handler(or_most(costs.interrupt));
    let handlers = handler + machine.deferred(or_most(costs.deferred));
    let takes = |call: Service| match device.placing {
        Placing::Interrupt => machine.handler(call),
        Placing::Deferred => handler + machine.deferred(call),
        Placing::Thread(priority) if is_above(machine, priority) => handlers + machine.thread(call),
        Placing::Thread(_) => handlers,
        Placing::Reserved(request, placed)
            if is_other && highest(request, placed).is_some_and(|most| is_above(machine, most)) =>
        {
            handlers + machine.thread(call)
        }
        Placing::Reserved(..) => handlers + machine.thread(Service::ZERO),
    };
    // Of its own calls it is known which is at work.
    let modes = match is_other {
        true => modes_of(device, (twin, start)),
        false => Vec::new(),
    };
    let demand = Demand::of(device, &modes, device.work(twin), takes);
    // And the interrupt behind it that finds nothing to do.
    let empty = machine.handler(Service::ZERO);
    let once = demand.more.map(|more| Task::new(more + empty, ONCE));
    let tasks = [Task::new(demand.usual, demand.every)]
        .into_iter()
        .chain(once);
    tasks.filter_map(Result::ok)
}

/// Everybody's reservations by the kernel, which go before slots on every processor: of two budgets one may come at the end of its period, and the
/// next at the beginning of the one after it. The kernel sees that one is used up at its next tick only; what it gave too much by then it takes back, so
/// that there is no more than one tick too much in any window.
fn budgets(variant: &ResolvedVariant, tick: Span) -> impl Iterator<Item = Task> {
    variant.budgets().flat_map(move |asked| {
        let task = Task::new(asked.service(), asked.period());
        let budget = task.map(|task| task.with_jitter(asked.longest_gap()));
        let excess = budget.and(Task::new(tick.as_full_service(), ONCE));
        budget.into_iter().chain(excess)
    })
}

fn is_above(machine: &Machine, priority: Priority) -> bool {
    machine.threads_above.is_some_and(|from| priority >= from)
}

/// With what priority a holder that is placed so competes outside its reservation, if it does.
pub(crate) const fn beside(request: ReservationRequest, placed: Priority) -> Option<Priority> {
    match request.outside {
        Outside::AsPlaced => Some(placed),
        Outside::Timesharing(priority) => Some(priority),
        Outside::Confined => None,
    }
}

/// The highest with which a holder runs beside its reservation, or until it has it.
fn highest(request: ReservationRequest, placed: Priority) -> Option<Priority> {
    let before = (!request.begins_at_start).then_some(placed);
    beside(request, placed).max(before)
}

/// The interrupts of a network: all that there is, where nobody says how many packets come.
fn interrupts(variant: &ResolvedVariant, on: ProcessorId, machine: &Machine) -> Option<Task> {
    let interface = variant.interface().filter(|one| one.processor == on)?;
    match interface.most {
        Some(most) => most.task(machine.handler(interface.each())),
        None => Task::new(Service::from_secs(1), Span::from_secs(1)).ok(),
    }
}

/// A task that runs above slots, be it beside those of its executor.
fn of_task(task: &ResolvedTask, machine: &Machine) -> Option<Task> {
    let (priority, service, period) = match &task.kind {
        // All that there is.
        TaskKind::Spinner { priority, .. } => {
            (*priority, Service::from_secs(1), Span::from_secs(1))
        }
        TaskKind::Periodic {
            timing,
            service,
            rank,
            ..
        } => {
            let priority = match rank {
                PeriodicRank::Priority(priority) => *priority,
                PeriodicRank::On(executor) => match executor.request {
                    Some(request) => highest(request, executor.priority)?,
                    None => executor.priority,
                },
                PeriodicRank::Reserved(_) => return None,
            };
            (priority, machine.thread(*service), timing.period)
        }
        TaskKind::Rogue {
            burst,
            every,
            rank: Rank::Priority(priority),
            ..
        } => (*priority, machine.thread(*burst), *every),
        TaskKind::Client(client) => {
            let packets = client.interface.most;
            let packets = packets.and_then(|most| most.task(machine.thread(client.packet)));
            // Nobody says how many packets come.
            let all = (Service::from_secs(1), Span::from_secs(1));
            let (service, period) = packets.map_or(all, |task| (task.cost(), task.period()));
            (network::priority(task), service, period)
        }
        // Its packets are its interface's, and nobody declares what a stranger takes: where there is one, a grant is unenforced, and no reservation has room for it.
        TaskKind::Flow(_) | TaskKind::Rogue { .. } | TaskKind::Command { .. } => return None,
    };
    let found = Task::new(service, period).ok()?.with_jitter(machine.late);
    is_above(machine, priority).then_some(found)
}

/// Where a device runs.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The twin, whose host may count reservations in its ticks.
    twin: Option<TwinProfile>,
    /// The grain at which a kernel notices that a budget is used up.
    tick: Span,
    start: Start,
    taken: Taken,
}

impl Place {
    /// Of a device in a variant.
    pub(crate) fn of(
        variant: &ResolvedVariant,
        device: &ResolvedDevice,
        (twin, tick): (Option<TwinProfile>, Span),
    ) -> Self {
        Self {
            twin,
            tick,
            start: variant.start,
            taken: Taken::of(variant, device, (twin, tick)),
        }
    }

    /// The same under these too.
    pub(crate) fn beneath(mut self, others: impl Iterator<Item = Task>) -> Self {
        self.taken.above.extend(others);
        self
    }

    /// Where nothing is taken from a reservation.
    #[cfg(test)]
    pub(crate) fn undisturbed(tick: Span) -> Self {
        Self {
            twin: None,
            tick,
            start: Start::OnHook,
            taken: Taken::default(),
        }
    }

    /// What a table keeps of a reservation for one of its owners.
    pub(crate) fn by_table(
        &self,
        table: &SlotTable,
        owner: usize,
    ) -> Result<Box<dyn SupplyBound>, SupplyError> {
        let slots = TableSupply::less(table, owner, |slot| self.taken.lost(slot))?;
        Ok(Box::new(self.taken.leave(slots)?))
    }

    /// So late an edge of a slot may be.
    pub(crate) const fn late(&self) -> Span {
        self.taken.late
    }

    /// What an enforcer would keep of a reservation as it is asked for: slots as [`Self::by_table`] of a table that is its own.
    pub(crate) fn kept(
        &self,
        enforcer: Enforcer,
        asked: Reservation,
    ) -> Option<Box<dyn SupplyBound>> {
        let asked = self.twin.map_or(asked, |twin| twin.reserved(asked));
        match enforcer {
            Enforcer::Slots => {
                let lost = self.taken.lost(asked.service().as_dedicated_span());
                let service = asked.service().saturating_sub(lost.as_full_service());
                let slots = Reservation::new(service, asked.period()).ok()?;
                let left = self.taken.leave(ExplicitDeadline::continuous(slots));
                Some(Box::new(left.ok()?))
            }
            Enforcer::Deadline => Some(Box::new(
                KernelDeadline::among_others(asked, self.tick).ok()?,
            )),
        }
    }
}

/// What a device cannot do without.
#[derive(Clone, Debug)]
pub(crate) struct Needs {
    /// With its blocks as they are; a modem while it is connected.
    pub(crate) whole: Device,
    /// In a twin perhaps in pieces, and by its card's clock.
    served: Device,
    /// What a modem does before, where that is known: in a twin, and where it was measured.
    answering: Option<Answering>,
}

impl Needs {
    /// Of a device whose calls take so much; `None` if that is nothing.
    pub(crate) fn new(device: &ResolvedDevice, work: Service, place: &Place) -> Option<Self> {
        let own = &device.device;
        let whole = own.analysed(work).ok()?;
        let served = match place.twin {
            Some(twin) => own.in_twin(paced(whole, twin.card_clock(0)).ok()?).ok()?,
            None => whole,
        };
        let is_modem = own.kind() == devices::KINDS[0];
        let twin = place.twin.filter(|_| is_modem);
        let answering = twin.and_then(|twin| Answering::of(device, Some(twin), place.start));
        Some(Self {
            whole,
            served,
            answering,
        })
    }

    /// The same on Linux, of a modem whose longest call before it is connected takes so much; the others there take no more than those after it.
    pub(crate) fn connecting(
        self,
        device: &ResolvedDevice,
        place: &Place,
        longest: Service,
    ) -> Self {
        let usual = longest.min(self.whole.work());
        let answering = Answering::of(device, None, place.start);
        Self {
            answering: answering.map(|answering| answering.taking(usual, longest)),
            ..self
        }
    }

    /// Of one that is the same all the time, delivering at the end of a call.
    #[cfg(test)]
    pub(crate) const fn whole(device: Device) -> Self {
        Self {
            whole: device,
            served: device,
            answering: None,
        }
    }

    /// In how many pieces a call delivers its output.
    pub(crate) const fn pieces(&self) -> u64 {
        self.served.pieces()
    }

    /// Whether this serves it; a modem once it is connected.
    pub(crate) fn answer(&self, supply: &dyn SupplyBound) -> Result<Answer, Overflow> {
        serves(&self.served, supply)
    }

    /// What may be late before that, in words.
    pub(crate) fn late_before(&self, supply: &dyn SupplyBound) -> Result<Option<String>, Overflow> {
        let answering = self.answering.as_ref();
        answering.map_or(Ok(None), |answering| answering.late(supply))
    }

    /// Whether this serves it all the time.
    fn is_served_by(&self, supply: &dyn SupplyBound) -> bool {
        let late = self.late_before(supply);
        let answer = self.answer(supply);
        matches!(late, Ok(None)) && answer.is_ok_and(|answer| answer.is_served())
    }

    /// Whether it is served all the time by what is granted of a reservation; `None` where nothing is.
    pub(crate) fn is_served_as(
        &self,
        granted: &Granted,
        (enforcer, asked): (Enforcer, Reservation),
        place: &Place,
    ) -> Option<bool> {
        Some(match granted {
            Granted::Not => return None,
            Granted::NoMore => false,
            Granted::Whole => {
                let kept = place.kept(enforcer, asked);
                kept.is_some_and(|kept| self.is_served_by(&*kept))
            }
            // Between those of others.
            Granted::Slots(table, owners) => owners.iter().all(|owner| {
                let kept = place.by_table(table, *owner);
                kept.is_ok_and(|kept| self.is_served_by(&*kept))
            }),
        })
    }

    /// What of a reservation that is open in part would serve it all the time if nobody else had one, the least first.
    pub(crate) fn alone(
        &self,
        open: Open,
        enforcer: Enforcer,
        place: &Place,
    ) -> Result<Choice, Overflow> {
        let supply = |asked| {
            let kept = place.kept(enforcer, asked)?;
            // What is too large to be reckoned with is not proposed.
            let late = self.late_before(&*kept).ok()?;
            late.is_none().then_some(kept)
        };
        let alone = options(&self.served, open, (&periods(), GRAIN), supply)?;
        Ok(Choice::new(open, alone))
    }

    /// The least reservation, of what is left open, that serves it all the time as it would be granted; `None` if none was found that makes sense.
    pub(crate) fn propose(
        &self,
        open: Open,
        enforcer: Enforcer,
        place: &Place,
        granted: impl Fn(Reservation) -> Granted,
    ) -> Result<Option<Reservation>, Overflow> {
        let judge = |asked: &[Reservation]| {
            let asked = asked[0];
            match self.is_served_as(&granted(asked), (enforcer, asked), place) {
                None => Outcome::Refused,
                Some(false) => Outcome::Unserved(vec![0]),
                Some(true) => Outcome::Served,
            }
        };
        let found = find(&[&self.alone(open, enforcer, place)?], judge);
        Ok(found.ok().map(|found| found[0]))
    }
}

/// The call that recognises the answer, behind the usual ones of its phase.
#[derive(Clone, Copy, Debug)]
struct Answering {
    usual: Mode,
    answer: Mode,
    pieces: u64,
}

impl Answering {
    /// `None` of a call that begins later.
    fn of(device: &ResolvedDevice, twin: Option<TwinProfile>, start: Start) -> Option<Self> {
        let modem = Modem::of(device, twin);
        let modes = modes(start, modem);
        let answer = *modes.iter().find(|mode| mode.name == ANSWER)?;
        let mut usual = modes.iter().filter(|mode| mode.phase == answer.phase);
        Some(Self {
            usual: *usual.find(|mode| !mode.once)?,
            answer,
            pieces: modem.pieces,
        })
    }

    /// The same, where calls take so much.
    const fn taking(mut self, usual: Service, answer: Service) -> Self {
        (self.usual.cost, self.answer.cost) = (usual, answer);
        self
    }

    /// The first piece of its output that may be late, however many of the calls before it still wait.
    fn late(&self, supply: &dyn SupplyBound) -> Result<Option<String>, Overflow> {
        for earlier in 0..MOST_BEFORE {
            let before = self.usual.period.checked_mul(earlier);
            let waiting = self.usual.cost.checked_mul(earlier);
            let (Some(before), Some(waiting)) = (before, waiting) else {
                return Err(Overflow("the calls before a modem's answer"));
            };
            if earlier > 0 && supply.window_for(waiting)? <= before {
                return Ok(None);
            }
            for piece in 1..=self.pieces {
                let own = (self.answer.cost * piece).as_nanos().div_ceil(self.pieces);
                let done = supply.window_for(waiting + Service::from_nanos(own))?;
                let done = done.saturating_sub(before);
                let due = self.due(piece);
                if done > due {
                    return Ok(Some(format!(
                        "piece {piece} of {} of the call that recognises the answer is complete up to {done} after the interrupt instead of {due}",
                        self.pieces
                    )));
                }
            }
        }
        Ok(Some("calls while it dials fall behind".into()))
    }

    /// When a piece of it is due, after its interrupt: of the last one the mode says that.
    fn due(&self, piece: u64) -> Span {
        let behind = self.answer.period * (self.pieces - piece);
        let behind = Span::from_nanos(behind.as_nanos().div_ceil(self.pieces));
        self.answer.due.saturating_sub(behind)
    }
}
