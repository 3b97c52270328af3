//! Where the events of a run are kept.

use laxity_model::{Event, EventKind};

/// Which events a run keeps. Those beyond the most are counted as lost, so memory stays bounded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recording {
    keep: Keep,
    at_most: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Keep {
    Everything,
    Marks,
    Nothing,
}

impl Recording {
    /// Every event, up to 4 Mi of them (128 MiB).
    pub const ALL: Self = Self {
        keep: Keep::Everything,
        at_most: 4 << 20,
    };
    /// The application's own events only.
    pub const MARKS: Self = Self {
        keep: Keep::Marks,
        at_most: 4 << 20,
    };
    /// None at all; nothing counts as lost.
    pub const NONE: Self = Self {
        keep: Keep::Nothing,
        at_most: 0,
    };

    /// The same, but at most this many events of 32 bytes.
    #[must_use]
    pub const fn at_most(self, events: usize) -> Self {
        Self {
            at_most: events,
            ..self
        }
    }
}

impl Default for Recording {
    fn default() -> Self {
        Self::ALL
    }
}

#[derive(Debug)]
pub(crate) struct Recorder {
    recording: Recording,
    pub(crate) events: Vec<Event>,
    pub(crate) lost: u64,
}

impl Recorder {
    pub(crate) fn new(recording: Recording) -> Self {
        Self {
            recording,
            events: Vec::new(),
            lost: 0,
        }
    }

    /// Records the event of this kind, which is made only if such events are kept.
    #[inline(always)]
    pub(crate) fn record(&mut self, kind: EventKind, event: impl FnOnce(EventKind) -> Event) {
        match self.recording.keep {
            Keep::Nothing => return,
            Keep::Marks if !matches!(kind, EventKind::Mark(_)) => return,
            Keep::Marks | Keep::Everything => {}
        }
        if self.events.len() < self.recording.at_most {
            self.events.push(event(kind));
        } else {
            self.lost += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_model::{ActivityId, Instant, Mark, ProcessorId};

    #[test]
    fn each_recording_keeps_what_it_says_and_counts_the_rest() {
        let kept = |recording| {
            let mut recorder = Recorder::new(recording);
            for kind in [EventKind::Wake, EventKind::Mark(Mark(0)), EventKind::Block] {
                recorder.record(kind, |kind| Event {
                    at: Instant::ZERO,
                    kind,
                    processor: ProcessorId(0),
                    activity: ActivityId(0),
                    args: [0; 2],
                });
            }
            (recorder.events.len(), recorder.lost)
        };
        assert_eq!(kept(Recording::ALL), (3, 0));
        assert_eq!(kept(Recording::ALL.at_most(2)), (2, 1));
        assert_eq!(kept(Recording::MARKS), (1, 0));
        assert_eq!(kept(Recording::NONE), (0, 0));
    }
}
