//! Who sends: the channels of the paper's table 3, whose figures are lost and chosen here, and best effort; and when each offers its messages.

use std::num::NonZeroU32;

use laxity_lab::workload::Draws;
use laxity_model::nif::urgency::Stated;
use laxity_model::{HostError, Instant, Span};

use super::machine::PACKET_BYTES;

/// A kilobyte of the paper's, whose packets have four.
pub const KILOBYTE: u32 = 1_024;

/// What a channel states.
#[derive(Clone, Copy, Debug)]
pub struct Channel {
    /// Bytes of a message.
    pub bytes: u32,
    /// From message to message: 1 / R_max.
    pub period: Span,
    /// Messages that may come at once: B_max.
    pub burst: u32,
    /// After its logical arrival a message is to have left within this.
    pub delay: Span,
}

/// Two that are bursty, and one that is periodic (§5.1).
pub const CHANNELS: [Channel; 3] = [
    Channel {
        bytes: 60 * KILOBYTE,
        period: Span::from_millis(30),
        burst: 10,
        delay: Span::from_millis(30),
    },
    Channel {
        bytes: 120 * KILOBYTE,
        period: Span::from_millis(40),
        burst: 8,
        delay: Span::from_millis(40),
    },
    Channel {
        bytes: 12 * KILOBYTE,
        period: Span::from_millis(10),
        burst: 1,
        delay: Span::from_millis(10),
    },
];
/// Where best effort is among them.
pub const BEST_EFFORT: usize = CHANNELS.len();
/// Bytes of a message of best effort, and how many may come at once.
pub const BEST_EFFORT_MESSAGES: (u32, u32) = (60 * KILOBYTE, 4);

impl Channel {
    /// Packets of a message: N_max.
    pub fn packets(&self) -> NonZeroU32 {
        packets(self.bytes)
    }

    /// What it states to its policer; where nothing is shaped, that everything is current as it comes.
    ///
    /// # Errors
    ///
    /// It states nothing.
    pub fn stated(&self, is_shaped: bool) -> Result<Stated, HostError> {
        let stated = match is_shaped {
            true => Stated::new(1, self.period, self.burst, self.delay),
            false => Stated::new(u32::MAX, Span::from_nanos(1), u32::MAX, self.delay),
        };
        stated.map_err(|error| HostError::CannotRun(error.to_string()))
    }

    /// Bytes a second that it states.
    pub fn rate(&self) -> u64 {
        u64::from(self.bytes) * 1_000_000_000 / self.period.as_nanos()
    }
}

/// Packets of a message of so many bytes.
pub fn packets(bytes: u32) -> NonZeroU32 {
    NonZeroU32::new(bytes.div_ceil(PACKET_BYTES.get())).unwrap_or(NonZeroU32::MIN)
}

/// When messages of one channel are offered: bursts of a size that is drawn, up to a most, each so long after the one before as that has messages at the rate. So the rate is the stated one in the long run, and no more comes in any time
/// than the burst and the rate allow.
#[derive(Clone, Debug)]
pub struct Sender {
    period: Span,
    burst: u32,
    draws: Draws,
    next: Instant,
}

impl Sender {
    /// A message every so long, in bursts of so many at the most; all begin within a period.
    pub fn new(period: Span, burst: u32, (seed, channel): (u64, usize)) -> Self {
        let mut draws = Draws::new(seed, channel as u64);
        let next = Instant::from_nanos(draws.between(0, period.as_nanos().max(1) - 1));
        Self {
            period,
            burst,
            draws,
            next,
        }
    }

    /// When the next burst comes.
    pub const fn next(&self) -> Instant {
        self.next
    }

    /// How many messages come with it; the one behind it is drawn.
    pub fn take(&mut self) -> u32 {
        let burst = self.draws.between(1, self.burst.into());
        self.next += self.period * burst;
        burst as u32
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::nif::urgency::Urgency;

    use super::*;

    #[test]
    fn everybody_keeps_what_he_states_and_uses_all_of_it() {
        for (place, channel) in CHANNELS.iter().enumerate() {
            let mut sender = Sender::new(channel.period, channel.burst, (7, place));
            let mut urgency = Urgency::new(channel.stated(true).unwrap());
            let mut came = 0;
            while sender.next() < Instant::from_millis(20_000) {
                let at = sender.next();
                for _ in 0..sender.take() {
                    came += 1;
                    assert!(!urgency.arrived(at, 1).exceeds, "{place}");
                }
            }
            let stated = 20_000_000_000 / channel.period.as_nanos();
            let burst = u64::from(channel.burst);
            assert!(stated.abs_diff(came) <= burst, "{came} of {stated}");
        }
    }
}
