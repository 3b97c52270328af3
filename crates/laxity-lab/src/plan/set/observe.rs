//! A task set in the twin: the longest response of each task, to stand beside its bound.
//!
//! Periodic threads on a machine that costs nothing, their priorities those of the plan. All are released at once, each as late behind its first arrival as its
//! jitter allows; and once more for each task with a region, which then begins one tick before all others come.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use laxity::study::Profile;
use laxity::{Recording, Twin};
use laxity_model::analysis::{Preemption, Task};
use laxity_model::{
    Body, Context, Host, Instant, Placement, Priority, ProcessorId, Program, SemaphoreId, Service,
    Span, Step,
};

use super::attempt::{Attempt, Member, Method};
use super::{Options, Supply};
use crate::import::Policy;

/// So many jobs of all tasks together are looked at from each beginning.
const MOST_JOBS: u64 = 10_000;
/// Periods and jitter that are run are no longer than this (73 years), so that no instant is beyond the end of time.
const LONGEST: Span = Span::from_nanos(u64::MAX / 8);
/// From so many beginnings.
const MOST_BEGINNINGS: usize = 9;

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
    let (levels, tasks) = match cast(members, attempt, options) {
        Ok(cast) => cast,
        Err(why) => {
            observed.how = format!("not observed: {why}");
            return observed;
        }
    };
    let length = length(&tasks);
    let mut beginnings: Vec<Option<usize>> = vec![None];
    let blocks = |place: &usize| !tasks[*place].1.blocking().is_zero();
    beginnings.extend((0..tasks.len()).filter(blocks).map(Some));
    beginnings.truncate(MOST_BEGINNINGS);
    for first in &beginnings {
        let seen = match run(&tasks, &levels, *first, length) {
            Ok(seen) => seen,
            Err(why) => {
                observed.how = format!("not observed: {why}");
                return observed;
            }
        };
        for ((index, _), seen) in tasks.iter().zip(seen) {
            let all = &mut observed.members[*index];
            all.longest_ns = all.longest_ns.max(seen.longest_ns);
            all.jobs += seen.jobs;
        }
    }
    let times = beginnings.len();
    observed.how = if times == 1 {
        format!("{length} in the twin, all released at once")
    } else {
        format!(
            "{length} in the twin from {times} beginnings: all released at once, and each region just before"
        )
    };
    observed
}

/// Levels and tasks with their members, or why the twin cannot show them.
type Cast = (Vec<u8>, Vec<(usize, Task)>);

fn cast(members: &[Member], attempt: &Attempt, options: &Options) -> Result<Cast, String> {
    if !options.observe {
        return Err("not asked for".into());
    }
    if options.supply != Supply::Dedicated {
        return Err("the twin has reservations for single threads, not for sets".into());
    }
    if !attempt.method.has_fixed_priorities() {
        return Err("the twin schedules threads by priority, not by deadline".into());
    }
    let mut levels = Vec::new();
    let mut tasks = Vec::new();
    let mut last: Option<Policy> = None;
    let mut level = Priority::HIGHEST.level();
    for index in &attempt.order {
        let member = &members[*index];
        let as_given = attempt.method == Method::AsGiven;
        match (&member.work, member.policy) {
            (_, Policy::Timesharing | Policy::Unsaid) if as_given => continue,
            (_, Policy::Deadline(_)) if as_given => {
                return Err("the twin has no SCHED_DEADLINE".into());
            }
            (Err(_), _) if as_given => {
                return Err(format!("what `{}` does is not known", member.name));
            }
            (Err(_), _) => continue,
            (Ok(task), _) if task.period().max(task.jitter()) > LONGEST => {
                return Err(format!(
                    "`{}` comes too seldom to be waited for",
                    member.name
                ));
            }
            (Ok(task), policy) => {
                let equal = as_given && last == Some(policy);
                if last.is_some() && !equal {
                    level = level
                        .checked_sub(1)
                        .ok_or("there are more priorities than the twin has, which is 32")?;
                }
                last = Some(policy);
                levels.push(level);
                tasks.push((*index, *task));
            }
        }
    }
    if tasks.is_empty() {
        return Err("there is no task to be run".into());
    }
    Ok((levels, tasks))
}

/// Twice the least common multiple of the periods and one more of the longest, or as long as [`MOST_JOBS`] take.
fn length(tasks: &[(usize, Task)]) -> Span {
    let periods = tasks.iter().map(|(_, task)| task.period().as_nanos());
    let longest = periods.clone().max().unwrap_or(1);
    let common = periods.clone().try_fold(1_u64, |common, period| {
        (common / gcd(common, period)).checked_mul(period)
    });
    let whole = common
        .and_then(|common| common.checked_mul(2))
        .and_then(|twice| twice.checked_add(longest))
        .unwrap_or(u64::MAX);
    // Σ length/T ≤ MOST_JOBS, and no job's time beyond the end of time.
    let rate: u128 = periods.map(|period| (1 << 64) / u128::from(period)).sum();
    let filled = (u128::from(MOST_JOBS) << 64) / rate.max(1);
    let filled = u64::try_from(filled).unwrap_or(u64::MAX).max(longest);
    Span::from_nanos(whole.min(filled).min(u64::MAX / 4))
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// What was seen of a task.
#[derive(Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) longest_ns: Option<u64>,
    pub(super) jobs: u64,
}

