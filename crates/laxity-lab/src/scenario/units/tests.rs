use super::*;
use laxity_model::Reservation;
use proptest::prelude::*;

#[test]
fn durations_are_exact() {
    let nanos = |text| span(text).map(Span::as_nanos);
    assert_eq!(nanos("0.1ms"), Ok(100_000));
    assert_eq!(nanos("10us"), Ok(10_000));
    assert_eq!(nanos("10µs"), Ok(10_000));
    assert_eq!(nanos("10 μs"), Ok(10_000));
    assert_eq!(nanos("2 s"), Ok(2_000_000_000));
    assert_eq!(nanos("0.000000001s"), Ok(1));
    assert_eq!(nanos("18446744073709551615ns"), Ok(u64::MAX));
    assert_eq!(nanos("0001.5000ms"), Ok(1_500_000));
}

#[test]
fn what_is_no_duration_is_told_apart() {
    let cause = |text: &str| span(text).expect_err(text).cause;
    assert_eq!(cause("8"), "`8` has no unit");
    assert_eq!(
        cause("-8ms"),
        "a duration must not be negative, found `-8ms`"
    );
    assert_eq!(cause("8 hours"), "`hours` is no unit of a duration");
    assert_eq!(cause("0.1ns"), "`0.1ns` is no whole number of nanoseconds");
    assert_eq!(
        cause("18446744073709551616ns"),
        "`18446744073709551616ns` is larger than can be counted"
    );
    let long = format!("{}s", "9".repeat(40));
    let error = span(&long).expect_err("too long");
    assert!(error.cause.ends_with("is larger than can be counted"));
    for text in ["", "ms", "soon", ".5ms", "5.ms", "1.2.3ms", "+1ms", "١ms"] {
        let cause = cause(text);
        assert!(cause.contains("does not begin with a number"), "{cause}");
    }
    let comma = span("0,5ms").expect_err("a comma").to_string();
    assert_eq!(comma, "`0,5ms` has a comma; write a point: \"0.5ms\"");
    let in_both = asked("0,5ms/8ms").expect_err("a comma").to_string();
    assert_eq!(in_both, format!("`0,5ms/8ms` is no reservation: {comma}"));
    assert_eq!(cause("1,ms"), "`,ms` is no unit of a duration");
    assert_eq!(cause("1e3ms"), "`e3ms` is no unit of a duration");
    assert_eq!(cause("1_000us"), "`_000us` is no unit of a duration");
    assert_eq!(cause("1MS"), "`MS` is no unit of a duration");
}

#[test]
fn reservations_are_checked_as_a_whole() {
    let good = Reservation::new(Service::from_micros(100), Span::from_micros(2_500)).ok();
    assert_eq!(reservation("0.1ms / 2.5ms").ok(), good);
    let cause = |text| reservation(text).expect_err(text).cause;
    assert!(cause("9ms/8ms").contains("does not fit"));
    assert!(cause("0ms/8ms").contains("more than zero"));
    assert!(cause("2ms/0ms").contains("more than zero"));
    assert!(cause("2ms/86401s").contains("more than a day"));
    for open in ["auto/86401s", "86401s/auto"] {
        let told = asked(open).expect_err(open).cause;
        assert!(told.contains("86401s") || told.contains("a day"), "{told}");
    }
    let wrong = [
        ("2/8ms", "`2` has no unit"),
        ("1/0", "`1` has no unit"),
        ("1ms/2ms/3ms", "`ms/3ms` is no unit of a duration"),
        ("a/b", "`a` does not begin with a number"),
    ];
    for (text, part) in wrong {
        assert_eq!(cause(text), format!("`{text}` is no reservation: {part}"));
    }
    let of_words = asked("a/b").expect_err("words").to_string();
    let words = "`a/b` is no reservation: `a` is no duration; write both as in \"2ms/8ms\", or \"auto\" for what laxity is to propose";
    assert_eq!(of_words, words);
    assert_eq!(cause("2ms"), "`2ms` is no reservation");
}

#[test]
fn loads_have_a_tolerance() {
    let both = |text| load(text).map(|l| (l.share.ppm, l.tolerance.ppm));
    assert_eq!(both("14.7 % ± 0.7"), Ok((147_000, 7_000)));
    assert_eq!(both("14.7% +- 1 %"), Ok((147_000, 10_000)));
    assert_eq!(both("25 %"), Ok((250_000, 7_000)));
    assert!(both("5 % ± 5").is_err());
    // The tolerance that is not named is no exception.
    assert!(both("0.5 %").is_err());
    assert_eq!(both("0.5 % ± 0.1"), Ok((5_000, 1_000)));
    assert!(both("101 %").is_err());
    assert!(both("14.7").is_err());
}

#[test]
fn other_quantities() {
    assert_eq!(bytes("8 kB"), Ok(8_000));
    assert_eq!(bytes("1 MiB"), Ok(1_048_576));
    assert!(bytes("0.5 B").is_err());
    assert_eq!(level_mdb("52.25 dB"), Ok(52_250));
    assert_eq!(offset_ppb("-50 ppm"), Ok(-50_000));
    assert_eq!(offset_ppb("+7 ppb"), Ok(7));
    assert_eq!(frequency_mhz("0.5 Hz"), Ok(500));
    assert_eq!(factor_ppm("1.05"), Ok(1_050_000));
}

proptest! {
    #[test]
    fn a_duration_survives_writing(nanos: u64) {
        let original = Span::from_nanos(nanos);
        prop_assert_eq!(span(&format_span(original)), Ok(original));
    }

    /// Where the model's short form shows every digit, it is read back too.
    #[test]
    fn the_short_form_is_read_too(micros in 0_u64..1_000_000) {
        let original = Span::from_micros(micros);
        prop_assert_eq!(span(&original.to_string()), Ok(original));
    }

    #[test]
    fn a_reservation_survives_writing(service in 1..=Reservation::LONGEST.as_nanos(), rest: u64) {
        let period = Span::from_nanos(service.saturating_add(rest)).min(Reservation::LONGEST);
        let original = Reservation::new(Service::from_nanos(service), period).expect("fits");
        prop_assert_eq!(reservation(&format_reservation(original)), Ok(original));
    }

    #[test]
    fn a_load_survives_writing(share in 2_u32..=1_000_000, part: u32) {
        let original = Load {
            share: Share { ppm: share },
            tolerance: Share { ppm: part % share },
        };
        prop_assert_eq!(load(&original.to_string()), Ok(original));
    }

    #[test]
    fn decimals_agree_with_scaled_integers(whole in 0_u64..1_000_000, micros in 0_u64..1_000_000) {
        let text = format!("{whole}.{micros:06}s");
        let nanos = (whole * 1_000_000 + micros) * 1_000;
        prop_assert_eq!(span(&text), Ok(Span::from_nanos(nanos)));
    }

    #[test]
    fn nothing_panics(text in "\\PC*") {
        let _ = (span(&text), reservation(&text), load(&text), bytes(&text));
        let _ = (level_mdb(&text), offset_ppb(&text), frequency_mhz(&text), factor_ppm(&text));
    }

    #[test]
    fn nothing_almost_right_panics(text in "[-+−]?[0-9]{0,45}[.]?[0-9]{0,45} ?(ns|us|µs|ms|s|kB|%|dB|ppm|Hz)?(/| ± )?[0-9.ms%]{0,8}") {
        let _ = (span(&text), reservation(&text), load(&text), bytes(&text));
        let _ = (level_mdb(&text), offset_ppb(&text), frequency_mhz(&text), factor_ppm(&text));
    }
}
