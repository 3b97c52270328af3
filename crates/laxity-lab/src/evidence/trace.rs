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
    pub fn activity_name(&self, id: ActivityId) -> Cow<'_, str> {
        match self.activities.get(id.index()) {
            Some(activity) => Cow::Borrowed(&activity.name),
            None => Cow::Owned(format!("activity {id}")),
        }
    }

    /// The mark's name; a number where it has none.
    pub fn mark_name(&self, mark: Mark) -> Cow<'_, str> {
        match self.marks.get(usize::from(mark.0)) {
            Some(known) => Cow::Borrowed(&known.name),
            None => Cow::Owned(format!("mark {}", mark.0)),
        }
    }

    /// Whether the mark is a level to be drawn over time.
    pub fn is_level(&self, mark: Mark) -> bool {
        let known = self.marks.get(usize::from(mark.0));
        known.is_some_and(|known| known.is_level)
    }

    /// The end of the run, or of its last event if that is later.
    pub fn last_instant(&self) -> Instant {
        let instants = self.events.iter().map(|event| event.at);
        instants.fold(self.end.max(self.start), Instant::max)
    }
}

#[cfg(test)]
pub(super) mod samples;

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
