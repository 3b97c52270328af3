//! A driver's place in the rings of its card.

use laxity_model::Instant;

use super::ring::{Card, Programming, Setting};
use super::served::Unserved;

/// The driver's place in the card's two rings, for one epoch.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    epoch: usize,
    programming: Programming,
    read: u64,
    written: u64,
}

/// What a driver found in the input ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Taken {
    /// Samples put into the driver's buffer.
    pub samples: usize,
    /// Samples lost to overflow before them.
    pub lost: u64,
    /// Samples among them that the line had not delivered when their time came; zeros stand in for them.
    pub missing: u64,
}

impl Cursor {
    /// A cursor at the start of a card that has just been made. The output is filled with silence for the first block and `lead` samples
    /// more.
    #[must_use]
    pub(crate) fn new(setting: Setting, lead: u64) -> Self {
        let started = Instant::ZERO;
        Self::at(0, Programming { setting, started }, lead)
    }

    pub(super) fn at(epoch: usize, programming: Programming, lead: u64) -> Self {
        Self {
            epoch,
            programming,
            read: 0,
            written: programming.setting.samples_in(1) + lead,
        }
    }

    /// The epoch this cursor belongs to.
    pub(crate) fn epoch(&self) -> usize {
        self.epoch
    }

    /// The programming in force.
    pub(crate) fn programming(&self) -> Programming {
        self.programming
    }

    fn unread(&self, now: Instant) -> u64 {
        self.programming.position(now).saturating_sub(self.read)
    }

    /// Samples lost to overflow before the next that can be read on.
    fn lost(&self, now: Instant) -> u64 {
        let unread = self.unread(now);
        unread - unread % self.programming.setting.ring
    }

    /// Samples that newer ones were written over before they were read, for a driver whose blocks have their places in the ring.
    pub(super) fn overwritten(&self, now: Instant) -> u64 {
        let ring = self.programming.setting.ring;
        self.unread(now).saturating_sub(ring)
    }

    /// Samples in the input ring that are not read yet, as a driver sees them that reads on: modulo the ring.
    pub(crate) fn pending(&self, now: Instant) -> u64 {
        self.unread(now) % self.programming.setting.ring
    }

    /// Whether the card has sent all that was written, and more.
    pub(crate) fn is_dry(&self, now: Instant) -> bool {
        self.programming.position(now) > self.written
    }

    /// Passes over a block of both rings: its input is not read, its output not written. Returns how many input samples were lost to
    /// overflow before it.
    pub(crate) fn skip(&mut self, now: Instant, samples: u64) -> u64 {
        let (unread, lost) = (self.unread(now), self.lost(now));
        self.read += lost + samples.min(unread - lost);
        self.written += samples;
        lost
    }

    /// Moves up to `buffer.len()` samples out of the input ring, from where the driver was.
    pub(crate) fn take(&mut self, card: &Card, now: Instant, buffer: &mut [i16]) -> Taken {
        let lost = self.lost(now);
        self.read += lost;
        let samples = buffer.len().min(self.unread(now) as usize);
        let missing = card.arrived(self.epoch, self.read, &mut buffer[..samples]);
        self.read += samples as u64;
        Taken {
            samples,
            lost,
            missing,
        }
    }

    /// Whether nothing is left of the next block: the card has written all of the one that takes its place.
    pub(crate) fn is_gone(&self, now: Instant, block: u64) -> bool {
        self.unread(now) >= block + self.programming.setting.ring
    }

    /// Passes over the next block of the input.
    pub(crate) fn skip_block(&mut self, block: u64) {
        self.read += block;
    }

    /// Copies the place in the input ring where the next block was written: what is there by `now`. Returns how many of its samples newer
    /// ones had been written over, which stand in their place.
    pub(crate) fn take_block(&mut self, card: &Card, now: Instant, block: &mut [i16]) -> u64 {
        let newer = self.read + self.programming.setting.ring;
        let over = self.programming.position(now).saturating_sub(newer);
        let over = over.min(block.len() as u64);
        let (overwritten, rest) = block.split_at_mut(over as usize);
        card.arrived(self.epoch, newer, overwritten);
        card.arrived(self.epoch, self.read + over, rest);
        self.read += block.len() as u64;
        over
    }

    /// What the card has done by `now` beyond a driver that has served so many interrupts: it reads on from where it was, and writes.
    pub(crate) fn unserved(&self, now: Instant, served: u64) -> Unserved {
        let raised = (served + 1..).map(|k| self.programming.interrupt_at(k));
        Unserved {
            raised: raised.take_while(|raised| *raised <= now).collect(),
            pending: self.unread(now).min(self.programming.setting.ring),
            lost: self.lost(now),
            underrun: self.programming.position(now).saturating_sub(self.written),
            ..Unserved::default()
        }
    }

