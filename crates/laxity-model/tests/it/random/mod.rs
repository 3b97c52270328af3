//! What tests over random sets share: how many, and plain tasks.

use laxity_model::analysis::Task;
use laxity_model::{Service, Span};
use proptest::prelude::ProptestConfig;

/// So many cases for each property as `LAXITY_CASES` says, or, if it is not set, as the test does.
pub(crate) fn config(usual: u32) -> ProptestConfig {
    let cases = std::env::var("LAXITY_CASES").ok();
    let cases = cases.and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: cases.unwrap_or(usual),
        ..ProptestConfig::default()
    }
}

/// Preemptible anywhere, due at the end of its period.
pub(crate) fn task(cost: u64, period: u64) -> Task {
    Task::new(Service::from_nanos(cost), Span::from_nanos(period)).expect("a task")
}
