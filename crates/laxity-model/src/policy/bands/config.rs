//! What can be set about priority bands, and where the numbers come from.

use crate::Span;

/// The parameters of [`Bands`](super::Bands).
///
/// *Documented* below means: as D. Solomon and M. Russinovich describe the scheduler in *Inside Windows 2000*, chapter 6;
/// *simplified* says where these bands do less than that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BandsConfig {
    /// How long a thread runs before others of its level get their turn; more than zero.
    ///
    /// Documented for Windows 2000: 2 clock intervals (Professional) or 12 (Server, or set so), of 10 ms each on a uniprocessor. Simplified: time is
    /// measured exactly instead of being sampled at clock interrupts, the foreground process gets no longer quantum, and
    /// every completed wait starts a fresh quantum.
    pub quantum: Span,
    /// By how many levels a wait on a semaphore lifts a thread of the levels 1–15 when it ends; never above 15.
    ///
    /// Documented: 1 for semaphores and events (devices ask for 1 to 8). It wears off by one level each quantum.
    pub signal_boost: u8,
    /// The same for a wait that ended because its time had come. Documented: 0.
    pub timer_boost: u8,
    /// What is done for threads that are ready and never run; `None`: nothing.
    pub starvation: Option<Starvation>,
}

/// How a ready thread of the levels 1–14 that does not get the processor is helped: it goes to level 15 for some quanta,
/// and then at once back to its own level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Starvation {
    /// How often threads are looked at; more than zero. Documented: every second. Simplified: all are looked at, not 16 at a time.
    pub scan_every: Span,
    /// How long a thread must have been ready. Documented: 3 to 4 s; the study says "several seconds" (§2.2). 4 s is chosen.
    pub after: Span,
    /// How many quanta it then gets. Documented: its quantum is doubled.
    pub quanta: u8,
}

impl BandsConfig {
    /// Windows 2000 Professional on one processor: the modem study's host.
    pub const WINDOWS_2000: Self = Self {
        quantum: Span::from_millis(20),
        signal_boost: 1,
        timer_boost: 0,
        starvation: Some(Starvation {
            scan_every: Span::from_secs(1),
            after: Span::from_secs(4),
            quanta: 2,
        }),
    };

    /// Fixed priorities with round robin, nothing else: no boost of any kind.
    pub const PLAIN: Self = Self {
        quantum: Span::from_millis(20),
        signal_boost: 0,
        timer_boost: 0,
        starvation: None,
    };
}
