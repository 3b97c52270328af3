//! What a set of reservations by slots lacks to be granted.

use core::fmt;

use crate::{Service, Span};

/// What is short, and by how much.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Shortage {
    /// More of the processor is asked for than there is.
    #[error(
        "processor time: {} needed, {} available, {} missing",
        Share(*needed_ppm), Share(available_ppm / 100 * 100), Share(needed_ppm.saturating_sub(*available_ppm))
    )]
    ProcessorTime {
        /// Parts per million that the best arrangement takes, the dispatcher's cost included; more than a million is possible.
        needed_ppm: u64,
        /// Parts per million left for slots.
        available_ppm: u64,
    },
    /// No more of the processor is asked for than there is, but the tables that were tried take more, with slots more often or longer than is
    /// asked for and the dispatcher's cost. There may be others.
    #[error(
        "a table: those that were tried take {} of the processor, the switches to their slots included, and {} are available",
        Share(*needed_ppm), Share(available_ppm / 100 * 100)
    )]
    Tables {
        /// Parts per million that the least of them takes, the dispatcher's cost included; more than a million is possible.
        needed_ppm: u64,
        /// Parts per million left for slots.
        available_ppm: u64,
    },
    /// The service is less than the shortest slot that the dispatcher can keep.
    #[error(
        "slot length: {} asked for, the shortest slot is {}, {} missing",
        service.beside(shortest.as_full_service()),
        shortest.beside(service.as_dedicated_span()),
        shortest.as_full_service().saturating_sub(*service)
    )]
    SlotLength {
        /// What was asked for.
        service: Service,
        /// What can be kept.
        shortest: Span,
    },
    /// There is time enough, but every arrangement that was found takes more slots than a table holds.
    #[error("table entries: {needed} needed, {limit} available, {} missing", needed.saturating_sub(*limit))]
    TableEntries {
        /// The fewest that were found.
        needed: u64,
        /// What a table holds.
        limit: u64,
    },
    /// There is time enough, but no arrangement was found that keeps every promise.
    #[error("an arrangement: {} of the processor would do, but no table that was tried keeps every promise", Share(*load_ppm))]
    Arrangement {
        /// Parts per million of the processor that the arrangement with the least load would take.
        load_ppm: u64,
    },
}

/// Parts per million, written in percent with two decimals.
pub(crate) struct Share(pub(crate) u64);

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths = self.0.div_ceil(100);
        write!(f, "{}.{:02} %", hundredths / 100, hundredths % 100)
    }
}
