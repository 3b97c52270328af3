//! Upcalls that have a budget together, on the machine of virtual time: no more than that in a period, others in time beside them, and what a quantum took.

use std::sync::Arc;

use laxity_model::analysis::supply::Dedicated;
use laxity_model::analysis::{Preemption, Task};
use laxity_model::executor::linked::{Linked, bounds};
use laxity_model::executor::share::Share;
use laxity_model::{Instant, Span};
use proptest::prelude::*;

use crate::upcalls::links::{One, run};
use crate::upcalls::machine::{MICRO, timing, us};

proptest! {
    /// Two that share a budget, however much they want, and two others: the two have no more than the budget in a period, and the others are in time.
    #[test]
    fn a_group_has_no_more_than_its_budget_and_others_are_in_time(
        (budget, period) in (3..12_u64, 20..60_u64),
        members in prop::array::uniform2((0..40_u64, 5..40_u64, 1..4_u64, 1..6_u32)),
        others in prop::array::uniform2((0..40_u64, 15..90_u64, 1..12_u64, 1..4_u32)),
    ) {
        let share = Share::new(MICRO * budget, Span::from_micros(period), Instant::ZERO).unwrap();
        let share = Arc::new(share);
        let member = |(first, period, unit, batch)| One {
            deadline: share.period(),
            share: Some(Arc::clone(&share)),
            ..One::new(timing(first, period, batch, 1), MICRO * unit)
        };
        let other = |(first, period, unit, batch)| One::new(timing(first, period, batch, 1), MICRO * unit);
        let group: Vec<One> = members.into_iter().map(member).collect();
        let others: Vec<One> = others.into_iter().map(other).collect();
        let region = group.iter().map(|one| one.unit).max().unwrap();
        let whole = Task::new(share.budget(), share.period()).unwrap();
        let whole = Linked {
            defers: true,
            ..Linked::alone(whole.with_preemption(Preemption::Floating { longest: region }).unwrap())
        };
        let linked: Vec<Linked> = others.iter().map(One::linked).chain([whole]).collect();
        let Ok(bounds) = bounds(&linked, &Dedicated) else {
            return Ok(());
        };
        let (boards, quanta) = run(others.into_iter().chain(group).collect(), 4_000);
        for (board, bound) in boards.iter().zip(&bounds[..2]) {
            prop_assert!(board.counts().longest_response <= *bound, "{} {:?}", bound, board.counts());
        }
        let mut used = vec![0; 4_100 / period as usize + 2];
        for (place, began, took, _) in quanta.lock().unwrap().iter() {
            let began = began.as_nanos() / 1_000;
            for micro in began..began + took.as_nanos() / 1_000 {
                used[(micro / period) as usize] += u64::from(*place >= 2);
            }
        }
        prop_assert!(used.iter().all(|used| *used <= budget), "{:?}", used);
        prop_assert_eq!(share.counts().used, Span::from_micros(used.iter().sum()));
    }
}

/// A group that keeps its budget to the end of a period, and has the next at once, is as much in another's way as its bound says.
#[test]
fn the_bound_beside_a_group_is_reached() {
    let share = Share::new(MICRO * 10, Span::from_micros(40), Instant::ZERO).unwrap();
    let share = Arc::new(share);
    let other = One::new(timing(30, 60, 20, 1), MICRO);
    let member = One {
        deadline: share.period(),
        share: Some(Arc::clone(&share)),
        ..One::new(timing(30, 80, 20, 1), MICRO)
    };
    let whole = Task::new(share.budget(), share.period()).unwrap();
    let whole = Linked {
        defers: true,
        ..Linked::alone(whole)
    };
    let bounds = bounds(&[other.linked(), whole], &Dedicated).unwrap();
    let (boards, _) = run(vec![other, member], 79);
    assert_eq!(bounds[0], Span::from_micros(40));
    assert_eq!(boards[0].counts().longest_response, bounds[0]);
}

/// A quantum that takes three budgets has its group wait until they are paid, and is told of with its name; who is in no group goes on.
#[test]
fn who_takes_more_than_it_declared_is_told_and_its_group_pays() {
    let share = Share::new(MICRO * 10, Span::from_micros(100), Instant::ZERO).unwrap();
    let share = Arc::new(share);
    let liar = One {
        takes: MICRO * 30,
        share: Some(Arc::clone(&share)),
        ..One::new(timing(0, 100, 1, 1), MICRO * 5)
    };
    let honest = One::new(timing(50, 100, 2, 1), MICRO);
    let (boards, quanta) = run(vec![liar, honest], 1_000);
    let began: Vec<(u64, bool)> = quanta
        .lock()
        .unwrap()
        .iter()
        .filter(|(place, ..)| *place == 0)
        .map(|(_, began, _, call)| (began.as_nanos() / 1_000, call.over_service))
        .collect();
    // 20 are owed at 30, so that 10 are there again at 300; what was released meanwhile is missed, or had begun to wait.
    assert_eq!(began, [(0, false), (300, true), (600, true), (900, true)]);
    let counts = boards[0].counts();
    assert_eq!(counts.longest_quantum, Span::from_micros(30));
    // Members of a group have no deadline of their own: when it is there they wait for its budget.
    assert_eq!((counts.over_service, counts.calls, counts.late), (4, 4, 0));
    assert_eq!(share.counts().waits, 3);
    let counts = boards[1].counts();
    assert_eq!(
        (counts.over_service, counts.calls, counts.missed),
        (0, 10, 0)
    );
    assert_eq!(counts.longest_quantum, MICRO.as_dedicated_span());
}

/// What no budget can be is none.
#[test]
fn a_share_has_a_budget_that_fits_its_period() {
    let share = |budget, period| Share::new(MICRO * budget, Span::from_micros(period), us(0));
    assert!(share(0, 10).is_none() && share(11, 10).is_none());
    let share = share(10, 10).unwrap();
    assert_eq!(
        (share.budget(), share.period()),
        (MICRO * 10, Span::from_micros(10))
    );
}
