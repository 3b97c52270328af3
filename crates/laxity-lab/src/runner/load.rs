//! How often a device's work is repeated, so that it takes the share of this machine that it is said to take.
//!
//! A [`Calibration`] says which count of repeats to measure next, takes what was measured, and ends with a count whose load was measured
//! and lies within the tolerance (where the machine is fast and slow by turns: by the mean of what was tried), or with why there is none. It goes by the service that a block takes, not by the share of a stretch of time: a
//! driver that is kept from its processor drops blocks, and its share says nothing.

use std::fmt;

use laxity_model::base::histogram::Histogram;
use laxity_model::base::number::median;
use laxity_model::request::Strangers;
use laxity_model::verify::contract::RunFacts;
use laxity_model::{Host, HostError, ProcessorId, RunRecord, Service, Span};

use crate::layout::percent;
use crate::scenario::units::Load;

/// So many measurements of few repeats, and of about as many as are needed; their medians count.
const MEASUREMENTS: usize = 3;
/// A count is tried, and corrected by what it gave, so often at most.
const CHECKS: usize = 6;
/// If none of them hits, the mean of their speeds tells, unless the slowest took more than so many percent of what the fastest took.
const MOST_MOVED: u64 = 150;
/// So many measurements may be of no use.
const MOST_REJECTED: usize = 8;
/// So long it is seen beforehand whether those who outrank whoever is to be measured do anything.
const GLANCE: Span = Span::from_millis(100);

/// So many calls are measured for a proposal, undisturbed; at least.
pub const CALLS: u64 = 1_000;
/// And no fewer than one for so many that a run makes: what comes once in a million is not seen in a thousand.
const OF_A_RUN: u64 = 32;
/// In so many runs at most.
pub const PILOTS: usize = 4;
/// For it the card's clock goes up to so many times as fast as the host's, as long as the calls leave more than half of the processor free: what a call
/// takes is the same.
const FASTEST: u64 = 3;

/// How fast the card's clock goes in a pilot of a load of this share, in parts per million.
#[must_use]
pub fn pace(share_ppm: u64) -> u64 {
    (500_000 / share_ppm.max(1)).clamp(1, FASTEST)
}

/// By how much such a clock is faster than the host's, in parts per billion.
#[must_use]
pub const fn fast_ppb(pace: u64) -> i32 {
    ((pace - 1) * 1_000_000_000) as i32
}

/// How many calls are measured for a proposal, of a device with a block of work every so often, for runs as long as this.
#[must_use]
pub fn calls_for(run: Span, block: Span) -> u64 {
    CALLS.max(run / block / OF_A_RUN)
}

/// How long a pilot of so many calls is, for a device with a block of work every so often: long enough for all of them, and some to spare.
#[must_use]
pub fn pilot(calls: u64, block: Span, pace: u64) -> Span {
    block * (calls + calls / 20) / pace
}

/// Why nothing can be proposed, after so few calls of whoever it is, of those that were `wanted`; and what was in the way at last.
#[must_use]
pub fn too_few(whose: &str, (calls, wanted): (u64, u64), last: Option<&Trouble>) -> String {
    let why = last.map_or_else(String::new, |last| format!("; in the last run {last}"));
    format!(
        "what to propose to {whose}: only {calls} of {wanted} calls were measured undisturbed{why}"
    )
}

/// Why a measurement is of no use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// Others on the processor outrank whoever is measured.
    Strangers(Vec<String>),
    /// The machine itself stood still for this share of the time, in parts per million.
    Disturbed(u32),
    /// The driver lost so many samples.
    Lossy(u64),
    /// What is outside the machine came too late for so many samples.
    Undelivered(u64),
    /// So many events did not fit.
    EventsLost(u64),
    /// So few blocks were processed of those that came.
    TooFew {
        /// Those that were, undisturbed.
        processed: u64,
        /// All that came.
        of: u64,
    },
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Strangers(names) => {
                let plural = if names.len() == 1 { "s" } else { "" };
                write!(f, "{} outrank{plural} it", names.join(" and "))
            }
            Self::Disturbed(ppm) => {
                let share = percent(u64::from(*ppm));
                write!(
                    f,
                    "the machine itself stood still for {share} % of the time"
                )
            }
            Self::Lossy(samples) => write!(
                f,
                "it lost {samples} samples: it was kept from its processor, or is too slow for so much work"
            ),
            Self::Undelivered(samples) => write!(
                f,
                "the far end, on another processor, came too late for {samples} samples"
            ),
            Self::EventsLost(events) => write!(f, "{events} events were lost"),
            Self::TooFew { processed, of } => {
                write!(
                    f,
                    "only {processed} of {of} blocks were processed undisturbed"
                )
            }
        }
    }
}

