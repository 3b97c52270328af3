//! What would become of work before it runs: which test admits it, how long each job takes at most, how long jobs took in the twin, and what
//! would be admitted of what is refused.
//!
//! * [`set`]: of a task set from a file. [`scenario`]: of a whole scenario, as it is admitted. [`network`]: of the channels of a network of hosts.
//! * `render`: what the plans of both have in common, for people; the plans' own fields are for programs.

pub mod network;
mod render;
pub mod scenario;
pub mod set;

use laxity_model::analysis::supply::SupplyBound;
use laxity_model::analysis::{Doubt, Overflow, Response};
use laxity_model::{Reservation, Span};
use serde::Serialize;

/// The version of the format of plans.
pub const FILE_VERSION: u32 = 3;

/// Whether jobs are complete when they are due, as far as a plan can tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Deadline {
    /// All of them are.
    #[serde(rename = "met")]
    Met,
    /// The bound is beyond the deadline, a job was seen late, or what is asked for is more than there is, so that there is no bound.
    #[serde(rename = "can be missed")]
    CanBeMissed,
    /// There is no bound, for another reason; or it is beyond the deadline, and no more than a bound: it need not come to that.
    #[serde(rename = "not known")]
    NotKnown,
}

/// Something that recurs, and how long it takes each time.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Line {
    /// The name of a task or of an activity.
    pub name: String,
    /// On which of a program's processors; none in the lines of a task set, which stand by processor.
    pub processor: Option<u16>,
    /// The phase of the call for which this holds; none where it holds in all.
    pub phase: Option<String>,
    /// How a task is scheduled, in words: `12`, `deadline 2ms/8ms`, `other`.
    pub priority: Option<String>,
    /// C, what a job takes at most, in nanoseconds; none where it cannot be told.
    pub cost_ns: Option<u64>,
    /// T: jobs arrive at least so far apart, in nanoseconds.
    pub period_ns: Option<u64>,
    /// D: a job is due so long after it arrived, in nanoseconds; none where nobody says. Of a modem's call that delivers its output in pieces: the
    /// last of them.
    pub deadline_ns: Option<u64>,
    /// Whether that is met, and of a modem's call also what is due of its output before; none where nobody says when a job is due.
    pub deadline: Option<Deadline>,
    /// C/T in parts per million, rounded up.
    pub utilization_ppm: Option<u64>,
    /// From arrival (an interrupt that is raised, an instant that was asked for) to completion at most, in nanoseconds.
    pub bound_ns: Option<u64>,
    /// Why there is no bound.
    pub no_bound: Option<String>,
    /// On Linux: the same as the bound, if no event costs more than 99.9 % of those do not exceed that were measured. Left out of the JSON where nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usual_bound_ns: Option<u64>,
    /// Why a bound beyond the deadline, or more than there is, is no proof that the deadline can be missed. Left out of the JSON where it is, or is not needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_proof: Option<String>,
    /// Whether there is no bound because more is asked for than there is, so that jobs get later and later. Not in the JSON.
    #[serde(skip)]
    pub grows: bool,
    /// D less the bound, in nanoseconds; below zero if the bound is beyond the deadline. Of a modem's call in pieces this is what the last one has to spare: an
    /// earlier one may be late all the same, and then the deadline is not met.
    pub slack_ns: Option<i64>,
    /// The longest seen in the twin, in nanoseconds.
    pub observed_max_ns: Option<u64>,
    /// So many jobs were seen complete.
    pub observed_jobs: u64,
    /// With this C the set is admitted, all else as it is, its own reservation too (but no region longer than C), in nanoseconds.
    pub largest_cost_ns: Option<u64>,
    /// Whether with a nanosecond more it is not admitted (see [`ProcessorPlan::margins_by`](set::ProcessorPlan::margins_by)); else it was not
    /// searched to the end.
    pub largest_cost_is_exact: bool,
    /// The longest non-preemptive region of this task that all others tolerate, in nanoseconds, if every task can be preempted anywhere
    /// else; all tasks may have theirs at once.
    pub longest_region_ns: Option<u64>,
}

