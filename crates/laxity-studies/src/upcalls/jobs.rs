//! Jobs of a set that no host records: what is to be served of it, and what came of each.

use std::num::NonZeroU32;
use std::sync::Arc;

use laxity::observe::{Disturbances, Probe as _, Run};
use laxity::upcall::{First, OnOverrun, Timing};
use laxity::{PeriodicProbe, now};
use laxity_model::verify::contract::Phase;
use laxity_model::{Event, EventKind, HostError, Instant, Program, RunRecord, Service, Span};
use serde::{Deserialize, Serialize};

use super::trial::{CPU, Each, LEAD, Setup};
use crate::peers::failed;

/// There is room for so many jobs before they begin.
pub(super) const ROOM: usize = 1 << 16;

/// An upcall, as whoever serves it is told of it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Task {
    /// Which of the set.
    pub(super) member: usize,
    pub(super) period_ns: u64,
    /// Its first release, after that of the set.
    pub(super) phase_ns: u64,
    /// What a batch takes.
    pub(super) cost_ns: u64,
    pub(super) batch: NonZeroU32,
    pub(super) quantum: NonZeroU32,
    /// Of a thread that serves it alone.
    pub(super) priority: u8,
}

/// From when to when a set is released.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct When {
    pub(super) from_ns: u64,
    pub(super) until_ns: u64,
}

impl When {
    pub(super) fn new(from: Instant, until: Instant) -> Self {
        Self {
            from_ns: from.as_nanos(),
            until_ns: until.as_nanos(),
        }
    }

    pub(super) fn from(self) -> Instant {
        Instant::from_nanos(self.from_ns)
    }

    pub(super) fn until(self) -> Instant {
        Instant::from_nanos(self.until_ns)
    }
}

/// A job: of which upcall, for when it was meant, when it began and when it ended.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Done {
    member: usize,
    release_ns: u64,
    began_ns: u64,
    ended_ns: u64,
}

impl Task {
    pub(super) fn period(&self) -> Span {
        Span::from_nanos(self.period_ns)
    }

    pub(super) fn cost(&self) -> Service {
        Service::from_nanos(self.cost_ns)
    }

    /// Its first release.
    pub(super) fn first(&self, when: When) -> Instant {
        when.from() + Span::from_nanos(self.phase_ns)
    }

    pub(super) fn timing(&self, when: When) -> Timing {
        Timing {
            first: First::At(self.first(when)),
            period: self.period(),
            batch: self.batch,
            quantum: self.quantum,
            on_overrun: OnOverrun::SKIP,
            pauses: false,
        }
    }

    /// A job that has just ended.
    pub(super) fn done(&self, release: Instant, began: Instant) -> Done {
        let [release_ns, began_ns, ended_ns] = [release, began, now()].map(Instant::as_nanos);
        Done {
            member: self.member,
            release_ns,
            began_ns,
            ended_ns,
        }
    }
}

impl Done {
    /// As a host records it.
    fn events(self, probe: &PeriodicProbe) -> [Event; 2] {
        let event = |at_ns, kind, args| Event {
            at: Instant::from_nanos(at_ns),
            kind,
            processor: CPU,
            activity: probe.activity,
            args,
        };
        let ran = [self.release_ns, self.began_ns];
        [
            event(self.began_ns, EventKind::Mark(probe.runs), ran),
            event(self.ended_ns, EventKind::Block, [0; 2]),
        ]
    }
}

/// What came of each upcall of a set, read as the record of a program is that serves it: what is not over at the set's end is not over. All jobs count that were
/// worked at, whenever they ended.
pub(super) fn each(
    setup: &Setup,
    (jobs, when): (&[Done], When),
    halts: &Disturbances,
) -> Result<Vec<Each>, HostError> {
    let record = RunRecord::empty(when.from().saturating_sub(LEAD), when.until());
    let mut program = Program::new(1);
    let members = setup.members.iter().enumerate();
    let each = members.map(|(number, member)| {
        let probe = setup.install(
            (number, member),
            &mut program,
            None,
            (&Arc::default(), None),
        );
        let reader = probe.reader(Run {
            disturbances: halts.clone(),
            reservation: setup.place(member, None).1.map(|asked| asked.reservation),
            ..Run::of(&record)
        });
        let mut reader = reader.ok_or_else(|| failed("its jobs")("nobody reads them"))?;
        let own = jobs.iter().filter(|job| job.member == number);
        let events = own.clone().flat_map(|job| job.events(&probe));
        let events = events.filter(|event| event.at <= when.until());
        events.for_each(|event| reader.take(&event, &Phase::RUN));
        Ok(Each {
            jobs: own.count() as u64,
            ..Each::of(member, &reader.finish(probe.subject.clone()))
        })
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use laxity_model::{Disturbance, Whereabouts};

    use super::super::trial::{Look, Member, Serving};
    use super::*;

    const PERIOD: Span = Span::from_millis(40);

    fn at(us: u64) -> Instant {
        Instant::from_secs(1) + Span::from_micros(us)
    }

    /// How many deadlines an upcall of 40 ms missed up to then, whose jobs were released, begun and ended so while the machine stood still from and to, in microseconds.
    fn missed(until: u64, jobs: &[[u64; 3]], halts: &[[u64; 2]]) -> u64 {
        let setup = Setup {
            members: vec![Member {
                period: PERIOD,
                phase: Span::ZERO,
                process: 0,
                batch: NonZeroU32::MIN,
                weight: 1,
            }],
            utilization_ppm: 600_000,
            way: (Serving::Threads, Look::AtOnce),
            switch: Service::ZERO,
            length: LEAD + Span::from_micros(until),
            is_watched: true,
        };
        let jobs = jobs.iter().map(|times| {
            let [release_ns, began_ns, ended_ns] = times.map(|us| at(us).as_nanos());
            Done {
                member: 0,
                release_ns,
                began_ns,
                ended_ns,
            }
        });
        let jobs: Vec<Done> = jobs.collect();
        let halts = halts.iter().map(|[from, to]| Disturbance {
            processor: CPU,
            from: at(*from),
            to: at(*to),
        });
        let halts: Vec<Disturbance> = halts.collect();
        let halts = Disturbances::bearing_on(&halts, [Whereabouts::Anywhere]);
        let when = When::new(at(0), at(until));
        let each = each(&setup, (&jobs, when), &halts).expect("it can be read");
        assert_eq!(each[0].jobs, jobs.len() as u64);
        each[0].rate.missed
    }

    /// Without the halt the job would have been over when the next was released.
    #[test]
    fn what_a_halt_delayed_hands_its_excuse_down_to_what_was_skipped() {
        let jobs = [[0, 0, 45_000], [80_000, 80_000, 104_000]];
        assert_eq!(missed(120_000, &jobs, &[]), 2);
        assert_eq!(missed(120_000, &jobs, &[[10_000, 31_000]]), 0);
    }

    /// Neither one that was over before it, nor one that it kept for a tenth of a millisecond.
    #[test]
    fn a_halt_excuses_no_more_than_it_delayed() {
        let jobs = [[0, 0, 160_000]];
        let after_its_deadline = [[50_000, 50_110]];
        let before = [[10_000, 10_110]];
        for halts in [&[][..], &after_its_deadline, &before] {
            assert_eq!(missed(60_000, &jobs, halts), 1, "{halts:?}");
            assert_eq!(missed(200_000, &jobs, halts), 4, "{halts:?}");
        }
    }

    /// Of what was never begun, all that was due was missed.
    #[test]
    fn what_was_never_served_was_missed() {
        assert_eq!(missed(200_500, &[], &[]), 5);
    }
}
