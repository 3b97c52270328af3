//! A rival: intervals of an async runtime. Each upcall is a task that awaits its interval and then does its whole batch, on tokio's scheduler of one thread,
//! which is real-time at an executor's priority.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use laxity::now;
use laxity_lab::bench::Runner;
use laxity_model::base::histogram::Histogram;
use laxity_model::{
    Context, Disturbance, HostError, Instant, Placement, Priority, Program, Service, Span, Step,
};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Builder;
use tokio::task::LocalSet;
use tokio::time::{self, MissedTickBehavior};

use super::trial::{CPU, Each, LEAD, Member, Outcome, Rate, Setup};

/// A job: of which upcall, for when it was meant, when it began and when it ended.
#[derive(Clone, Copy)]
struct Done {
    member: usize,
    release: Instant,
    began: Instant,
    ended: Instant,
}

/// All jobs, and from when to when upcalls were released.
#[derive(Default)]
struct Served {
    jobs: Vec<Done>,
    from: Option<[Instant; 2]>,
}

/// Runs a set.
pub(super) fn run(setup: &Setup, host: &mut Runner<'_>) -> Result<Outcome, HostError> {
    if !host.is_live() {
        return Err(HostError::BadProgram(
            "the twin has no async runtime".into(),
        ));
    }
    let served = Arc::new(Mutex::new(Served::default()));
    let mut program = Program::new(1);
    let (own, told) = (setup.clone(), Arc::clone(&served));
    let place = Placement::Thread(Priority::HIGHEST);
    program.add("runtime", CPU, place, move |context: &mut dyn Context| {
        match serve(&own) {
            Ok(served) => *told.lock().unwrap_or_else(PoisonError::into_inner) = served,
            Err(_) => context.fail("there is no async runtime to be had"),
        }
        Step::Finish
    });
    let record = setup.recorded(program, host)?;
    let served = std::mem::take(&mut *served.lock().unwrap_or_else(PoisonError::into_inner));
    let members = setup.members.iter().enumerate();
    let each = members.map(|one| served.each(one, &record.disturbances));
    Ok(setup.outcome(&record, each.collect(), true))
}

/// The same processor time as [`Step::Burn`] takes.
fn burn(service: Service) {
    let had = || {
        let had = clock_gettime(ClockId::ThreadCPUTime);
        Service::from_nanos(had.tv_sec as u64 * 1_000_000_000 + had.tv_nsec as u64)
    };
    let goal = had() + service;
    loop {
        let left = goal.saturating_sub(had());
        if left.is_zero() {
            return;
        }
        let until = now() + left.as_dedicated_span().min(Span::from_micros(100));
        while now() < until {}
    }
}

/// Serves all upcalls in the calling thread.
fn serve(setup: &Setup) -> std::io::Result<Served> {
    let runtime = Builder::new_current_thread().enable_time().build()?;
    let tasks = LocalSet::new();
    let jobs = Rc::new(RefCell::new(Vec::with_capacity(1 << 16)));
    let nanos = |span: Span| Duration::from_nanos(span.as_nanos());
    // Both read the same clock, and no more than a reading lies between them.
    let (begin, wall) = (now(), time::Instant::now());
    for (number, member) in setup.members.iter().enumerate() {
        let (cost, jobs) = (setup.cost(member), Rc::clone(&jobs));
        let first = wall + nanos(LEAD + member.phase);
        let period = nanos(member.period);
        tasks.spawn_local(async move {
            let mut ticks = time::interval_at(first, period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            loop {
                let meant = (ticks.tick().await - wall).as_nanos();
                let began = now();
                burn(cost);
                jobs.borrow_mut().push(Done {
                    member: number,
                    release: begin + Span::from_nanos(meant as u64),
                    began,
                    ended: now(),
                });
            }
        });
    }
    // What sleeps is made inside the runtime.
    let end = wall + nanos(setup.length);
    runtime.block_on(tasks.run_until(async { time::sleep_until(end).await }));
    let jobs = jobs.take();
    Ok(Served {
        jobs,
        from: Some([begin + LEAD, begin + setup.length]),
    })
}

impl Served {
    /// What came of one of them. Releases that were skipped missed their deadline; what the machine stood still in missed none.
    fn each(&self, (number, member): (usize, &Member), halts: &[Disturbance]) -> Each {
        let own = self.jobs.iter().filter(|job| job.member == number);
        let mut lateness = Histogram::new();
        let (mut longest, mut jobs, mut in_time) = (Span::ZERO, 0, 0);
        let halted = |from, to| halts.iter().any(|halt| halt.from < to && from < halt.to);
        let end = self.from.map_or(Instant::ZERO, |[_, to]| to);
        for job in own {
            let is_due = job.release + member.period <= end;
            let response = job.ended.saturating_since(job.release);
            jobs += 1;
            if halted(job.release, job.ended) {
                in_time += u64::from(is_due);
                continue;
            }
            lateness.record(job.began.saturating_since(job.release).as_nanos());
            longest = longest.max(response);
            in_time += u64::from(is_due && response <= member.period);
        }
        let due = self.from.map_or(0, |[from, to]| {
            let left = to.saturating_since(from + member.phase);
            left.as_nanos() / member.period.as_nanos()
        });
        let rate = Rate {
            period: member.period,
            longest,
            missed: due.saturating_sub(in_time),
        };
        Each {
            rate,
            lateness,
            jobs,
        }
    }
}
