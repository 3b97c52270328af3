//! What other tools got wrong, or their users wished for, must not happen here.
//!
//! The proptests' number of cases is `LAXITY_CASES` (64 if it is not set).

mod defects;
mod extremes;
mod overload;
mod scaling;

use laxity_model::analysis::{Preemption, Response, Task};
use laxity_model::{Service, Span};
use proptest::prelude::ProptestConfig;

fn config() -> ProptestConfig {
    let cases = std::env::var("LAXITY_CASES").ok();
    let cases = cases.map_or(64, |cases| cases.parse().expect("a number"));
    ProptestConfig {
        cases,
        ..ProptestConfig::default()
    }
}

fn task(cost: u64, period: u64) -> Task {
    Task::new(Service::from_nanos(cost), Span::from_nanos(period)).expect("a task")
}

fn never_preempted(cost: u64, period: u64) -> Task {
    task(cost, period)
        .with_preemption(Preemption::Never)
        .expect("it fits")
}

/// The bound from arrival, in nanoseconds.
fn nanos(response: Response) -> Option<u64> {
    response.bound().map(|bound| bound.from_arrival.as_nanos())
}
