//! Reservations, as people write them, and what of one is left to laxity.

use laxity_model::analysis::devices::Open;
use laxity_model::{Reservation, ReservationError, Service, Span};

use super::{UnitError, format_span, service, span};
use crate::scenario::reader::shortened;

/// A reservation, service before period: `2ms/8ms`.
pub fn reservation(text: &str) -> Result<Reservation, UnitError> {
    let remedy = "write service/period, both with unit, such as \"2ms/8ms\"";
    let (first, second) = text
        .split_once('/')
        .ok_or_else(|| UnitError::new(format!("`{}` is no reservation", text.trim()), remedy))?;
    let (amount, period) = (part(text, service(first))?, part(text, span(second))?);
    Reservation::new(amount, period).map_err(|error| {
        let remedy = match error {
            ReservationError::MoreThanAProcessor { .. } => {
                "ask for no more service than the period is long, such as \"2ms/8ms\""
            }
            ReservationError::NoService
            | ReservationError::NoPeriod
            | ReservationError::TooLong { .. } => remedy,
        };
        UnitError::new(error.to_string(), remedy)
    })
}

/// A part of it, or what is wrong with that.
fn part<T>(whole: &str, read: Result<T, UnitError>) -> Result<T, UnitError> {
    read.map_err(|UnitError { cause, remedy }| {
        let whole = shortened(whole.trim());
        UnitError::new(format!("`{whole}` is no reservation: {cause}"), remedy)
    })
}

/// A reservation of which laxity is to propose a part, or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// `2ms/8ms`.
    Given(Reservation),
    /// `auto/8ms`, `2ms/auto`, `auto/auto`.
    Open(Open),
}

impl Asked {
    /// What is left open.
    pub(in crate::scenario) const fn open(self) -> Option<Open> {
        match self {
            Self::Given(_) => None,
            Self::Open(open) => Some(open),
        }
    }

    /// A reservation with what is given, and otherwise a small one, until laxity has proposed one.
    pub(in crate::scenario) fn for_now(self) -> Reservation {
        let any = Span::from_millis(8);
        let (service, period) = match self {
            Self::Given(reservation) => return reservation,
            Self::Open(Open::Service(period)) => (period.as_nanos() / 1_000, period),
            Self::Open(Open::Period(service)) => (service.as_nanos(), any),
            Self::Open(Open::Both) => (any.as_nanos() / 1_000, any),
        };
        let service = Service::from_nanos(service.max(1));
        Reservation::new(service, period.max(service.as_dedicated_span()))
            .expect("some service, and no more than the period")
    }
}

/// A reservation of which X, Y or both may be left to laxity: `2ms/8ms`, `auto/8ms`, `2ms/auto`, `auto/auto`.
pub fn asked(text: &str) -> Result<Asked, UnitError> {
    const AUTO: &str = "auto";
    let Some((first, second)) = text.split_once('/') else {
        if text.trim() == AUTO {
            return Err(UnitError::new(
                "`auto` leaves open of which period",
                "write \"auto/8ms\" for X every 8 ms, or \"auto/auto\" for any period",
            ));
        }
        return reservation(text).map(Asked::Given);
    };
    for word in [first.trim(), second.trim()] {
        if word != AUTO && word.starts_with(char::is_alphabetic) {
            let wrong = UnitError::new(
                format!("`{}` is no duration", shortened(word)),
                "write both as in \"2ms/8ms\", or \"auto\" for what laxity is to propose",
            );
            return part(text, Err(wrong));
        }
    }
    match (first.trim() == AUTO, second.trim() == AUTO) {
        (false, false) => reservation(text).map(Asked::Given),
        (true, true) => Ok(Asked::Open(Open::Both)),
        (true, false) => {
            let period = part(text, span(second))?;
            // The least is never more than there is, and more than nothing.
            Reservation::new(Service::from_nanos(1), period)
                .map(|least| Asked::Open(Open::Service(least.period())))
                .map_err(|error| {
                    UnitError::new(error.to_string(), "write a period, such as \"auto/8ms\"")
                })
        }
        (false, true) => {
            let service = part(text, service(first))?;
            Reservation::new(service, Reservation::LONGEST)
                .map(|most| Asked::Open(Open::Period(most.service())))
                .map_err(|error| {
                    UnitError::new(error.to_string(), "write a service, such as \"2ms/auto\"")
                })
        }
    }
}

/// What is left open, as it is written: `auto/8ms`.
pub(crate) fn format_open(open: Open) -> String {
    match open {
        Open::Service(period) => format!("auto/{}", format_span(period)),
        Open::Period(service) => format!("{}/auto", format_span(service.as_dedicated_span())),
        Open::Both => "auto/auto".to_owned(),
    }
}

/// A reservation so that [`reservation`] reads back exactly the same.
pub fn format_reservation(reservation: Reservation) -> String {
    let service = reservation.service().as_dedicated_span();
    format!(
        "{}/{}",
        format_span(service),
        format_span(reservation.period())
    )
}
