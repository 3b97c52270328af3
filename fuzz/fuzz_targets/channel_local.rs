//! Any bytes are what an application and its node say to each other, written and read back the same, or nothing.
#![no_main]

use laxity_net::channels::local::{Answer, Ask, MOST_BYTES, VERSION};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    heard(bytes);
    // With a header that fits: a kind, a number and a content.
    let Some((kind, rest)) = bytes.split_first() else {
        return;
    };
    let length = (rest.len() as u16).saturating_add(4).to_be_bytes();
    heard(&[&[VERSION, *kind][..], &length, rest].concat());
});

fn heard(bytes: &[u8]) {
    if let Ok(ask) = Ask::parse(bytes) {
        assert_eq!(ask.bytes(), bytes);
        assert!(bytes.len() <= MOST_BYTES && Answer::parse(bytes).is_err());
    }
    if let Ok(answer) = Answer::parse(bytes) {
        assert_eq!(answer.bytes(), bytes);
        assert!(answer.descriptors() <= 2);
    }
}
