//! Reservations that follow the load: a state machine that is told of each job, and says what to ask for (Jones, Saroiu §5.4: a program "can dynamically
//! measure the amount of time actually used", or adjust "according to whether the computation was able to finish on time", or both).
//!
//! # From run times
//!
//! The reservation is made for a *design* run time *D*. With *m* the longest run time seen:
//!
//! * a job that takes more than *D* sets *D* = 5/4 *m* at once;
//! * *D* is lowered to 5/4 *m*, *m* now the longest of the last two full half seconds, if that is below 3/4 *D*.
//!
//! Why these numbers: let run times vary by ±10 % around *C*, so *m* lies between 0.9 *C* and 1.1 *C*, and any *D* that was set at this load
//! between 1.125 *C* and 1.375 *C*. *Nothing is raised again*: no job takes more than 1.1 *C* < 1.125 *C*. *Nothing is lowered again*:
//! 5/4 · 0.9 *C* = 1.125 *C* > 1.031 *C* = 3/4 · 1.375 *C*. *A load that doubles is followed*: its jobs take 1.8 *C* at least,
//! more than 1.375 *C*; by the first of them. *A load that halves is followed*: 5/4 · 1.1 · *C*/2 = 0.688 *C* < 0.844 *C* = 3/4 · 1.125 *C*;
//! after three stretches of half a second, each of which ends with a job. So the answer to a step comes within 1.5 s and three jobs, once, and
//! after it a constant load sees no change.
//!
//! # From whether jobs were in time
//!
//! A late job raises the service by half, no more than once in half a second, so that what had piled up can drain. In-time jobs say nothing about how much less would do: until a job is
//! late, a device whose load halved looks like one whose load did not. So no policy of this kind can lower within 2 s of a step and stay calm at constant
//! load. What is left is to try: an eighth less after 20 s in time, undone if a job is late; each try that fails doubles the wait, up to
//! 320 s. A try and its undoing come close together, and where late jobs are rare what was returned to may prove too little later; on average it
//! is one change in 10 s at most, and fewer and fewer. Each failed try costs a late job.
//!
//! # From both
//!
//! Run times say how much is used, and late jobs that it was not enough: something else takes time out of the reservation. Each late job adds a quarter to the design, up to twice
//! of it, no more than once in half a second; what was added is taken back in such tries, a quarter each.
//!
//! # Admission
//!
//! Nothing above [`Settings::most`] is ever asked for. A refusal leaves what is held; the next request comes after 1 s at the earliest, then 2, up to 16 s, and asks for half of
//! what was missing, a quarter, an eighth.

mod size;

use crate::{Instant, Reservation, ReservationError, Service, Span};
use size::times;

/// What the adaptation goes by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Policy {
    /// The observed run times.
    RunTime,
    /// Whether jobs were in time.
    InTime,
    /// Both.
    Both,
}

impl Policy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::RunTime, Self::InTime, Self::Both];

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RunTime => "run time",
            Self::InTime => "in time",
            Self::Both => "both",
        }
    }
}

/// What is known of the device, and what may be asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// A job every so often; no longer than 100 ms for loads to be followed within 2 s.
    pub period: Span,
    /// Due so long after its release; no longer than the period, or jobs may have to wait for each other.
    pub deadline: Span,
    /// *Y* of the reservation, which stays; more than zero.
    pub window: Span,
    /// *X* is a multiple of this.
    pub granularity: Service,
    /// The most *X* that may be asked for.
    pub most: Service,
}

/// What became of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Observation {
    /// Processor time it took.
    pub run: Service,
    /// Whether it was complete by its deadline.
    pub in_time: bool,
}

/// Run times are looked at in stretches of this length.
const STRETCH: Span = Span::from_millis(500);
/// After a change, late jobs say nothing for so long: what had piled up drains.
const DRAIN: Span = Span::from_millis(500);
/// The first try to do with less comes after so long in time.
const FIRST_TRY: Span = Span::from_secs(20);
/// Failed tries double the wait, up to so many times the first.
const LONGEST_TRY: u32 = 16;
/// The wait after a first refusal.
const FIRST_REFUSAL: Span = Span::from_secs(1);
/// Further refusals double the wait, up to so many times the first.
const LONGEST_REFUSAL: u32 = 16;
/// Late jobs add this many eighths to the design each.
const ADDED_EIGHTHS: u64 = 2;
/// Late jobs add no more than this in all.
const MOST_EIGHTHS: u64 = 8;

/// A request that has not been answered.
#[derive(Clone, Copy, Debug)]
struct Pending {
    service: Service,
    design: Service,
    /// Whether it is all that is wanted.
    full: bool,
}

/// What was held before a try, and the eighths of the design in it that late jobs had added.
type Before = (Service, u64);

