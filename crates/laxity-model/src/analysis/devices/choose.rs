//! What a device should ask for.

use alloc::vec::Vec;
use core::cmp::{Ordering, Reverse};

use super::{Device, serves};
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Fraction, Result};
use crate::{Reservation, Span};

/// The least X, a multiple of `granularity` (of 1 ns if that is zero), for which X every `period` serves the device; `None` if not even the largest multiple in
/// the period does.
///
/// `supply` says what a reservation is worth: [`ExplicitDeadline::continuous`](crate::analysis::supply::ExplicitDeadline::continuous) for slots,
/// [`ExplicitDeadline::periodic`](crate::analysis::supply::ExplicitDeadline::periodic), or
/// [`KernelDeadline::alone`](crate::analysis::supply::KernelDeadline::alone) with a tick; `None` for what it cannot be. More X must not
/// give less. Exact as [`serves`] is; an answer that is unknown counts as no. Cost: [`serves`] at most 64 times.
///
/// ```
/// use laxity_model::analysis::devices::{Device, least_reservation};
/// use laxity_model::analysis::supply::ExplicitDeadline;
/// use laxity_model::{Service, Span};
///
/// let modem = Device::duplex(Service::from_micros(1_840), Span::from_micros(12_500), 90, 512, 104)?;
/// let millisecond = Span::from_millis(1);
/// let supply = |reservation| Some(ExplicitDeadline::continuous(reservation));
/// let least = least_reservation(&modem, Span::from_millis(16), millisecond, supply);
/// assert_eq!(least.unwrap().map(|r| r.service()), Some(Service::from_millis(4)));
/// # Ok::<(), laxity_model::analysis::devices::DeviceError>(())
/// ```
pub fn least_reservation<S: SupplyBound>(
    device: &Device,
    period: Span,
    granularity: Span,
    supply: impl Fn(Reservation) -> Option<S>,
) -> Result<Option<Reservation>> {
    crate::analysis::supply::least_reservation(period, granularity, |asked| match supply(asked) {
        Some(supply) => Ok(serves(device, &supply)?.is_served()),
        None => Ok(false),
    })
}

/// The least reservation for each of these periods, in their order.
pub fn least_reservations<S: SupplyBound>(
    device: &Device,
    periods: &[Span],
    granularity: Span,
    supply: impl Fn(Reservation) -> Option<S>,
) -> Result<Vec<Option<Reservation>>> {
    let least = |period: &Span| least_reservation(device, *period, granularity, &supply);
    periods.iter().map(least).collect()
}

/// Of these, the one with the least share; of several, that with the longest period, which has the fewest edges in a second. Exact.
pub fn cheapest(reservations: impl IntoIterator<Item = Reservation>) -> Option<Reservation> {
    reservations.into_iter().min_by(compare_costs)
}

/// By the order of [`cheapest`].
pub(super) fn compare_costs(a: &Reservation, b: &Reservation) -> Ordering {
    let by_share = compare_shares(*a, *b);
    by_share.then_with(|| Reverse(a.period()).cmp(&Reverse(b.period())))
}

/// X/Y against X/Y.
pub(super) fn compare_shares(a: Reservation, b: Reservation) -> Ordering {
    let share =
        |reservation: Reservation| Fraction::of(reservation.service(), reservation.period());
    share(a).cmp(&share(b))
}
