//! The modem card: two rings of 512 samples filled and emptied by a sample clock that waits for nobody.
//!
//! The card is arithmetic: how many samples it has moved follows from the time alone, so a driver that comes late finds what a real
//! one would find. Nothing here locks; the interrupt handler, the driver and the line may each be preempted anywhere.
//!
//! * *Overflow*: the input ring wraps. A driver that comes back after the write position has gone round once or more sees only what
//!   is left modulo 512; the rest is lost without a trace in the samples (Jones, Saroiu §6.1: pending "will wrap around to zero").
//! * *Underflow*: an output sample that was not written before its turn goes out as what the ring still holds: the sample of 512 before.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use laxity_model::{Instant, Span};

/// Samples in each of the card's rings (Jones, Saroiu §4: 1,024 bytes of 16-bit samples).
pub const RING_SAMPLES: u64 = 512;

/// How often the card can be programmed anew in one call.
const PROGRAMMINGS: usize = 4;

/// Samples the line keeps on either side of the card: 2 s at 16 kHz, far more than any delay on the way.
const TRACK_SAMPLES: usize = 1 << 15;

/// A DMA rate, the block sizes it interrupts at, and whether the line is seized.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Samples a second, in each direction.
    pub rate_hz: u64,
    /// Samples from interrupt to interrupt, again and again in this order.
    pub blocks: &'static [u64],
    /// Whether the hook is lifted.
    pub off_hook: bool,
}

impl Setting {
    /// Ring detection: 18 samples at 7.2 kHz, an interrupt every 2.5 ms (§4).
    pub const ON_HOOK: Self = Self {
        rate_hz: 7_200,
        blocks: &[18],
        off_hook: false,
    };
    /// Dialing and waiting: 90 samples at 7.2 kHz, an interrupt every 12.5 ms (§4).
    pub const DIALING: Self = Self {
        rate_hz: 7_200,
        blocks: &[90],
        off_hook: true,
    };
    /// Training and data: 210, 210 and 180 samples at 16 kHz, every 13.125 or 11.25 ms and 12.5 ms on average (§6.2.1; the
    /// order two to one is our reading).
    pub const CONNECTED: Self = Self {
        rate_hz: 16_000,
        blocks: &[210, 210, 180],
        off_hook: true,
    };

    /// Samples of the `k`-th block, counted from 0.
    #[must_use]
    pub fn block(&self, k: u64) -> u64 {
        self.blocks[(k % self.blocks.len() as u64) as usize]
    }

    /// Samples in the first `k` blocks.
    #[must_use]
    pub fn samples_in(&self, k: u64) -> u64 {
        let turns = k / self.blocks.len() as u64;
        let rest = (k % self.blocks.len() as u64) as usize;
        turns * self.blocks.iter().sum::<u64>() + self.blocks[..rest].iter().sum::<u64>()
    }

    /// How long the card takes to move this many samples, rounded up to a nanosecond.
    #[must_use]
    pub fn duration(&self, samples: u64) -> Span {
        let nanos = (u128::from(samples) * 1_000_000_000).div_ceil(u128::from(self.rate_hz));
        Span::from_nanos(nanos as u64)
    }
}

/// A setting from the instant it took effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Programming {
    /// What was set.
    pub setting: Setting,
    /// When its first sample began.
    pub started: Instant,
}

impl Programming {
    /// Samples the card has moved by `now`.
    #[must_use]
    pub fn position(&self, now: Instant) -> u64 {
        let elapsed = u128::from(now.saturating_since(self.started).as_nanos());
        (elapsed * u128::from(self.setting.rate_hz) / 1_000_000_000) as u64
    }

    /// When the `k`-th interrupt is raised, counted from 1: at the end of the `k`-th block.
    #[must_use]
    pub fn interrupt_at(&self, k: u64) -> Instant {
        self.started + self.setting.duration(self.setting.samples_in(k))
    }
}

