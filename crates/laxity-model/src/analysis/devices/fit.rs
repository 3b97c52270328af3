//! Several devices on one processor.

use alloc::collections::{BTreeSet, BinaryHeap};
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::Device;
use super::choose::{compare_shares, least_reservations};
use crate::analysis::Overflow;
use crate::analysis::supply::ExplicitDeadline;
use crate::policy::slots::{PlanCosts, Refusal, SlotTable, plan};
use crate::request::Share;
use crate::{Reservation, Span};

/// Tables tried before giving up: each refusal costs up to some ten milliseconds.
const MOST_PLANS: usize = 50;
/// Choices looked at before giving up.
const MOST_CHOICES: usize = 100_000;
/// Bits behind the point of a share.
const POINT: u32 = 60;

/// Reservations that serve several devices, and the table that keeps them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fit {
    /// By device.
    pub reservations: Vec<Reservation>,
    /// A slot's owner is a device's index.
    pub table: SlotTable,
}

/// Why devices do not fit on one processor.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unfit {
    /// No reservation with any of the periods serves this device.
    #[error("no reservation with one of these periods serves device {device}")]
    Device {
        /// Its index.
        device: usize,
    },
    /// Even the least shares together are more than there is.
    #[error("the devices need {} of the processor, {} are available", Share(*needed_ppm), Share(*available_ppm))]
    ProcessorTime {
        /// The sum of their least shares with these periods, in parts per million, rounded down.
        needed_ppm: u64,
        /// What is left for slots.
        available_ppm: u64,
    },
    /// No table was found for any of the sets that were tried. That need not mean that there is none.
    #[error("no table for any of {tried} sets of reservations{}", Because(last.as_ref()))]
    NoTable {
        /// How many.
        tried: usize,
        /// Why not for the last; `None` if, with one slot a period and the dispatcher's time for each, all sets were too much.
        last: Option<Refusal>,
    },
    /// A number does not fit.
    #[error(transparent)]
    Overflow(#[from] Overflow),
}

/// Writes ": because".
struct Because<'a>(Option<&'a Refusal>);

impl core::fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.0 {
            Some(refusal) => write!(f, ": {refusal}"),
            None => Ok(()),
        }
    }
}

/// A reservation for each device, with one of `periods` and a multiple of `granularity`, and a slot table that keeps them all under
/// these costs: of the sets for which the planner finds a table the one with the least ΣX/Y, and of those the fewest slots a second.
///
/// For each device the least X of each period is found, exactly; then sets are tried by their sum (to 10⁻¹⁸ for each device), the least first.
/// Sets that with one slot a period, the dispatcher's time included, take more than what is available are passed over.
/// Ends after 50 refusals of the planner or 100,000 sets.
///
/// ```
/// use laxity_model::analysis::devices::{Device, fit};
/// use laxity_model::policy::slots::PlanCosts;
/// use laxity_model::{Service, Span};
///
/// let modem = Device::duplex(Service::from_micros(1_840), Span::from_micros(12_500), 90, 512, 104)?;
/// let audio = Device::playback(Service::from_micros(300), Span::from_millis(5), 240, 480)?;
/// let costs = PlanCosts {
///     per_slot: Service::from_micros(50),
///     max_share_ppm: 940_000,
///     other_ppm: 0,
///     granularity: Span::from_micros(50),
/// };
/// let periods: Vec<Span> = (2..=16).map(Span::from_millis).collect();
/// let fit = fit(&[modem, audio], &periods, Span::from_micros(50), &costs).unwrap();
/// assert_eq!(fit.reservations.len(), 2);
/// # Ok::<(), laxity_model::analysis::devices::DeviceError>(())
/// ```
pub fn fit(
    devices: &[Device],
    periods: &[Span],
    granularity: Span,
    costs: &PlanCosts,
) -> Result<Fit, Unfit> {
    let choices = choices(devices, periods, granularity, costs)?;
    let available_ppm = costs.available_ppm();
    let least = choices.iter().map(|offers| share(offers[0])).sum();
    if is_more_than(least, available_ppm) {
        let needed_ppm = u64::try_from((least * 1_000_000) >> POINT).unwrap_or(u64::MAX);
        return Err(Unfit::ProcessorTime {
            needed_ppm,
            available_ppm,
        });
    }
    let (mut tried, mut last) = (0, None);
    for reservations in Sets::of(&choices).take(MOST_CHOICES) {
        let with_costs = reservations.iter().map(|r| share(*r) + overhead(*r, costs));
        if is_more_than(with_costs.sum(), available_ppm) {
            continue;
        }
        match plan(&reservations, costs) {
            Ok(table) => {
                return Ok(Fit {
                    reservations,
                    table,
                });
            }
            Err(refusal) => last = Some(refusal),
        }
        tried += 1;
        if tried == MOST_PLANS {
            break;
        }
    }
    Err(Unfit::NoTable { tried, last })
}

