//! What slot tables make of requests, one processor at a time.

use alloc::vec::Vec;

use super::above::Above;
use super::{Advice, Denial, Prediction, ProcessorSupply, SlotPlan, SlotSupply, Why};
use crate::policy::slots::{Effort, PlanCosts, Refusal, SlotTable, largest_gap, plan_within};
use crate::{ActivityId, Grade, Program, Reservation, Span};

/// A request for slots.
pub(super) type Claim = (ActivityId, Reservation);

/// One processor: what is known of it, and the slots granted on it.
pub(super) struct Processor<'a> {
    supply: &'a ProcessorSupply,
    above: Above,
    granted: Vec<Claim>,
    /// Those who have no reservation and may ask for time constraints.
    guests: Vec<ActivityId>,
    table: Option<SlotTable>,
    denied: Vec<(ActivityId, Denial)>,
}

impl<'a> Processor<'a> {
    /// The processor with all the slots that can be granted on it: as long as the claims do not fit together, the first that does
    /// not fit with those before it is left out.
    pub(super) fn new(
        supply: &'a ProcessorSupply,
        program: &Program,
        claims: Vec<Claim>,
        effort: &mut Effort,
    ) -> Self {
        let guests = program.constrained.iter().copied().filter(|guest| {
            let activity = &program.activities[guest.index()];
            activity.reservation.is_none() && activity.processor == supply.processor
        });
        let mut this = Self {
            supply,
            above: Above::nobody(),
            granted: claims,
            guests: guests.collect(),
            table: None,
            denied: Vec::new(),
        };
        if let Ok(slots) = &supply.slots {
            this.above = Above::of(program, supply, slots);
            this.plan(slots, effort);
        }
        this
    }

    fn plan(&mut self, slots: &SlotSupply, effort: &mut Effort) {
        while !(self.granted.is_empty() && self.guests.is_empty()) && self.table.is_none() {
            match plan_claims(&self.granted, &self.costs(slots, None), effort) {
                Ok(table) => self.table = Some(table),
                Err(refusal) => {
                    let denial = denial_of(&refusal, &self.granted);
                    let (activity, _) = self.granted.remove(refusal.request);
                    self.denied.push((activity, denial));
                }
            }
        }
    }

    fn costs(&self, slots: &SlotSupply, holder: Option<ActivityId>) -> PlanCosts {
        slots.costs(self.above.share_ppm(holder))
    }

    /// What slots make of a request: one that was granted or denied, or one more.
    pub(super) fn assess(
        &self,
        activity: ActivityId,
        asked: Reservation,
        effort: &mut Effort,
    ) -> Result<Prediction, Denial> {
        let slots = self.supply.slots.as_ref();
        let slots = slots.map_err(|why| Why::Unavailable(why.clone()))?;
        if let Some((_, denial)) = self.denied.iter().find(|(who, _)| *who == activity) {
            return Err(denial.clone());
        }
        let granted = self.granted.iter().position(|(who, _)| *who == activity);
        if let (Some(owner), Some(table)) = (granted, &self.table) {
            return Ok(self.predict(slots, table, owner, (activity, asked)));
        }
        let mut claims = self.granted.clone();
        claims.push((activity, asked));
        let table = plan_claims(&claims, &self.costs(slots, Some(activity)), effort);
        let table = table.map_err(|refusal| denial_of(&refusal, &claims))?;
        Ok(self.predict(slots, &table, claims.len() - 1, (activity, asked)))
    }

    fn predict(
        &self,
        slots: &SlotSupply,
        table: &SlotTable,
        owner: usize,
        (activity, asked): Claim,
    ) -> Prediction {
        let theory_gap = largest_gap(table, owner).unwrap_or(asked.longest_gap());
        let longest_gap = self.above.longest_gap(theory_gap, asked);
        let grade = self.above.grade(activity);
        let keeps = self.above.keeps(&grade, asked);
        let mut own = table.slots().iter().filter(|slot| slot.owner == owner);
        let is_worthless =
            longest_gap == Span::MAX && own.all(|slot| self.above.may_take(slot.length));
        let known = match is_worthless {
            true => self.above.takes_all(asked),
            false => Grade::Enforced,
        };
        Prediction {
            promised_gap: asked.longest_gap(),
            theory_gap,
            longest_gap: longest_gap.checked_add(slots.jitter).unwrap_or(Span::MAX),
            keeps,
            grade: grade.and(&known),
            apart: self.above.apart(activity).and(&known),
            notes: self.above.notes(),
        }
    }

    /// The slots as they are to be carried out, if anybody has any.
    pub(super) fn into_plan(self) -> Option<SlotPlan> {
        let costs = self.costs(self.supply.slots.as_ref().ok()?, None);
        let (holders, held): (Vec<ActivityId>, _) = self.granted.into_iter().unzip();
        Some(SlotPlan {
            processor: self.supply.processor,
            table: self.table?,
            owners: holders.into_iter().chain(self.guests).collect(),
            held,
            costs,
        })
    }
}

fn plan_claims(
    claims: &[Claim],
    costs: &PlanCosts,
    effort: &mut Effort,
) -> Result<SlotTable, Refusal> {
    let requests: Vec<Reservation> = claims.iter().map(|(_, asked)| *asked).collect();
    plan_within(&requests, costs, effort)
}

/// The planner's refusal in terms of activities: of each set near by only what changed.
fn denial_of(refusal: &Refusal, claims: &[Claim]) -> Denial {
    let nearest = refusal.nearest.iter().map(|nearest| Advice {
        change: nearest.change,
        requests: (claims.iter().zip(&nearest.requests))
            .filter(|((_, asked), near)| asked != *near)
            .map(|((activity, _), near)| (*activity, *near))
            .collect(),
    });
    Denial {
        why: Why::Slots(refusal.shortage),
        nearest: nearest.collect(),
        is_cut_short: refusal.is_cut_short,
    }
}
