//! The kinds of components that a scenario can declare, and what is observed of each.

use super::devices;
use crate::each_once::each_once;
use laxity_model::verify::contract::{Kind, Quantity, Unit};
use laxity_model::verify::delivery::{OVERRUNS, SHORT_PERIODS, SHORT_STRETCHES};

pub(crate) use super::devices::PROCESSING_SERVICE;

pub use super::devices::{
    FRAMES_LOST, LOSSES, PROCESSING_TIME, RETRAININGS, SAMPLES_LOST, SAMPLES_OVERWRITTEN,
    SAMPLES_PENDING, SAMPLES_UNDERRUN,
};

/// A soft modem.
pub const MODEM: Kind = devices::KINDS[0];

/// A periodic task.
pub const PERIODIC: Kind = laxity::periodic::KIND;

/// Threads that never stop.
pub const SPINNER: Kind = unseen("spinner");
/// A thread that now and then takes the processor for long.
pub const ROGUE: Kind = unseen("rogue");
/// With which code a program of the user's own ended by itself, as a shell says it: 128 and more for a signal.
pub const EXIT_CODE: Quantity = Quantity::level("exit_code");
/// The processor time that it took, with everything that it started.
pub const PROCESSOR_TIME: Quantity = Quantity::time("processor_time");
/// A program of the user's own; of one with a reservation, the gaps in the service of its first thread alone too.
pub const COMMAND: Kind = Kind {
    name: "command",
    quantities: &[EXIT_CODE, PROCESSOR_TIME, Quantity::SERVICE_GAP],
};

/// Threads that take the packets of flows.
pub const CLIENT: Kind = unseen("client");
/// From when a frame was shown to when the next was.
pub const FRAME_INTERVAL: Quantity = Quantity::time("frame_interval");
/// How far such an interval is from the period.
pub const FRAME_JITTER: Quantity = Quantity::time("frame_jitter");
/// From a packet's arrival at the interface until a thread begins with it.
pub const ARRIVAL_TO_THREAD: Quantity = Quantity::time("arrival_to_thread");
/// Packets that were sent and never worked on.
pub const PACKETS_LOST: Quantity = Quantity::events("packets_lost");
/// Packets that no thread was done with when they were due.
pub const PACKETS_LATE: Quantity = Quantity::events("packets_late");
/// Packets beyond what their client stated.
pub const PACKETS_IN_EXCESS: Quantity = Quantity::events("packets_in_excess");
/// Bytes that arrived in order.
pub const BYTES_RECEIVED: Quantity = Quantity::events("bytes_received");
/// A frame every so often.
pub const VIDEO: Kind = Kind {
    name: "video",
    quantities: &[
        FRAME_INTERVAL,
        FRAME_JITTER,
        ARRIVAL_TO_THREAD,
        PACKETS_LOST,
        PACKETS_LATE,
        PACKETS_IN_EXCESS,
    ],
};
/// Data in bulk.
pub const BULK: Kind = Kind {
    name: "bulk",
    quantities: &[
        ARRIVAL_TO_THREAD,
        BYTES_RECEIVED,
        PACKETS_LATE,
        PACKETS_IN_EXCESS,
    ],
};

/// All kinds of components: devices, then tasks, then what has to do with a network.
pub const KINDS: [Kind; 11] = {
    let [modem, audio, dsl, radio] = devices::KINDS;
    [
        modem, audio, dsl, radio, PERIODIC, SPINNER, ROGUE, COMMAND, CLIENT, VIDEO, BULK,
    ]
};
/// A program with a reservation, as `exec` sees it: no component of a scenario.
pub const PROGRAM: Kind = laxity::hold::KIND;

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
    let kinds = KINDS.iter().chain([&PROGRAM]);
    each_once(kinds.flat_map(|kind| kind.quantities).copied())
}

