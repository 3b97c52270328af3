//! Unreserved time for time constraints: earliest deadline first, before anything runs.

use alloc::vec::Vec;

use crate::policy::slots::{Calendar, Extra};
use crate::{Instant, Service, Span};

/// What somebody is to get out of unreserved time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Need {
    pub(super) owner: usize,
    pub(super) release: Instant,
    pub(super) deadline: Instant,
    pub(super) service: Service,
}

/// What an allocation costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Terms {
    /// A switch, which is paid before every extra and kept free before every slot.
    pub(super) cost: Span,
    /// No extra is shorter.
    pub(super) shortest: Span,
}

/// The needs cannot all be met.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lack;

/// Gives the unreserved time of `calendar` from `from` on to `needs`, earliest deadline first, of equal ones the lower owner;
/// `current` has it just before. Without costs a need is met if any way of giving meets all: earliest deadline first is optimal on
/// whatever time there is (Liu, Layland 1973; Dertouzos 1974). O(pieces · needs).
pub(super) fn allocate(
    calendar: &Calendar,
    from: Instant,
    current: Option<usize>,
    needs: Vec<Need>,
    terms: Terms,
) -> Result<Vec<Extra>, Lack> {
    let mut allocation = Allocation {
        needs,
        terms,
        current,
        given: Vec::new(),
    };
    allocation.needs.retain(|need| !need.service.is_zero());
    allocation
        .needs
        .sort_by_key(|need| (need.deadline, need.owner));
    let Some(last) = allocation.needs.last().map(|need| need.deadline) else {
        return Ok(allocation.given);
    };
    for piece in calendar.pieces(from, last) {
        if piece.owner.is_some() {
            allocation.current = None;
            continue;
        }
        // The slot that comes after an unreserved piece needs its switch.
        let edge = calendar.by_tables(piece.since).until;
        let end = if calendar.by_tables(edge).owner.is_some() {
            piece.until.min(edge.saturating_sub(terms.cost))
        } else {
            piece.until
        };
        allocation.piece(piece.since, end)?;
    }
    if allocation.needs.is_empty() {
        Ok(allocation.given)
    } else {
        Err(Lack)
    }
}

struct Allocation {
    /// Those not met, by deadline.
    needs: Vec<Need>,
    terms: Terms,
    current: Option<usize>,
    given: Vec<Extra>,
}

impl Allocation {
    /// Gives an unreserved piece.
    fn piece(&mut self, from: Instant, end: Instant) -> Result<(), Lack> {
        let mut at = from;
        while at < end && !self.needs.is_empty() {
            let ready = self.needs.iter().position(|need| need.release <= at);
            let Some(first) = ready else {
                self.current = None;
                let releases = self.needs.iter().map(|need| need.release);
                at = releases.min().unwrap_or(end);
                continue;
            };
            at = self.run(first, at, end)?;
        }
        Ok(())
    }

    /// Runs a need until it is met, the piece ends, or another comes; returns when.
    fn run(&mut self, which: usize, at: Instant, end: Instant) -> Result<Instant, Lack> {
        let need = self.needs[which];
        let begin = if self.current == Some(need.owner) {
            at
        } else {
            at + self.terms.cost
        };
        let earlier = self.needs[..which].iter().map(|need| need.release);
        let preempted = earlier.filter(|at| *at > begin).min();
        let wanted = need.service.as_dedicated_span().max(self.terms.shortest);
        let most = end
            .min(need.deadline)
            .min(preempted.unwrap_or(Instant::MAX));
        let until = begin.checked_add(wanted).map_or(most, |met| most.min(met));
        let length = until.saturating_since(begin);
        if length.is_zero() || length < self.terms.shortest {
            // Too little is left before the piece ends, or before its deadline, or before somebody more urgent comes.
            if need.deadline <= end.min(preempted.unwrap_or(Instant::MAX)) {
                return Err(Lack);
            }
            return Ok(preempted.unwrap_or(end));
        }
        self.current = Some(need.owner);
        match self.given.last_mut() {
            Some(last) if last.until == begin && last.owner == need.owner => last.until = until,
            _ => self.given.push(Extra {
                from: begin,
                until,
                owner: need.owner,
            }),
        }
        let left = need.service.saturating_sub(length.as_full_service());
        if left.is_zero() {
            self.needs.remove(which);
        } else {
            self.needs[which].service = left;
            if until >= need.deadline {
                return Err(Lack);
            }
        }
        Ok(until)
    }
}
