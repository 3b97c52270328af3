//! The calls of a driver's signal processing, as its marks tell of them, and what the run's end finds that it has not served.

use laxity_devices::card::{Installed, Unserved};
use laxity_model::{EventKind, HostError, Instant, RunRecord, Span};

/// A call of the signal processing.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Served {
    /// When its interrupt was raised.
    pub raised: Instant,
    /// When it began; of one that had not begun, the run's end.
    pub begun: Instant,
    /// When it was done; of one that was not, the run's end.
    pub done: Instant,
    /// Samples left in the input ring after it.
    pub pending: u64,
    /// Samples lost or underrun since the call before.
    pub damage: u64,
    /// The device was in its first phase: on hook, at a modem.
    pub in_first_phase: bool,
    /// A time constraint was granted within it.
    pub constrained: bool,
    /// The run's end found it waiting or at work.
    pub is_left: bool,
}

impl Served {
    /// From its interrupt until it was done, or as long as it had waited when the run ended.
    pub fn response(&self) -> Span {
        self.done.saturating_since(self.raised)
    }
}

/// What the run's end found that a driver had not served.
///
/// # Errors
///
/// [`HostError::Failed`] if the host kept the driver, so that nobody knows.
pub fn unserved<R>(record: &RunRecord, device: &Installed<R>) -> Result<Unserved, HostError> {
    let left = device.left.unserved(record.end);
    left.ok_or_else(|| HostError::Failed("the run is over, and its driver is not".into()))
}

/// All calls of a run, in their order: those that were done, and those that the run's end found too late at any rate, because the
/// interrupt after theirs was raised or something was lost. All damage of the run is in them.
///
/// # Errors
///
/// See [`unserved`].
pub fn calls<R>(record: &RunRecord, device: &Installed<R>) -> Result<Vec<Served>, HostError> {
    let marks = device.marks;
    let (mut calls, mut damage) = (Vec::new(), 0);
    let (mut open, mut in_first_phase) = (None::<Served>, true);
    let events = record.events.iter();
    for event in events.filter(|event| event.activity == device.driver) {
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
    let left = unserved(record, device)?;
    let mut lost = left.damage().saturating_sub(damage);
    let late = match (lost, left.raised.len()) {
        (0, waiting) => waiting.saturating_sub(1),
        (_, waiting) => waiting.max(1),
    };
    for number in 0..late {
        let call = open.take().unwrap_or_else(|| Served {
            raised: left.raised.get(number).copied().unwrap_or(record.end),
            begun: record.end,
            ..Served::default()
        });
        calls.push(Served {
            done: record.end,
            pending: left.pending,
            damage: std::mem::take(&mut lost),
            in_first_phase,
            is_left: true,
            ..call
        });
    }
    Ok(calls)
}
