//! Bursts inside a reservation: the modem's 3.3 ms call while it connects (Jones, Saroiu, "Predictability Requirements of a Soft Modem",
//! §6.2.2), which 2 ms of every 8 spread over two periods, with a time constraint and without.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use laxity::observe::Disturbances;
use laxity_lab::bench::Runner;
use laxity_lab::bench::bodies::confined;
use laxity_lab::runner::tasks::Spinner;
use laxity_model::{
    ActivityId, Context, EventKind, HostError, Instant, Mark, Placement, Priority, ProcessorId,
    Program, Reservation, RunRecord, Service, Span, Step, TimeConstraint,
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
    /// So much of its holder's slots it needed after it should have been done, less what had passed of them before it came.
    pub lacked: Span,
}

impl Burst {
    /// Whether it took more than was asked for, or was late for no other reason than that it came when slots of it had passed, as the device that releases it,
    /// on another processor, was late: nothing was promised of that.
    pub fn is_undeclared(&self) -> bool {
        self.took > ASKED || (self.response > WITHIN && self.lacked.is_zero())
    }
}

/// What came of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bursts {
    /// The bursts, in order.
    pub bursts: Vec<Burst>,
    /// What the other holder received; `None` if all of its windows were disturbed.
    pub other: Option<Other>,
}

/// What was received in the windows of a period that were not disturbed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Other {
    /// The least in any of them, to within [`PIECE`].
    pub least: Service,
    /// The share of them in which it was the reservation's service, less 5 % and two pieces, in parts per million.
    pub kept_ppm: u64,
}

impl Other {
    /// Of what was received in each, in nanoseconds, where so much is enough.
    fn of(windows: &[u64], enough: u64) -> Option<Self> {
        let least = *windows.iter().min()?;
        let kept = windows.iter().filter(|service| **service >= enough).count() as u64;
        Some(Self {
            least: Service::from_nanos(least),
            kept_ppm: kept * 1_000_000 / windows.len() as u64,
        })
    }
}

impl Bursts {
    /// Those that are judged: the machine went on, and they took what they declared.
    pub fn quiet(&self) -> impl Iterator<Item = &Burst> + Clone {
        let all = self.bursts.iter();
        all.filter(|burst| !burst.disturbed && !burst.is_undeclared())
    }

    /// Those that did otherwise than they declared, though the machine went on.
    pub fn undeclared(&self) -> usize {
        let all = self.bursts.iter().filter(|burst| !burst.disturbed);
        all.filter(|burst| burst.is_undeclared()).count()
    }

    /// Those of them that were later than they should be.
    pub fn late(&self) -> impl Iterator<Item = &Burst> + Clone {
        self.quiet().filter(|burst| burst.response > WITHIN)
    }

    /// How many the machine stood still in.
    pub fn disturbed(&self) -> usize {
        let disturbed = self.bursts.iter().filter(|burst| burst.disturbed);
        disturbed.count()
    }

