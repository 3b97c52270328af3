//! How fast the twin is on S10, in jobs a second, against a bare simulator of nothing but rate-monotonic jobs.
//!
//! S10: ten tasks on one processor, T = 10, 20, … 100 ms, C = 0.08 T, all released at 0, for 100 s. The contestants run in turns, so that a slow moment of
//! the machine hits all of them; medians are printed. `cargo bench -p laxity-sim --bench s10 [-- ROUNDS]`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

use laxity_model::enforce::machine::Machine;
use laxity_model::{
    ActivityId, Context, Event, EventKind, Host, Instant, InterruptLevel, Placement, Priority,
    ProcessorId, Program, Service, Span, Step,
};
use laxity_sim::{Costs, Profile, Recording, Twin};

const LENGTH: Span = Span::from_secs(100);
const TASKS: u64 = 10;

fn period(task: u64) -> Span {
    Span::from_millis(10 * (task + 1))
}

fn work(task: u64) -> Service {
    Service::from_micros(800 * (task + 1))
}

/// The bare yardstick: releases in one binary heap, ready jobs in another, and nothing else but what `record` does. Returns the jobs that ended.
fn yardstick(mut record: impl FnMut(u64, EventKind, u64)) -> u64 {
    let end = LENGTH.as_nanos();
    let mut releases: BinaryHeap<Reverse<(u64, u64)>> =
        (0..TASKS).map(|t| Reverse((0, t))).collect();
    let mut ready: BinaryHeap<Reverse<(u64, u64)>> = BinaryHeap::with_capacity(TASKS as usize);
    let (mut now, mut jobs, mut running) = (0, 0, None);
    while now < end {
        while let Some(&Reverse((at, task))) = releases.peek()
            && at <= now
        {
            releases.pop();
            releases.push(Reverse((at + period(task).as_nanos(), task)));
            ready.push(Reverse((task, work(task).as_nanos())));
            record(now, EventKind::Wake, task);
        }
        let next_release = releases.peek().map_or(u64::MAX, |next| next.0.0);
        let Some(Reverse((task, left))) = ready.pop() else {
            now = next_release;
            continue;
        };
        if running != Some(task) {
            if let Some(former) = running.replace(task) {
                record(now, EventKind::Preempt, former);
            }
            record(now, EventKind::Dispatch, task);
        }
        if now + left <= next_release {
            now += left;
            jobs += u64::from(now <= end);
            running = None;
            record(now, EventKind::Block, task);
        } else {
            ready.push(Reverse((task, left - (next_release - now))));
            now = next_release;
        }
    }
    jobs
}

/// The same, recording what the twin records, in the same form.
fn traced_yardstick() -> u64 {
    let mut events = Vec::new();
    let jobs = yardstick(|at, kind, task| {
        events.push(Event {
            at: Instant::from_nanos(at),
            kind,
            processor: ProcessorId(0),
            activity: ActivityId(task as u16),
            args: [at, 0],
        });
    });
    black_box(events.len());
    jobs
}

/// A task as a thread: sleeps to its release, then works.
fn periodic(task: u64) -> impl FnMut(&mut dyn Context) -> Step + Send {
    let mut release = Instant::ZERO;
    let mut released = true;
    move |_: &mut dyn Context| {
        released = !released;
        if released {
            release += period(task);
            Step::SleepUntil(release)
        } else {
            Step::Charge(work(task))
        }
    }
}

fn threads() -> Program {
    let mut program = Program::new(1);
    for task in 0..TASKS {
        let priority = Priority::new(31 - task as u8).unwrap_or(Priority::HIGHEST);
        program.add(
            "task",
            ProcessorId(0),
            Placement::Thread(priority),
            periodic(task),
        );
    }
    program
}