/// Samples by their absolute number, for one writer and one reader who never meet: each cell tells whose sample it holds.
struct Track(Box<[AtomicU64]>);

impl Track {
    fn new() -> Self {
        Self(
            (0..TRACK_SAMPLES)
                .map(|_| AtomicU64::new(u64::MAX))
                .collect(),
        )
    }

    fn tag(epoch: usize, index: u64) -> u64 {
        (epoch as u64) << 44 | (index & ((1 << 44) - 1))
    }

    fn put(&self, epoch: usize, index: u64, sample: i16) {
        let cell = &self.0[index as usize % TRACK_SAMPLES];
        cell.store(
            Self::tag(epoch, index) << 16 | u64::from(sample.cast_unsigned()),
            Ordering::Release,
        );
    }

    fn get(&self, epoch: usize, index: u64) -> Option<i16> {
        let word = self.0[index as usize % TRACK_SAMPLES].load(Ordering::Acquire);
        (word >> 16 == Self::tag(epoch, index)).then_some((word as u16).cast_signed())
    }
}

/// The card, shared by interrupt handler, driver and line.
pub struct Card {
    programmings: [OnceLock<Programming>; PROGRAMMINGS],
    raised: [AtomicU64; PROGRAMMINGS],
    incoming: Track,
    outgoing: Track,
}

impl Card {
    /// A card that starts on hook at `now`.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        let card = Self {
            programmings: Default::default(),
            raised: Default::default(),
            incoming: Track::new(),
            outgoing: Track::new(),
        };
        let first = Programming {
            setting: Setting::ON_HOOK,
            started: now,
        };
        card.programmings[0].get_or_init(|| first);
        card
    }

    /// The number of the programming in force, from 0; a call knows no more than four.
    #[must_use]
    pub fn epoch(&self) -> usize {
        self.programmings
            .iter()
            .rposition(|p| p.get().is_some())
            .unwrap_or(0)
    }

    /// The programming with this number, once it is in force.
    #[must_use]
    pub fn programming(&self, epoch: usize) -> Option<Programming> {
        self.programmings.get(epoch)?.get().copied()
    }

    /// Programs the card anew; its rings begin empty at `started`. Returns the new epoch, or `None` when the call has used all.
    pub fn program(&self, setting: Setting, started: Instant) -> Option<usize> {
        let next = self.epoch() + 1;
        self.programmings
            .get(next)?
            .set(Programming { setting, started })
            .ok()?;
        Some(next)
    }

    /// Counts an interrupt of this epoch: the handler's half of the atomic counter of §5.2.
    pub fn raise(&self, epoch: usize) {
        self.raised[epoch].fetch_add(1, Ordering::Release);
    }

    /// Interrupts of this epoch counted so far.
    #[must_use]
    pub fn raised(&self, epoch: usize) -> u64 {
        self.raised[epoch].load(Ordering::Acquire)
    }

    /// The line's half: what arrives as sample `index`. Must be put before the card gets there.
    pub fn arrive(&self, epoch: usize, index: u64, sample: i16) {
        self.incoming.put(epoch, index, sample);
    }

    /// The line's half: what went out as sample `index`, whose time must be past: a sample written in time, or garbage.
    #[must_use]
    pub fn departed(&self, epoch: usize, index: u64) -> i16 {
        let stale = || self.outgoing.get(epoch, index.checked_sub(RING_SAMPLES)?);
        self.outgoing.get(epoch, index).or_else(stale).unwrap_or(0)
    }
}

/// The driver's place in the card's two rings, for one epoch.
#[derive(Clone, Debug)]
pub struct Cursor {
    epoch: usize,
    programming: Programming,
    read: u64,
    written: u64,
}

/// What a driver found in the input ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    /// Samples put into the driver's buffer.
    pub samples: usize,
    /// Samples lost to overflow before them.
    pub lost: u64,
    /// Samples among them that the line had not delivered when their time came; zeros stand in for them.
    pub missing: u64,
}

