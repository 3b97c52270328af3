//! Task sets that need all that their supply gives: a plan admits or refuses them, as every tick of an exhaustive search says.

use laxity_lab::import::{Format, TaskSet, read};
use laxity_lab::plan::Deadline;
use laxity_lab::plan::set::{Options, Scheduler, SetPlan, Supply, plan, render};
use laxity_model::{Reservation, Service, Span};
use proptest::prelude::*;

fn set(csv: &str) -> TaskSet {
    read(csv, "set.csv", Format::Csv).expect("a task set")
}

fn planned(csv: &str, scheduler: Scheduler, supply: Supply) -> SetPlan {
    let options = Options {
        scheduler,
        supply,
        observe: false,
        ..Options::default()
    };
    plan(&set(csv), &options).expect("small numbers")
}

const HEADER: &str = "name,cost_ms,period_ms,deadline_ms,jitter_ms\n";

/// No busy window of it ends, and more is due by 8 ms than is given by then.
#[test]
fn a_set_that_is_refused_by_its_own_test_is_not_unknown() {
    let csv = format!("{HEADER}a,5,10,8,0\nb,5,10,10,1\n");
    for scheduler in [Scheduler::Edf, Scheduler::Auto, Scheduler::FixedPriority] {
        let plan = planned(&csv, scheduler, Supply::Dedicated);
        assert!(!plan.admitted && !plan.unknown, "{}", render(&plan, 100));
    }
}

/// All that happens in its busy window, which never ends, has happened after 3 ns: why it is refused is that a job may be released when it is due.
#[test]
fn what_repeats_itself_soon_is_not_too_long_to_be_searched() {
    let csv = "name,cost_ns,period_ns,deadline_ns,jitter_ns,region_ns,last_region_ns\na,1,3,2,0,1,1\nb,2,3,3,3,2,2\n";
    let plan = planned(csv, Scheduler::Edf, Supply::Dedicated);
    let text = render(&plan, 100);
    assert!(!plan.admitted && !plan.unknown, "{text}");
    assert!(!text.contains("too long to be searched"), "{text}");
    let mut lines = plan.processors[0].lines.iter();
    assert!(lines.all(|line| line.bound_ns.is_some()), "{text}");
}

/// Its busy window never ends on slots either, and its jobs take 7 ms at most.
#[test]
fn a_task_that_is_released_late_and_takes_all_that_slots_give_is_decided() {
    let reservation = Reservation::new(Service::from_millis(2), Span::from_millis(3));
    let supply = Supply::Slots(reservation.expect("2/3"));
    for (due, is_admitted) in [(10, true), (7, true), (6, false)] {
        let csv = format!("{HEADER}a,4,6,{due},1\n");
        for scheduler in [Scheduler::FixedPriority, Scheduler::Edf] {
            let plan = planned(&csv, scheduler, supply);
            let found = (plan.admitted, plan.unknown);
            assert_eq!(found, (is_admitted, false), "{}", render(&plan, 100));
        }
    }
}

/// What the demand test admits is in time, also where nobody searched for the bounds of all: the windows of many tasks are too long for that.
#[test]
fn what_the_demand_test_admits_meets_its_deadlines_with_bounds_or_without() {
    let mut without_bounds = 0;
    for (count, load_ppm) in [
        (80_u64, 990_000),
        (150, 950_000),
        (300, 900_000),
        (1_000, 897_000),
    ] {
        let mut csv = "name,cost_ns,period_us\n".to_owned();
        for index in 0..count {
            let period = 1_000 + index * 7_919 % 99_000;
            let cost = period * load_ppm / count / 1_000;
            csv += &format!("t{index},{cost},{period}\n");
        }
        let plan = planned(&csv, Scheduler::Edf, Supply::Dedicated);
        assert!(plan.admitted, "{count}");
        let lines = &plan.processors[0].lines;
        for line in lines {
            assert_eq!(line.deadline, Some(Deadline::Met), "{line:?}");
        }
        let text = render(&plan, 100);
        assert!(
            text.contains("admitted by earliest deadline first, by demand\n"),
            "{text}"
        );
        assert!(!text.contains("not known"), "{text}");
        let json = serde_json::to_string(&plan).expect("JSON");
        assert!(!json.contains("\"not known\""), "{count}");
        let why = "its deadline is met (earliest deadline first, by demand); how long before is not computed: ";
        let unbounded = lines.iter().filter(|line| line.bound_ns.is_none());
        for line in unbounded {
            let said = line.no_bound.as_deref().expect("a reason");
            assert!(said.starts_with(why), "{said}");
            without_bounds += 1;
        }
    }
    assert!(without_bounds > 0);
}

