//! Utilization bounds against response times worked out the slow way and by the exact tests, against each other, and against numbers
//! worked by hand.
//!
//! `LAXITY_CASES` is the number of random sets for each property (4,000 if it is not set).

use laxity_model::analysis::supply::Dedicated;
use laxity_model::analysis::utilization::{
    blocking_per_task, blocking_summed, earliest_deadline_first, hyperbolic,
    hyperbolic_with_blocking, implicit, liu_layland, liu_layland_bound, rmdp,
};
use laxity_model::analysis::{Doubt, Overflow, Preemption, Task, Verdict, edf, fixed_priority};
use laxity_model::{Service, Span};
use proptest::prelude::*;

use crate::random;
use crate::random::task;

type Test = fn(&[Task]) -> Result<Verdict, Overflow>;

/// All tests for fixed priorities.
const TESTS: [(&str, Test); 6] = [
    ("Liu, Layland", liu_layland),
    ("hyperbolic", hyperbolic),
    ("blocking per task", blocking_per_task),
    ("blocking summed", blocking_summed),
    ("hyperbolic with blocking", hyperbolic_with_blocking),
    ("RMDP", rmdp),
];

fn floating(task: Task, longest: u64) -> Task {
    let longest = Service::from_nanos(longest);
    task.with_preemption(Preemption::Floating { longest })
        .expect("fits")
}

/// Whether every job of every task is complete in time, by the recurrence over all jobs of the busy window, with floating regions;
/// release jitter delays the first releases as far as it may. `None`: the busy window is longer than 100,000 ticks.
fn all_in_time(tasks: &[Task]) -> Option<bool> {
    for (i, task) in tasks.iter().enumerate() {
        let blocking = tasks[i + 1..].iter().map(|task| task.blocking().as_nanos());
        let blocking = blocking.max().unwrap_or(0);
        let (period, jitter) = (task.period().as_nanos(), task.jitter().as_nanos());
        for job in 0.. {
            let own = (job + 1) * task.cost().as_nanos();
            let mut finish = blocking + own;
            loop {
                let above = tasks[..i].iter().map(|other| {
                    let window = finish + other.jitter().as_nanos();
                    window.div_ceil(other.period().as_nanos()) * other.cost().as_nanos()
                });
                let next = blocking + own + above.sum::<u64>();
                if next == finish {
                    break;
                }
                finish = next;
                if finish > 100_000 {
                    return None;
                }
            }
            // The first job arrived J before the window, released as late as it may be.
            if finish + jitter > job * period + task.deadline().as_nanos() {
                return Some(false);
            }
            if finish + jitter <= (job + 1) * period {
                break;
            }
        }
    }
    Some(true)
}

/// Tasks with rates in order, near the bounds: each takes up to 2/n of a processor; regions from none to the whole job.
fn tasks(regions: bool) -> impl Strategy<Value = Vec<Task>> {
    let one = (2_u64..120, 0_u64..=100, 0_u64..=100, 0_u64..3);
    prop::collection::vec(one, 1..6).prop_map(move |numbers| {
        let n = numbers.len() as u64;
        let mut tasks: Vec<Task> = numbers
            .into_iter()
            .map(|(period, load, region, kind)| {
                let cost = (2 * period * load / (100 * n)).clamp(1, period);
                let region = Service::from_nanos((cost * region / 100).max(1));
                let preemption = match kind {
                    _ if !regions => Preemption::Anywhere,
                    0 => Preemption::Never,
                    1 => Preemption::Floating { longest: region },
                    _ => Preemption::Fixed {
                        longest: region,
                        last: Service::from_nanos(1),
                    },
                };
                task(cost, period)
                    .with_preemption(preemption)
                    .expect("fits")
            })
            .collect();
        tasks.sort_by_key(Task::period);
        tasks
    })
}

fn accepts(test: Test, tasks: &[Task]) -> bool {
    test(tasks).expect("small numbers").is_schedulable()
}

