//! Chains of as many upcalls as an executor may have, or of several periods: how often their analysis looks at them, how long they take, and what is none.

use std::cell::Cell;

use laxity_model::analysis::supply::{Dedicated, SupplyBound};
use laxity_model::analysis::{self, Fraction, Task};
use laxity_model::executor::edf::Edf;
use laxity_model::executor::linked::{Linked, admit, bounds};
use laxity_model::executor::pacing::OnOverrun;
use laxity_model::executor::rmdp::Rmdp;
use laxity_model::{Service, Span};
use proptest::prelude::*;

use crate::upcalls::links::{One, chains, run};
use crate::upcalls::machine::{MICRO, timing};

/// A whole processor that counts how often it is asked.
struct Counted(Cell<u64>);

impl SupplyBound for Counted {
    fn least_service(&self, window: Span) -> Service {
        Dedicated.least_service(window)
    }

    fn window_for(&self, service: Service) -> analysis::Result<Span> {
        self.0.set(self.0.get() + 1);
        Dedicated.window_for(service)
    }

    fn rate(&self) -> Fraction {
        Dedicated.rate()
    }

    fn delay(&self) -> Span {
        Dedicated.delay()
    }

    fn is_attained(&self) -> bool {
        true
    }
}

/// So many, each after the one before it and more urgent: of all chains the one that takes longest to analyse.
fn long_chain(count: u64) -> Vec<Linked> {
    let one = |place: u64| {
        let mut one = One::new(timing(0, 100_000, 1, 1), MICRO * 700);
        one.deadline -= Span::from_micros(place);
        one.after = place.checked_sub(1).map(|before| before as u16);
        one.linked()
    };
    (0..count).map(one).collect()
}

#[test]
fn a_chain_of_all_handlers_is_analysed_in_few_rounds() {
    let supply = Counted(Cell::new(0));
    let found = bounds(&long_chain(127), &supply).unwrap();
    assert_eq!(found.last(), Some(&Span::from_micros(127 * 700)));
    // Each of them with each that is before it, as one task, in two rounds.
    let asked = supply.0.get();
    assert!(asked < 200_000, "{asked}");
}

#[test]
fn the_order_in_which_a_chain_is_told_is_no_matter() {
    let told = long_chain(40);
    let mut reversed: Vec<Linked> = told.iter().rev().copied().collect();
    for linked in &mut reversed {
        linked.after = linked.after.map(|before| 39 - before);
    }
    let mut found = bounds(&reversed, &Dedicated).unwrap();
    found.reverse();
    assert_eq!(Ok(found), bounds(&told, &Dedicated));
}

#[test]
fn a_chain_without_a_beginning_is_refused() {
    let mut told = long_chain(3);
    told[0].after = Some(2);
    let no = bounds(&told, &Dedicated).unwrap_err();
    assert_eq!(no.bottleneck, Some(0));
    assert!(no.reason.contains("no beginning"), "{}", no.reason);
}

/// What releases it is looked for between calls alone, so it waits for the whole call of one that is less urgent, and so do those who come after it. Nobody who is more urgent does.
#[test]
fn one_that_is_polled_waits_for_whole_calls() {
    let one = |period, batch, unit| One::new(timing(0, period, batch, 1), MICRO * unit).linked();
    let fed = |polled| Linked {
        polled,
        ..one(5_000, 1, 100)
    };
    // Nine quanta more.
    let (long, whole) = (one(40_000, 10, 150), Span::from_micros(1_350));
    let of = |all: &[Linked]| bounds(all, &Dedicated).unwrap();
    let [with, without] = [true, false].map(|polled| of(&[fed(polled), long])[0]);
    // Once before it is seen, and once more where the one before was seen late.
    let twice = without + whole + whole;
    assert!(
        with >= twice && with <= twice + Span::from_micros(150),
        "{with} {without}"
    );
    let after = Linked {
        after: Some(0),
        ..one(5_000, 1, 50)
    };
    let all = [true, false].map(|polled| of(&[fed(polled), after, one(4_000, 1, 10), long]));
    for place in [0, 1] {
        assert!(all[0][place] >= all[1][place] + whole, "{all:?}");
    }
    // It may come sooner after the one before than a period, then.
    assert!(all[0][2] >= all[1][2], "{all:?}");
    let hasty = |polled| {
        let fed = fed(polled);
        let task = fed.task.with_deadline(Span::from_micros(3_000)).unwrap();
        Linked { task, ..fed }
    };
    let by_rate = |polled| admit(&Rmdp::<4>::with_room(), &[hasty(polled), long], &Dedicated);
    let refused = by_rate(true).unwrap_err();
    assert_eq!(refused.bottleneck, Some(0));
    assert!(by_rate(false).is_ok());
    // That order has no bounds of single ones, and charges nothing for it.
    assert!(admit(&Edf::<4>::with_room(), &[hasty(true), long], &Dedicated).is_ok());
}

/// 1 and 3 ms every 10, beside 2 ms every 5 that go before them and 4 for which they may wait: 15 ms at the most, of which the second does not wait for the first twice, nor the first for the second of its own release.
#[test]
fn a_chain_that_takes_longer_than_its_period_has_a_bound() {
    let one = |cost, period, deadline| {
        let task = Task::new(Service::from_millis(cost), Span::from_millis(period)).unwrap();
        Linked::alone(task.with_deadline(Span::from_millis(deadline)).unwrap())
    };
    let second = Linked {
        after: Some(0),
        ..one(3, 10, 16)
    };
    let all = [one(1, 10, 16), second, one(2, 5, 10), one(4, 40, 40)];
    let bounds = bounds(&all, &Dedicated).unwrap();
    let most = Span::from_millis(10)..=Span::from_millis(15);
    assert!(
        most.contains(&bounds[0]) && most.contains(&bounds[1]),
        "{bounds:?}"
    );
}

proptest! {
    /// Where a chain may take longer than its period, and what comes meanwhile is called late: whatever the phases are.
    #[test]
    fn no_chain_of_several_periods_takes_longer_than_its_bound(mut all in chains(), more in 2..30_u64) {
        for one in &mut all {
            one.deadline += one.timing.period / 10 * more;
            one.timing.on_overrun = OnOverrun::CatchUp { at_most: u32::MAX };
        }
        let linked: Vec<Linked> = all.iter().map(One::linked).collect();
        let Ok(bounds) = bounds(&linked, &Dedicated) else {
            return Ok(());
        };
        let (boards, _) = run(all, 4_000);
        for (place, bound) in bounds.iter().enumerate() {
            let counts = boards[place].counts();
            prop_assert!(counts.longest_end_to_end <= *bound, "{} of {}: {:?}", place, bound, counts);
        }
    }
}
