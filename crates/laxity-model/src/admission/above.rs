//! What ranks above the slots of a processor: what it takes from them if it is known, and whom to name if nothing bounds it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::{Keeps, ProcessorSupply, SlotSupply};
use crate::analysis::Task;
use crate::request::{ONCE, Strangers, Work};
use crate::{
    Activity, ActivityId, Enforcer, Grade, Outside, Placement, Program, Reservation,
    ReservationRequest, Service, Span,
};

/// Gaps are looked for up to this many periods.
const PERIODS: u64 = 1_000;

/// Whether an activity of this placement is not preempted by a slot's occupant.
fn outranks(placement: Placement, slots: &SlotSupply) -> bool {
    match placement {
        Placement::Interrupt(_) | Placement::Deferred => true,
        Placement::Thread(priority) => slots.threads_above.is_some_and(|p| priority >= p),
        Placement::Linux(scheduling) => scheduling.outranks_slots(),
        // What is on an executor is the executor's work.
        Placement::External | Placement::On { .. } => false,
    }
}

/// Whether a holder runs above the slots of others with more than its own: beside its reservation, or until it has it.
fn exceeds(activity: &Activity, request: ReservationRequest, slots: &SlotSupply) -> bool {
    let is_above = outranks(activity.placement, slots);
    let beside = match request.outside {
        Outside::AsPlaced => is_above,
        Outside::Timesharing(priority) => outranks(Placement::Thread(priority), slots),
        Outside::Confined => false,
    };
    beside || is_above && !request.begins_at_start
}

/// An activity that interferes, with what it outranks by where that is known.
fn named(activity: &Activity) -> String {
    match activity.placement {
        Placement::Linux(scheduling) => format!("{} ({scheduling})", activity.name),
        _ => activity.name.clone(),
    }
}

/// One that may take anything.
fn unbounded(name: &str) -> String {
    format!("{name}, of which nobody bounds what it takes")
}

/// How much it is, and how often.
fn told(work: Work) -> String {
    let Work { service, period } = work;
    match period {
        ONCE => format!("{service} once more"),
        period => format!("{service} every {period}"),
    }
}

/// Everything on a processor that a slot's occupant does not preempt.
pub(super) struct Above {
    /// Those of the program who interfere, for which a slot's grant is `unenforced`, by name.
    interfering: Vec<(ActivityId, String)>,
    /// The same of drivers of the process, which are no program's.
    unbounded: Vec<String>,
    /// The same of those who are not of the process.
    strangers: Strangers,
    /// Shares of the program's reservations by deadline: they keep to no processor, so each must have room for all of them.
    deadline_ppm: Vec<(ActivityId, u64)>,
    /// Work of the program whose amount is known.
    known: Vec<(String, Work)>,
    /// Work of the program whose amount is not.
    uncharged: Vec<String>,
}

impl Above {
    /// Nobody outranks anybody where there are no slots.
    pub(super) fn nobody() -> Self {
        Self {
            interfering: Vec::new(),
            unbounded: Vec::new(),
            strangers: Strangers::default(),
            deadline_ppm: Vec::new(),
            known: Vec::new(),
            uncharged: Vec::new(),
        }
    }

    pub(super) fn of(program: &Program, processor: &ProcessorSupply, slots: &SlotSupply) -> Self {
        let mut this = Self {
            strangers: processor.outranking.clone(),
            ..Self::nobody()
        };
        for (id, activity) in program.numbered() {
            let name = &activity.name;
            let is_here = activity.processor == processor.processor;
            let highest = program.at_highest(id).unwrap_or(activity.placement);
            let is_above = is_here && outranks(highest, slots);
            if let Some(request) = activity.reservation {
                if is_here && exceeds(activity, request, slots) {
                    this.interfering.push((id, named(activity)));
                }
                if request.enforcer == Enforcer::Deadline {
                    // What it holds may change while it runs; that it ranks above does not.
                    let named = format!("{name} (SCHED_DEADLINE)");
                    this.interfering.push((id, named));
                    this.deadline_ppm
                        .push((id, request.reservation.share_ppm()));
                }
                continue;
            }
            if !is_above {
                continue;
            }
            let known = program.work.iter().filter(|(known, _)| *known == id);
            let known: Vec<_> = known.map(|(_, work)| (name.clone(), *work)).collect();
            if known.is_empty() {
                // Of a thread nobody says that it keeps its work short, as a handler does.
                if program.unbounded.contains(&id) {
                    this.interfering.push((id, unbounded(name)));
                } else if matches!(
                    activity.placement,
                    Placement::Linux(_) | Placement::Thread(_)
                ) {
                    this.interfering.push((id, named(activity)));
                }
                this.uncharged.push(name.clone());
            }
            this.known.extend(known);
        }
        for driver in &processor.drivers {
            let name = &driver.name;
            match driver.work {
                Some(work) => this.known.push((name.clone(), work)),
                None => {
                    this.unbounded.push(unbounded(name));
                    this.uncharged.push(name.clone());
                }
            }
        }
        this
    }

    /// The share of the known work in parts per million, as it matters to `holder`.
    pub(super) fn share_ppm(&self, holder: Option<ActivityId>) -> u64 {
        let others = self
            .deadline_ppm
            .iter()
            .filter(|(id, _)| Some(*id) != holder);
        let works = self.known.iter().map(|(_, work)| work.share_ppm());
        let shares = others.map(|(_, share)| *share).chain(works);
        shares.fold(0, u64::saturating_add)
    }

