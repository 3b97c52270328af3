//! The events of one run, with the names that they refer to.

use std::borrow::Cow;

use laxity_model::program::Program;
use laxity_model::{ActivityId, Event, Instant, Mark};

/// Everything that was recorded of one run of one variant.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trace {
    /// Which run this is: the variant's name, and the repeat's number where there are several.
    pub name: String,
    /// How many processors the program was written for.
    pub processors: u16,
    /// The program's activities, by [`ActivityId`].
    pub activities: Vec<TraceActivity>,
    /// The application's own events, by [`Mark`].
    pub marks: Vec<TraceMark>,
    /// When the run began.
    pub start: Instant,
    /// When it ended.
    pub end: Instant,
    /// By time; equal times in the order they happened on their processor.
    pub events: Vec<Event>,
    /// Events that did not fit the ring.
    pub events_lost: u64,
}

/// An activity as traces know it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TraceActivity {
    /// Its name.
    pub name: String,
    /// The processor it was placed on.
    pub processor: u16,
}

/// One of the application's own events.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TraceMark {
    /// Its name.
    pub name: String,
    /// Whether `args[0]` is a level to be drawn over time (samples pending), not a thing that happened.
    pub is_level: bool,
}

impl Trace {
    /// An empty trace with the program's names, to be made before the host takes the program. `levels` are the marks to be drawn
    /// over time.
    #[must_use]
    pub fn of(program: &Program, name: &str, levels: &[Mark]) -> Self {
        let activities = program.activities.iter().map(|activity| TraceActivity {
            name: activity.name.clone(),
            processor: activity.processor.0,
        });
        let marks = program.marks.iter().zip(0..).map(|(name, n)| TraceMark {
            name: name.clone(),
            is_level: levels.contains(&Mark(n)),
        });
        Self {
            name: name.into(),
            processors: program.processors,
            activities: activities.collect(),
            marks: marks.collect(),
            ..Self::default()
        }
    }

    /// The activity's name; a number where it has none.
    #[must_use]
    pub fn activity_name(&self, id: ActivityId) -> Cow<'_, str> {
        match self.activities.get(id.index()) {
            Some(activity) => Cow::Borrowed(&activity.name),
            None => Cow::Owned(format!("activity {id}")),
        }
    }

    /// The mark's name; a number where it has none.
    #[must_use]
    pub fn mark_name(&self, mark: Mark) -> Cow<'_, str> {
        match self.marks.get(usize::from(mark.0)) {
            Some(known) => Cow::Borrowed(&known.name),
            None => Cow::Owned(format!("mark {}", mark.0)),
        }
    }

    /// Whether the mark is a level to be drawn over time.
    #[must_use]
    pub fn is_level(&self, mark: Mark) -> bool {
        self.marks
            .get(usize::from(mark.0))
            .is_some_and(|m| m.is_level)
    }

    /// The end of the run, or of its last event if that is later.
    #[must_use]
    pub fn last_instant(&self) -> Instant {
        self.events
            .iter()
            .map(|e| e.at)
            .fold(self.end.max(self.start), Instant::max)
    }
}

/// Traces for tests and benches.
#[doc(hidden)]
pub mod samples {
    use super::{Trace, TraceActivity, TraceMark};
    use laxity_model::{ActivityId, Event, EventKind, Instant, Mark, ProcessorId};

    const CARD: u16 = 0;
    const DRIVER: u16 = 1;
    const COTHREAD: u16 = 2;
    const SPINNER: u16 = 3;
    /// The cycle's length in nanoseconds, and how far into it each event lies: a device interrupt, its driver in a slot, a periodic
    /// thread, and a thread that takes what is left.
    const CYCLE_NS: u64 = 12_500_000;

    /// One cycle: offset in nanoseconds, kind, activity, first argument as an offset.
    fn cycle() -> Vec<(u64, EventKind, u16, u64)> {
        use EventKind as K;
        let mut events = vec![
            (0, K::Preempt, SPINNER, 0),
            (0, K::InterruptEnter, CARD, 0),
            (4_000, K::Signal, CARD, 0),
            (5_400, K::InterruptExit, CARD, 0),
            (5_400, K::Wake, DRIVER, 4_000),
            (6_000, K::SlotBegin, DRIVER, 6_000),
            (9_000, K::Dispatch, DRIVER, 0),
            (1_840_000, K::Mark(Mark(0)), DRIVER, 12),
            (1_849_000, K::Block, DRIVER, 0),
            (2_006_000, K::SlotEnd, DRIVER, 2_006_000),
            (2_006_000, K::Dispatch, SPINNER, 0),
        ];
        for millisecond in 3..12 {
            let at = millisecond * 1_000_000;
            events.extend([
                (at, K::Wake, COTHREAD, at),
                (at, K::Preempt, SPINNER, 0),
                (at + 3_000, K::Dispatch, COTHREAD, 0),
                (at + 4_000, K::Mark(Mark(1)), COTHREAD, 0),
                (at + 13_000, K::Block, COTHREAD, 0),
                (at + 13_000, K::Dispatch, SPINNER, 0),
            ]);
        }
        events
    }

    /// A trace of exactly so many events of a modem-like load on one processor.
    #[must_use]
    pub fn busy(events: usize) -> Trace {
        let cycle = cycle();
        let names = ["card", "driver", "co-thread", "spinner"];
        let activities = names.map(|name| TraceActivity {
            name: name.into(),
            processor: 0,
        });
        let marks = [("pending", true), ("tick", false)].map(|(name, is_level)| TraceMark {
            name: name.into(),
            is_level,
        });
        let events: Vec<_> = (0..events)
            .map(|i| {
                let start = (i / cycle.len()) as u64 * CYCLE_NS;
                let (offset, kind, activity, argument) = cycle[i % cycle.len()];
                let level = matches!(kind, EventKind::Mark(_) | EventKind::Signal);
                Event {
                    at: Instant::from_nanos(start + offset),
                    kind,
                    processor: ProcessorId(0),
                    activity: ActivityId(activity),
                    args: [if level { argument } else { start + argument }, 0],
                }
            })
            .collect();
        Trace {
            name: "thread real-time".into(),
            processors: 1,
            activities: activities.into(),
            marks: marks.into(),
            start: Instant::ZERO,
            end: Instant::from_nanos((events.len() / cycle.len() + 1) as u64 * CYCLE_NS),
            events,
            events_lost: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_model::{Placement, Priority, ProcessorId, Step};

    #[test]
    fn a_trace_knows_the_programs_names() {
        let mut program = Program::new(2);
        let placement = Placement::Thread(Priority::NORMAL);
        let id = program.add(
            "driver",
            ProcessorId(1),
            placement,
            |_: &mut dyn laxity_model::program::Context| Step::Finish,
        );
        let (tick, pending) = (program.mark("tick"), program.mark("pending"));
        let trace = Trace::of(&program, "thread 8", &[pending]);
        assert_eq!(trace.activity_name(id), "driver");
        assert_eq!(trace.activity_name(ActivityId(7)), "activity 7");
        assert_eq!(trace.mark_name(tick), "tick");
        assert_eq!(
            (trace.is_level(tick), trace.is_level(pending)),
            (false, true)
        );
        assert_eq!(trace.activities[0].processor, 1);
    }
}
