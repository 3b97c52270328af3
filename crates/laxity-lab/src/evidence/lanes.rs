//! Events as slices and points on lanes, as a person looks at them: who had the processor, when each activity ran, when its slots were.
//!
//! Slices on one lane follow each other and never nest. A processor's lane shows who was on top: an interrupt handler over the thread
//! it interrupted, then that thread again. Every slice that is begun is ended, by the end of the run at the latest.

use std::borrow::Cow;

use laxity_model::{ActivityId, Event, EventKind, Instant, Mark, ProcessorId};

use super::trace::Trace;

/// A line of the picture.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Lane {
    /// Who had this processor.
    Processor(ProcessorId),
    /// When this processor stood still or was held by somebody, as the witness saw it.
    Disturbed(ProcessorId),
    /// When this activity was running, and what it recorded.
    Activity(ActivityId),
    /// When this activity's time slots were.
    Slots(ActivityId),
    /// A level that the application recorded.
    Level(Mark),
}

impl Lane {
    /// Its name.
    pub fn name(self, trace: &Trace) -> Cow<'_, str> {
        match self {
            Self::Processor(p) => format!("processor {p}").into(),
            Self::Disturbed(p) => format!("processor {p} disturbed").into(),
            Self::Activity(a) => trace.activity_name(a),
            Self::Slots(a) => format!("{} slots", trace.activity_name(a)).into(),
            Self::Level(mark) => trace.mark_name(mark),
        }
    }

    /// Where it stands among the others: a processor, then what was placed on it, levels last. Fits 31 bits.
    pub fn rank(self, trace: &Trace) -> u64 {
        const A_PROCESSOR: u64 = 1 << 18;
        let of_processor = |processor: u16| u64::from(processor) % 4096 * A_PROCESSOR;
        let of_activity = |a: ActivityId| {
            let home = trace.activities.get(a.index()).map_or(0, |a| a.processor);
            of_processor(home) + 2 * u64::from(a.0)
        };
        match self {
            Self::Processor(p) => of_processor(p.0),
            Self::Disturbed(p) => of_processor(p.0) + 1,
            Self::Activity(a) => of_activity(a) + 2,
            Self::Slots(a) => of_activity(a) + 3,
            Self::Level(mark) => 4096 * A_PROCESSOR + u64::from(mark.0),
        }
    }
}

/// What a slice or a point is called.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Label {
    /// The activity that has the processor.
    Occupant(ActivityId),
    /// An event of the application's own.
    Mark(Mark),
    /// Anything else, by a number and its name.
    Known(u64, &'static str),
}

/// Those from here on are beyond all activities and marks: they are rare.
const RARE: u64 = 1 << 18;

impl Label {
    /// A thread, dispatched.
    pub const RUNNING: Self = Self::Known(1, "running");
    /// An interrupt handler.
    pub const INTERRUPT: Self = Self::Known(2, "interrupt");
    /// A deferred procedure call.
    pub const DEFERRED: Self = Self::Known(3, "deferred");
    /// A time slot.
    pub const SLOT: Self = Self::Known(4, "slot");
    /// The machine stood still.
    pub const DISTURBED: Self = Self::Known(5, "disturbed");
    /// Somebody held the processor.
    pub const HELD: Self = Self::Known(RARE + 4, "held by somebody");
    /// The processor was far slower than usual.
    pub const CRAWLED: Self = Self::Known(RARE + 5, "crawled");
    /// Became ready.
    pub const WAKE: Self = Self::Known(6, "wake");
    /// Ended.
    pub const FINISH: Self = Self::Known(7, "finish");
    /// Signalled a semaphore.
    pub const SIGNAL: Self = Self::Known(8, "signal");
    /// Its reservation began.
    pub const RESERVATION_BEGIN: Self = Self::Known(9, "reservation begins");
    /// Its reservation was given back.
    pub const RESERVATION_END: Self = Self::Known(10, "reservation ends");
    /// It was granted another reservation.
    pub const RESERVATION_CHANGE: Self = Self::Known(RARE, "reservation changes");
    /// It was granted a time constraint.
    pub const CONSTRAINT_BEGIN: Self = Self::Known(RARE + 1, "time constraint begins");
    /// Its time constraint was ended.
    pub const CONSTRAINT_END: Self = Self::Known(RARE + 2, "time constraint ends");
    /// What it asked for was refused.
    pub const REFUSED: Self = Self::Known(RARE + 3, "refused");
    /// A packet was taken from its interface.
    pub const ARRIVE: Self = Self::Known(RARE + 6, "packet arrives");
    /// A packet found no buffer of its client's.
    pub const NO_BUFFER: Self = Self::Known(RARE + 7, "packet without buffer");
    /// A packet's client was called with it.
    pub const RECEIVE: Self = Self::Known(RARE + 8, "packet received");
    /// A packet was taken from its client's queue.
    pub const DELIVER: Self = Self::Known(RARE + 9, "packet delivered");
    /// A frame was handed to its interface.
    pub const TRANSMIT: Self = Self::Known(RARE + 10, "frame transmitted");
    /// A frame has left its interface.
    pub const COMPLETE: Self = Self::Known(RARE + 11, "frame complete");

