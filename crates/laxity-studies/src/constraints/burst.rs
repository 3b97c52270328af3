//! Bursts inside a reservation: the modem's 3.3 ms call while it connects (Jones, Saroiu, "Predictability Requirements of a Soft Modem",
//! §6.2.2), which 2 ms of every 8 spread over two periods, with a time constraint and without.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use laxity::observe::Disturbances;
use laxity_lab::bench::Runner;
use laxity_lab::bench::bodies::confined;
use laxity_lab::bench::host::marked;
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
    /// The processor time that it took, as the host counts it.
    pub took: Service,
}

impl Burst {
    /// Whether it took more than was asked for: nothing was promised of that.
    pub fn is_overlong(&self) -> bool {
        self.took > ASKED
    }
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
    /// How many windows that were.
    pub windows_of_other: usize,
}

impl Bursts {
    /// Those that are judged: the machine went on, and they took what they declared.
    pub fn quiet(&self) -> impl Iterator<Item = &Burst> + Clone {
        let all = self.bursts.iter();
        all.filter(|burst| !burst.disturbed && !burst.is_overlong())
    }

    /// Those that took longer than they declared, though the machine went on.
    pub fn overlong(&self) -> usize {
        let all = self.bursts.iter().filter(|burst| !burst.disturbed);
        all.filter(|burst| burst.is_overlong()).count()
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
    let [done, took, received] =
        ["burst done", "burst took", "received"].map(|name| program.mark(name));
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
    let body = burst_body(bursts, constrained, release, (line, [done, took]));
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
        bursts: bursts_of(&record, [done, took]),
        least_of_other: Service::from_nanos(windows.iter().copied().min().unwrap_or(0)),
        kept_ppm_of_other: kept * 1_000_000 / (windows.len() as u64).max(1),
        windows_of_other: windows.len(),
    })
}

/// Asks for each burst's time before it is released: a confined holder that sleeps could not ask when it comes.
fn burst_body(
    bursts: u64,
    constrained: bool,
    release: impl Fn(u64) -> Instant + Send + 'static,
    (line, [done, took]): (laxity_model::SemaphoreId, [Mark; 2]),
) -> impl FnMut(&mut dyn Context) -> Step + Send + 'static {
    let (mut state, mut n, mut granted) = (0, 0, false);
    let mut before = Service::ZERO;
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
            4 => {
                before = context.service();
                Step::Burn(WORK)
            }
            _ => {
                let own = context.service().saturating_sub(before);
                context.mark(took, [own.as_nanos(), 0]);
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

fn bursts_of(record: &RunRecord, [done, took]: [Mark; 2]) -> Vec<Burst> {
    let both = marked(record, done).zip(marked(record, took));
    let done = both.map(|(event, took)| {
        let release = Instant::from_nanos(event.args[0]);
        let still = Disturbances::of(record, [&event.activity]);
        Burst {
            response: event.at.saturating_since(release),
            granted: event.args[1] == 1,
            disturbed: still.overlap(release, event.at),
            took: Service::from_nanos(took.args[0]),
        }
    });
    done.collect()
}

/// The service between two marks that are a window apart, for each that is undisturbed, in nanoseconds.
fn services(record: &RunRecord, received: Mark, window: Span) -> Vec<u64> {
    let received = marked(record, received);
    let holders = received.clone().map(|event| &event.activity);
    let still = Disturbances::of(record, holders.take(1));
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
        if !still.overlap(*begin, to) {
            services.push(readings[last].1 - before);
        }
    }
    services
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_that_takes_longer_than_it_declared_is_no_late_one() {
        let burst = |response_us, took_us, disturbed| Burst {
            response: Span::from_micros(response_us),
            granted: true,
            disturbed,
            took: Service::from_micros(took_us),
        };
        let late = |all: &[Burst]| {
            let bursts = Bursts {
                bursts: all.to_vec(),
                least_of_other: Service::ZERO,
                kept_ppm_of_other: 0,
                windows_of_other: 0,
            };
            [bursts.quiet().count(), bursts.late(), bursts.overlong()]
        };
        assert_eq!(late(&[burst(7_400, 3_465, false)]), [1, 1, 0]);
        assert_eq!(late(&[burst(7_400, 3_466, false)]), [0, 0, 1]);
        assert_eq!(late(&[burst(7_400, 3_466, true)]), [0, 0, 0]);
    }
}
