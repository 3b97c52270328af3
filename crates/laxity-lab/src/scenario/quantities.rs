//! Quantities as a file has them: a number with its unit, in a string.

use laxity_model::channels::fit::Rate;
use laxity_model::nif::most::Most;
use laxity_model::{Reservation, Service, Span};

use super::units::{self, UnitError};

/// A quantity that is written as a string with its unit.
pub(crate) struct Quantity<T> {
    pub(crate) what: &'static str,
    pub(crate) example: &'static str,
    pub(crate) parse: fn(&str) -> Result<T, UnitError>,
    /// As messages about its range have it.
    pub(crate) show: fn(T) -> String,
}

impl<T> Quantity<T> {
    /// A number of units.
    const fn of(
        scale: &units::Scale,
        parse: fn(&str) -> Result<T, UnitError>,
        show: fn(T) -> String,
    ) -> Self {
        Self {
            what: scale.what,
            example: scale.example,
            parse,
            show,
        }
    }
}

/// A duration.
pub(crate) const SPAN: Quantity<Span> =
    Quantity::of(&units::DURATION, units::span, units::format_span);
/// Processor time.
pub(crate) const SERVICE: Quantity<Service> =
    Quantity::of(&units::DURATION, units::service, |service| {
        units::format_span(service.as_dedicated_span())
    });
/// A reservation.
pub(crate) const RESERVATION: Quantity<Reservation> = Quantity {
    what: "a reservation",
    example: "2ms/8ms",
    parse: units::reservation,
    show: units::format_reservation,
};
/// A bound of packets.
pub(crate) const MOST: Quantity<Most> = Quantity {
    what: "a bound of packets",
    example: "32 packets every 1ms",
    parse: units::most,
    show: units::format_most,
};
/// How fast packets come.
pub(crate) const PACKETS: Quantity<Most> = Quantity {
    what: "a rate of packets",
    example: "3 packets every 100ms",
    ..MOST
};
/// How fast messages come.
pub(crate) const MESSAGES: Quantity<Rate> = Quantity {
    what: "a rate of messages",
    example: "30/s",
    parse: units::messages,
    show: units::format_messages,
};
/// A load with its tolerance.
pub(crate) const LOAD: Quantity<units::Load> = Quantity {
    what: "a load",
    example: "14.7 % ± 0.7",
    parse: units::load,
    show: |load| load.to_string(),
};
/// A size in bytes.
pub(crate) const SIZE: Quantity<u64> =
    Quantity::of(&units::SIZE, units::bytes, |bytes| format!("{bytes} B"));
/// Bits a second.
pub(crate) const RATE: Quantity<u64> = Quantity::of(&units::RATE, units::rate, units::format_rate);
/// A share in millionths.
pub(crate) const SHARE: Quantity<u32> =
    Quantity::of(&units::SHARE, units::millionths, units::format_share);
/// A signal-to-noise ratio.
pub(crate) const LEVEL: Quantity<u64> = Quantity::of(&units::LEVEL, units::level_mdb, |mdb| {
    format!("\"{} dB\"", mdb / 1_000)
});
/// A clock's offset.
pub(crate) const OFFSET: Quantity<i64> = Quantity::of(&units::OFFSET, units::offset_ppb, |ppb| {
    format!("\"{} ppm\"", ppb / 1_000)
});
/// A carrier's offset.
pub(crate) const FREQUENCY: Quantity<i64> =
    Quantity::of(&units::FREQUENCY, units::frequency_mhz, |mhz| {
        format!("\"{} Hz\"", mhz / 1_000)
    });
