//! Response times on Linux: of whoever says all of itself, how much it does how often.
//!
//! * In a reservation by the kernel: the supply is what the kernel keeps of it, whoever else is there.
//! * In slots, or by a real-time rank alone: as in the twin ([`bounds`](super::bounds)), above it all that the scenario has there, and laxity's own
//!   threads. It holds if nobody else is above; where somebody is seen, there is no bound.
//!
//! Besides, jobs pay what the machine takes, at most what `laxity calibrate` measured here: waking and going to sleep, and the kernel's ticks.

use laxity_model::admission::Supply;
use laxity_model::analysis::supply::KernelDeadline;
use laxity_model::analysis::{Task, fixed_priority};
use laxity_model::enforce::machine::{Figure, Machine};
use laxity_model::request::Outranked;
use laxity_model::{Enforcer, Reservation, ReservationRequest, Service, Span};

use super::bounds::Analyst;
use super::sources::{Source, Work};
use super::{MachinePlan, Ready, VariantPlan};
use crate::machine_file::{Elsewhere, Known};
use crate::plan::{NoBound, bound};
use crate::runner::machine::Charged;
use crate::scenario::TaskKind;

/// A machine on which a scenario would run.
pub(super) struct Live<'a> {
    pub(super) supply: &'a Supply,
    /// What it was measured to cost, if it was; or why that cannot be read.
    known: &'a Known,
}

impl<'a> Live<'a> {
    /// With what is known of it.
    pub(super) const fn of(supply: &'a Supply, known: &'a Known) -> Self {
        Self { supply, known }
    }

    /// What this machine takes on one of the program's processors, if every event is charged so much.
    pub(super) fn machine(
        &self,
        ready: &Ready,
        processor: u16,
        charged: Charged,
    ) -> crate::runner::machine::Machine {
        let here = self.supply.processors.get(usize::from(processor));
        let slots = here.and_then(|here| here.slots.as_ref().ok());
        let mut plans = ready.admission().slots.iter();
        let table = plans.find(|plan| plan.processor.0 == processor);
        crate::runner::machine::Machine::live(
            (self.measured(), charged),
            slots,
            table.map(|plan| &plan.table),
        )
    }

    /// Whether its thread has a reservation by the kernel.
    pub(super) fn is_by_deadline(&self, ready: &Ready, subject: &Source) -> bool {
        let request = subject.activity.and_then(|id| {
            let probe = ready.probes.periodic().find(|task| task.activity == id);
            let thread = probe.map_or(id, |probe| probe.thread);
            ready.admission().program.activities[thread.index()].reservation
        });
        request.is_some_and(|request| request.enforcer == Enforcer::Deadline)
    }

