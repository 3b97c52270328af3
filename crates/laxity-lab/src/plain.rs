//! Texts of others as they may be shown in a command, and in files.

pub(crate) use laxity_model::base::plain::steers;
pub use laxity_model::base::plain::{plain, plain_lines};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let argv = ["sh", "-c", "echo 'a'\n\u{1b}c", ""].map(str::to_owned);
        assert_eq!(command_line(&argv), r"sh -c 'echo '\''a'\''\n\u{1b}c' ''");
    }
}
