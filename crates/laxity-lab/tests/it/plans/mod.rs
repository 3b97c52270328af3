//! Plans as tests look at them.

use laxity_lab::import::TaskSet;
use laxity_lab::plan::set::{Options, ProcessorPlan, plan};

/// The only processor of a plan.
pub(crate) fn only(set: &TaskSet, options: &Options) -> ProcessorPlan {
    let mut plan = plan(set, options).expect("no overflow");
    assert_eq!(plan.processors.len(), 1);
    plan.processors.remove(0)
}
