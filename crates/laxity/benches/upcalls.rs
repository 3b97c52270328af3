//! What upcalls cost beside what they do: a look for a yield against a bare reading of the clock, and to make, run and close one; and how late an executor's
//! timer is, against a bare thread that sleeps until the same instants.
//!
//! `cargo bench -p laxity --bench upcalls`. All contenders in turn in every round, on the executor's own thread; median of 101 rounds: on a shared machine the
//! ratios of one run can be trusted, the nanoseconds less. The executor is real-time where that is permitted, and says so where it is not.

use std::hint::black_box;
use std::sync::mpsc;
use std::time::Instant as Wall;

use laxity::upcalls::{Call, Error, Options, Rank, Spec, Upcalls};
use laxity::{Service, Span, now, sleep_until};
use laxity_linux::os::cpuset::CpuSet;
use laxity_linux::os::sched::{self, Policy, SchedError, Tid};

const BATCH: u32 = 8_192;
const ROUNDS: usize = 101;
const LIVES: usize = 2_001;
/// A thread's timer and an executor's are compared in so many pairs of runs, each of so many wake-ups, at this priority.
const PAIRS: usize = 11;
const WAKE_UPS: usize = 1_000;
const EVERY: Span = Span::from_millis(1);
const PRIORITY: u8 = 90;

/// What one takes of a batch, in nanoseconds.
fn each(mut work: impl FnMut()) -> f64 {
    let begin = Wall::now();
    (0..BATCH).for_each(|_| work());
    begin.elapsed().as_nanos() as f64 / f64::from(BATCH)
}

fn at(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * part) as usize]
}

fn spec(name: &str, period: Span) -> Spec {
    let mut spec = Spec::each(period, Service::from_micros(100));
    spec.name = name.to_owned();
    spec
}

fn looks(upcalls: &Upcalls) -> Result<(), Error> {
    let (tell, told) = mpsc::channel();
    // Others are there, and none is released meanwhile.
    let others: Result<Vec<_>, _> = (0..8)
        .map(|_| {
            let other = upcalls.create(spec("other", Span::from_secs(3_600)), |_| ())?;
            other.run().map(|()| other)
        })
        .collect();
    let others = others?;
    let mut bench = spec("bench", Span::from_millis(10));
    // In the only quantum of a call that does not pause a look reads no clock.
    bench.timing.pauses = true;
    let bench = upcalls.create(bench, move |call: &mut Call| {
        let bare = each(|| _ = black_box(now()));
        let look = each(|| _ = black_box(call.should_yield()));
        // The bench is over, and nobody hears it any more.
        let _ = tell.send((bare, look));
    })?;
    bench.run()?;
    let rounds = told.iter().take(ROUNDS);
    let (mut bare, mut look): (Vec<f64>, Vec<f64>) = rounds.unzip();
    let (bare, look) = (at(&mut bare, 0.5), at(&mut look, 0.5));
    println!("| a bare reading of the clock | {bare:.1} ns | |");
    println!(
        "| a look for a yield, beside 8 others | {look:.1} ns | {:.2} × |",
        look / bare
    );
    drop(others);
    Ok(())
}

fn lives(upcalls: &Upcalls) -> Result<(), Error> {
    let mut took = Vec::with_capacity(LIVES);
    for _ in 0..LIVES {
        let spec = spec("brief", Span::from_secs(1));
        let begin = Wall::now();
        let upcall = upcalls.create(spec, |_| ())?;
        upcall.run()?;
        upcall.close()?;
        took.push(begin.elapsed().as_nanos() as f64 / 1e3);
    }
    let [median, p99] = [0.5, 0.99].map(|part| at(&mut took, part));
    println!("| create, run, close | {median:.1} us | 99 %: {p99:.1} us |");
    Ok(())
}

/// How late a bare FIFO thread wakes, in nanoseconds.
fn bare(processor: usize) -> Result<Vec<f64>, SchedError> {
    let own = Tid::current();
    sched::set_affinity(own, &CpuSet::single(processor))?;
    // The kernel gives timers of real-time threads no slack.
    sched::set_policy(own, Policy::Fifo(PRIORITY))?;
    let mut late = Vec::with_capacity(WAKE_UPS);
    let mut due = now() + EVERY;
    for _ in 0..WAKE_UPS {
        sleep_until(due);
        late.push(now().saturating_since(due).as_nanos() as f64);
        due += EVERY;
    }
    Ok(late)
}

/// The timer of an executor that has one upcall, which keeps idle processors awake for the bare thread too.
fn timers(processor: usize) -> Result<(), Box<dyn std::error::Error>> {
    let rank = Rank::Fifo {
        priority: PRIORITY,
        processor: Some(processor),
    };
    let upcalls = Upcalls::start(Options {
        rank,
        ..Options::default()
    })?;
    let (tell, told) = mpsc::channel();
    let mut late = Vec::with_capacity(WAKE_UPS);
    let upcall = upcalls.create(spec("timer", EVERY), move |call: &mut Call| {
        late.push(call.began.saturating_since(call.paced.release).as_nanos() as f64);
        if late.len() == WAKE_UPS {
            // The bench is over, and nobody hears it any more.
            let _ = tell.send(std::mem::replace(&mut late, Vec::with_capacity(WAKE_UPS)));
            call.suspend();
        }
    })?;
    let mut p99 = Vec::with_capacity(PAIRS);
    for _ in 0..PAIRS {
        let thread = std::thread::spawn(move || bare(processor)).join();
        let mut thread = thread.unwrap_or_else(|payload| std::panic::resume_unwind(payload))?;
        upcall.run()?;
        let mut upcall = told.recv()?;
        p99.push([at(&mut thread, 0.99) / 1e3, at(&mut upcall, 0.99) / 1e3]);
    }
    let median =
        |of: &dyn Fn(&[f64; 2]) -> f64| at(&mut p99.iter().map(of).collect::<Vec<f64>>(), 0.5);
    let (bare, own) = (median(&|pair| pair[0]), median(&|pair| pair[1]));
    let ratio = median(&|[bare, own]| own / bare);
    println!("| 99 % of the wake-ups of a bare FIFO thread | {bare:.1} us late | |");
    println!(
        "| the same of an executor | {own:.1} us late | {ratio:.2} ×, the median of {PAIRS} pairs |"
    );
    Ok(())
}

fn main() -> Result<(), Error> {
    let upcalls = Upcalls::start(Options::default()).or_else(|why| {
        println!("as an ordinary thread: {why}\n");
        Upcalls::start(Options {
            rank: Rank::Fair,
            ..Options::default()
        })
    })?;
    println!("| | each | |\n|---|---|---|");
    looks(&upcalls)?;
    lives(&upcalls)?;
    drop(upcalls);
    let processors = sched::affinity(Tid::current());
    let first = processors.map(|all| all.iter().next());
    match first.map(|first| timers(first.unwrap_or(0))) {
        Ok(Ok(())) => {}
        Ok(Err(why)) => println!("\ntimers are not compared: {why}"),
        Err(why) => println!("\ntimers are not compared: {why}"),
    }
    Ok(())
}
