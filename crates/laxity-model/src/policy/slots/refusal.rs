//! Why a set of reservations has no slot table, and which sets near it have one.

use alloc::vec::Vec;
use core::fmt;

use crate::Reservation;
use crate::request::Shortage;

/// Which single change makes the set fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// The refused request asks for less service at its period: the most that fits.
    LargestService,
    /// The refused request asks for the same service less often, or for the shortest slot where that does not fit as often: the shortest period that fits.
    ShortestPeriod,
    /// The refused request asks for the shortest slot there is.
    SmallestService,
    /// Another request gives up service at its period: the least it must give up.
    OtherGivesUp,
    /// No single change is enough: all services shrink by the same ratio.
    AllShrink,
    /// An executor asks for the least service with which its policy promises what its tasks need, at its period or at a shorter one.
    TasksNeed,
}

/// A set of requests that is granted, one step away from the set that was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nearest {
    /// What was changed.
    pub change: Change,
    /// The request that changed; the refused one for [`Change::AllShrink`].
    pub request: usize,
    /// The whole set with the change: planning it succeeds, under the same costs.
    pub requests: Vec<Reservation>,
}

/// A refusal: the reason, what is missing, and the nearest sets that would be granted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "request {request} ({reservation}) does not fit: {shortage}{}{}",
    Advice(nearest),
    if *is_cut_short { "; not all that might fit was looked at" } else { "" }
)]
pub struct Refusal {
    /// A request that does not fit with those before it, in the order given, while they fit without it.
    pub request: usize,
    /// What it asked for.
    pub reservation: Reservation,
    /// What is short.
    pub shortage: Shortage,
    /// What would be granted. Empty only if nothing near would, or nothing was found before the search was cut short.
    pub nearest: Vec<Nearest>,
    /// Whether the search for what is granted took as many steps as it may: there may be more of it, and some of it nearer.
    pub is_cut_short: bool,
}

impl fmt::Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(changed) = self.requests.get(self.request) else {
            return Ok(());
        };
        let (service, period) = (changed.service(), changed.period());
        match self.change {
            Change::LargestService => {
                write!(f, "at most {service} in every {period}")
            }
            Change::ShortestPeriod => {
                write!(f, "{service} in every {period} at the shortest")
            }
            Change::SmallestService | Change::TasksNeed => {
                write!(f, "at least {service} in every {period}")
            }
            Change::OtherGivesUp => {
                write!(f, "request {} reduced to {changed}", self.request)
            }
            Change::AllShrink => {
                f.write_str("all reduced to ")?;
                for (i, request) in self.requests.iter().enumerate() {
                    write!(f, "{}{request}", if i == 0 { "" } else { ", " })?;
                }
                Ok(())
            }
        }
    }
}

/// Writes "; would fit: a; or b".
struct Advice<'a>(&'a [Nearest]);

impl fmt::Display for Advice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, nearest) in self.0.iter().enumerate() {
            write!(
                f,
                "{}{nearest}",
                if i == 0 { "; would fit: " } else { "; or " }
            )?;
        }
        Ok(())
    }
}
