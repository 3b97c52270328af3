//! What an executor is asked to be.

use laxity_linux::host::alone;
use laxity_linux::host::together::Seat;
use laxity_model::analysis::supply::{Dedicated, SupplyBound, reserved};
use laxity_model::enforce::ranks::{EXECUTOR, OCCUPANT};
use laxity_model::enforce::slots::SUPPLY;
use laxity_model::executor::linked::{self, Linked};
use laxity_model::executor::{HANDLERS, Unschedulable};
use laxity_model::program::upcalls::Overhead;
use laxity_model::{Enforcer, Span};

use super::{Coordinated, Error};
use crate::doctor::{Finding, Machine, Status, diagnose};
use crate::executor::{Edf, Rmdp};
use crate::reserve::Request;

/// What an executor is asked to be. The default is rate monotonic at FIFO priority 90, wherever the kernel lets it run.
pub struct Options {
    /// Its thread's name, of which the kernel keeps 15 bytes.
    pub name: String,
    /// Who goes first.
    pub policy: Policy,
    /// What its thread is.
    pub rank: Rank,
    /// What admission counts on; `None` is what the rank gives: all of a processor, or the reservation. Say less where others are above it. What other executors of this process are admitted for, at the same FIFO priority or a higher one on
    /// the same processor, is taken from it in any case.
    pub supply: Option<Supply>,
    /// What admission charges each call and each of its quanta; where threads may put off the end of their turn (`slice-extension` in the doctor), by how much is added.
    pub overhead: Overhead,
    /// So many arrivals wait for each upcall that is [released by them](super::Pace::Arrivals); what becomes of more says its [`WhenFull`](super::WhenFull).
    pub events: u32,
    /// Its upcalls take turns with those of other processes, all in one rate-monotonic order.
    pub together: Option<Together>,
}

/// By what upcalls take turns with those of other processes.
#[derive(Debug)]
pub enum Together {
    /// A seat in a region, with those that have seats in the same one, which are on the same processor.
    Seat(Seat),
    /// A coordinator gives the seat, and all of them are admitted together.
    Coordinated(Coordinated),
}

impl From<Seat> for Together {
    fn from(seat: Seat) -> Self {
        Self::Seat(seat)
    }
}

impl From<Coordinated> for Together {
    fn from(coordinated: Coordinated) -> Self {
        Self::Coordinated(coordinated)
    }
}

/// What admission counts on.
pub type Supply = Box<dyn SupplyBound + Send + Sync>;

/// Arrivals that wait.
const EVENTS: u32 = 16;
/// No more of each upcall: there is room for them from the beginning, in memory that is locked.
pub(super) const MOST_EVENTS: u32 = 4_096;

impl Default for Options {
    fn default() -> Self {
        Self {
            name: "upcalls".to_owned(),
            policy: Policy::Rmdp,
            rank: Rank::Fifo {
                priority: EXECUTOR,
                processor: None,
            },
            supply: None,
            overhead: Overhead::default(),
            events: EVENTS,
            together: None,
        }
    }
}

/// Who goes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// Rate monotonic with delayed preemption; deadline monotonic where a deadline is not the period.
    #[default]
    Rmdp,
    /// Earliest deadline first.
    Edf,
}

impl Policy {
    /// Whether all of these are in time.
    pub(super) fn admit(
        self,
        all: &[Linked],
        supply: &dyn SupplyBound,
    ) -> Result<(), Unschedulable> {
        match self {
            Self::Rmdp => linked::admit(&Rmdp::<HANDLERS>::default(), all, supply),
            Self::Edf => linked::admit(&Edf::<HANDLERS>::default(), all, supply),
        }
        .map(drop)
    }

    /// How long each takes at the longest, from the release of the first of its chain.
    pub(super) fn bounds(
        self,
        all: &[Linked],
        supply: &dyn SupplyBound,
    ) -> Result<Vec<Span>, Unschedulable> {
        match self {
            Self::Rmdp => linked::bounds_by(&Rmdp::<HANDLERS>::default(), all, supply),
            Self::Edf => linked::bounds_by(&Edf::<HANDLERS>::default(), all, supply),
        }
    }
}

/// What an executor's thread is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rank {
    /// Real-time at this priority, on one processor by the kernel's number, or wherever the kernel lets it run. Who is above it takes away from what it has, and admission knows nothing of that unless
    /// [`Options::supply`] says so.
    Fifo {
        /// From 1 to 99.
        priority: u8,
        /// By the kernel's number.
        processor: Option<usize>,
    },
    /// It has this reservation, and no more where that says so.
    Reserved(Request),
    /// An ordinary thread, of which nothing is promised: its grade is [unenforced](crate::Grade::Unenforced).
    Fair,
}