/// What a measurement showed: the service of a block on average, or why it shows nothing.
pub type Measured = Result<Service, Trouble>;

/// What a run showed of the only driver in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counted {
    /// The service of each call that lost nothing and that nothing disturbed.
    pub calls: Histogram,
    /// Samples that the driver lost.
    pub lost: u64,
    /// Samples for which what is outside the machine came too late.
    pub undelivered: u64,
}

impl Counted {
    /// What the run says of the service of a block, of which one comes every so much.
    ///
    /// # Errors
    ///
    /// The [`Trouble`], if it says nothing.
    pub fn measured(&self, record: &RunRecord, block: Span) -> Measured {
        let facts = RunFacts::of([record]);
        let (processed, of) = (
            self.calls.count(),
            record.end.saturating_since(record.start) / block,
        );
        let (all_served, enough) = (self.undelivered == 0 && self.lost == 0, processed * 2 >= of);
        match self.calls.mean() {
            _ if facts.events_lost > 0 => Err(Trouble::EventsLost(facts.events_lost)),
            // What a halt touched is not among the calls, so that the others tell as much as ever, if they are most of them.
            Some(mean) if all_served && enough => Ok(Service::from_nanos(mean)),
            _ if facts.is_disturbed() => Err(Trouble::Disturbed(facts.disturbed_ppm)),
            _ if self.undelivered > 0 => Err(Trouble::Undelivered(self.undelivered)),
            _ if self.lost > 0 => Err(Trouble::Lossy(self.lost)),
            _ => Err(Trouble::TooFew { processed, of }),
        }
    }
}

/// Those who outrank a slot on a processor of a program, and are not ours. That they cannot be seen is for the grades to say: what they do is measured.
///
/// # Errors
///
/// The host's.
pub fn strangers(
    host: &mut dyn Host,
    processors: u16,
    on: ProcessorId,
) -> Result<Strangers, HostError> {
    let mut here = host.supply(processors)?.processors.into_iter();
    let here = here.find(|supply| supply.processor == on);
    Ok(here.map_or_else(Strangers::default, |here| here.outranking))
}

/// Measures something that takes so long, unless strangers are there who do anything shortly before it, or come or do anything meanwhile.
///
/// # Errors
///
/// The host's.
pub fn beside_nobody<H, T>(
    host: &mut H,
    length: Span,
    strangers: impl Fn(&mut H) -> Result<Strangers, HostError>,
    measure: impl FnOnce(&mut H) -> Result<T, HostError>,
) -> Result<Result<T, Trouble>, HostError> {
    let active = |host: &mut H, before: &Strangers| {
        let after = strangers(host)?;
        let names: Vec<String> = after.active_since(before).map(str::to_owned).collect();
        Ok::<_, HostError>((!names.is_empty()).then_some(Trouble::Strangers(names)))
    };
    let (begun, before) = (laxity::now(), strangers(host)?);
    if !before.seen.is_empty() {
        laxity::sleep_until(begun + GLANCE.min(length));
        if let Some(trouble) = active(host, &before)? {
            // Nothing is run beside them, as it might never begin; by the next time they may be gone.
            laxity::sleep_until(begun + length);
            return Ok(Err(trouble));
        }
    }
    let measured = measure(host)?;
    Ok(active(host, &before)?.map_or(Ok(measured), Err))
}

/// What is to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Measure so many repeats.
    Measure(usize),
    /// All is known.
    Found(Found),
}

/// The count that was found, and the load it was measured to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// How often the work is repeated besides the first time.
    pub repeats: usize,
    /// The share of a processor, in parts per million; of several speeds, at their mean.
    pub share_ppm: u64,
}

