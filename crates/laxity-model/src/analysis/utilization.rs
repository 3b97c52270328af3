//! Utilization bounds, for tasks given by priority, the highest first.

use super::{Overflow, Task, Verdict};

/// Liu, Layland.
pub fn liu_layland(_tasks: &[Task]) -> Result<Verdict, Overflow> {
    todo!()
}

/// The hyperbolic bound.
pub fn hyperbolic(_tasks: &[Task]) -> Result<Verdict, Overflow> {
    todo!()
}

/// Sha's test with blocking, task by task.
pub fn blocking_per_task(_tasks: &[Task]) -> Result<Verdict, Overflow> {
    todo!()
}

/// Sha's test with blocking, in one sum, as the upcalls paper prints it.
pub fn blocking_summed(_tasks: &[Task]) -> Result<Verdict, Overflow> {
    todo!()
}

/// The hyperbolic bound with blocking.
pub fn hyperbolic_with_blocking(_tasks: &[Task]) -> Result<Verdict, Overflow> {
    todo!()
}

/// Rate monotonic with delayed preemption, as the upcalls paper states it.
pub fn rmdp(_tasks: &[Task]) -> Result<Verdict, Overflow> {
    todo!()
}
