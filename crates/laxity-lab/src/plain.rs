//! Texts of others as they may be shown: nothing in them steers a terminal, forges a line or turns the direction of writing.

use std::borrow::Cow;

/// What others wrote (a name, a title, a path), for a place within a line: whatever is more than a character to be read is written out, as
/// `\u{1b}` and `\n`.
pub fn plain(text: &str) -> Cow<'_, str> {
    written_out(text, steers)
}

/// The same of a text of several lines that we composed: they stay lines.
pub fn plain_lines(text: &str) -> Cow<'_, str> {
    written_out(text, |character| character != '\n' && steers(character))
}

/// A program with its arguments, as a shell would take it.
pub fn command_line(argv: &[String]) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    let words = argv.iter().map(|word| {
        if !word.is_empty() && word.chars().all(is_bare) {
            return word.clone();
        }
        format!("'{}'", plain(word).replace('\'', r"'\''"))
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Why this is no text of a file that can stand in a table, and what would be one.
pub(crate) fn unfit(text: &str) -> Option<(String, &'static str)> {
    text.chars().any(steers).then(|| {
        let cause = format!("`{}` has a control character", plain(text));
        let remedy = "write it in one line, without tabs and escape sequences";
        (cause, remedy)
    })
}

/// Whether a terminal, or a reader's eye, takes it for more than itself: controls, ends of lines, and marks of direction and of nothing.
pub(crate) fn steers(character: char) -> bool {
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

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let argv = ["sh", "-c", "echo 'a'\n\u{1b}c", ""].map(str::to_owned);
        assert_eq!(command_line(&argv), r"sh -c 'echo '\''a'\''\n\u{1b}c' ''");
    }

    proptest! {
        #[test]
        fn nothing_steers_any_more(text in any::<String>()) {
            prop_assert!(!plain(&text).chars().any(steers));
            prop_assert!(!plain_lines(&text).replace('\n', "").chars().any(steers));
        }
    }
}
