//! Schedulability analysis: what is known of a set of recurring tasks before any of them runs.
//!
//! All tests work on [`Task`]s in integer nanoseconds (or any other tick: nothing here knows how long a nanosecond is) and on a
//! *supply*, which says how much service there is at least in a window of any length ([`supply::SupplyBound`]).
//!
//! * [`utilization`]: bounds that need nothing but C and T. Sufficient; a few additions.
//! * [`fixed_priority`]: response times, the longest non-preemptive regions, the best priorities, overheads. Exact.
//! * [`edf`]: demand, response times, the longest non-preemptive regions under earliest deadline first. Exact where it says so.
//! * [`supply`]: a dedicated processor, reservations of every kind, a slot table, `SCHED_DEADLINE`.
//! * [`devices`]: which reservation serves a device with rings of samples.
//! * [`multiprocessor`]: sets on several processors.
//!
//! Sound before tight: a test says *schedulable* only if no deadline can be missed under its assumptions, *not schedulable* only with
//! a job that can miss its deadline, and otherwise *unknown*. Every number that does not fit is an error, never a wrong answer.

mod alone;
mod budget;
pub mod devices;
mod divisor;
pub mod edf;
mod exact;
pub mod fixed_priority;
mod fraction;
pub mod multiprocessor;
pub mod supply;
mod task;
pub mod utilization;
mod verdict;

pub use budget::Budget;
pub use fraction::Fraction;
pub use task::{Preemption, Task, TaskError};
pub use verdict::{Bound, Doubt, Overflow, Response, Search, Verdict, Witness};

/// What a test comes to, if its numbers fit.
pub type Result<T, E = Overflow> = core::result::Result<T, E>;
