//! Activities that do jobs and mark when each is done.

use laxity_model::analysis::Preemption;
use laxity_model::{Context, Mark, SemaphoreId, Service, Step};

use crate::workload::{Job, Jobs};

/// What starts an activity's jobs.
#[derive(Clone, Copy)]
pub(crate) enum Trigger {
    /// Their release.
    Timer,
    /// Somebody who signals.
    Signal(SemaphoreId),
}

/// An activity that does its jobs one after the other, and marks when each is done: its arrival, and the time since then.
pub(crate) fn worker(
    mut jobs: Jobs,
    trigger: Trigger,
    signals: Option<SemaphoreId>,
    done: Mark,
) -> impl FnMut(&mut dyn Context) -> Step + Send {
    let mut job = jobs.next();
    let (mut awake, mut working) = (false, false);
    move |context: &mut dyn Context| {
        if awake && !working {
            working = true;
            return Step::Charge(Service::from_nanos(job.cost));
        }
        if working {
            let response = context.now() - job.arrival;
            context.mark(done, [job.arrival.as_nanos(), response.as_nanos()]);
            if let Some(semaphore) = signals {
                context.signal(semaphore);
            }
            working = false;
            job = jobs.next();
        }
        awake = true;
        match trigger {
            Trigger::Timer => Step::SleepUntil(job.release),
            Trigger::Signal(semaphore) => Step::Wait(semaphore),
        }
    }
}

/// Which of an activity's own jobs is next.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Order {
    Priority,
    Deadline,
}

/// The jobs of one task within an activity that does several tasks' jobs.
pub(crate) struct Stream {
    pub(crate) jobs: Jobs,
    pub(crate) done: Mark,
    pub(crate) job: Job,
    pub(crate) left: u64,
}

/// An activity that does the jobs of several tasks, from point to point of each as its [`Preemption`] says.
pub(crate) fn several(
    tasks: Vec<(Jobs, Mark)>,
    order: Order,
) -> impl FnMut(&mut dyn Context) -> Step + Send {
    let begin = |(mut jobs, done): (Jobs, Mark)| {
        let job = jobs.next();
        Stream {
            jobs,
            done,
            job,
            left: job.cost,
        }
    };
    let mut streams: Vec<Stream> = tasks.into_iter().map(begin).collect();
    let mut running: Option<(usize, u64)> = None;
    move |context: &mut dyn Context| {
        if let Some((index, region)) = running.take() {
            let stream = &mut streams[index];
            stream.left -= region;
            if stream.left == 0 {
                let response = context.now() - stream.job.arrival;
                context.mark(
                    stream.done,
                    [stream.job.arrival.as_nanos(), response.as_nanos()],
                );
                stream.job = stream.jobs.next();
                stream.left = stream.job.cost;
            }
        }
        let released = streams
            .iter()
            .enumerate()
            .filter(|(_, s)| s.job.release <= context.now());
        let next = released.min_by_key(|(index, stream)| match order {
            Order::Priority => *index as u64,
            Order::Deadline => (stream.job.arrival + stream.jobs.task.deadline()).as_nanos(),
        });
        let Some((index, stream)) = next else {
            let next = streams.iter().map(|stream| stream.job.release).min();
            return Step::SleepUntil(next.expect("there are some"));
        };
        let region = match stream.jobs.task.preemption() {
            Preemption::Fixed { longest, last } if stream.left > last.as_nanos() => {
                longest.as_nanos().min(stream.left - last.as_nanos())
            }
            _ => stream.left,
        };
        running = Some((index, region));
        Step::Charge(Service::from_nanos(region))
    }
}
