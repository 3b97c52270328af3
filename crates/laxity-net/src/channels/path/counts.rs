//! How much came to what.

use laxity_model::channels::reassembly::Why;

/// Packets of one lane of a channel that are to leave by a link: those that were queued were sent, discarded, refused, or are there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Packets {
    /// That began to wait for the link.
    pub queued: u64,
    /// Of these, handed to the interface.
    pub sent: u64,
    /// Of these, handed to it after they were due.
    pub late: u64,
    /// Of these, such that had come in time: this host took too long.
    pub held_up: u64,
    /// Of those queued, not sent as they were late.
    pub discarded: u64,
    /// Of those queued, refused by the interface for good.
    pub refused: u64,
    /// Of those queued, not sent as the channel was closed.
    pub closed: u64,
}

/// Frames of one lane of a channel that passes: those that came were queued for the next link, or did not go on for one of these reasons.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Passed {
    /// That came.
    pub came: u64,
    /// Of these, said to be earlier than they can be, and not believed.
    pub disbelieved: u64,
    /// Dropped, with more bytes than a packet.
    pub malformed: u64,
    /// Dropped, as so many were not granted.
    pub excess: u64,
    /// Dropped, as they were late.
    pub late: u64,
    /// Dropped, as the channel's buffers were full.
    pub no_buffer: u64,
}

impl Passed {
    /// Frames that were dropped.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.malformed + self.excess + self.late + self.no_buffer
    }
}

/// Frames of one lane of a channel that ends here, each of which is one of these but the first two.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Came {
    /// That came.
    pub came: u64,
    /// Of these, said to be earlier than they can be, and not believed.
    pub disbelieved: u64,
    /// In a buffer; others of the message were missing.
    pub stored: u64,
    /// In a buffer; and all of the message was there.
    pub complete: u64,
    /// There already.
    pub doubled: u64,
    /// Of a message that is behind, or was given up.
    pub stale: u64,
    /// Of no message that the channel has.
    pub malformed: u64,
    /// For which there was no buffer.
    pub no_buffer: u64,
}

/// Messages of one lane of a channel that ends here: those that were complete were in time, late, or it is not known; and were delivered, discarded, or wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ended {
    /// All of which was there.
    pub complete: u64,
    /// Of these, in time, or never due.
    pub in_time: u64,
    /// Of these, late.
    pub late: u64,
    /// Of these, such that the clocks do not tell.
    pub within_error: u64,
    /// Of the late ones, not delivered as they were.
    pub discarded: u64,
    /// Of those complete, taken by the application.
    pub delivered: u64,
    /// Lost: something of them came, and one behind them was complete.
    pub overtaken: u64,
    /// Lost: something of them came, and not all in time.
    pub overdue: u64,
    /// Lost: something of them came, and their buffer was needed.
    pub no_buffer: u64,
    /// Lost: nothing of them was there when one behind them was complete, or given up.
    pub missing: u64,
}

impl Ended {
    /// Messages that were lost.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        let some_came = self.overtaken + self.overdue + self.no_buffer;
        self.missing.saturating_add(some_came)
    }

    pub(super) const fn given_up(&mut self, why: Why) {
        let count = match why {
            Why::Overtaken => &mut self.overtaken,
            Why::Due => &mut self.overdue,
            Why::NoBuffer => &mut self.no_buffer,
        };
        *count += 1;
    }
}
