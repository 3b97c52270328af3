//! What laxity proposes to a device whose calls were measured.

use alloc::vec::Vec;
use core::cmp::Reverse;

use super::choose::compare_costs;
use super::{Device, least_reservation, least_reservations, serves};
use crate::analysis::Result;
use crate::analysis::supply::SupplyBound;
use crate::{Reservation, Service, Span};

/// What of a reservation is left to be proposed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Open {
    /// X, every so much.
    Service(Span),
    /// Y, for so much service.
    Period(Service),
    /// Both.
    Both,
}

/// What a call is taken to take beyond the longest that was measured, in parts per million.
///
/// The longest of a thousand calls lies a fifth to a third above their median already. A quarter more holds when the machine then becomes slower by 30 %
/// than it was for most of them; and where it does not, X is at most 1.25 times the least that would have served, and less where X grows slower than C.
pub const MARGIN_PPM: u64 = 250_000;

/// The work of a call that is planned for where the longest one measured took so much: [`MARGIN_PPM`] more, rounded up.
pub fn with_margin(longest: Service) -> Service {
    let longest = longest.as_nanos();
    let more = (u128::from(longest) * u128::from(MARGIN_PPM)).div_ceil(1_000_000);
    let more = u64::try_from(more).unwrap_or(u64::MAX);
    Service::from_nanos(longest.saturating_add(more))
}

/// The least reservation that serves the device, of what is left open: X a multiple of `granularity`, Y one of `periods`; `None` if
/// none serves. Of X every given Y the least X; of a given X the longest Y; of both the [`cheapest`](super::cheapest).
///
/// `supply` says what a reservation is worth, as in [`least_reservation`], and `is_left` whether it would be granted: more X than what is not left is
/// not looked for. Exact as [`serves`] is. Cost: [`serves`] at most 64 times for each period, and `is_left` at most once.
///
/// ```
/// use laxity_model::analysis::devices::{Device, Open, propose, with_margin};
/// use laxity_model::analysis::supply::ExplicitDeadline;
/// use laxity_model::{Service, Span};
///
/// let work = with_margin(Service::from_millis(2));
/// assert_eq!(work, Service::from_micros(2_500));
/// let modem = Device::duplex(work, Span::from_micros(12_500), 200, 512, 200)?;
/// let periods = [Span::from_millis(4), Span::from_millis(8)];
/// let supply = |reservation| Some(ExplicitDeadline::continuous(reservation));
/// let grain = Span::from_micros(50);
/// let of = |open| propose(&modem, open, (&periods, grain), supply, |_| true).unwrap();
/// let every_8 = of(Open::Service(Span::from_millis(8))).expect("one serves");
/// assert_eq!(every_8.service(), Service::from_micros(2_500));
/// let of_2 = of(Open::Period(Service::from_millis(2))).expect("one serves");
/// assert_eq!(of_2.period(), Span::from_millis(4));
/// # Ok::<(), laxity_model::analysis::devices::DeviceError>(())
/// ```
pub fn propose<S: SupplyBound>(
    device: &Device,
    open: Open,
    (periods, granularity): (&[Span], Span),
    supply: impl Fn(Reservation) -> Option<S>,
    is_left: impl Fn(Reservation) -> bool,
) -> Result<Option<Reservation>> {
    let all = options(device, open, (periods, granularity), supply)?;
    Ok(all.into_iter().find(|one| is_left(*one)))
}

/// All that [`propose`] chooses from, what it prefers first: of a given Y the one least X; of a given X every Y that serves the device, the
/// longest first; of both the least X at each Y, the cheapest first. Cost: [`serves`] at most 64 times for each period.
pub fn options<S: SupplyBound>(
    device: &Device,
    open: Open,
    (periods, granularity): (&[Span], Span),
    supply: impl Fn(Reservation) -> Option<S>,
) -> Result<Vec<Reservation>> {
    match open {
        Open::Service(period) => {
            let least = least_reservation(device, period, granularity, supply)?;
            Ok(Vec::from_iter(least))
        }
        Open::Both => {
            let least = least_reservations(device, periods, granularity, supply)?;
            let mut least = Vec::from_iter(least.into_iter().flatten());
            least.sort_by(compare_costs);
            Ok(least)
        }
        Open::Period(service) => {
            let mut found = Vec::new();
            for period in periods {
                let offer = Reservation::new(service, *period).ok();
                let Some((offer, supply)) = offer.and_then(|offer| Some((offer, supply(offer)?)))
                else {
                    continue;
                };
                if serves(device, &supply)?.is_served() {
                    found.push(offer);
                }
            }
            found.sort_by_key(|offer| Reverse(offer.period()));
            found.dedup();
            Ok(found)
        }
    }
}
