//! Command lines: what is understood as a number to dial is written and understood again.
#![no_main]

use laxity_devices::link::at::{DialString, MAX_DIAL_CHARS};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    if let Some(number) = DialString::of_command(octets) {
        assert!((1..=MAX_DIAL_CHARS).contains(&number.digits().len()));
        let line = format!("ATDT{}", number.digits());
        assert_eq!(DialString::of_command(line.as_bytes()), Some(number));
    }
});
