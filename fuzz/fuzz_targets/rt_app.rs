//! Any text is a workload of rt-app, or has errors that point into it.
#![no_main]

#[path = "support/diagnostic.rs"]
mod diagnostic;

use diagnostic::check;
use laxity_lab::import::{Format, MOST_TASKS, SetTask, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match read(text, "fuzz.json", Format::RtApp) {
        Ok(set) => {
            assert!((1..=MOST_TASKS).contains(&set.tasks.len()));
            let named = |task: &&SetTask| task.work.is_err();
            let unknown = set.tasks.iter().filter(named).count();
            assert!(
                unknown == 0 || !set.notes.is_empty(),
                "not analysed, and not said so"
            );
            assert_eq!(read(text, "fuzz.json", Format::RtApp), Ok(set));
        }
        Err(errors) => {
            assert!(!errors.is_empty(), "refused without a reason");
            errors.iter().for_each(|error| check(error, text));
        }
    }
});
