//! Before anything starts: is the program right, can it run here, is everything it reserves admitted, and is it enforced.

use std::sync::Arc;

use laxity_model::policy::slots::{PlanCosts, SlotTable, plan};
use laxity_model::{
    Activity, ActivityId, Enforcer, Grade, Grant, HostError, Outside, Placement, Priority,
    ProcessorId, Program, Reservation, Service,
};

use super::LiveConfig;
use super::map;
use crate::enforce::holding::{Place, Sitting};
use crate::enforce::slots::{Bell, CHARGE_PER_SLOT, Desk, MOST_SHARE_PPM, SHORTEST_SLOT, Seat};
use crate::os::proc::{self, RealTimeThread};
use crate::os::sched::Policy;

/// The highest interrupt level there is.
const HIGHEST_LEVEL: u8 = 31;

/// The slots of one processor.
pub(crate) struct ProcessorSlots {
    pub(crate) processor: ProcessorId,
    pub(crate) cpu: usize,
    pub(crate) table: SlotTable,
    pub(crate) seats: Vec<Arc<Seat>>,
    pub(crate) bell: Arc<Bell>,
    /// Where changes are asked for.
    pub(crate) desk: Arc<Desk>,
    /// What the table was planned by.
    pub(crate) costs: PlanCosts,
    /// The kinds of confinement that must be calibrated.
    pub(crate) confined: bool,
}

/// What was admitted.
pub(crate) struct Admitted {
    /// By activity.
    pub(crate) places: Vec<Place>,
    pub(crate) slots: Vec<ProcessorSlots>,
    /// By activity.
    pub(crate) grants: Vec<Option<Grant>>,
}

/// Checks ids, processors and placements.
pub(crate) fn check(program: &Program, config: &LiveConfig) -> Result<(), HostError> {
    let bad = |text: String| Err(HostError::BadProgram(text));
    if program.processors == 0 {
        return bad("it asks for no processor".to_owned());
    }
    if program.activities.len() >= usize::from(u16::MAX) {
        return bad(format!(
            "{} activities; at most 65534 have a number",
            program.activities.len()
        ));
    }
    if usize::from(program.processors) > config.processors.len() {
        return Err(HostError::CannotRun(format!(
            "the program is written for {} processors, {} are configured",
            program.processors,
            config.processors.len()
        )));
    }
    for constrained in &program.constrained {
        let asker = program.activities.get(constrained.index());
        if !asker.is_some_and(|a| matches!(a.placement, Placement::Thread(_))) {
            return bad(format!(
                "activity {constrained} is to ask for time constraints but is no thread"
            ));
        }
    }
    for activity in &program.activities {
        let name = &activity.name;
        if activity.processor.0 >= program.processors {
            return bad(format!(
                "activity {name} names processor {}, the program has {}",
                activity.processor, program.processors
            ));
        }
        if let Placement::Interrupt(level) = activity.placement
            && level.0 > HIGHEST_LEVEL
        {
            return bad(format!(
                "activity {name}: interrupt level {} is above the highest, {HIGHEST_LEVEL}",
                level.0
            ));
        }
        if let Placement::Foreign { fifo } = activity.placement
            && !(1..=99).contains(&fifo)
        {
            return bad(format!(
                "activity {name}: SCHED_FIFO has no priority {fifo}"
            ));
        }
        if activity.reservation.is_some() && !matches!(activity.placement, Placement::Thread(_)) {
            return bad(format!(
                "activity {name} has a reservation but is not a thread"
            ));
        }
    }
    Ok(())
}

/// Finds the slot tables and grades what is granted.
pub(crate) fn admit(program: &Program, config: &LiveConfig) -> Result<Admitted, HostError> {
    let mut places = vec![Place::Free; program.activities.len()];
    let deadline_ppm: u64 = reservations(program, Enforcer::Deadline)
        .map(|(_, _, reservation, _)| reservation.share_ppm())
        .sum();
    for (id, _, reservation, _) in reservations(program, Enforcer::Deadline) {
        places[id.index()] = Place::Deadline(reservation);
    }
    let mut slots = Vec::new();
    for processor in (0..program.processors).map(ProcessorId) {
        if let Some(found) = on_processor(program, config, processor, deadline_ppm)? {
            for (owner, seat) in found.seats.iter().enumerate() {
                let sitting = Sitting {
                    seat: Arc::clone(seat),
                    desk: Arc::clone(&found.desk),
                    owner,
                };
                places[seat.activity.index()] = match seat.reservation {
                    Some(_) => Place::Slots(sitting),
                    None => Place::Guest(sitting),
                };
            }
            slots.push(found);
        }
    }
    let grants = grants(program, config);
    Ok(Admitted {
        places,
        slots,
        grants,
    })
}

