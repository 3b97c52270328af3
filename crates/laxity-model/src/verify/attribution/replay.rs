//! A chain once more, without somebody's excess.

use alloc::vec::Vec;

use super::Holder;
use super::chain::{Chain, Suspect, Work};
use super::timeline::Piece;
use crate::{Instant, Span};

/// Whose excess is taken away.
pub(super) struct RemovedSet<'a> {
    pub(super) suspects: &'a [Suspect],
    /// A bit for each suspect.
    pub(super) removed: u32,
    /// Threads that rank no higher than the victim go too.
    pub(super) alone: bool,
}

impl RemovedSet<'_> {
    fn has(&self, who: Holder) -> bool {
        let place = self.suspects.iter().position(|suspect| suspect.who == who);
        place.is_some_and(|place| self.removed >> place & 1 == 1)
    }

    /// What a job needs.
    fn needs(&self, work: &Work) -> Span {
        let mut needs = work.held;
        if self.has(Holder::Victim) {
            needs = needs.saturating_sub(work.overrun);
        }
        if self.has(Holder::Unseen) {
            needs = needs.saturating_sub(work.unseen);
        }
        needs
    }

    /// What is left of a piece that came before the victim.
    fn rest(&self, piece: &Piece) -> Span {
        if piece.shared && self.alone {
            Span::ZERO
        } else if self.has(piece.holder) {
            piece.excess_from - piece.from
        } else {
            piece.to - piece.from
        }
    }
}

/// The chain on its way: work that comes before the victim runs as soon as it is ready, the victim's jobs in what is left of the time that it
/// could have had.
pub(super) struct Replay<'a> {
    set: &'a RemovedSet<'a>,
    chain: &'a Chain,
    /// Work that comes before the victim, by when it is ready.
    others: Vec<(Instant, Span)>,
    next_other: usize,
    /// What of it is ready and not done.
    backlog: Span,
    next_job: usize,
    /// What the next job still needs.
    left: Span,
    pub(super) ends: Vec<Instant>,
}

impl<'a> Replay<'a> {
    pub(super) fn new(chain: &'a Chain, set: &'a RemovedSet<'a>) -> Self {
        let others = chain.pieces.iter().filter(|piece| piece.before_victim);
        let mut others: Vec<(Instant, Span)> = others
            .map(|piece| (piece.ready, set.rest(piece)))
            .filter(|(_, rest)| !rest.is_zero())
            .collect();
        others.sort_unstable();
        Self {
            left: chain
                .works
                .first()
                .map_or(Span::ZERO, |work| set.needs(work)),
            ends: chain.works.iter().map(|work| work.end).collect(),
            set,
            chain,
            others,
            next_other: 0,
            backlog: Span::ZERO,
            next_job: 0,
        }
    }

    /// The time of one piece passes.
    pub(super) fn pass(&mut self, piece: &Piece) {
        let stands_still = piece.holder == Holder::Machine && !self.set.has(Holder::Machine);
        let open = !stands_still
            && match piece.holder {
                Holder::Victim => true,
                Holder::Machine => piece.claim,
                _ => piece.before_victim && piece.claim,
            };
        let mut now = piece.from;
        while now < piece.to {
            now = if stands_still {
                piece.to
            } else {
                self.go(now, piece.to, open)
            };
        }
    }

    /// Time passes from `now` until something changes, `to` at the latest.
    fn go(&mut self, now: Instant, to: Instant, open: bool) -> Instant {
        while let Some((_, work)) = self
            .others
            .get(self.next_other)
            .filter(|(ready, _)| *ready <= now)
        {
            self.backlog += *work;
            self.next_other += 1;
        }
        let next_other = self.others.get(self.next_other);
        let until = next_other.map_or(to, |(ready, _)| to.min(*ready));
        if !self.backlog.is_zero() {
            let run = self.backlog.min(until - now);
            self.backlog = self.backlog.saturating_sub(run);
            return now + run;
        }
        let Some(work) = self.chain.works.get(self.next_job).filter(|_| open) else {
            return until;
        };
        if work.release > now {
            return until.min(work.release);
        }
        let run = self.left.min(until - now);
        self.left = self.left.saturating_sub(run);
        if self.left.is_zero() {
            self.ends[self.next_job] = (now + run).min(work.end);
            self.next_job += 1;
            let next = self.chain.works.get(self.next_job);
            self.left = next.map_or(Span::ZERO, |work| self.set.needs(work));
        }
        now + run
    }
}
