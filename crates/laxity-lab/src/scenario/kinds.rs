//! The kinds of components that a scenario can declare, and what is observed of each.

use crate::each_once::each_once;
use laxity_model::verify::contract::{Kind, Quantity, Unit};

/// From the begin of a call of the signal processing to its end.
pub const PROCESSING_TIME: Quantity = Quantity::time("processing_time");
/// Samples left in the ring after the processing.
pub const SAMPLES_PENDING: Quantity = Quantity::level("samples_pending");
/// Samples lost in either direction: overwritten before they were read, or sent as garbage because none were there.
pub const SAMPLES_LOST: Quantity = Quantity::events("samples_lost");
/// Of the samples lost, those that came in and were overwritten before they were read.
pub const SAMPLES_OVERWRITTEN: Quantity = Quantity::events("samples_overwritten");
/// Of the samples lost, those that were due to go out and were not there.
pub const SAMPLES_UNDERRUN: Quantity = Quantity::events("samples_underrun");
/// Times the link had to be trained again.
pub const RETRAININGS: Quantity = Quantity::events("retrainings");

/// A soft modem.
pub const MODEM: Kind = Kind {
    name: "soft-modem",
    quantities: &[
        Quantity::INTERRUPT_TIME,
        Quantity::DEFERRED_TIME,
        Quantity::INTERRUPT_PERIOD,
        Quantity::RESPONSE_TIME,
        PROCESSING_TIME,
        SAMPLES_PENDING,
        SAMPLES_LOST,
        SAMPLES_OVERWRITTEN,
        SAMPLES_UNDERRUN,
        RETRAININGS,
        Quantity::THREAD_PRIORITY,
    ],
};

/// A periodic task.
pub const PERIODIC: Kind = laxity::periodic::KIND;

/// Threads that never stop.
pub const SPINNER: Kind = unseen("spinner");
/// A thread that now and then takes the processor for long.
pub const ROGUE: Kind = unseen("rogue");
/// A program of the user's own.
pub const COMMAND: Kind = unseen("command");

/// All kinds of components.
pub const KINDS: [Kind; 5] = [MODEM, PERIODIC, SPINNER, ROGUE, COMMAND];

/// A quantity's name with its unit, as files have it: `wakeup_gap_ns`, `samples_lost`.
pub fn key(quantity: Quantity) -> String {
    match quantity.unit() {
        Unit::Nanoseconds => format!("{}_ns", quantity.name()),
        Unit::Count => quantity.name().to_owned(),
    }
}

const fn unseen(name: &'static str) -> Kind {
    Kind {
        name,
        quantities: &[],
    }
}

/// All quantities that are observed of some kind, each once.
pub fn quantities() -> Vec<Quantity> {
    each_once(KINDS.iter().flat_map(|kind| kind.quantities).copied())
}
