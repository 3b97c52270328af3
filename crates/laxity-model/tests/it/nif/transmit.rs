//! What is sent next, against the plainest way to say it.

use laxity_model::nif::registry::ClientId;
use laxity_model::nif::transmit::{
    ByPriority, FirstCome, FrameId, Next, NotWaiting, Order, Outgoing, Transmit,
};
use laxity_model::{Instant, Priority};
use proptest::prelude::*;

const NOW: Instant = Instant::ZERO;

fn outgoing(priority: u8, due: u64) -> Outgoing {
    Outgoing {
        client: ClientId(0),
        length: 64,
        priority: Priority::new(priority).unwrap(),
        due: Instant::from_micros(due),
    }
}

/// A user's order: what is due first leaves first, no earlier than a millisecond before it is due.
#[derive(Default)]
struct DueFirst(Vec<(Instant, FrameId)>);

impl Order for DueFirst {
    fn add(&mut self, frame: FrameId, outgoing: &Outgoing, _: Instant) {
        self.0.push((outgoing.due, frame));
        self.0.sort();
    }

    fn next(&mut self, now: Instant) -> Next {
        let Some((due, frame)) = self.0.first().copied() else {
            return Next::Nothing;
        };
        let from = Instant::from_nanos(due.as_nanos().saturating_sub(1_000_000));
        if now < from {
            return Next::NotBefore(from);
        }
        self.0.remove(0);
        Next::Frame(frame)
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

#[test]
fn a_users_order_may_hold_frames_back_and_says_until_when() {
    let mut transmit = Transmit::new(Box::<DueFirst>::default(), 4, 4);
    let late = transmit.offer(&outgoing(8, 5000), NOW).unwrap();
    let soon = transmit.offer(&outgoing(8, 1500), NOW).unwrap();
    let at = Instant::from_micros;
    assert_eq!(transmit.next(NOW), Ok(Next::NotBefore(at(500))));
    assert_eq!(transmit.next(at(500)), Ok(Next::Frame(soon)));
    assert_eq!(transmit.next(at(600)), Ok(Next::NotBefore(at(4000))));
    assert_eq!(transmit.next(at(4000)), Ok(Next::Frame(late)));
}

#[test]
fn no_more_than_the_reach_are_ever_below() {
    let mut transmit = Transmit::new(Box::new(FirstCome::new(8)), 8, 1);
    let frames: Vec<FrameId> = (0..3)
        .map(|_| transmit.offer(&outgoing(8, 0), NOW).unwrap())
        .collect();
    for frame in frames {
        assert_eq!(transmit.next(NOW), Ok(Next::Frame(frame)));
        assert_eq!(transmit.next(NOW), Ok(Next::Nothing));
        assert_eq!(transmit.below(), 1);
        assert_eq!(transmit.sent(), Some(frame));
    }
    assert_eq!(transmit.sent(), None);
}

#[test]
fn what_found_no_room_below_goes_first_and_a_more_urgent_one_after_it() {
    let mut transmit = Transmit::new(Box::new(ByPriority::new(8)), 8, 8);
    let common = transmit.offer(&outgoing(8, 0), NOW).unwrap();
    assert_eq!(transmit.next(NOW), Ok(Next::Frame(common)));
    transmit.put_back();
    let urgent = transmit.offer(&outgoing(16, 0), NOW).unwrap();
    assert_eq!(transmit.waiting(), 2);
    assert_eq!(transmit.next(NOW), Ok(Next::Frame(common)));
    assert_eq!(transmit.next(NOW), Ok(Next::Frame(urgent)));
}

#[test]
fn an_order_that_names_what_does_not_wait_is_none() {
    struct Stuck;
    impl Order for Stuck {
        fn add(&mut self, _: FrameId, _: &Outgoing, _: Instant) {}
        fn next(&mut self, _: Instant) -> Next {
            Next::Frame(FrameId(0))
        }
        fn clear(&mut self) {}
    }
    let mut transmit = Transmit::new(Box::new(Stuck), 2, 2);
    assert_eq!(transmit.next(NOW), Err(NotWaiting(FrameId(0))));
    let frame = transmit.offer(&outgoing(8, 0), NOW).unwrap();
    assert_eq!(transmit.next(NOW), Ok(Next::Frame(frame)));
    assert_eq!(transmit.next(NOW), Err(NotWaiting(frame)));
}

proptest! {
    /// The oracle looks through all that wait, and picks the most urgent of them that came first.
    #[test]
    fn the_most_urgent_leaves_first_and_of_equals_the_first_that_came(
        by_priority in any::<bool>(),
        reach in 1..4_usize,
        steps in proptest::collection::vec((0..4_u8, 0..3_u8), 0..200),
    ) {
        let most = 6;
        let order: Box<dyn Order> = if by_priority {
            Box::new(ByPriority::new(most))
        } else {
            Box::new(FirstCome::new(most))
        };
        let mut transmit = Transmit::new(order, most, reach);
        let mut waiting: Vec<(u8, FrameId)> = Vec::new();
        let mut below: Vec<FrameId> = Vec::new();
        for (step, priority) in steps {
            match step {
                0 | 1 => {
                    let frame = transmit.offer(&outgoing(priority, 0), NOW);
                    prop_assert_eq!(frame.is_some(), waiting.len() + below.len() < 6);
                    waiting.extend(frame.map(|frame| (priority * u8::from(by_priority), frame)));
                }
                2 => {
                    let highest = waiting.iter().map(|(priority, _)| *priority).max();
                    let first = waiting.iter().position(|(p, _)| Some(*p) == highest);
                    let expected = match first.filter(|_| below.len() < reach) {
                        None => Next::Nothing,
                        Some(first) => {
                            let (_, frame) = waiting.remove(first);
                            below.push(frame);
                            Next::Frame(frame)
                        }
                    };
                    prop_assert_eq!(transmit.next(NOW), Ok(expected));
                }
                _ => {
                    let first = (!below.is_empty()).then(|| below.remove(0));
                    prop_assert_eq!(transmit.sent(), first);
                }
            }
            prop_assert_eq!((transmit.waiting(), transmit.below()), (waiting.len(), below.len()));
        }
    }
}
