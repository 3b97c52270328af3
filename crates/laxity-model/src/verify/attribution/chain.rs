//! Jobs that follow each other without a pause, and what would have become of them without some excess.

use alloc::vec;
use alloc::vec::Vec;

use super::jobs::Job;
use super::replay::{RemovedSet, Replay};
use super::timeline::{Piece, Timeline};
use super::{Holder, MOST_SUSPECTS, Question};
use crate::{Instant, Service, Span};

/// Somebody with excess in a chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suspect {
    pub(super) who: Holder,
    pub(super) excess: Span,
}

/// A job as the replay needs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) release: Instant,
    pub(super) end: Instant,
    /// What it held of the processor.
    pub(super) held: Span,
    /// What of that it took beyond what it declared.
    pub(super) overrun: Span,
    /// What of that it did not receive, though it seemed to.
    pub(super) unseen: Span,
}

/// Jobs without a pause between them.
#[derive(Debug)]
pub(super) struct Chain {
    pub(super) from: Instant,
    pub(super) works: Vec<Work>,
    pub(super) pieces: Vec<Piece>,
    /// Those with the most excess first.
    pub(super) suspects: Vec<Suspect>,
}

/// Where each chain begins and ends in the list of jobs.
pub(super) fn chains(jobs: &[Job]) -> Vec<(usize, usize)> {
    let mut out: Vec<(usize, usize)> = Vec::new();
    let mut busy_until = Instant::ZERO;
    for (index, job) in jobs.iter().enumerate() {
        match out.last_mut() {
            Some((_, end)) if job.release < busy_until => *end = index + 1,
            _ => out.push((index, index + 1)),
        }
        busy_until = busy_until.max(job.end);
    }
    out
}

impl Chain {
    pub(super) fn new(timeline: &Timeline, jobs: &[Job], question: &Question<'_>) -> Self {
        let from = jobs.first().map_or(Instant::ZERO, |job| job.release);
        let until = jobs.iter().map(|job| job.end).max().unwrap_or(from);
        let mut before = from;
        let works: Vec<Work> = jobs
            .iter()
            .map(|job| {
                let begin = before.max(job.release);
                before = job.end;
                work(timeline, job, begin, question)
            })
            .collect();
        let pieces = pieces(timeline, from, until);
        let suspects = suspects(&pieces, &works);
        Self {
            from,
            works,
            pieces,
            suspects,
        }
    }

    /// When each job ends without the excess of the suspects in `removed` (a bit each), and, if `alone`, without threads of no higher rank.
    pub(super) fn replay(&self, removed: u32, alone: bool) -> Vec<Instant> {
        let set = RemovedSet {
            suspects: &self.suspects,
            removed,
            alone,
        };
        let mut replay = Replay::new(self, &set);
        for piece in &self.pieces {
            replay.pass(piece);
        }
        replay.ends
    }

    /// What the jobs up to the one at this place needed.
    pub(super) fn needed(&self, upto: usize) -> Service {
        let works = self.works.iter().take(upto + 1);
        works.map(|work| work.held.as_full_service()).sum()
    }

    /// What there was of time that the victim had a claim on, from the chain's beginning to `until`.
    pub(super) fn claimed(&self, until: Instant) -> Service {
        let claimed = self.pieces.iter();
        let claimed = claimed.filter(|piece| piece.claim && piece.from >= self.from);
        claimed
            .map(|piece| {
                piece
                    .to
                    .min(until)
                    .saturating_since(piece.from)
                    .as_full_service()
            })
            .sum()
    }

    /// What a suspect held in excess up to `until`.
    pub(super) fn excess(&self, suspect: Suspect, until: Instant) -> Span {
        match suspect.who {
            Holder::Victim => self.works_ended(until).map(|work| work.overrun).sum(),
            Holder::Unseen => self.works_ended(until).map(|work| work.unseen).sum(),
            who => excess_of(&self.pieces, who, until),
        }
    }

    fn works_ended(&self, until: Instant) -> impl Iterator<Item = &Work> {
        self.works.iter().filter(move |work| work.end <= until)
    }
}

