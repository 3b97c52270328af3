//! Supplies of every kind, and the courses that each may take: which ticks of processor time there are.

use laxity_model::analysis::Fraction;
use laxity_model::analysis::supply::{
    BoundedDelay, ExplicitDeadline, KernelDeadline, SupplyBound, TableSupply,
};
use laxity_model::policy::slots::{Slot, SlotTable};
use laxity_model::{Reservation, Service, Span};
use rand::RngExt;
use rand_pcg::Pcg64;

/// How long a course is, in ticks; after that there is nothing.
pub(crate) const LENGTH: usize = 320;

/// Which ticks there are.
pub(crate) type Course = Vec<bool>;

/// A supply.
pub(crate) struct Supply {
    pub(crate) name: String,
    pub(crate) bound: Box<dyn SupplyBound>,
    /// Courses it may take, a worst one among them, from every instant on.
    pub(crate) courses: Vec<Course>,
}

/// A supply of any kind with a period of up to 7.
pub(crate) fn supply(rng: &mut Pcg64) -> Supply {
    let period = rng.random_range(1..=7_u32);
    let service = rng.random_range(1..=period);
    match rng.random_range(0..6) {
        0 => periodic(rng, service, period, period),
        1 => {
            let deadline = rng.random_range(service..=period);
            periodic(rng, service, period, deadline)
        }
        2 => continuous(rng, service, period),
        3 => table(rng),
        4 => bounded_delay(rng, service, period),
        _ => kernel_deadline(rng, service, period),
    }
}

fn reservation(service: u32, period: u32) -> Reservation {
    let (service, period) = (service.into(), period.into());
    Reservation::new(Service::from_nanos(service), Span::from_nanos(period)).expect("it fits")
}

/// All that lies behind each of the first `shifts` instants.
fn shifted(course: &Course, shifts: u32) -> impl Iterator<Item = Course> {
    (0..shifts as usize).map(|shift| course[shift..].to_vec())
}

/// The service of each period at the places that `place` gives, within the first `deadline` of it.
fn in_periods(period: u32, mut place: impl FnMut(usize) -> Vec<u32>) -> Course {
    let mut course = vec![false; LENGTH];
    for (number, begins) in (0..LENGTH - period as usize)
        .step_by(period as usize)
        .enumerate()
    {
        for at in place(number) {
            course[begins + at as usize] = true;
        }
    }
    course
}

/// X in every Y by Δ.
fn periodic(rng: &mut Pcg64, service: u32, period: u32, deadline: u32) -> Supply {
    let reservation = reservation(service, period);
    let explicit = ExplicitDeadline::new(reservation, Span::from_nanos(deadline.into()));
    let bound: Box<dyn SupplyBound> = if deadline == period && rng.random_range(0..2) == 0 {
        Box::new(ExplicitDeadline::periodic(reservation))
    } else {
        Box::new(explicit.expect("a deadline within the period"))
    };
    let late = deadline - service;
    let mut courses = Vec::new();
    // In one piece: the first periods' pieces anywhere, all later ones as late as may be.
    for first in [0, late] {
        for second in 0..=late {
            let course = in_periods(period, |number| {
                let from = [first, second, late][number.min(2)];
                (from..from + service).collect()
            });
            courses.extend(shifted(&course, period));
        }
    }
    for _ in 0..4 {
        let course = in_periods(period, |_| choose(rng, service, deadline));
        courses.extend(shifted(&course, period));
    }
    Supply {
        name: format!("{service} in every {period} by {deadline}"),
        bound,
        courses,
    }
}

/// So many of the first so many numbers.
fn choose(rng: &mut Pcg64, count: u32, of: u32) -> Vec<u32> {
    let mut left: Vec<u32> = (0..of).collect();
    (0..count)
        .map(|_| left.swap_remove(rng.random_range(0..left.len())))
        .collect()
}

/// X in every window of Y: all courses that repeat themselves after Y.
fn continuous(rng: &mut Pcg64, service: u32, period: u32) -> Supply {
    let bound = Box::new(ExplicitDeadline::continuous(reservation(service, period)));
    let piece = in_periods(period, |_| (0..service).collect());
    let mut courses: Vec<Course> = shifted(&piece, period).collect();
    for _ in 0..6 {
        let places = choose(rng, service, period);
        courses.push(in_periods(period, |_| places.clone()));
    }
    Supply {
        name: format!("{service} in any {period}"),
        bound,
        courses,
    }
}