impl Found {
    /// What is to be known of it, where it is more than was wanted.
    #[must_use]
    pub fn beyond(&self, wanted: &Load) -> Option<String> {
        wanted.beside(self.share_ppm).is_gt().then(|| {
            let least = percent(self.share_ppm);
            format!("the work takes {least} % of this processor without any repeats, more than the {wanted} that are asked for")
        })
    }
}

/// Why there is no count.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoCount {
    /// The machine was not left alone, or its speed moves too much.
    #[error("{0}")]
    Inconclusive(String),
    /// No count makes this load here.
    #[error("{0}")]
    Impossible(String),
}

/// A load that was tried: how often the work was repeated, and the share of a processor that it took, in parts per million.
type Tried = (usize, u64);

/// A search for the count of repeats that is a load.
#[derive(Clone, Debug)]
pub struct Calibration {
    wanted: Load,
    block: Span,
    most: usize,
    few: usize,
    of_few: Vec<u64>,
    of_many: Vec<u64>,
    checks: Vec<Tried>,
    rejected: Vec<Trouble>,
}

impl Calibration {
    /// It ends after so many measurements.
    pub const MOST: usize = 2 * MEASUREMENTS + CHECKS + MOST_REJECTED + 1;

    /// For this load, of a device with a block of work every so often; begins with so `few` repeats, and tries no more than `most`.
    #[must_use]
    pub fn new(wanted: Load, block: Span, few: usize, most: usize) -> Self {
        Self {
            wanted,
            block,
            most,
            few,
            of_few: Vec::new(),
            of_many: Vec::new(),
            checks: Vec::new(),
            rejected: Vec::new(),
        }
    }

    /// What is to be done now.
    ///
    /// # Errors
    ///
    /// [`NoCount`], once it is clear.
    pub fn next(&self) -> Result<Next, NoCount> {
        if self.rejected.len() > MOST_REJECTED
            && let Some(last) = self.rejected.last()
        {
            return Err(NoCount::Inconclusive(format!(
                "{} of {} measurements could not be used, the last because {last}",
                self.rejected.len(),
                self.rejected.len() + self.of_few.len() + self.of_many.len() + self.checks.len()
            )));
        }
        if self.of_few.len() < MEASUREMENTS {
            return Ok(Next::Measure(self.few));
        }
        if self.of_many.len() < MEASUREMENTS {
            return Ok(Next::Measure(self.many()));
        }
        match self.checks.last() {
            Some((repeats, share_ppm))
                if self.is_within(*share_ppm) || self.is_the_least(*repeats, *share_ppm) =>
            {
                Ok(Next::Found(Found {
                    repeats: *repeats,
                    share_ppm: *share_ppm,
                }))
            }
            _ if self.checks.len() == CHECKS => self.by_all_checks(),
            _ => self.best().map(Next::Measure),
        }
    }

    /// Takes the measurement that was to be made.
    pub fn take(&mut self, measured: Measured) {
        let asked = self.next();
        match measured {
            Err(trouble) => self.rejected.push(trouble),
            Ok(service) => {
                let share = self.share(service);
                if self.of_few.len() < MEASUREMENTS {
                    self.of_few.push(share);
                } else if self.of_many.len() < MEASUREMENTS {
                    self.of_many.push(share);
                } else if let Ok(Next::Measure(repeats)) = asked {
                    self.checks.push((repeats, share));
                }
            }
        }
    }

    /// The share of a processor that so much service for each block is.
    fn share(&self, service: Service) -> u64 {
        service.as_nanos() * 1_000_000 / self.block.as_nanos().max(1)
    }

    fn wanted(&self) -> u64 {
        u64::from(self.wanted.share.ppm)
    }

    fn is_within(&self, share_ppm: u64) -> bool {
        self.wanted.beside(share_ppm).is_eq()
    }

    /// Whether this is what the work takes at least.
    fn is_the_least(&self, repeats: usize, share_ppm: u64) -> bool {
        repeats == 0 && share_ppm > self.wanted()
    }

