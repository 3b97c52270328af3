//! What is seen of the components of a program: each leaves a [`Probe`] when it is installed, and from the record of a run its probe
//! makes an [`Observation`] of it, which contracts are judged by and tables show.

mod recorder;

use laxity_model::verify::contract::{
    self, Contract, Doubts, Evidence, Observations, Phase, Quantity, RunFacts, Subject, Verdict,
};
use laxity_model::{ActivityId, Event, Grade, Instant, Reservation, RunRecord, Service, Span};

pub use laxity_model::Disturbances;
pub use recorder::{Recorder, Run};

/// Where the evidence of one component is to be found in the record of a run.
pub trait Probe {
    /// The component.
    fn subject(&self) -> &Subject;

    /// Its activities in the program. A halt of a processor bears on it if one of them, or of its [holders](Self::holders), ran there.
    fn activities(&self) -> &[ActivityId];

    /// The activities on whose reservations it depends: its own, or that of the executor on which it takes turns.
    fn holders(&self) -> &[ActivityId] {
        self.activities()
    }

    /// Who reads its events; `None` if nothing is to be seen of it.
    fn reader<'a>(&'a self, run: Run<'a>) -> Option<Box<dyn Reader + 'a>>;
}

/// Components of several kinds can be judged together.
impl<P: Probe + ?Sized> Probe for Box<P> {
    fn subject(&self) -> &Subject {
        (**self).subject()
    }

    fn activities(&self) -> &[ActivityId] {
        (**self).activities()
    }

    fn holders(&self) -> &[ActivityId] {
        (**self).holders()
    }

    fn reader<'a>(&'a self, run: Run<'a>) -> Option<Box<dyn Reader + 'a>> {
        (**self).reader(run)
    }
}

/// Reads the events of one component.
pub trait Reader {
    /// Takes the next event of the component's activities; `phase` is the one that a component without phases is in.
    fn take(&mut self, event: &Event, phase: &Phase);

    /// The phase that the component is in, if its kind has phases.
    fn phase(&self) -> Option<&Phase> {
        None
    }

    /// What was seen, once all events are taken.
    fn finish(self: Box<Self>, subject: Subject) -> Observation;
}

/// What was seen of one component in one run.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The component.
    pub subject: Subject,
    /// The values of its quantities.
    pub quantities: Observations,
    /// When each of its phases began, by the host's clock.
    pub phases: Vec<(Instant, Phase)>,
    /// The processor time that it had while it was connected, and how long that was.
    pub connected: Option<(Service, Span)>,
    /// What it lost that no disturbance excuses, in the order of time.
    pub losses: Vec<Loss>,
}

/// A stretch of work in which something was lost that no disturbance excuses, and all that was seen of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loss {
    /// How much was lost.
    pub amount: u64,
    /// The phase at its end.
    pub phase: Phase,
    /// From when the first of the work was asked for until the last of it was done.
    pub span: [Instant; 2],
    /// The service that the work had, all of it and the longest single call; `None` of what was never begun.
    pub service: Option<[Service; 2]>,
    /// Halts of the machine delayed it by so much, which excuses no more than was excused.
    pub halted: Span,
    /// Somebody held a processor where it may have run for so much of it.
    pub held: Span,
    /// Whether its reservation had begun when the work was asked for.
    pub reserved: bool,
}

impl Loss {
    /// How long its work took.
    #[must_use]
    pub fn took(&self) -> Span {
        let [from, to] = self.span;
        to.saturating_since(from)
    }
}

impl Observation {
    /// Of a component that has no phases.
    #[must_use]
    pub const fn of(subject: Subject, quantities: Observations) -> Self {
        Self {
            subject,
            quantities,
            phases: Vec::new(),
            connected: None,
            losses: Vec::new(),
        }
    }
}

/// What was granted to the first of these that asked for something.
fn granted(record: &RunRecord, holders: &[ActivityId]) -> Option<Reservation> {
    let usage = |holder: &ActivityId| record.usage.get(holder.index());
    let grants = holders
        .iter()
        .filter_map(usage)
        .filter_map(|usage| usage.grant.as_ref());
    grants.map(|grant| grant.reservation).next()
}

/// The activities on whose processors a component's evidence depends.
pub fn involved<P: Probe + ?Sized>(probe: &P) -> impl Iterator<Item = &ActivityId> {
    probe.activities().iter().chain(probe.holders())
}

