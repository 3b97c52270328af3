//! The rule of the witness: a thread above all others that wakes at fixed instants, and so sees when the machine itself stands still.
//!
//! Where slots are dispatched, the dispatcher reports its own late wake-ups by the same tolerance: it wakes at other instants than the
//! witness, which takes nothing from short slots so, and would not have seen what kept the dispatcher.

use alloc::vec::Vec;

use super::disturbance::Disturbance;
use super::lateness::{Lateness, Waits};
use super::ranks;
use crate::{
    Activity, ActivityId, Enforcer, Instant, ProcessorId, Program, Reservation, Scheduling, Span,
};

/// The activity number under which disturbances are recorded: no activity of any program.
pub const WITNESS_ACTIVITY: ActivityId = ActivityId(u16::MAX);

/// The one under which a dispatcher's own late wake-ups are recorded, which a witness beside it must bear out.
pub const DISPATCHER_ACTIVITY: ActivityId = ActivityId(u16::MAX - 1);

/// Where and how a witness watches.
///
/// ```
/// use laxity_model::enforce::{Waits, Witness};
/// use laxity_model::{Instant, ProcessorId};
///
/// let untold = Waits::for_processor(None);
/// let witness = Witness::new(ProcessorId(0));
/// let due = Instant::from_millis(10);
/// assert_eq!(witness.late(due, Instant::from_micros(10_090), untold), None);
/// assert!(witness.late(due, Instant::from_micros(10_110), untold).is_some());
/// assert_eq!(witness.next(due, Instant::from_micros(12_300)), Instant::from_millis(13));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Witness {
    /// The processor it watches.
    pub processor: ProcessorId,
    /// It wakes at the run's start and every so much after it: at the instants of what is measured.
    pub period: Span,
    /// It was late when it woke more than this after its instant.
    pub tolerance: Span,
    /// It may have been runnable and waited for so much longer: others outrank it.
    pub outranked: Span,
}

/// A wake-up of a witness that came late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WitnessLate {
    /// Why.
    pub why: Lateness,
    /// When the machine stood still, or the processor was held.
    pub stretch: Disturbance,
}

/// For how long budgets of `SCHED_DEADLINE` may hold a processor, one of each of these: the kernel notices at the next multiple of `grain` only that it is
/// used up.
fn once_each(held: impl Iterator<Item = Reservation>, grain: Span) -> Span {
    let budgets = held.map(|held| held.service().as_dedicated_span() + grain);
    budgets.sum()
}

/// For how long a program with these budgets of others beside it may itself hold a processor: any time ([`Span::MAX`]) where somebody of it is there whom the
/// dispatcher does not outrank; else as long as all budgets, wherever they are: of each the last of one period and the first of the next, where a
/// witness, which wakes in between, [waits](Witness::outranked_by) for one of each.
pub fn longest_own_hold(
    program: &Program,
    processor: ProcessorId,
    beside: impl Iterator<Item = Reservation>,
    grain: Span,
) -> Span {
    let is_above = |activity: &Activity| match ranks::of_placement(activity.placement) {
        Scheduling::Fifo(rank) | Scheduling::RoundRobin(rank) => rank >= ranks::DISPATCHER,
        _ => false,
    };
    let mut here = program.activities.iter();
    if here.any(|activity| activity.processor == processor && is_above(activity)) {
        return Span::MAX;
    }
    let own = program.askers(Enforcer::Deadline);
    once_each(own.map(|(_, _, held)| held).chain(beside), grain) * 2
}

impl Witness {
    /// Every millisecond, 100 µs.
    #[must_use]
    pub const fn new(processor: ProcessorId) -> Self {
        Self {
            processor,
            period: Span::from_millis(1),
            tolerance: Span::from_micros(100),
            outranked: Span::ZERO,
        }
    }

    /// That of an experiment, which wakes between the instants of what is measured too: a virtual machine likes to halt just when a thread goes to
    /// sleep, and a halt of less than a millisecond that begins there is over by the next of those instants, though what is measured has been
    /// waiting for its end.
    #[must_use]
    pub const fn of_experiment(processor: ProcessorId) -> Self {
        Self {
            period: Span::from_micros(500),
            ..Self::new(processor)
        }
    }

