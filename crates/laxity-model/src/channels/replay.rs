//! Which counters of sealed frames have been seen: a frame that comes again is refused, and so is one that is too old to tell.
//!
//! A ring of bits, of which each word is cleared when the greatest counter enters it (RFC 6479): a counter costs a look at one word, however far it is ahead.

const WORD: u64 = u64::BITS as u64;
const WORDS: usize = 33;

/// A counter that lies so far below the greatest one seen is refused, and any nearer one is taken exactly once. Frames that are overtaken by more than so many others count as lost.
pub const WIDTH: u64 = (WORDS as u64 - 1) * WORD;

/// The counters of one session that have been seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Window {
    /// One above the greatest that was seen.
    next: u64,
    /// A bit for each of the last counters: that of counter c is in word ⌊c / 64⌋, modulo their number.
    seen: [u64; WORDS],
}

impl Default for Window {
    fn default() -> Self {
        Self {
            next: 0,
            seen: [0; WORDS],
        }
    }
}

impl Window {
    /// Whether a frame with this counter may be taken: it was not seen, and not too old. O(1). To be asked before a frame is opened, which costs more; nothing changes.
    #[must_use]
    pub const fn is_new(&self, counter: u64) -> bool {
        if counter == u64::MAX {
            return false;
        }
        if counter >= self.next {
            return true;
        }
        let behind = self.next - 1 - counter;
        behind < WIDTH && self.seen[word(counter)] & bit(counter) == 0
    }

    /// A frame with this counter is genuine: it is seen from now on. Whether it was new. O(1), but for a word that is cleared for each 64 counters that are skipped, all of them at the most.
    pub fn take(&mut self, counter: u64) -> bool {
        if !self.is_new(counter) {
            return false;
        }
        if counter >= self.next {
            // The first word that no counter below `next` lies in, to that of the counter.
            let from = self.next.div_ceil(WORD);
            let skipped = (counter / WORD + 1).saturating_sub(from);
            for offset in 0..skipped.min(WORDS as u64) {
                self.seen[((counter / WORD - offset) % WORDS as u64) as usize] = 0;
            }
            self.next = counter + 1;
        }
        self.seen[word(counter)] |= bit(counter);
        true
    }
}

const fn word(counter: u64) -> usize {
    (counter / WORD % WORDS as u64) as usize
}

const fn bit(counter: u64) -> u64 {
    1 << (counter % WORD)
}