impl Line {
    /// Takes the bound from the arrival on, or why there is none.
    fn answer(&mut self, found: Result<Span, Reason>) {
        let due = self.deadline_ns.map(Span::from_nanos);
        let answer = match found {
            Ok(bound) => {
                self.bound_ns = Some(bound.as_nanos());
                self.slack_ns = due.map(|deadline| slack_ns(deadline, bound));
                match self.slack_ns {
                    Some(slack) if slack < 0 => Deadline::CanBeMissed,
                    _ => Deadline::Met,
                }
            }
            Err(why) => {
                self.no_bound = Some(why.words);
                self.grows = why.is_too_much;
                match why.is_too_much {
                    true => Deadline::CanBeMissed,
                    false => Deadline::NotKnown,
                }
            }
        };
        self.deadline = due.map(|_| answer);
        self.see(self.observed_max_ns, self.observed_jobs);
    }

    /// Takes it from who knows more of its jobs that they are in time, and within what, if that is known: a bound that could not tell is none any more.
    fn be_in_time(&mut self, within: Option<Span>) {
        if self.deadline == Some(Deadline::CanBeMissed) {
            (self.bound_ns, self.slack_ns, self.no_bound) = (None, None, None);
            (self.usual_bound_ns, self.grows) = (None, false);
            self.answer(within.ok_or_else(|| {
                "calls as close together as any two can be would be too much; as they come they are in time, which is said above".into()
            }));
        }
        self.deadline = Some(Deadline::Met);
    }

    /// Takes it that a test has proved of all jobs that they are in time, which says nothing of how long they take.
    fn be_met_by(&mut self, test: &str) {
        if self.deadline == Some(Deadline::NotKnown) {
            self.deadline = Some(Deadline::Met);
            let why = self.no_bound.take();
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            self.no_bound = Some(format!(
                "its deadline is met ({test}); how long before is not computed{why}"
            ));
        }
    }

    /// Takes what was seen: one job that was late is enough.
    fn see(&mut self, longest_ns: Option<u64>, jobs: u64) {
        (self.observed_max_ns, self.observed_jobs) = (longest_ns, jobs);
        if self.seen_late().is_some() {
            self.deadline = Some(Deadline::CanBeMissed);
            self.no_proof = None;
        }
    }

    /// By how much a job was seen to miss its deadline, if one was.
    fn seen_late(&self) -> Option<Span> {
        let late = self.observed_max_ns?.checked_sub(self.deadline_ns?)?;
        (late > 0).then_some(Span::from_nanos(late))
    }

    /// Its slack as a [part](relative) of its deadline; of who gets later and later less than of anybody else. `None` if it has no bound.
    fn relative_slack(&self) -> Option<i128> {
        match self.slack_ns {
            Some(slack) => Some(relative(slack, self.deadline_ns?)),
            None => self.is_too_much().then_some(i128::MIN),
        }
    }

    /// Has jobs get later and later only where that is proved; else it is said what was supposed that need not be so.
    fn grow_if(&mut self, is_proved: bool, supposed: &str) {
        if self.grows && !is_proved {
            let why = self.no_bound.take();
            self.no_bound = why.map(|why| format!("{why}, if {supposed}"));
            self.grows = false;
        }
    }

    /// Whether it is sure that jobs can get later and later, since more is asked for than there is.
    fn is_too_much(&self) -> bool {
        self.grows && self.deadline == Some(Deadline::CanBeMissed)
    }

    /// Whether the twin showed what the bound rules out, so that one of the two is wrong.
    pub fn is_contradicted(&self) -> bool {
        let both = self.observed_max_ns.zip(self.bound_ns);
        both.is_some_and(|(seen, bound)| seen > bound)
    }
}

/// Who has the least slack of the time until it is due, as a part of that, or is the furthest behind, and why.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Bottleneck {
    /// Whose deadline.
    pub name: String,
    /// In which phase of its call, where there is one.
    pub phase: Option<String>,
    /// Who takes most of its time: another, or itself; none if it mostly waits for what is nobody's work. Where one that goes first never stops, that one.
    pub contributor: Option<String>,
    /// Whether that one never stops, and takes all that those above it leave. Left out of the JSON if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub never_stops: bool,
    /// For what it then waits, in words.
    pub waits_for: Option<&'static str>,
    /// How much of it, in nanoseconds.
    pub contribution_ns: u64,
}

