//! A rival: intervals of an async runtime. Each upcall is a task that awaits its interval and then does its whole batch, on tokio's scheduler of one thread,
//! which is real-time at an executor's priority.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use laxity::now;
use laxity::observe::Disturbances;
use laxity_lab::bench::Runner;
use laxity_model::{Context, HostError, Instant, Placement, Priority, Program, Span, Step};
use tokio::runtime::Builder;
use tokio::task::LocalSet;
use tokio::time::{self, MissedTickBehavior};

use super::burner::Burner;
use super::jobs::{self, Done, ROOM, Task, When};
use super::trial::{CPU, LEAD, Outcome, Setup};

/// Runs a set in one thread of a program.
pub(super) fn run(setup: &Setup, host: &mut Runner<'_>) -> Result<Outcome, HostError> {
    if !host.is_live() {
        return Err(HostError::BadProgram(
            "the twin has no async runtime".into(),
        ));
    }
    let burner = Burner::here();
    let served = Arc::new(Mutex::new(None));
    let mut program = Program::new(1);
    let (length, tasks, told) = (setup.length, setup.tasks(), Arc::clone(&served));
    let place = Placement::Thread(Priority::HIGHEST);
    let runtime = program.add("runtime", CPU, place, move |context: &mut dyn Context| {
        let begin = now();
        let when = When::new(begin + LEAD, begin + length);
        match serve(&tasks, when) {
            Ok(jobs) => {
                *told.lock().unwrap_or_else(PoisonError::into_inner) = Some((jobs, when));
            }
            Err(_) => context.fail("there is no async runtime to be had"),
        }
        Step::Finish
    });
    let record = setup.recorded(program, host)?;
    let served = served.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some((jobs, when)) = served else {
        return Err(HostError::Failed("the runtime was not over".into()));
    };
    let halts = Disturbances::of(&record, &[runtime]);
    let each = jobs::each(setup, (&jobs, when), &halts)?;
    Ok(setup.outcome(each, record.usage.iter().into(), Some(burner.overshoot())))
}

/// Serves these in the calling thread.
pub(super) fn serve(tasks: &[Task], when: When) -> std::io::Result<Vec<Done>> {
    let runtime = Builder::new_current_thread().enable_time().build()?;
    let set = LocalSet::new();
    let jobs = Rc::new(RefCell::new(Vec::with_capacity(ROOM)));
    let nanos = |span: Span| Duration::from_nanos(span.as_nanos());
    // Both read the same clock, and no more than a reading lies between them.
    let (begin, wall) = (now(), time::Instant::now());
    let at = |instant: Instant| wall + nanos(instant.saturating_since(begin));
    for task in tasks {
        let (task, jobs) = (*task, Rc::clone(&jobs));
        let (first, period) = (at(task.first(when)), nanos(task.period()));
        set.spawn_local(async move {
            let mut burner = Burner::here();
            let mut ticks = time::interval_at(first, period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            loop {
                let meant = (ticks.tick().await - wall).as_nanos();
                let began = now();
                burner.burn(task.cost());
                let release = begin + Span::from_nanos(meant as u64);
                jobs.borrow_mut().push(task.done(release, began));
            }
        });
    }
    // What sleeps is made inside the runtime.
    let end = at(when.until());
    runtime.block_on(set.run_until(async { time::sleep_until(end).await }));
    Ok(jobs.take())
}
