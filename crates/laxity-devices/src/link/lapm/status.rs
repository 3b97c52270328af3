//! What an application may ask about a connection.

/// What happened on the link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Information frames sent, retransmissions included.
    pub frames_sent: u64,
    /// Information frames sent again.
    pub frames_retransmitted: u64,
    /// Information frames received out of sequence and discarded.
    pub frames_out_of_sequence: u64,
    /// REJ frames sent.
    pub rejects_sent: u64,
    /// REJ frames received.
    pub rejects_received: u64,
    /// Times T401 ran out.
    pub timeouts: u64,
    /// Frames received with a wrong frame check sequence.
    pub bad_fcs: u64,
    /// Frames received that were aborted, too short, too long, or no whole octets.
    pub malformed: u64,
    /// Frames received intact that made no sense.
    pub invalid: u64,
}

/// Why there is no connection any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// N400 retries remained without an answer.
    Unanswered,
    /// The other end answered that it has no connection.
    Refused,
}

/// Where the connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No connection yet; an answerer waits in this state.
    Idle,
    /// Asked for a connection, no answer yet.
    Establishing,
    /// Octets flow.
    Connected,
    /// Ended.
    Lost(Loss),
}
