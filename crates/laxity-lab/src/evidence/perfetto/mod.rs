//! Traces for Perfetto (<https://ui.perfetto.dev>): track events as protocol buffers, written by hand.
//!
//! Each run is a process of its own, and all begin at time 0, so that variants lie under one another. Within a run there is a track
//! for each lane of [`lanes`]. Names are sent once a run and referred to by number.

mod run;
#[cfg(test)]
mod tests;
mod wire;

use serde::Serialize;

use super::lanes;
use super::trace::Trace;
use run::Run;
use wire::Message;

/// How many bytes an event takes about; only a hint for the allocation.
const BYTES_AN_EVENT: usize = 34;

/// A trace file, and what an independent reader must find in it.
pub struct Encoded {
    /// The file's bytes.
    pub bytes: Vec<u8>,
    /// What is in it.
    pub contents: Contents,
}

/// What a reader must find in a trace file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Contents {
    /// Slices by run, track and name. A point in time is a slice of no length, as Perfetto's own tables have it.
    pub slices: Vec<SliceTotal>,
    /// Values of levels.
    pub counter_values: u64,
}

/// All slices of one name on one track.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct SliceTotal {
    /// The run's name.
    pub run: String,
    /// The track's name.
    pub track: String,
    /// The slices' name.
    pub name: String,
    /// How many there are.
    pub count: u64,
    /// How long they are together.
    pub total_duration_ns: u64,
}

/// The runs as one trace file. 1 M events take some 30 MB and a few tens of milliseconds.
pub fn encode(traces: &[Trace]) -> Encoded {
    let events: usize = traces.iter().map(|t| t.events.len()).sum();
    let mut out = Message::with_capacity(events * BYTES_AN_EVENT + 4096);
    let mut contents = Contents::default();
    let mut next_uuid = 1;
    for (index, trace) in traces.iter().enumerate() {
        let mut run = Run::open(out, trace, index as u64 + 1, next_uuid);
        lanes::draw(trace, &mut |drawn| run.draw(drawn));
        (out, next_uuid) = run.close(&mut contents);
    }
    Encoded {
        bytes: out.into_bytes(),
        contents,
    }
}