impl Rank {
    /// What of this machine makes such an executor less than it might be, each with what helps: what a FIFO thread is ended or interrupted by, and what a budget is not kept to. What stands against it altogether [refuses](super::Upcalls::start) it.
    pub fn cautions(&self, machine: &Machine) -> Vec<Finding> {
        let concerns: &[&str] = match self {
            Self::Fair => &[],
            Self::Fifo { .. } => &["rt-time-limit", "rt-throttling", "servers", "outranking"],
            Self::Reserved(request) => match request.0.enforcer {
                Enforcer::Slots => &["rt-time-limit", "rt-throttling", "servers", "outranking"],
                Enforcer::Deadline => &["deadline-granularity", "deadline-bandwidth"],
            },
        };
        const ALL: [&str; 4] = ["timers", "preemption", "slice-extension", "dma-latency"];
        let found = diagnose(machine).into_iter();
        found
            .filter(|finding| *self != Self::Fair && finding.status != Status::Ok)
            .filter(|finding| concerns.contains(&finding.name) || ALL.contains(&finding.name))
            .collect()
    }
}

impl From<Rank> for alone::Rank {
    fn from(rank: Rank) -> Self {
        match rank {
            Rank::Fifo {
                priority,
                processor,
            } => Self::Fifo {
                priority,
                processor,
            },
            Rank::Reserved(request) => Self::Reserved(request.0),
            Rank::Fair => Self::Fair,
        }
    }
}

impl Options {
    /// Whether slots are what its thread has.
    fn has_slots(&self) -> bool {
        matches!(&self.rank, Rank::Reserved(request) if request.0.enforcer == Enforcer::Slots)
    }

    /// The FIFO priority of its thread, and its processor where that is said; in slots, too.
    pub(super) fn fifo(&self) -> Option<(u8, Option<usize>)> {
        match &self.rank {
            Rank::Fifo {
                priority,
                processor,
            } => Some((*priority, *processor)),
            Rank::Reserved(request) if self.has_slots() => Some((OCCUPANT, request.0.processor)),
            Rank::Reserved(_) | Rank::Fair => None,
        }
    }

    /// What admission charges each call where whoever has the processor may put off that it begins. Slots may begin late themselves.
    pub(super) fn overhead_put_off_by(&self, longest: Span) -> Overhead {
        let begins = if self.has_slots() {
            SUPPLY.jitter
        } else {
            Span::ZERO
        };
        let late = longest.checked_add(begins);
        let late = late.and_then(|late| self.overhead.late.checked_add(late));
        Overhead {
            late: late.unwrap_or(Span::MAX),
            ..self.overhead
        }
    }

    /// What admission counts on.
    pub(super) fn take_supply(&mut self) -> Result<Supply, Error> {
        if let Some(supply) = self.supply.take() {
            return Ok(supply);
        }
        let Rank::Reserved(request) = &self.rank else {
            return Ok(Box::new(Dedicated));
        };
        let asked = (request.0.reservation, request.0.enforcer);
        let supply = reserved(asked, laxity_linux::doctor::budget_grain(), Vec::new());
        supply.map_err(|error| Error::NotStarted(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::Service;

    use super::*;

    #[test]
    fn who_may_put_off_a_call_makes_it_later() {
        let (options, micros) = (Options::default(), Span::from_micros);
        let late = |longest| options.overhead_put_off_by(longest).late;
        assert_eq!(late(Span::ZERO), options.overhead.late);
        assert_eq!(late(micros(50)), options.overhead.late + micros(50));
        assert_eq!(late(Span::MAX), Span::MAX);
    }

    /// As much as a program's admission charges, and what a call is late by besides.
    #[test]
    fn slots_are_late_themselves() {
        let request = Request::new(Service::from_millis(2), Span::from_millis(8)).unwrap();
        let late = |request| {
            let rank = Rank::Reserved(request);
            let options = Options {
                rank,
                ..Options::default()
            };
            options.overhead_put_off_by(Span::ZERO).late
        };
        let own = Overhead::default().late;
        assert_eq!(late(request.clone()), own);
        assert_eq!(late(request.by(Enforcer::Slots)), own + SUPPLY.jitter);
    }
}