impl Pending {
    const fn all(service: Service, design: Service) -> Self {
        Self {
            service,
            design,
            full: true,
        }
    }
}

/// A reservation that follows its holder's load.
///
/// ```
/// use laxity_model::adaptive::{Adapter, Observation, Policy, Settings};
/// use laxity_model::{Instant, Reservation, Service, Span};
///
/// let settings = Settings {
///     period: Span::from_micros(12_500),
///     deadline: Span::from_micros(12_500),
///     window: Span::from_millis(8),
///     granularity: Service::from_micros(100),
///     most: Service::from_millis(6),
/// };
/// let mut adapter = Adapter::new(Policy::RunTime, settings, Service::from_millis(2));
/// let job = |run_us| Observation { run: Service::from_micros(run_us), in_time: true };
/// let now = Instant::from_secs(1);
/// assert_eq!(adapter.observe(now, job(1_840)), None);
/// // Twice the work: 4.6 ms are provided for, of which 3.5 ms lie before the next window.
/// let wanted = adapter.observe(now, job(3_680));
/// assert_eq!(wanted, Reservation::new(Service::from_micros(4_100), Span::from_millis(8)).ok());
/// adapter.granted(now);
/// assert_eq!(adapter.held(), Service::from_micros(4_100));
/// ```
#[derive(Clone, Debug)]
pub struct Adapter {
    policy: Policy,
    settings: Settings,
    held: Service,
    design: Service,
    pending: Option<Pending>,
    /// The longest run time of the stretch before the current one, of the current one, and when that began.
    before: Option<Service>,
    current: Option<Service>,
    stretch_from: Option<Instant>,
    /// Late jobs count from here on.
    calm_from: Instant,
    /// Eighths of the design that late jobs have added.
    added: u64,
    try_at: Option<Instant>,
    tries: u32,
    /// A try that is asked for and not granted: the service and the eighths before it.
    attempt: Option<Before>,
    /// What to return to if jobs are late before the next try: one has been granted.
    trying: Option<Before>,
    /// A try has failed: this was held before it, and is asked for until it is held again.
    undo: Option<Service>,
    ask_from: Instant,
    refusals: u32,
}

impl Adapter {
    /// For a holder of `held` in every [`window`](Settings::window).
    #[must_use]
    pub fn new(policy: Policy, settings: Settings, held: Service) -> Self {
        Self {
            policy,
            settings,
            held,
            design: settings.capacity(held),
            pending: None,
            before: None,
            current: None,
            stretch_from: None,
            calm_from: Instant::ZERO,
            added: 0,
            try_at: None,
            tries: 0,
            attempt: None,
            trying: None,
            undo: None,
            ask_from: Instant::ZERO,
            refusals: 0,
        }
    }

    /// The service that is held in every window.
    pub const fn held(&self) -> Service {
        self.held
    }

    /// A job is complete: the reservation to ask for now, if another one is wanted. The answer is to be told by
    /// [`granted`](Self::granted) or [`refused`](Self::refused); until then nothing else is asked for. O(1).
    pub fn observe(&mut self, now: Instant, job: Observation) -> Option<Reservation> {
        let full = self.note(now, job.run);
        let late = !job.in_time && now >= self.calm_from;
        let wanted = match self.policy {
            Policy::RunTime => self.by_run_time(job.run, full),
            Policy::InTime => self.by_timeliness(now, late),
            Policy::Both => {
                // A job that took longer than provided for says so itself.
                self.follow_timeliness(now, late && job.run <= self.design);
                self.by_run_time(job.run, full)
            }
        }?;
        self.ask(now, wanted)
    }

    /// What was asked for is held from `now` on.
    pub fn granted(&mut self, now: Instant) {
        if let Some(pending) = self.pending.take() {
            let less = pending.service < self.held;
            self.trying = self.attempt.take().filter(|_| less).or(self.trying);
            self.held = pending.service;
            self.undo = self.undo.filter(|before| *before > self.held);
            self.calm_from = now + DRAIN;
            if pending.full {
                self.design = pending.design;
                self.refusals = 0;
            } else {
                self.design = self.settings.capacity(pending.service);
                self.wait_to_ask(now);
            }
        }
    }

    /// What was asked for was refused: what was held is held.
    pub fn refused(&mut self, now: Instant) {
        if self.pending.take().is_some() {
            self.wait_to_ask(now);
            self.refusals += 1;
            if let Some((_, added)) = self.attempt.take() {
                self.added = added;
            }
        }
    }

    fn wait_to_ask(&mut self, now: Instant) {
        let doubled = self.refusals.min(LONGEST_REFUSAL.ilog2());
        self.ask_from = now + times(FIRST_REFUSAL, 1 << doubled);
    }

