//! Any text is a task set, or has errors that point into it.
#![no_main]

use laxity_lab::import::{Format, MOST_TASKS, read};
use laxity_lab::scenario::{Diagnostic, Style};
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

fn check(error: &Diagnostic, text: &str) {
    let line = text.split('\n').nth(error.line - 1);
    let line = line.expect("the line is one of the text's");
    let columns = 1..=line.chars().count() + 1;
    assert!(columns.contains(&error.column), "{error:?}");
    assert!(
        !error.cause.is_empty() && !error.remedy.is_empty(),
        "{error:?}"
    );
    assert!(!error.render(Style::Plain).is_empty());
}
