//! Which of a flow's packets never came, and of which nobody knows that at a run's end.

use std::collections::BTreeMap;

use laxity_model::{Instant, Span};

/// What may happen to packets on their way, so that one that is missing is not lost yet.
#[derive(Clone, Copy, Debug)]
pub struct OnTheWay {
    /// So many at the most are not worked on though a later one is: those that other threads have in their hands. `None`: the wire itself has them overtaken.
    pub overtaken: Option<usize>,
    /// What has been on its way for so much longer than any that came is lost.
    pub patience: Span,
}

/// Packets that left, by their numbers, and when each of them did that was not worked on yet.
#[derive(Default)]
pub(super) struct Missing {
    left: BTreeMap<u64, Instant>,
    sent: usize,
    /// The last in their order that was worked on.
    latest: Option<u64>,
    /// The longest that any took until it was worked on.
    slowest: Span,
}

impl Missing {
    pub(super) fn sent(&mut self, number: u64, at: Instant) {
        self.left.insert(number, at);
        self.sent += 1;
    }

    /// When a packet left that is worked on now; `None`: it was before.
    pub(super) fn worked(&mut self, number: u64, at: Instant) -> Option<Instant> {
        let sent = self.left.remove(&number)?;
        self.latest = self.latest.max(Some(number));
        self.slowest = self.slowest.max(at.saturating_since(sent));
        Some(sent)
    }

    /// When those left that are missing at the end: first those that surely are lost, and then those of which that is not known. Not among them are so many as still wait for
    /// a thread, which of them these may be, and the last few, which have taken no longer than others did, nor than is waited for: no more than a tenth of all, so that it is not survivors alone that are judged.
    pub(super) fn at_end(self, end: Instant, way: OnTheWay, waiting: usize) -> [Vec<Instant>; 2] {
        let before = self.latest.unwrap_or(0);
        let passed = self.left.range(..before).count();
        let surely = way
            .overtaken
            .map_or(0, |overtaken| passed.saturating_sub(overtaken));
        let took = |left: Instant| end.saturating_since(left);
        let patience = self.slowest + way.patience;
        let mut left = self.left.into_values();
        let mut lost: Vec<Instant> = left.by_ref().take(surely).collect();
        // Nobody tells which of the others wait: as if the oldest did, so that none of them is taken for lost.
        let under_way = left.skip(waiting);
        let (late, open): (Vec<_>, Vec<_>) = under_way.partition(|left| took(*left) >= patience);
        lost.extend(late);
        let is_few = open.len() <= self.sent / 10;
        let open = open.into_iter();
        let usual = self.slowest.min(way.patience);
        let open = open.filter(|left| !is_few || took(*left) > usual);
        [lost, open.collect()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One every 10 ms for 300 ms, of which those that are worked on are 4 ms later: how many are lost, and of how many nobody knows.
    fn missing(came: impl Fn(u64) -> bool, overtaken: Option<usize>, end_ms: u64) -> [usize; 2] {
        let mut missing = Missing::default();
        for number in 0..30 {
            missing.sent(number, Instant::from_millis(10 * number));
        }
        for number in (0..30).filter(|number| came(*number)) {
            missing.worked(number, Instant::from_millis(10 * number + 4));
        }
        let way = OnTheWay {
            overtaken,
            patience: Span::from_secs(1),
        };
        let [lost, open] = missing.at_end(Instant::from_millis(end_ms), way, 0);
        [lost.len(), open.len()]
    }

    #[test]
    fn what_a_later_packet_has_passed_is_lost_but_for_what_others_have_in_hands() {
        let third = |number| number % 3 == 0;
        // The last two are behind the last that came.
        assert_eq!(missing(third, Some(0), 300), [18, 2]);
        assert_eq!(missing(third, Some(3), 300), [15, 5]);
        assert_eq!(missing(third, None, 300), [0, 20]);
        assert_eq!(missing(|number| number != 3, Some(0), 300), [1, 0]);
    }

    #[test]
    fn what_takes_longer_than_any_is_not_known_and_no_more_than_a_few_are_let_pass() {
        // It left 4 ms ago, as others took; then 5 ms ago.
        assert_eq!(missing(|number| number < 29, Some(0), 294), [0, 0]);
        assert_eq!(missing(|number| number < 29, Some(0), 295), [0, 1]);
        // None took longer than the first, which came at last: more than a tenth may be under way.
        let mut missing = Missing::default();
        for number in 0..30 {
            missing.sent(number, Instant::from_millis(number));
        }
        missing.worked(0, Instant::from_millis(200));
        let way = OnTheWay {
            overtaken: Some(0),
            patience: Span::from_secs(1),
        };
        let [lost, open] = missing.at_end(Instant::from_millis(200), way, 0);
        assert_eq!([lost.len(), open.len()], [0, 29]);
    }

    #[test]
    fn one_that_was_very_late_excuses_no_others() {
        let mut missing = Missing::default();
        for number in 0..300 {
            missing.sent(number, Instant::from_millis(10 * number));
        }
        for number in (1..300).filter(|number| *number != 150) {
            missing.worked(number, Instant::from_millis(10 * number + 4));
        }
        missing.worked(0, Instant::from_millis(2_900));
        let way = OnTheWay {
            overtaken: None,
            patience: Span::from_secs(1),
        };
        let [lost, open] = missing.at_end(Instant::from_millis(3_000), way, 0);
        assert_eq!([lost.len(), open.len()], [0, 1]);
    }

    #[test]
    fn what_has_been_away_for_too_long_is_lost_though_nothing_came() {
        assert_eq!(missing(|_| false, None, 300), [0, 30]);
        assert_eq!(missing(|_| false, None, 1_100), [11, 19]);
        assert_eq!(missing(|number| number < 10, Some(0), 1_300), [20, 0]);
        assert_eq!(missing(|number| number < 10, Some(0), 1_290), [19, 1]);
    }
}
