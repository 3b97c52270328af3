//! A device under a load that changes, and what came of it.

use laxity_model::adaptive::{Adapter, Policy, Settings};
use laxity_model::{
    ActivityId, EventKind, HostError, Instant, InterruptLevel, Placement, Priority, ProcessorId,
    Program, Reservation, RunRecord, Service, Span,
};

use super::driver::{Driver, Load, Marks};
use laxity_lab::bench::Runner;
use laxity_lab::bench::bodies::{Device, OnSignal, Times, confined};
use laxity_lab::runner::tasks::Spinner;

const CPU: ProcessorId = ProcessorId(0);
/// The device's period and deadline: the study's modem.
pub const PERIOD: Span = Span::from_micros(12_500);
/// The window of its reservation.
pub const WINDOW: Span = Span::from_millis(8);
/// What handler and deferred call take (Jones, Saroiu §6.2.4).
const SHORT: Service = Service::from_nanos(5_400);
/// Reservations are a multiple of this.
pub const GRAIN: Service = Service::from_micros(100);

/// How a device's reservation is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// It stays.
    Fixed(Service),
    /// It begins here and follows.
    Adaptive(Policy, Service),
}

impl Way {
    /// What is held at the start.
    #[must_use]
    pub const fn held(self) -> Service {
        match self {
            Self::Fixed(service) | Self::Adaptive(_, service) => service,
        }
    }

    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Fixed(service) => format!("fixed {service}/{WINDOW}"),
            Self::Adaptive(policy, _) => format!("adaptive: {}", policy.name()),
        }
    }
}

/// What is tried.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How the reservation is found.
    pub way: Way,
    /// What the device has to do.
    pub load: Load,
    /// What somebody else has reserved of each window, and always uses.
    pub other: Service,
    /// Where the noise comes from.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// Jobs released.
    pub jobs: u64,
    /// Jobs that were complete after their deadline.
    pub late: u64,
    /// Jobs that were lost.
    pub lost: u64,
    /// The share reserved on average, in parts per million.
    pub mean_share_ppm: u64,
    /// What was held at the start; `None` in no run.
    pub held_first: Option<Service>,
    /// When another reservation was granted, after the start, and how much service in each window.
    pub changes: Vec<(Span, Service)>,
    /// Requests that were refused.
    pub refused: u64,
    /// What the other holder received of what it reserved, in parts per million; `None` without one.
    pub other_ppm: Option<u64>,
    /// When jobs were late, after the start.
    pub late_at: Vec<Span>,
}

/// What the adaptation goes by.
#[must_use]
pub fn settings(most: Service) -> Settings {
    Settings {
        period: PERIOD,
        deadline: PERIOD,
        window: WINDOW,
        granularity: GRAIN,
        most,
    }
}

/// The most that the device may ask for.
pub const MOST: Service = Service::from_micros(6_500);

/// Runs a setup.
///
/// # Errors
///
/// Those of the host; [`HostError::BadProgram`] if a reservation of it is none.
pub fn run(host: &mut Runner<'_>, setup: &Setup, length: Span) -> Result<Outcome, HostError> {
    let reservation = |service| {
        let made = Reservation::new(service, WINDOW);
        made.map_err(|error| HostError::BadProgram(error.to_string()))
    };
    let mut program = Program::new(1);
    let marks = Marks {
        done: program.mark("job done"),
        lost: program.mark("job lost"),
    };
    let (queue, woken) = (program.semaphore(0), program.semaphore(0));
    let times = Times::steady(Span::from_millis(1), PERIOD);
    let level = Placement::Interrupt(InterruptLevel(5));
    let device = Device::new(times, SHORT, Some(queue));
    let began = device.began();
    program.add("interrupt", CPU, level, device);
    let hand_on = OnSignal::new(queue, SHORT, Some(woken));
    program.add("deferred call", CPU, Placement::Deferred, hand_on);
    let held = setup.way.held();
    let adapter = match setup.way {
        Way::Fixed(_) => None,
        Way::Adaptive(policy, _) => Some(Adapter::new(policy, settings(MOST), held)),
    };
    let load = (setup.load.clone(), setup.seed);
    let body = Driver::new((woken, marks), (times, began, PERIOD), load, adapter);
    let driver = program.push(confined("device", reservation(held)?, body));
    let other = if setup.other.is_zero() {
        None
    } else {
        let reservation = reservation(setup.other)?;
        Some(program.push(confined("other", reservation, Spinner)))
    };
    let normal = Placement::Thread(Priority::NORMAL);
    program.add("spinner", CPU, normal, Spinner);
    let record = host.run(program, length)?;
    let mut outcome = observe(&record, driver, marks, held);
    outcome.other_ppm = other.map(|other| {
        let ran = (record.end - record.start).as_nanos();
        let promised = u128::from(setup.other.as_nanos()) * u128::from(ran / WINDOW.as_nanos());
        let received = u128::from(record.usage[other.index()].service.as_nanos());
        (received * 1_000_000 / promised.max(1)) as u64
    });
    Ok(outcome)
}

