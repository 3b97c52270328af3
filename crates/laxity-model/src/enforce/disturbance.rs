//! Stretches in which a processor itself stood still, or as good as that ([`super::PieceTimes`]), and whom that excuses: who ran there, or may have.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::above::behind;
use super::host::RunRecord;
use super::witness::{DISPATCHER_ACTIVITY, WITNESS_ACTIVITY};
use crate::request::Work;
use crate::{
    Activity, ActivityId, Enforcer, Event, EventKind, Instant, Placement, ProcessorId, Reservation,
    Span,
};

/// A stretch of time in which a processor itself stood still, as the witness saw it there, or the dispatcher.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Disturbance {
    /// Where it was seen. Of other processors nothing follows: a virtual machine is often halted one by one. Where all stood still, each has it.
    pub processor: ProcessorId,
    /// When the witness should have woken; of a processor that crawled, when that began.
    pub from: Instant,
    /// When it did; when it was over.
    pub to: Instant,
}

impl Disturbance {
    /// The same stretches in order, and apart on each processor: several threads may have seen one halt.
    #[must_use]
    pub fn joined(all: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let each = Stretches::of(all).0.into_iter();
        let each = each.flat_map(|(processor, here)| {
            here.into_iter().map(move |[from, to]| Self {
                processor,
                from,
                to,
            })
        });
        let mut all: Vec<Self> = each.collect();
        all.sort_by_key(|one| one.from);
        all
    }

    /// As an event tells it: when its thread should have woken, and when it did.
    #[must_use]
    pub fn of(event: &Event) -> Self {
        let [from, to] = event.args.map(Instant::from_nanos);
        Self {
            processor: event.processor,
            from,
            to,
        }
    }

    /// Whether it shares time with what took from `from` to `to`. What merely touches it shares none: who ended as the halt began, or began as it was over, was
    /// not kept from anything. An instant shares time with the halt that it lies in.
    #[must_use]
    pub fn overlaps(&self, from: Instant, to: Instant) -> bool {
        self.from < to && from < self.to
    }

    /// What of it lies outside those.
    #[must_use]
    pub fn outside(self, those: &Stretches) -> Vec<Self> {
        let mut left = self;
        let mut parts = Vec::new();
        for [from, to] in those.overlapping(&self) {
            parts.push(Self { to: *from, ..left });
            left.from = *to;
        }
        parts.push(left);
        parts.retain(|part| part.from < part.to);
        parts
    }

    /// How long it was.
    pub fn length(self) -> Span {
        self.to.saturating_since(self.from)
    }
}

/// From when to when.
type Stretch = [Instant; 2];

/// In order and apart.
fn apart(mut all: Vec<Stretch>) -> Vec<Stretch> {
    all.sort_unstable();
    all.dedup_by(|next, before| {
        let overlaps = next[0] <= before[1];
        if overlaps {
            before[1] = before[1].max(next[1]);
        }
        overlaps
    });
    all
}

/// Of these, which are in order and apart, those that [overlap](Disturbance::overlaps) the time from `from` to `to`. O(log n).
fn overlapping(all: &[Stretch], from: Instant, to: Instant) -> &[Stretch] {
    let first = all.partition_point(|[_, end]| *end <= from);
    let rest = &all[first..];
    &rest[..rest.partition_point(|[begin, _]| *begin < to)]
}

/// Stretches of each processor, in order and apart, for asking which of them something shares time with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stretches(BTreeMap<ProcessorId, Vec<Stretch>>);

impl Stretches {
    /// When each processor had one of these or several.
    #[must_use]
    pub fn of(all: impl IntoIterator<Item = Disturbance>) -> Self {
        let mut here: BTreeMap<ProcessorId, Vec<Stretch>> = BTreeMap::new();
        for one in all {
            let here = here.entry(one.processor).or_default();
            here.push([one.from, one.to]);
        }
        let each = here.into_iter();
        Self(each.map(|(on, here)| (on, apart(here))).collect())
    }

    /// Those on its processor that [share time](Disturbance::overlaps) with this one. O(log n): whoever asks so of as many as there are looks at each a few times.
    #[must_use]
    pub fn overlapping(&self, one: &Disturbance) -> &[Stretch] {
        let here = self.0.get(&one.processor);
        here.map_or(&[], |here| overlapping(here, one.from, one.to))
    }

    /// Whether this one is a part of any.
    fn has_around(&self, one: &Disturbance) -> bool {
        let mut all = self.overlapping(one).iter();
        all.any(|[from, to]| *from <= one.from && one.to <= *to)
    }

