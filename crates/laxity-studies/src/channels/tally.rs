//! What was seen of each channel: what it offered, what left, how far from its deadline, what was dropped (§5.1).

use laxity_model::channels::handler::Packet;
use laxity_model::{Instant, Span};

use super::workload::BEST_EFFORT;

/// Those that send: real-time channels, and best effort behind them.
pub const SENDERS: usize = BEST_EFFORT + 1;

/// How many packets a run has, and how many at each of its ends are not counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counted {
    /// Packets that leave, of all together.
    pub packets: u64,
    /// At the beginning and at the end so many of them are left out.
    pub cut: u64,
}

/// Of one channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Of {
    /// Bytes of messages that were offered.
    pub offered: u64,
    /// Bytes of packets that left.
    pub sent: u64,
    /// Messages whose last packet left; of best effort, none is counted.
    pub messages: u64,
    /// By how much sooner than they were due, all together, in nanoseconds; negative where they were late.
    pub laxity_ns: i128,
    /// The least of it.
    pub least_ns: Option<i64>,
    /// Packets that left later than they were due.
    pub missed: u64,
    /// Packets of messages that were dropped as they were offered.
    pub dropped: u64,
}

impl Of {
    /// The mean laxity, rounded towards zero.
    pub fn mean_ns(&self) -> Option<i64> {
        let mean = self.laxity_ns.checked_div(self.messages.into())?;
        i64::try_from(mean).ok()
    }
}

/// What was seen in a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tally {
    counted: Counted,
    left: u64,
    /// When what is counted began, and when it ended.
    from: Option<Instant>,
    to: Option<Instant>,
    /// Each channel.
    pub of: [Of; SENDERS],
}

impl Tally {
    /// Nothing yet.
    pub fn new(counted: Counted) -> Self {
        Self {
            counted,
            left: 0,
            from: None,
            to: None,
            of: [Of::default(); SENDERS],
        }
    }

    const fn is_counting(&self) -> bool {
        self.from.is_some() && self.to.is_none()
    }

    /// A message is offered, and dropped with all of its packets, or not.
    pub fn offered(&mut self, channel: usize, bytes: u32, dropped: Option<u32>) {
        if self.is_counting() {
            self.of[channel].offered += u64::from(bytes);
            self.of[channel].dropped += u64::from(dropped.unwrap_or(0));
        }
    }

    /// A packet has left. Tells whether it was the last of the run.
    pub fn sent(&mut self, channel: usize, packet: Packet, now: Instant) -> bool {
        if self.is_counting() {
            let of = &mut self.of[channel];
            of.sent += u64::from(packet.bytes);
            if packet.due.deadline != Instant::MAX {
                let [due, now] = [packet.due.deadline, now].map(|at| at.as_nanos() as i64);
                of.missed += u64::from(due < now);
                if packet.is_last {
                    of.messages += 1;
                    of.laxity_ns += i128::from(due - now);
                    of.least_ns = Some(of.least_ns.map_or(due - now, |least| least.min(due - now)));
                }
            }
        }
        self.left += 1;
        let Counted { packets, cut } = self.counted;
        if self.from.is_none() && self.left >= cut {
            self.from = Some(now);
        }
        if self.to.is_none() && self.left + cut >= packets {
            self.to = Some(now);
        }
        self.left >= packets
    }

    /// How long was counted; `None` if the run ended before.
    pub fn length(&self) -> Option<Span> {
        Some(self.to?.saturating_since(self.from?)).filter(|length| !length.is_zero())
    }

    /// Kilobytes a second of so many bytes.
    pub fn rate(&self, bytes: u64) -> Option<u64> {
        let nanos = u128::from(self.length()?.as_nanos());
        u64::try_from(u128::from(bytes) * 1_000_000_000 / nanos / 1_024).ok()
    }
}
