//! A card that moves samples at a constant rate, in blocks, through rings that wrap whether somebody was in time or not.
//!
//! Like the [modem's card](crate::modem::card) it is arithmetic: what it has moved follows from the time alone. Unlike it, a card of
//! this kind is never programmed anew, may go in one direction only, and its rings may be of any size: a DSL card moves 8,832 samples
//! in 4 ms, where the modem's ring holds 512. What arrives is a [recording](Card::capture) played again and again, so nothing outside
//! the machine has to be in time for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use laxity_model::{Instant, Span};

/// How a card moves samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    /// Samples a second.
    pub rate_hz: u64,
    /// Samples from interrupt to interrupt.
    pub block: u64,
    /// Blocks that a ring holds; two or more.
    pub ring_blocks: u64,
    /// Blocks by which the output is ahead when a block's interrupt is raised and all before it are served; at least one, and
    /// less than `ring_blocks`.
    pub lead_blocks: u64,
    /// Samples at a block's beginning without which its frame may still arrive: a guard interval, and what is too short to matter.
    pub spare: u64,
}

impl Format {
    /// How long the card takes to move so many samples, rounded up to a nanosecond.
    #[must_use]
    pub fn duration(&self, samples: u64) -> Span {
        let nanos = (u128::from(samples) * 1_000_000_000).div_ceil(u128::from(self.rate_hz));
        Span::from_nanos(nanos as u64)
    }

    /// From interrupt to interrupt.
    #[must_use]
    pub fn period(&self) -> Span {
        self.duration(self.block)
    }

    /// Samples that a ring holds.
    #[must_use]
    pub const fn ring(&self) -> u64 {
        self.ring_blocks * self.block
    }

    /// Samples the card has moved by `now`, in its own time.
    #[must_use]
    pub fn position(&self, now: Instant) -> u64 {
        (u128::from(now.as_nanos()) * u128::from(self.rate_hz) / 1_000_000_000) as u64
    }

    /// When the `k`-th interrupt is raised, counted from 1: at the end of the `k`-th block.
    #[must_use]
    pub fn interrupt_at(&self, k: u64) -> Instant {
        Instant::ZERO + self.duration(k * self.block)
    }
}

/// The output ring: samples by their absolute number, each cell telling whose sample it holds.
struct Track(Box<[AtomicU64]>);

const SAMPLE_BITS: u32 = 16;
const NUMBER_MASK: u64 = u64::MAX >> SAMPLE_BITS;

impl Track {
    fn new(cells: u64) -> Self {
        Self((0..cells).map(|_| AtomicU64::new(u64::MAX)).collect())
    }

    fn cell(&self, index: u64) -> &AtomicU64 {
        &self.0[(index % self.0.len() as u64) as usize]
    }

    fn put(&self, index: u64, sample: i16) {
        let word = (index & NUMBER_MASK) << SAMPLE_BITS | u64::from(sample.cast_unsigned());
        self.cell(index).store(word, Ordering::Release);
    }

    fn get(&self, index: u64) -> Option<i16> {
        let word = self.cell(index).load(Ordering::Acquire);
        (word >> SAMPLE_BITS == index & NUMBER_MASK).then_some((word as u16).cast_signed())
    }
}

/// So many rings of the past are kept of what went out, for who listens.
const KEPT_RINGS: u64 = 8;

/// The card, shared by interrupt handler, driver and listener. Nothing here locks.
pub struct Card {
    format: Format,
    recording: Option<Arc<[i16]>>,
    outgoing: Option<Track>,
    raised: AtomicU64,
}

/// What of a block was in the input ring when it was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Taken {
    /// Samples that newer ones had been written over: they stand in their place.
    pub overwritten: u64,
}

impl Card {
    /// A card that is read. What arrives is `recording`, whole blocks of it, again and again.
    #[must_use]
    pub fn capture(format: Format, recording: Arc<[i16]>) -> Self {
        debug_assert!((recording.len() as u64).is_multiple_of(format.block));
        Self {
            format,
            recording: Some(recording),
            outgoing: None,
            raised: AtomicU64::new(0),
        }
    }

    /// A card that is written.
    #[must_use]
    pub fn playback(format: Format) -> Self {
        Self {
            format,
            recording: None,
            outgoing: Some(Track::new(KEPT_RINGS * format.ring())),
            raised: AtomicU64::new(0),
        }
    }

