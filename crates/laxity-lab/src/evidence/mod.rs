//! What a run leaves behind: the results as JSON, and a trace that Perfetto opens.
//!
//! * [`results`]: every figure of a run, for programs; integers in nanoseconds, totals that add up. [`subjects`]: those of one component;
//!   [`histogram`]: many values.
//! * [`trace`]: the events of one run with the names they refer to.
//! * [`lanes`]: events as slices and points on lanes; [`perfetto`]: lanes as a protobuf trace.
//! * [`write_whole`]: a file is there whole, or not at all.

mod flat;
pub mod histogram;
pub mod lanes;
pub mod perfetto;
pub mod results;
pub mod subjects;
pub mod trace;
mod write;

pub use write::{
    WriteError, check_writable, directory_of, open_stream, write_new, write_whole, written_to,
};