    /// The longest response of those that are judged; `None` if none is.
    pub fn longest(&self) -> Option<Span> {
        self.quiet().map(|burst| burst.response).max()
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
    Ok(Bursts {
        bursts: bursts_of(&record, [done, took]),
        other: Other::of(&windows, enough),
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
    let (mut before, mut came) = (Service::ZERO, Instant::ZERO);
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
                (before, came) = (context.service(), context.now());
                Step::Burn(WORK)
            }
            _ => {
                let own = context.service().saturating_sub(before);
                context.mark(took, [own.as_nanos(), came.as_nanos()]);
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
    let both = record.marked(done).zip(record.marked(took));
    let done = both.map(|(event, took)| {
        let release = Instant::from_nanos(event.args[0]);
        let still = Disturbances::of(record, [&event.activity]);
        let in_slots = |from, to| in_slots(record, event.activity, [from, to]);
        let slept = in_slots(release, Instant::from_nanos(took.args[1]));
        Burst {
            response: event.at.saturating_since(release),
            lacked: in_slots(release + WITHIN, event.at).saturating_sub(slept),
            granted: event.args[1] == 1,
            disturbed: still.overlap(release, event.at),
            took: Service::from_nanos(took.args[0]),
        }
    });
    done.collect()
}

/// How much of the time between these lies in slots of this holder, by their edges.
fn in_slots(record: &RunRecord, holder: ActivityId, [from, to]: [Instant; 2]) -> Span {
    let own = record.events.iter().filter(|one| one.activity == holder);
    let mut edges = own.filter(|one| matches!(one.kind, EventKind::SlotBegin | EventKind::SlotEnd));
    let mut all = Span::ZERO;
    while let Some(begun) = edges.find(|one| one.kind == EventKind::SlotBegin) {
        let end = edges.next().map_or(record.end, |edge| edge.at);
        all += end.min(to).saturating_since(begun.at.max(from));
    }
    all
}

/// The service between two marks that are a window apart, for each that is undisturbed, in nanoseconds.
fn services(record: &RunRecord, received: Mark, window: Span) -> Vec<u64> {
    let received = record.marked(received);
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
    use laxity_model::{Event, Usage};

    use super::*;

    #[test]
    fn a_burst_that_does_otherwise_than_it_declared_is_no_late_one() {
        let burst = |response_us, took_us, disturbed| Burst {
            lacked: Span::from_micros(1),
            response: Span::from_micros(response_us),
            granted: true,
            disturbed,
            took: Service::from_micros(took_us),
        };
        let late = |all: &[Burst]| {
            let bursts = Bursts {
                bursts: all.to_vec(),
                other: None,
            };
            let counted = [
                bursts.quiet().count(),
                bursts.late().count(),
                bursts.undeclared(),
            ];
            assert_eq!(bursts.longest().is_some(), counted[0] > 0);
            counted
        };
        assert_eq!(late(&[burst(7_400, 3_465, false)]), [1, 1, 0]);
        assert_eq!(late(&[burst(7_400, 3_466, false)]), [0, 0, 1]);
        assert_eq!(late(&[burst(7_400, 3_466, true)]), [0, 0, 0]);
        // It came too late, and lacked no more than it had let pass.
        let came_late = Burst {
            lacked: Span::ZERO,
            ..burst(7_400, 3_300, false)
        };
        assert_eq!(late(&[came_late]), [0, 0, 1]);
    }

    #[test]
    fn where_no_window_is_judged_nothing_is_known_of_them() {
        let found = Other::of(&[1, 3], 2).map(|other| (other.least, other.kept_ppm));
        assert_eq!(found, Some((Service::from_nanos(1), 500_000)));
        assert_eq!(Other::of(&[], 2), None);
    }

    /// Released at 100 ms, in slots of its own from 99 to 102 and 105 to 108 ms, when it was done in the second of them: late by 0.2 ms of its slots.
    #[test]
    fn a_burst_lacks_what_its_slots_gave_it_too_late_less_what_it_let_pass() {
        let us = Instant::from_micros;
        let [done, took] = [Mark(0), Mark(1)];
        for (came_us, lacked_us) in [(100_000, 200), (100_150, 50), (100_200, 0), (103_000, 0)] {
            let event = |at_us, kind, args| Event {
                at: us(at_us),
                kind,
                processor: PROCESSOR,
                activity: ActivityId(0),
                args,
            };
            let mut record = crate::live_run(0);
            record.disturbances.clear();
            record.usage = vec![Usage::default()];
            let released = us(100_000).as_nanos();
            let came = us(came_us).as_nanos();
            record.events = vec![
                event(99_000, EventKind::SlotBegin, [0; 2]),
                event(102_000, EventKind::SlotEnd, [0; 2]),
                event(105_000, EventKind::SlotBegin, [0; 2]),
                event(106_200, EventKind::Mark(took), [3_300_000, came]),
                event(106_200, EventKind::Mark(done), [released, 1]),
                event(108_000, EventKind::SlotEnd, [0; 2]),
            ];
            let [burst] = bursts_of(&record, [done, took])[..] else {
                panic!("one burst");
            };
            assert_eq!(burst.lacked, Span::from_micros(lacked_us), "{came_us}");
        }
    }
}
