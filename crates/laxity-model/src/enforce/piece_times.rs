//! How fast a processor works, by what a small fixed piece of work takes, again and again.
//!
//! A processor may go on and do next to nothing: those of a virtual machine went at a twelfth of their speed for 15 ms once in a second, as where its host is throttled. No thread wakes late then,
//! and whoever runs there is charged all of it. So what takes far longer than usual is as little anybody's doing there as where the processor stands still.

use crate::Span;

/// What one piece takes falls into one of so many classes for each doubling.
const IN_A_DOUBLING: usize = 8;
/// Of what takes a nanosecond to what takes 17 ms.
const CLASSES: usize = 24 * IN_A_DOUBLING;
/// So many pieces are remembered at most, some ten seconds' worth: then each counts half of what it did.
const REMEMBERED: u32 = 1 << 14;
/// What is usual is known after so many pieces.
const KNOWN_AFTER: u32 = 64;

/// What pieces took so far, on one processor, in one run or several.
///
/// ```
/// use laxity_model::Span;
/// use laxity_model::enforce::PieceTimes;
///
/// let mut times = PieceTimes::default();
/// let mut crawls = |nanos| times.crawls(Span::from_nanos(nanos));
/// assert!((0..100).all(|_| !crawls(400)));
/// assert!(!crawls(700));
/// assert!(crawls(4_800));
/// ```
#[derive(Clone, Debug)]
pub struct PieceTimes {
    seen: [u32; CLASSES],
    pieces: u32,
}

impl Default for PieceTimes {
    fn default() -> Self {
        Self {
            seen: [0; CLASSES],
            pieces: 0,
        }
    }
}

impl PieceTimes {
    /// A piece took so long: whether the processor is at half of its usual speed or less, by an eighth of that at most. Usual is the median of the pieces until now, of which those that are long past are forgotten; of the first nobody knows.
    pub fn crawls(&mut self, took: Span) -> bool {
        let class = class(took);
        let known = self.pieces >= KNOWN_AFTER;
        let crawls = known && class > self.median() + IN_A_DOUBLING;
        self.seen[class] += 1;
        self.pieces += 1;
        if self.pieces == REMEMBERED {
            self.seen.iter_mut().for_each(|seen| *seen /= 2);
            self.pieces = self.seen.iter().sum();
        }
        crawls
    }

    /// The class of the median.
    fn median(&self) -> usize {
        let mut below = 0;
        let reaches_half = |seen: &u32| {
            below += seen;
            below * 2 >= self.pieces
        };
        self.seen.iter().position(reaches_half).unwrap_or(0)
    }
}

/// An eighth of a doubling each.
fn class(took: Span) -> usize {
    let nanos = took.as_nanos().max(IN_A_DOUBLING as u64);
    let doublings = nanos.ilog2() as usize;
    // The three digits after the first.
    let within = (nanos >> (doublings - 3)) as usize % IN_A_DOUBLING;
    (doublings * IN_A_DOUBLING + within).min(CLASSES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crawled(pieces: impl IntoIterator<Item = u64>) -> Vec<bool> {
        let mut times = PieceTimes::default();
        let pieces = pieces.into_iter();
        pieces
            .map(|nanos| times.crawls(Span::from_nanos(nanos)))
            .collect()
    }

    use alloc::vec::Vec;
    use core::iter::repeat_n;

    #[test]
    fn half_of_the_usual_speed_is_too_slow_and_what_lies_above_is_not() {
        let after = |nanos| crawled(repeat_n(400, 64).chain([nanos]))[64];
        assert_eq!([400, 799, 831].map(after), [false; 3]);
        assert_eq!([936, 5_000, u64::MAX].map(after), [true; 3]);
        let before = crawled(repeat_n(400, 63).chain([5_000]));
        assert!(!before[63], "of the first nobody knows");
    }

    /// Where it stays slow that is its speed: whoever measures calls measures them so.
    #[test]
    fn what_half_of_all_pieces_took_is_usual() {
        let pieces = repeat_n(400, 1_000).chain(repeat_n(4_000, 1_100));
        let crawled = crawled(pieces);
        assert_eq!(crawled.iter().filter(|crawls| **crawls).count(), 1_001);
        assert!(!crawled[2_099]);
    }

    /// Whatever it was for an hour before.
    #[test]
    fn what_is_long_past_is_forgotten() {
        let pieces = repeat_n(400, 1_000_000).chain(repeat_n(4_000, 20_000));
        let crawled = crawled(pieces);
        assert!(crawled[1_004_000]);
        assert!(!crawled[1_019_999]);
    }

    /// Which a turbo and a cache that others use take from it by the minute.
    #[test]
    fn a_speed_that_moves_by_a_third_is_usual() {
        let pieces = (0..10_000).map(|nth| 300 + nth * 7_919 % 200);
        assert!(crawled(pieces).iter().all(|crawls| !crawls));
    }
}
