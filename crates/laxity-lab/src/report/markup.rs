//! Text for between tags and quotes of HTML and SVG.

use crate::layout::printable;

/// Escapes what markup would obey, and replaces what XML forbids.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // Neither is a character of XML.
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn nothing_is_obeyed() {
        let hostile = "</title><script>\"'&\u{0}\u{1b}\u{ffff}";
        assert_eq!(
            escape(hostile),
            "&lt;/title&gt;&lt;script&gt;&quot;&#39;&amp;\u{fffd}\u{fffd}\u{fffd}"
        );
    }
}