impl Cursor {
    /// A cursor at the start of an epoch, the output filled with silence up to sample `lead`.
    #[must_use]
    pub fn new(epoch: usize, programming: Programming, lead: u64) -> Self {
        Self {
            epoch,
            programming,
            read: 0,
            written: lead,
        }
    }

    /// The epoch this cursor belongs to.
    #[must_use]
    pub fn epoch(&self) -> usize {
        self.epoch
    }

    /// The programming in force.
    #[must_use]
    pub fn programming(&self) -> Programming {
        self.programming
    }

    /// Samples in the input ring that are not read yet, as the driver sees them: modulo the ring.
    #[must_use]
    pub fn pending(&self, now: Instant) -> u64 {
        self.programming.position(now).saturating_sub(self.read) % RING_SAMPLES
    }

    /// Whether the card has sent all that was written, and more.
    #[must_use]
    pub fn is_dry(&self, now: Instant) -> bool {
        self.programming.position(now) > self.written
    }

    /// Passes over a block of both rings: its input is not read, its output not written. Returns how many input samples were lost to
    /// overflow before it.
    pub fn skip(&mut self, now: Instant, samples: u64) -> u64 {
        let unread = self.programming.position(now).saturating_sub(self.read);
        let lost = unread - unread % RING_SAMPLES;
        self.read += lost + samples.min(unread - lost);
        self.written += samples;
        lost
    }

    /// Moves up to `buffer.len()` samples out of the input ring.
    pub fn take(&mut self, card: &Card, now: Instant, buffer: &mut [i16]) -> Taken {
        let position = self.programming.position(now);
        let unread = position.saturating_sub(self.read);
        let lost = unread - unread % RING_SAMPLES;
        self.read += lost;
        let samples = buffer.len().min((unread - lost) as usize);
        let mut missing = 0;
        for (index, sample) in (self.read..).zip(&mut buffer[..samples]) {
            let arrived = card.incoming.get(self.epoch, index);
            missing += u64::from(arrived.is_none());
            *sample = arrived.unwrap_or(0);
        }
        self.read += samples as u64;
        Taken {
            samples,
            lost,
            missing,
        }
    }

