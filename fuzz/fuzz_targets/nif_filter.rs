//! Any text is a filter that can be registered once and not twice, or an error that points into it.
#![no_main]

use laxity_model::nif::filter::{Filter, MOST};
use laxity_model::nif::frame::{Behind, Tail};
use laxity_model::nif::table::Table;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut table = Table::new(1);
    let mut kept = Vec::new();
    // Each line is a filter.
    for line in text.lines() {
        match Filter::parse(line, Tail::new(Behind::Udp, 0, 4)) {
            Ok(filter) => {
                assert!((1..=MOST).contains(&filter.alternatives().len()));
                if let Ok(registration) = table.insert(filter.clone(), ()) {
                    kept.push(registration);
                    assert!(table.insert(filter, ()).is_err());
                }
            }
            Err(error) => {
                assert!((1..=line.chars().count() + 1).contains(&error.column));
            }
        }
    }
    assert_eq!(table.len(), kept.len());
    kept.into_iter().for_each(|kept| assert!(table.remove(kept).is_some()));
    assert_eq!((table.len(), table.masks()), (0, 0));
});