impl Bottleneck {
    /// The same, or that it waits for something where that takes longer than anybody.
    fn or_wait(self, waits_for: &'static str, waits_ns: u64) -> Self {
        if waits_ns <= self.contribution_ns {
            return self;
        }
        Self {
            contributor: None,
            waits_for: Some(waits_for),
            contribution_ns: waits_ns,
            ..self
        }
    }
}

/// For how long of a window a supply need not serve, in nanoseconds.
fn unserved_ns(supply: &dyn SupplyBound, window: Span) -> u64 {
    let served = supply.least_service(window).as_nanos();
    window.as_nanos().saturating_sub(served)
}

/// A reservation that would do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Proposal {
    /// X, in nanoseconds.
    pub service_ns: u64,
    /// Y, in nanoseconds.
    pub period_ns: u64,
}

impl Proposal {
    fn of(reservation: Reservation) -> Self {
        Self {
            service_ns: reservation.service().as_nanos(),
            period_ns: reservation.period().as_nanos(),
        }
    }
}

/// Why there is no bound, in words.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Reason {
    words: String,
    /// Whether more is asked for than there is: jobs get later and later then, where otherwise nothing is known of them.
    is_too_much: bool,
}

impl Reason {
    /// That more is asked for than there is.
    fn too_much(words: impl Into<String>) -> Self {
        Self {
            words: words.into(),
            is_too_much: true,
        }
    }
}

impl<W: Into<String>> From<W> for Reason {
    fn from(words: W) -> Self {
        Self {
            words: words.into(),
            is_too_much: false,
        }
    }
}

/// Why there is no bound.
enum NoBound {
    /// A number is too large to be reckoned with, so that there is no plan at all.
    Overflow(Overflow),
    /// Nothing can be said of this one.
    Because(Reason),
}

impl From<Overflow> for NoBound {
    fn from(overflow: Overflow) -> Self {
        Self::Overflow(overflow)
    }
}

impl From<Reason> for NoBound {
    fn from(why: Reason) -> Self {
        Self::Because(why)
    }
}

impl From<String> for NoBound {
    fn from(why: String) -> Self {
        Self::Because(why.into())
    }
}

impl From<&str> for NoBound {
    fn from(why: &str) -> Self {
        Self::Because(why.into())
    }
}

impl NoBound {
    /// Only an overflow is an error of the plan.
    fn settle<T>(found: Result<T, Self>) -> Result<Result<T, Reason>, Overflow> {
        match found {
            Ok(found) => Ok(Ok(found)),
            Err(Self::Because(why)) => Ok(Err(why)),
            Err(Self::Overflow(overflow)) => Err(overflow),
        }
    }
}

/// From the arrival to completion, or why that has no bound.
fn bound(response: Response) -> Result<Span, Reason> {
    match response {
        Response::Bounded(bound) => Ok(bound.from_arrival),
        Response::Unbounded => Err(Reason::too_much(
            "it and what goes first ask for more than there is",
        )),
        Response::Unknown(Doubt::TooLong) => {
            Err("the busy window is too long to be searched".into())
        }
        Response::Unknown(_) => Err("the analysis is not made for it".into()),
    }
}

/// How soon the kernel, which looks every `tick`, sees that a budget is used up.
fn enforced(tick: Span) -> String {
    if tick.is_zero() {
        return "enforced at once".into();
    }
    format!("enforced every {tick}")
}

/// A slack as a part of the deadline, in parts of 10⁻⁹, so that those of tasks that come often and seldom compare.
fn relative(slack_ns: i64, deadline_ns: u64) -> i128 {
    i128::from(slack_ns) * 1_000_000_000 / i128::from(deadline_ns.max(1))
}

/// What is left of a deadline; the most or least there is where it does not fit.
fn slack_ns(deadline: Span, taken: Span) -> i64 {
    let slack = i128::from(deadline.as_nanos()) - i128::from(taken.as_nanos());
    let limit = if slack < 0 { i64::MIN } else { i64::MAX };
    i64::try_from(slack).unwrap_or(limit)
}
