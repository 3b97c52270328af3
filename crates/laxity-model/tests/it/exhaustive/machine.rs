//! A processor that is followed tick by tick: as plain as a scheduler can be.

use crate::exhaustive::set::{MOST_TASKS, Spec};

/// A job: when it arrives, when it is released, and how much of its work (from the front) it leaves out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Job {
    pub(crate) arrival: i32,
    pub(crate) release: i32,
    pub(crate) skipped: u32,
}

/// Which jobs there are.
pub(crate) trait Releases {
    /// The `index`-th job of a task; releases do not fall.
    fn job(&self, task: usize, index: i32) -> Option<Job>;
}

/// Jobs that come as early as they may: all that arrived before the task's offset are released there, the others as they arrive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dense {
    pub(crate) offsets: [i32; MOST_TASKS],
    pub(crate) periods: [i32; MOST_TASKS],
    /// So many jobs come together at first.
    pub(crate) bursts: [i32; MOST_TASKS],
    /// By how much the first job is released late.
    pub(crate) late: [i32; MOST_TASKS],
    /// A task whose first job begins after so much of its work.
    pub(crate) skipping: Option<(usize, u32)>,
}

impl Releases for Dense {
    #[inline]
    fn job(&self, task: usize, index: i32) -> Option<Job> {
        let behind = (index + 1 - self.bursts[task]).max(0);
        let arrival = self.offsets[task] - self.late[task] + behind * self.periods[task];
        let skipped = match self.skipping {
            Some((skipping, units)) if skipping == task && index == 0 => units,
            _ => 0,
        };
        Some(Job {
            arrival,
            release: arrival.max(self.offsets[task]),
            skipped,
        })
    }
}

/// Jobs as they are listed, by task.
impl Releases for [Vec<Job>] {
    fn job(&self, task: usize, index: i32) -> Option<Job> {
        self[task].get(index as usize).copied()
    }
}

/// Who runs of those that may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// The first task in the set.
    FixedPriority,
    /// The job that is due first; of those due at once, one of this task last, else the first in the set.
    EarliestDeadline { unlucky: usize },
    /// The job that was released first; of those released at once, one of this task last.
    FirstReleased { unlucky: usize },
}

/// When to stop following.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Until {
    /// As soon as nothing is pending.
    pub(crate) idle: bool,
    /// At this instant.
    pub(crate) horizon: i32,
}

/// The longest response times seen of a task, from arrival and from release.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) from_arrival: u64,
    pub(crate) from_release: u64,
}

impl Seen {
    fn include(&mut self, done: i32, job: Job) {
        let since = |instant: i32| u64::try_from(done - instant).expect("time goes on");
        self.from_arrival = self.from_arrival.max(since(job.arrival));
        self.from_release = self.from_release.max(since(job.release));
    }
}

/// A job that was completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Done {
    pub(crate) task: usize,
    pub(crate) job: Job,
    pub(crate) at: i32,
}

/// The machine: what it runs, where that may be preempted, and by which rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    pub(crate) count: usize,
    pub(crate) costs: [u32; MOST_TASKS],
    pub(crate) deadlines: [i32; MOST_TASKS],
    pub(crate) points: [u32; MOST_TASKS],
    pub(crate) rule: Rule,
}

/// What the machine knows of a task.
#[derive(Clone, Copy)]
struct Line {
    pending: i32,
    completed: i32,
    /// The first job that is not complete, once it is released.
    head: Job,
    progress: u32,
    next: i32,
}

impl Machine {
    /// Runs these by this rule; floating regions as `points` says.
    pub(crate) fn new(specs: &[Spec], points: [u32; MOST_TASKS], rule: Rule) -> Self {
        let mut machine = Self {
            count: specs.len(),
            costs: [0; MOST_TASKS],
            deadlines: [0; MOST_TASKS],
            points,
            rule,
        };
        for (index, spec) in specs.iter().enumerate() {
            machine.costs[index] = spec.cost;
            machine.deadlines[index] = spec.deadline as i32;
        }
        machine
    }

    /// Follows the machine from time 0, with processor time only where `supplied`, and hands on each job as it completes.
    pub(crate) fn run<R: Releases + ?Sized>(
        &self,
        releases: &R,
        supplied: impl Fn(i32) -> bool,
        until: Until,
        mut done: impl FnMut(Done),
    ) {
        let mut lines: [Line; MOST_TASKS] = core::array::from_fn(|task| Line {
            pending: 0,
            completed: 0,
            head: Job {
                arrival: 0,
                release: 0,
                skipped: 0,
            },
            progress: 0,
            next: if task < self.count {
                releases.job(task, 0).map_or(i32::MAX, |job| job.release)
            } else {
                i32::MAX
            },
        });
        let mut running: Option<usize> = None;
        let mut now = 0;
        while now < until.horizon {
            self.release(releases, &mut lines, now);
            let bound = running.filter(|task| self.points[*task] >> lines[*task].progress & 1 == 0);
            let Some(task) = bound.or_else(|| self.pick(&lines)) else {
                let next = lines.iter().map(|line| line.next).min();
                if until.idle || next.is_none_or(|next| next == i32::MAX) {
                    return;
                }
                now += 1;
                continue;
            };
            now += 1;
            if !supplied(now - 1) {
                continue;
            }
            running = Some(task);
            let line = &mut lines[task];
            line.progress += 1;
            if line.progress == self.costs[task] {
                done(Done {
                    task,
                    job: line.head,
                    at: now,
                });
                running = None;
                line.pending -= 1;
                line.completed += 1;
                Self::load(releases, line, task);
            }
        }
    }

    /// Takes in what is released by now.
    #[inline]
    fn release<R: Releases + ?Sized>(
        &self,
        releases: &R,
        lines: &mut [Line; MOST_TASKS],
        now: i32,
    ) {
        for (task, line) in lines.iter_mut().enumerate().take(self.count) {
            while line.next <= now {
                line.pending += 1;
                if line.pending == 1 {
                    Self::load(releases, line, task);
                }
                let index = line.completed + line.pending;
                line.next = releases
                    .job(task, index)
                    .map_or(i32::MAX, |job| job.release);
            }
        }
    }

    /// Makes the first pending job the head.
    #[inline]
    fn load<R: Releases + ?Sized>(releases: &R, line: &mut Line, task: usize) {
        if line.pending > 0
            && let Some(job) = releases.job(task, line.completed)
        {
            line.head = job;
            line.progress = job.skipped;
        }
    }

    /// Who is to run.
    #[inline]
    fn pick(&self, lines: &[Line; MOST_TASKS]) -> Option<usize> {
        let mut pending = (0..self.count).filter(|task| lines[*task].pending > 0);
        match self.rule {
            Rule::FixedPriority => pending.next(),
            Rule::EarliestDeadline { unlucky } => pending.min_by_key(|task| {
                (
                    lines[*task].head.arrival + self.deadlines[*task],
                    *task == unlucky,
                )
            }),
            Rule::FirstReleased { unlucky } => {
                pending.min_by_key(|task| (lines[*task].head.release, *task == unlucky))
            }
        }
    }
}

/// Puts all jobs that complete into the maxima.
pub(crate) fn collect(seen: &mut [Seen; MOST_TASKS]) -> impl FnMut(Done) {
    |done| seen[done.task].include(done.at, done.job)
}