    /// The longest response of a subject, if every event is charged so much, as the analyst has it too.
    pub(super) fn bound(
        &self,
        (analyst, charged): (&Analyst<'_>, Charged),
        subject: &Source,
    ) -> Result<Span, NoBound> {
        let ready = analyst.stage.ready;
        let Work::Jobs { net, .. } = subject.work else {
            return Err(never_done(analyst, subject).into());
        };
        let admission = ready.admission();
        let holder = subject.activity.ok_or("it is the machine itself")?;
        let request = admission.program.activities[holder.index()].reservation;
        let mut refusals = admission.refusals();
        if refusals.any(|(refused, _)| refused.activity == holder) {
            return Err("its reservation is refused".into());
        }
        let own = ready.probes.periodic().find(|task| task.activity == holder);
        match (request, own) {
            (Some(request), Some(task)) if request.enforcer == Enforcer::Deadline => {
                self.reserved((net, task.period), request, charged)
            }
            (_, None) if self.is_by_deadline(ready, subject) => {
                Err("its calls share the kernel's budget; what they get is said above".into())
            }
            _ => self.by_rank((analyst, charged), subject),
        }
    }

    /// The longest response of whoever runs by its rank or in slots, if nobody outranks it but those who are known. At the least costs nobody else does.
    fn by_rank(
        &self,
        (analyst, charged): (&Analyst<'_>, Charged),
        subject: &Source,
    ) -> Result<Span, NoBound> {
        let admission = analyst.stage.ready.admission();
        let is_one = self.is_by_deadline(analyst.stage.ready, subject);
        let mut by_kernel = admission.program.askers(Enforcer::Deadline);
        if let Some((_, other, _)) = by_kernel.next().filter(|_| !is_one) {
            let why = format!(
                "`{}` has a reservation by the kernel, which goes first on every processor",
                other.name
            );
            return Err(why.into());
        }
        let processors = &admission.supply().processors;
        let here = processors.get(usize::from(analyst.stage.processor));
        let outranked = match subject.slots {
            None => Outranked::Rank,
            Some(_) => Outranked::Slot,
        };
        let others = here.and_then(|here| here.outranking.reason([].into_iter(), outranked));
        let found = NoBound::settle(analyst.bound(subject))?;
        match others {
            // What is too much without strangers is so with them.
            Some(reason)
                if charged != Charged::Least && !matches!(&found, Err(why) if why.is_too_much) =>
            {
                Err(reason.into())
            }
            _ => Ok(found?),
        }
    }

    /// The machine as it was measured, if it was.
    pub(super) fn measured(&self) -> Option<&Machine> {
        self.known.machine()
    }

    /// The longest response of a thread with so much work every so often.
    fn reserved(
        &self,
        (service, period): (Service, Span),
        request: ReservationRequest,
        charged: Charged,
    ) -> Result<Span, NoBound> {
        let deadline = self.supply.deadline.as_ref().map_err(String::clone)?;
        let found = response(
            (service, period),
            (request.reservation, deadline.tick),
            (self.measured(), charged),
        )?;
        let found = found.checked_add(self.supply.timer_grain);
        Ok(found.ok_or("it takes longer than can be counted")?)
    }

    /// What the bounds of a plan rest on, where it has any.
    pub(super) fn note(&self, plan: &VariantPlan) -> Option<String> {
        plan.lines.iter().find(|line| line.bound_ns.is_some())?;
        let rest = self.rests_on();
        let mut modems = plan.lines.iter();
        let while_connected = match modems.any(|line| line.phase.is_some()) {
            true => "calls of the declared load, while modems are connected, ",
            false => "",
        };
        Some(format!(
            "bounds hold for {while_connected}the service that is declared, nobody else at real-time ranks, no slot's edge late by more than its jitter, {rest}"
        ))
    }

    /// The machine whose costs the bounds count, if there is one.
    pub(super) fn machine_plan(&self) -> Option<MachinePlan> {
        let Known::Measured(known) = self.known else {
            return None;
        };
        Some(MachinePlan {
            provenance: known.machine.provenance.clone(),
            elsewhere: known.elsewhere.as_ref().map(Elsewhere::sentence),
        })
    }

    /// Whose costs the bounds count.
    fn rests_on(&self) -> String {
        let without = "without what this machine takes for itself";
        match self.known {
            Known::Measured(known) => {
                let from = &known.machine.provenance;
                match &known.elsewhere {
                    None => format!("and for what was measured of this machine ({from})"),
                    Some(elsewhere) => {
                        format!("and for what was {} ({from})", elsewhere.sentence())
                    }
                }
            }
            Known::Nothing => format!("{without}, which `laxity calibrate` measures"),
            Known::LeftOut => format!("{without}, as `--machine none` asks"),
            Known::Unreadable(why) => format!("{without}: {why}"),
        }
    }

    /// The cost whose largest is furthest above what 99.9 % of it do not exceed, as often as a thread pays it when it wakes; none where no cost is.
    pub(super) fn dearest(&self) -> Option<String> {
        let paid = [
            (Figure::ContextSwitch, 2),
            (Figure::Timer, 1),
            (Figure::Tick, 1),
            (Figure::Wakeup, 1),
        ];
        let of = |charged: Charged, figure| charged.of(self.measured(), figure);
        let costs = paid.map(|(figure, times)| {
            let [largest, usual] =
                [Charged::Largest, Charged::Usual].map(|charged| of(charged, figure));
            (
                largest.saturating_sub(usual) * times,
                figure,
                largest,
                usual,
            )
        });
        let (above, figure, largest, usual) = costs.into_iter().max_by_key(|(above, ..)| *above)?;
        (!above.is_zero()).then(|| {
            let (name, usual) = (figure.name(), usual.beside(largest));
            format!("`{name}` took up to {largest}, and 999 times of 1,000 no more than {usual}")
        })
    }
}

/// Of one that asks for the processor without an end. Of a command, and of packets, that is an assumption.
pub(super) fn never_done(analyst: &Analyst<'_>, subject: &Source) -> &'static str {
    let mut tasks = analyst.stage.variant.tasks.iter();
    let task = tasks.find(|task| task.name == subject.name && subject.activity.is_none());
    match task.map(|task| &task.kind) {
        Some(TaskKind::Command { .. }) => {
            "nothing says how much a command works how often, so it is taken to work all the time; what is a `periodic` task has a bound"
        }
        Some(TaskKind::Client(client)) if client.interface.most.is_some() => {
            "nothing says what its TCP takes, behind one lock for all threads"
        }
        Some(TaskKind::Client(_) | TaskKind::Flow(_)) => "nothing says how many packets come",
        _ => "it never stops, so it is never done",
    }
}

/// The longest response of a job in a reservation that the kernel looks at every `tick`, on a machine that was measured, if it was, and every event charged so much.
///
/// Whose jobs fit a budget each and come no closer together than budgets has one in every period of its own: it gets a full budget, due in Y, when
/// it wakes; or, woken a little early after a late one, what is left of that one's, and the next in time all the same. Of all others only what the
/// kernel keeps in any window is sure.
fn response(
    (service, period): (Service, Span),
    (reservation, tick): (Reservation, Span),
    (machine, charged): (Option<&Machine>, Charged),
) -> Result<Span, NoBound> {
    // Who has no work is switched to all the same.
    let cost = service + charged.switches(machine).as_full_service();
    let task = Task::new(cost.max(Service::from_nanos(1)), period);
    let task = task.map_err(|error| error.to_string())?;
    let ticks = charged.tick(machine);
    let within = |ticks: &Task| ticks.cost() * (1 + reservation.period() / ticks.period() + 1);
    let whole = task.cost() + ticks.as_ref().map_or(Service::ZERO, within);
    if machine.is_none() && whole == reservation.service() {
        return Err("its work is all of a budget, and what this machine takes comes on top of it; `laxity calibrate` measures that".into());
    }
    let found = if whole <= reservation.service() && period >= reservation.period() {
        reservation.period()
    } else {
        let supply = KernelDeadline::among_others(reservation, tick)?;
        let ticks = Vec::from_iter(ticks);
        let found = fixed_priority::response_time_among(&task, &ticks, Service::ZERO, &supply)?;
        bound(found)?
    };
    let most = |figure| charged.of(machine, figure);
    let wakes = most(Figure::Wakeup).max(most(Figure::DeadlineReplenish));
    let found = found.checked_add(wakes);
    Ok(found.ok_or("it takes longer than can be counted")?)
}

#[cfg(test)]
mod tests {
    use laxity_model::enforce::machine::Quantiles;

    use super::*;

    /// Work every 10 ms, in a reservation.
    fn of(
        service_us: u64,
        (x_us, y_ms): (u64, u64),
        machine: Option<&Machine>,
    ) -> Result<Span, String> {
        let reservation = Reservation::new(Service::from_micros(x_us), Span::from_millis(y_ms));
        let reserved = (reservation.expect("it fits"), Span::ZERO);
        let work = (Service::from_micros(service_us), Span::from_millis(10));
        let found = NoBound::settle(response(work, reserved, (machine, Charged::Largest)))
            .expect("small numbers");
        found.map_err(|why| why.words)
    }

    #[test]
    fn a_reserved_thread_is_done_when_the_kernel_has_given_it_its_budget() {
        for service_us in [1_000, 1_999] {
            assert_eq!(of(service_us, (2_000, 10), None), Ok(Span::from_millis(10)));
        }
        // A job of a whole budget was seen to end behind the next one's beginning: it is switched to, and that is charged.
        let free = Machine::without_costs(250);
        let whole = of(2_000, (2_000, 10), Some(&free));
        assert_eq!(whole, Ok(Span::from_millis(10)));
        let why = of(2_000, (2_000, 10), None).expect_err("all of a budget");
        assert!(why.contains("`laxity calibrate` measures that"), "{why}");
        // Two budgets, the first of which may begin 4 ms after the job.
        assert_eq!(of(3_000, (2_000, 4), None), Ok(Span::from_millis(9)));
        let why = of(3_000, (2_000, 10), None).expect_err("more than it reserves");
        assert!(why.contains("more than there is"), "{why}");
    }

    #[test]
    fn what_a_measured_machine_takes_comes_on_top() {
        let us = |us| Quantiles::constant(Span::from_micros(us));
        let free = Machine::without_costs(250);
        let costly = free.clone().with([
            (Figure::Tick, us(20)),
            (Figure::ContextSwitch, us(1)),
            (Figure::Timer, us(3)),
            (Figure::Wakeup, us(40)),
        ]);
        for reserved in [(2_000, 10), (2_000, 4)] {
            let none = of(1_000, reserved, None);
            assert_eq!(of(1_000, reserved, Some(&free)), none);
            let later = none.map(|none| none + Span::from_micros(40));
            assert_eq!(of(1_000, reserved, Some(&costly)), later);
        }
        // Work and switches, three ticks in 9 ms, and the wake-up.
        let expected = Span::from_micros(9_000 + 2 + 3 + 3 * 20 + 40);
        assert_eq!(of(3_000, (2_000, 4), Some(&costly)), Ok(expected));
        assert!(of(1_990, (2_000, 10), Some(&costly)).is_err());
    }
}
