//! How many packets of a channel may be current in a time, where somebody else sends them.

use super::Passes;
use laxity_model::channels::admission::Traffic;
use laxity_model::{Instant, Span};

/// What a channel was granted, in packets.
///
/// A message has N of them at the most, and logical arrivals are no closer than I: so the packet that comes N behind another one is current no sooner than I after it. That needs no word of the frames' about which message they are of. What a link took unseen makes a packet look
/// as if it was current later, so the one behind it may be nearer by as much.
#[derive(Clone, Debug)]
pub struct Pace {
    /// No sooner is the packet current that comes next in each place of the last N.
    from: Box<[Instant]>,
    next: usize,
    interval: Span,
    unseen: Span,
}

impl Pace {
    /// Of this traffic in packets of so many bytes; the link before takes no more than `unseen` of a frame that no hop sees. Allocates 8 bytes for each packet of the largest message.
    #[must_use]
    pub fn new(traffic: &Traffic, packets: core::num::NonZeroU32, unseen: Span) -> Self {
        Self {
            from: vec![Instant::ZERO; packets.get() as usize].into(),
            next: 0,
            interval: traffic.interval(),
            unseen,
        }
    }

    /// Another grant holds from now on. For the change of it no more is admitted than it says by how much closer messages may come, once.
    pub(super) fn settle(&mut self, passes: &Passes) {
        let packets = passes.packets.get() as usize;
        let mut from = std::mem::take(&mut self.from).into_vec();
        // The one that comes next first.
        from.rotate_left(self.next);
        from.drain(..from.len().saturating_sub(packets));
        let latest = from.iter().max().copied();
        from.resize(packets, latest.unwrap_or(Instant::ZERO));
        for from in &mut from {
            *from = from.saturating_sub(passes.closer);
        }
        let unseen = passes.unseen.checked_add(passes.closer);
        *self = Self {
            from: from.into(),
            next: 0,
            interval: passes.traffic.interval(),
            unseen: unseen.unwrap_or(Span::MAX),
        };
    }

    /// Whether a packet may be current then. If so it is counted, and else it is as if it had not come. O(1).
    pub fn admits(&mut self, logical: Instant) -> bool {
        let from = &mut self.from[self.next];
        if logical < *from {
            return false;
        }
        let at_the_earliest = logical.saturating_sub(self.unseen);
        let next = (*from).max(at_the_earliest).checked_add(self.interval);
        *from = next.unwrap_or(Instant::MAX);
        self.next = (self.next + 1) % self.from.len();
        true
    }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU32;

    use super::*;

    fn traffic(nanos: u64) -> Traffic {
        Traffic::new(10, (1, Span::from_nanos(nanos)), 1).expect("traffic")
    }

    fn admits(pace: &mut Pace, logical: u64) -> bool {
        pace.admits(Instant::from_nanos(logical))
    }

    fn passes(nanos: u64, packets: u32, closer: u64) -> Passes {
        Passes {
            traffic: traffic(nanos),
            packets: NonZeroU32::new(packets).expect("not 0"),
            buffers: [0; 2],
            earliest: Span::ZERO,
            unseen: Span::ZERO,
            closer: Span::from_nanos(closer),
        }
    }

    #[test]
    fn a_change_lets_in_no_more_than_it_says() {
        let two = NonZeroU32::new(2).expect("not 0");
        let mut pace = Pace::new(&traffic(100), two, Span::ZERO);
        assert!(admits(&mut pace, 0) && admits(&mut pace, 0) && !admits(&mut pace, 99));
        // Messages have three packets, and two may be 50 apart: but not from the one before.
        pace.settle(&passes(50, 3, 0));
        assert!(!admits(&mut pace, 99));
        assert!((0..3).all(|_| admits(&mut pace, 100)) && !admits(&mut pace, 149));
        assert!((0..3).all(|_| admits(&mut pace, 150)));
        // The hop before becomes faster by 30.
        pace.settle(&passes(50, 3, 30));
        assert!(!admits(&mut pace, 169));
        assert!((0..3).all(|_| admits(&mut pace, 170)) && !admits(&mut pace, 189));
        // It is so once: by and by they are 50 apart again.
        let all = (190..10_190).filter(|logical| admits(&mut pace, *logical));
        assert_eq!(all.count(), 3 * 200);
        pace.settle(&passes(50, 1, 0));
        assert!(!admits(&mut pace, 10_219) && admits(&mut pace, 10_220));
        assert!(!admits(&mut pace, 10_269) && admits(&mut pace, 10_270));
    }
}
