//! Two rings filled and emptied by a sample clock that waits for nobody.
//!
//! The card is arithmetic: how many samples it has moved follows from the time alone, so a driver that comes late finds what a real
//! one would find. Nothing here locks; the interrupt handler, the driver and the line may each be preempted anywhere.
//!
//! * *Overflow*: the input ring wraps. A driver that reads on [from where it was](Cursor::take) sees only what is left modulo the ring;
//!   the rest is lost without a trace in the samples (Jones, Saroiu §6.1: pending "will wrap around to zero"). A driver that reads
//!   [each block at its place](Cursor::take_block) finds newer samples written over the older ones.
//! * *Underflow*: an output sample that was not written before its turn goes out as what the ring still holds: the sample of a ring before.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use laxity_model::{Instant, Span};

use super::cursor::Cursor;

/// How often a card can be programmed, the first time included.
const PROGRAMMINGS: usize = 4;

/// Samples that a line keeps on either side of a card in both directions: 2 s at 16 kHz, far more than any delay on the way.
const LINE_SAMPLES: u64 = 1 << 15;

/// So many rings of the past are kept of what a card played, for who listens.
const KEPT_RINGS: u64 = 8;

/// How a card moves samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Samples a second, in each direction.
    pub rate_hz: u64,
    /// Samples from interrupt to interrupt, again and again in this order.
    pub blocks: [u64; 3],
    /// Samples that each of the rings holds.
    pub ring: u64,
}

impl Setting {
    /// Samples of the `k`-th block, counted from 0.
    pub fn block(&self, k: u64) -> u64 {
        self.blocks[(k % self.blocks.len() as u64) as usize]
    }

    /// Samples in the first `k` blocks.
    pub fn samples_in(&self, k: u64) -> u64 {
        let turns = k / self.blocks.len() as u64;
        let rest = (k % self.blocks.len() as u64) as usize;
        turns * self.blocks.iter().sum::<u64>() + self.blocks[..rest].iter().sum::<u64>()
    }

    /// How long the card takes to move this many samples, rounded up to a nanosecond.
    pub fn duration(&self, samples: u64) -> Span {
        let nanos = (u128::from(samples) * 1_000_000_000).div_ceil(u128::from(self.rate_hz));
        Span::from_nanos(nanos as u64)
    }
}

/// A setting from the instant it took effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Programming {
    /// What was set.
    pub setting: Setting,
    /// When its first sample began.
    pub started: Instant,
}

impl Programming {
    /// Samples the card has moved by `now`.
    pub(crate) fn position(&self, now: Instant) -> u64 {
        let elapsed = u128::from(now.saturating_since(self.started).as_nanos());
        (elapsed * u128::from(self.setting.rate_hz) / 1_000_000_000) as u64
    }

    /// When the `k`-th interrupt is raised, counted from 1: at the end of the `k`-th block.
    pub(crate) fn interrupt_at(&self, k: u64) -> Instant {
        self.started + self.setting.duration(self.setting.samples_in(k))
    }
}

/// Samples by their absolute number, for one writer and one reader who never meet: each cell tells whose sample it holds. A track without
/// cells holds nothing.
struct Track(Box<[AtomicU64]>);

impl Track {
    fn new(cells: u64) -> Self {
        Self((0..cells).map(|_| AtomicU64::new(u64::MAX)).collect())
    }

    fn cell(&self, index: u64) -> Option<&AtomicU64> {
        let place = index.checked_rem(self.0.len() as u64)?;
        self.0.get(place as usize)
    }

    fn tag(epoch: usize, index: u64) -> u64 {
        (epoch as u64) << 44 | (index & ((1 << 44) - 1))
    }

    fn put(&self, epoch: usize, index: u64, sample: i16) {
        if let Some(cell) = self.cell(index) {
            let word = Self::tag(epoch, index) << 16 | u64::from(sample.cast_unsigned());
            cell.store(word, Ordering::Release);
        }
    }

    fn get(&self, epoch: usize, index: u64) -> Option<i16> {
        let word = self.cell(index)?.load(Ordering::Acquire);
        (word >> 16 == Self::tag(epoch, index)).then_some((word as u16).cast_signed())
    }
}

/// Where a card's input comes from.
enum Input {
    /// Somebody outside the machine [puts](Card::arrive) each sample before the card gets there.
    Line(Track),
    /// A recording is played again and again, so that nothing outside the machine has to be in time for it.
    Recording(Arc<[i16]>),
}

/// The card, shared by interrupt handler, driver and line.
pub struct Card {
    programmings: [OnceLock<Programming>; PROGRAMMINGS],
    raised: [AtomicU64; PROGRAMMINGS],
    incoming: Input,
    outgoing: Track,
}

impl Card {
    fn new(setting: Setting, incoming: Input, kept: u64) -> Self {
        let card = Self {
            programmings: Default::default(),
            raised: Default::default(),
            incoming,
            outgoing: Track::new(kept),
        };
        let started = Instant::ZERO;
        card.programmings[0].get_or_init(|| Programming { setting, started });
        card
    }

    /// A card that is read and written, on a line. It begins with this setting, at zero of its own time.
    #[must_use]
    pub fn duplex(setting: Setting) -> Self {
        Self::new(setting, Input::Line(Track::new(LINE_SAMPLES)), LINE_SAMPLES)
    }

    /// A card that is only read. What arrives is `recording`, again and again.
    #[must_use]
    pub fn capture(setting: Setting, recording: Arc<[i16]>) -> Self {
        Self::new(setting, Input::Recording(recording), 0)
    }