fn run(
    tasks: &[(usize, Task)],
    levels: &[u8],
    first: Option<usize>,
    length: Span,
) -> Result<Vec<Seen>, String> {
    let mut program = Program::new(1);
    let stage = Arc::new(Mutex::new(Stage {
        holder: None,
        waiting: BTreeSet::new(),
        sleeping: vec![None; tasks.len()],
        levels: levels.to_vec(),
        semaphores: tasks.iter().map(|_| program.semaphore(0)).collect(),
        seen: vec![Seen::default(); tasks.len()],
    }));
    for (place, (_, task)) in tasks.iter().enumerate() {
        // Nobody waits for a region that begins with everything else.
        let offset = u64::from(first.is_some_and(|first| first != place));
        let thread = Thread {
            place,
            task: *task,
            offset: Span::from_nanos(offset),
            stage: Arc::clone(&stage),
            state: State::Asleep,
            job: 0,
            left: task.cost(),
        };
        let priority = Priority::new(levels[place]).unwrap_or(Priority::IDLE);
        program.add("task", ProcessorId(0), Placement::Thread(priority), thread);
    }
    let mut twin = Twin::new(Profile::IDEAL).recording(Recording::NONE);
    let record = twin.admit_and_run(program, length);
    record.map_err(|error| error.to_string())?;
    let stage = stage.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(stage.seen.clone())
}

/// What the threads share: who is in a region, and who waits for its end.
struct Stage {
    holder: Option<usize>,
    waiting: BTreeSet<usize>,
    /// When a thread that sleeps is released next.
    sleeping: Vec<Option<Instant>>,
    levels: Vec<u8>,
    /// What each thread waits for.
    semaphores: Vec<SemaphoreId>,
    seen: Vec<Seen>,
}

impl Stage {
    /// Whether somebody more urgent waits, or is released at this very instant.
    fn is_outranked(&self, place: usize, now: Instant) -> bool {
        let above = |other: &usize| self.levels[*other] > self.levels[place];
        let due = |release: &Option<Instant>| release.is_some_and(|at| at <= now);
        let mut sleeping = (0..self.sleeping.len()).filter(|other| due(&self.sleeping[*other]));
        self.waiting.iter().any(above) || sleeping.any(|other| above(&other))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Until the release of the job at hand.
    Asleep,
    /// For the end of somebody's region.
    Waiting,
    /// This much is being run.
    Running(Service),
}

/// A task of the set: runs its regions one by one, and lets whoever is more urgent go first between them.
struct Thread {
    place: usize,
    task: Task,
    /// Of its first release.
    offset: Span,
    stage: Arc<Mutex<Stage>>,
    state: State,
    job: u64,
    left: Service,
}

impl Thread {
    /// From time 0, by this much, to where the job's arrival would be without jitter.
    fn nominal(&self) -> Span {
        self.offset + self.task.period() * self.job
    }

    /// The first job arrives a jitter before it is released; those behind it as they arrive, or at once.
    fn release(&self) -> Instant {
        let arrival = self.nominal().saturating_sub(self.task.jitter());
        Instant::ZERO + arrival.max(self.offset)
    }

    /// What of the job is run before anybody may go first: the longest regions first, and the last at the end.
    fn region(&self) -> Option<Service> {
        let left = self.left;
        match self.task.preemption() {
            Preemption::Anywhere => None,
            Preemption::Never => Some(left),
            Preemption::Floating { longest } => Some(longest.min(left)),
            Preemption::Fixed { longest, last } if left > last => {
                Some(longest.min(left.saturating_sub(last)))
            }
            Preemption::Fixed { .. } => Some(left),
        }
    }

    fn sleep(&mut self, stage: &mut Stage) -> Step {
        self.state = State::Asleep;
        self.left = self.task.cost();
        let release = self.release();
        stage.sleeping[self.place] = Some(release);
        Step::SleepUntil(release)
    }

    fn wait(&mut self, stage: &mut Stage) -> Step {
        stage.waiting.insert(self.place);
        self.state = State::Waiting;
        Step::Wait(stage.semaphores[self.place])
    }

    fn go(&mut self, stage: &mut Stage, now: Instant) -> Step {
        let region = self.region();
        let must_wait = match region {
            Some(_) => stage.holder.is_some() || stage.is_outranked(self.place, now),
            None => stage.holder.is_some(),
        };
        if must_wait {
            return self.wait(stage);
        }
        if region.is_some() {
            stage.holder = Some(self.place);
        }
        let piece = region.unwrap_or(self.left);
        self.state = State::Running(piece);
        Step::Burn(piece)
    }

    fn complete(&mut self, stage: &mut Stage, now: Instant) {
        let taken = (now.since_epoch() + self.task.jitter()).saturating_sub(self.nominal());
        let seen = &mut stage.seen[self.place];
        seen.longest_ns = seen.longest_ns.max(Some(taken.as_nanos()));
        seen.jobs += 1;
        self.job += 1;
    }
}

impl Body for Thread {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        let shared = Arc::clone(&self.stage);
        let mut stage = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let now = context.now();
        match self.state {
            State::Asleep if now < self.release() => return self.sleep(&mut stage),
            State::Asleep => stage.sleeping[self.place] = None,
            State::Waiting => {}
            State::Running(piece) => {
                self.left = self.left.saturating_sub(piece);
                if stage.holder == Some(self.place) {
                    stage.holder = None;
                }
                let outranked = stage.is_outranked(self.place, now);
                for place in std::mem::take(&mut stage.waiting) {
                    context.signal(stage.semaphores[place]);
                }
                if self.left.is_zero() {
                    self.complete(&mut stage, now);
                    return self.sleep(&mut stage);
                }
                if outranked {
                    return self.wait(&mut stage);
                }
            }
        }
        self.go(&mut stage, now)
    }
}
