//! A kernel that costs something, run tick by tick.

use super::*;

/// Often nothing, so that nothing hides behind the rest.
fn some() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1_u64..5]
}

/// A kernel that costs something, tick by tick.
struct Kernel<'a> {
    tasks: &'a [Task],
    overheads: Overheads,
    /// Whether it looks for a more urgent job at the end of a switch to a job that goes on with a region.
    looks_again: bool,
    /// The job switched to begins its region next, whatever else is ready.
    committed: bool,
    interrupts: Vec<(usize, u64)>,
    switching: u64,
    current: Option<usize>,
}

struct Running {
    task: usize,
    released: u64,
    ready: bool,
    done: u64,
    /// What it needs yet to have its caches warm; not part of its cost.
    cold: u64,
    complete: Option<u64>,
}

impl Kernel<'_> {
    fn is_point(&self, job: &Running) -> bool {
        if job.done == 0 && job.cold == 0 {
            return true;
        }
        let cost = self.tasks[job.task].cost().as_nanos();
        match self.tasks[job.task].preemption() {
            Preemption::Anywhere => true,
            Preemption::Floating { longest } => job.done == 0 || job.done >= longest.as_nanos(),
            Preemption::Fixed { longest, last } => {
                let before_last = cost - last.as_nanos();
                let cut = job.done < before_last && job.done.is_multiple_of(longest.as_nanos());
                cut || job.done == before_last
            }
            Preemption::Never => false,
        }
    }

    /// Whether the job switched to cannot be preempted once it has run for a tick.
    fn begins_region(&self, jobs: &[Running]) -> bool {
        self.current.is_some_and(|current| {
            let job = &jobs[current];
            let next = Running {
                done: job.done + 1,
                cold: 0,
                ..*job
            };
            !self.is_point(&next)
        })
    }

    /// One tick: an interrupt, or a switch, or the current job.
    fn tick(&mut self, jobs: &mut [Running], now: u64) {
        for (i, job) in jobs
            .iter()
            .enumerate()
            .filter(|(_, job)| job.released == now)
        {
            debug_assert!(!job.ready);
            self.interrupts
                .push((i, self.overheads.release_interrupt.as_nanos()));
        }
        while let Some((job, 0)) = self.interrupts.first().copied() {
            jobs[job].ready = true;
            self.interrupts.remove(0);
        }
        if let Some((job, left)) = self.interrupts.first_mut() {
            *left -= 1;
            if *left == 0 {
                jobs[*job].ready = true;
                self.interrupts.remove(0);
            }
            return;
        }
        if self.switching == 0 && !self.committed {
            self.decide(jobs);
        }
        if self.switching > 0 {
            self.switching -= 1;
            self.committed = self.switching == 0 && !self.looks_again && self.begins_region(jobs);
            return;
        }
        let Some(job) = self.current.map(|job| &mut jobs[job]) else {
            return;
        };
        if job.cold > 0 {
            job.cold -= 1;
            return;
        }
        job.done += 1;
        self.committed = false;
        if job.done == self.tasks[job.task].cost().as_nanos() {
            job.complete = Some(now + 1);
        }
    }

    fn decide(&mut self, jobs: &mut [Running]) {
        let stays = self.current.is_some_and(|current| {
            jobs[current].complete.is_none() && !self.is_point(&jobs[current])
        });
        if stays {
            return;
        }
        let waiting = |job: &Running| job.ready && job.complete.is_none();
        let best = (0..jobs.len())
            .filter(|job| waiting(&jobs[*job]))
            .min_by_key(|job| (jobs[*job].task, *job));
        if best == self.current {
            return;
        }
        if let Some(left) = self.current.map(|job| &mut jobs[job])
            && left.complete.is_none()
            && left.done > 0
        {
            left.cold = self.overheads.cache_reload.as_nanos();
        }
        self.current = best;
        self.switching = self.overheads.context_switch.as_nanos();
    }
}

