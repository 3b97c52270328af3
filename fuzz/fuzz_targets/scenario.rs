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
            for length in [Length::Quick, Length::Full] {
                let resolved = scenario.resolve(length);
                assert_eq!(resolved.variants.len(), scenario.variants.len());
            }
            assert_eq!(parse(text, "fuzz.toml").as_ref(), Ok(&scenario));
        }
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty(), "refused without a reason");
            diagnostics.iter().for_each(|found| check(found, text));
        }
    }
});
