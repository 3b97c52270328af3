//! Bursts inside a reservation: the modem's 3.3 ms call while it connects (Jones, Saroiu, "Predictability Requirements of a Soft Modem",
//! §6.2.2), which 2 ms of every 8 spread over two periods, with a time constraint and without.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use laxity_lab::bench::Runner;
use laxity_lab::bench::bodies::confined;
use laxity_lab::bench::host::{is_disturbed, marked};
use laxity_lab::runner::tasks::Spinner;
use laxity_model::{
    Context, HostError, Instant, Mark, Placement, Priority, ProcessorId, Program, Reservation,
    RunRecord, Service, Span, Step, TimeConstraint,
};

/// What the burst takes: the study's longest call while connecting.
pub const WORK: Service = Service::from_micros(3_300);
/// What is asked for: a twentieth more, which interrupts and switches may take.
pub const ASKED: Service = Service::from_micros(3_465);
/// By when it is asked for, from its release.
pub const WITHIN: Span = Span::from_millis(6);
/// The holder's reservation, and that of another beside it.
pub const HELD: (Service, Span) = (Service::from_millis(2), Span::from_millis(8));
/// See [`HELD`].
pub const OTHER: (Service, Span) = (Service::from_millis(1), Span::from_millis(5));
/// From one burst to the next: no whole number of any period here, so that releases fall anywhere in the table.
const APART: Span = Span::from_micros(50_370);
/// From the run's beginning to the first burst.
const BEFORE: Span = Span::from_millis(40);
/// The grain in which the other holder tells what it has received.
pub const PIECE: Service = Service::from_micros(50);

/// A processor for everybody.
pub const PROCESSOR: ProcessorId = ProcessorId(0);

/// What came of one burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Burst {
    /// From its release until it was done.
    pub response: Span,
    /// Whether it had a time constraint.
    pub granted: bool,
    /// The machine stood still meanwhile.
    pub disturbed: bool,
}

/// What came of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bursts {
    /// The bursts, in order.
    pub bursts: Vec<Burst>,
    /// The least that the other holder received in any window of its period that was not disturbed, to within [`PIECE`].
    pub least_of_other: Service,
    /// The share of those windows in which it received its service, less 5 % and two pieces, in parts per million.
    pub kept_ppm_of_other: u64,
}

impl Bursts {
    /// Those during which the machine went on.
    pub fn quiet(&self) -> impl Iterator<Item = &Burst> + Clone {
        self.bursts.iter().filter(|burst| !burst.disturbed)
    }

    /// How many of them were later than they should be.
    pub fn late(&self) -> usize {
        self.quiet().filter(|burst| burst.response > WITHIN).count()
    }

    /// The longest response of them.
    pub fn longest(&self) -> Span {
        let responses = self.quiet().map(|burst| burst.response);
        responses.max().unwrap_or(Span::ZERO)
    }
}

/// Bursts beside spinners and another reservation, with time constraints or without.
///
/// # Errors
///
/// The host's.
pub fn run(host: &mut Runner<'_>, bursts: u64, constrained: bool) -> Result<Bursts, HostError> {
    let mut program = Program::new(1);
    let (done, received) = (program.mark("burst done"), program.mark("received"));
    let line = program.semaphore(0);
    let first_ns = Arc::new(AtomicU64::new(0));
    let release = {
        let first_ns = Arc::clone(&first_ns);
        move |n: u64| Instant::from_nanos(first_ns.load(Ordering::SeqCst)) + APART * n
    };
    let mut next = 0;
    let device = {
        let release = release.clone();
        move |context: &mut dyn Context| {
            if next == 0 {
                let first = context.now() + BEFORE;
                first_ns.store(first.as_nanos(), Ordering::SeqCst);
            }
            // The first signal says that the times are known, each later one that one has come.
            context.signal(line);
            next += 1;
            Step::SleepUntil(release(next - 1))
        }
    };
    program.add("line", PROCESSOR, Placement::External, device);
    let body = burst_body(bursts, constrained, release, (line, done));
    program.push(confined("burst", every(HELD), body));
    let meter = move |context: &mut dyn Context| {
        context.mark(received, [context.service().as_nanos(), 0]);
        Step::Burn(PIECE)
    };
    program.push(confined("other", every(OTHER), meter));
    let normal = Placement::Thread(Priority::NORMAL);
    for _ in 0..4 {
        program.add("spinner", PROCESSOR, normal, Spinner);
    }
    let record = host.run(program, BEFORE + APART * (bursts + 2))?;
    let windows = services(&record, received, OTHER.1);
    let enough = OTHER.0.as_nanos() * 95 / 100 - 2 * PIECE.as_nanos();
    let kept = windows.iter().filter(|service| **service >= enough).count() as u64;
    Ok(Bursts {
        bursts: bursts_of(&record, done),
        least_of_other: Service::from_nanos(windows.iter().copied().min().unwrap_or(0)),
        kept_ppm_of_other: kept * 1_000_000 / (windows.len() as u64).max(1),
    })
}

/// Asks for each burst's time before it is released: a confined holder that sleeps could not ask when it comes.
fn burst_body(
    bursts: u64,
    constrained: bool,
    release: impl Fn(u64) -> Instant + Send + 'static,
    (line, done): (laxity_model::SemaphoreId, Mark),
) -> impl FnMut(&mut dyn Context) -> Step + Send + 'static {
    let (mut state, mut n, mut granted) = (0, 0, false);
    move |context: &mut dyn Context| {
        state += 1;
        match state {
            // The times are known.
            1 => Step::Wait(line),
            2 if n == bursts => Step::EndRun,
            2 if constrained => {
                let at = release(n);
                TimeConstraint::new(at, at + WITHIN, ASKED)
                    .map_or(Step::EndRun, Step::BeginConstraint)
            }
            2 => Step::Yield,
            3 => {
                granted = constrained && context.granted();
                Step::Wait(line)
            }
            4 => Step::Burn(WORK),
            _ => {
                context.mark(done, [release(n).as_nanos(), u64::from(granted)]);
                (state, n) = (1, n + 1);
                Step::EndConstraint
            }
        }
    }
}

/// So much service of every so much time.
///
/// # Panics
///
/// If that is no reservation: those of this experiment are.
pub fn every((service, period): (Service, Span)) -> Reservation {
    Reservation::new(service, period).expect("a reservation of this experiment")
}

fn bursts_of(record: &RunRecord, done: Mark) -> Vec<Burst> {
    let done = marked(record, done).map(|event| {
        let release = Instant::from_nanos(event.args[0]);
        Burst {
            response: event.at.saturating_since(release),
            granted: event.args[1] == 1,
            disturbed: is_disturbed(record, release, event.at),
        }
    });
    done.collect()
}

/// The service between two marks that are a window apart, for each that is undisturbed, in nanoseconds.
fn services(record: &RunRecord, received: Mark, window: Span) -> Vec<u64> {
    let received = marked(record, received);
    let readings: Vec<(Instant, u64)> = received.map(|event| (event.at, event.args[0])).collect();
    let mut last = 0;
    let mut services = Vec::with_capacity(readings.len());
    for (begin, before) in &readings {
        let to = *begin + window;
        if to > record.end {
            break;
        }
        while readings.get(last + 1).is_some_and(|next| next.0 <= to) {
            last += 1;
        }
        if !is_disturbed(record, *begin, to) {
            services.push(readings[last].1 - before);
        }
    }
    services
}