proptest! {
    #![proptest_config(random::config(4_000))]

    /// Never a set whose response times are too long; and nothing is ever called not schedulable.
    #[test]
    fn nothing_is_accepted_that_misses(tasks in prop_oneof![tasks(false), tasks(true)]) {
        let truth = all_in_time(&tasks);
        for (name, test) in TESTS {
            let verdict = test(&tasks).expect("small numbers");
            if verdict.is_schedulable() {
                prop_assert_eq!(truth, Some(true), "{}", name);
                let exact = fixed_priority::test(&tasks, &Dedicated);
                prop_assert_eq!(exact, Ok(Verdict::Schedulable), "{}", name);
            } else {
                prop_assert!(matches!(verdict, Verdict::Unknown(_)), "{}", name);
            }
        }
    }

    /// What the module's table says about who accepts more.
    #[test]
    fn tests_dominate_each_other(
        free in tasks(false),
        blocked in tasks(true),
    ) {
        if accepts(liu_layland, &free) {
            for (name, test) in TESTS {
                prop_assert!(accepts(test, &free), "{}", name);
            }
        }
        prop_assert_eq!(hyperbolic(&free), hyperbolic_with_blocking(&free));
        for weaker in [blocking_summed as Test, rmdp] {
            prop_assert!(!accepts(weaker, &blocked) || accepts(blocking_per_task, &blocked));
        }
        prop_assert!(!accepts(blocking_per_task, &blocked) || accepts(hyperbolic_with_blocking, &blocked));
    }

    /// With doubles, where they can tell.
    #[test]
    fn formulas_are_as_written(tasks in tasks(true)) {
        let n = tasks.len();
        let bound = |n: usize| n as f64 * ((1.0 / n as f64).exp2() - 1.0);
        let ratio = |service: Service, i: usize| service.as_nanos() as f64 / tasks[i].period().as_nanos() as f64;
        let blocking = |i: usize| tasks[i + 1..].iter().map(Task::blocking).max().unwrap_or_default();
        let quantum = tasks.iter().map(|task| match task.preemption() {
            Preemption::Floating { longest } | Preemption::Fixed { longest, .. } => longest,
            Preemption::Never | Preemption::Anywhere => task.cost(),
        }).max().expect("some");
        let used = |n: usize| (0..n).map(|i| ratio(tasks[i].cost(), i)).sum::<f64>();
        let product = |n: usize| (0..n).map(|i| ratio(tasks[i].cost(), i) + 1.0).product::<f64>();
        let slack: [(Test, f64); 4] = [
            (blocking_per_task, (0..n).map(|i| bound(i + 1) - used(i + 1) - ratio(blocking(i), i)).fold(f64::MAX, f64::min)),
            (blocking_summed, bound(n) - used(n) - (0..n).map(|i| ratio(blocking(i), i)).fold(0.0, f64::max)),
            (rmdp, bound(n) - used(n) - ratio(quantum, 0) + ratio(quantum, n - 1)),
            (hyperbolic_with_blocking, (0..n).map(|i| {
                2.0 - product(i) * (1.0 + ratio(tasks[i].cost() + blocking(i), i))
            }).fold(f64::MAX, f64::min)),
        ];
        for (test, slack) in slack {
            prop_assert!(slack.abs() < 1e-9 || accepts(test, &tasks) == (slack > 0.0), "{}", slack);
        }
    }

    /// Jitter and short deadlines, made implicit.
    #[test]
    fn what_is_accepted_as_implicit_is_in_time(
        tasks in tasks(true),
        changes in prop::collection::vec((30_u64..150, 0_u64..60), 5),
    ) {
        let originals: Vec<Task> = tasks.iter().zip(changes).map(|(task, (deadline, jitter))| {
            let percent = |part: u64| Span::from_nanos((task.period().as_nanos() * part / 100).max(1));
            task.with_deadline(percent(deadline)).expect("not zero").with_jitter(percent(jitter))
        }).collect();
        let mut pairs: Vec<(Task, Task)> = originals.iter()
            .filter_map(|task| implicit(task).map(|implicit| (implicit, *task)))
            .collect();
        pairs.sort_by_key(|(implicit, _)| implicit.period());
        let (implicit, originals): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        for (name, test) in TESTS {
            if accepts(test, &implicit) {
                prop_assert_eq!(all_in_time(&originals), Some(true), "{}", name);
            }
        }
    }

    /// With deadlines at the ends of periods, one sum says as much as the demand at every deadline.
    #[test]
    fn earliest_deadline_first_is_exact(mut tasks in tasks(false), added in 0_u64..60) {
        // Up to the whole processor, or beyond it.
        let period = tasks[0].period().as_nanos();
        tasks.push(task((period * added / 60).max(1), period));
        let exact = edf::test(&tasks, &Dedicated).expect("small numbers");
        prop_assert_eq!(accepts(earliest_deadline_first, &tasks), exact.is_schedulable());
    }

    /// No size of numbers makes a panic, and a set whose every task alone fills a processor is never accepted.
    #[test]
    fn any_number_is_taken(
        numbers in prop::collection::vec((any::<u64>(), any::<u64>(), any::<bool>()), 1..6),
    ) {
        let tasks = numbers.into_iter().map(|(cost, period, never)| {
            let preemption = if never { Preemption::Never } else { Preemption::Anywhere };
            task(cost.max(1), period.max(1)).with_preemption(preemption).expect("fits")
        });
        let mut tasks: Vec<Task> = tasks.collect();
        tasks.sort_by_key(Task::period);
        let full = tasks.iter().any(|task| task.cost().as_dedicated_span() > task.period());
        for (name, test) in TESTS {
            let verdict = test(&tasks);
            prop_assert!(!full || verdict != Ok(Verdict::Schedulable), "{}", name);
        }
    }
}

