//! The slow, obvious answers that the planner is tested against.

use laxity_model::policy::slots::SlotTable;
use laxity_model::{Service, Span};

/// The least service that `owner` gets in any window of this length, wherever it begins in the endlessly repeated table.
///
/// The service in a window, as a function of where it begins, is piecewise linear and bends only where one of its ends meets an edge
/// of a slot; so its minimum is at such a place, and all of them are tried. O(entries²).
pub(crate) fn least_service_in_any_window(
    table: &SlotTable,
    owner: usize,
    window: Span,
) -> Service {
    let (cycle, length) = (table.cycle().as_nanos(), window.as_nanos());
    let edges = table
        .slots()
        .iter()
        .flat_map(|slot| [slot.start.as_nanos(), (slot.start + slot.length).as_nanos()]);
    let starts: Vec<u64> = edges
        .flat_map(|edge| [edge % cycle, (edge + (cycle - length % cycle)) % cycle])
        .collect();
    let served = |from: u64| {
        served_before(table, owner, u128::from(from) + u128::from(length))
            - served_before(table, owner, u128::from(from))
    };
    let least = starts.into_iter().map(served).min().unwrap_or(0);
    Service::from_nanos(u64::try_from(least).unwrap_or(u64::MAX))
}

/// The service that `owner` gets from the beginning of the table until `nanos` later.
fn served_before(table: &SlotTable, owner: usize, nanos: u128) -> u128 {
    let cycle = u128::from(table.cycle().as_nanos());
    let (cycles, rest) = (nanos / cycle, nanos % cycle);
    let own = || table.slots().iter().filter(|slot| slot.owner == owner);
    let a_cycle: u128 = own().map(|slot| u128::from(slot.length.as_nanos())).sum();
    let begun: u128 = own()
        .map(|slot| {
            let since = rest.saturating_sub(u128::from(slot.start.as_nanos()));
            since.min(u128::from(slot.length.as_nanos()))
        })
        .sum();
    cycles * a_cycle + begun
}
