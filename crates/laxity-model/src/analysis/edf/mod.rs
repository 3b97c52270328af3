//! Earliest deadline first.

use alloc::vec::Vec;

use super::supply::SupplyBound;
use super::{Overflow, Response, Task, Verdict};
use crate::{Service, Span};

/// dbf(t): the service that jobs which arrive and are due within a window of this length need at most.
pub fn demand(_tasks: &[Task], _window: Span) -> Result<Service, Overflow> {
    todo!()
}

/// Whether all deadlines are met.
pub fn test<S: SupplyBound>(_tasks: &[Task], _supply: &S) -> Result<Verdict, Overflow> {
    todo!()
}

/// The response times of all.
pub fn response_times<S: SupplyBound>(
    _tasks: &[Task],
    _supply: &S,
) -> Result<Vec<Response>, Overflow> {
    todo!()
}

/// For each task, the longest floating region that all others tolerate; `None` if some miss deadlines without any.
pub fn longest_regions<S: SupplyBound>(
    _tasks: &[Task],
    _supply: &S,
) -> Result<Option<Vec<Service>>, Overflow> {
    todo!()
}
