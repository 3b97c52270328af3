//! Any text is a workload of rt-app, or has errors that point into it.
#![no_main]

use laxity_lab::import::{Format, MOST_TASKS, SetTask, read};
use laxity_lab::scenario::{Diagnostic, Style};
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
