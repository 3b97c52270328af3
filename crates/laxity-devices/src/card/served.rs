//! What a driver serves: the work that each interrupt of a card asks for.

use laxity_model::{Instant, Service};

/// What the call that begins will cost on the twin's machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    /// One piece of it.
    pub piece: Service,
    /// How many pieces there are, from 1.
    pub pieces: u32,
    /// Whether it is the one call of its device that takes much longer than any other.
    pub is_longest: bool,
}

/// What a run's end finds that a driver had not served.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Unserved {
    /// When each interrupt was raised whose call has not ended, by the host's clock, the oldest first.
    pub raised: Vec<Instant>,
    /// Input samples that have arrived and are not read, no more than the rings hold.
    pub pending: u64,
    /// Input samples that are lost, beside those that the device has counted itself.
    pub lost: u64,
    /// Output samples whose time has passed without them, beside those that the device has counted itself.
    pub underrun: u64,
    /// Samples lost and underrun that all devices of the driver have counted themselves.
    pub counted: u64,
}

impl Unserved {
    /// All samples that were lost and underrun by the run's end.
    pub const fn damage(&self) -> u64 {
        self.counted + self.lost + self.underrun
    }
}

/// A card as its driver sees it, in the device's own time: work to be done once an interrupt.
pub trait Served: Send {
    /// Whether an interrupt has been raised that is not served yet.
    fn is_due(&self) -> bool;

    /// When the interrupt to be served next was raised, or will be.
    fn raised_at(&self) -> Instant;

    /// Samples that have arrived and are not read, or for a card that is only written, sent since the last block served.
    fn pending(&self, now: Instant) -> u64;

    /// Reads the input and works on it. Returns what that costs.
    fn begin(&mut self, now: Instant) -> Work;

    /// A piece has been paid for: delivers what belongs to it. Returns whether there are more.
    fn proceed(&mut self, _now: Instant) -> bool {
        false
    }

    /// All has been paid for and delivered: the interrupt is served.
    fn finish(&mut self, now: Instant);

    /// What is not served by `now`, in the device's time.
    fn unserved(&self, now: Instant) -> Unserved;

    /// The place of the phase that the device is in among its phases, from 0; `None` if it has none. In the first of them it needs no
    /// reservation yet.
    fn phase(&self) -> Option<u64> {
        None
    }

    /// Samples lost and underrun so far.
    fn damage(&self) -> u64;

    /// What the device has spoilt so far, in a unit of its own: samples underrun, damaged frames.
    fn account(&self) -> u64;

    /// Whether there will be nothing more to serve.
    fn is_over(&self) -> bool {
        false
    }
}
