//! How many frames of a socket have not left yet, told by the memory that the kernel says is still out.
//!
//! The kernel charges a socket for each of its frames until that is gone (`SIOCOUTQ`), but does not say which. Frames leave a queue in the order in which they came. So, with
//! a bound from below of what each was charged, the number of those that may still be there is known from above, and never too low: were *k* there, they would be charged
//! at least as much as their bounds are together.

use std::collections::VecDeque;

/// The frames of a socket that were not told as gone.
#[derive(Debug, Default)]
pub(in crate::net) struct Held {
    /// What each was charged at least, the oldest first.
    charges: VecDeque<u64>,
    together: u64,
}

impl Held {
    /// A frame of so many bytes was given to the kernel, which had so much memory out before, and has so much after.
    pub(in crate::net) fn add(&mut self, bytes: usize, (before, after): (u64, u64)) {
        // Others may have left meanwhile, so that the difference is what it was charged, or less.
        let charge = after.saturating_sub(before).max(bytes as u64).max(1);
        self.charges.push_back(charge);
        self.together += charge;
    }

    /// Whether the oldest is gone, with so much memory out; then it is told, once.
    pub(in crate::net) fn has_left(&mut self, out: u64) -> bool {
        if self.together <= out {
            return false;
        }
        let oldest = self.charges.pop_front();
        self.together -= oldest.unwrap_or_default();
        oldest.is_some()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Beside a queue that knows what it has: never more are told than are gone, none of them late where frames are charged alike, and all once none is there.
        #[test]
        fn no_more_are_told_than_are_gone(
            frames in prop::collection::vec((1_usize..2_000, 0_u64..3_000, 0_usize..3, 0_usize..3), 1..60),
            alike in any::<bool>(),
        ) {
            let (mut held, mut queue) = (Held::default(), VecDeque::new());
            let (mut gone, mut told) = (0, 0);
            let out = |queue: &VecDeque<u64>| queue.iter().sum::<u64>();
            for (bytes, more, leave_while, leave_after) in frames {
                let (bytes, more) = if alike { (1_000, 1_304) } else { (bytes, more) };
                let before = out(&queue);
                let leaves = leave_while.min(queue.len());
                gone += queue.drain(..leaves).count();
                queue.push_back(bytes as u64 + more);
                held.add(bytes, (before, out(&queue)));
                let leaves = leave_after.min(queue.len());
                gone += queue.drain(..leaves).count();
                while held.has_left(out(&queue)) {
                    told += 1;
                }
                prop_assert!(told <= gone);
                prop_assert!(!alike || leave_while > 0 || told == gone || held.charges.iter().any(|one| *one < 2_304));
            }
            gone += queue.drain(..).count();
            while held.has_left(0) {
                told += 1;
            }
            prop_assert_eq!(told, gone);
        }
    }
}