    /// A number that no other label has: small, so that a file has one byte for the most common ones.
    pub fn number(self) -> u64 {
        match self {
            Self::Known(number, _) => number,
            Self::Occupant(activity) => 11 + 2 * u64::from(activity.0),
            Self::Mark(mark) => 12 + 2 * u64::from(mark.0),
        }
    }

    /// Its name.
    pub fn name(self, trace: &Trace) -> Cow<'_, str> {
        match self {
            Self::Occupant(activity) => trace.activity_name(activity),
            Self::Mark(mark) => trace.mark_name(mark),
            Self::Known(_, name) => Cow::Borrowed(name),
        }
    }
}

/// What happens on a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edge {
    /// A slice begins. With how long after its cause, in nanoseconds, where that is known.
    Begin(Label, Option<u64>),
    /// The open slice ends.
    End,
    /// A point in time, with the event's arguments where they are the application's own.
    Point(Label, [u64; 2]),
    /// The level has this value from now on.
    Level(u64),
}

/// One thing to draw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Drawn {
    /// When.
    pub at: Instant,
    /// Where.
    pub lane: Lane,
    /// What.
    pub edge: Edge,
}

/// Draws the whole trace: hands every edge to `sink`, lane by lane in the order of time.
pub fn draw(trace: &Trace, sink: &mut impl FnMut(Drawn)) {
    let mut drawing = Drawing {
        sink,
        processors: Vec::new(),
        activities: Vec::new(),
    };
    for event in &trace.events {
        drawing.event(trace, event);
    }
    drawing.close(trace.last_instant());
}

#[derive(Clone, Default)]
struct ProcessorState {
    /// Who runs here: each over the one before it.
    stack: Vec<ActivityId>,
    /// The end of the last disturbance.
    disturbed_to: Instant,
}

#[derive(Clone, Default)]
struct ActivityState {
    /// Where it runs, if it does.
    runs_on: Option<ProcessorId>,
    in_slot: bool,
    /// When it last became ready, if it has not run since.
    ready_at: Option<Instant>,
}

struct Drawing<'a, F> {
    sink: &'a mut F,
    processors: Vec<ProcessorState>,
    activities: Vec<ActivityState>,
}

/// The entry of this index, which is made if it is not there.
pub(super) fn entry<T: Clone + Default>(table: &mut Vec<T>, index: usize) -> &mut T {
    if index >= table.len() {
        table.resize(index + 1, T::default());
    }
    &mut table[index]
}