    /// Whether any is a part of this one.
    fn has_within(&self, all: &Disturbance) -> bool {
        let mut each = self.overlapping(all).iter();
        each.any(|[from, to]| all.from <= *from && *to <= all.to)
    }
}

/// Where an activity ran, and so which halts of processors may have kept it from its work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Whereabouts {
    /// On this processor of the program and no other.
    On(ProcessorId),
    /// On any of them, and it may have moved: nobody knows that a halt, wherever it was, did not keep it. So it is not judged by what such a halt
    /// overlaps.
    #[default]
    Anywhere,
    /// On none of them: outside the machine that the program describes.
    Outside,
}

impl Whereabouts {
    /// Of an activity. What takes turns on an executor is where that is; `SCHED_DEADLINE` keeps to no processor.
    #[must_use]
    pub fn of(activity: &Activity) -> Self {
        let enforcer = activity.reservation.map(|request| request.enforcer);
        match (activity.placement, enforcer) {
            (Placement::External, _) => Self::Outside,
            (_, Some(Enforcer::Deadline)) => Self::Anywhere,
            _ => Self::On(activity.processor),
        }
    }

    fn may_be_on(self, processor: ProcessorId) -> bool {
        match self {
            Self::On(own) => own == processor,
            Self::Anywhere => true,
            Self::Outside => false,
        }
    }
}

/// The stretches of a run that bear on somebody, in order and apart, for asking what overlaps them. What does is not judged.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Disturbances {
    stretches: Vec<Stretch>,
    /// Each may have begun so much before it was seen.
    unseen: Span,
    /// What goes first where they bear on, of each of those who work there together.
    above: Vec<Vec<Work>>,
}

/// A halt between two looks of a witness that woke so often in a run of this length may have been seen by nobody, or as shorter by as much: zero without a
/// witness.
pub(crate) fn between_looks(run: Span, wakeups: u64) -> Span {
    run.as_nanos()
        .checked_div(wakeups)
        .map_or(Span::ZERO, Span::from_nanos)
}

/// Who wakes late by no more than this while its processor crawls may do so because of that: who usually is in time, within a tenth of a millisecond, takes as long at
/// a twelfth of its speed, which is the least that was seen.
const LATE_BY_CRAWLING: Span = Span::from_micros(1_200);

impl RunRecord {
    /// Where these activities ran.
    pub fn ran<'a>(
        &self,
        activities: impl IntoIterator<Item = &'a ActivityId>,
    ) -> impl Iterator<Item = Whereabouts> {
        let usage = activities.into_iter().map(|id| self.usage.get(id.index()));
        usage.map(|usage| usage.map_or(Whereabouts::Anywhere, |usage| usage.ran))
    }

    /// How often somebody may have held a processor on which one of those ran who ran there, or may have ([`Self::doubts`]).
    pub fn held(&self, ran: impl IntoIterator<Item = Whereabouts>) -> u64 {
        let bearing = Disturbances::bearing_on(&self.doubts, ran);
        bearing.stretches.len() as u64
    }

    /// How often a witness saw a processor stand still on which one of those ran who ran there, or may have: of several, that which did most often, as nobody is on more than one of them.
    /// What the machine does once the run is over is none of its time, and what a dispatcher saw alone is none of the witness's looks; and where a processor crawled nothing stood still.
    pub fn halts(&self, ran: impl IntoIterator<Item = Whereabouts>) -> u64 {
        let ran: Vec<Whereabouts> = ran.into_iter().collect();
        let mut often: BTreeMap<ProcessorId, u64> = BTreeMap::new();
        let [by_witness, by_dispatcher] =
            [WITNESS_ACTIVITY, DISPATCHER_ACTIVITY].map(|by| self.seen_by(by));
        let is_looked_for =
            |one: &Disturbance| by_witness.has_within(one) || !by_dispatcher.has_within(one);
        let begun = self.standstills().filter(|one| one.from < self.end);
        let bearing = begun.filter(|one| ran.iter().any(|ran| ran.may_be_on(one.processor)));
        for one in bearing.filter(is_looked_for) {
            *often.entry(one.processor).or_default() += 1;
        }
        often.into_values().max().unwrap_or(0)
    }

    /// For how long that processor crawled that did so for longest.
    pub fn crawled_most(&self) -> Span {
        let mut long: BTreeMap<ProcessorId, Span> = BTreeMap::new();
        for one in &self.crawled {
            let within = one.to.min(self.end).saturating_since(one.from);
            *long.entry(one.processor).or_default() += within;
        }
        long.into_values().max().unwrap_or_default()
    }

    /// The disturbances in which a processor stood still: those in which nothing crawled, and of the others what was seen to be late by more than comes of crawling.
    pub fn standstills(&self) -> impl Iterator<Item = Disturbance> {
        let crawled = Stretches::of(self.crawled.iter().copied());
        let crawls = |all: &&Disturbance| crawled.has_within(all);
        let (crawling, still): (Vec<&Disturbance>, Vec<_>) =
            self.disturbances.iter().partition(crawls);
        let crawling = Stretches::of(crawling.into_iter().copied());
        let late = self.late().filter(|event| {
            let late = Disturbance::of(event);
            crawling.has_around(&late)
                && (late.length() > LATE_BY_CRAWLING || !crawled.has_around(&late))
        });
        let late = Disturbance::joined(late.map(Disturbance::of));
        still.into_iter().copied().chain(late)
    }

    /// That those who watch woke late, and nobody else was why.
    fn late(&self) -> impl Iterator<Item = &Event> {
        let events = self.events.iter();
        events.filter(|event| event.kind == EventKind::Disturbed)
    }

    /// What one of these recorded of halts.
    fn seen_by(&self, activity: ActivityId) -> Stretches {
        let of_it = self.late().filter(|event| event.activity == activity);
        Stretches::of(of_it.map(Disturbance::of))
    }
}

