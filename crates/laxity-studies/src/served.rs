//! The calls of a driver's signal processing, as its marks tell of them.

use laxity_devices::card::Marks;
use laxity_model::{ActivityId, EventKind, Instant, RunRecord, Span};

/// A call of the signal processing.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Served {
    /// When its interrupt was raised.
    pub raised: Instant,
    /// When it began.
    pub begun: Instant,
    /// When it was done.
    pub done: Instant,
    /// Samples left in the input ring after it.
    pub pending: u64,
    /// Samples lost or underrun since the call before.
    pub damage: u64,
    /// The device was in its first phase: on hook, at a modem.
    pub in_first_phase: bool,
    /// A time constraint was granted within it.
    pub constrained: bool,
}

impl Served {
    /// From its interrupt until it was done.
    #[must_use]
    pub fn response(&self) -> Span {
        self.done.saturating_since(self.raised)
    }
}

/// All that were done in a run, in their order.
#[must_use]
pub fn calls(record: &RunRecord, driver: ActivityId, marks: Marks) -> Vec<Served> {
    let (mut calls, mut damage) = (Vec::new(), 0);
    let (mut open, mut in_first_phase) = (None::<Served>, true);
    let events = record.events.iter();
    for event in events.filter(|event| event.activity == driver) {
        match event.kind {
            EventKind::Mark(mark) if mark == marks.phase => in_first_phase &= event.args[0] == 0,
            EventKind::Mark(mark) if mark == marks.call_begin => {
                open = Some(Served {
                    raised: Instant::from_nanos(event.args[1]),
                    begun: event.at,
                    ..Served::default()
                });
            }
            EventKind::ConstraintBegin => open.iter_mut().for_each(|call| call.constrained = true),
            EventKind::Mark(mark) if mark == marks.call_end => {
                let Some(call) = open.take() else { continue };
                let [pending, so_far] = event.args;
                calls.push(Served {
                    done: event.at,
                    pending,
                    damage: so_far - damage,
                    in_first_phase,
                    ..call
                });
                damage = so_far;
            }
            _ => {}
        }
    }
    calls
}
