//! What every diagnostic of a text must be.

use laxity_lab::scenario::{Diagnostic, Style};

/// It points into the text, says why and what would be right, and can be shown on any terminal.
pub fn check(found: &Diagnostic, text: &str) {
    let line = text.split('\n').nth(found.line - 1);
    let line = line.expect("the line is one of the text's");
    let columns = 1..=line.chars().count() + 1;
    assert!(columns.contains(&found.column), "{found:?}");
    assert!(
        !found.cause.is_empty() && !found.remedy.is_empty(),
        "{found:?}"
    );
    let shown = found.render(Style::Plain);
    assert!(!shown.is_empty());
    assert_eq!(laxity_lab::plain_lines(&shown), shown, "it steers a terminal");
}