    /// About as many as are needed, if all work were repeated; far enough from the few for a line through both.
    fn many(&self) -> usize {
        let few = self.few as u64 + 1;
        let all = few * self.wanted() / middle(&self.of_few).max(1);
        let many = usize::try_from(all).unwrap_or(self.most);
        if many.abs_diff(self.few) * 4 < self.few {
            2 * self.few
        } else {
            many.max(1).min(self.most)
        }
    }

    /// The medians of few repeats and of many.
    fn line(&self) -> [Tried; 2] {
        let few = (self.few, middle(&self.of_few));
        [few, (self.many(), middle(&self.of_many))]
    }

    /// The count that is tried next: by what was measured last, and the two medians, which tell how much does not depend on the count.
    fn best(&self) -> Result<usize, NoCount> {
        let [few, many] = self.line();
        let last = self.checks.last().copied();
        let best = scaled(self.wanted(), last.unwrap_or(many), constant([few, many]));
        if best > self.most as i128 {
            return Err(NoCount::Impossible(format!(
                "this machine is too fast for a load of {}: more than {} repeats of the work would be needed; ask for a smaller load",
                self.wanted, self.most
            )));
        }
        Ok(usize::try_from(best).unwrap_or(0))
    }

    /// The count that takes what was wanted at the mean of the speeds at which others were tried: where a machine is fast and slow by turns, each
    /// correction misses.
    fn by_all_checks(&self) -> Result<Next, NoCount> {
        let constant = constant(self.line());
        let work = |repeats: usize| u64::try_from(repeats as i128 + constant).unwrap_or(1);
        // What one repeat took, in parts per thousand million.
        let tries = self.checks.iter();
        let taken: Vec<u64> = tries
            .map(|(repeats, share)| share * 1_000 / work(*repeats))
            .collect();
        let (fastest, slowest) = (taken.iter().min(), taken.iter().max());
        let moved = fastest.zip(slowest).map(|(fast, slow)| slow * 100 / fast);
        let one = (taken.iter().sum::<u64>() / taken.len().max(1) as u64).max(1);
        let best = i128::from((self.wanted() * 1_000 + one / 2) / one) - constant;
        let repeats = usize::try_from(best).unwrap_or(0).min(self.most);
        let share_ppm = work(repeats) * one / 1_000;
        if moved.is_none_or(|percent| percent > MOST_MOVED) || !self.is_within(share_ppm) {
            return Err(self.moves_too_much());
        }
        Ok(Next::Found(Found { repeats, share_ppm }))
    }

    fn moves_too_much(&self) -> NoCount {
        let tries = self.checks.iter().map(|(repeats, share)| {
            let share = percent(*share);
            format!("{share} % with {repeats} repeats")
        });
        let tries: Vec<String> = tries.collect();
        NoCount::Inconclusive(format!(
            "the machine's speed moves too much: {} were to be met, and one after the other came {}",
            self.wanted,
            tries.join(", ")
        ))
    }
}

/// How many repeats would take as much as that part of the work which is not repeated: where the line through two loads meets zero.
///
/// Both were measured at the machine's speed of their moment, which the line takes for one; so what it says is kept to what is plausible: the work is
/// done once at least, and what is not repeated is no more than twice the few.
fn constant([few, many]: [Tried; 2]) -> i128 {
    let signed = |(repeats, share): Tried| (repeats as i128, i128::from(share));
    let ((x0, y0), (x1, y1)) = (signed(few), signed(many));
    let (run, rise) = ((x1 - x0).abs(), (y1 - y0) * (x1 - x0).signum());
    let constant = if rise > 0 { y0 * run / rise - x0 } else { 1 };
    constant.clamp(1, 2 * x0 + 1)
}

/// The repeats that take `wanted_ppm`, where work that takes as much as `constant` repeats besides was measured to take what `last` says.
fn scaled(wanted_ppm: u64, (repeats, share_ppm): Tried, constant: i128) -> i128 {
    let share = i128::from(share_ppm).max(1);
    let all = (repeats as i128 + constant) * i128::from(wanted_ppm);
    (all + share / 2) / share - constant
}

/// The median; zero of none.
fn middle(shares: &[u64]) -> u64 {
    median(shares.iter().copied()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