    /// Takes the run time into account. Returns the longest of the last two full stretches when the second of them has just ended.
    fn note(&mut self, now: Instant, run: Service) -> Option<Service> {
        let from = *self.stretch_from.get_or_insert(now);
        let mut full = None;
        if now.saturating_since(from) >= STRETCH {
            full = self.before.zip(self.current).map(|(a, b)| a.max(b));
            // A stretch in which nothing was seen is none.
            let missed = now.saturating_since(from) >= STRETCH * 2;
            self.before = self.current.take().filter(|_| !missed);
            full = full.filter(|_| !missed);
            self.stretch_from = Some(now);
        }
        self.current = self.current.max(Some(run));
        full
    }

    /// The design that run times ask for, and the service for it.
    fn by_run_time(&mut self, run: Service, full: Option<Service>) -> Option<Pending> {
        let design = if run > self.design {
            let longest = self.current.max(Some(run)).unwrap_or(run);
            with_margin(longest)
        } else {
            full.map(with_margin)
                .filter(|wanted| *wanted * 4 < self.design * 3)
                .unwrap_or(self.design)
        };
        let service = self.settings.needed(design / 8 * (8 + self.added));
        let adds = self.added > 0 || self.attempt.is_some();
        (design != self.design || adds).then_some(Pending::all(service, design))
    }

    /// What timeliness alone asks for.
    fn by_timeliness(&mut self, now: Instant, late: bool) -> Option<Pending> {
        let service = if late {
            let undone = self.give_up_trying(now);
            self.undo = undone.map(|(before, _)| before).or(self.undo);
            let raised = Service::from_nanos(self.held.as_nanos().saturating_mul(3) / 2);
            self.undo.unwrap_or_else(|| self.settings.fit(raised))
        } else if let Some(before) = self.undo {
            before
        } else if self.is_time_to_try(now) {
            self.attempt = Some((self.held, 0));
            self.settings.fit_below(self.held / 8 * 7)
        } else {
            return None;
        };
        Some(Pending::all(service, self.settings.capacity(service)))
    }

    /// What late jobs add to what run times ask for.
    fn follow_timeliness(&mut self, now: Instant, late: bool) {
        if late {
            let undone = self.give_up_trying(now);
            // What was not granted is no try that has failed.
            let added = self.attempt.take().map_or(self.added, |(_, added)| added);
            let raised = (added + ADDED_EIGHTHS).min(MOST_EIGHTHS);
            self.added = undone.map_or(raised, |(_, before)| before);
            self.calm_from = now + DRAIN;
        } else if self.added > 0 && self.is_time_to_try(now) {
            self.attempt = Some((self.held, self.added));
            self.added = self.added.saturating_sub(ADDED_EIGHTHS);
        }
    }

    /// Jobs are late: the next try comes later, and one that is under way has failed.
    fn give_up_trying(&mut self, now: Instant) -> Option<Before> {
        let undone = self.trying.take();
        if undone.is_some() {
            self.tries += 1;
        }
        self.try_at = Some(now + self.wait_before_try());
        undone
    }

    fn wait_before_try(&self) -> Span {
        times(FIRST_TRY, 1 << self.tries.min(LONGEST_TRY.ilog2()))
    }

    fn is_time_to_try(&mut self, now: Instant) -> bool {
        let first = now + self.wait_before_try();
        let may_ask = self.pending.is_none() && now >= self.ask_from;
        if *self.try_at.get_or_insert(first) > now || !may_ask {
            return false;
        }
        if self.trying.take().is_some() {
            self.tries = 0;
        }
        self.try_at = Some(now + self.wait_before_try());
        true
    }

    /// Asks, if it is another reservation than the one held, and not too soon after a refusal.
    fn ask(&mut self, now: Instant, wanted: Pending) -> Option<Reservation> {
        let most = self.settings.fit(self.settings.most);
        let mut service = wanted.service.min(most);
        if service > self.held {
            // Refused so often: so much smaller a step.
            let step = service.saturating_sub(self.held);
            service = self.held + step / (1 << self.refusals.min(3));
            service = self.settings.fit_below(service).max(self.held);
        }
        if service == self.held {
            if self.refusals == 0 {
                self.design = wanted.design;
            }
            // Too little to make a difference: no try, and nothing to return to.
            (self.attempt, self.undo) = (None, None);
            return None;
        }
        if self.pending.is_some() || now < self.ask_from {
            return None;
        }
        let reservation: Result<_, ReservationError> =
            Reservation::new(service, self.settings.window);
        let reservation = reservation.ok()?;
        let full = service == wanted.service.min(most);
        self.pending = Some(Pending {
            service,
            full,
            ..wanted
        });
        Some(reservation)
    }
}

/// What is provided for such a run time.
fn with_margin(run: Service) -> Service {
    Service::from_nanos(run.as_nanos().saturating_add(run.as_nanos() / 4))
}
