//! Which of a flow's packets never came, and of which nobody knows that at a run's end.

use std::collections::BTreeMap;

use laxity_model::{Instant, Span};

/// What may happen to packets on their way, so that one that is missing is not lost yet.
#[derive(Clone, Copy, Debug)]
pub struct OnTheWay {
    /// Whether they come in the order in which they left.
    pub keeps_order: bool,
    /// So many threads each may have one in their hands.
    pub hands: usize,
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

    /// When those left that are missing at the end, and do not wait for a thread, as these do: first those that surely are lost, and then those of which that is not known. Not among them are
    /// the last few, which have taken no longer than others did, nor than is waited for: no more than a tenth of all, so that it is not survivors alone that are judged.
    pub(super) fn at_end(
        mut self,
        end: Instant,
        way: OnTheWay,
        waiting: impl Iterator<Item = u64>,
    ) -> [Vec<Instant>; 2] {
        // Who worked on the last that came has that one in his hands no more; of one that waits, nobody had it there.
        let (mut latest, mut hands) = (self.latest, way.hands.saturating_sub(1));
        for number in waiting {
            self.left.remove(&number);
            if latest < Some(number) {
                (latest, hands) = (Some(number), way.hands);
            }
        }
        let passed = self.left.range(..latest.unwrap_or(0)).count();
        let surely = match way.keeps_order {
            true => passed.saturating_sub(hands),
            false => 0,
        };
        let took = |left: &Instant| end.saturating_since(*left);
        let patience = self.slowest + way.patience;
        let mut left = self.left.into_values();
        let mut lost: Vec<Instant> = left.by_ref().take(surely).collect();
        let (mut late, mut open): (Vec<_>, Vec<_>) = left.partition(|left| took(left) >= patience);
        open.extend(late.split_off(late.len().saturating_sub(way.hands)));
        lost.extend(late);
        let is_few = open.len() <= self.sent / 10;
        let usual = self.slowest.min(way.patience);
        open.retain(|left| !is_few || took(left) > usual);
        [lost, open]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn way(keeps_order: bool, hands: usize) -> OnTheWay {
        OnTheWay {
            keeps_order,
            hands,
            patience: Span::from_secs(1),
        }
    }

    /// How many are lost, and of how many nobody knows.
    fn at_end(
        missing: Missing,
        end_ms: u64,
        way: OnTheWay,
        waiting: impl IntoIterator<Item = u64>,
    ) -> [usize; 2] {
        let found = missing.at_end(Instant::from_millis(end_ms), way, waiting.into_iter());
        found.map(|all| all.len())
    }

    /// The same of one every 10 ms for 300 ms, of which those that are worked on are 4 ms later.
    fn missing(came: impl Fn(u64) -> bool, way: OnTheWay, end_ms: u64) -> [usize; 2] {
        let mut missing = Missing::default();
        for number in 0..30 {
            missing.sent(number, Instant::from_millis(10 * number));
        }
        for number in (0..30).filter(|number| came(*number)) {
            missing.worked(number, Instant::from_millis(10 * number + 4));
        }
        at_end(missing, end_ms, way, [])
    }

    #[test]
    fn what_a_later_packet_has_passed_is_lost_but_for_what_others_have_in_hands() {
        let third = |number| number % 3 == 0;
        // The last two are behind the last that came.
        assert_eq!(missing(third, way(true, 1), 300), [18, 2]);
        assert_eq!(missing(third, way(true, 4), 300), [15, 5]);
        assert_eq!(missing(third, way(false, 1), 300), [0, 20]);
        assert_eq!(missing(|number| number != 3, way(true, 1), 300), [1, 0]);
    }

    #[test]
    fn what_takes_longer_than_any_is_not_known_and_no_more_than_a_few_are_let_pass() {
        // It left 4 ms ago, as others took; then 5 ms ago.
        assert_eq!(missing(|number| number < 29, way(true, 1), 294), [0, 0]);
        assert_eq!(missing(|number| number < 29, way(true, 1), 295), [0, 1]);
        // None took longer than the first, which came at last: more than a tenth may be under way.
        let mut missing = Missing::default();
        for number in 0..30 {
            missing.sent(number, Instant::from_millis(number));
        }
        missing.worked(0, Instant::from_millis(200));
        assert_eq!(at_end(missing, 200, way(true, 1), []), [0, 29]);
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
        assert_eq!(at_end(missing, 3_000, way(false, 1), []), [0, 1]);
    }

    #[test]
    fn what_has_been_away_for_too_long_is_lost_though_nothing_came() {
        assert_eq!(missing(|_| false, way(false, 1), 300), [0, 30]);
        // One of them may be in the thread's hands.
        assert_eq!(missing(|_| false, way(false, 1), 1_100), [10, 20]);
        assert_eq!(missing(|number| number < 10, way(true, 1), 1_300), [19, 1]);
        assert_eq!(missing(|number| number < 10, way(true, 2), 1_290), [17, 3]);
    }

    /// Of 30, every seventh is lost, and some of the others wait: none of these is taken for another.
    #[test]
    fn what_waits_is_known_by_its_number() {
        let lost = |number: &u64| number % 7 == 3;
        let sent = || {
            let mut missing = Missing::default();
            (0..30).for_each(|number| missing.sent(number, Instant::from_millis(number)));
            missing
        };
        let all = || (0..30).filter(|number| !lost(number));
        // Lost are 3, 10, 17 and 24; the thread may have one of these in its hands.
        assert_eq!(at_end(sent(), 30, way(true, 1), all()), [3, 1]);
        let mut some = sent();
        for number in all().filter(|number| *number < 12) {
            some.worked(number, Instant::from_millis(29));
        }
        let waiting = all().filter(|number| *number > 12);
        // The thread has the twelfth in its hands: as many as are lost are told as lost.
        assert_eq!(at_end(some, 30, way(true, 1), waiting), [4, 0]);
        // What does not keep its order tells of none until it has been away for too long.
        assert_eq!(at_end(sent(), 30, way(false, 1), all()), [0, 4]);
        assert_eq!(at_end(sent(), 1_030, way(false, 1), all()), [3, 1]);
    }
}