    /// How it moves samples.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
    }

    /// Whether it is read.
    #[must_use]
    pub const fn is_read(&self) -> bool {
        self.recording.is_some()
    }

    /// Counts an interrupt.
    pub fn raise(&self) {
        self.raised.fetch_add(1, Ordering::Release);
    }

    /// Interrupts counted so far.
    #[must_use]
    pub fn raised(&self) -> u64 {
        self.raised.load(Ordering::Acquire)
    }

    /// Whether nothing is left of a block, counted from 0: the card has written all of the one that takes its place.
    #[must_use]
    pub fn is_gone(&self, block: u64, now: Instant) -> bool {
        let gone = (block + self.format.ring_blocks + 1) * self.format.block;
        self.is_read() && self.format.position(now) >= gone
    }

    /// Copies the place in the ring where a block, counted from 0, was written: what is there by `now`. Without input: silence.
    pub fn take(&self, block: u64, now: Instant, buffer: &mut [i16]) -> Taken {
        let Some(recording) = &self.recording else {
            buffer.fill(0);
            return Taken::default();
        };
        let length = buffer.len();
        let blocks = recording.len() as u64 / self.format.block;
        let from = |block: u64| {
            let start = (block % blocks * self.format.block) as usize;
            &recording[start..start + length]
        };
        let newer = block + self.format.ring_blocks;
        let written_over = self
            .format
            .position(now)
            .saturating_sub(newer * self.format.block);
        let overwritten = written_over.min(length as u64);
        let (over, rest) = buffer.split_at_mut(overwritten as usize);
        over.copy_from_slice(&from(newer)[..over.len()]);
        rest.copy_from_slice(&from(block)[length - rest.len()..]);
        Taken { overwritten }
    }

    /// Puts samples into the output ring at their place in time. Returns how many came too late, which are gone.
    pub fn put(&self, first: u64, now: Instant, samples: &[i16]) -> u64 {
        let Some(outgoing) = &self.outgoing else {
            return 0;
        };
        let late = self.format.position(now).saturating_sub(first);
        let late = late.min(samples.len() as u64);
        for (index, sample) in (first..).zip(samples).skip(late as usize) {
            outgoing.put(index, *sample);
        }
        late
    }

    /// What went out as sample `index`, whose time must be past: a sample written in time, or what the ring still held.
    #[must_use]
    pub fn departed(&self, index: u64) -> i16 {
        let Some(outgoing) = &self.outgoing else {
            return 0;
        };
        let stale = || outgoing.get(index.checked_sub(self.format.ring())?);
        outgoing.get(index).or_else(stale).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: Format = Format {
        rate_hz: 48_000,
        block: 480,
        ring_blocks: 2,
        lead_blocks: 1,
        spare: 0,
    };

    fn after(samples: u64) -> Instant {
        Instant::ZERO + FORMAT.duration(samples)
    }

    fn counted() -> Card {
        let blocks = 7 * FORMAT.block as i16;
        Card::capture(FORMAT, (0..blocks).collect())
    }

    #[test]
    fn a_block_is_whole_until_its_place_is_written_again() {
        let card = counted();
        let mut buffer = [0; 480];
        assert_eq!(card.take(1, after(960), &mut buffer).overwritten, 0);
        assert_eq!(card.take(1, after(1_440), &mut buffer).overwritten, 0);
        assert_eq!((buffer[0], buffer[479]), (480, 959));
        assert_eq!(card.take(1, after(1_540), &mut buffer).overwritten, 100);
        // The newer block's samples stand where they were written, the older one's behind them.
        assert_eq!((buffer[0], buffer[99], buffer[100]), (1_440, 1_539, 580));
        assert!(!card.is_gone(1, after(1_919)));
        assert!(card.is_gone(1, after(1_920)));
    }

    #[test]
    fn the_recording_begins_again() {
        let card = counted();
        let mut buffer = [0; 480];
        card.take(8, after(9 * 480), &mut buffer);
        assert_eq!(buffer[0], 480);
    }

    #[test]
    fn what_is_put_late_goes_out_as_it_was_a_ring_ago() {
        let card = Card::playback(FORMAT);
        assert_eq!(card.put(0, after(0), &[7; 960]), 0);
        assert_eq!(card.put(960, after(1_060), &[9; 480]), 100);
        let heard: Vec<i16> = [0, 959, 960, 1_059, 1_060, 1_439, 1_440]
            .map(|index| card.departed(index))
            .to_vec();
        assert_eq!(heard, [7, 7, 7, 7, 9, 9, 7]);
    }

    #[test]
    fn interrupts_do_not_drift() {
        let radio = Format {
            rate_hz: 8_000_000,
            block: 2_500,
            ..FORMAT
        };
        assert_eq!(radio.period(), Span::from_nanos(312_500));
        assert_eq!(radio.interrupt_at(3_200), Instant::from_secs(1));
        for samples in (0..2_000_000).step_by(997) {
            assert_eq!(
                radio.position(Instant::ZERO + radio.duration(samples)),
                samples
            );
        }
    }
}
