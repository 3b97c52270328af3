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
    let of = |from, to| Disturbance {
        processor: ProcessorId(0),
        from: after(from),
        to: after(to),
    };
    assert_eq!(conclusion.crawled, [of(7, 12)]);
    assert_eq!(conclusion.disturbances, [of(7, 12), of(20, 24)]);
    assert_eq!(conclusion.doubts, []);
}
