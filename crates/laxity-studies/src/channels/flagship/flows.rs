//! The two applications, and best effort where it goes by the same calls: what each sends, when, and by what a message is known again.

use std::io;

use laxity_model::{Instant, Span};
use serde::{Deserialize, Serialize};

/// Who sends messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Flow {
    /// A control loop: 64 bytes a thousand times a second.
    Control,
    /// A camera: 20 kB thirty times a second.
    Video,
    /// Best effort by the same calls: 32 KiB, 150 Mbit/s of them.
    Bulk,
}

/// From when to when messages are due to be sent, by the machine's monotonic clock, which all namespaces have alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct When {
    /// The first.
    pub from: Instant,
    /// None from there on.
    pub until: Instant,
}

impl When {
    /// As it is told to a process, in a line: both in nanoseconds.
    pub(super) fn line(self) -> String {
        format!("{} {}\n", self.from.as_nanos(), self.until.as_nanos())
    }

    pub(super) fn of_line(line: &str) -> io::Result<Self> {
        let mut words = line.split_whitespace().map(str::parse);
        match (words.next(), words.next()) {
            (Some(Ok(from)), Some(Ok(until))) => Ok(Self {
                from: Instant::from_nanos(from),
                until: Instant::from_nanos(until),
            }),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("not told when, but {line:?}"),
            )),
        }
    }
}

impl Flow {
    /// Those that are judged.
    pub const APPLICATIONS: [Self; 2] = [Self::Control, Self::Video];

    /// As it is called in what processes tell.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Video => "video",
            Self::Bulk => "bulk",
        }
    }

    /// What a message has.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Control => 64,
            Self::Video => 20_000,
            Self::Bulk => 32_768,
        }
    }

    /// From message to message.
    #[must_use]
    pub const fn period(self) -> Span {
        match self {
            Self::Control => Span::from_millis(1),
            // Rounded up, so that whole seconds have thirty each.
            Self::Video => Span::from_nanos(33_333_334),
            // 32 KiB in it are 150 Mbit/s.
            Self::Bulk => Span::from_nanos(1_747_626),
        }
    }

    /// When a message is due to be sent, by its number.
    #[must_use]
    pub fn scheduled(self, when: When, number: u64) -> Instant {
        when.from + self.period() * number
    }

    /// How many are due to be sent.
    #[must_use]
    pub fn count(self, when: When) -> u64 {
        let length = when.until.saturating_since(when.from).as_nanos();
        length.div_ceil(self.period().as_nanos())
    }

    /// Makes a message of this number of what was one: the number stands at both ends, so that one that was put together of two is known.
    pub fn write(self, message: &mut [u8], number: u64) {
        let (number, last) = (number.to_le_bytes(), message.len().saturating_sub(8));
        if let Some(front) = message.get_mut(..8) {
            front.copy_from_slice(&number);
        }
        if let Some(back) = message.get_mut(last..last + 8) {
            back.copy_from_slice(&number);
        }
    }

    /// The number of a message; `None` if it is none of ours, or not as it was sent.
    #[must_use]
    pub fn number(self, message: &[u8]) -> Option<u64> {
        let [front, back] = [message.first_chunk::<8>()?, message.last_chunk::<8>()?];
        let is_whole = message.len() == self.bytes() && front == back;
        is_whole.then(|| u64::from_le_bytes(*front))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_is_short_or_of_two_is_none() {
        for flow in [Flow::Control, Flow::Video, Flow::Bulk] {
            let mut message = vec![7; flow.bytes()];
            flow.write(&mut message, 513);
            assert_eq!(flow.number(&message), Some(513));
            assert_eq!(flow.number(&message[1..]), None);
            let last = message.len() - 1;
            message[last] ^= 1;
            assert_eq!(flow.number(&message), None);
            assert_eq!(flow.number(&[]), None);
        }
    }

    #[test]
    fn so_many_are_due_as_begin_before_the_end() {
        let when = |millis: u64| When {
            from: Instant::from_millis(5),
            until: Instant::from_millis(5 + millis),
        };
        let counts = [Flow::Control, Flow::Video].map(|flow| flow.count(when(8_000)));
        assert_eq!(counts, [8_000, 240]);
        assert_eq!(Flow::Control.count(when(0)), 0);
        let line = when(3).line();
        assert_eq!(When::of_line(&line).ok(), Some(when(3)));
        assert!(When::of_line("5").is_err() && When::of_line("a b").is_err());
    }
}
