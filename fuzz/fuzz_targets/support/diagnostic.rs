//! What every diagnostic of a text must be.

use laxity_lab::scenario::{Diagnostic, Style};

/// It points into the text, says why and what would be right, and can be shown.
pub fn check(found: &Diagnostic, text: &str) {
    let line = text.split('\n').nth(found.line - 1);
    let line = line.expect("the line is one of the text's");
    let columns = 1..=line.chars().count() + 1;
    assert!(columns.contains(&found.column), "{found:?}");
    assert!(
        !found.cause.is_empty() && !found.remedy.is_empty(),
        "{found:?}"
    );
    assert!(!found.render(Style::Plain).is_empty());
}
