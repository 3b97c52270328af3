//! The message queue of a channel: nobody gets more than was stated, every message is accounted for, and each policy does what it says.

use std::num::NonZeroU32;

use laxity_model::channels::source::{Excess, Limits, Offered, Part, Source};
use laxity_model::nif::urgency::{Due, Stated};
use laxity_model::{Instant, Span};
use proptest::prelude::*;

const PERIOD: u64 = 100;
const DELAY: u64 = 30;

fn number(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap()
}

fn limits(burst: u32, room: u32, excess: Excess) -> Limits {
    let (period, delay) = (Span::from_nanos(PERIOD), Span::from_nanos(DELAY));
    Limits {
        stated: Stated::new(1, period, burst, delay).unwrap(),
        packets: number(4),
        room: number(room),
        excess,
    }
}

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

/// The message that is next, and when its parts are current.
fn take(source: &mut Source<u32>) -> Option<(u32, Vec<u64>)> {
    let mut parts: Vec<Part> = Vec::new();
    let message = source.take(|part| parts.push(part))?;
    for (part, left) in parts.iter().zip((0..parts.len()).rev()) {
        assert_eq!(part.left as usize, left);
        assert_eq!(
            part.due.deadline,
            part.due.logical + Span::from_nanos(DELAY)
        );
    }
    let logical = parts.iter().map(|part| part.due.logical.as_nanos());
    Some((message, logical.collect()))
}

/// What became of messages 0, 1, … of one packet each, all offered at once.
fn at_once(
    excess: Excess,
    burst: u32,
    room: u32,
    messages: u32,
) -> (Vec<Offered<u32>>, Source<u32>) {
    let mut source = Source::new(limits(burst, room, excess));
    let offer = |message| source.offer(at(0), number(1), message, |_| {});
    ((0..messages).map(offer).collect(), source)
}

#[test]
fn other_limits_hold_for_what_waits_and_the_line_goes_on() {
    let mut source = Source::new(limits(4, 4, Excess::Shape));
    for message in 0..4 {
        source.offer(at(0), number(4), message, |_| {});
    }
    assert_eq!(take(&mut source), Some((0, vec![0])));
    // A message now has two packets at the most, and there is one in 10 ns.
    let other = Limits {
        stated: Stated::new(1, Span::from_nanos(10), 9, Span::from_nanos(DELAY)).unwrap(),
        packets: number(2),
        room: number(7),
        excess: Excess::DropNewest,
    };
    source.settle(other, |_| number(4));
    assert_eq!(source.len(), 3);
    assert_eq!(take(&mut source), Some((1, vec![100, 110])));
    let offered = source.offer(at(0), number(2), 4, |_| {});
    assert_eq!(offered, Offered::Dropped(4), "it would come too early");
    let offered = source.offer(at(90), number(2), 5, |_| {});
    assert_eq!(offered, Offered::Waits);
    for (message, logical) in [(2, vec![120, 130]), (3, vec![140, 150]), (5, vec![160])] {
        assert_eq!(take(&mut source), Some((message, logical)));
    }
    assert_eq!(source.counts().taken, 5);
}

#[test]
fn what_keeps_the_promise_waits_under_every_policy() {
    for excess in [
        Excess::Shape,
        Excess::Block,
        Excess::Demote,
        Excess::DropNewest,
        Excess::DropOldest,
    ] {
        let (offered, mut source) = at_once(excess, 3, 3, 3);
        assert_eq!(offered, [Offered::Waits; 3]);
        let taken: Vec<_> = std::iter::from_fn(|| take(&mut source)).collect();
        assert_eq!(taken, [(0, vec![0]), (1, vec![100]), (2, vec![200])]);
    }
}

#[test]
fn each_policy_does_with_what_is_too_much_what_it_says() {
    use Offered::{BestEffort, Blocked, Dropped, Waits};
    let (offered, source) = at_once(Excess::Shape, 2, 3, 4);
    assert_eq!(offered, [Waits, Waits, Waits, Dropped(3)]);
    assert_eq!((source.counts().shaped, source.counts().dropped), (1, 1));
    let (offered, _) = at_once(Excess::Block, 2, 3, 3);
    assert_eq!(offered, [Waits, Waits, Blocked(2, Some(at(100)))]);
    let (offered, _) = at_once(Excess::Demote, 2, 3, 3);
    assert_eq!(offered, [Waits, Waits, BestEffort(2)]);
    let (offered, _) = at_once(Excess::DropNewest, 2, 3, 3);
    assert_eq!(offered, [Waits, Waits, Dropped(2)]);
}