/// C, T, D, J.
type Numbers = (u64, u64, u64, u64);

/// X of every Y by slots.
type Slots = (u64, u64);

/// Tasks that need exactly X of every Y, which slots give.
fn full() -> impl Strategy<Value = (Vec<Numbers>, Slots)> {
    let slots = (2_u64..6).prop_flat_map(|y| (2..=y, Just(y)));
    let shares = slots.prop_flat_map(|(x, y)| (1..x, 1_u64..3, 1_u64..4, Just((x, y))));
    shares.prop_flat_map(|(first, k, l, (x, y))| {
        let task = |cost: u64, period: u64| {
            let due = cost..=2 * period;
            (Just(cost), Just(period), due, 0_u64..3)
        };
        let tasks = [task(first * k, y * k), task((x - first) * l, y * l)];
        (Vec::from(tasks), Just((x, y)))
    })
}

/// What is sure of the slots in a window of this length.
fn given(window: u64, (x, y): Slots) -> u64 {
    window / y * x + (window % y).saturating_sub(y - x)
}

/// Whether more can be due by some time than is sure to have been given: by ticks, until all repeats itself.
fn is_overloaded(tasks: &[Numbers], slots: Slots) -> bool {
    if tasks.iter().any(|(_, _, due, jitter)| jitter >= due) {
        return true;
    }
    let long: u64 = tasks
        .iter()
        .map(|(_, period, due, _)| period * due)
        .product();
    (1..=long.min(20_000) + 1_000).any(|time| {
        let due = tasks.iter().map(|(cost, period, due, jitter)| {
            let jobs = (time + jitter).checked_sub(*due);
            jobs.map_or(0, |rest| (rest / period + 1) * cost)
        });
        due.sum::<u64>() > given(time, slots)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn what_needs_all_there_is_is_admitted_or_refused((tasks, (x, y)) in full()) {
        let mut csv = "name,cost_ns,period_ns,deadline_ns,jitter_ns\n".to_owned();
        for (place, (cost, period, due, jitter)) in tasks.iter().enumerate() {
            csv += &format!("t{place},{cost},{period},{due},{jitter}\n");
        }
        let reservation = Reservation::new(Service::from_nanos(x), Span::from_nanos(y));
        let supply = Supply::Slots(reservation.expect("X is no more than Y"));
        let plan = planned(&csv, Scheduler::Edf, supply);
        let words = render(&plan, 100);
        prop_assert!(!plan.unknown, "{words}");
        prop_assert_eq!(plan.admitted, !is_overloaded(&tasks, (x, y)), "{}", words);
    }
}

#[test]
fn nothing_is_proposed_that_no_slots_can_be() {
    let csv = "name,cost_us,period_us\na,1,6\n";
    let of = |x_us, y_us| {
        let reservation = Reservation::new(Service::from_micros(x_us), Span::from_micros(y_us));
        Supply::Slots(reservation.expect("X is no more than Y"))
    };
    let plan = planned(csv, Scheduler::Auto, of(5, 7));
    let found = plan.processors[0].reservations.expect("of a reservation");
    assert_eq!((found.least_service_ns, found.cheapest), (None, None));
    let words = render(&plan, 200);
    let why = "7us is too short a period to propose, as slots of it would be mostly edges; from 1ms on it makes sense; nor anything every 1ms to 32ms";
    assert!(words.contains(why), "{words}");
}
