//! Colour in verdicts and messages, where somebody reads them on a terminal.

use std::borrow::Cow;
use std::ffi::OsString;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use clap::ValueEnum;

/// Whether verdicts and messages have colour.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Colour {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Also in a file or a pipe.
    Always,
    /// Nowhere.
    Never,
}

impl Colour {
    /// What a command line asks for that cannot be read as a whole: only that is told then.
    pub(crate) fn asked(arguments: impl IntoIterator<Item = OsString>) -> Self {
        // What comes after these is for another program.
        let arguments = arguments.into_iter().take_while(|word| word != "--");
        let texts = arguments.map(|word| word.to_string_lossy().into_owned());
        let texts: Vec<String> = texts.collect();
        let next = texts.iter().skip(1).map(Some).chain([None]);
        let values = texts.iter().zip(next).filter_map(|(word, next)| {
            let value = word.strip_prefix("--color")?;
            value
                .strip_prefix('=')
                .or(next.filter(|_| value.is_empty()).map(|next| &**next))
        });
        let read = values.filter_map(|value| Self::from_str(value, false).ok());
        read.last().unwrap_or_default()
    }

    /// For all that is printed from now on.
    pub(crate) fn choose(self) {
        let choice = match self {
            Self::Auto => ColorChoice::Auto,
            Self::Always => ColorChoice::Always,
            Self::Never => ColorChoice::Never,
        };
        choice.write_global();
    }
}

/// Whether what goes to this stream has colour.
pub(crate) fn is_wanted(stream: &impl RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}

/// A text as it is for standard output.
pub(crate) fn painted(text: &str) -> Cow<'_, str> {
    if !is_wanted(&std::io::stdout()) {
        return text.into();
    }
    let lines = text.split_inclusive('\n').map(line);
    lines.collect::<String>().into()
}

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const OPEN: Style = AnsiColor::Yellow.on_default();

/// The style of what is a verdict as a whole. One that was not expected is marked, and stands out.
fn style(words: &str) -> Option<Style> {
    if let Some(unexpected) = words.strip_suffix('!') {
        return style(unexpected).map(|_| BAD.bold());
    }
    Some(match words {
        "met" | "as expected" | "admitted" | "admits" | "enforced" | "agrees" | "held" | "ok" => {
            GOOD
        }
        "violated" | "refused" | "REFUSED" | "refuses" | "unenforced" | "disagrees"
        | "not held" | "missing" => BAD,
        "inconclusive" | "unknown" | "UNKNOWN" | "cannot tell" | "limited" | "uncertain" => OPEN,
        _ => return None,
    })
}

/// A line with its verdicts painted: those that fill a cell of a table, but for the first, and what a line that begins at the margin says behind
/// its head. What is painted was laid out before: escapes have no width there.
fn line(line: &str) -> Cow<'_, str> {
    let head = line.split_once(": ").filter(|_| !line.starts_with(' '));
    if let Some((head, told)) = head {
        let end = told.find([',', ';', '(', '\n']).unwrap_or(told.len());
        let (verdict, rest) = told.split_at(end);
        let (verdict, gap) = verdict.split_at(verdict.trim_end().len());
        if let Some(style) = style(verdict) {
            return format!("{head}: {style}{verdict}{style:#}{gap}{rest}").into();
        }
    }
    let mut painted = String::new();
    let mut shown = 0;
    for (at, cell) in cells(line).skip(1) {
        if let Some(style) = style(cell) {
            painted.push_str(&line[shown..at]);
            painted.push_str(&format!("{style}{cell}{style:#}"));
            shown = at + cell.len();
        }
    }
    if shown == 0 {
        return line.into();
    }
    painted.push_str(&line[shown..]);
    painted.into()
}

/// What stands apart from the rest of a line by two blanks or more, and where it begins.
fn cells(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    let parts = line.split("  ").map(move |part| {
        let begins = at + part.len() - part.trim_start().len();
        at += part.len() + 2;
        (begins, part.trim())
    });
    parts.filter(|(_, cell)| !cell.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpainted(text: &str) -> String {
        let mut plain = String::new();
        let mut rest = text;
        while let Some((before, escape)) = rest.split_once('\u{1b}') {
            plain.push_str(before);
            rest = escape.split_once('m').map_or("", |(_, rest)| rest);
        }
        plain + rest
    }

    #[test]
    fn verdicts_are_painted_and_nothing_else_is() {
        let (green, red, off) = ("\u{1b}[32m", "\u{1b}[31m", "\u{1b}[0m");
        for (plain, expected) in [
            ("met  0.1   met\n", format!("met  0.1   {green}met{off}\n")),
            (
                "x   violated   ok\n",
                format!("x   {red}violated{off}   {green}ok{off}\n"),
            ),
            ("x  met!\n", format!("x  \u{1b}[1m\u{1b}[31mmet!{off}\n")),
            (
                "verdict: met (every variant came as expected), exit code 0\n",
                format!("verdict: {green}met{off} (every variant came as expected), exit code 0\n"),
            ),
            (
                "set.csv (CSV, 2 tasks) on a processor of its own: REFUSED\n",
                format!("set.csv (CSV, 2 tasks) on a processor of its own: {red}REFUSED{off}\n"),
            ),
            (
                "    hyperbolic  admits\n",
                format!("    hyperbolic  {green}admits{off}\n"),
            ),
            (
                "rogue: inconclusive, expected met\n",
                format!("rogue: \u{1b}[33minconclusive{off}, expected met\n"),
            ),
        ] {
            assert_eq!(line(plain), expected);
            assert_eq!(unpainted(&expected), plain, "nothing moves");
        }
        for plain in [
            "  - pc99: met nobody\n",
            "it is not met\n",
            "a  it was met  b\n",
            "note: met by chance\n",
            "ok\n",
            "",
        ] {
            assert_eq!(line(plain), plain);
        }
    }
}
