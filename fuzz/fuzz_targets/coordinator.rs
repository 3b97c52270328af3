//! Any bytes are a message between a process and its coordinator that is written and read back the same, or none; and whatever a process asks for has an answer.
#![no_main]

use std::collections::BTreeMap;

use laxity_model::program::coordinator::{Answer, Ask, Registry, Terms, Who};
use laxity_model::{Service, Span};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(answer) = Answer::decode(bytes) {
        assert_eq!(Answer::decode(&answer.encode()), Ok(answer));
    }
    let Ok(ask) = Ask::decode(bytes) else {
        return;
    };
    assert_eq!(Ask::decode(&ask.encode()), Ok(ask.clone()));
    if let Ask::Hold { items, keep } = ask {
        let mut registry = Registry::new(Terms {
            longest: Service::MAX,
            tolerance: Service::from_micros(250),
            switches: Span::from_micros(90),
            pass: Service::from_micros(20),
            share_ppm: u64::MAX,
            quotas: BTreeMap::new(),
            seats_of_one: 1,
            kept: Span::from_secs(1),
        });
        let who = Who { process: 1, user: 1 };
        registry.joins(0, who, "");
        let held = registry.holds(0, items.clone(), keep);
        if let Answer::Held(bounds) = held {
            assert_eq!(bounds.len(), items.len());
            // What fits, fits again in its own place.
            assert!(matches!(registry.holds(0, items, true), Answer::Held(_)));
        }
    }
});
