//! One of several processes that a set's upcalls are in: it serves its own, and tells what came of them.

use std::error::Error;
use std::fs::File;
use std::io;
use std::sync::{Arc, Barrier, Mutex, OnceLock, PoisonError};
use std::thread;

use laxity::command::{Policy, set_policy};
use laxity::hold::Tid;
use laxity::upcalls::{Call, Options, Rank, Region, Seat, Spec, Upcall, Upcalls};
use laxity::{Request, Reserved, Service, now, sleep_until};
use serde::{Deserialize, Serialize};

use super::burner::Burner;
use super::intervals;
use super::jobs::{Done, ROOM, Task, When};
use super::trial::Serving;
use crate::peers::{PRIORITY, Used, say, tell};

/// What a process is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) serving: Serving,
    pub(super) tasks: Vec<Task>,
    /// The kernel's number of the processor of all of them.
    pub(super) processor: usize,
    /// The file of the memory that executors share; `None` of other ways to serve.
    pub(super) region: Option<String>,
}

/// What came of its upcalls.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Told {
    pub(super) jobs: Vec<Done>,
    pub(super) used: Used,
    /// What each of its burns was measured to take beyond what it is asked for.
    pub(super) overshoot_ns: u64,
}

impl Told {
    fn of(jobs: Vec<Done>, used: Used) -> Self {
        Self {
            jobs,
            used,
            overshoot_ns: Burner::here().overshoot().as_nanos(),
        }
    }
}

type Jobs = Arc<Mutex<Vec<Done>>>;

fn heard<T: serde::de::DeserializeOwned>() -> io::Result<T> {
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

/// It says that it can be told when, and is told.
fn await_when() -> io::Result<When> {
    say("ready")?;
    heard()
}

impl Part {
    /// In a seat that it is told first.
    fn by_upcalls(&self) -> Result<Told, Box<dyn Error>> {
        let file = self.region.as_ref().ok_or("it shares nothing")?;
        let file = File::options().read(true).write(true).open(file)?;
        let seat = Seat {
            region: Region::attach(file.into())?,
            number: heard()?,
        };
        let options = Options {
            rank: Rank::Fifo {
                priority: PRIORITY,
                processor: Some(self.processor),
            },
            together: Some(seat.into()),
            ..Options::default()
        };
        let name = options.name.clone();
        let upcalls = Upcalls::start(options)?;
        let when = await_when()?;
        let jobs: Jobs = Arc::new(Mutex::new(Vec::with_capacity(ROOM)));
        let all = self.tasks.iter();
        let all = all.map(|task| task.upcall(&upcalls, when, &jobs));
        let all = all.collect::<Result<Vec<Upcall>, _>>()?;
        all.iter().try_for_each(Upcall::run)?;
        let before = Used::by_named(&[&name])?;
        say("set")?;
        for upcall in &all {
            let slept = upcalls.sleep(&[upcall]);
            slept.map_err(|error| upcalls.failure().unwrap_or_else(|| error.to_string()))?;
        }
        let used = Used::by_named(&[&name])?.since(before);
        let jobs = jobs.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Told::of(jobs.clone(), used))
    }

    /// A thread for each, which is scheduled so before they are told when.
    fn by_threads(&self) -> Result<Told, Box<dyn Error>> {
        let gate = Arc::new(Barrier::new(self.tasks.len() + 1));
        let when = Arc::new(OnceLock::new());
        let all = self.tasks.iter().map(|task| {
            let (task, serving) = (*task, self.serving);
            let (gate, when) = (Arc::clone(&gate), Arc::clone(&when));
            thread::spawn(move || {
                let place = task.place(serving);
                gate.wait();
                gate.wait();
                let _place = place?;
                let when = *when.get().ok_or("it was not told when")?;
                let served = task.on_a_grid(when);
                served.map_err(|error| error.to_string())
            })
        });
        let all: Vec<_> = all.collect();
        gate.wait();
        let _ = when.set(await_when()?);
        gate.wait();
        say("set")?;
        let mut told = Told::of(Vec::new(), Used::default());
        for thread in all {
            let own: Told = thread.join().map_err(|_| "a thread panicked")??;
            told.jobs.extend(own.jobs);
            told.used = [told.used, own.used].into_iter().sum();
        }
        Ok(told)
    }

    fn by_intervals(&self) -> io::Result<Told> {
        let when = await_when()?;
        say("set")?;
        let before = Used::by_caller()?;
        let jobs = intervals::serve(&self.tasks, when)?;
        let used = Used::by_caller()?.since(before);
        Ok(Told::of(jobs, used))
    }
}

impl Task {
    /// An upcall, which ends at the end of the set's releases. A set that misses deadlines is to run, too, so its executor is told of a nanosecond for each unit.
    fn upcall(
        self,
        upcalls: &Upcalls,
        when: When,
        jobs: &Jobs,
    ) -> Result<Upcall, laxity::upcalls::Error> {
        let timing = self.timing(when);
        let mut spec = Spec::each(timing.period, Service::from_nanos(1));
        spec.timing = timing.clone();
        let (jobs, mut burner) = (Arc::clone(jobs), Burner::here());
        upcalls.create(spec, move |call: &mut Call<'_>| {
            let release = call.paced.release;
            if release >= when.until() {
                return call.end();
            }
            burner.burn(timing.share(self.cost(), call.done(), call.now()));
            if call.done() + call.now() >= call.batch() {
                let mut jobs = jobs.lock().unwrap_or_else(PoisonError::into_inner);
                jobs.push(self.done(release, call.began));
            }
        })
    }

    /// The calling thread is scheduled as it is to be served, as long as what comes of this lives.
    fn place(&self, serving: Serving) -> Result<Option<Reserved>, String> {
        if serving == Serving::Kernel {
            let request = Request::new(Serving::reserved(self.cost()), self.period());
            let request = request.map_err(|error| error.to_string())?;
            let reserved = request.reserve().map_err(|error| error.to_string())?;
            return Ok(Some(reserved));
        }
        let placed = set_policy(Tid::current(), Policy::Fifo(self.priority));
        placed.map_err(|error| error.to_string())?;
        Ok(None)
    }

    /// All its jobs, in the calling thread. A release that comes while another one's job is at work is skipped.
    fn on_a_grid(&self, when: When) -> io::Result<Told> {
        let (mut jobs, mut burner) = (Vec::with_capacity(ROOM), Burner::here());
        let before = Used::by_caller()?;
        let mut release = self.first(when);
        while release < when.until() {
            sleep_until(release);
            let began = now();
            burner.burn(self.cost());
            jobs.push(self.done(release, began));
            while release <= now() {
                release += self.period();
            }
        }
        let used = Used::by_caller()?.since(before);
        Ok(Told::of(jobs, used))
    }
}

/// Does what a process is to do, as it is told: says when it can be told when, and when it only waits for that; and at its end what came of its upcalls.
///
/// # Errors
///
/// What it lacks, or lost: a right, its seat, the time to be ready in.
pub fn run(part: &str) -> Result<(), Box<dyn Error>> {
    let part: Part = serde_json::from_str(part)?;
    // It is measured while nobody waits for it.
    Burner::here();
    let told = match part.serving {
        Serving::ByRate => part.by_upcalls()?,
        Serving::Threads | Serving::Kernel => part.by_threads()?,
        Serving::Intervals => part.by_intervals()?,
        Serving::ByDeadline => return Err("several processes take turns by rate only".into()),
    };
    Ok(tell(&told)?)
}