/// All activities with a reservation by this enforcer.
fn reservations(
    program: &Program,
    enforcer: Enforcer,
) -> impl Iterator<Item = (ActivityId, &Activity, Reservation, Outside)> {
    program
        .activities
        .iter()
        .enumerate()
        .filter_map(move |(index, activity)| {
            let request = activity.reservation?;
            (request.enforcer == enforcer).then_some((
                ActivityId(index as u16),
                activity,
                request.reservation,
                request.outside,
            ))
        })
}

/// The threads of a processor that have no reservation and may ask for time constraints.
fn guests(
    program: &Program,
    processor: ProcessorId,
) -> impl Iterator<Item = (ActivityId, Priority)> {
    let guests = program.constrained.iter();
    guests.filter_map(move |id| {
        let activity = program.activities.get(id.index())?;
        let Placement::Thread(priority) = activity.placement else {
            return None;
        };
        let is_guest = activity.reservation.is_none() && activity.processor == processor;
        is_guest.then_some((*id, priority))
    })
}

fn on_processor(
    program: &Program,
    config: &LiveConfig,
    processor: ProcessorId,
    deadline_ppm: u64,
) -> Result<Option<ProcessorSlots>, HostError> {
    let bell = Arc::new(Bell::default());
    let holders = reservations(program, Enforcer::Slots)
        .filter(|(_, activity, _, _)| activity.processor == processor)
        .map(|(id, _, reservation, outside)| {
            Arc::new(Seat::new(id, reservation, outside, Arc::clone(&bell)))
        });
    let guests = guests(program, processor).map(|(id, priority)| {
        let outside = Outside::Timesharing(priority);
        Arc::new(Seat::new(id, None, outside, Arc::clone(&bell)))
    });
    let seats: Vec<Arc<Seat>> = holders.chain(guests).collect();
    if seats.is_empty() {
        return Ok(None);
    }
    let requests: Vec<Reservation> = seats.iter().filter_map(|seat| seat.reservation).collect();
    let costs = PlanCosts {
        per_slot: Service::from_nanos(CHARGE_PER_SLOT.as_nanos()),
        max_share_ppm: MOST_SHARE_PPM,
        // A deadline thread keeps to no processor: each must have room for all of them.
        other_ppm: u32::try_from(deadline_ppm).unwrap_or(u32::MAX),
        granularity: SHORTEST_SLOT,
    };
    let table = plan(&requests, &costs).map_err(|refusal| {
        HostError::Refused(format!("slots of processor {processor}: {refusal}"))
    })?;
    let confined = reservations(program, Enforcer::Slots).any(|(_, activity, _, outside)| {
        activity.processor == processor && outside == Outside::Confined
    });
    Ok(Some(ProcessorSlots {
        processor,
        cpu: config.processors[processor.index()],
        table,
        seats,
        desk: Arc::new(Desk::new(Arc::clone(&bell))),
        bell,
        costs,
        confined,
    }))
}

/// A grant for each reservation, graded by who else is on the machine now.
fn grants(program: &Program, config: &LiveConfig) -> Vec<Option<Grant>> {
    let members: Vec<Member> = program.activities.iter().map(Member::of).collect();
    grade_all(&members, config)
}

/// What grading needs to know of an activity; outlives the program, whose bodies move to their threads.
#[derive(Clone)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) processor: ProcessorId,
    pub(crate) placement: Placement,
    pub(crate) request: Option<laxity_model::ReservationRequest>,
}

impl Member {
    pub(crate) fn of(activity: &Activity) -> Self {
        Self {
            name: activity.name.clone(),
            processor: activity.processor,
            placement: activity.placement,
            request: activity.reservation,
        }
    }
}

/// Grades every reservation among these.
pub(crate) fn grade_all(members: &[Member], config: &LiveConfig) -> Vec<Option<Grant>> {
    members
        .iter()
        .map(|member| {
            let request = member.request?;
            let grade = match request.enforcer {
                // Nothing but the kernel's own stop tasks and other admitted deadline threads ranks above.
                Enforcer::Deadline => Grade::Enforced,
                Enforcer::Slots => {
                    let cpu = config.processors[member.processor.index()];
                    grade(member, members, &proc::strangers_on(cpu))
                }
            };
            Some(Grant {
                reservation: request.reservation,
                enforcer: request.enforcer,
                grade,
            })
        })
        .collect()
}

