//! What this machine can do, and the remedy for what it cannot.
//!
//! * [`Machine::probe`](machine::Machine::probe) reads the facts; [`machine`] has them as data.
//! * [`diagnose`] judges them one by one.
//! * [`explain`](explain()) turns a failed scheduling call into its one true cause, [`foresee`] says beforehand what would fail.
//! * [`can_run_live`] is the short question before a live run.
//! * [`parse`] reads the kernel's texts.

mod cause;
mod checks;
mod explain;
mod groups;
pub mod machine;
pub(crate) mod outranking;
pub mod parse;
pub(crate) mod probe;
pub mod rights;

pub use cause::{Cause, Diagnosis, Operation, ParameterError};
pub use checks::{Finding, Status, diagnose};
pub use explain::{explain, foresee};
pub use machine::{Machine, Rights};
pub use outranking::Hidden;

use crate::os::sched::{self, Policy, Tid};

/// The highest FIFO priority that a live run needs.
pub const HIGHEST_PRIORITY: u8 = 99;

/// Whether this process may do what a live run needs: FIFO up to 99, no limit on real-time processor time, and all
/// memory locked. Says first what lacks first. FIFO is really tried, in a thread that ends at once; nothing of the process is changed.
///
/// `SCHED_DEADLINE` is not asked for: `slots` does without. [`diagnose`] tells about it.
///
/// # Errors
///
/// The cause and its remedy.
pub fn can_run_live() -> Result<(), Diagnosis> {
    let rights = Rights::probe();
    let no = |found: Option<Diagnosis>| found.map_or(Ok(()), Err);
    no(explain::fifo(HIGHEST_PRIORITY, &rights))?;
    try_fifo()?;
    no(explain::time_limit(&rights))?;
    no(explain::lock_memory(&rights))
}

/// What no fact shows, as a security module, shows in the attempt.
fn try_fifo() -> Result<(), Diagnosis> {
    let attempt = || {
        let fifo = Policy::Fifo(HIGHEST_PRIORITY);
        sched::set_policy(Tid::current(), fifo).map_err(|error| {
            let operation = Operation::SetFifo {
                priority: HIGHEST_PRIORITY,
            };
            explained(&operation, error.errno())
        })
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .spawn_scoped(scope, attempt)
            .map_err(|error| explained(&Operation::Fork, error.raw_os_error()))?;
        match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn explained(operation: &Operation, errno: Option<i32>) -> Diagnosis {
    explain(operation, errno.unwrap_or_default(), &Machine::probe())
}
