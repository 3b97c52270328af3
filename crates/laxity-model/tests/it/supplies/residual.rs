//! What work above leaves of a supply.

use laxity_model::analysis::supply::{
    Dedicated, ExplicitDeadline, Residual, SupplyBound, SupplyError, TableSupply,
};
use laxity_model::analysis::{Fraction, Task};
use laxity_model::{Service, Span};
use proptest::prelude::*;

use super::{cases, every, keeps_the_laws, sbf, table};

fn task(cost: u64, period: u64, jitter: u64) -> Task {
    let task = Task::new(Service::from_nanos(cost), Span::from_nanos(period)).unwrap();
    task.with_jitter(Span::from_nanos(jitter))
}

/// Up to three tasks, mostly light.
fn above() -> impl Strategy<Value = Vec<Task>> {
    let task = (1_u64..3, 2_u64..20, 0_u64..9).prop_map(|(c, t, j)| task(c, t.max(c), j));
    prop::collection::vec(task, 0..4)
}

/// max over u ≤ t of sbf(u) − α(u), as it is written.
fn by_definition(supply: &impl SupplyBound, above: &[Task], window: u64) -> u64 {
    let left = |u: u64| {
        let taken: u64 = above
            .iter()
            .map(|task| {
                let jobs = (u + task.jitter().as_nanos()).div_ceil(task.period().as_nanos());
                jobs * task.cost().as_nanos()
            })
            .sum();
        sbf(supply, u).saturating_sub(taken)
    };
    (0..=window).map(left).max().unwrap()
}

fn is_left(supply: &impl SupplyBound, above: &[Task]) -> bool {
    let shares = above
        .iter()
        .map(|task| Fraction::new(task.cost().as_nanos(), task.period().as_nanos()).unwrap());
    supply.rate().compare_sum(shares).is_lt()
}

/// One course of a processor on which the tasks run above all else, in their order; each tick whether it is free of them. A job of a task
/// begins at its offset, every period or `later` by turns.
fn free_ticks(above: &[Task], offsets: &[u64], later: &[u64], ticks: usize) -> Vec<bool> {
    let mut work = vec![0; above.len()];
    let mut due: Vec<u64> = offsets.to_vec();
    let mut released = 0;
    (0..ticks as u64)
        .map(|now| {
            for (i, task) in above.iter().enumerate() {
                if due[i] == now {
                    work[i] += task.cost().as_nanos();
                    due[i] += task.period().as_nanos() + later[released % later.len()];
                    released += 1;
                }
            }
            match work.iter_mut().find(|work| **work > 0) {
                Some(work) => {
                    *work -= 1;
                    false
                }
                None => true,
            }
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256 * cases()))]

    #[test]
    fn a_residual_is_what_it_says(above in above(), x in 1_u64..12, more in 0_u64..6) {
        let supply = ExplicitDeadline::periodic(every(x, x + more));
        let Ok(left) = Residual::new(supply, above.clone()) else {
            prop_assert!(!is_left(&supply, &above));
            return Ok(());
        };
        prop_assert!(is_left(&supply, &above));
        for t in 0..150 {
            prop_assert_eq!(sbf(&left, t), by_definition(&supply, &above, t));
        }
        keeps_the_laws(&left, 150);
    }

    /// The owner of slots gets that much at least in every window of every course, wherever the window begins.
    #[test]
    fn interrupts_above_slots_take_no_more(
        table in table(),
        above in above(),
        offsets in prop::collection::vec(0_u64..20, 3),
        later in prop::collection::vec(0_u64..3, 1..4),
    ) {
        let above: Vec<Task> = above.into_iter().map(|task| task.with_jitter(Span::ZERO)).collect();
        let Ok(slots) = TableSupply::new(&table, 0) else { return Ok(()) };
        let Ok(left) = Residual::new(slots, above.clone()) else { return Ok(()) };
        const TICKS: usize = 200;
        let free = free_ticks(&above, &offsets, &later, TICKS);
        let own = super::served(&table, 0, (TICKS as u64).div_ceil(table.cycle().as_nanos()) + 1);
        let mut served = vec![0];
        for tick in 0..TICKS {
            let gets = if free[tick] { own[tick + 1] - own[tick] } else { 0 };
            served.push(served[tick] + gets);
        }
        let bound: Vec<u64> = (0..=TICKS as u64).map(|t| sbf(&left, t)).collect();
        for from in 0..TICKS {
            for to in from..=TICKS {
                prop_assert!(served[to] - served[from] >= bound[to - from], "{from} to {to}");
            }
        }
    }
}

#[test]
fn what_takes_all_leaves_nothing() {
    let half = ExplicitDeadline::continuous(every(4, 8));
    let refused = Residual::new(half, vec![task(1, 4, 0), task(1, 4, 0)]);
    assert_eq!(refused, Err(SupplyError::NothingLeft));
    let thirds = Residual::new(Dedicated, vec![task(1, 3, 0), task(1, 3, 0)]).unwrap();
    assert_eq!(thirds.rate(), Fraction::new(1, 3).unwrap());
    // The cycle does not fit: 2⁴⁰ times 2⁴⁰ − 1 ns.
    let (even, odd) = (1 << 40, (1 << 40) - 1);
    let vast = Residual::new(Dedicated, vec![task(1, even, 0), task(1, odd, 0)]).unwrap();
    let rate = vast.rate();
    let taken = Fraction::new(1, 1 << 39).unwrap();
    assert!(
        rate.denominator() >= 1 << 62
            && Fraction::ONE.compare_sum([rate, taken].into_iter()).is_lt()
    );
    assert!(!thirds.is_attained());
    assert!(Residual::new(Dedicated, Vec::new()).unwrap().is_attained());
}

/// Next to nothing is left: a fixed point of a million rounds, which begins at its end.
#[test]
fn a_residual_of_next_to_nothing_answers_at_once() {
    let (most, second) = (999_999_999, 1_000_000_000);
    let left = Residual::new(Dedicated, vec![task(most, second, 0)]).unwrap();
    assert_eq!(left.rate(), Fraction::new(1, second).unwrap());
    let wanted = Service::from_nanos(1_000_000);
    let window = left.window_for(wanted).unwrap();
    // In each second there is one tick, its last.
    assert_eq!(window, Span::from_secs(1_000_000));
    assert_eq!(left.least_service(window), wanted);
}

/// Here the common cycle of the work is longer than can be told, and its end unknown: after some rounds, rate and delay answer.
#[test]
fn a_fixed_point_of_too_many_rounds_is_cut_off() {
    let (even, odd) = (1 << 40, (1 << 40) - 1);
    let above = vec![task(even / 2, even, 0), task(odd / 2 - (1 << 30), odd, 0)];
    let left = Residual::new(Dedicated, above.clone()).unwrap();
    assert!(left.rate().denominator() >= 1 << 62);
    let wanted = 1 << 48;
    let window = left.window_for(Service::from_nanos(wanted)).unwrap();
    // It is a window in which that much is left.
    let taken: u64 = above
        .iter()
        .map(|task| window.as_nanos().div_ceil(task.period().as_nanos()) * task.cost().as_nanos())
        .sum();
    assert!(window.as_nanos() - taken >= wanted);
}

#[test]
fn a_supply_that_is_chosen_at_run_time_has_a_residual_too() {
    for (supply, sure) in [
        (Box::new(Dedicated) as Box<dyn SupplyBound>, 27),
        (Box::new(ExplicitDeadline::periodic(every(5, 10))), 7),
    ] {
        let left = Residual::new(supply, vec![task(1, 12, 0)]).unwrap();
        assert_eq!(sbf(&left, 30), sure);
    }
}
