//! Any text is a task set, or has errors that point into it.
#![no_main]

#[path = "support/diagnostic.rs"]
mod diagnostic;

use diagnostic::check;
use laxity_lab::import::{Format, MOST_TASKS, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match read(text, "fuzz.csv", Format::Csv) {
        Ok(set) => {
            assert!((1..=MOST_TASKS).contains(&set.tasks.len()));
            // A task of this format always says what it does.
            assert!(set.tasks.iter().all(|task| task.work.is_ok()));
            assert_eq!(read(text, "fuzz.csv", Format::Csv), Ok(set));
        }
        Err(errors) => {
            assert!(!errors.is_empty(), "refused without a reason");
            errors.iter().for_each(|error| check(error, text));
        }
    }
});