/// For each device what serves it, the cheapest first.
fn choices(
    devices: &[Device],
    periods: &[Span],
    granularity: Span,
    costs: &PlanCosts,
) -> Result<Vec<Vec<Reservation>>, Unfit> {
    let supply = |reservation| Some(ExplicitDeadline::continuous(reservation));
    let offers = devices.iter().enumerate().map(|(device, asked)| {
        let least = least_reservations(asked, periods, granularity, supply)?;
        let least = least.into_iter().flatten();
        let mut offers: Vec<Reservation> = least
            .filter_map(|offer| long_enough(offer, costs))
            .collect();
        offers.sort_by(|a, b| {
            let by_share = compare_shares(*a, *b);
            by_share.then_with(|| Reverse(a.period()).cmp(&Reverse(b.period())))
        });
        if offers.is_empty() {
            return Err(Unfit::Device { device });
        }
        Ok(offers)
    });
    offers.collect()
}

/// No slot may be shorter than the dispatcher can keep.
fn long_enough(offer: Reservation, costs: &PlanCosts) -> Option<Reservation> {
    let service = offer.service().max(costs.granularity.as_full_service());
    Reservation::new(service, offer.period()).ok()
}

/// X/Y in units of 2⁻⁶⁰, rounded down.
fn share(reservation: Reservation) -> u128 {
    (u128::from(reservation.service().as_nanos()) << POINT)
        / u128::from(reservation.period().as_nanos())
}

/// The dispatcher's time for one slot a period, likewise.
fn overhead(reservation: Reservation, costs: &PlanCosts) -> u128 {
    (u128::from(costs.per_slot.as_nanos()) << POINT) / u128::from(reservation.period().as_nanos())
}

const fn is_more_than(share: u128, available_ppm: u64) -> bool {
    share * 1_000_000 > (available_ppm as u128) << POINT
}

/// All sets of one offer for each device, by the sum of their shares, the least first; of equal ones the fewest slots a second.
struct Sets<'a> {
    choices: &'a [Vec<Reservation>],
    /// Sum, slots a second, and which offer for each device.
    next: BinaryHeap<Reverse<(u128, u128, Vec<usize>)>>,
    seen: BTreeSet<Vec<usize>>,
}

impl<'a> Sets<'a> {
    fn of(choices: &'a [Vec<Reservation>]) -> Self {
        let mut this = Self {
            choices,
            next: BinaryHeap::new(),
            seen: BTreeSet::new(),
        };
        this.add(vec![0; choices.len()]);
        this
    }

    fn add(&mut self, set: Vec<usize>) {
        let chosen = self.reservations(&set);
        let sum = chosen.iter().map(|r| share(*r)).sum();
        let a_second = |r: &Reservation| u128::from(u64::MAX) / u128::from(r.period().as_nanos());
        let slots = chosen.iter().map(a_second).sum();
        if self.seen.insert(set.clone()) {
            self.next.push(Reverse((sum, slots, set)));
        }
    }

    fn reservations(&self, set: &[usize]) -> Vec<Reservation> {
        let chosen = self.choices.iter().zip(set);
        chosen.map(|(offers, index)| offers[*index]).collect()
    }
}

impl Iterator for Sets<'_> {
    type Item = Vec<Reservation>;

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse((_, _, set)) = self.next.pop()?;
        for device in 0..set.len() {
            let mut dearer = set.clone();
            dearer[device] += 1;
            if dearer[device] < self.choices[device].len() {
                self.add(dearer);
            }
        }
        Some(self.reservations(&set))
    }
}
