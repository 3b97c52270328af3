//! Any text is a scenario that resolves, or has diagnostics that point into it.
#![no_main]

use laxity_lab::scenario::{Diagnostic, Length, Style, parse};
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

fn check(found: &Diagnostic, text: &str) {
    let lines = text.split('\n').count();
    assert!((1..=lines).contains(&found.line), "{found:?}");
    let line = text.split('\n').nth(found.line - 1).unwrap_or_default();
    assert!(
        (1..=line.chars().count() + 1).contains(&found.column),
        "{found:?}"
    );
    assert!(
        !found.cause.is_empty() && !found.remedy.is_empty(),
        "{found:?}"
    );
    assert!(!found.render(Style::Plain).is_empty());
}
