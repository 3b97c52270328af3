//! What fewer slot edges cost: the tables among which a user can choose.

use alloc::vec::Vec;

use super::objective::{Judged, Objective};
use super::plan::{PlanCosts, plan_with};
use super::{Refusal, SlotTable};
use crate::Reservation;

/// The limits of over-allocation that are tried, in parts per million: none, and from 0.1 % doubling or so to four times.
const LIMITS_PPM: [u32; 16] = [
    0, 1_000, 2_500, 5_000, 10_000, 20_000, 30_000, 40_000, 50_000, 75_000, 100_000, 200_000,
    400_000, 800_000, 1_600_000, 3_200_000,
];

/// One of the tables among which there is a choice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trade {
    /// How much more of the processor it gives than was asked for: [`SlotTable::over_allocation_ppm`].
    pub over_allocation_ppm: u64,
    /// How often it gives or takes the processor: [`SlotTable::edges_per_1000_s`].
    pub edges_per_1000_s: u64,
    /// The table itself.
    pub table: SlotTable,
}

/// The trade of slot edges for over-allocation: tables of which none has both fewer edges a second and no more over-allocation than
/// another (the Pareto front of what was found), by increasing over-allocation. At least one; just one for no requests.
///
/// Each is what [`plan_with`] finds for some limit between 0 and 320 %. Cost: that of 16 plans. Refused if [`plan_with`] refuses.
///
/// ```
/// use laxity_model::policy::slots::{PlanCosts, trade};
/// use laxity_model::{Reservation, Service, Span};
///
/// let costs = PlanCosts {
///     per_slot: Service::ZERO,
///     max_share_ppm: 1_000_000,
///     other_ppm: 0,
///     granularity: Span::from_micros(1),
/// };
/// let every = |service, period| {
///     Reservation::new(Service::from_millis(service), Span::from_millis(period)).unwrap()
/// };
/// // Every 10 and every 15 ms do not fit together unless one of them is cut up, or has more than it asked for.
/// let front = trade(&[every(4, 10), every(6, 15)], &costs).unwrap();
/// assert_eq!(front[0].over_allocation_ppm, 0);
/// for pair in front.windows(2) {
///     assert!(pair[0].over_allocation_ppm < pair[1].over_allocation_ppm);
///     assert!(pair[0].edges_per_1000_s >= pair[1].edges_per_1000_s);
/// }
/// ```
pub fn trade(requests: &[Reservation], costs: &PlanCosts) -> Result<Vec<Trade>, Refusal> {
    let mut found: Vec<Judged> = Vec::with_capacity(LIMITS_PPM.len());
    for most_over_ppm in LIMITS_PPM {
        let table = plan_with(requests, costs, Objective { most_over_ppm })?;
        found.push(Judged::new(table, requests));
    }
    found.sort_by(|a, b| a.over_ppm.cmp(&b.over_ppm).then_with(|| a.by_edges(b)));
    let mut front: Vec<Judged> = Vec::new();
    for judged in found {
        if front
            .last()
            .is_none_or(|last| judged.by_edges(last).is_lt())
        {
            front.push(judged);
        }
    }
    let trades = front.into_iter().map(|judged| Trade {
        over_allocation_ppm: judged.over_ppm,
        edges_per_1000_s: judged.table.edges_per_1000_s(),
        table: judged.table,
    });
    Ok(trades.collect())
}