/// Reads a run's events once, in their order: what was seen of each component, in the order of the probes. What a task does is told by
/// the phases of the only component beside it that has some; beside none or several, a task knows only the phase [`Phase::RUN`]. What the
/// contracts limit in windows is summed up in them.
pub fn observe<P: Probe>(
    record: &RunRecord,
    probes: &[P],
    contracts: &[&Contract],
) -> Vec<Observation> {
    let windows = probes.iter().map(|probe| {
        let all = contracts.iter();
        let all = all.flat_map(|contract| contract.windows_of(probe.subject()));
        all.collect()
    });
    let windows: Vec<Vec<Quantity>> = windows.collect();
    let readers = probes.iter().zip(&windows);
    let readers = readers.map(|(probe, windows)| {
        probe.reader(Run {
            record,
            windows,
            disturbances: Disturbances::of(record, involved(probe)),
            reservation: granted(record, probe.holders()),
        })
    });
    let mut readers: Vec<Option<Box<dyn Reader + '_>>> = readers.collect();
    let mut owners = vec![None; record.usage.len()];
    for (reader, probe) in probes.iter().enumerate() {
        for activity in probe.activities() {
            if let Some(owner) = owners.get_mut(activity.index()) {
                *owner = Some(reader);
            }
        }
    }
    let with_phases = readers.iter().enumerate();
    let has_phases = |reader: &dyn Reader| reader.phase().is_some();
    let mut with_phases = with_phases.filter(|(_, r)| r.as_deref().is_some_and(has_phases));
    let guide = with_phases.next().map(|(index, _)| index);
    let guide = guide.filter(|_| with_phases.next().is_none());
    let mut phase = Phase::RUN;
    for event in &record.events {
        let owner = owners.get(event.activity.index()).copied().flatten();
        let Some((owner, reader)) = owner.and_then(|n| Some((n, readers[n].as_mut()?))) else {
            continue;
        };
        reader.take(event, &phase);
        if guide == Some(owner)
            && let Some(now) = reader.phase()
            && *now != phase
        {
            phase = now.clone();
        }
    }
    let read = readers.into_iter().zip(probes);
    read.map(|(reader, probe)| {
        let subject = probe.subject().clone();
        match reader {
            Some(reader) => reader.finish(subject),
            None => Observation::of(subject, Observations::new()),
        }
    })
    .collect()
}

/// The grants that these activities had in force in a run, each with what was granted: `2ms/8ms by slots`.
pub fn grades<'a>(
    record: &'a RunRecord,
    activities: impl IntoIterator<Item = &'a ActivityId> + 'a,
) -> impl Iterator<Item = (String, Grade)> + 'a {
    let usages = activities
        .into_iter()
        .filter_map(|id| record.usage.get(id.index()));
    let grants = usages.filter_map(|usage| usage.grant.as_ref());
    let grants = grants.filter(|grant| grant.has_begun);
    grants.map(|grant| {
        let granted = format!("{} by {}", grant.reservation, grant.enforcer);
        (granted, grant.grade.clone())
    })
}

/// Judges a run by a contract: what the run's events say of the components that left these probes, the grants that they depend on, and whether the evidence is complete. [`contract::judge`] judges several runs together, and beside a control.
pub fn judge<P: Probe>(contract: &Contract, record: &RunRecord, probes: &[P]) -> Verdict {
    let seen = observe(record, probes, &[contract]);
    let seen = seen.into_iter().zip(probes);
    let all = seen.map(|(seen, probe)| Evidence {
        subject: seen.subject,
        runs: vec![seen.quantities],
        control: Vec::new(),
        grades: grades(record, probe.holders()).collect(),
        phases_over: Vec::new(),
        doubts: Doubts::of([(record, record.ran(involved(probe)))]),
    });
    let all: Vec<Evidence> = all.collect();
    contract::judge(contract, &all, &RunFacts::of([record]))
}

#[cfg(test)]
mod tests {
    use laxity_model::verify::contract::{
        Bound, Kind, Limit, Outcome, Quantity, Statistic, Subjects,
    };
    use laxity_model::{
        Disturbance, Enforcer, EventKind, Grant, ProcessorId, Reservation, Usage, Whereabouts,
    };

    use super::*;

    const PHASES: [Phase; 2] = [Phase::ON_HOOK, Phase::CONNECTED];

    /// Something with one activity, that is in the first of two phases until its first event, or has no phases.
    struct Thing {
        subject: Subject,
        activity: ActivityId,
        has_phases: bool,
    }

    fn thing(number: u16, has_phases: bool) -> Thing {
        let quantities = &[Quantity::RESPONSE_TIME];
        let name = number.to_string();
        let kind = Kind {
            name: "thing",
            quantities,
        };
        Thing {
            subject: Subject { name, kind },
            activity: ActivityId(number),
            has_phases,
        }
    }

    impl Probe for Thing {
        fn subject(&self) -> &Subject {
            &self.subject
        }

        fn activities(&self) -> &[ActivityId] {
            std::slice::from_ref(&self.activity)
        }

