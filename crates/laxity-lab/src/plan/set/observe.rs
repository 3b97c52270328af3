//! A task set in the twin: the longest response of each task, to stand beside its bound.
//!
//! They take turns on an executor, on a machine that costs nothing, in the plan's order of priorities or by their deadlines. All are released at once, each as
//! late behind its first arrival as its jitter allows; and once more for each task with a region longer than that of everybody less urgent, which then begins
//! one tick before all others come.

use std::cmp::Reverse;
use std::sync::{Arc, mpsc};

use laxity::study::Profile;
use laxity::{Recording, Twin};
use laxity_model::analysis::{Preemption, Task};
use laxity_model::base::number::lcm;
use laxity_model::executor::edf::ByDeadline;
use laxity_model::executor::{HANDLERS, InOrder};
use laxity_model::{
    Body, Context, Host, Instant, Placement, Priority, ProcessorId, Program, Service, Span, Step,
};

use super::attempt::{Attempt, Member, Method};
use super::{Options, Supply};
use crate::import::Policy;

/// So many jobs of all tasks together are looked at from each beginning.
const MOST_JOBS: u64 = 10_000;
/// Where one of them takes longer than all these to come once, nothing is looked at: it would take seconds, and more.
const MOST_JOBS_BEFORE_THE_LAST: u64 = 10 * MOST_JOBS;
/// Periods and jitter that are run are no longer than this (73 years), so that no instant is beyond the end of time.
const LONGEST: Span = Span::from_nanos(u64::MAX / 8);

/// What was seen.
pub(super) struct Observed {
    /// By member.
    pub(super) members: Vec<Seen>,
    /// For how long, or why not at all.
    pub(super) how: String,
}

impl Observed {
    /// Of so many members.
    pub(super) fn nothing(members: usize) -> Self {
        Self {
            members: vec![Seen::default(); members],
            how: String::new(),
        }
    }
}

/// Runs the members as the attempt would have them run.
pub(super) fn observe(members: &[Member], attempt: &Attempt, options: &Options) -> Observed {
    let mut observed = Observed::nothing(members.len());
    let how = cast(members, attempt, options).and_then(|cast| {
        let length = length(&cast)?;
        let blockers = blockers(&cast);
        let times = 1 + blockers.len();
        for first in [None].into_iter().chain(blockers.into_iter().map(Some)) {
            run(&cast, first, length, &mut observed.members)?;
        }
        Ok(if times == 1 {
            format!("{length} in the twin, all released at once")
        } else {
            format!(
                "{length} in the twin from {times} beginnings: all released at once, and each of the longest regions just before"
            )
        })
    });
    observed.how = how.unwrap_or_else(|why| format!("not observed: {why}"));
    observed
}

/// A member that is run.
struct Actor {
    member: usize,
    task: Task,
    /// Before those of a higher one; `None` where deadlines decide.
    level: Option<u64>,
}

/// Those with a region longer than that of everybody less urgent, by their places: nobody waits longer for any other.
fn blockers(cast: &[Actor]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..cast.len()).collect();
    // The least urgent first; where deadlines decide, who is due last after being released as late as may be.
    let due = |task: &Task| task.deadline().saturating_sub(task.jitter());
    let urgency = |actor: &Actor| (actor.level.unwrap_or(0), due(&actor.task));
    places.sort_by_key(|place| Reverse(urgency(&cast[*place])));
    let mut longest = Service::ZERO;
    places.retain(|place| {
        let blocking = cast[*place].task.blocking();
        let is_longer = blocking > longest;
        longest = longest.max(blocking);
        is_longer
    });
    places
}

