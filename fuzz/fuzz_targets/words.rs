//! The words of contracts: what is read is written and read back the same.
#![no_main]

use laxity_model::verify::contract::{Expectation, Quantity};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|word: &str| {
    if let Ok(expectation) = word.parse::<Expectation>() {
        assert_eq!(expectation.to_string(), word);
    }
    if let Ok(quantity) = word.parse::<Quantity>() {
        assert_eq!(quantity.name(), word);
    }
});