proptest! {
    #![proptest_config(cases(400))]

    /// On a kernel with switches, interrupts, cold caches and a coarse timer, no job takes longer than the bound with overheads.
    #[test]
    fn no_job_takes_longer_than_the_bound_with_overheads(
        tasks in any_tasks(4),
        stretch in 2_u64..9,
        (switch, interrupt, reload, tick) in (some(), some(), some(), some()),
        seed in any::<u64>(),
    ) {
        let tasks: Vec<Task> = tasks.iter().map(|task| {
            let stretched = Task::new(task.cost(), task.period() * stretch).expect("a task");
            stretched.with_preemption(task.preemption()).expect("fits").with_jitter(task.jitter())
        }).collect();
        let overheads = Overheads {
            context_switch: service(switch),
            release_interrupt: service(interrupt),
            cache_reload: service(reload),
            tick: ticks(tick),
        };
        let with = overheads.applied_to(&tasks).expect("small");
        prop_assert_eq!(with.tasks().len() - with.interrupts(), tasks.len());
        let responses = with.response_times(&Dedicated).expect("small");
        let mut random = Pcg64::seed_from_u64(seed);
        let end = 600_u64;
        let synchronous = random.random_range(0..2_u64) == 0;
        let mut arrivals = Vec::new();
        let mut jobs = Vec::new();
        for (i, task) in tasks.iter().enumerate() {
            let mut arrival = if synchronous { 7 } else { random.random_range(0..task.period().as_nanos()) };
            let mut last = 0;
            while arrival < end {
                let late = arrival + random.random_range(0..=task.jitter().as_nanos());
                let released = late.next_multiple_of(tick.max(1)).max(last);
                last = released;
                arrivals.push(arrival);
                jobs.push(Running { task: i, released, ready: false, done: 0, cold: 0, complete: None });
                arrival += task.period().as_nanos();
            }
        }
        let mut kernel = Kernel {
            tasks: &tasks,
            overheads,
            looks_again: random.random_range(0..2_u64) == 0,
            committed: false,
            interrupts: Vec::new(),
            switching: 0,
            current: None,
        };
        for now in 0..end {
            kernel.tick(&mut jobs, now);
        }
        for (job, arrival) in jobs.iter().zip(&arrivals) {
            let Some(bound) = responses[job.task].bound() else { continue };
            let complete = job.complete.unwrap_or(end);
            prop_assert!(complete.saturating_sub(*arrival) <= bound.from_arrival.as_nanos());
            prop_assert!(complete.saturating_sub(job.released) <= bound.from_release.as_nanos());
        }
    }
}

fn first_bound(overheads: Overheads, tasks: &[Task]) -> Option<u64> {
    let with = overheads.applied_to(tasks).expect("small");
    let responses = with.response_times(&Dedicated).expect("small");
    responses[0]
        .bound()
        .map(|bound| bound.from_arrival.as_nanos())
}

/// Two interrupts, of 2 each, at 0, ten ticks of a job that nobody preempts from 4 on, and the other task's next interrupt
/// at 8, in its midst: 16.
#[test]
fn interrupts_do_not_care_for_regions() {
    let release_interrupt = service(2);
    let overheads = Overheads {
        release_interrupt,
        ..Overheads::NONE
    };
    let tasks = [
        task((10, 100, 100, 0, (3, 0, 0))),
        task((1, 8, 100, 0, (0, 0, 0))),
    ];
    assert_eq!(first_bound(overheads, &tasks), Some(16));
}

/// A region of 4 of the less urgent task has begun a tick ago, with cold caches: it goes on for 3 + 3. Then the job has
/// its 2, and it is charged with the 3 for which the other's caches are cold again.
#[test]
fn a_region_may_begin_with_cold_caches() {
    let cache_reload = service(3);
    let overheads = Overheads {
        cache_reload,
        ..Overheads::NONE
    };
    let tasks = [
        task((2, 100, 100, 0, (0, 0, 0))),
        task((9, 100, 100, 0, (1, 3, 0))),
    ];
    assert_eq!(first_bound(overheads, &tasks), Some(6 + 2 + 3));
}

/// A switch to the less urgent task has begun a tick ago, and takes 3 more; then one to the job, its 2, and one back.
#[test]
fn a_switch_is_not_preempted() {
    let context_switch = service(4);
    let overheads = Overheads {
        context_switch,
        ..Overheads::NONE
    };
    let tasks = [
        task((2, 100, 100, 0, (0, 0, 0))),
        task((9, 100, 100, 0, (0, 0, 0))),
    ];
    assert_eq!(first_bound(overheads, &tasks), Some(3 + 4 + 2 + 4));
}

#[test]
fn nothing_costs_nothing() {
    let tasks = [task((2, 9, 9, 1, (3, 0, 0))), task((3, 9, 9, 0, (2, 2, 1)))];
    let with = Overheads::NONE.applied_to(&tasks).expect("small");
    assert_eq!(with.interrupts(), 0);
    let responses = fp::response_times(&tasks, &Dedicated);
    assert_eq!(with.response_times(&Dedicated), responses);
    assert_eq!(with.test(&Dedicated), Ok(Verdict::Schedulable));
}
