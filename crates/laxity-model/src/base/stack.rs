//! Small numbers in the hands of many threads: a stack without locks, in which nobody waits for anybody.
//!
//! Whoever holds something by its number puts the number here for others to take. What is taken together comes out whole, so that who
//! collects what many have put need not win against each of them.
//!
//! All looks and exchanges are sequentially consistent. So who changes a word and then looks here, and who puts here and then looks
//! at that word, do not both miss the other; such a word tells whether anybody still takes.

use alloc::boxed::Box;

use super::atomic::{AtomicU32, AtomicU64, Ordering};

/// The lower bits of the head are the number on top, or [`NONE`]; the others count what was put and taken. A taker that was
/// interrupted between its look and its exchange is wrong only if exactly 2⁴⁰ changes, or a multiple, came between: days at ten
/// million a second.
const BITS: u32 = 24;
const NONE: u32 = (1 << BITS) - 1;
const MASK: u64 = NONE as u64;

/// Numbers from 0 up to a capacity, each at most once.
pub struct Stack {
    head: AtomicU64,
    /// For each number that is here, which one is below it.
    below: Box<[AtomicU32]>,
}

impl Stack {
    /// The largest capacity.
    pub const MOST: u32 = NONE;

    /// An empty one, for the numbers below `capacity`; `None` if that is more than [`Self::MOST`].
    #[must_use]
    pub fn new(capacity: u32) -> Option<Self> {
        (capacity <= Self::MOST).then(|| Self {
            head: AtomicU64::new(MASK),
            below: (0..capacity).map(|_| AtomicU32::new(NONE)).collect(),
        })
    }

    const fn changed(head: u64, top: u32) -> u64 {
        ((head & !MASK).wrapping_add(MASK + 1)) | top as u64
    }

    /// Puts a number that is not here: whoever calls is the only one who has it.
    ///
    /// # Panics
    ///
    /// The number is not below the capacity.
    #[inline]
    pub fn push(&self, number: u32) {
        let below = &self.below[number as usize];
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            below.store((head & MASK) as u32, Ordering::Relaxed);
            // Also a release: whoever takes the number sees all that was done before.
            let changed = Self::changed(head, number);
            match self.exchange(head, changed) {
                Ok(_) => return,
                Err(other) => head = other,
            }
        }
    }

    /// Takes the number that was put last.
    #[inline]
    pub fn pop(&self) -> Option<u32> {
        let mut head = self.head.load(Ordering::SeqCst);
        loop {
            let top = (head & MASK) as u32;
            let below = self.below.get(top as usize)?.load(Ordering::Relaxed);
            match self.exchange(head, Self::changed(head, below)) {
                Ok(_) => return Some(top),
                Err(other) => head = other,
            }
        }
    }

    /// Takes all that is here: the last that was put comes first. Costs one look where nothing is here.
    #[inline]
    pub fn take_all(&self) -> Taken<'_> {
        let mut head = self.head.load(Ordering::SeqCst);
        while head & MASK != MASK {
            match self.exchange(head, Self::changed(head, NONE)) {
                Ok(_) => break,
                Err(other) => head = other,
            }
        }
        Taken {
            below: &self.below,
            next: (head & MASK) as u32,
        }
    }

    #[inline]
    fn exchange(&self, head: u64, changed: u64) -> Result<u64, u64> {
        self.head
            .compare_exchange(head, changed, Ordering::SeqCst, Ordering::SeqCst)
    }
}

/// What was taken together. Each number may be put again as soon as it came out.
pub struct Taken<'a> {
    below: &'a [AtomicU32],
    next: u32,
}

impl Iterator for Taken<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let number = self.next;
        self.next = self.below.get(number as usize)?.load(Ordering::Relaxed);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    proptest! {
        /// The oracle is a vector.
        #[test]
        fn what_was_put_last_is_taken_first_and_once(
            steps in proptest::collection::vec((0..3_u8, 0..8_u32), 0..80),
        ) {
            let stack = Stack::new(8).unwrap();
            let mut oracle: Vec<u32> = Vec::new();
            for (step, number) in steps {
                match step {
                    0 if !oracle.contains(&number) => {
                        stack.push(number);
                        oracle.push(number);
                    }
                    1 => prop_assert_eq!(stack.pop(), oracle.pop()),
                    2 => {
                        let all: Vec<u32> = stack.take_all().collect();
                        oracle.reverse();
                        prop_assert_eq!(all, core::mem::take(&mut oracle));
                    }
                    _ => {}
                }
            }
        }
    }
}
