//! The executor that the handlers are held against.

use laxity_model::executor::{HandlerId, Wait};
use laxity_model::{Instant, Span};

use super::at;

/// The order of an executor.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum By {
    Release,
    Deadline,
    Rate,
}

/// The slow, obvious executor: everything is in one list, in the order in which jobs were released.
pub(super) struct Oracle {
    pub(super) by: By,
    pub(super) members: Vec<Member>,
    pub(super) running: Option<HandlerId>,
    pub(super) order: u64,
}

#[derive(Clone, Copy)]
pub(super) struct Member {
    pub(super) id: HandlerId,
    pub(super) relative: Option<Span>,
    /// Release, rank and order of entry, if its job is released.
    pub(super) job: Option<(u64, u64, u64)>,
    pub(super) wait: Option<Wait>,
    /// By deadlines only: what it was raised to, and what that will be from when on.
    pub(super) raised: Option<u64>,
    pub(super) later: Option<(u64, u64)>,
}

/// So soon after its release a job is due that is raised, and no sooner.
pub(super) const SOONEST: u64 = 5;

impl Oracle {
    pub(super) fn become_due(&mut self, id: HandlerId, due: u64) {
        self.order += 1;
        self.of(id).raised = Some(due);
        let (member, order) = (*self.of(id), self.order);
        if let Some((release, ..)) = member.job {
            self.of(id).job = Some((release, self.rank(&member, release), order));
        }
    }

    pub(super) fn yielded(&mut self, running: HandlerId, now: u64) {
        self.order += 1;
        let (by, order) = (self.by, self.order);
        if let Some((_, rank, entered)) = &mut self.of(running).job {
            match by {
                By::Release => (*rank, *entered) = (now, order),
                By::Deadline => *entered = order,
                By::Rate => {}
            }
        }
    }

    pub(super) fn rank(&self, member: &Member, release: u64) -> u64 {
        if let Some(due) = member.raised {
            return due.max(release + SOONEST);
        }
        match (self.by, member.relative) {
            (By::Release, _) => release,
            (By::Deadline, Some(relative)) => release + relative.as_nanos(),
            (By::Rate, Some(relative)) => relative.as_nanos(),
            (By::Deadline | By::Rate, None) => u64::MAX,
        }
    }

    pub(super) fn of(&mut self, id: HandlerId) -> &mut Member {
        self.members.iter_mut().find(|m| m.id == id).unwrap()
    }

    pub(super) fn release(&mut self, id: HandlerId, at: Instant) {
        self.order += 1;
        let (member, order, release) = (*self.of(id), self.order, at.as_nanos());
        let rank = self.rank(&member, release);
        *self.of(id) = Member {
            job: Some((release, rank, order)),
            wait: None,
            ..member
        };
    }

    pub(super) fn first(&self) -> Option<HandlerId> {
        let released = self.members.iter().filter(|m| m.job.is_some());
        released
            .min_by_key(|m| m.job.map(|(_, rank, order)| (rank, order)))
            .map(|m| m.id)
    }

    pub(super) fn decide(&mut self) -> Option<HandlerId> {
        self.running = self.running.or(self.first());
        self.running
    }

    /// The ranks of the running job, if others preempt by rank.
    pub(super) fn running_rank(&self) -> Option<u64> {
        let running = self.members.iter().find(|m| Some(m.id) == self.running)?;
        (self.by != By::Release).then_some(running.job?.1)
    }

    pub(super) fn must_yield(&self) -> bool {
        let running = self.running_rank();
        let others = self.members.iter().filter_map(|m| m.job);
        running.is_some_and(|running| others.into_iter().any(|(_, rank, _)| rank < running))
    }

    pub(super) fn until(&self) -> Instant {
        let Some(running) = self.running_rank() else {
            return Instant::MAX;
        };
        let coming = self.members.iter().filter_map(|m| {
            let until = m.wait?.until;
            (until < Instant::MAX && self.rank(m, until.as_nanos()) < running).then_some(until)
        });
        let raised = self.members.iter().filter_map(|m| m.later);
        let raised = raised.map(|(from, _)| at(from));
        coming.chain(raised).min().unwrap_or(Instant::MAX)
    }
}
