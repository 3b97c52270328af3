//! Nothing in the twin ever takes longer than the analysis says: random programs, their response times against their bounds.
//!
//! Jobs arrive periodically at random phases, sometimes later, are released late at random within their jitter, and need their whole
//! cost or less. `LAXITY_CASES` is the number of runs of all tests together (200 if it is not set); a failure names its seed. Each test
//! prints how near to its bound a response came.

mod bodies;
#[path = "../common/mod.rs"]
mod common;
mod devices;
mod workload;

use bodies::{Order, Trigger, several, worker};
use common::*;
use devices::{MachineCosts, devices_and_threads};
use laxity_model::analysis::fixed_priority::{self, response_time_among};
use laxity_model::analysis::supply::{Dedicated, SupplyBound, TableSupply};
use laxity_model::analysis::{Task, edf};
use laxity_model::policy::slots::plan;
use laxity_model::{EventKind, Host, Mark, Outside, Program, Reservation, Service, Span};
use laxity_sim::{Profile, Twin};
use workload::{Jobs, Random, levels, phases, random_tasks, with_jitter, with_regions};

const MICRO: u64 = 1_000;

/// How near to their bounds responses came.
#[derive(Default)]
pub(crate) struct Tightness {
    jobs: u64,
    /// In parts per million of the bound.
    nearest_ppm: u64,
    reached: u64,
}

impl Tightness {
    fn include(&mut self, response: u64, bound: u64) {
        self.jobs += 1;
        self.nearest_ppm = self.nearest_ppm.max(response * 1_000_000 / bound);
        self.reached += u64::from(response == bound);
    }

    fn print(&self, name: &str) {
        let Self {
            jobs,
            nearest_ppm,
            reached,
        } = self;
        println!("{name}: {jobs} jobs, nearest {nearest_ppm} ppm of the bound, {reached} at it");
    }
}

/// A program with the bound of each of its marks, in nanoseconds.
pub(crate) struct Bounded {
    program: Program,
    bounds: Vec<Option<u64>>,
}

impl Bounded {
    fn new() -> Self {
        Self {
            program: Program::new(1),
            bounds: Vec::new(),
        }
    }

    /// A mark for jobs with this bound.
    fn mark(&mut self, bound: Option<u64>) -> Mark {
        self.bounds.push(bound);
        self.program.mark("done")
    }

    /// Runs it, and holds every job against its bound.
    fn check(self, profile: Profile, length: u64, seed: u64, tightness: &mut Tightness) {
        let record = Twin::new(profile).admit_and_run(self.program, Span::from_nanos(length));
        let record = record.expect("the program is right");
        for event in &record.events {
            let EventKind::Mark(Mark(mark)) = event.kind else {
                continue;
            };
            if let Some(bound) = self.bounds[usize::from(mark)] {
                let [arrival, response] = event.args;
                assert!(
                    response <= bound,
                    "seed {seed}: #{}, arrived at {arrival}: {response} ns, bound {bound} ns",
                    event.activity
                );
                tightness.include(response, bound);
            }
        }
    }
}

/// Runs a test's share of all cases.
fn for_each_seed(name: &str, percent: u64, run: impl Fn(u64, &mut Tightness)) {
    let cases = std::env::var("LAXITY_CASES").ok();
    let cases: u64 = cases.map_or(200, |cases| cases.parse().expect("a number"));
    let mut tightness = Tightness::default();
    for seed in 0..(cases * percent).div_ceil(100) {
        run(seed, &mut tightness);
    }
    tightness.print(name);
    assert!(tightness.jobs > 0);
}

fn bound_among(
    task: &Task,
    interferers: &[Task],
    blocking: u64,
    supply: &impl SupplyBound,
) -> Option<u64> {
    let blocking = Service::from_nanos(blocking);
    let response = response_time_among(task, interferers, blocking, supply).expect("small");
    response.bound().map(|bound| bound.from_arrival.as_nanos())
}

#[test]
fn threads_by_priority() {
    for_each_seed("threads by priority", 30, |seed, tightness| {
        let mut random = Random(seed);
        let count = random.from(2, 6);
        let mut tasks = random_tasks(&mut random, count, 50 * MICRO, 1_000_000);
        for task in &mut tasks {
            *task = with_jitter(&mut random, *task);
        }
        if !random.one_in(3) {
            tasks.sort_by_key(Task::period);
        }
        let responses = fixed_priority::response_times(&tasks, &Dedicated).expect("small");
        let (first, levels) = (
            phases(&mut random, &tasks, 0),
            levels(&mut random, tasks.len()),
        );
        let mut bounded = Bounded::new();
        for (index, task) in tasks.iter().enumerate() {
            let bound = responses[index].bound();
            let done = bounded.mark(bound.map(|bound| bound.from_arrival.as_nanos()));
            let jobs = Jobs::new(&mut random, *task, first[index]);
            let body = worker(jobs, Trigger::Timer, None, done);
            bounded
                .program
                .add("thread", CPU, thread(levels[index]), body);
        }
        bounded.check(Profile::IDEAL, 12_000 * MICRO, seed, tightness);
    });
}

#[test]
fn interrupts_then_deferred_calls_then_threads() {
    for_each_seed(
        "interrupts, deferred calls, threads",
        20,
        |seed, tightness| {
            devices_and_threads(Profile::IDEAL, 50 * MICRO, seed, tightness);
        },
    );
}

/// On a machine with a clock and costs.
#[test]
fn the_same_on_a_machine_with_costs() {
    for_each_seed("the same with costs", 10, |seed, tightness| {
        devices_and_threads(Profile::WIN2000_PII450, 1_500 * MICRO, seed, tightness);
    });
}