        fn reader<'a>(&'a self, _: Run<'a>) -> Option<Box<dyn Reader + 'a>> {
            Some(Box::new(Told {
                own: self.has_phases.then_some(0),
                seen: Observations::new(),
            }))
        }
    }

    /// Keeps the phases that it is told, and what its events say: a value, and whether it was disturbed.
    struct Told {
        own: Option<usize>,
        seen: Observations,
    }

    impl Reader for Told {
        fn take(&mut self, event: &Event, phase: &Phase) {
            self.own = self.own.map(|_| 1);
            let [value, disturbed] = event.args;
            self.seen
                .record(Quantity::RESPONSE_TIME, phase, value, disturbed > 0);
        }

        fn phase(&self) -> Option<&Phase> {
            self.own.map(|own| &PHASES[own])
        }

        fn finish(self: Box<Self>, subject: Subject) -> Observation {
            Observation::of(subject, self.seen)
        }
    }

    fn record(events: Vec<Event>, usage: Vec<Usage>) -> RunRecord {
        RunRecord {
            events,
            usage,
            ..RunRecord::empty(Instant::ZERO, Instant::from_millis(10))
        }
    }

    /// The phases that the last of these is told, which has an event after each of the others.
    fn told(things: &[Thing]) -> Vec<Phase> {
        let last = things.len() as u16 - 1;
        let order = (0..last).flat_map(|other| [other, last]);
        let events = order.zip(1..).map(|(activity, at)| Event {
            at: Instant::from_millis(at),
            kind: EventKind::Dispatch,
            processor: ProcessorId(0),
            activity: ActivityId(activity),
            args: [0; 2],
        });
        let usage = vec![Usage::default(); things.len()];
        let record = record(events.collect(), usage);
        let seen = observe(&record, things, &[]).pop().expect("one of each");
        let phases = seen.quantities.phases(Quantity::RESPONSE_TIME);
        phases.map(|(phase, _)| phase.clone()).collect()
    }

    #[test]
    fn the_only_component_with_phases_guides_and_of_several_none_does() {
        let task = || thing(2, false);
        let one = [thing(0, true), thing(1, false), task()];
        assert_eq!(told(&one), [Phase::CONNECTED]);
        let two = [thing(0, true), thing(1, true), task()];
        assert_eq!(told(&two), [Phase::RUN]);
        let none = [thing(0, false), thing(1, false), task()];
        assert_eq!(told(&none), [Phase::RUN]);
    }

    /// Each keeps the bound but where its processor stood still, or was held by somebody who was not found.
    #[test]
    fn who_may_have_been_held_up_is_left_open_and_who_ran_elsewhere_is_not() {
        let things = [thing(0, false), thing(1, false)];
        let at = Instant::from_millis;
        let events = (0..2).flat_map(|activity| {
            [[90, 0], [110, 1]].map(|args| Event {
                at: at(5),
                kind: EventKind::Dispatch,
                processor: ProcessorId(activity),
                activity: ActivityId(activity),
                args,
            })
        });
        let usage = (0..2).map(|own| Usage {
            ran: Whereabouts::On(ProcessorId(own)),
            ..Usage::default()
        });
        let mut record = record(events.collect(), usage.collect());
        record.doubts = vec![Disturbance {
            processor: ProcessorId(1),
            from: at(1),
            to: at(4),
        }];
        let bound = Bound::AtMost(100);
        let limit = Limit::new(Quantity::RESPONSE_TIME, Statistic::Maximum, bound);
        let outcome = |name: &str| {
            let contract = Contract {
                subjects: Subjects::Named(name.to_owned()),
                limits: vec![limit.clone()],
                ..Contract::default()
            };
            judge(&contract, &record, &things).result
        };
        assert_eq!(outcome("0"), Outcome::Met);
        assert_eq!(outcome("1"), Outcome::Inconclusive);
    }

    #[test]
    fn the_grades_are_those_of_all_holders() {
        let reservation = Reservation::new(Service::from_millis(2), Span::from_millis(8));
        let holder = |grade| Usage {
            grant: Some(Grant {
                reservation: reservation.expect("a reservation"),
                enforcer: Enforcer::Slots,
                grade,
                has_begun: true,
            }),
            ..Usage::default()
        };
        let reason = "somebody is above it".into();
        let all = [Grade::Enforced, Grade::Unenforced { reason }];
        let record = record(Vec::new(), all.clone().map(holder).to_vec());
        let holders = [ActivityId(0), ActivityId(1)];
        let found = grades(&record, &holders);
        assert!(found.eq(all.map(|grade| ("2ms/8ms by slots".to_owned(), grade))));
    }
}
