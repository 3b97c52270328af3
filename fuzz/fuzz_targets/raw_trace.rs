//! Event files: what is read is written and read back the same.
#![no_main]

use laxity_lab::evidence::raw::{decode, encode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(trace) = decode(bytes) {
        assert!(trace.events.len() * 32 <= bytes.len());
        let again = decode(&encode(&trace)).expect("what was written is read");
        assert_eq!(again, trace);
    }
});