/// What the page of all keys says of each quantity.
const MEANINGS: [(Quantity, &str); 31] = [
    (
        Quantity::INTERRUPT_TIME,
        "The processor time that an interrupt handler takes from its entry to its return.",
    ),
    (
        Quantity::DEFERRED_TIME,
        "What all deferred calls queued at an instant take together.",
    ),
    (
        Quantity::INTERRUPT_PERIOD,
        "From an interrupt of the device to its next, where rate and phase stay the same.",
    ),
    (
        Quantity::RESPONSE_TIME,
        "From the release of a job (of a device: from its interrupt) to its end.",
    ),
    (
        Quantity::WAKEUP_LATENCY,
        "How late a task runs after the instant at which it was to wake.",
    ),
    (
        Quantity::WAKEUP_GAP,
        "From a wake-up of a task to its next.",
    ),
    (
        Quantity::SERVICE_GAP,
        "For how long a thread that had work was without the processor, each time; of a command, its first thread alone, in its reservation.",
    ),
    (
        Quantity::DEADLINE_MISSES,
        "Jobs that did not end by their deadline, counted when they were released.",
    ),
    (Quantity::JOBS_DONE, "Jobs that ended, in time or not."),
    (
        Quantity::JOB_OVERRUNS,
        "Jobs that were still at work when the next was released.",
    ),
    (
        Quantity::RELEASES_MISSED,
        "Releases that came to nothing: at work on the job before, or suspended, or without the processor all the time.",
    ),
    (
        Quantity::THREAD_PRIORITY,
        "The priority at which long work runs, 0 to 31.",
    ),
    (
        PROCESSING_TIME,
        "From the begin of a call of the signal processing to its end.",
    ),
    (SAMPLES_PENDING, "Samples left in the ring after a call."),
    (SAMPLES_LOST, "Samples lost in either direction."),
    (
        SAMPLES_OVERWRITTEN,
        "Of these, those that came in and were overwritten before they were read.",
    ),
    (
        SAMPLES_UNDERRUN,
        "Of these, those that were due to go out and were not there.",
    ),
    (
        FRAMES_LOST,
        "Frames that did not arrive, or whose CRC was wrong.",
    ),
    (RETRAININGS, "Times that a modem had to be trained again."),
    (
        EXIT_CODE,
        "With which code it ended by itself, as a shell says it: 128 and more for a signal. One that breaks a limit is not judged where the machine stood still before, unless the program did what it cannot (SIGILL, SIGBUS, SIGFPE, SIGSEGV, SIGSYS).",
    ),
    (
        PROCESSOR_TIME,
        "The processor time that it took, with everything that it started. It is not judged where it breaks a limit by no more than the machine stood still.",
    ),
    (
        FRAME_INTERVAL,
        "From when a frame was shown to when the next was. Where the machine stood still in it or in the interval before, it is judged only by what halts of that length cannot account for: a frame that they make late makes one longer and the next shorter. One that has no beginning, or is not over at the run's end, may break `at_most` by what it has come to, and keeps nothing.",
    ),
    (
        FRAME_JITTER,
        "How far such an interval is from the period, judged as that is.",
    ),
    (
        ARRIVAL_TO_THREAD,
        "From the arrival of a packet at the interface until a thread of its client begins with it. One that waits at the run's end may break `at_most` by how long it has, and keeps nothing.",
    ),
    (
        PACKETS_LOST,
        "Packets that were sent and never worked on, counted when the frame that they are of left; of the last ones that are missing at the run's end it may not be known, and what they might break is then inconclusive.",
    ),
    (
        PACKETS_LATE,
        "Packets that no thread was done with when they were due, of a client that states a `rate`; counted at their end, or that of the run.",
    ),
    (
        PACKETS_IN_EXCESS,
        "Packets with which more came than the `rate` and `burst` of their client allow.",
    ),
    (
        BYTES_RECEIVED,
        "Bytes that arrived in order over the connections, counted when the packet that brought them had been worked on.",
    ),
    (
        SHORT_PERIODS,
        "Undisturbed periods in which it did not have what is reserved, or more than that though it was held to it.",
    ),
    (
        SHORT_STRETCHES,
        "Stretches of several periods that are seen as one, in which it did not.",
    ),
    (OVERRUNS, "Periods in which it used up what is reserved."),
];

/// What a quantity is, in a sentence.
pub(super) fn meaning(quantity: Quantity) -> &'static str {
    let found = MEANINGS.iter().find(|(one, _)| *one == quantity);
    found.map_or("", |(_, meaning)| meaning)
}