    /// What the known work can take from any window.
    fn taken(&self, window: Span) -> Service {
        let taken = self.known.iter().map(|(_, work)| {
            let jobs = work.jobs_in(window);
            work.service.as_nanos().saturating_mul(jobs)
        });
        Service::from_nanos(taken.fold(0, u64::saturating_add))
    }

    /// The known work, as tasks that preempt whoever holds a slot. What needs nothing, or never comes, takes nothing.
    pub(super) fn tasks(&self) -> Vec<Task> {
        let tasks = self
            .known
            .iter()
            .map(|(_, work)| Task::new(work.service, work.period));
        tasks.filter_map(Result::ok).collect()
    }

    /// Whether there is work of which nobody says how much it is.
    pub(super) const fn is_unknown(&self) -> bool {
        !self.uncharged.is_empty()
    }

    /// How literally slots for `asked` keep it under this.
    pub(super) fn keeps(&self, grade: &Grade, asked: Reservation) -> Keeps {
        let less = self.taken(asked.period());
        if *grade != Grade::Enforced || !self.uncharged.is_empty() {
            Keeps::LongRun
        } else if less >= asked.service() {
            Keeps::Nothing
        } else if less.is_zero() {
            Keeps::EveryWindow
        } else {
            Keeps::EveryWindowLess(less)
        }
    }

    /// The longest gap of slots for `asked`: the shortest span t in which they give more than what is taken from t. Any span of
    /// qY + (Y − X) + r holds qX + r of slots (r ≤ X). `Span::MAX` if there is no such span near.
    pub(super) fn longest_gap(&self, table_gap: Span, asked: Reservation) -> Span {
        if self.known.is_empty() {
            return table_gap;
        }
        let (service, period) = (asked.service().as_nanos(), asked.period().as_nanos());
        let end = period.saturating_mul(PERIODS);
        let mut gap = asked.longest_gap().as_nanos();
        while gap < end {
            let taken = self.taken(Span::from_nanos(gap)).as_nanos();
            let whole = taken.div_ceil(service).saturating_sub(1);
            let spans = whole
                .saturating_mul(period)
                .saturating_add(period - service);
            let longer = spans.saturating_add(taken - whole.saturating_mul(service));
            if longer <= gap {
                return Span::from_nanos(gap);
            }
            gap = longer;
        }
        Span::MAX
    }

    /// How firm a grant of slots to this activity is.
    pub(super) fn grade(&self, holder: ActivityId) -> Grade {
        Grade::below(self.others(holder), &self.strangers)
    }

    /// The same but for who is neither of the program nor started with it.
    pub(super) fn apart(&self, holder: ActivityId) -> Grade {
        let started = Strangers {
            started: self.strangers.started.clone(),
            ..Strangers::default()
        };
        Grade::below(self.others(holder), &started)
    }

    /// Whether the known work may take all of a slot of this length. Where one job of each is done before the next of any comes, those that run in the
    /// slot were released in it, or before it by no more than all of them take.
    pub(super) fn may_take(&self, slot: Span) -> bool {
        let works = || self.known.iter().map(|(_, work)| work);
        let services = works().map(|work| work.service.as_nanos());
        let each = services.fold(0, u64::saturating_add);
        let reach = slot.as_nanos().saturating_add(each);
        let taken = works().map(|work| {
            let jobs = reach.div_ceil(work.period.as_nanos().max(1));
            work.service.as_nanos().saturating_mul(jobs)
        });
        let taken = taken.fold(0, u64::saturating_add);
        taken >= slot.as_nanos() || works().any(|work| work.period.as_nanos() < each)
    }

    /// The grade of slots for `asked` of which the known work leaves nothing, however long one waits, as it may take each whole: what of it is enough
    /// for that is named, the largest share first.
    pub(super) fn takes_all(&self, asked: Reservation) -> Grade {
        let mut known: Vec<&(String, Work)> = self.known.iter().collect();
        known.sort_by_key(|(_, work)| Reverse(work.share_ppm()));
        let mut left = asked.share_ppm();
        let enough = known.into_iter().take_while(|(_, work)| {
            let is_needed = left > 0;
            left = left.saturating_sub(work.share_ppm());
            is_needed
        });
        let mut takers: Vec<(&str, String)> = Vec::new();
        for (name, work) in enough {
            match takers.iter_mut().find(|(known, _)| known == name) {
                Some((_, works)) => *works += &format!(" and {}", told(*work)),
                None => takers.push((name, told(*work))),
            }
        }
        let takers = takers.into_iter();
        let names = takers.map(|(name, works)| format!("{name} ({works}, which may be all of it)"));
        let names: Vec<String> = names.collect();
        Grade::below(names.iter().map(String::as_str), &Strangers::default())
    }

    /// Those of the program, and of its process, who interfere with this activity, by name.
    fn others(&self, holder: ActivityId) -> impl Iterator<Item = &str> {
        let others = self.interfering.iter();
        let others = others.filter(move |(who, _)| *who != holder);
        let others = others.map(|(_, name)| name.as_str());
        others.chain(self.unbounded.iter().map(String::as_str))
    }

    /// A sentence on each piece of work.
    pub(super) fn notes(&self) -> Vec<String> {
        let known = self.known.iter().map(|(name, work)| {
            let work = told(*work);
            format!("`{name}` runs above the slots and may take {work} from them")
        });
        let unknown = self.uncharged.iter().map(|name| {
            format!("`{name}` runs above the slots, and nobody keeps it to an amount: no grant counts it")
        });
        known.chain(unknown).collect()
    }
}
