//! The message queue of a channel: nobody gets more than was stated, every message is accounted for, and each policy does what it says.

use std::num::NonZeroU32;

use laxity_model::channels::source::{Excess, Limits, Offered, Part, Source};
use laxity_model::nif::urgency::Stated;
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
