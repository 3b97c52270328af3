//! What slot tables make of requests, one processor at a time.

use alloc::vec::Vec;

use super::above::Above;
use super::{
    Advice, Demand, Denial, Prediction, ProcessorAdmission, ProcessorSupply, SlotSupply, Why,
};
use crate::policy::slots::{PlanCosts, Refusal, SlotTable, oracle, plan};
use crate::{ActivityId, ProcessorId, Reservation, Span};

/// A request for slots.
pub(super) type Claim = (ActivityId, Reservation);

/// One processor: what is known of it, and the slots granted on it.
pub(super) struct Processor<'a> {
    supply: &'a ProcessorSupply,
    above: Above,
    granted: Vec<Claim>,
    table: Option<SlotTable>,
    denied: Vec<(ActivityId, Denial)>,
}

impl<'a> Processor<'a> {
    /// The processor with all the slots that can be granted on it: as long as the claims do not fit together, the first that does
    /// not fit with those before it is left out.
    pub(super) fn new(supply: &'a ProcessorSupply, demand: &Demand, claims: Vec<Claim>) -> Self {
        let mut this = Self {
            supply,
            above: Above::default(),
            granted: claims,
            table: None,
            denied: Vec::new(),
        };
        if let Ok(slots) = &supply.slots {
            this.above = Above::of(demand, supply, slots);
            this.plan(slots);
        }
        this
    }

    fn plan(&mut self, slots: &SlotSupply) {
        while !self.granted.is_empty() && self.table.is_none() {
            match plan_claims(&self.granted, &self.costs(slots, None)) {
                Ok(table) => self.table = Some(table),
                Err(refusal) => {
                    let denial = denial_of(&refusal, &self.granted);
                    let (activity, _) = self.granted.remove(refusal.request);
                    self.denied.push((activity, denial));
                }
            }
        }
    }

    pub(super) fn id(&self) -> ProcessorId {
        self.supply.processor
    }

    fn costs(&self, slots: &SlotSupply, holder: Option<ActivityId>) -> PlanCosts {
        let above = u32::try_from(self.above.share_ppm(holder)).unwrap_or(u32::MAX);
        PlanCosts {
            per_slot: slots.per_slot,
            max_share_ppm: slots.max_share_ppm,
            other_ppm: slots.used_ppm.saturating_add(above),
            granularity: slots.shortest_slot,
        }
    }

    /// What slots make of a request: one that was granted or denied, or one more.
    pub(super) fn assess(
        &self,
        activity: ActivityId,
        asked: Reservation,
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
        let table = plan_claims(&claims, &self.costs(slots, Some(activity)));
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
        let theory_gap = oracle::largest_gap(table, owner).unwrap_or(asked.longest_gap());
        let longest_gap = self.above.longest_gap(theory_gap, asked);
        let grade = self.above.grade(activity);
        Prediction {
            promised_gap: asked.longest_gap(),
            theory_gap,
            longest_gap: longest_gap.checked_add(slots.jitter).unwrap_or(Span::MAX),
            keeps: self.above.keeps(&grade, asked),
            grade,
            notes: self.above.notes(),
        }
    }

    pub(super) fn into_admission(self) -> ProcessorAdmission {
        let slots = self.supply.slots.as_ref().ok();
        let owners = self.granted.iter().map(|(activity, _)| *activity);
        ProcessorAdmission {
            processor: self.id(),
            above_slots_ppm: self.above.share_ppm(None),
            max_share_ppm: slots.map_or(0, |slots| slots.max_share_ppm),
            owners: self.table.iter().flat_map(|_| owners.clone()).collect(),
            table: self.table,
            uncharged: self.above.uncharged,
        }
    }
}

fn plan_claims(claims: &[Claim], costs: &PlanCosts) -> Result<SlotTable, Refusal> {
    let requests: Vec<Reservation> = claims.iter().map(|(_, asked)| *asked).collect();
    plan(&requests, costs)
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
    }
}