#[test]
fn threads_on_the_machine_of_the_study() {
    for_each_seed("threads on win2000-pii450", 10, |seed, tightness| {
        let mut random = Random(seed);
        let (profile, count) = (Profile::WIN2000_PII450, random.from(2, 6));
        let machine = MachineCosts::of(&profile);
        let tasks = random_tasks(&mut random, count, 3_000 * MICRO, 900_000);
        let levels = levels(&mut random, tasks.len());
        let first = phases(&mut random, &tasks, machine.quiet_until());
        let mut above: Vec<Task> = machine.clock.into_iter().collect();
        let mut bounded = Bounded::new();
        for (index, task) in tasks.iter().enumerate() {
            let known = machine.thread(task, true);
            let done = bounded.mark(bound_among(&known, &above, machine.blocking, &Dedicated));
            above.push(known);
            let jobs = Jobs::new(&mut random, *task, first[index]);
            let body = worker(jobs, Trigger::Timer, None, done);
            bounded
                .program
                .add("thread", CPU, thread(levels[index]), body);
        }
        bounded.check(profile, 400_000 * MICRO, seed, tightness);
    });
}

/// One thread that does several tasks' jobs: upcalls, with preemption where each handler allows it.
#[test]
fn upcalls_of_one_thread() {
    for_each_seed("upcalls of one thread", 10, |seed, tightness| {
        let mut random = Random(seed);
        let order = [Order::Priority, Order::Deadline][random.from(0, 1) as usize];
        let count = random.from(2, 5);
        let mut tasks = random_tasks(&mut random, count, 50 * MICRO, 1_000_000);
        for task in &mut tasks {
            *task = with_regions(&mut random, *task);
            let deadline = random.from(1, 2 * task.period().as_nanos());
            *task = task
                .with_deadline(Span::from_nanos(deadline))
                .expect("not zero");
        }
        let responses = match order {
            Order::Priority => fixed_priority::response_times(&tasks, &Dedicated),
            Order::Deadline => edf::response_times(&tasks, &Dedicated),
        };
        let responses = responses.expect("small");
        let first = phases(&mut random, &tasks, 0);
        let mut bounded = Bounded::new();
        let mut streams = Vec::new();
        for (index, task) in tasks.iter().enumerate() {
            let bound = responses[index].bound();
            let done = bounded.mark(bound.map(|bound| bound.from_arrival.as_nanos()));
            streams.push((Jobs::new(&mut random, *task, first[index]), done));
        }
        bounded
            .program
            .add("upcalls", CPU, thread(31), several(streams, order));
        bounded.check(Profile::IDEAL, 12_000 * MICRO, seed, tightness);
    });
}

/// 0.1 ms and 0.2 ms every 0.3 ms by deadline, for 668 jobs: a simulator that keeps its deadlines in floating-point milliseconds counts 74
/// misses. Each job is done by the end of its period, and not a tick earlier if both come at once.
#[test]
fn a_processor_that_is_exactly_full_misses_no_deadline() {
    let task = |micros| Task::new(work(micros), Span::from_micros(300)).expect("a task");
    let (mut bounded, mut tightness) = (Bounded::new(), Tightness::default());
    let mut streams = Vec::new();
    for task in [task(100), task(200)] {
        let done = bounded.mark(Some(task.deadline().as_nanos()));
        streams.push((Jobs::regular(task, 0), done));
    }
    let body = several(streams, Order::Deadline);
    bounded.program.add("upcalls", CPU, thread(31), body);
    bounded.check(Profile::IDEAL, 334 * 300 * MICRO + 1, 0, &mut tightness);
    assert_eq!((tightness.jobs, tightness.reached), (668, 334));
}

/// Threads confined to the slots of a table, each with one or more tasks, beside a rogue.
///
/// A thread decides what to do next even as its slot ends: so a region may have been chosen, none of it done, when a more urgent job
/// comes, and blocks for all of its length.
#[test]
fn threads_confined_to_slots() {
    for_each_seed("threads confined to slots", 20, |seed, tightness| {
        let mut random = Random(seed);
        let count = random.from(1, 3);
        let reservations: Vec<Reservation> = (0..count)
            .map(|_| {
                let period = 10 * random.from(10, 50);
                let service = 10 * random.from(2, (period / 10 / (count + 1)).max(2));
                Reservation::new(work(service), Span::from_micros(period)).expect("it fits")
            })
            .collect();
        let Ok(table) = plan(&reservations, &Twin::new(Profile::IDEAL).plan_costs()) else {
            return;
        };
        let mut bounded = Bounded::new();
        for (owner, reservation) in reservations.iter().enumerate() {
            let supply = TableSupply::new(&table, owner).expect("it has slots");
            let share = reservation.share_ppm();
            let count = random.from(1, 3);
            let least = reservation.period().as_nanos() * random.from(1, 3);
            let tasks = random_tasks(&mut random, count, least, share * 95 / 100);
            let tasks: Vec<Task> = tasks
                .iter()
                .map(|task| with_regions(&mut random, *task))
                .collect();
            let first = phases(&mut random, &tasks, 0);
            let mut streams = Vec::new();
            for (index, task) in tasks.iter().enumerate() {
                let below = tasks[index + 1..]
                    .iter()
                    .map(|task| task.blocking().as_nanos() + 1);
                let bound = bound_among(task, &tasks[..index], below.max().unwrap_or(0), &supply);
                let done = bounded.mark(bound);
                streams.push((Jobs::new(&mut random, *task, first[index]), done));
            }
            let body = several(streams, Order::Priority);
            bounded
                .program
                .push(reserved(8, *reservation, Outside::Confined, body));
        }
        bounded.program.add("rogue", CPU, thread(31), spinner());
        bounded.check(Profile::IDEAL, 60_000 * MICRO, seed, tightness);
    });
}
