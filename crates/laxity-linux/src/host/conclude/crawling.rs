//! What of a processor that crawled is the machine's.

use laxity_model::{Disturbance, Event, EventKind, Instant, Stretches};

use super::Evidence;

/// Leaves of what crawled what nobody else held meanwhile, and nothing of what is untrue: a slow piece of work tells of all the time since the one before, in which
/// somebody may have kept the witness from it. What others held, now and just before.
pub(super) fn cut(events: &mut Vec<Event>, evidence: &Evidence<'_>) -> Vec<Disturbance> {
    let held = events.iter().filter(|event| event.kind == EventKind::Held);
    let held = held.map(Disturbance::of);
    let held = held.filter(|held| !evidence.was_program(*held));
    let held = Disturbance::joined(held.chain(evidence.held.iter().copied()));
    let those = Stretches::of(held.iter().copied());
    let left = |event: Event| {
        if event.kind != EventKind::Crawled {
            return vec![event];
        }
        let mut parts = Disturbance::of(&event).outside(&those);
        parts.retain(|_| !evidence.is_untrue(&event));
        let part = |part: Disturbance| Event {
            args: [part.from, part.to].map(Instant::as_nanos),
            ..event
        };
        parts.into_iter().map(part).collect()
    };
    if events.iter().any(|event| event.kind == EventKind::Crawled) {
        *events = std::mem::take(events).into_iter().flat_map(left).collect();
    }
    held
}

impl Evidence<'_> {
    /// Whether the program itself held a processor so, and nobody else is known who could have: where that crawled it did so all the same.
    fn was_program(&self, held: Disturbance) -> bool {
        let mut suspects = self.suspects(self.cpu(held.processor));
        let is_known = self.tells == Some(true) && self.seen.unseen.is_none();
        is_known && self.may_be_own(held) && suspects.next().is_none()
    }
}
