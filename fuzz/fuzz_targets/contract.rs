//! Any text is a contract that reads the same again, or has diagnostics that point into it.
#![no_main]

#[path = "support/diagnostic.rs"]
mod diagnostic;

use diagnostic::check;
use laxity_lab::scenario::parse_contract;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match parse_contract(text, "fuzz.toml") {
        Ok(contract) => {
            let again = parse_contract(text, "fuzz.toml");
            assert_eq!(again.expect("refused when read again"), contract);
        }
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty(), "refused without a reason");
            diagnostics.iter().for_each(|found| check(found, text));
        }
    }
});
