//! Texts of others as they may be shown: nothing in them steers a terminal, forges a line or turns the direction of writing.

use alloc::borrow::Cow;
use alloc::string::String;

/// What others wrote (a name, a title, a path), for a place within a line: whatever is more than a character to be read is written out, as
/// `\u{1b}` and `\n`.
pub fn plain(text: &str) -> Cow<'_, str> {
    written_out(text, steers)
}

/// The same of a text of several lines that we composed: they stay lines.
pub fn plain_lines(text: &str) -> Cow<'_, str> {
    written_out(text, |character| character != '\n' && steers(character))
}

/// Whether a terminal, or a reader's eye, takes it for more than itself: controls, ends of lines, and marks of direction and of nothing.
pub fn steers(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

fn written_out(text: &str, steers: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&steers) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if steers(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_steers_is_written_out_and_all_else_stays() {
        assert_eq!(plain("größer, ① – “so”"), "größer, ① – “so”");
        assert_eq!(
            plain("a\u{1b}[31m\r\nb\u{9b}2J"),
            r"a\u{1b}[31m\r\nb\u{9b}2J"
        );
        assert_eq!(plain("a\u{202e}cod.exe"), r"a\u{202e}cod.exe");
        assert_eq!(plain_lines("a\nb\u{7}"), "a\nb\\u{7}");
    }

    proptest! {
        #[test]
        fn nothing_steers_any_more(text in any::<String>()) {
            prop_assert!(!plain(&text).chars().any(steers));
            prop_assert!(!plain_lines(&text).replace('\n', "").chars().any(steers));
        }
    }
}