    /// Those that a run on so many processors needs, where these were asked for: one on every processor by the rule of the first, where a thread
    /// of `SCHED_DEADLINE` runs, which keeps to no processor. What halts the one that it is on just then keeps it from its work, wherever that is.
    ///
    /// ```
    /// use laxity_model::enforce::Witness;
    /// use laxity_model::ProcessorId;
    ///
    /// let asked = [Witness::of_experiment(ProcessorId(1))];
    /// assert_eq!(Witness::all(&asked, 2, false), asked);
    /// let others = [Witness::of_experiment(ProcessorId(0))];
    /// assert_eq!(Witness::all(&asked, 2, true), [asked, others].concat());
    /// assert!(Witness::all(&[], 2, true).is_empty());
    /// ```
    #[must_use]
    pub fn all(asked: &[Self], processors: u16, wanders: bool) -> Vec<Self> {
        let mut all = asked.to_vec();
        if let Some(rule) = asked.first().filter(|_| wanders) {
            let is_unwatched =
                |processor: &ProcessorId| asked.iter().all(|one| one.processor != *processor);
            let rest = (0..processors).map(ProcessorId).filter(is_unwatched);
            all.extend(rest.map(|processor| Self { processor, ..*rule }));
        }
        all
    }

    /// So short are the halts that it passes over beside `SCHED_DEADLINE`. Where threads have budgets and rest between them, processors idle, and
    /// those of a virtual machine wake late by some 0.3 ms, which keeps nobody from work that it is doing.
    pub const BESIDE_BUDGETS: Span = Span::from_millis(1);

    /// The same beside `SCHED_DEADLINE` threads, if there are any, which outrank it: they may keep it waiting for all their budgets, each of
    /// which the kernel notices as used up at the next multiple of `grain` only; and it passes over what is [short](Self::BESIDE_BUDGETS).
    #[must_use]
    pub fn outranked_by(self, held: impl Iterator<Item = Reservation>, grain: Span) -> Self {
        let budgets = once_each(held, grain);
        let beside = if budgets.is_zero() {
            Span::ZERO
        } else {
            Self::BESIDE_BUDGETS
        };
        Self {
            tolerance: self.tolerance.max(beside),
            outranked: self.outranked + budgets,
            ..self
        }
    }

    /// What a wake-up at `now` that was due at `due` says, before which it waited so; `None` if it was in time. As far as others who outrank it may have
    /// kept it waiting, they did: what it was not even runnable for is the machine's all the same.
    pub fn late(&self, due: Instant, now: Instant, waits: Waits) -> Option<WitnessLate> {
        let late = now.saturating_since(due);
        let possible = waits.runnable.unwrap_or(Span::MAX);
        let theirs = self.outranked.min(possible).min(late);
        if late - theirs <= self.tolerance {
            return None;
        }
        let runnable = waits.runnable.map(|waited| waited - theirs);
        let why = Lateness::of(late - theirs, Waits { runnable, ..waits });
        let until = match why {
            Lateness::Standstill => now - theirs,
            Lateness::Held | Lateness::Untold | Lateness::Stopped => now,
        };
        let stretch = Disturbance {
            processor: self.processor,
            from: due,
            to: until,
        };
        Some(WitnessLate { why, stretch })
    }

    /// Whether a standstill of its processor from then to then cannot have escaped it: at one of its instants at least it would have been late.
    pub fn would_see(&self, from: Instant, to: Instant) -> bool {
        to.saturating_since(from) > self.overlooks()
    }

    /// No longer standstill of its processor escapes it.
    pub fn overlooks(&self) -> Span {
        self.tolerance + self.outranked + self.period * 2
    }

