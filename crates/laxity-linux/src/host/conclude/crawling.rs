//! What of a processor that crawled is the machine's.

use laxity_model::{Disturbance, Event, EventKind, Instant};

/// Leaves of what crawled what nobody held meanwhile, and nothing of what is untrue: a slow piece of work tells of all the time since the one before, in which
/// somebody may have kept the witness from it.
pub(super) fn cut(events: &mut Vec<Event>, is_untrue: impl Fn(&Event) -> bool) {
    let crawls = |event: &Event| event.kind == EventKind::Crawled;
    if !events.iter().any(crawls) {
        return;
    }
    let held = events.iter().filter(|event| event.kind == EventKind::Held);
    let held = Disturbance::joined(held.map(Disturbance::of));
    let left = |event: Event| {
        if !crawls(&event) {
            return vec![event];
        }
        let mut parts = Disturbance::of(&event).outside(&held);
        parts.retain(|_| !is_untrue(&event));
        let part = |part: Disturbance| Event {
            args: [part.from, part.to].map(Instant::as_nanos),
            ..event
        };
        parts.into_iter().map(part).collect()
    };
    *events = std::mem::take(events).into_iter().flat_map(left).collect();
}
