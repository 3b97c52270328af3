//! The acceptance-ratio study: of N random task sets, how many does each test accept? Over the utilization, the length of non-preemptive
//! regions, and the range of periods.
//!
//! * [`compared`]: the tests, and which of them can never accept what another rejects.
//! * [`study`]: the points, and a run over all of them.
//! * [`quoted`]: figures of an earlier measurement, to be reproduced.
//! * [`results`]: what comes out, as JSON.
//! * [`table`], [`page`]: for a person, on the terminal and as an HTML page.
//!
//! The same settings give the same bytes on every machine and with any number of threads.

mod chart;
pub mod compared;
pub mod page;
pub mod quoted;
pub mod results;
pub mod study;
pub mod table;

pub use results::Results;
pub use study::{Settings, Step, StudyError, run};