    /// When it wakes next, after a wake-up at `now` that was due at `due`. Instants that passed while the machine stood still are
    /// over: waking for each of them would disturb on.
    pub fn next(&self, due: Instant, now: Instant) -> Instant {
        let missed = now.saturating_since(due) / self.period;
        due + self.period * (missed + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::boxed::Box;

    use crate::{Context, Outside, Placement, Priority, ReservationRequest, Service, Step};

    const WITNESS: Witness = Witness::new(ProcessorId(1));
    const DUE: Instant = Instant::from_millis(5);

    fn late_by(micros: u64, nanos: u64) -> Option<Span> {
        let now = DUE + Span::from_micros(micros) + Span::from_nanos(nanos);
        let late = WITNESS.late(DUE, now, Waits::for_processor(Some(Span::ZERO)))?;
        assert_eq!(
            (late.stretch.processor, late.stretch.from),
            (WITNESS.processor, DUE)
        );
        Some(late.stretch.length())
    }

    /// By the numbers that CAVEATS states, not by the constant: 100 µs of a millisecond.
    #[test]
    fn a_tenth_of_a_millisecond_is_tolerated_and_no_more() {
        assert_eq!(late_by(100, 0), None);
        assert_eq!(late_by(100, 1), Some(Span::from_nanos(100_001)));
        let untold = Waits::for_processor(None);
        assert_eq!(WITNESS.late(DUE, Instant::from_millis(4), untold), None);
    }

    #[test]
    fn a_standstill_of_two_periods_does_not_escape_it() {
        let would_see = |micros| WITNESS.would_see(DUE, DUE + Span::from_micros(micros));
        assert_eq!([2_100, 2_101].map(would_see), [false, true]);
    }

    /// Others have 11 ms there. What they may have kept it waiting for says nothing, what it slept too long does.
    #[test]
    fn who_outranks_it_may_keep_it_waiting_and_hides_no_standstill() {
        let held = |service_ms| {
            let service = Service::from_millis(service_ms);
            Reservation::new(service, Span::from_millis(10)).expect("valid")
        };
        let grain = Span::from_millis(4);
        let below = WITNESS.outranked_by([held(1), held(2)].into_iter(), grain);
        let seen = |late_us, waited_us: Option<u64>| {
            let now = DUE + Span::from_micros(late_us);
            let waits = Waits::for_processor(waited_us.map(Span::from_micros));
            let late = below.late(DUE, now, waits)?;
            Some((late.why, late.stretch.length().as_nanos() / 1_000))
        };
        assert_eq!(seen(12_000, Some(12_000)), None);
        assert_eq!(seen(12_001, Some(12_001)), Some((Lateness::Held, 12_001)));
        assert_eq!(seen(2_000, Some(1_000)), None);
        assert_eq!(seen(2_000, Some(0)), Some((Lateness::Standstill, 2_000)));
        assert_eq!(
            seen(9_000, Some(6_000)),
            Some((Lateness::Standstill, 3_000))
        );
        assert_eq!(
            seen(30_000, Some(12_000)),
            Some((Lateness::Standstill, 19_000))
        );
        assert_eq!(seen(12_000, None), None);
        assert_eq!(seen(12_001, None), Some((Lateness::Untold, 12_001)));
        assert_eq!(WITNESS.outranked_by([].into_iter(), grain), WITNESS);
    }

    #[test]
    fn a_program_holds_a_processor_by_rank_there_or_for_its_budgets_anywhere() {
        let reserved = |service_ms| {
            let (service, period) = (Service::from_millis(service_ms), Span::from_millis(20));
            Reservation::new(service, period).expect("it fits")
        };
        let found = |asked: &[(Enforcer, u64)], above: Option<u16>, beside_ms: &[u64]| {
            let mut program = Program::new(2);
            let body = |_: &mut dyn Context| Step::Finish;
            for (enforcer, service_ms) in asked {
                program.push(Activity {
                    name: "it".into(),
                    processor: ProcessorId(0),
                    placement: Placement::Thread(Priority::NORMAL),
                    reservation: Some(ReservationRequest {
                        reservation: reserved(*service_ms),
                        enforcer: *enforcer,
                        outside: Outside::AsPlaced,
                        begins_at_start: true,
                    }),
                    body: Box::new(body),
                });
            }
            if let Some(processor) = above {
                let rank = Placement::Linux(Scheduling::Fifo(ranks::DISPATCHER));
                program.add("above", ProcessorId(processor), rank, body);
            }
            [0, 1].map(|processor| {
                let beside = beside_ms.iter().map(|ms| reserved(*ms));
                longest_own_hold(
                    &program,
                    ProcessorId(processor),
                    beside,
                    Span::from_millis(4),
                )
            })
        };
        let (slots, deadline) = (Enforcer::Slots, Enforcer::Deadline);
        let ms = Span::from_millis;
        assert_eq!(found(&[(slots, 2)], None, &[]), [Span::ZERO; 2]);
        let both = [(deadline, 2), (slots, 1), (deadline, 1)];
        assert_eq!(found(&both, None, &[]), [ms(2 * (2 + 4 + 1 + 4)); 2]);
        assert_eq!(found(&both, Some(1), &[]), [ms(22), Span::MAX]);
        assert_eq!(found(&[], Some(0), &[3]), [Span::MAX, ms(2 * (3 + 4))]);
    }

    #[test]
    fn instants_that_have_passed_are_over() {
        let next = |now_us| WITNESS.next(DUE, Instant::from_micros(now_us)).as_nanos() / 1_000;
        assert_eq!(
            [4_900, 5_000, 5_999, 6_000, 25_400].map(next),
            [6_000, 6_000, 6_000, 7_000, 26_000]
        );
    }
}