/// Who is run, or why the twin cannot show them.
fn cast(members: &[Member], attempt: &Attempt, options: &Options) -> Result<Vec<Actor>, String> {
    if !options.observe {
        return Err("not asked for".into());
    }
    if options.supply != Supply::Dedicated {
        return Err("sets are run on whole processors only".into());
    }
    let by_priority = attempt.method.has_fixed_priorities();
    let as_given = attempt.method == Method::AsGiven;
    let mut actors = Vec::new();
    let mut last: Option<(Policy, Span)> = None;
    let mut level = 0;
    for index in &attempt.order {
        let member = &members[*index];
        let name = &member.name;
        match (&member.work, member.policy) {
            (_, Policy::Timesharing | Policy::Unsaid) if as_given => continue,
            (_, Policy::Deadline(_)) if as_given => {
                return Err(format!(
                    "`{name}` is under SCHED_DEADLINE, and sets are run without budgets"
                ));
            }
            (Err(_), _) if as_given => return Err(format!("what `{name}` does is not known")),
            (Err(_), _) => continue,
            (Ok(task), _) if task.period().max(task.jitter()) > LONGEST => {
                return Err(format!("`{name}` comes too seldom to be waited for"));
            }
            (Ok(task), _) if !by_priority && !task.jitter().is_zero() => {
                return Err(format!(
                    "`{name}` has jitter, and deadlines are run as from releases"
                ));
            }
            (Ok(task), policy) => {
                let is_equal = last.is_some_and(|(other, due)| match attempt.method {
                    Method::AsGiven => other == policy,
                    Method::Rmdp => due == task.deadline(),
                    _ => false,
                });
                level += u64::from(!is_equal);
                last = Some((policy, task.deadline()));
                actors.push(Actor {
                    member: *index,
                    task: *task,
                    level: by_priority.then_some(level),
                });
            }
        }
    }
    match actors.len() {
        0 => Err("there is no task to be run".into()),
        1..=HANDLERS => Ok(actors),
        _ => Err(format!(
            "there are more tasks than an executor has room for, which is {HANDLERS}"
        )),
    }
}

/// Twice the least common multiple of the periods and one more of the longest, or as long as [`MOST_JOBS`] take; but every task comes once.
fn length(cast: &[Actor]) -> Result<Span, String> {
    let periods = cast.iter().map(|actor| actor.task.period().as_nanos());
    let longest = periods.clone().max().unwrap_or(1);
    let whole = lcm(periods.clone())
        .and_then(|common| common.checked_mul(2))
        .and_then(|twice| twice.checked_add(longest))
        .unwrap_or(u64::MAX);
    // Σ length/T ≤ MOST_JOBS, and no job's time beyond the end of time.
    let rate: u128 = periods.map(|period| (1 << 64) / u128::from(period)).sum();
    let filled = (u128::from(MOST_JOBS) << 64) / rate.max(1);
    let before_the_last = (u128::from(longest).saturating_mul(rate)) >> 64;
    if before_the_last > MOST_JOBS_BEFORE_THE_LAST.into() {
        return Err(format!(
            "too long to look at: {before_the_last} jobs come before every task has come twice, and no more than {MOST_JOBS_BEFORE_THE_LAST} are run"
        ));
    }
    let filled = u64::try_from(filled).unwrap_or(u64::MAX).max(longest);
    Ok(Span::from_nanos(whole.min(filled).min(u64::MAX / 4)))
}

/// What was seen of a task.
#[derive(Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) longest_ns: Option<u64>,
    pub(super) jobs: u64,
}

fn run(
    cast: &[Actor],
    first: Option<usize>,
    length: Span,
    members: &mut [Seen],
) -> Result<(), String> {
    let mut program = Program::new(1);
    let place = (ProcessorId(0), Placement::Thread(Priority::HIGHEST));
    let executor = program.executor("set", place, None, InOrder::<ByDeadline<false>>::new());
    let arrivals = (0..).zip(cast).map(|(place, actor)| Arrivals {
        task: actor.task,
        // Nobody waits for a region that begins with everything else.
        offset: Span::from_nanos(first.is_some_and(|first| first != place).into()),
    });
    let arrivals: Arc<[Arrivals]> = arrivals.collect();
    let (done, all_done) = mpsc::channel();
    for (own, actor) in arrivals.iter().zip(cast) {
        // Levels are further apart than any two releases: so they decide, and among equals the release.
        let apart = |level| length.as_nanos().checked_mul(level);
        let deadline = match actor.level {
            Some(level) => apart(level + 2).and_then(|_| apart(level)),
            None => Some(actor.task.deadline().as_nanos()),
        };
        let deadline = deadline.ok_or("its periods are too long for so many priorities")?;
        let task = actor.task.with_deadline(Span::from_nanos(deadline));
        let task = Some(task.map_err(|error| error.to_string())?);
        let turns = Turns {
            own: *own,
            all: Arc::clone(&arrivals),
            member: actor.member,
            done: done.clone(),
            job: 0,
            left: Service::ZERO,
            piece: Service::ZERO,
        };
        program.add("task", place.0, Placement::On { executor, task }, turns);
    }
    let mut twin = Twin::new(Profile::IDEAL).recording(Recording::NONE);
    let record = twin.admit_and_run(program, length);
    record.map_err(|error| error.to_string())?;
    for (member, taken_ns) in all_done.try_iter() {
        let seen: &mut Seen = &mut members[member];
        seen.longest_ns = seen.longest_ns.max(Some(taken_ns));
        seen.jobs += 1;
    }
    Ok(())
}