    /// Puts a block into the output ring at its place in time. Returns how many of its samples came too late: the card has
    /// already sent garbage in their stead.
    pub fn put(&mut self, card: &Card, now: Instant, block: &[i16]) -> u64 {
        let position = self.programming.position(now);
        let late = position
            .saturating_sub(self.written)
            .min(block.len() as u64);
        for (index, sample) in (self.written..).zip(block).skip(late as usize) {
            card.outgoing.put(self.epoch, index, *sample);
        }
        self.written += block.len() as u64;
        late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connected() -> (Card, Cursor) {
        let card = Card::new(Instant::ZERO);
        let epoch = card
            .program(Setting::CONNECTED, Instant::from_millis(100))
            .unwrap();
        for index in 0..20_000 {
            card.arrive(epoch, index, (index % 30_000) as i16);
        }
        let cursor = Cursor::new(epoch, card.programming(epoch).unwrap(), 210);
        (card, cursor)
    }

    /// The instant at which the card has moved exactly this many samples of [`connected`].
    fn after(samples: u64) -> Instant {
        Instant::from_millis(100) + Setting::CONNECTED.duration(samples)
    }

    #[test]
    fn interrupts_come_at_the_studys_intervals() {
        let hooked = Programming {
            setting: Setting::ON_HOOK,
            started: Instant::ZERO,
        };
        assert_eq!(hooked.interrupt_at(4), Instant::from_millis(10));
        let data = Programming {
            setting: Setting::CONNECTED,
            started: Instant::ZERO,
        };
        let gaps: Vec<u64> = (1..4)
            .map(|k| (data.interrupt_at(k) - data.interrupt_at(k - 1)).as_micros())
            .collect();
        assert_eq!(gaps, [13_125, 13_125, 11_250]);
        assert_eq!(data.interrupt_at(3), Instant::from_micros(37_500));
    }

    #[test]
    fn position_and_duration_agree_to_the_sample() {
        for setting in [Setting::ON_HOOK, Setting::DIALING, Setting::CONNECTED] {
            let programming = Programming {
                setting,
                started: Instant::from_nanos(12_345),
            };
            for samples in (0..50_000).step_by(7) {
                let at = programming.started + setting.duration(samples);
                assert_eq!(programming.position(at), samples);
            }
        }
    }

    #[test]
    fn a_driver_in_time_loses_nothing() {
        let (card, mut cursor) = connected();
        let mut buffer = [0; 210];
        for k in 0..30 {
            let block = Setting::CONNECTED.block(k) as usize;
            let now = after(Setting::CONNECTED.samples_in(k + 1));
            let taken = cursor.take(&card, now, &mut buffer[..block]);
            assert_eq!(
                taken,
                Taken {
                    samples: block,
                    lost: 0,
                    missing: 0
                }
            );
            assert_eq!(
                i64::from(buffer[0]),
                Setting::CONNECTED.samples_in(k) as i64
            );
            assert_eq!(cursor.put(&card, now, &buffer[..block]), 0);
        }
    }

    #[test]
    fn a_wrapped_ring_shows_only_what_is_left() {
        let (card, mut cursor) = connected();
        let mut buffer = [0; 210];
        assert_eq!(cursor.pending(after(511)), 511);
        assert_eq!(cursor.pending(after(512)), 0);
        let taken = cursor.take(&card, after(1_124), &mut buffer);
        assert_eq!(
            taken,
            Taken {
                samples: 100,
                lost: 1_024,
                missing: 0
            }
        );
        assert_eq!(buffer[0], 1_024);
    }

    #[test]
    fn what_is_skipped_keeps_its_time() {
        let (card, mut cursor) = connected();
        // The output was filled to 210.
        assert!(!cursor.is_dry(after(210)));
        assert!(cursor.is_dry(after(211)));
        assert_eq!(cursor.skip(after(300), 210), 0);
        assert!(!cursor.is_dry(after(300)));
        assert_eq!(cursor.pending(after(300)), 90);
        assert_eq!(cursor.put(&card, after(300), &[7; 210]), 0);
        assert_eq!(card.departed(1, 420), 7);
        // The input ring has wrapped meanwhile, and holds less than a block.
        assert_eq!(cursor.skip(after(210 + 600), 210), 512);
        assert_eq!(cursor.pending(after(810)), 0);
    }

    #[test]
    fn an_output_block_that_is_late_goes_out_as_garbage_and_keeps_its_time() {
        let (card, mut cursor) = connected();
        let first: Vec<i16> = (1_000..1_210).collect();
        assert_eq!(cursor.put(&card, after(100), &first), 0);
        let second: Vec<i16> = (2_000..2_210).collect();
        // The second block's place is 420; the card is at 430 when it comes.
        assert_eq!(cursor.put(&card, after(430), &second), 10);
        assert_eq!(card.departed(1, 210), 1_000);
        assert_eq!(
            card.departed(1, 429),
            0,
            "nothing was in the ring 512 samples before"
        );
        assert_eq!(card.departed(1, 430), 2_010);
        assert_eq!(
            card.departed(1, 722),
            1_000,
            "what the ring held 512 samples before"
        );
    }

    #[test]
    fn a_call_has_four_programmings() {
        let card = Card::new(Instant::ZERO);
        assert_eq!(card.epoch(), 0);
        for epoch in 1..4 {
            assert_eq!(card.program(Setting::DIALING, Instant::ZERO), Some(epoch));
        }
        assert_eq!(card.program(Setting::DIALING, Instant::ZERO), None);
        assert!(card.programming(4).is_none());
    }
}
