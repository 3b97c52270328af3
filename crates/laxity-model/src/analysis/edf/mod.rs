//! Earliest deadline first: of all jobs that are released, the one that is due first runs. Ties are broken anyhow; a task's
//! own jobs run in the order of arrival.
//!
//! * [`test()`] says whether all deadlines are met, from the demand alone; [`test_beside`] says it beside somebody who is never due.
//! * [`least_deadline`] says which deadline a newcomer can have.
//! * [`response_times`] bounds how long each task's jobs take, deadlines met or not.
//! * [`longest_regions`] says for how long each task may keep others waiting.
//!
//! All work on any supply, with jitter, deadlines before or after the end of the period, and regions that are not preemptible.

mod horizon;
mod least;
mod qpa;
mod regions;
mod response;
mod set;
mod witness;

pub use least::least_deadline;
pub(crate) use least::{least_deadline_until, least_deadline_within};
pub(crate) use qpa::is_met_within;
pub use qpa::{test, test_beside};
pub use regions::longest_regions;
pub use response::response_times;