/// When a task's jobs come.
#[derive(Clone, Copy)]
struct Arrivals {
    task: Task,
    /// Of its first release.
    offset: Span,
}

impl Arrivals {
    /// From time 0, by this much, to where a job's arrival would be without jitter.
    fn nominal(&self, job: u64) -> Span {
        self.offset + self.task.period() * job
    }

    /// The first job arrives a jitter before it is released; those behind it as they arrive, or at once.
    fn release(&self, job: u64) -> Instant {
        let arrival = self.nominal(job).saturating_sub(self.task.jitter());
        Instant::ZERO + arrival.max(self.offset)
    }

    /// The first release after an instant.
    fn next(&self, now: Instant) -> Instant {
        let first = self.release(0);
        if now < first {
            return first;
        }
        let begun = (now.since_epoch() + self.task.jitter()).saturating_sub(self.offset);
        self.release(begun / self.task.period() + 1)
    }
}

/// A task of the set: runs its regions one by one, and lets whoever is more urgent go first between them.
struct Turns {
    own: Arrivals,
    /// Of everybody: who may be preempted anywhere looks whenever somebody comes.
    all: Arc<[Arrivals]>,
    member: usize,
    /// Takes the response time of each job.
    done: mpsc::Sender<(usize, u64)>,
    job: u64,
    /// Of the job at hand; zero before it begins.
    left: Service,
    /// This much is being run.
    piece: Service,
}

impl Turns {
    /// What of the job is run before anybody may go first: the longest regions first, and the last at the end; of floating ones one, at the
    /// beginning.
    fn region(&self, now: Instant) -> Service {
        let left = self.left;
        match self.own.task.preemption() {
            Preemption::Floating { longest } if left == self.own.task.cost() => longest,
            Preemption::Anywhere | Preemption::Floating { .. } => {
                let next = self.all.iter().map(|other| other.next(now)).min();
                let alone = next.map_or(Span::MAX, |next| next.saturating_since(now));
                left.min(alone.as_full_service())
            }
            Preemption::Never => left,
            Preemption::Fixed { longest, last } if left > last => {
                longest.min(left.saturating_sub(last))
            }
            Preemption::Fixed { .. } => left,
        }
    }
}

impl Body for Turns {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        let now = context.now();
        if !self.piece.is_zero() {
            self.left = self.left.saturating_sub(std::mem::take(&mut self.piece));
            if self.left.is_zero() {
                let arrival = self.own.nominal(self.job);
                let taken = (now.since_epoch() + self.own.task.jitter()).saturating_sub(arrival);
                // Nobody listens any more once the run is over.
                let _ = self.done.send((self.member, taken.as_nanos()));
                self.job += 1;
                return Step::SleepUntil(self.own.release(self.job));
            }
            if context.should_yield() {
                return Step::Yield;
            }
        } else if self.left.is_zero() {
            if now < self.own.release(self.job) {
                return Step::SleepUntil(self.own.release(self.job));
            }
            self.left = self.own.task.cost();
        }
        self.piece = self.region(now);
        Step::Burn(self.piece)
    }
}
