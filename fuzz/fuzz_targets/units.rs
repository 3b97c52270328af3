//! What is read as a quantity is written and read back the same; nothing is rounded.
#![no_main]

use laxity_lab::scenario::units;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(span) = units::span(text) {
        assert_eq!(units::span(&units::format_span(span)), Ok(span));
        assert_eq!(units::service(text), Ok(span.as_full_service()));
    }
    if let Ok(reservation) = units::reservation(text) {
        assert_eq!(units::asked(text), Ok(units::Asked::Given(reservation)));
        let written = units::format_reservation(reservation);
        assert_eq!(units::reservation(&written), Ok(reservation));
        assert!(reservation.service().as_nanos() <= reservation.period().as_nanos());
    }
    if let Ok(share) = units::share(text) {
        assert!(share.ppm <= 1_000_000);
        assert_eq!(units::share(&share.to_string()), Ok(share));
    }
    if let Ok(load) = units::load(text) {
        assert!(load.tolerance < load.share || load.share.ppm == 0);
        assert_eq!(units::load(&load.to_string()), Ok(load));
    }
    if let Ok(bytes) = units::bytes(text) {
        assert_eq!(units::bytes(&format!("{bytes} B")), Ok(bytes));
    }
    if let Ok(level) = units::level_mdb(text) {
        let (whole, thousandths) = (level / 1_000, level % 1_000);
        assert_eq!(
            units::level_mdb(&format!("{whole}.{thousandths:03} dB")),
            Ok(level)
        );
    }
    if let Ok(offset) = units::offset_ppb(text) {
        assert_eq!(units::offset_ppb(&format!("{offset} ppb")), Ok(offset));
    }
    if let Ok(frequency) = units::frequency_mhz(text) {
        assert_eq!(
            units::frequency_mhz(&format!("{frequency} mHz")),
            Ok(frequency)
        );
    }
});
