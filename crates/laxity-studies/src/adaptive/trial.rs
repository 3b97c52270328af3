//! A device under a load that changes, and what came of it.

use std::sync::Arc;

use laxity::observe::Disturbances;
use laxity_model::adaptive::{Adapter, Policy, Settings};
use laxity_model::verify::contract::{is_too_much, share_ppm};
use laxity_model::{
    ActivityId, EventKind, HostError, Instant, Placement, Priority, ProcessorId, Program,
    Reservation, RunRecord, Service, Span,
};

use super::driver::{BUFFERED, Load, Marks, driver};
use laxity_lab::bench::Runner;
use laxity_lab::bench::bodies::{HandsOn, confined};
use laxity_lab::runner::tasks::{Spinner, Times};
use laxity_lab::workload::Draws;

const CPU: ProcessorId = ProcessorId(0);
/// The device's period and deadline: the study's modem.
pub const PERIOD: Span = Span::from_micros(12_500);
/// The window of its reservation.
pub const WINDOW: Span = Span::from_millis(8);
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
    pub const fn held(self) -> Service {
        match self {
            Self::Fixed(service) | Self::Adaptive(_, service) => service,
        }
    }

    /// Its name in tables.
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
    /// When it began.
    pub began: Instant,
    /// When the machine stood still.
    pub halts: Disturbances,
}

/// What the adaptation goes by.
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
    let times = Times::steady(Span::from_millis(1), PERIOD);
    let device = HandsOn::install(&mut program, times);
    let held = setup.way.held();
    let adapter = match setup.way {
        Way::Fixed(_) => None,
        Way::Adaptive(policy, _) => Some(Adapter::new(policy, settings(MOST), held)),
    };
    let load = (setup.load.clone(), Draws::new(setup.seed, 0));
    let began = Arc::clone(&device.began);
    let body = driver(device, marks, times, load, adapter);
    let driver = program.push(confined("device", reservation(held)?, body));
    let mut other = None;
    if !setup.other.is_zero() {
        let reservation = reservation(setup.other)?;
        other = Some(program.push(confined("other", reservation, Spinner)));
    }
    let normal = Placement::Thread(Priority::NORMAL);
    program.add("spinner", CPU, normal, Spinner);
    let record = host.run(program, length)?;
    let mut outcome = observe(&record, driver, marks, held);
    outcome.end(record.end, times, *began.get().unwrap_or(&record.start));
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
        began: record.start,
        halts: Disturbances::of(record, &[driver]),
        ..Outcome::default()
    };
    // From when on how much is held.
    let mut holds = vec![(record.start, held)];
    let events = record.events.iter();
    for event in events.filter(|event| event.activity == driver) {
        let release = Instant::from_nanos(event.args[0]);
        match event.kind {
            EventKind::Mark(mark) if mark == marks.done => {
                outcome.jobs += 1;
                outcome.late += u64::from(event.at > release + PERIOD);
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
                    let from = Instant::from_nanos(event.args[0]).min(record.end);
                    let since = holds.last().map_or(record.start, |(since, _)| *since);
                    holds.push((from.max(since), *service));
                }
            }
            EventKind::Refused => outcome.refused += 1,
            _ => {}
        }
    }
    holds.push((record.end, Service::ZERO));
    // Nanoseconds of service a window, times nanoseconds.
    let held = holds.windows(2).map(|pair| {
        let [(from, service), (to, _)] = [pair[0], pair[1]];
        u128::from((to - from).as_nanos()) * u128::from(service.as_nanos())
    });
    let ran = u128::from((record.end - record.start).as_nanos());
    let whole = ran * u128::from(WINDOW.as_nanos());
    outcome.mean_share_ppm = (held.sum::<u128>() * 1_000_000 / whole.max(1)) as u64;
    outcome
}

/// A reservation that settled after a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settled {
    /// From the step to the last change before ten seconds without one, or before the end; `None` if it was not changed in the first ten.
    pub after: Option<Span>,
    /// The most changes in any ten seconds after that.
    pub later_changes: u64,
}

/// So long without a change is calm.
const CALM: Span = Span::from_secs(10);

impl Outcome {
    /// Counts the jobs that the run's end found too late and not done, of a device that began at `origin`: they are done in their order.
    pub(super) fn end(&mut self, end: Instant, times: Times, origin: Instant) {
        let left = (self.jobs..).map(|number| times.at(origin, number));
        for release in left.take_while(|release| *release + PERIOD < end) {
            self.jobs += 1;
            match release + BUFFERED < end {
                true => self.lost += 1,
                false => self.late += 1,
            }
        }
    }

    /// When it was changed, from `from` to before `to`, and to how much service in each window.
    fn changes(&self, from: Span, to: Span) -> impl Iterator<Item = &(Span, Service)> {
        let within = from..to;
        self.changes
            .iter()
            .filter(move |(at, _)| within.contains(at))
    }

    /// How the reservation settled after a step at `from`, with a constant load until `to`.
    pub fn settled(&self, from: Span, to: Span) -> Settled {
        let mut settled = None;
        for (at, _) in self.changes(from, to) {
            if *at >= settled.unwrap_or(from) + CALM {
                break;
            }
            settled = Some(*at);
        }
        let later = settled.map_or(from, |at| at + Span::from_nanos(1));
        Settled {
            after: settled.map(|at| at - from),
            later_changes: self.most_changes(later, to),
        }
    }

    /// The most changes in any ten seconds from `from` to before `to`.
    pub fn most_changes(&self, from: Span, to: Span) -> u64 {
        let after = |at: Span| self.changes(at, to.min(at + CALM)).count() as u64;
        let changes = self.changes(from, to).map(|(at, _)| after(*at));
        changes.max().unwrap_or(0)
    }

    /// Whether the machine went on from `from` to `to`, but for so small a share of it as leaves a run judged.
    pub fn is_undisturbed(&self, from: Span, to: Span) -> bool {
        let within = self.halts.within(self.began + from, self.began + to);
        let still: u64 = within.map(Span::as_nanos).sum();
        !is_too_much(share_ppm(still, (to - from).as_nanos()))
    }

    /// How long after `from` and before `to` more was granted than was held then, or less: its first change that way.
    pub fn followed(&self, from: Span, to: Span, up: bool) -> Option<Span> {
        let before = self.changes(Span::ZERO, from).last();
        let held = before.map(|(_, service)| *service).or(self.held_first)?;
        let that_way = |service: Service| if up { service > held } else { service < held };
        let mut after = self.changes(from, to);
        let first = after.find(|(_, service)| that_way(*service));
        first.map(|(at, _)| *at - from)
    }
}
