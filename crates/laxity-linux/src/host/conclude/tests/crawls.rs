//! A processor that goes on, far slower than usual.

use super::*;

/// Nobody is looked for.
#[test]
fn where_a_processor_crawled_is_the_machines_as_where_it_stood_still() {
    let mut events = vec![
        late(EventKind::Crawled, 7, 3),
        late(EventKind::Crawled, 10, 2),
        late(EventKind::Disturbed, 20, 4),
    ];
    let seen = stranger(99, BUSY);
    let conclusion = conclude(&mut events, &watched(&seen));
    assert_eq!(conclusion.crawled, [stretch(7, 12)]);
    assert_eq!(conclusion.disturbances, [stretch(7, 12), stretch(20, 24)]);
    assert_eq!(conclusion.doubts, []);
}

fn stretch(from: u64, to: u64) -> Disturbance {
    Disturbance {
        processor: ProcessorId(0),
        from: after(from),
        to: after(to),
    }
}

/// A slow piece tells of the time since the one before: in which a stranger kept the witness from it.
#[test]
fn what_a_stranger_held_is_not_the_machines_because_it_crawled_besides() {
    let mut events = vec![
        late(EventKind::Held, 7, 40),
        late(EventKind::Crawled, 5, 43),
    ];
    let seen = stranger(99, BUSY);
    let conclusion = conclude(&mut events, &watched(&seen));
    let left = [stretch(5, 7), stretch(47, 48)];
    assert_eq!(conclusion.crawled, left);
    assert_eq!(conclusion.disturbances, left);
    let crawled = events
        .iter()
        .filter(|event| event.kind == EventKind::Crawled);
    assert_eq!(crawled.count(), 2, "{events:?}");
}

/// A budget of the program's own, which outranks the witness, keeps it from its piece of work: what crawled before and after did so meanwhile.
#[test]
fn what_the_program_itself_held_crawled_with_the_rest() {
    let crawled = |seen: &Seen, own| {
        let mut events = vec![
            late(EventKind::Held, 7, 40),
            late(EventKind::Crawled, 5, 43),
        ];
        let evidence = Evidence {
            own: vec![own],
            ..watched(seen)
        };
        conclude(&mut events, &evidence).crawled
    };
    let (all, cut) = (vec![stretch(5, 48)], vec![stretch(5, 7), stretch(47, 48)]);
    let budgets = Span::from_millis(40);
    assert_eq!(crawled(&Seen::default(), budgets), all);
    assert_eq!(crawled(&stranger(99, BUSY), budgets), cut);
    assert_eq!(crawled(&unseen(), budgets), cut);
}

/// The slow piece is recorded after the hold before it, and perhaps not yet when that is looked at.
#[test]
fn what_a_stranger_held_by_the_look_before_is_not_the_machines_either() {
    let seen = stranger(99, BUSY);
    let mut before = vec![late(EventKind::Held, 7, 40)];
    let held = conclude(&mut before, &watched(&seen)).held;
    let evidence = Evidence {
        held: &held,
        ..watched(&seen)
    };
    let mut events = vec![late(EventKind::Crawled, 5, 43)];
    let conclusion = conclude(&mut events, &evidence);
    assert_eq!(conclusion.crawled, [stretch(5, 7), stretch(47, 48)]);
    assert_eq!(conclusion.held, held);
}

#[test]
fn a_witness_that_is_none_any_more_saw_nothing_crawl() {
    let mut events = vec![
        late(EventKind::Crawled, 2, 2),
        late(EventKind::Crawled, 20, 40),
    ];
    let seen = tampered(Role::Witness, Policy::Fifo(10));
    let conclusion = conclude(&mut events, &watched(&seen));
    assert_eq!(conclusion.disturbances, [stretch(2, 4)]);
}
