//! Fixed-priority analysis against definitions, against schedules run tick by tick, and against another implementation.
//!
//! `LAXITY_CASES` multiplies the number of random cases (default 1).

mod courses;
mod curves;
mod definition;
mod edges;
mod oracle;
mod orders;
mod parity;
mod regions;

use std::cmp::Ordering;
use std::fmt::Debug;

use laxity_model::analysis::fixed_priority as fp;
use laxity_model::analysis::supply::{
    BoundedDelay, Dedicated, ExplicitDeadline, KernelDeadline, Residual, SupplyBound,
};
use laxity_model::analysis::{Fraction, Preemption, Response, Search, Task, Verdict};
use laxity_model::{Reservation, Service, Span};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

fn cases(count: u32) -> ProptestConfig {
    let times = std::env::var("LAXITY_CASES").ok();
    let times = times.and_then(|times| times.parse().ok()).unwrap_or(1);
    ProptestConfig {
        max_shrink_iters: 5_000,
        max_global_rejects: 1_000_000,
        ..ProptestConfig::with_cases(count * times)
    }
}

const fn ticks(span: u64) -> Span {
    Span::from_nanos(span)
}

const fn service(ticks: u64) -> Service {
    Service::from_nanos(ticks)
}

/// C, T, D, J, and regions: which kind, and their lengths in parts of the job.
type Numbers = (u64, u64, u64, u64, (u8, u64, u64));

fn task((cost, period, deadline, jitter, (kind, longest, last)): Numbers) -> Task {
    let longest = 1 + longest % cost;
    let last = 1 + last % longest;
    let (longest, last) = (service(longest), service(last));
    let preemption = match kind {
        0 => Preemption::Anywhere,
        1 => Preemption::Floating { longest },
        2 => Preemption::Fixed { longest, last },
        _ => Preemption::Never,
    };
    let task = Task::new(service(cost), ticks(period)).expect("a task");
    let task = task.with_deadline(ticks(deadline)).expect("a deadline");
    let task = task.with_preemption(preemption).expect("fits");
    task.with_jitter(ticks(jitter))
}

/// Small tasks of every kind.
fn any_task() -> impl Strategy<Value = Task> {
    let jitter = prop_oneof![2 => Just(0), 1 => 0_u64..8, 1 => 0_u64..30];
    let regions = (0_u8..4, 0_u64..8, 0_u64..8);
    let burst = prop_oneof![3 => Just(1), 1 => 2_u64..5];
    (1_u64..7, 2_u64..25, 1_u64..40, jitter, regions, burst).prop_map(
        |(cost, period, deadline, jitter, regions, burst)| {
            let task = task((cost.min(period), period, deadline, jitter, regions));
            task.with_burst(burst.try_into().expect("one at least"))
        },
    )
}

fn any_tasks(most: usize) -> impl Strategy<Value = Vec<Task>> {
    prop::collection::vec(any_task(), 1..=most)
}

/// A supply that can be shown where a test fails.
trait Supply: SupplyBound + Debug {}

impl<S: SupplyBound + Debug> Supply for S {}

fn any_supply() -> impl Strategy<Value = Box<dyn Supply>> {
    let reservation = (1_u64..10, 1_u64..10).prop_map(|(a, b)| {
        Reservation::new(service(a.min(b)), ticks(a.max(b))).expect("a reservation")
    });
    let boxed = |supply: Box<dyn Supply>| supply;
    prop_oneof![
        3 => Just(()).prop_map(move |()| boxed(Box::new(Dedicated))),
        1 => reservation.clone().prop_map(move |r| boxed(Box::new(ExplicitDeadline::periodic(r)))),
        1 => reservation.clone().prop_map(move |r| boxed(Box::new(ExplicitDeadline::continuous(r)))),
        1 => reservation.clone().prop_map(move |r| boxed(Box::new(
            ExplicitDeadline::new(r, ticks(r.service().as_nanos().midpoint(r.period().as_nanos())))
                .expect("fits")
        ))),
        1 => (reservation.clone(), 0_u64..3).prop_map(move |(r, tick)| boxed(Box::new(
            KernelDeadline::among_others(r, ticks(tick)).expect("fits")
        ))),
        1 => reservation.clone().prop_map(move |r| boxed(Box::new(
            Residual::new(Dedicated, vec![
                Task::new(service(1), r.period() + ticks(1)).expect("a task").with_jitter(ticks(2))
            ]).expect("leaves something")
        ))),
        2 => (1_u64..10, 1_u64..10, 0_u64..12).prop_map(move |(a, b, delay)| boxed(Box::new(
            BoundedDelay::new(Fraction::new(a.min(b), a.max(b)).expect("a rate"), ticks(delay))
                .expect("a rate")
        ))),
    ]
}

fn load(tasks: &[Task], rate: Fraction) -> Ordering {
    let of = |task: &Task| Fraction::new(task.cost().as_nanos(), task.period().as_nanos());
    rate.compare_sum(tasks.iter().filter_map(of))
}

fn blocking(tasks: &[Task], index: usize) -> Service {
    let blocking = tasks[index + 1..].iter().map(Task::blocking);
    blocking.max().unwrap_or(Service::ZERO)
}

const HORIZON: Span = ticks(300);

/// Whether the busy window of some task may be endless on a supply that need not be a whole processor.
fn may_be_endless(tasks: &[Task], supply: &dyn Supply) -> bool {
    let rate = supply.rate();
    rate.numerator() < rate.denominator()
        && (0..tasks.len()).any(|i| load(&tasks[..=i], rate).is_eq())
}
