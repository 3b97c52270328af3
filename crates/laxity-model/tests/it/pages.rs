//! The figures that `docs/which-test.md` prints, computed again.

use laxity_model::analysis::supply::Dedicated;
use laxity_model::analysis::{Preemption, Task, Verdict, fixed_priority, utilization};
use laxity_model::{Service, Span};

const PAGE: &str = include_str!("../../../../docs/which-test.md");

/// The page's upcalls, by rate: the same share each, together so many parts per 100,000; no regions if there are no quanta to a job.
fn upcalls(processes: u64, share: u64, quanta: Option<u64>) -> Vec<Task> {
    let periods = [40, 50, 60, 70, 80, 90].map(Span::from_millis);
    let all = periods
        .into_iter()
        .flat_map(|period| (0..processes).map(move |_| period));
    let task = |period: Span| {
        let cost_ns = period.as_nanos() * share / 100_000 / (6 * processes);
        let task = Task::new(Service::from_nanos(cost_ns), period)?;
        task.with_preemption(
            quanta.map_or(Preemption::Anywhere, |quanta| Preemption::Fixed {
                longest: Service::from_nanos(cost_ns.div_ceil(quanta)),
                last: Service::from_nanos(cost_ns / quanta),
            }),
        )
    };
    all.map(|period| task(period).expect("a task")).collect()
}

/// The largest share that is accepted, in percent with one decimal.
fn most(processes: u64, quanta: Option<u64>, test: impl Fn(&[Task]) -> Verdict) -> String {
    let accepts = |share| test(&upcalls(processes, share, quanta)).is_schedulable();
    let (mut accepted, mut beyond) = (100, 100_001);
    while beyond - accepted > 1 {
        let middle = (accepted + beyond) / 2;
        if accepts(middle) {
            accepted = middle;
        } else {
            beyond = middle;
        }
    }
    let tenths = (accepted + 50) / 100;
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[test]
fn the_shares_of_the_upcalls_are_those_of_the_page() {
    let rows = [
        ("12, preempted at once", 2, None),
        ("12, four quanta to a job", 2, Some(4)),
        ("12, two", 2, Some(2)),
        ("12, one: never preempted", 2, Some(1)),
        ("96, preempted at once", 16, None),
        ("96, four quanta", 16, Some(4)),
        ("96, one", 16, Some(1)),
    ];
    for (name, processes, quanta) in rows {
        let rmdp = most(processes, quanta, |set| {
            utilization::rmdp(set).expect("fits")
        });
        let hyperbolic = most(processes, quanta, |set| {
            utilization::hyperbolic_with_blocking(set).expect("fits")
        });
        let exact = most(processes, quanta, |set| {
            fixed_priority::test(set, &Dedicated).expect("fits")
        });
        let row = format!("| {name} | {rmdp} | {hyperbolic} | {exact} |");
        assert!(PAGE.contains(&row), "computed: {row}");
    }
}