/// What a table gives to one of two owners: from each of its instants on.
fn table(rng: &mut Pcg64) -> Supply {
    loop {
        let (mut slots, mut at) = (Vec::new(), 0);
        for _ in 0..rng.random_range(1..=5) {
            at += rng.random_range(0..3_u64);
            let length = rng.random_range(1..=3);
            slots.push(Slot {
                start: Span::from_nanos(at),
                length: Span::from_nanos(length),
                owner: rng.random_range(0..2),
            });
            at += length;
        }
        let cycle = at + rng.random_range(0..3);
        let table = SlotTable::new(Span::from_nanos(cycle), slots.clone()).expect("in order");
        let Ok(bound) = TableSupply::new(&table, 0) else {
            continue;
        };
        let own = |at: u64| {
            let covers = |slot: &&Slot| {
                let start = slot.start.as_nanos();
                (start..start + slot.length.as_nanos()).contains(&(at % cycle))
            };
            slots
                .iter()
                .find(covers)
                .is_some_and(|slot| slot.owner == 0)
        };
        let course: Course = (0..LENGTH as u64).map(own).collect();
        return Supply {
            name: format!("{slots:?} every {cycle}"),
            bound: Box::new(bound),
            courses: shifted(&course, cycle as u32).collect(),
        };
    }
}

/// Nothing for so long, and then a tick whenever the rate has made one.
fn bounded_delay(rng: &mut Pcg64, service: u32, period: u32) -> Supply {
    let delay = rng.random_range(0..6_u64);
    let rate = Fraction::new(service.into(), period.into()).expect("not zero");
    let bound = BoundedDelay::new(rate, Span::from_nanos(delay)).expect("a rate");
    let served = |ticks: u64| ticks.saturating_sub(delay) * u64::from(service) / u64::from(period);
    let course: Course = (0..LENGTH as u64)
        .map(|at| served(at + 1) > served(at))
        .collect();
    // A tick before, in which a region may begin.
    let mut before = vec![true];
    before.extend(&course[..LENGTH - 1]);
    Supply {
        name: format!("{service}/{period} after {delay}"),
        bound: Box::new(bound),
        courses: vec![course, before],
    }
}

/// A budget that is noticed late to be used up: what was taken too much is missing in the next round.
fn kernel_deadline(rng: &mut Pcg64, service: u32, period: u32) -> Supply {
    let tick = rng.random_range(0..=4_u32);
    let most = tick.saturating_sub(1);
    let reservation = reservation(service, period);
    let span = Span::from_nanos(tick.into());
    let bound = KernelDeadline::among_others(reservation, span).expect("small");
    let mut courses = Vec::new();
    for course in 0..8 {
        let mut choices = 0;
        let mut choice = |most: u32| {
            choices += 1;
            match course {
                // First as early as may be, and from then on as late.
                0 if choices == 1 => 0,
                0 | 1 => most,
                _ => [0, most, rng.random_range(0..=most)][rng.random_range(0..3)],
            }
        };
        let one = rounds(service, period, most, &mut choice);
        courses.extend(shifted(&one, 2 * period));
    }
    Supply {
        name: format!("deadline {service}/{period}, looked at every {tick}"),
        bound: Box::new(bound),
        courses,
    }
}

/// One course of such a budget; `choice` gives a number up to what it is given.
fn rounds(service: u32, period: u32, most: u32, choice: &mut impl FnMut(u32) -> u32) -> Course {
    let mut course = vec![false; 2 * LENGTH];
    let (mut deadline, mut debt, mut free) = (0, 0, 0);
    while (deadline as usize) < LENGTH {
        // The round begins at the last deadline; what was taken too much may have lasted longer.
        let begins = deadline.max(free);
        let (mut budget, mut periods) = (0, 0);
        while budget == 0 {
            periods += 1;
            budget = (periods * service).saturating_sub(debt);
        }
        deadline += periods * period;
        let slack = deadline.saturating_sub(begins + budget);
        let from = begins + choice(slack);
        debt = choice(most);
        free = from + budget + debt;
        course[from as usize..free as usize].fill(true);
    }
    course.truncate(LENGTH);
    course
}