#[test]
fn the_last_ones_are_kept_and_take_over_the_places_of_the_oldest() {
    let mut source = Source::new(limits(2, 2, Excess::DropOldest));
    let mut displaced = Vec::new();
    for message in 0..5 {
        let offered = source.offer(at(0), number(1), message, |oldest| displaced.push(oldest));
        assert_eq!(offered, Offered::Waits);
    }
    assert_eq!(displaced, [0, 1, 2]);
    assert_eq!(take(&mut source), Some((3, vec![0])));
    assert_eq!(take(&mut source), Some((4, vec![100])));
    assert_eq!(source.counts().displaced, 3);
}

#[test]
fn a_blocked_sender_is_let_in_when_it_is_told_to_come() {
    let mut source = Source::new(limits(1, 2, Excess::Block));
    source.offer(at(0), number(1), 0, |_| {});
    let Offered::Blocked(message, Some(until)) = source.offer(at(7), number(1), 1, |_| {}) else {
        panic!("it keeps the promise");
    };
    let early = source.offer(until - Span::from_nanos(1), number(1), message, |_| {});
    assert_eq!(early, Offered::Blocked(1, Some(until)));
    assert_eq!(
        source.offer(until, number(1), message, |_| {}),
        Offered::Waits
    );
    // There is no more room: nobody knows when there will be.
    assert_eq!(
        source.offer(at(500), number(1), 2, |_| {}),
        Offered::Blocked(2, None)
    );
    take(&mut source);
    assert_eq!(source.offer(at(500), number(1), 2, |_| {}), Offered::Waits);
}

#[test]
fn a_message_that_is_too_large_counts_as_several_whose_parts_decay() {
    let mut source = Source::new(limits(3, 4, Excess::DropNewest));
    // Nine packets, of which a message has four.
    assert_eq!(source.offer(at(5), number(9), 0, |_| {}), Offered::Waits);
    assert_eq!(source.counts().large, 1);
    assert_eq!(
        source.offer(at(5), number(1), 1, |_| {}),
        Offered::Dropped(1)
    );
    assert_eq!(source.offer(at(105), number(1), 2, |_| {}), Offered::Waits);
    assert_eq!(take(&mut source), Some((0, vec![5, 105, 205])));
    assert_eq!(take(&mut source), Some((2, vec![305])));
    // One that is more than a burst never keeps the promise, and is not waited for.
    let mut source = Source::new(limits(3, 4, Excess::Block));
    assert_eq!(
        source.offer(at(5), number(13), 0, |_| {}),
        Offered::Dropped(0)
    );
}

fn excess() -> impl Strategy<Value = Excess> {
    prop::sample::select(vec![
        Excess::Shape,
        Excess::Block,
        Excess::Demote,
        Excess::DropNewest,
        Excess::DropOldest,
    ])
}

proptest! {
    #[test]
    fn no_more_is_current_than_was_stated_and_all_is_accounted_for(
        excess in excess(),
        burst in 1_u32..5,
        room in 1_u32..8,
        steps in prop::collection::vec((0_u64..150, 1_u32..12, any::<bool>()), 1..80),
    ) {
        let mut source = Source::new(limits(burst, room, excess));
        let (mut now, mut offers, mut displaced) = (0, 0_u64, 0_u64);
        let (mut logical, mut last) = (Vec::new(), None);
        for (number_of_message, (gap, packets, takes)) in steps.into_iter().enumerate() {
            now += gap;
            let offered = source.offer(at(now), number(packets), number_of_message as u32, |_| displaced += 1);
            offers += u64::from(!matches!(offered, Offered::Blocked(..)));
            prop_assert_eq!(source.first().is_none(), source.is_empty());
            if takes && let Some((message, parts)) = take(&mut source) {
                // First in, first out.
                prop_assert!(last < Some(message));
                last = Some(message);
                logical.extend(parts);
            }
        }
        let counts = source.counts();
        prop_assert_eq!(counts.offered, offers);
        prop_assert_eq!(counts.displaced, displaced);
        let gone = counts.taken + counts.demoted + counts.dropped + counts.displaced;
        prop_assert_eq!(counts.offered, gone + source.len() as u64);
        while let Some((_, parts)) = take(&mut source) {
            logical.extend(parts);
        }
        // Whatever the sender did, parts are current no closer than the rate has them.
        for pair in logical.windows(2) {
            prop_assert!(pair[1] >= pair[0] + PERIOD, "{:?}", logical);
        }
        prop_assert!(excess == Excess::DropOldest || counts.displaced == 0);
    }
}