/// All pieces from `from` to `until`, and those right before without a pause of what comes before the victim: what was delayed in them may
/// reach into the chain.
fn pieces(timeline: &Timeline, from: Instant, until: Instant) -> Vec<Piece> {
    let mut above = Above::default();
    let all = &timeline.pieces;
    let first = all.partition_point(|piece| piece.from < from);
    let end = all.partition_point(|piece| piece.from < until);
    let within = &all[all.partition_point(|piece| piece.to <= from)..end.max(first)];
    for piece in within {
        if piece.before_victim && !piece.shared && matches!(piece.holder, Holder::Thread(_)) {
            above.add(piece);
        }
    }
    let before = all[..first].iter().rev();
    let begin = before.take_while(|piece| above.reaches(piece)).last();
    let begin = begin.map_or(from, |piece| piece.from);
    let mut pieces: Vec<Piece> = timeline.between(begin, until).collect();
    for piece in &mut pieces {
        if piece.to <= from && !piece.before_victim {
            piece.before_victim = true;
            piece.excess_from = piece.over_from;
        }
    }
    pieces
}

/// The threads that are known to come before the victim.
#[derive(Default)]
struct Above {
    threads: Vec<Holder>,
    /// Since when one of them has been ready without a break, up to the pieces seen last.
    ready: Option<Instant>,
}

impl Above {
    fn add(&mut self, piece: &Piece) {
        if !self.threads.contains(&piece.holder) {
            self.threads.push(piece.holder);
        }
        self.ready = Some(
            self.ready
                .map_or(piece.ready, |ready| ready.min(piece.ready)),
        );
    }

    /// Whether what ran in this piece comes before the victim. A thread does if it ran while one was ready that does: that one then came
    /// after it.
    fn reaches(&mut self, piece: &Piece) -> bool {
        if !matches!(piece.holder, Holder::Thread(_)) {
            return matches!(piece.holder, Holder::Handler(_) | Holder::Deferred(_));
        }
        let delayed_one = self.ready.is_some_and(|ready| ready < piece.to);
        let is_above =
            self.threads.contains(&piece.holder) || delayed_one && !piece.ranks_no_higher;
        if is_above {
            self.add(piece);
        }
        is_above
    }
}

fn work(timeline: &Timeline, job: &Job, begin: Instant, question: &Question<'_>) -> Work {
    let held: Span = timeline
        .between(begin, job.end)
        .filter(|piece| piece.holder == Holder::Victim)
        .map(|piece| piece.to - piece.from)
        .sum();
    let slack = question.rules.slack;
    let declared = question.victim.work.as_dedicated_span();
    let received = job
        .service
        .map_or(held, |service| service.as_dedicated_span().min(held));
    let beyond = |span: Span, allowed: Span| {
        if span > allowed + slack {
            span - allowed
        } else {
            Span::ZERO
        }
    };
    Work {
        release: job.release,
        end: job.end,
        // What was not completed needs at least what was declared.
        held: if job.completed {
            held
        } else {
            held.max(declared)
        },
        overrun: beyond(received, declared),
        unseen: beyond(held, received),
    }
}

fn excess_of(pieces: &[Piece], who: Holder, until: Instant) -> Span {
    let of_them = pieces.iter().filter(|piece| piece.holder == who);
    of_them
        .map(|piece| piece.to.min(until).saturating_since(piece.excess_from))
        .sum()
}

fn suspects(pieces: &[Piece], works: &[Work]) -> Vec<Suspect> {
    let mut all: Vec<Suspect> = vec![
        Suspect {
            who: Holder::Victim,
            excess: works.iter().map(|work| work.overrun).sum(),
        },
        Suspect {
            who: Holder::Unseen,
            excess: works.iter().map(|work| work.unseen).sum(),
        },
    ];
    for piece in pieces {
        let excess = piece.to - piece.excess_from;
        if excess.is_zero() {
            continue;
        }
        match all.iter_mut().find(|suspect| suspect.who == piece.holder) {
            Some(suspect) => suspect.excess += excess,
            None => all.push(Suspect {
                who: piece.holder,
                excess,
            }),
        }
    }
    all.retain(|suspect| !suspect.excess.is_zero());
    all.sort_by_key(|suspect| (core::cmp::Reverse(suspect.excess), suspect.who));
    all.truncate(MOST_SUSPECTS);
    all
}
