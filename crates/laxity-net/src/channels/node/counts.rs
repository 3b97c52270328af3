//! How much came to what, at a node.

use super::super::path::{Began, Came, Ended, Packets, Passed};

/// Frames of a link: those that came were data, signals, handshakes, or were refused for one of these reasons.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkCounts {
    /// That came.
    pub came: u64,
    /// Of these, parts of messages: each is in the counts of a channel that is there, or was nobody's, misdirected, or of a channel that has ended.
    pub data: u64,
    /// Of these, signals.
    pub signals: u64,
    /// Of these, parts of handshakes that went on.
    pub handshakes: u64,
    /// Refused: no frame, or damaged.
    pub malformed: u64,
    /// Refused: seen before.
    pub repeated: u64,
    /// Refused: not of whom it claims to be.
    pub forged: u64,
    /// Refused for another reason: of no session, not sealed, a handshake too many.
    pub refused: u64,
    /// Of the data, with a label that no channel has here, or that has come to its end here.
    pub nobodys: u64,
    /// Of the data, of a channel that does not come over this link.
    pub misdirected: u64,
    /// Of the data, of channels that have ended since.
    pub ended: u64,
    /// Frames that were handed over.
    pub handed: u64,
    /// Of these, best effort.
    pub best_effort: u64,
    /// Frames that could not be sealed, and were dropped.
    pub unsealed: u64,
    /// Signals and parts of handshakes for which the link's own channel had no room.
    pub unsaid: u64,
}

/// What came of one lane of a channel at one of its hosts, as long as it is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndCounts {
    /// It begins here: its messages, if it has this lane, and their packets.
    Begins(Option<Began>, Packets),
    /// It passes: its frames, and those of them that wait or waited for the next link.
    Passes(Passed, Packets),
    /// It ends here: its frames, and their messages.
    Ends(Came, Ended),
}

impl EndCounts {
    /// Frames of it that came to this host.
    #[must_use]
    pub const fn came(&self) -> u64 {
        match self {
            Self::Begins(..) => 0,
            Self::Passes(passed, _) => passed.came,
            Self::Ends(came, _) => came.came,
        }
    }
}