/// The oracle: all messages that were let in and not displaced, their places in the line reckoned anew from the first, in parts of a nanosecond of which a nanosecond has `amount`.
struct Slow {
    limits: Limits,
    amount: u64,
    burst: u64,
    /// The message, its parts, and when it was offered.
    let_in: Vec<(u32, u64, u64)>,
    taken: usize,
}

impl Slow {
    fn waiting(&self) -> u64 {
        self.let_in[self.taken..].iter().map(|one| one.1).sum()
    }

    /// The logical arrival of this one of those that were let in, and of the next one that would be if it came at the beginning.
    fn logical(&self, which: usize) -> u64 {
        let line = self.let_in[..which].iter().fold(0, |line, (_, parts, at)| {
            line.max(at * self.amount) + parts * PERIOD
        });
        let at = self.let_in.get(which).map_or(0, |one| one.2);
        line.max(at * self.amount)
    }

    fn has_room(&self, parts: u64) -> bool {
        self.waiting() + parts <= u64::from(self.limits.room.get())
    }

    fn keeps(&self, at: u64, parts: u64) -> bool {
        let logical = self.logical(self.let_in.len()).max(at * self.amount);
        logical + parts * PERIOD <= at * self.amount + self.burst * PERIOD
    }

    fn offer(&mut self, now: u64, packets: u32, message: u32) -> (Offered<u32>, Vec<u32>) {
        let parts = u64::from(packets.div_ceil(self.limits.packets.get()));
        let fits = parts <= u64::from(self.limits.room.get());
        let mut displaced = Vec::new();
        if self.limits.excess == Excess::DropOldest && fits {
            while self.taken < self.let_in.len()
                && !(self.has_room(parts) && self.keeps(now, parts))
            {
                displaced.push(self.let_in.remove(self.taken).0);
            }
        }
        let offered = match self.limits.excess {
            _ if self.has_room(parts) && self.keeps(now, parts) => Offered::Waits,
            Excess::Shape | Excess::DropOldest if self.has_room(parts) => Offered::Waits,
            Excess::Demote => Offered::BestEffort(message),
            Excess::Block if fits && parts <= self.burst => {
                let until = (now..).find(|at| self.keeps(*at, parts));
                Offered::Blocked(message, until.filter(|from| now < *from).map(at))
            }
            _ => Offered::Dropped(message),
        };
        if offered == Offered::Waits {
            self.let_in.push((message, parts, now));
        }
        (offered, displaced)
    }

    fn take(&mut self) -> Option<(u32, Vec<Part>)> {
        let (message, parts, offered) = *self.let_in.get(self.taken)?;
        let part = |left: u64| {
            let logical = self.logical(self.taken) + (parts - 1 - left) * PERIOD;
            let most = offered * self.amount + self.burst * PERIOD;
            let current = logical.div_ceil(self.amount);
            let due = Due {
                logical: at(current),
                deadline: at(current + DELAY),
                exceeds: logical + PERIOD > most,
            };
            let left = left as u32;
            Part { due, left }
        };
        let all = (0..parts).rev().map(part).collect();
        self.taken += 1;
        Some((message, all))
    }
}

proptest! {
    #[test]
    fn does_as_one_that_reckons_all_anew(
        excess in excess(),
        amount in 1_u32..5,
        burst in 1_u32..5,
        room in 1_u32..8,
        steps in prop::collection::vec((0_u64..80, 1_u32..12, any::<bool>()), 1..60),
    ) {
        let (period, delay) = (Span::from_nanos(PERIOD), Span::from_nanos(DELAY));
        let stated = Stated::new(amount, period, burst, delay).unwrap();
        let limits = Limits { stated, ..limits(burst, room, excess) };
        let mut source = Source::new(limits);
        let [amount, burst] = [amount, burst].map(u64::from);
        let mut slow = Slow { limits, amount, burst, let_in: Vec::new(), taken: 0 };
        let mut now = 0;
        for (message, (gap, packets, takes)) in (0..).zip(steps) {
            now += gap;
            let mut displaced = Vec::new();
            let offered = source.offer(at(now), number(packets), message, |one| displaced.push(one));
            prop_assert_eq!((offered, displaced), slow.offer(now, packets, message));
            if takes {
                let first = source.first().map(|(message, due)| (*message, due));
                let mut parts = Vec::new();
                let taken = source.take(|part| parts.push(part)).map(|message| (message, parts));
                prop_assert_eq!(first, taken.as_ref().map(|(message, parts)| (*message, parts[0].due)));
                prop_assert_eq!(taken, slow.take());
            }
            prop_assert_eq!(source.len(), slow.let_in.len() - slow.taken);
        }
    }
}