impl<F: FnMut(Drawn)> Drawing<'_, F> {
    fn draw(&mut self, at: Instant, lane: Lane, edge: Edge) {
        (self.sink)(Drawn { at, lane, edge });
    }

    fn event(&mut self, trace: &Trace, event: &Event) {
        use EventKind as K;
        let caused = Instant::from_nanos(event.args[0]);
        match event.kind {
            K::Wake => {
                entry(&mut self.activities, event.activity.index()).ready_at = Some(caused);
                self.point(event, Label::WAKE, [0; 2]);
            }
            K::Dispatch => {
                let ready = entry(&mut self.activities, event.activity.index());
                let ready = ready.ready_at.take();
                self.begin(event, Label::RUNNING, ready);
            }
            K::InterruptEnter => self.begin(event, Label::INTERRUPT, Some(caused)),
            K::DeferredEnter => self.begin(event, Label::DEFERRED, Some(caused)),
            K::Preempt | K::Block | K::InterruptExit | K::DeferredExit => {
                self.end(event.at, event.activity);
            }
            K::Finish => {
                self.end(event.at, event.activity);
                self.point(event, Label::FINISH, [0; 2]);
            }
            K::Signal => self.point(event, Label::SIGNAL, [event.args[0], 0]),
            K::SlotBegin => self.slot(event, true),
            K::SlotEnd => self.slot(event, false),
            K::ReservationBegin => self.point(event, Label::RESERVATION_BEGIN, event.args),
            K::ReservationEnd => self.point(event, Label::RESERVATION_END, [0; 2]),
            K::ReservationChange => self.point(event, Label::RESERVATION_CHANGE, event.args),
            K::ConstraintBegin => self.point(event, Label::CONSTRAINT_BEGIN, event.args),
            K::ConstraintEnd => self.point(event, Label::CONSTRAINT_END, [event.args[0], 0]),
            K::Refused => self.point(event, Label::REFUSED, [0; 2]),
            // The change is drawn when it was granted.
            K::ReservationFrom => {}
            K::Disturbed | K::Stopped => self.disturbed(event, Label::DISTURBED),
            K::Crawled => self.disturbed(event, Label::CRAWLED),
            K::Held => self.disturbed(event, Label::HELD),
            K::Arrive => self.point(event, Label::ARRIVE, event.args),
            K::NoBuffer => self.point(event, Label::NO_BUFFER, event.args),
            K::Receive => self.point(event, Label::RECEIVE, event.args),
            K::Deliver => self.point(event, Label::DELIVER, event.args),
            K::Transmit => self.point(event, Label::TRANSMIT, event.args),
            K::Complete => self.point(event, Label::COMPLETE, event.args),
            K::Mark(mark) if trace.is_level(mark) => {
                self.draw(event.at, Lane::Level(mark), Edge::Level(event.args[0]));
            }
            K::Mark(mark) => self.point(event, Label::Mark(mark), event.args),
        }
    }

    fn point(&mut self, event: &Event, label: Label, args: [u64; 2]) {
        let lane = Lane::Activity(event.activity);
        self.draw(event.at, lane, Edge::Point(label, args));
    }

    /// The activity begins to run, on top of whoever runs there. One that runs already goes on.
    fn begin(&mut self, event: &Event, label: Label, caused: Option<Instant>) {
        let state = entry(&mut self.activities, event.activity.index());
        if state.runs_on.is_some() {
            return;
        }
        state.runs_on = Some(event.processor);
        let latency = caused.map(|caused| event.at.saturating_since(caused).as_nanos());
        let lane = Lane::Activity(event.activity);
        self.draw(event.at, lane, Edge::Begin(label, latency));

        let stack = &mut entry(&mut self.processors, event.processor.index()).stack;
        let covered = !stack.is_empty();
        stack.push(event.activity);
        let lane = Lane::Processor(event.processor);
        if covered {
            self.draw(event.at, lane, Edge::End);
        }
        let occupant = Edge::Begin(Label::Occupant(event.activity), None);
        self.draw(event.at, lane, occupant);
    }

    /// The activity stops running, if it was. Whoever it covered shows again.
    fn end(&mut self, at: Instant, activity: ActivityId) {
        let state = entry(&mut self.activities, activity.index());
        let Some(processor) = state.runs_on.take() else {
            return;
        };
        self.draw(at, Lane::Activity(activity), Edge::End);

        let stack = &mut entry(&mut self.processors, processor.index()).stack;
        let was_on_top = stack.last() == Some(&activity);
        stack.retain(|other| *other != activity);
        let shows_again = stack.last().copied();
        if was_on_top {
            let lane = Lane::Processor(processor);
            self.draw(at, lane, Edge::End);
            if let Some(below) = shows_again {
                self.draw(at, lane, Edge::Begin(Label::Occupant(below), None));
            }
        }
    }

    fn slot(&mut self, event: &Event, begins: bool) {
        let state = entry(&mut self.activities, event.activity.index());
        if state.in_slot == begins {
            return;
        }
        state.in_slot = begins;
        let lane = Lane::Slots(event.activity);
        let edge = if begins {
            let planned = Instant::from_nanos(event.args[0]);
            let late = event.at.saturating_since(planned).as_nanos();
            Edge::Begin(Label::SLOT, Some(late))
        } else {
            Edge::End
        };
        self.draw(event.at, lane, edge);
    }

    /// A disturbance is recorded when it is over. What an earlier one has covered is left out.
    fn disturbed(&mut self, event: &Event, label: Label) {
        let state = entry(&mut self.processors, event.processor.index());
        let [from, to] = event.args.map(Instant::from_nanos);
        let from = from.max(state.disturbed_to);
        if from < to {
            state.disturbed_to = to;
            let lane = Lane::Disturbed(event.processor);
            self.draw(from, lane, Edge::Begin(label, None));
            self.draw(to, lane, Edge::End);
        }
    }

    fn close(&mut self, at: Instant) {
        for index in 0..self.activities.len() {
            // Ids are 16 bits wide, so the table never is longer.
            let activity = ActivityId(index as u16);
            self.end(at, activity);
            if self.activities[index].in_slot {
                self.draw(at, Lane::Slots(activity), Edge::End);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::trace::{Trace, samples};
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn event(at: u64, kind: EventKind, activity: u16) -> Event {
        Event {
            at: Instant::from_nanos(at),
            kind,
            processor: ProcessorId(0),
            activity: ActivityId(activity),
            args: [at, at],
        }
    }

    /// The slices of a lane: from, to, label. Fails where one nests, overlaps or stays open.
    fn slices(trace: &Trace) -> BTreeMap<Lane, Vec<(u64, u64, Label)>> {
        let mut open = BTreeMap::new();
        let mut closed: BTreeMap<Lane, Vec<_>> = BTreeMap::new();
        draw(trace, &mut |drawn| match drawn.edge {
            Edge::Begin(label, _) => {
                let before = open.insert(drawn.lane, (drawn.at, label));
                assert_eq!(before, None, "{drawn:?} begins in an open slice");
                let last = closed.get(&drawn.lane).and_then(|s| s.last());
                assert!(last.is_none_or(|(_, to, _)| *to <= drawn.at.as_nanos()));
            }
            Edge::End => {
                let (from, label) = open.remove(&drawn.lane).expect("a slice is open");
                let slice = (from.as_nanos(), drawn.at.as_nanos(), label);
                closed.entry(drawn.lane).or_default().push(slice);
            }
            Edge::Point(..) | Edge::Level(_) => {}
        });
        assert!(open.is_empty(), "open at the end: {open:?}");
        closed
    }

    #[test]
    fn an_interrupt_shows_over_the_thread_and_the_thread_again() {
        use EventKind::*;
        let trace = Trace {
            end: Instant::from_nanos(40),
            events: vec![
                event(10, Dispatch, 1),
                event(12, InterruptEnter, 0),
                event(15, InterruptExit, 0),
                event(20, Block, 1),
                event(30, Dispatch, 1),
            ],
            ..Trace::default()
        };
        let slices = slices(&trace);
        let [card, thread] = [0, 1].map(|n| Label::Occupant(ActivityId(n)));
        assert_eq!(
            slices[&Lane::Processor(ProcessorId(0))],
            [
                (10, 12, thread),
                (12, 15, card),
                (15, 20, thread),
                (30, 40, thread)
            ]
        );
        assert_eq!(
            slices[&Lane::Activity(ActivityId(1))],
            [(10, 20, Label::RUNNING), (30, 40, Label::RUNNING)]
        );
    }

    #[test]
    fn disturbances_that_overlap_are_joined() {
        let disturbed = |from, to| Event {
            args: [from, to],
            ..event(to, EventKind::Disturbed, 0)
        };
        let trace = Trace {
            events: vec![disturbed(10, 30), disturbed(20, 40), disturbed(25, 40)],
            ..Trace::default()
        };
        let lane = Lane::Disturbed(ProcessorId(0));
        let label = Label::DISTURBED;
        assert_eq!(slices(&trace)[&lane], [(10, 30, label), (30, 40, label)]);
    }

    #[test]
    fn a_busy_trace_gives_each_activity_its_time() {
        let trace = samples::busy(65 * 3);
        let slices = slices(&trace);
        let time = |lane| -> u64 { slices[&lane].iter().map(|(from, to, _)| to - from).sum() };
        assert_eq!(time(Lane::Activity(ActivityId(0))), 3 * 5_400);
        assert_eq!(time(Lane::Activity(ActivityId(1))), 3 * 1_840_000);
        assert_eq!(time(Lane::Activity(ActivityId(2))), 3 * 9 * 10_000);
        assert_eq!(time(Lane::Slots(ActivityId(1))), 3 * 2_000_000);
    }

    fn any_event() -> impl Strategy<Value = Event> {
        (0..20u16, 0..3u16, 0..4u16, 0..50u64, 0..50u64).prop_map(|(code, cpu, who, a, b)| Event {
            at: Instant::ZERO,
            kind: EventKind::from_code(code).unwrap_or(EventKind::Mark(Mark(code))),
            processor: ProcessorId(cpu),
            activity: ActivityId(who),
            args: [a, b],
        })
    }

    proptest! {
        /// Whatever a ring that lost events hands over, lanes stay flat and closed.
        #[test]
        fn lanes_never_nest_nor_stay_open(
            events in proptest::collection::vec((any_event(), 0..5u64), 0..80),
        ) {
            let mut at = Instant::ZERO;
            let events = events.into_iter().map(|(event, gap)| {
                at += laxity_model::Span::from_nanos(gap);
                // A disturbance is over when it is recorded.
                Event { at, args: event.args.map(|a| a.min(at.as_nanos())), ..event }
            });
            slices(&Trace { events: events.collect(), ..Trace::default() });
        }
    }
}