#[test]
fn the_bound_is_just_below_the_true_one() {
    for n in 1..=10_000_usize {
        let bound = liu_layland_bound(n);
        let value = bound.numerator() as f64 / bound.denominator() as f64;
        // n(2^(1/n) − 1) without cancellation.
        let exact = n as f64 * (core::f64::consts::LN_2 / n as f64).exp_m1();
        assert!((exact - value).abs() < 1e-13, "{n}: {value} {exact}");
    }
}

#[test]
fn what_the_tests_are_not_made_for_is_out_of_scope() {
    let out = Ok(Verdict::Unknown(Doubt::OutOfScope));
    let late = Span::from_nanos(1);
    let sets = [
        [task(1, 20), task(1, 10)],
        [task(1, 10), task(1, 20).with_jitter(late)],
        [
            task(1, 10),
            task(1, 20)
                .with_deadline(Span::from_nanos(19))
                .expect("a deadline"),
        ],
    ];
    for set in sets {
        for (name, test) in TESTS {
            assert_eq!(test(&set), out, "{name}");
        }
    }
    // These two know of no blocking.
    let blocked = [task(1, 10), floating(task(2, 20), 2)];
    assert_eq!(liu_layland(&blocked), out);
    assert_eq!(hyperbolic(&blocked), out);
    assert_eq!(earliest_deadline_first(&blocked), out);
    assert_eq!(blocking_per_task(&blocked), Ok(Verdict::Schedulable));
    // The most urgent one blocks nobody, and a region of one tick blocks for none.
    assert_eq!(
        liu_layland(&[floating(task(3, 10), 3), floating(task(2, 20), 1)]),
        Ok(Verdict::Schedulable)
    );
}

#[test]
fn a_later_deadline_does_no_harm() {
    let set = [task(4, 10), task(8, 20)];
    let later = set.map(|task| {
        task.with_deadline(Span::from_nanos(100))
            .expect("a deadline")
    });
    for (name, test) in TESTS {
        assert_eq!(test(&set), Ok(Verdict::Schedulable), "{name}");
        assert_eq!(test(&later), test(&set), "{name}");
    }
}

