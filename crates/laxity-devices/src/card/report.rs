//! What became of a device: counters that driver and listener keep while it runs, for whoever reads them afterwards.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A counter that one thread writes and any may read, without a lock.
#[derive(Default, Debug)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to the count.
    pub fn add(&self, n: u64) {
        if n > 0 {
            self.0.fetch_add(n, Ordering::Relaxed);
        }
    }

    /// Replaces the count by another counter's.
    pub fn set(&self, n: u64) {
        self.0.store(n, Ordering::Relaxed);
    }

    /// Replaces the count by this if it is more.
    pub fn raise_to(&self, n: u64) {
        self.0.fetch_max(n, Ordering::Relaxed);
    }

    /// The count.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The account of one stream.
///
/// A block that was lost shows twice, counted by different parts that know nothing of each other: by the driver, from where the card
/// was, and by who checks the frames' CRCs.
#[derive(Default, Debug)]
pub struct Report {
    /// Input samples that newer ones had been written over before they were read, those of blocks passed over included.
    pub samples_lost: Counter,
    /// Blocks that were worked on though some of their samples were lost.
    pub blocks_damaged: Counter,
    /// Of them, those that lost more than their frame can spare.
    pub blocks_broken: Counter,
    /// Blocks passed over because nothing was left of them.
    pub blocks_skipped: Counter,
    /// Output samples that came too late: what the ring held a ring ago went out in their place.
    pub samples_underrun: Counter,
    /// Blocks of which output samples came too late.
    pub blocks_underrun: Counter,
    /// Frames whose CRC was right.
    pub frames_good: Counter,
    /// Frames whose CRC was wrong.
    pub crc_errors: Counter,
    /// Which frames somebody beyond the card heard wrong. Who listens takes the lock while a run lasts, and nobody else.
    heard_wrong: Mutex<Vec<u64>>,
    /// Blocks in which work that was repeated as load came to another result than the first time: always 0 but for a bug.
    pub load_differs: Counter,
}

impl Report {
    /// Counts a frame that was heard wrong, by its number from 0 as the driver's calls are.
    pub(super) fn hear_wrong(&self, number: u64) {
        let heard = self.heard_wrong.lock();
        heard.unwrap_or_else(PoisonError::into_inner).push(number);
        self.crc_errors.add(1);
    }

    /// The numbers of the frames that were heard wrong, from 0 as the driver's calls are, in their order; none of a device that is received.
    pub fn heard_wrong(&self) -> Vec<u64> {
        let heard = self.heard_wrong.lock();
        heard.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Samples lost and underrun.
    pub fn damage(&self) -> u64 {
        self.samples_lost.get() + self.samples_underrun.get()
    }

    /// Frames that did not arrive: their CRC was wrong, or nothing was left of them to check.
    pub fn frames_lost(&self) -> u64 {
        self.crc_errors.get() + self.blocks_skipped.get()
    }
}
