//! What rt-app's dialect has beyond what the JSON parser forgives: `"suspend",`, an event without a value.

use std::borrow::Cow;

/// The events that need no value: rt-app does not look at it.
const BARE: [&str; 2] = ["suspend", "yield"];

/// The text in which `"suspend"` without a value is `suspend:0`. That is as long: every byte else stays where it is, so that errors point
/// at the right place in the file.
pub(super) fn with_values(text: &str) -> Cow<'_, str> {
    let mut bare = Vec::new();
    let mut tokens = Tokens { text, at: 0 };
    let mut nesting = Vec::new();
    let mut before = b'{';
    let mut token = tokens.next();
    while let Some((start, kind)) = token {
        let end = tokens.at;
        token = tokens.next();
        match kind {
            b'{' | b'[' => nesting.push(kind),
            b'}' | b']' => {
                nesting.pop();
            }
            b'"' if nesting.last() == Some(&b'{') && before != b':' => {
                let alone = token.is_some_and(|(_, next)| matches!(next, b',' | b'}'));
                if alone && is_bare(&text[start + 1..end - 1]) {
                    bare.push((start, end));
                }
            }
            _ => {}
        }
        before = kind;
    }
    if bare.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut patched = text.to_owned();
    for (start, end) in bare {
        let value = format!("{}:0", &text[start + 1..end - 1]);
        patched.replace_range(start..end, &value);
    }
    Cow::Owned(patched)
}

/// Whether an event of this name needs no value; a name need only begin so.
fn is_bare(name: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    BARE.iter().any(|known| name.starts_with(known)) && name.bytes().all(is_word)
}

/// The tokens of a text, as far as they are needed: brackets, strings and all else by its first byte; comments and blanks are skipped.
struct Tokens<'t> {
    text: &'t str,
    at: usize,
}

impl Tokens<'_> {
    /// Where the next token begins, and its first byte (`"` for every kind of string); it ends at `self.at`.
    fn next(&mut self) -> Option<(usize, u8)> {
        loop {
            let rest = &self.text[self.at..];
            let skipped = if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if let Some(comment) = rest.strip_prefix("/*") {
                comment.find("*/").map_or(rest.len(), |end| end + 4)
            } else {
                rest.len() - rest.trim_start().len()
            };
            if skipped == 0 {
                break;
            }
            self.at += skipped;
        }
        let start = self.at;
        let first = self.text[start..].chars().next()?;
        self.at += first.len_utf8();
        if matches!(first, '"' | '\'') {
            self.end_string(first);
            return Some((start, b'"'));
        }
        Some((start, u8::try_from(first).unwrap_or(u8::MAX)))
    }

    /// Goes behind the quote that ends a string, or to the end of the text.
    fn end_string(&mut self, quote: char) {
        let mut escaped = false;
        for (at, character) in self.text[self.at..].char_indices() {
            if escaped {
                escaped = false;
            } else if character == '\\' {
                escaped = true;
            } else if character == quote {
                self.at += at + 1;
                return;
            }
        }
        self.at = self.text.len();
    }
}

#[cfg(test)]
mod tests {
    use super::with_values;
    use std::borrow::Cow;

    #[test]
    fn events_without_a_value_get_one_and_nothing_moves() {
        let cases = [
            (r#"{"suspend","run":1}"#, r#"{suspend:0,"run":1}"#),
            (r#"{"run":1,"suspend"}"#, r#"{"run":1,suspend:0}"#),
            (
                r#"{"run":1 'yield2' /* " */ , }"#,
                r#"{"run":1 yield2:0 /* " */ , }"#,
            ),
            (
                r#"{"p":{"suspend" // {
             ,}}"#,
                r#"{"p":{suspend:0 // {
             ,}}"#,
            ),
        ];
        for (text, wanted) in cases {
            assert_eq!(with_values(text), wanted);
            assert_eq!(text.len(), wanted.len());
        }
    }

    #[test]
    fn all_else_stays_as_it_is() {
        let texts = [
            r#"{"suspend":"x","run":1}"#,
            r#"{"a":"suspend","b":"yield"}"#,
            r#"{"a":["suspend","yield"]}"#,
            r#"{"lock","run":1}"#,
            r#"{"suspend it","run":1}"#,
            r#"{"a\",\"suspend":1} // "suspend","#,
            r#"/* {"suspend", */"#,
            r#"{"suspend"#,
            r#"{"suspend""#,
            "\"suspend\",",
            "'\\",
            "/*/",
            "",
        ];
        for text in texts {
            assert!(matches!(with_values(text), Cow::Borrowed(_)), "{text}");
        }
    }
}
