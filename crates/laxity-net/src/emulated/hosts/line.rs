//! One way of a cable: what its host has handed over, what is on the wire, and what of the kernel's is in the way.

use std::collections::VecDeque;

use laxity_model::nif::wire::{Faults, Flying, Framing, WHOLE, Way};
use laxity_model::{Instant, Span};

/// A frame of the node that is on the wire.
#[derive(Debug)]
struct Leaving {
    at: Instant,
    /// Whether whoever handed it over is still there to be told.
    is_told: bool,
}

/// Other traffic of the host, which never ends and goes in a class below the node's: a frame of it is on the wire whenever none of the node waits when the one before has left.
#[derive(Debug)]
struct Bulk {
    /// Of each frame, with all that the wire carries around it.
    bytes: usize,
    /// Its frames follow each other since then.
    since: Instant,
    frames: u64,
}

impl Bulk {
    /// When the frame that is on the wire now has left, which is now if one has just then or begins. All up to it are counted.
    fn leaves(&mut self, now: Instant, rate: u64) -> Instant {
        let takes = Framing::Bare.takes(self.bytes, rate);
        let passed = now.saturating_since(self.since).as_nanos();
        let Some(frames) = (takes > Span::ZERO).then(|| passed.div_ceil(takes.as_nanos())) else {
            return now;
        };
        self.frames += frames;
        self.since += takes * frames;
        self.since
    }
}

/// One way of a cable, with the queue in front of it.
#[derive(Debug)]
pub(super) struct Line {
    flying: Way,
    waiting: VecDeque<Vec<u8>>,
    leaving: Option<Leaving>,
    bulk: Option<Bulk>,
    /// What a wire carries around each of the node's frames.
    around: usize,
}

impl Line {
    pub(super) fn new(around: usize, seed: u64) -> Self {
        Self {
            flying: Way::new(seed),
            waiting: VecDeque::new(),
            leaving: None,
            bulk: None,
            around,
        }
    }

    /// When something happens here next.
    pub(super) fn next(&self) -> Option<Instant> {
        let leaving = self.leaving.as_ref().map(|leaving| leaving.at);
        leaving.into_iter().chain(self.flying.next()).min()
    }

    /// The host hands a frame over.
    pub(super) fn take(&mut self, now: Instant, frame: &[u8], faults: &Faults) {
        self.waiting.push_back(frame.to_vec());
        if self.leaving.is_none() {
            self.begins(now, faults);
        }
    }

    fn begins(&mut self, now: Instant, faults: &Faults) {
        let Some(frame) = self.waiting.pop_front() else {
            return;
        };
        let begins = match &mut self.bulk {
            Some(bulk) => bulk.leaves(now, faults.rate),
            None => now,
        };
        let at = begins + Framing::Bare.takes(frame.len() + self.around, faults.rate);
        self.flying.fly(&frame, at, WHOLE, faults);
        self.leaving = Some(Leaving { at, is_told: true });
        if let Some(bulk) = &mut self.bulk {
            bulk.since = at;
        }
    }

    /// Whether a frame has left by now of which the host is to be told. The next one begins.
    pub(super) fn has_left(&mut self, now: Instant, faults: &Faults) -> bool {
        let Some(left) = self.leaving.take_if(|leaving| leaving.at <= now) else {
            return false;
        };
        self.begins(left.at, faults);
        left.is_told
    }

    /// A frame that is at the other end by now.
    pub(super) fn land(&mut self, now: Instant) -> Option<Flying> {
        self.flying.land(now)
    }

    /// The host dies: what it has handed over is gone, but for what is on the wire.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        if let Some(leaving) = &mut self.leaving {
            leaving.is_told = false;
        }
    }

    /// From now on the host has other traffic without end, in frames that take so many bytes of the wire each; of 0, none.
    pub(super) fn bulk(&mut self, now: Instant, bytes: usize) {
        let since = self
            .leaving
            .as_ref()
            .map_or(now, |leaving| leaving.at.max(now));
        self.bulk = (bytes > 0).then_some(Bulk {
            bytes,
            since,
            frames: 0,
        });
    }

    /// Frames of other traffic that have left by now.
    pub(super) fn bulk_frames(&self, now: Instant, rate: u64) -> u64 {
        let Some(bulk) = &self.bulk else {
            return 0;
        };
        let takes = Framing::Bare.takes(bulk.bytes, rate).as_nanos();
        let begun = now.saturating_since(bulk.since).as_nanos();
        bulk.frames + begun.checked_div(takes).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,000 bytes at 8 Mbit/s take a millisecond.
    const FAULTS: Faults = Faults {
        rate: 8_000_000,
        delay: Span::ZERO,
        lost: 0,
        doubled: 0,
        late: 0,
        late_by: Span::ZERO,
        corrupted: 0,
    };

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Span::from_micros(micros)
    }

    #[test]
    fn a_frame_waits_for_one_of_other_traffic_and_those_behind_it_for_none() {
        let mut line = Line::new(0, 1);
        line.bulk(at(0), 1_000);
        line.take(at(2_500), &[0; 500], &FAULTS);
        line.take(at(2_600), &[0; 100], &FAULTS);
        assert_eq!(line.next(), Some(at(3_500)));
        assert!(!line.has_left(at(3_499), &FAULTS));
        assert!(line.has_left(at(3_500), &FAULTS));
        assert_eq!(line.land(at(3_500)).map(|frame| frame.at), Some(at(3_500)));
        assert_eq!(line.next(), Some(at(3_600)));
        assert!(line.has_left(at(3_600), &FAULTS));
        assert_eq!(line.bulk_frames(at(3_600), FAULTS.rate), 3);
        assert_eq!(line.bulk_frames(at(4_599), FAULTS.rate), 3);
        assert_eq!(line.bulk_frames(at(4_600), FAULTS.rate), 4);
        // At the very instant at which one ends, the node's is first.
        line.take(at(5_600), &[0; 500], &FAULTS);
        assert!(line.land(at(3_600)).is_some());
        assert_eq!(line.next(), Some(at(6_100)));
        assert_eq!(line.bulk_frames(at(6_100), FAULTS.rate), 5);
    }

    #[test]
    fn who_has_died_is_not_told_what_left() {
        let mut line = Line::new(0, 1);
        line.take(at(0), &[0; 1_000], &FAULTS);
        line.take(at(0), &[0; 1_000], &FAULTS);
        line.clear();
        assert!(!line.has_left(at(1_000), &FAULTS));
        assert!(
            line.land(at(1_000)).is_some(),
            "what was on the wire arrives"
        );
        assert_eq!(line.next(), None);
    }
}
