//! Fixed priorities: the tasks of a set are given by priority, the highest first, no two alike.

use alloc::vec::Vec;

use super::supply::SupplyBound;
use super::{Overflow, Response, Task, Verdict};
use crate::Service;

/// The response time of one task.
pub fn response_time<S: SupplyBound>(
    _tasks: &[Task],
    _index: usize,
    _supply: &S,
) -> Result<Response, Overflow> {
    todo!()
}

/// The response times of all.
pub fn response_times<S: SupplyBound>(
    _tasks: &[Task],
    _supply: &S,
) -> Result<Vec<Response>, Overflow> {
    todo!()
}

/// Whether all deadlines are met.
pub fn test<S: SupplyBound>(_tasks: &[Task], _supply: &S) -> Result<Verdict, Overflow> {
    todo!()
}

/// For each task, the longest floating region that all more urgent ones tolerate; `None` if some miss deadlines without any.
pub fn longest_regions<S: SupplyBound>(
    _tasks: &[Task],
    _supply: &S,
) -> Result<Option<Vec<Service>>, Overflow> {
    todo!()
}

/// An order of priorities under which all deadlines are met, if there is one (Audsley): indices, the highest first.
pub fn best_order<S: SupplyBound>(
    _tasks: &[Task],
    _supply: &S,
) -> Result<Option<Vec<usize>>, Overflow> {
    todo!()
}

/// An order of priorities and final regions under which all deadlines are met, if there is one (Davis, Bertogna).
pub fn best_order_with_final_regions<S: SupplyBound>(
    _tasks: &[Task],
    _supply: &S,
) -> Result<Option<Vec<(usize, Service)>>, Overflow> {
    todo!()
}

/// Indices by period, the shortest first; of equal ones the first first.
#[must_use]
pub fn rate_monotonic(_tasks: &[Task]) -> Vec<usize> {
    todo!()
}

/// Indices by deadline, the shortest first; of equal ones the first first.
#[must_use]
pub fn deadline_monotonic(_tasks: &[Task]) -> Vec<usize> {
    todo!()
}
