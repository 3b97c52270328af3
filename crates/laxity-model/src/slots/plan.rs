//! Finds a slot table for a set of reservations.

use alloc::vec::Vec;

use super::arrange::{arrangements, score};
use super::place::{Obstacle, place};
use super::refusal::{Refusal, Shortage};
use super::{SlotTable, nearest};
use crate::{Reservation, Service, Span};

/// The most slots a table may have.
pub const MAX_ENTRIES: usize = 4_096;

/// What carrying a table out costs, and how much of the processor it may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlanCosts {
    /// The dispatcher's processor time a slot: kept free before each slot, and charged (at most 50 µs live).
    pub per_slot: Service,
    /// How much of the processor slots and all else above ordinary threads may take together, in parts per million (940,000 live).
    pub max_share_ppm: u32,
    /// How much of that is already taken by others, in parts per million.
    pub other_ppm: u32,
    /// The shortest slot that can be kept.
    pub granularity: Span,
}

impl PlanCosts {
    /// What is left for slots, in parts per million.
    #[must_use]
    pub fn available_ppm(&self) -> u64 {
        u64::from(
            self.max_share_ppm
                .min(1_000_000)
                .saturating_sub(self.other_ppm),
        )
    }

    /// Whether a table, the dispatcher's time included, takes no more than what is left. Exact.
    fn allow(&self, table: &SlotTable) -> bool {
        let cost = u128::from(self.per_slot.as_nanos());
        let slots = table.slots().iter();
        let taken: u128 = slots.map(|s| u128::from(s.length.as_nanos()) + cost).sum();
        let available = u128::from(self.available_ppm()) * u128::from(table.cycle().as_nanos());
        taken * 1_000_000 <= available
    }
}

/// A table for one processor that keeps *X in every window of length Y* for each request; a slot's owner is its request's index.
///
/// Any periods will do. A single request gets exactly its X every Y. Several whose periods do not divide each other are served
/// somewhat more often or longer than they ask; of the arrangements tried, the one with the least load, the dispatcher's cost
/// included, that can be placed is taken. Before each slot `costs.per_slot` stays free of other slots. The same requests and costs
/// give the same table.
///
/// Cost: some 100 µs for five requests; a refusal plans up to some hundred sets near by, which may take 20 ms.
///
/// ```
/// use laxity_model::slots::{PlanCosts, oracle, plan};
/// use laxity_model::{Reservation, Service, Span};
///
/// let costs = PlanCosts {
///     per_slot: Service::from_micros(50),
///     max_share_ppm: 940_000,
///     other_ppm: 0,
///     granularity: Span::from_micros(50),
/// };
/// let modem = Reservation::new(Service::from_millis(2), Span::from_millis(13)).unwrap();
/// let audio = Reservation::new(Service::from_millis(1), Span::from_millis(10)).unwrap();
/// let table = plan(&[modem, audio], &costs).unwrap();
/// let least = oracle::least_service_in_any_window(&table, 0, modem.period());
/// assert!(least >= modem.service());
///
/// let greedy = Reservation::new(Service::from_millis(8), Span::from_millis(10)).unwrap();
/// let refusal = plan(&[modem, greedy], &costs).unwrap_err();
/// assert!(plan(&refusal.nearest[0].requests, &costs).is_ok());
/// ```
pub fn plan(requests: &[Reservation], costs: &PlanCosts) -> Result<SlotTable, Refusal> {
    find(requests, costs).map_err(|_| nearest::explain(requests, costs))
}

/// A table, or what is missing.
pub(super) fn find(requests: &[Reservation], costs: &PlanCosts) -> Result<SlotTable, Shortage> {
    let shortest = costs.granularity;
    if let Some(short) = requests
        .iter()
        .find(|r| r.service().as_dedicated_span() < shortest)
    {
        return Err(Shortage::SlotLength {
            service: short.service(),
            shortest,
        });
    }
    if requests.len() > MAX_ENTRIES {
        return Err(Shortage::TableEntries {
            needed: requests.len() as u64,
            limit: MAX_ENTRIES as u64,
        });
    }
    let candidates = arrangements(requests, costs);
    let Some(best) = candidates.first() else {
        return Ok(SlotTable {
            cycle: Span::from_secs(1),
            slots: Vec::new(),
        });
    };
    let (needed_ppm, available_ppm) = (best.load_ppm(costs), costs.available_ppm());
    if needed_ppm > available_ppm {
        return Err(Shortage::ProcessorTime {
            needed_ppm,
            available_ppm,
        });
    }
    let mut shortage = Shortage::Arrangement {
        load_ppm: needed_ppm,
    };
    let mut found: Option<(u128, SlotTable)> = None;
    for arrangement in &candidates {
        // What had to be split takes more than its arrangement said, so one further down may do better; no further than this.
        if found
            .as_ref()
            .is_some_and(|(score, _)| *score <= arrangement.score)
        {
            break;
        }
        match place(arrangement, costs) {
            Ok(table) if costs.allow(&table) => {
                let score = score(&table, costs);
                if found.as_ref().is_none_or(|(least, _)| score < *least) {
                    found = Some((score, table));
                }
            }
            Err(Obstacle::Entries(needed)) => {
                shortage = Shortage::TableEntries {
                    needed,
                    limit: MAX_ENTRIES as u64,
                };
            }
            Ok(_) | Err(Obstacle::Room) => {}
        }
    }
    found.map(|(_, table)| table).ok_or(shortage)
}
