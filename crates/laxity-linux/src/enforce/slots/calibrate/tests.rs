use super::*;
use laxity_model::Service;

const DECIDED: Instant = Instant::from_millis(5);

/// One into which nothing came.
const WHOLE: Seen = Seen {
    entering: 9_000,
    resuming: 5_000,
    leaving: -1_000,
    waking: 13_000,
    unseen: 10_000,
    nobodys: 7_000,
    own: 490_000,
    turns: 1,
    tick: None,
    is_whole: true,
};

fn us(micros: u64) -> Span {
    Span::from_micros(micros)
}

fn told() -> Told {
    Told {
        decided: DECIDED,
        done: DECIDED + us(4),
        own: us(8),
        due: DECIDED + us(500),
        woke: DECIDED + us(513),
        looked: DECIDED + us(515),
        received: Service::from_micros(500),
        turns: 1,
    }
}

/// So many slots, all alike.
fn observed(gaps: &[(Instant, Instant)], slots: usize) -> Observed {
    Observed {
        first_edge: DECIDED,
        gaps: gaps.to_vec(),
        told: (0..slots).map(|_| told()).collect(),
    }
}

#[test]
fn a_slot_is_what_its_holder_saw_between_two_gaps() {
    let (before, after) = (DECIDED - us(600), DECIDED + us(1_100));
    let gaps = [(before, DECIDED + us(9)), (DECIDED + us(499), after)];
    let seen = WHOLE;
    assert_eq!(Seen::of(&told(), &gaps, None), Some(seen));
    let handler = (DECIDED + us(100), DECIDED + us(120));
    let gaps = [gaps[0], handler, gaps[1]];
    let seen = Seen {
        unseen: 30_000,
        own: 470_000,
        is_whole: false,
        ..seen
    };
    assert_eq!(Seen::of(&told(), &gaps, None), Some(seen));
    // Its holder ran before it began; or has not come to its end.
    let late = (DECIDED + us(3), DECIDED + us(9));
    assert_eq!(Seen::of(&told(), &[late, gaps[2]], None), None);
    assert_eq!(Seen::of(&told(), &gaps[..2], None), None);
    assert_eq!(Seen::of(&told(), &[], None), None);
}

#[test]
fn a_tick_is_known_by_when_it_comes() {
    let (before, after) = (DECIDED - us(600), DECIDED + us(1_100));
    // Ticks come at whole multiples of 0.13 ms: at 5.07, 5.2 and 5.33 ms.
    let (other, tick) = (DECIDED + us(100), DECIDED + us(200));
    let gaps = [
        (before, DECIDED + us(9)),
        (other, other + us(20)),
        (tick, tick + us(15)),
        (DECIDED + us(499), after),
    ];
    let ticked = |every| Seen::of(&told(), &gaps, every).expect("whole").tick;
    assert_eq!(ticked(Some(us(130))), Some(15_000));
    assert_eq!(ticked(None), None);
    let seen = Seen::of(&told(), &gaps, Some(us(130))).expect("whole");
    let whole = Seen {
        is_whole: true,
        unseen: 10_000,
        tick: None,
        ..seen
    };
    let mut all = vec![whole; 80];
    all.extend([seen; 20]);
    let found = evaluate(&all, Some(us(130))).expect("enough");
    let ticks = Ticks {
        first: Instant::ZERO,
        every: us(130),
        each: us(15),
    };
    assert_eq!(found.ticks, Some(ticks));
}

#[test]
fn attempts_bring_enough_together_unless_hardly_anything_was_seen() {
    let gaps = [
        (DECIDED - us(600), DECIDED + us(9)),
        (DECIDED + us(499), DECIDED + us(1_100)),
    ];
    let mut pool = Pool::of(GAPS[0]);
    pool.add(&observed(&gaps, WORTH_KEEPING - 1), None);
    assert_eq!((pool.seen.len(), pool.most), (0, WORTH_KEEPING - 1));
    pool.add(&observed(&gaps, ENOUGH - 1), None);
    assert_eq!(evaluate(&pool.seen, None), None);
    pool.add(&observed(&gaps, WORTH_KEEPING), None);
    assert!(evaluate(&pool.seen, None).is_some());
}

#[test]
fn where_every_slot_is_nibbled_at_the_shorter_gaps_are_the_machine() {
    let nibble = |at| (DECIDED + us(at), DECIDED + us(at + 3));
    let gaps = [
        (DECIDED - us(600), DECIDED + us(9)),
        nibble(100),
        nibble(300),
        (DECIDED + us(499), DECIDED + us(1_100)),
    ];
    let found = GAPS.map(|gap| {
        let mut pool = Pool::of(gap);
        pool.add(&observed(&gaps, ENOUGH), None);
        evaluate(&pool.seen, None).map(|found| found.unseen_each)
    });
    assert_eq!(found, [None, Some(us(10)), Some(us(10))]);
}

#[test]
fn what_ticks_take_is_told_from_what_each_way_takes() {
    let whole = WHOLE;
    let ticked = Seen {
        unseen: 30_000,
        own: 470_000,
        is_whole: false,
        ..whole
    };
    let mut seen = vec![whole; 90];
    seen.extend([ticked; 10]);
    let found = evaluate(&seen, None).expect("enough");
    let expected = Switching {
        lead: slots::EARLY,
        entering: us(9),
        resuming: us(5),
        leaving_ns: -1_000,
        waking: us(13),
        unseen_each: us(10),
        // 200 µs of 48.8 ms.
        unseen_ppm: 4_098,
        nobodys: us(7),
        ticks: None,
    };
    assert_eq!(found, expected);
    assert_eq!(evaluate(&seen[..ENOUGH - 1], None), None);
    assert_eq!(evaluate(&vec![ticked; 100], None), None);
}
