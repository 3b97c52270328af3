//! Jobs of a set that no host records: what is to be served of it, and what came of each.

use std::num::NonZeroU32;

use laxity::now;
use laxity::upcall::{First, OnOverrun, Timing};
use laxity_model::base::histogram::Histogram;
use laxity_model::{Disturbance, Instant, Service, Span};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::trial::{Each, Member, Rate};

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

/// The same processor time as [`laxity_model::Step::Burn`] takes.
pub(super) fn burn(service: Service) {
    let had = || {
        let had = clock_gettime(ClockId::ThreadCPUTime);
        Service::from_nanos(had.tv_sec as u64 * 1_000_000_000 + had.tv_nsec as u64)
    };
    let goal = had() + service;
    loop {
        let left = goal.saturating_sub(had());
        if left.is_zero() {
            return;
        }
        let until = now() + left.as_dedicated_span().min(Span::from_micros(100));
        while now() < until {}
    }
}

/// What came of one upcall. Releases that were skipped missed their deadline; what the machine stood still in missed none.
pub(super) fn each(
    (number, member): (usize, &Member),
    (jobs, when): (&[Done], When),
    halts: &[Disturbance],
) -> Each {
    let own = jobs.iter().filter(|job| job.member == number);
    let mut lateness = Histogram::new();
    let (mut longest, mut jobs, mut in_time) = (Span::ZERO, 0, 0);
    let halted = |from, to| halts.iter().any(|halt| halt.from < to && from < halt.to);
    for job in own {
        let times = [job.release_ns, job.began_ns, job.ended_ns];
        let [release, began, ended] = times.map(Instant::from_nanos);
        let is_due = release + member.period <= when.until();
        let response = ended.saturating_since(release);
        jobs += 1;
        if halted(release, ended) {
            in_time += u64::from(is_due);
            continue;
        }
        lateness.record(began.saturating_since(release).as_nanos());
        longest = longest.max(response);
        in_time += u64::from(is_due && response <= member.period);
    }
    let first = when.from() + member.phase;
    let left = when.until().saturating_since(first);
    let due = left.as_nanos() / member.period.as_nanos();
    let rate = Rate {
        period: member.period,
        longest,
        missed: due.saturating_sub(in_time),
    };
    Each {
        rate,
        lateness,
        jobs,
    }
}