/// Every release comes as an interrupt, which queues a deferred call, which signals the thread; spinners fill the levels below.
fn everything() -> Program {
    let mut program = Program::new(1);
    let processor = ProcessorId(0);
    for task in 0..TASKS {
        let (line, job) = (program.semaphore(0), program.semaphore(0));
        let mut release = Instant::ZERO;
        let handler = move |context: &mut dyn Context| {
            context.signal(line);
            release += period(task);
            Step::SleepUntil(release)
        };
        let level = Placement::Interrupt(InterruptLevel(3 + task as u8));
        program.add("interrupt", processor, level, handler);
        let mut waited = false;
        let deferred = move |context: &mut dyn Context| {
            if waited {
                context.signal(job);
            }
            waited = true;
            Step::Wait(line)
        };
        program.add("deferred", processor, Placement::Deferred, deferred);
        let mut working = true;
        let thread = move |_: &mut dyn Context| {
            working = !working;
            if working {
                Step::Charge(work(task))
            } else {
                Step::Wait(job)
            }
        };
        let priority = Priority::new(31 - task as u8).unwrap_or(Priority::HIGHEST);
        program.add("task", processor, Placement::Thread(priority), thread);
    }
    for level in 1..22 {
        let priority = Priority::new(level).unwrap_or(Priority::NORMAL);
        program.add(
            "spinner",
            processor,
            Placement::Thread(priority),
            |_: &mut dyn Context| Step::Burn(Service::from_secs(1)),
        );
    }
    program
}

fn twin(twin: Twin, recording: Recording, program: Program) -> u64 {
    let record = twin.recording(recording).admit_and_run(program, LENGTH);
    record.map_or(0, |record| {
        black_box(record.events.len());
        // Tasks wait after each job and once more, for the first.
        let waits = record.usage.iter().map(|usage| usage.voluntary_switches);
        waits.sum::<u64>()
    })
}

/// The median and the best.
fn summary(mut rates: Vec<f64>) -> (f64, f64) {
    rates.sort_by(f64::total_cmp);
    (rates[rates.len() / 2], rates[rates.len() - 1])
}

fn main() {
    let rounds = std::env::args()
        .skip(1)
        .find_map(|a| a.parse().ok())
        .unwrap_or(61);
    let small_costs = Profile {
        costs: Costs {
            interrupt_entry: Span::from_nanos(500),
            interrupt_exit: Span::from_nanos(200),
            deferred_dispatch: Span::from_nanos(300),
            context_switch: Span::from_nanos(1_000),
            clock_tick: Span::from_nanos(500),
        },
        ..Profile::WIN2000_PII450
    };
    type Contestant = (&'static str, Box<dyn Fn() -> u64>);
    let contestants: [Contestant; 6] = [
        ("yardstick", Box::new(|| yardstick(|_, _, _| {}))),
        ("yardstick, traced", Box::new(traced_yardstick)),
        (
            "twin, untraced",
            Box::new(|| twin(Twin::new(Profile::IDEAL), Recording::NONE, threads())),
        ),
        (
            "twin, traced",
            Box::new(|| twin(Twin::new(Profile::IDEAL), Recording::ALL, threads())),
        ),
        (
            "twin, interrupts, deferred calls, costs, ticks, 31 levels",
            Box::new(move || twin(Twin::new(small_costs), Recording::NONE, everything())),
        ),
        (
            "twin of a Linux machine",
            Box::new(|| {
                let linux = Twin::linux(&Machine::without_costs(250), 1);
                twin(linux, Recording::NONE, threads())
            }),
        ),
    ];
    let mut rates = vec![Vec::new(); contestants.len()];
    for _ in 0..rounds {
        for ((_, run), rates) in contestants.iter().zip(&mut rates) {
            let begun = std::time::Instant::now();
            let jobs = run();
            rates.push(jobs as f64 / begun.elapsed().as_secs_f64());
        }
    }
    let summaries: Vec<(f64, f64)> = rates.into_iter().map(summary).collect();
    for ((name, run), (median, best)) in contestants.iter().zip(&summaries) {
        let (millions, best) = (median / 1e6, best / 1e6);
        // What is traced is compared with what is traced.
        let ratio = median
            / summaries[usize::from(name.ends_with("traced") && !name.ends_with("untraced"))].0;
        let jobs = run();
        println!(
            "{name}: {millions:.2} M jobs/s (best {best:.2}), {ratio:.2} of the yardstick; {jobs} jobs"
        );
    }
}
