//! What became of a call: counters that driver and far end keep while it runs, for whoever reads them afterwards.

use std::sync::OnceLock;

use crate::card::Counter;
use crate::link::Arrived;

/// How a call ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The file arrived.
    Done(Arrived),
    /// It did not: the modem's last word, such as `NO CARRIER`, and why.
    Failed {
        /// What the modem says to its application.
        result: &'static str,
        /// What happened.
        reason: String,
    },
}

/// The account of one call.
#[derive(Default, Debug)]
pub struct Report {
    /// Input samples lost to overflow.
    pub samples_lost: Counter,
    /// Output samples sent as garbage because they were not written in time.
    pub samples_underrun: Counter,
    /// Input samples that the far end had not produced when their time came. Not the driver's fault: more than none makes the
    /// run worthless.
    pub samples_undelivered: Counter,
    /// Blocks that were not worked on, because their call began after the output had run dry. Their output counts as underrun.
    pub blocks_abandoned: Counter,
    /// The longest time from an interrupt to the begin of its call since training began, in nanoseconds.
    pub begin_latest_ns: Counter,
    /// Calls of the signal processing.
    pub calls: Counter,
    /// Retrainings since the first data.
    pub retrainings: Counter,
    /// Frames that the near end sent again.
    pub retransmissions_near: Counter,
    /// Frames that the far end sent again.
    pub retransmissions_far: Counter,
    /// Octets of the file that have arrived.
    pub octets: Counter,
    /// The downstream rate agreed on, bit/s; 0 before the first data.
    pub rate_down_bit_s: Counter,
    /// The upstream rate agreed on, bit/s; 0 before the first data.
    pub rate_up_bit_s: Counter,
    /// Bits in which a further receiver differed from the first.
    pub receiver_bit_errors: Counter,
    /// Bits of further receivers that were compared.
    pub receiver_bits: Counter,
    outcome: OnceLock<Outcome>,
}

impl Report {
    /// How the call ended; `None` while it goes on.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.get()
    }

    /// Records how the call ended; the first word counts.
    pub fn end(&self, outcome: Outcome) {
        self.outcome.get_or_init(|| outcome);
    }
}