impl Disturbances {
    /// Those that bear on what these activities did together: seen on a processor on which one of them ran, or may have.
    #[must_use]
    pub fn of<'a>(
        record: &RunRecord,
        activities: impl IntoIterator<Item = &'a ActivityId>,
    ) -> Self {
        let all: Vec<&ActivityId> = activities.into_iter().collect();
        let usage = all.iter().filter_map(|id| record.usage.get(id.index()));
        Self {
            above: usage.map(|usage| usage.above.clone()).collect(),
            ..Self::of_who_ran(record, record.ran(all))
        }
    }

    /// The same of who ran there.
    #[must_use]
    pub fn of_who_ran(record: &RunRecord, ran: impl IntoIterator<Item = Whereabouts>) -> Self {
        let length = record.end.saturating_since(record.start);
        Self {
            unseen: between_looks(length, record.witness_wakeups),
            ..Self::bearing_on(&record.disturbances, ran)
        }
    }

    /// Those of them that bear on who ran there.
    #[must_use]
    pub fn bearing_on(all: &[Disturbance], ran: impl IntoIterator<Item = Whereabouts>) -> Self {
        let ran: Vec<Whereabouts> = ran.into_iter().collect();
        let own = all
            .iter()
            .filter(|one| ran.iter().any(|ran| ran.may_be_on(one.processor)));
        Self {
            stretches: apart(own.map(|one| [one.from, one.to]).collect()),
            ..Self::default()
        }
    }

    /// With these times, in which something is not judged either.
    #[must_use]
    pub fn and(self, more: impl IntoIterator<Item = [Instant; 2]>) -> Self {
        Self {
            stretches: apart(self.stretches.into_iter().chain(more).collect()),
            ..self
        }
    }

    /// In order and apart, from when to when.
    pub(crate) fn stretches(&self) -> &[Stretch] {
        &self.stretches
    }

    fn overlapping(&self, from: Instant, to: Instant) -> &[Stretch] {
        overlapping(&self.stretches, from, to)
    }

    /// Whether any [overlaps](Disturbance::overlaps) the time from `from` to `to`. O(log n).
    pub fn overlap(&self, from: Instant, to: Instant) -> bool {
        !self.overlapping(from, to).is_empty()
    }

    /// When the first may have begun that may [overlap](Disturbance::overlaps) the time from `from` to `to`: what is unseen of one lies before it. O(log n).
    pub fn first(&self, from: Instant, to: Instant) -> Option<Instant> {
        let first = self.overlapping(from, to + self.unseen).first();
        first.map(|[begin, _]| begin.saturating_sub(self.unseen))
    }

    /// Since when any bear on what whoever has this reservation did from `from` to `to`; `None` where none do. One does that overlaps that, or may have begun before its end unseen, or began before, though not before `since`, if what
    /// it [delayed](Self::delayed) with those after it was not done by then.
    pub fn bear_since(
        &self,
        since: Instant,
        [from, to]: [Instant; 2],
        reservation: Option<Reservation>,
    ) -> Option<Instant> {
        let mut stood = Span::ZERO;
        let before = self.overlapping(since, from).iter().rev();
        let bear = before.filter_map(|[begin, end]| {
            stood += end.saturating_since(*begin) + self.unseen;
            // What is unseen of one lies before it.
            let done = begin.saturating_sub(self.unseen) + self.delay(stood, reservation);
            (done > from).then_some(*begin)
        });
        let unseen_to = to + self.unseen;
        bear.last()
            .or_else(|| self.overlap(from, unseen_to).then_some(from))
    }

    /// How much of each that [overlaps](Disturbance::overlaps) the time from `from` to `to` lies in it. O(log n) and as many as there are.
    pub fn within(&self, from: Instant, to: Instant) -> impl Iterator<Item = Span> {
        let all = self.overlapping(from, to).iter();
        all.map(move |[begin, end]| to.min(*end).saturating_since(from.max(*begin)))
    }

    /// Of what took from `from` to `to` and lasted so long of it, what is to be judged, and whether halts of the machine may account for the rest: as long as it
    /// lasted, unless halts delayed whoever has this reservation by no more than a tenth of that. They are then not why it took so long, and it
    /// is judged less what they took.
    pub fn told_apart(
        &self,
        lasted: Span,
        span: [Instant; 2],
        reservation: Option<Reservation>,
    ) -> (Span, bool) {
        Self::judged(lasted, self.delayed(span, reservation))
    }

    /// The same of what halts delayed by so much; `None`: there were none.
    pub fn judged(lasted: Span, delayed: Option<Span>) -> (Span, bool) {
        match delayed {
            Some(delayed) if delayed * 10 <= lasted => (lasted.saturating_sub(delayed), false),
            delayed => (lasted, delayed.is_some()),
        }
    }

    /// For how long whoever has this reservation may be behind because the machine stood still from `from` to `to`; `None`: it did not.
    pub fn delayed(&self, span: [Instant; 2], reservation: Option<Reservation>) -> Option<Span> {
        Some(self.delay(self.stood(span)?, reservation))
    }

    /// For how long whoever has this reservation may be behind when the machine stood still for so long: what was lost of its service it has as soon as that is
    /// reserved again; and without one when those that go first are done with what they do meanwhile.
    pub(super) fn delay(&self, stood: Span, reservation: Option<Reservation>) -> Span {
        let Some(reservation) = reservation else {
            // Of those that work together who waits for longest.
            let each = self.above.iter().map(|above| behind(stood, above));
            return each.max().unwrap_or(stood);
        };
        let service = reservation.service().as_dedicated_span();
        let periods = stood.as_nanos().div_ceil(service.as_nanos());
        stood + reservation.period().saturating_sub(service) * periods
    }

    /// For how long the machine may have stood still from `from` to `to`; `None`: it did not.
    pub fn stood(&self, [from, to]: [Instant; 2]) -> Option<Span> {
        let each = self.within(from, to).map(|still| still + self.unseen);
        each.reduce(|all, one| all + one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Service;
    use alloc::vec;

    #[test]
    fn what_a_halt_took_of_a_reservation_comes_with_its_next_periods() {
        let two_of_eight = Reservation::new(Service::from_millis(2), Span::from_millis(8)).unwrap();
        let ms = Span::from_millis;
        let halts = Disturbances::default();
        assert_eq!(halts.delay(ms(1), None), ms(1));
        assert_eq!(halts.delay(ms(1), Some(two_of_eight)), ms(7));
        assert_eq!(halts.delay(ms(3), Some(two_of_eight)), ms(15));
    }

    /// That the machine stood still from then to then, in milliseconds.
    fn halts(all: &[[u64; 2]]) -> Disturbances {
        let stretches = all.iter().map(|halt| halt.map(Instant::from_millis));
        Disturbances::default().and(stretches)
    }

    /// Both were not worked off by 16 ms, where 3 of every 10 ms go first: that of 2 ms by 18, and with that before it by 17.
    #[test]
    fn the_first_of_the_halts_that_bear_on_a_job_is_told() {
        let above = Work {
            service: Service::from_millis(3),
            period: Span::from_millis(10),
        };
        let halts = Disturbances {
            above: vec![vec![above]],
            ..halts(&[[10, 12], [13, 15]])
        };
        let since = |from| {
            let [from, to] = [from, 25].map(Instant::from_millis);
            halts.bear_since(Instant::ZERO, [from, to], None)
        };
        assert_eq!(since(16), Some(Instant::from_millis(10)));
        assert_eq!(since(18), None);
    }

    /// A halt that a look found at its end, and that may have begun a millisecond sooner, was over then all the same.
    #[test]
    fn what_nobody_saw_of_a_halt_lies_before_it() {
        let halts = Disturbances {
            unseen: Span::from_millis(1),
            ..halts(&[[15, 17]])
        };
        let since = |from| {
            let [from, to] = [from, 25].map(Instant::from_millis);
            halts.bear_since(Instant::ZERO, [from, to], None)
        };
        assert_eq!(since(17), None);
        assert_eq!(since(16), Some(Instant::from_millis(15)));
    }
}