    /// Puts a block into the output ring at its place in time. Returns how many of its samples came too late: the card has
    /// already sent garbage in their stead.
    pub(crate) fn put(&mut self, card: &Card, now: Instant, block: &[i16]) -> u64 {
        let position = self.programming.position(now);
        let late = position
            .saturating_sub(self.written)
            .min(block.len() as u64);
        for (index, sample) in (self.written..).zip(block).skip(late as usize) {
            card.depart(self.epoch, index, *sample);
        }
        self.written += block.len() as u64;
        late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: Setting = Setting {
        rate_hz: 16_000,
        blocks: [210, 210, 180],
        ring: 512,
    };
    const BLOCKS: Setting = Setting {
        rate_hz: 48_000,
        blocks: [480; 3],
        ring: 960,
    };

    fn on_a_line() -> (Card, Cursor) {
        let card = Card::duplex(BLOCKS);
        let cursor = card.program(LINE, Instant::from_millis(100), 0).unwrap();
        for index in 0..20_000 {
            card.arrive(cursor.epoch(), index, (index % 30_000) as i16);
        }
        (card, cursor)
    }

    /// The instant at which the card has moved exactly this many samples of [`on_a_line`].
    fn after(samples: u64) -> Instant {
        Instant::from_millis(100) + LINE.duration(samples)
    }

    /// The same of a card that plays or records blocks.
    fn after_blocks(samples: u64) -> Instant {
        Instant::ZERO + BLOCKS.duration(samples)
    }

    #[test]
    fn a_driver_in_time_loses_nothing() {
        let (card, mut cursor) = on_a_line();
        let mut buffer = [0; 210];
        for k in 0..30 {
            let block = LINE.block(k) as usize;
            let now = after(LINE.samples_in(k + 1));
            let taken = cursor.take(&card, now, &mut buffer[..block]);
            let all = Taken {
                samples: block,
                lost: 0,
                missing: 0,
            };
            assert_eq!(taken, all);
            assert_eq!(i64::from(buffer[0]), LINE.samples_in(k) as i64);
            assert_eq!(cursor.put(&card, now, &buffer[..block]), 0);
        }
    }

    #[test]
    fn a_wrapped_ring_shows_only_what_is_left() {
        let (card, mut cursor) = on_a_line();
        let mut buffer = [0; 210];
        assert_eq!(cursor.pending(after(511)), 511);
        assert_eq!(cursor.pending(after(512)), 0);
        let left = Taken {
            samples: 100,
            lost: 1_024,
            missing: 0,
        };
        assert_eq!(cursor.take(&card, after(1_124), &mut buffer), left);
        assert_eq!(buffer[0], 1_024);
    }

    #[test]
    fn what_is_skipped_keeps_its_time() {
        let (card, mut cursor) = on_a_line();
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
        let (card, mut cursor) = on_a_line();
        let first: Vec<i16> = (1_000..1_210).collect();
        assert_eq!(cursor.put(&card, after(100), &first), 0);
        let second: Vec<i16> = (2_000..2_210).collect();
        // The second block's place is 420; the card is at 430 when it comes.
        assert_eq!(cursor.put(&card, after(430), &second), 10);
        assert_eq!(card.departed(1, 210), 1_000);
        let empty = "nothing was in the ring 512 samples before";
        assert_eq!(card.departed(1, 429), 0, "{empty}");
        assert_eq!(card.departed(1, 430), 2_010);
        let stale = "what the ring held 512 samples before";
        assert_eq!(card.departed(1, 722), 1_000, "{stale}");
    }

    #[test]
    fn a_block_is_whole_until_its_place_is_written_again() {
        let card = Card::capture(BLOCKS, (0..7 * 480).collect());
        let mut buffer = [0; 480];
        let mut second = Cursor::new(BLOCKS, 0);
        second.skip_block(480);
        let overwritten = |now, buffer: &mut [i16]| {
            let mut cursor = second.clone();
            cursor.take_block(&card, after_blocks(now), buffer)
        };
        assert_eq!(overwritten(960, &mut buffer), 0);
        assert_eq!(overwritten(1_440, &mut buffer), 0);
        assert_eq!((buffer[0], buffer[479]), (480, 959));
        assert_eq!(overwritten(1_540, &mut buffer), 100);
        // The newer block's samples stand where they were written, the older one's behind them.
        assert_eq!((buffer[0], buffer[99], buffer[100]), (1_440, 1_539, 580));
        assert!(!second.is_gone(after_blocks(1_919), 480));
        assert!(second.is_gone(after_blocks(1_920), 480));
    }

    #[test]
    fn the_recording_begins_again() {
        let card = Card::capture(BLOCKS, (0..7 * 480).collect());
        let (mut cursor, mut buffer) = (Cursor::new(BLOCKS, 0), [0; 480]);
        cursor.skip_block(8 * 480);
        cursor.take_block(&card, after_blocks(9 * 480), &mut buffer);
        assert_eq!((buffer[0], buffer[479]), (480, 959));
    }

    #[test]
    fn what_is_played_late_goes_out_as_it_was_a_ring_ago() {
        let card = Card::playback(BLOCKS);
        let mut cursor = Cursor::new(BLOCKS, 0);
        assert_eq!(cursor.put(&card, after_blocks(0), &[7; 960]), 0);
        assert_eq!(cursor.put(&card, after_blocks(1_540), &[9; 480]), 100);
        let heard = [480, 1_439, 1_440, 1_539, 1_540, 1_919, 1_920];
        let heard = heard.map(|index| card.departed(0, index));
        assert_eq!(heard, [7, 7, 7, 7, 9, 9, 7]);
    }
}
