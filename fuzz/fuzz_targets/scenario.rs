//! Any text is a scenario that resolves, or has diagnostics that point into it.
#![no_main]

#[path = "support/diagnostic.rs"]
mod diagnostic;

use diagnostic::check;
use laxity_lab::scenario::{Length, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match parse(text, "fuzz.toml") {
        Ok(scenario) => {
            scenario.notes.iter().for_each(|note| check(note, text));
            // Devices are only compared by what they show.
            let shown = |value: &dyn std::fmt::Debug| format!("{value:?}");
            let again = parse(text, "fuzz.toml").expect("refused when read again");
            assert_eq!(shown(&again), shown(&scenario));
            let [quick, full] = [Length::Quick, Length::Full].map(|l| scenario.clone().resolve(l));
            assert_eq!(shown(&quick.variants), shown(&full.variants));
        }
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty(), "refused without a reason");
            diagnostics.iter().for_each(|found| check(found, text));
        }
    }
});