#[test]
fn no_task_is_schedulable() {
    for (name, test) in TESTS {
        assert_eq!(test(&[]), Ok(Verdict::Schedulable), "{name}");
    }
    assert_eq!(earliest_deadline_first(&[]), Ok(Verdict::Schedulable));
}

/// One task may take the whole processor; n equal ones just what the bound allows, not a tick more.
#[test]
fn bounds_are_exact_at_their_edges() {
    for (name, test) in TESTS {
        assert_eq!(test(&[task(7, 7)]), Ok(Verdict::Schedulable), "{name}");
        assert!(!accepts(test, &[task(8, 7)]), "{name}");
    }
    for n in 2..12_u64 {
        let period = 1_000_000_000_000_000;
        let bound = u128::from(liu_layland_bound(n as usize).numerator());
        let each = (bound * u128::from(period) / u128::from(n)) >> 62;
        let set = |cost| vec![task(cost, period); n as usize];
        let each = u64::try_from(each).expect("fits");
        assert!(accepts(liu_layland, &set(each)), "{n}");
        assert!(!accepts(liu_layland, &set(each + 1)), "{n}");
        assert!(accepts(hyperbolic, &set(each)), "{n}");
        assert!(!accepts(hyperbolic, &set(each + 1)), "{n}");
    }
    // 1/2 and 1/3 multiply to 2; a hair more does not.
    let (t1, t2) = (1 << 61, 3 << 60);
    assert!(accepts(hyperbolic, &[task(t1 / 2, t1), task(t2 / 3, t2)]));
    assert!(!accepts(
        hyperbolic,
        &[task(t1 / 2, t1), task(t2 / 3 + 1, t2)]
    ));
}

#[test]
fn sums_too_large_for_64_bits_are_an_error() {
    let most = u64::MAX;
    assert!(matches!(hyperbolic(&[task(most, most)]), Err(Overflow(_))));
    let pair = [task(most / 2, most), floating(task(most, most), most)];
    assert!(matches!(hyperbolic_with_blocking(&pair), Err(Overflow(_))));
}

/// The set of the module's examples: what each test makes of one quantum. Worked by hand.
#[test]
fn the_tests_on_one_set() {
    // U = 0.25 + 0.2 + 0.2 = 0.65; the bounds are 1, 0.8284, 0.7798. Hence B₁ ≤ 30, B₂ ≤ 37.84 % of T.
    let set = |quantum: u64| {
        [
            task(10, 40),
            floating(task(10, 50), quantum.min(10)),
            floating(task(20, 100), quantum),
        ]
    };
    // Summed: B/40 ≤ 0.1298, B ≤ 5.19, q ≤ 6. RMDP: q (1/40 − 1/100) ≤ 0.1298, q ≤ 8.65.
    // Per task: B/50 ≤ 0.3784, B ≤ 18.9, q ≤ 19. Hyperbolic: 1.25 (1.2 + B/50) ≤ 2, B ≤ 20, q ≤ 20, the whole job.
    let longest = |test: Test| (1..=20).rev().find(|quantum| accepts(test, &set(*quantum)));
    assert_eq!(longest(blocking_summed), Some(6));
    assert_eq!(longest(rmdp), Some(8));
    assert_eq!(longest(blocking_per_task), Some(19));
    assert_eq!(longest(hyperbolic_with_blocking), Some(20));
}

#[test]
fn earliest_deadline_first_takes_a_whole_processor() {
    let full = [task(3, 6), task(1, 4), task(3, 12)];
    assert_eq!(earliest_deadline_first(&full), Ok(Verdict::Schedulable));
    let more = [task(3, 6), task(1, 4), task(1_001, 4_000)];
    assert_eq!(
        earliest_deadline_first(&more),
        Ok(Verdict::Unknown(Doubt::Sufficient))
    );
}