    /// A card that is only written.
    #[must_use]
    pub fn playback(setting: Setting) -> Self {
        let kept = KEPT_RINGS * setting.ring;
        Self::new(setting, Input::Line(Track::new(0)), kept)
    }

    /// Whether it is read only.
    pub(crate) const fn is_capture(&self) -> bool {
        matches!(self.incoming, Input::Recording(_))
    }

    /// The number of the programming in force, from 0.
    pub(crate) fn epoch(&self) -> usize {
        self.programmings
            .iter()
            .rposition(|p| p.get().is_some())
            .unwrap_or(0)
    }

    /// The programming with this number, once it is in force.
    pub(crate) fn programming(&self, epoch: usize) -> Option<Programming> {
        self.programmings.get(epoch)?.get().copied()
    }

    /// Programs the card anew; its rings begin empty at `started`. Returns a cursor as [`Cursor::new`] makes it, or `None` when the
    /// card has been programmed as often as it can.
    pub(crate) fn program(&self, setting: Setting, started: Instant, lead: u64) -> Option<Cursor> {
        let epoch = self.epoch() + 1;
        let programming = Programming { setting, started };
        self.programmings.get(epoch)?.set(programming).ok()?;
        Some(Cursor::at(epoch, programming, lead))
    }

    /// When the next interrupt is raised that has not been counted yet.
    pub fn due(&self) -> Instant {
        let epoch = self.epoch();
        let next = self.raised(epoch) + 1;
        self.programming(epoch)
            .map_or(Instant::MAX, |programming| programming.interrupt_at(next))
    }

    /// Counts an interrupt: the handler's half of the atomic counter of §5.2.
    pub fn raise(&self) {
        self.raised[self.epoch()].fetch_add(1, Ordering::Release);
    }

    /// Interrupts of this epoch counted so far.
    pub(crate) fn raised(&self, epoch: usize) -> u64 {
        self.raised[epoch].load(Ordering::Acquire)
    }

    /// The line's half: what arrives as sample `index`. Must be put before the card gets there.
    pub(crate) fn arrive(&self, epoch: usize, index: u64, sample: i16) {
        if let Input::Line(track) = &self.incoming {
            track.put(epoch, index, sample);
        }
    }

    /// Copies what arrived from sample `first` on. Returns how many samples the line had not delivered; zeros stand in for them.
    pub(super) fn arrived(&self, epoch: usize, first: u64, samples: &mut [i16]) -> u64 {
        let mut missing = 0;
        match &self.incoming {
            Input::Line(track) => {
                for (index, sample) in (first..).zip(samples) {
                    let arrived = track.get(epoch, index);
                    missing += u64::from(arrived.is_none());
                    *sample = arrived.unwrap_or(0);
                }
            }
            Input::Recording(recording) => {
                let from = (first % recording.len() as u64) as usize;
                let endless = recording[from..].iter().chain(recording.iter().cycle());
                for (sample, recorded) in samples.iter_mut().zip(endless) {
                    *sample = *recorded;
                }
            }
        }
        missing
    }

    /// Puts what is to go out as sample `index` into the output ring.
    pub(super) fn depart(&self, epoch: usize, index: u64, sample: i16) {
        self.outgoing.put(epoch, index, sample);
    }

    /// The line's half: what went out as sample `index`, whose time must be past: a sample written in time, or what the ring still held.
    pub fn departed(&self, epoch: usize, index: u64) -> i16 {
        let stale = || {
            let ring = self.programming(epoch)?.setting.ring;
            self.outgoing.get(epoch, index.checked_sub(ring)?)
        };
        self.outgoing.get(epoch, index).or_else(stale).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_TO_ONE: Setting = Setting {
        rate_hz: 16_000,
        blocks: [210, 210, 180],
        ring: 512,
    };
    const RADIO: Setting = Setting {
        rate_hz: 8_000_000,
        blocks: [2_500; 3],
        ring: 10_000,
    };

    fn programmed(setting: Setting) -> Programming {
        Programming {
            setting,
            started: Instant::from_nanos(12_345),
        }
    }

    #[test]
    fn interrupts_come_at_the_ends_of_blocks_and_do_not_drift() {
        let data = programmed(TWO_TO_ONE);
        let gaps: Vec<u64> = (1..4)
            .map(|k| (data.interrupt_at(k) - data.interrupt_at(k - 1)).as_micros())
            .collect();
        assert_eq!(gaps, [13_125, 13_125, 11_250]);
        let second = Instant::from_nanos(12_345) + Span::from_secs(1);
        assert_eq!(programmed(RADIO).interrupt_at(3_200), second);
    }

    #[test]
    fn position_and_duration_agree_to_the_sample() {
        for setting in [TWO_TO_ONE, RADIO] {
            let programming = programmed(setting);
            for samples in (0..500_000).step_by(97) {
                let at = programming.started + setting.duration(samples);
                assert_eq!(programming.position(at), samples);
            }
        }
    }

    #[test]
    fn a_card_has_four_programmings() {
        let card = Card::duplex(RADIO);
        assert_eq!(card.epoch(), 0);
        for epoch in 1..4 {
            let cursor = card.program(TWO_TO_ONE, Instant::ZERO, 0).unwrap();
            assert_eq!((cursor.epoch(), card.epoch()), (epoch, epoch));
        }
        assert!(card.program(TWO_TO_ONE, Instant::ZERO, 0).is_none());
        assert!(card.programming(4).is_none());
    }
}
