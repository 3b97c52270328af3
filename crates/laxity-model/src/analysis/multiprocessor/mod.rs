//! Sets on several processors: tasks bound to one each, tasks that run wherever there is room, and what Linux lets in.
//!
//! * [`partition`]: first, best and worst fit under any test for one processor; what is missing where a task fits nowhere.
//! * [`edf_guarantee`], [`rate_monotonic_guarantee`]: how full a set may be so that it surely fits.
//! * [`global_edf`], [`tardiness`]: earliest deadline first over all processors, as `SCHED_DEADLINE` has it: whether no deadline is
//!   missed, and by how much at most.
//! * [`kernel_admits`]: which reservations the kernel's own admission takes.

mod global;
mod guarantee;
mod kernel;
mod partition;

pub use global::{Tardiness, global_edf, tardiness};
pub use guarantee::{edf_guarantee, rate_monotonic_guarantee};
pub use kernel::{Bandwidth, DeadlineRequest, KernelLimits, KernelRefusal, kernel_admits};
pub use partition::{Fit, Misfit, Nearest, Order, Partitioning, partition};
