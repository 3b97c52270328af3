//! The decision.

use alloc::vec::Vec;

use super::deadline::Book;
use super::slots::{Claim, Processor};
use super::{ActivityDemand, Admission, Demand, Denial, Prediction, RequestAdmission, Supply, Why};
use crate::{ActivityId, Enforcer, Placement, ReservationRequest};

/// Decides which enforcer can meet which request of `demand` on `supply`.
///
/// Requests count in the order of their activities, also those that begin later; one that is refused leaves what it asked for to
/// those after it. The enforcer that was not asked for is assessed too, as if this one request went there. The advice of the first
/// refusal on each resource holds for the whole demand: followed, that refusal is gone.
///
/// Cost: a slot plan for each request, some hundred for each refusal.
#[must_use]
pub fn admit(demand: &Demand, supply: &Supply) -> Admission {
    let book = book(demand, supply);
    let processors: Vec<Processor<'_>> = supply
        .processors
        .iter()
        .map(|processor| {
            let here = askers(demand, Enforcer::Slots)
                .filter(|(_, activity, _)| activity.processor == processor.processor);
            let claims: Vec<Claim> = here.map(|(id, _, asked)| (id, asked.reservation)).collect();
            Processor::new(processor, demand, claims)
        })
        .collect();
    let requests = demand
        .activities
        .iter()
        .enumerate()
        .filter_map(|(index, activity)| {
            let id = ActivityId(u16::try_from(index).ok()?);
            let request = activity.reservation?;
            Some(RequestAdmission {
                activity: id,
                name: activity.name.clone(),
                processor: activity.processor,
                request,
                deadline: holder(activity).and_then(|()| book.assess(id, request.reservation)),
                slots: holder(activity).and_then(|()| by_slots(&processors, activity, id, request)),
            })
        });
    let requests = requests.collect();
    Admission {
        requests,
        processors: processors
            .into_iter()
            .map(Processor::into_admission)
            .collect(),
    }
}

/// The deadline reservations that are granted, in order.
fn book<'a>(demand: &Demand, supply: &'a Supply) -> Book<'a> {
    let mut book = Book {
        supply: &supply.deadline,
        granted: Vec::new(),
    };
    for (id, _, request) in askers(demand, Enforcer::Deadline) {
        if book.assess(id, request.reservation).is_ok() {
            book.granted.push((id, request.reservation));
        }
    }
    book
}

fn by_slots(
    processors: &[Processor<'_>],
    activity: &ActivityDemand,
    id: ActivityId,
    request: ReservationRequest,
) -> Result<Prediction, Denial> {
    let here = processors.iter().find(|p| p.id() == activity.processor);
    here.ok_or(Why::NoSuchProcessor(activity.processor))?
        .assess(id, request.reservation)
}

/// Those who may hold a reservation and ask this enforcer for one.
fn askers(
    demand: &Demand,
    enforcer: Enforcer,
) -> impl Iterator<Item = (ActivityId, &ActivityDemand, ReservationRequest)> {
    let activities = demand.activities.iter().zip(0..=u16::MAX);
    activities.filter_map(move |(activity, index)| {
        let request = activity.reservation.filter(|r| r.enforcer == enforcer)?;
        holder(activity).ok()?;
        Some((ActivityId(index), activity, request))
    })
}

/// Whether the activity may hold a reservation at all.
fn holder(activity: &ActivityDemand) -> Result<(), Denial> {
    match activity.placement {
        Placement::Thread(_) | Placement::Foreign { .. } => Ok(()),
        Placement::Interrupt(_)
        | Placement::Deferred
        | Placement::External
        | Placement::On { .. } => Err(Why::NotAThread.into()),
    }
}
