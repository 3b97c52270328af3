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
            assert_eq!(parse(text, "fuzz.toml").as_ref(), Ok(&scenario));
            let [quick, full] = [Length::Quick, Length::Full].map(|l| scenario.clone().resolve(l));
            assert_eq!(quick.variants, full.variants);
        }
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty(), "refused without a reason");
            diagnostics.iter().for_each(|found| check(found, text));
        }
    }
});