fn observe(record: &RunRecord, driver: ActivityId, marks: Marks, held: Service) -> Outcome {
    let mut outcome = Outcome {
        held_first: Some(held),
        ..Outcome::default()
    };
    let mut reserved = Reserved {
        since: record.start,
        service: held,
        sum: 0,
    };
    for event in record
        .events
        .iter()
        .filter(|event| event.activity == driver)
    {
        let release = Instant::from_nanos(event.args[0]);
        match event.kind {
            EventKind::Mark(mark) if mark == marks.done => {
                outcome.jobs += 1;
                if event.at > release + PERIOD {
                    outcome.late += 1;
                    outcome.late_at.push(event.at - record.start);
                }
            }
            EventKind::Mark(mark) if mark == marks.lost => {
                outcome.jobs += 1;
                outcome.lost += 1;
            }
            EventKind::ReservationChange => {
                let service = Service::from_nanos(event.args[0]);
                outcome.changes.push((event.at - record.start, service));
            }
            EventKind::ReservationFrom => {
                if let Some((_, service)) = outcome.changes.last() {
                    let from = Instant::from_nanos(event.args[0]);
                    reserved.change(from.min(record.end), *service);
                }
            }
            EventKind::Refused => outcome.refused += 1,
            _ => {}
        }
    }
    outcome.mean_share_ppm = reserved.mean_ppm(record);
    outcome
}

/// What is reserved, over time.
struct Reserved {
    since: Instant,
    service: Service,
    /// Nanoseconds of service a window, times nanoseconds.
    sum: u128,
}

impl Reserved {
    /// From `at` on another service is held.
    fn change(&mut self, at: Instant, service: Service) {
        let at = at.max(self.since);
        let held = at.saturating_since(self.since).as_nanos();
        self.sum += u128::from(held) * u128::from(self.service.as_nanos());
        self.since = at;
        self.service = service;
    }

    fn mean_ppm(mut self, record: &RunRecord) -> u64 {
        self.change(record.end, self.service);
        let whole = u128::from((record.end - record.start).as_nanos());
        let whole = whole * u128::from(WINDOW.as_nanos());
        (self.sum * 1_000_000 / whole.max(1)) as u64
    }
}

/// A reservation that settled after a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settled {
    /// From the step to the last change before ten seconds without one; zero if there was none.
    pub after: Span,
    /// Late jobs from the step to then and one second more, and lost ones are not among them.
    pub late: u64,
    /// The most changes in any ten seconds after that.
    pub later_changes: u64,
}

/// So long without a change is calm.
const CALM: Span = Span::from_secs(10);

impl Outcome {
    /// How the reservation settled after a step at `from`, with a constant load until `to`.
    #[must_use]
    pub fn settled(&self, from: Span, to: Span) -> Settled {
        let changes = self.changes.iter().map(|(at, _)| *at);
        let changes: Vec<Span> = changes.filter(|at| *at >= from && *at < to).collect();
        let mut settled = from;
        for at in changes.iter().filter(|at| **at < from + CALM) {
            if *at < settled + CALM {
                settled = *at;
            }
        }
        let until = settled + Span::from_secs(1);
        Settled {
            after: settled.saturating_sub(from),
            late: self
                .late_at
                .iter()
                .filter(|at| **at >= from && **at < until)
                .count() as u64,
            later_changes: self.most_changes(settled + Span::from_nanos(1), to),
        }
    }

    /// The most changes in any ten seconds from `from` to before `to`.
    #[must_use]
    pub fn most_changes(&self, from: Span, to: Span) -> u64 {
        let changes = self.changes.iter().map(|(at, _)| *at);
        let changes: Vec<Span> = changes.filter(|at| *at >= from && *at < to).collect();
        let within = |at: &Span| {
            let after = changes.iter().filter(|other| *other >= at);
            after.filter(|other| **other < *at + CALM).count()
        };
        changes.iter().map(within).max().unwrap_or(0) as u64
    }

    /// How long after `from` and before `to` more was granted than was held then, or less: its first change that way.
    #[must_use]
    pub fn followed(&self, from: Span, to: Span, up: bool) -> Option<Span> {
        let before = self.changes.iter().rev().find(|(at, _)| *at < from);
        let held = before.map(|(_, service)| *service).or(self.held_first)?;
        let mut after = self
            .changes
            .iter()
            .filter(|(at, _)| *at >= from && *at < to);
        let that_way = |service: Service| if up { service > held } else { service < held };
        let first = after.find(|(_, service)| that_way(*service));
        first.map(|(at, _)| *at - from)
    }
}
