//! From chains to interfering tasks.

use alloc::vec::Vec;
use core::cmp::Reverse;

use super::chain::{Chain, chains};
use super::jobs::Job;
use super::timeline::Timeline;
use super::{Fault, Findings, Held, Holder, InterferingTask, LateJob, Named, Question, Rule};
use crate::{Instant, Span};

pub(super) fn judge(timeline: &Timeline, jobs: &[Job], question: &Question<'_>) -> Findings {
    let judge = Judge { timeline, question };
    let mut late = Vec::new();
    for (first, end) in chains(jobs) {
        let chain = &jobs[first..end];
        if chain
            .iter()
            .any(|job| !judge.lateness(job.release, job.end).is_zero())
        {
            judge.chain(chain, &mut late);
        }
    }
    Findings {
        jobs: jobs.len() as u64,
        named: named(&late),
        late,
        breaches: timeline.breaches.clone(),
        longest_held_off: timeline.longest_held_off,
    }
}

struct Judge<'a> {
    timeline: &'a Timeline,
    question: &'a Question<'a>,
}

impl Judge<'_> {
    fn due(&self, release: Instant) -> Instant {
        let due = release.checked_add(self.question.victim.deadline);
        due.unwrap_or(Instant::MAX)
    }

    fn lateness(&self, release: Instant, end: Instant) -> Span {
        end.saturating_since(self.due(release))
    }

    fn chain(&self, jobs: &[Job], out: &mut Vec<LateJob>) {
        let chain = Chain::new(self.timeline, jobs, self.question);
        let everything = (1u32 << chain.suspects.len()) - 1;
        let replays: Vec<Vec<Instant>> = (0..=everything)
            .map(|set| chain.replay(set, false))
            .collect();
        let alone = chain.replay(everything, true);
        for (place, job) in jobs.iter().enumerate() {
            let lateness = self.lateness(job.release, job.end);
            if lateness.is_zero() {
                continue;
            }
            let due = self.due(job.release);
            let case = Case {
                chain: &chain,
                place,
                due,
                ends: replays.iter().map(|ends| ends[place]).collect(),
            };
            out.push(LateJob {
                release: job.release,
                end: job.end,
                completed: job.completed,
                lateness,
                chain_from: chain.from,
                held: self.held(job),
                fault: self.fault(&case, alone[place]),
            });
        }
    }

    fn fault(&self, case: &Case<'_>, alone: Instant) -> Fault {
        let interfering = case.interfering(self);
        if !interfering.is_empty() {
            return Fault::InterferingTasks(interfering);
        }
        let release = case.chain.works[case.place].release;
        if let Some(reserved) = self.timeline.reservation_at(release) {
            return Fault::Reservation {
                reserved,
                needed: case.chain.needed(case.place),
                in_slots: case.chain.claimed(case.due),
            };
        }
        if alone <= case.due {
            Fault::Rank
        } else {
            Fault::Overload
        }
    }

    fn rule_of(&self, who: Holder) -> Rule {
        let mut breaches = self.timeline.breaches.iter();
        match who {
            Holder::Machine => Rule::Machine,
            Holder::Unseen => Rule::Unseen,
            _ => match breaches.find(|breach| breach.who == who) {
                Some(breach) => breach.rule,
                // It was done before the victim was ready, so that its own account shows no breach.
                None if self.declares_nothing(who) => Rule::Undeclared,
                None => Rule::Budget,
            },
        }
    }

    fn declares_nothing(&self, who: Holder) -> bool {
        let Holder::Thread(id) = who else {
            return false;
        };
        let declared = self.question.declared.get(id.index());
        declared.is_none_or(|declared| declared.allowance.is_none())
    }

    /// Who held the processor between a job's release and its end.
    fn held(&self, job: &Job) -> Vec<Held> {
        let mut all: Vec<Held> = Vec::new();
        for piece in self.timeline.between(job.release, job.end) {
            let time = piece.to - piece.from;
            let excess = if piece.claim {
                piece.to - piece.excess_from
            } else {
                Span::ZERO
            };
            match all.iter_mut().find(|held| held.who == piece.holder) {
                Some(held) => {
                    held.time += time;
                    held.excess += excess;
                }
                None => all.push(Held {
                    who: piece.holder,
                    time,
                    excess,
                }),
            }
        }
        all.sort_by_key(|held| (Reverse(held.time), held.who));
        all
    }
}

/// One late job among the replays of its chain.
struct Case<'a> {
    chain: &'a Chain,
    place: usize,
    due: Instant,
    /// When it ends without each set of suspects.
    ends: Vec<Instant>,
}

impl Case<'_> {
    fn in_time(&self, without: usize) -> bool {
        self.ends[without] <= self.due
    }

    /// Whether the suspect belongs to a smallest set without which the job is in time.
    fn is_interfering(&self, suspect: usize) -> bool {
        let bit = 1 << suspect;
        (0..self.ends.len())
            .filter(|set| set & bit == 0)
            .any(|set| !self.in_time(set) && self.in_time(set | bit))
    }

    fn interfering(&self, judge: &Judge<'_>) -> Vec<InterferingTask> {
        let everything = self.ends.len() - 1;
        let end = self.chain.works[self.place].end;
        let suspects = self.chain.suspects.iter().enumerate();
        let mut interfering: Vec<InterferingTask> = suspects
            .filter(|(index, _)| self.is_interfering(*index))
            .map(|(index, suspect)| InterferingTask {
                who: suspect.who,
                rule: judge.rule_of(suspect.who),
                excess: self.chain.excess(*suspect, end),
                explains: end.saturating_since(self.ends[1 << index]),
                suffices: self.in_time(1 << index),
                needed: !self.in_time(everything & !(1 << index)),
            })
            .collect();
        interfering.sort_by_key(|task| (Reverse(task.explains), Reverse(task.excess), task.who));
        interfering
    }
}

fn named(late: &[LateJob]) -> Vec<Named> {
    let mut all: Vec<Named> = Vec::new();
    for job in late {
        let Fault::InterferingTasks(interfering) = &job.fault else {
            continue;
        };
        for task in interfering {
            let place = all.iter().position(|named| named.who == task.who);
            let place = place.unwrap_or_else(|| {
                all.push(Named {
                    who: task.who,
                    rule: task.rule,
                    jobs: 0,
                    explains: Span::ZERO,
                });
                all.len() - 1
            });
            all[place].jobs += 1;
            let explains = all[place].explains.checked_add(task.explains);
            all[place].explains = explains.unwrap_or(Span::MAX);
        }
    }
    all.sort_by_key(|named| (Reverse(named.explains), Reverse(named.jobs), named.who));
    all
}