/// Whether a slot's holder can be kept from its processor: by a FIFO thread that is not ours or foreign to the priority map, at
/// the occupant's rank or above, or by a deadline thread. What the map itself puts above a slot (interrupt, deferred, the
/// observer) is the program's own, as in the study.
fn grade(holder: &Member, members: &[Member], strangers: &[RealTimeThread]) -> Grade {
    let mut culprits = Vec::new();
    for member in members {
        match member.placement {
            Placement::Foreign { fifo }
                if fifo >= map::OCCUPANT && member.processor == holder.processor =>
            {
                culprits.push(format!("{} (SCHED_FIFO priority {fifo})", member.name));
            }
            _ => {}
        }
        if let Some(request) = member.request
            && request.enforcer == Enforcer::Deadline
        {
            culprits.push(format!(
                "{} (SCHED_DEADLINE {})",
                member.name, request.reservation
            ));
        }
    }
    culprits.extend(outranking(strangers));
    if culprits.is_empty() {
        return Grade::Enforced;
    }
    Grade::Unenforced {
        reason: format!(
            "ranked above the slot on its processor: {}",
            culprits.join(", ")
        ),
    }
}

/// Those among real-time threads of other processes that a slot's occupant cannot keep the processor from, by name.
pub(crate) fn outranking(strangers: &[RealTimeThread]) -> Vec<String> {
    let culprits = strangers
        .iter()
        .filter(|stranger| outranks_a_slot(stranger.policy));
    let named = culprits.map(|stranger| {
        let RealTimeThread {
            tid,
            name,
            process,
            policy,
            ..
        } = stranger;
        format!("thread {tid} \"{name}\" of process {process} ({policy})")
    });
    named.collect()
}

fn outranks_a_slot(policy: Policy) -> bool {
    match policy {
        Policy::Fifo(priority) | Policy::RoundRobin(priority) => priority >= map::OCCUPANT,
        Policy::Deadline { .. } => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::sched::{CpuSet, Tid};
    use laxity_model::{Priority, ReservationRequest, Span};

    fn holder() -> Member {
        let two_of_eight = Reservation::new(Service::from_millis(2), Span::from_millis(8)).unwrap();
        Member {
            name: "modem".to_owned(),
            processor: ProcessorId(0),
            placement: Placement::Thread(Priority::NORMAL),
            request: Some(ReservationRequest {
                reservation: two_of_eight,
                enforcer: Enforcer::Slots,
                outside: Outside::Timesharing(Priority::NORMAL),
                begins_at_start: true,
            }),
        }
    }

    fn rogue(fifo: u8, processor: u16) -> Member {
        Member {
            name: "rogue".to_owned(),
            processor: ProcessorId(processor),
            placement: Placement::Foreign { fifo },
            request: None,
        }
    }

    fn reason(grade: &Grade) -> &str {
        match grade {
            Grade::Enforced => "",
            Grade::Unenforced { reason } => reason,
        }
    }

    #[test]
    fn a_rogue_at_the_slots_rank_is_named_and_below_it_is_not() {
        let at = |fifo, processor| {
            let members = [holder(), rogue(fifo, processor)];
            grade(&members[0], &members, &[])
        };
        assert_eq!(at(79, 0), Grade::Enforced);
        assert!(reason(&at(80, 0)).contains("rogue (SCHED_FIFO priority 80)"));
        assert_eq!(at(99, 1), Grade::Enforced);
    }

    #[test]
    fn a_stranger_is_named_by_thread_name_and_process() {
        let stranger = |policy| RealTimeThread {
            process: 41,
            tid: Tid(42),
            name: "greedy".to_owned(),
            policy,
            cpus: CpuSet::ALL,
        };
        let members = [holder()];
        let of = |policy| grade(&members[0], &members, &[stranger(policy)]);
        assert_eq!(of(Policy::Fifo(50)), Grade::Enforced);
        let high = of(Policy::RoundRobin(85));
        for part in ["42", "greedy", "41", "SCHED_RR priority 85"] {
            assert!(reason(&high).contains(part), "{high:?}");
        }
    }
}
