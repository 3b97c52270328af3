//! The command with which an application dials: `ATDT<number>` (ITU-T V.250, clauses 5.2.1 and 6.3.1).
//!
//! ```
//! use laxity_devices::link::at::DialString;
//!
//! let number = DialString::of_command(b"atdt 555-1234").unwrap();
//! assert_eq!(number.digits(), "5551234");
//! ```

/// The longest dial string, in characters.
pub const MAX_DIAL_CHARS: usize = 40;

/// What to dial: digits, `*`, `#`, `A` to `D`, and pauses (`,`), not empty, at most [`MAX_DIAL_CHARS`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DialString(String);

impl DialString {
    /// Takes the characters of a number; spaces, hyphens, dots and parentheses between digits are left out. `None` if anything else is
    /// among them, or if they are too few or too many. Takes any octets.
    #[must_use]
    pub fn new(text: &[u8]) -> Option<Self> {
        let mut digits = String::new();
        for octet in text.iter().map(u8::to_ascii_uppercase) {
            match octet {
                b'0'..=b'9' | b'A'..=b'D' | b'*' | b'#' | b',' => digits.push(char::from(octet)),
                b' ' | b'-' | b'.' | b'(' | b')' => {}
                _ => return None,
            }
        }
        (1..=MAX_DIAL_CHARS)
            .contains(&digits.len())
            .then_some(Self(digits))
    }

    /// The number in a command line to dial with tones, without the character that ends the line. Letter case does not matter. `None` for
    /// any other line.
    #[must_use]
    pub fn of_command(line: &[u8]) -> Option<Self> {
        let (command, number) = line.trim_ascii().split_at_checked(4)?;
        command.eq_ignore_ascii_case(b"ATDT").then_some(())?;
        Self::new(number)
    }

    /// The characters to dial, in order.
    #[must_use]
    pub fn digits(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_that_tones_can_dial_are_dialled() {
        let digits = |line: &[u8]| DialString::of_command(line).map(|number| number.0);
        assert_eq!(
            digits(b" ATDT*70,(555) 12-34#\r"),
            Some("*70,5551234#".into())
        );
        let longest = [&b"ATDT"[..], &[b'1'; MAX_DIAL_CHARS]].concat();
        assert!(digits(&longest).is_some());
        let too_long = [&longest[..], b"1"].concat();
        let others: [&[u8]; 6] = [b"", b"AT", b"ATDT", b"ATDP123", b"ATDT12x4", &too_long];
        for line in others {
            assert_eq!(digits(line), None, "{}", line.escape_ascii());
        }
    }
}
